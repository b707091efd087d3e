// SPDX-License-Identifier: MIT
// Columns of kernel_list.inl that several families share.
#include "ggml-shape.h"
#include "runtime/kernel_list.h"

// For kernels without work memory.
size_t cpu_work_none(const struct ggml_tensor *node, int n_threads) {
    (void)node;
    (void)n_threads;
    return 0;
}

size_t cpu_work_barrier(const struct ggml_tensor *node, int n_threads) {
    return cpu_work_none(node, n_threads);
}

// The default measure: elements of the result.
int64_t cpu_cost_dst(const struct ggml_tensor *node) {
    return ggml_nelements(node);
}

// For functions such as exponentials: about ten times an addition.
int64_t cpu_cost_dst_heavy(const struct ggml_tensor *node) {
    const int64_t n = ggml_nelements(node);
    return n > INT64_MAX / 10 ? INT64_MAX : n * 10;
}

// For reductions: elements read.
int64_t cpu_cost_src0(const struct ggml_tensor *node) {
    return ggml_nelements(node->src[0]);
}
