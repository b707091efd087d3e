// SPDX-License-Identifier: MIT
// What every kernel is given, by value: C for the host, C++ for the kernels. The layout is the same
// for all.
#ifndef GPU_KERNELS_ARGS_H
#define GPU_KERNELS_ARGS_H

// Metal's language has no long long; its long has 64 bits.
#if defined(__METAL_VERSION__)
typedef unsigned long gpu_word;
typedef long gpu_number;
#else
typedef unsigned long long gpu_word;
typedef long long gpu_number;
#endif

enum { GPU_MAX_OPERANDS = 8, GPU_OP_PARAMS = 16, GPU_NUMBERS = 8 };

// The sum of two floats, which is nearly as good as a double: not every GPU has those.
struct gpu_wide {
    float high, low;
};

// A tensor in device memory. Strides are in bytes. data 0: there is none.
struct gpu_operand {
    gpu_word data;
    int type; // enum ggml_type
    int reserved;
    gpu_number ne[4];
    gpu_number nb[4];
};

struct gpu_args {
    struct gpu_operand operands[GPU_MAX_OPERANDS]; // the result, then the sources
    int params[GPU_OP_PARAMS];                     // of the node
    gpu_number numbers[GPU_NUMBERS];               // what the host computed: the kernel says which
    struct gpu_wide reals[GPU_NUMBERS];
};

#endif
