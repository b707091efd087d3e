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

// Also of more dimensions.
static inline struct ggml_tensor new_tensor_3d(enum ggml_type type, int64_t ne0, int64_t ne1,
                                               int64_t ne2) {
    struct ggml_tensor t = new_tensor(type, ne0, ne1 * ne2);
    t.ne[1] = ne1;
    t.ne[2] = ne2;
    t.nb[2] = t.nb[1] * (size_t)ne1;
    return t;
}

static inline void run_work(const struct simt_work *work) {
    char message[300] = "";
    const struct simt_launch launch = {simt_kernel_names[work->kernel],
                                       {work->grid[0], work->grid[1], work->grid[2]},
                                       work->threads,
                                       &work->args,
                                       work->shared};
    if (!simt_run(&launch, message, sizeof(message))) fail_msg("%s", message);
}

// On a device with some of enum simt_feature; the kernel whose name begins so has to be the one
// that is chosen. Returns how many launches.
static inline int run_node_with(const struct ggml_tensor *node, const char *kernel,
                                unsigned features) {
    struct simt_work work, second;
    int n = 1;
    assert_true(simt_kernel_prepare_for(&work, node, features));
    if (strncmp(simt_kernel_names[work.kernel], kernel, strlen(kernel)) != 0)
        fail_msg("%s is chosen, not %s", simt_kernel_names[work.kernel], kernel);
    struct ggml_tensor scratch = {0};
    if (work.scratch > 0) {
        scratch = new_tensor(GGML_TYPE_I8, (int64_t)work.scratch, 1);
        memset(scratch.data, 0xff, work.scratch); // not a number
        work.args.operands[GPU_MAX_OPERANDS - 1].data = (uintptr_t)scratch.data;
    }
    run_work(&work);
    if (simt_kernel_finish(&second, &work)) {
        run_work(&second);
        ++n;
    }
    if (work.scratch > 0) free_tensor(&scratch);
    return n;
}

static inline int run_node(const struct ggml_tensor *node, const char *kernel) {
    return run_node_with(node, kernel, SIMT_TENSOR_CORES);
}

#endif
