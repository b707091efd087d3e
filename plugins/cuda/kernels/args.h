// SPDX-License-Identifier: MIT
// What every kernel is given, by value: C for the host, C++ for the kernels.
#ifndef CUDA_KERNELS_ARGS_H
#define CUDA_KERNELS_ARGS_H

enum { CUDA_MAX_OPERANDS = 8, CUDA_OP_PARAMS = 16, CUDA_NUMBERS = 8 };

// A tensor in device memory. Strides are in bytes. data 0: there is none.
struct cuda_operand {
    unsigned long long data;
    int type; // enum ggml_type
    int reserved;
    long long ne[4];
    long long nb[4];
};

struct cuda_args {
    struct cuda_operand operands[CUDA_MAX_OPERANDS]; // the result, then the sources
    int params[CUDA_OP_PARAMS];                      // of the node
    long long numbers[CUDA_NUMBERS]; // what the host computed: the kernel says which
    double reals[CUDA_NUMBERS];
};

#endif
