// SPDX-License-Identifier: MIT
// The rows of all families: which kernel computes a node, and whether one does.
#include "gpu/base/shape.h"
#include "plan/kernel.h"

static const struct gvk_kernel kernels[] = {
#define GVK_KERNEL_ROW(op, sub, name, dst, src0, src1, src2, accepts, encode)                      \
    {GGML_OP_##op, sub, dst, {src0, src1, src2}, accepts, encode, #name},
#include "plan/kernel_list.inl"
};

enum { N_KERNELS = sizeof(kernels) / sizeof(kernels[0]) };

const struct gvk_kernel *gvk_kernels(int *out_count) {
    *out_count = N_KERNELS;
    return kernels;
}

static bool has_types(const struct gvk_kernel *kernel, const struct ggml_tensor *node) {
    bool fits = type_set_has(kernel->dst, node);
    for (int i = 0; i < 3 && fits; ++i)
        fits = type_set_has(kernel->src[i], node->src[i]);
    return fits;
}

static bool has_sub(const struct gvk_kernel *kernel, const struct ggml_tensor *node) {
    return kernel->sub == ANY || kernel->sub == node->op_params[0];
}

// Shaders count bytes of an operand in 32 bits, from the aligned offset below it.
static bool within_range(const struct gvk_features *features, const struct ggml_tensor *t) {
    const uint64_t pad = features->min_storage_alignment;
    return (uint64_t)ggml_nbytes(t) + pad <= features->max_range_bytes;
}

// Shaders address elements and blocks by units of up to four bytes.
static bool has_aligned_strides(const struct ggml_tensor *t) {
    const size_t size = ggml_type_size(t->type);
    const size_t unit = size % 4 == 0 ? 4 : size % 2 == 0 ? 2 : 1;
    bool fits = size > 0;
    for (int d = 0; d < GGML_MAX_DIMS && fits; ++d)
        fits = t->ne[d] <= 1 || t->nb[d] % unit == 0;
    return fits;
}

static bool within_reach(const struct gvk_features *features, const struct ggml_tensor *t) {
    return within_range(features, t) && has_aligned_strides(t);
}

// Sources as well as the result have to fit a shader's 32-bit addressing and the driver's largest
// range.
static bool all_within_reach(const struct gvk_features *features, const struct ggml_tensor *node) {
    bool fits = within_reach(features, node);
    for (int i = 0; i < GGML_MAX_SRC && fits; ++i)
        fits = !node->src[i] || within_reach(features, node->src[i]);
    return fits;
}

// First fit: the number of the operation sorts out nearly all rows, and only graphs that are not
// recorded yet come here. Limits of the device are checked last, once.
const struct gvk_kernel *gvk_kernel_find(const struct gvk_features *features,
                                         const struct ggml_tensor *node) {
    for (int i = 0; i < N_KERNELS; ++i) {
        const struct gvk_kernel *kernel = &kernels[i];
        if (kernel->op == (int)node->op && has_sub(kernel, node) && has_types(kernel, node) &&
            kernel->accepts(features, node))
            return all_within_reach(features, node) && gvk_within_iterations(features, node)
                       ? kernel
                       : NULL;
    }
    return NULL;
}

// Whether any kernel exists for operation and types, apart from shapes and the device's features.
static bool has_kernel(const struct ggml_tensor *node) {
    for (int i = 0; i < N_KERNELS; ++i) {
        const struct gvk_kernel *kernel = &kernels[i];
        if (kernel->op == (int)node->op && has_sub(kernel, node) && has_types(kernel, node))
            return true;
    }
    return false;
}

// A node without elements needs no launch, whatever its shape; but what it is said to support is
// taken for the types of others, and an application's function is called all the same.
bool gvk_supports_op(const struct gvk_features *features, const struct ggml_tensor *node) {
    if (!ggml_node_is_known(node)) return false;
    const bool nothing_to_do =
        ggml_op_is_empty(node->op) || (gpu_nelements(node) == 0 && has_kernel(node));
    return nothing_to_do || gvk_kernel_find(features, node) != NULL;
}
