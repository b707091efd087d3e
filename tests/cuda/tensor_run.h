// SPDX-License-Identifier: MIT
// Nodes of one operation, launched on the emulator as the plugin would on a device with tensor
// cores. To be included after cmocka.
#ifndef CUDA_TENSOR_RUN_H
#define CUDA_TENSOR_RUN_H

#include <stdlib.h>
#include <string.h>

#include "simt.h"
#include "simt/kernels.h"

enum { ALIGNMENT = 512 };

// A packed tensor of zero bits in memory that kernels may use.
static inline struct ggml_tensor new_tensor(enum ggml_type type, int64_t ne0, int64_t ne1) {
    struct ggml_tensor t = {.type = type, .ne = {ne0, ne1, 1, 1}};
    t.nb[0] = ggml_type_size(type);
    t.nb[1] = ggml_row_size(type, ne0);
    t.nb[2] = t.nb[3] = t.nb[1] * (size_t)ne1;
    const size_t size = (t.nb[3] + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    t.data = aligned_alloc(ALIGNMENT, size);
    assert_non_null(t.data);
    memset(t.data, 0, size);
    simt_memory_show(t.data, t.nb[3]);
    return t;
}

static inline void free_tensor(const struct ggml_tensor *t) {
    simt_memory_remove(t->data);
    free(t->data);
}

// The kernel whose name begins so has to be the one that is chosen.
static inline void run_node(const struct ggml_tensor *node, const char *kernel) {
    struct simt_work work;
    char message[300] = "";
    assert_true(simt_kernel_prepare_for(&work, node, SIMT_TENSOR_CORES));
    if (strncmp(simt_kernel_names[work.kernel], kernel, strlen(kernel)) != 0)
        fail_msg("%s is chosen, not %s", simt_kernel_names[work.kernel], kernel);
    const struct simt_launch launch = {simt_kernel_names[work.kernel],
                                       {work.grid[0], work.grid[1], work.grid[2]},
                                       work.threads,
                                       &work.args};
    if (!simt_run(&launch, message, sizeof(message))) fail_msg("%s", message);
}

#endif
