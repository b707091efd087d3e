// SPDX-License-Identifier: MIT
// Which nodes are computed, by which kernel, with what arguments.
#ifndef CUDA_OPS_KERNELS_H
#define CUDA_OPS_KERNELS_H

#include "ggml-impl.h"
#include "kernels/args.h"

enum cuda_kernel {
#define CUDA_KERNEL(name) CUDA_KERNEL_##name,
#include "ops/kernel_list.inl"
    CUDA_KERNEL_COUNT
};

// Of the functions in the module.
extern const char *const cuda_kernel_names[CUDA_KERNEL_COUNT];

struct cuda_launch {
    enum cuda_kernel kernel;
    unsigned grid[3]; // blocks; 0: there is nothing to compute
    unsigned threads; // of a block
    struct cuda_args args;
};

// Whether the node is computed. Its tensors may have no buffers yet. [any-thread]
bool cuda_supports_op(const struct ggml_tensor *node);
// Fills the launch for a node; false: it isn't computed. [any-thread]
bool cuda_kernel_prepare(struct cuda_launch *out_launch, const struct ggml_tensor *node);

#endif
