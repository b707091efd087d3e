// SPDX-License-Identifier: MIT
// Which nodes are given to ggml's own backends: stricter than what they say they support, since
// some of their kernels assert what their supports_op does not check.
#include "foreign.h"

// The types that ggml's simple CPU kernels are written for.
static bool is_plain_type(const struct ggml_tensor *tensor) {
    return tensor->type == GGML_TYPE_F32 || tensor->type == GGML_TYPE_I32;
}

// Strides of extents of 1 included, which ggml_is_contiguous() overlooks and ggml's assertions do
// not.
static bool is_packed(const struct ggml_tensor *tensor) {
    size_t stride = ggml_row_size(tensor->type, tensor->ne[0]);
    if (tensor->nb[0] != ggml_type_size(tensor->type)) return false;
    for (int i = 1; i < GGML_MAX_DIMS; stride *= (size_t)tensor->ne[i++]) {
        if (tensor->nb[i] != stride) return false;
    }
    return true;
}

// Elements of a row lie side by side; rows may be anywhere.
static bool has_whole_rows(const struct ggml_tensor *tensor) {
    return tensor->nb[0] == ggml_type_size(tensor->type);
}

// The result and all sources from number `first` on are plain and packed. Kernels of convolutions
// have rules of their own for the sources before.
static bool from_source_on(const struct ggml_tensor *op, int first) {
    if (!is_plain_type(op) || !is_packed(op)) return false;
    for (int i = first; i < GGML_MAX_SRC; ++i) {
        const struct ggml_tensor *src = op->src[i];
        if (src && (!is_plain_type(src) || !is_packed(src))) return false;
    }
    return true;
}

// The rules: each is explained in claim_list.inl, beside the operations that it holds for.
static bool claim_plain(const struct ggml_tensor *op) {
    return from_source_on(op, 0);
}

static bool claim_float(const struct ggml_tensor *op) {
    return op->type == GGML_TYPE_F32 && from_source_on(op, 0);
}

static bool claim_kernel(const struct ggml_tensor *op) {
    const struct ggml_tensor *kernel = op->src[0];
    return from_source_on(op, 1) && is_packed(kernel) &&
           (kernel->type == GGML_TYPE_F16 || kernel->type == GGML_TYPE_F32);
}

static bool claim_product(const struct ggml_tensor *op) {
    return op->src[1]->type == GGML_TYPE_F32 && has_whole_rows(op->src[0]) &&
           has_whole_rows(op->src[1]);
}

static bool is_float(const struct ggml_tensor *tensor) {
    return tensor->type == GGML_TYPE_F32 || tensor->type == GGML_TYPE_F16 ||
           tensor->type == GGML_TYPE_BF16;
}

// Types that need an importance matrix to be rounded to: ggml's rounding functions assert that it
// is there, and only llama-quantize has one.
static bool is_rounded_to(enum ggml_type type) {
    switch (type) {
    case GGML_TYPE_IQ1_M:
    case GGML_TYPE_IQ1_S:
    case GGML_TYPE_IQ2_S:
    case GGML_TYPE_IQ2_XS:
    case GGML_TYPE_IQ2_XXS:
    case GGML_TYPE_IQ3_S:
    case GGML_TYPE_IQ3_XXS: return false;
    default: return true;
    }
}

static bool claim_stored(const struct ggml_tensor *op) {
    return is_rounded_to(op->type);
}

static bool claim_half(const struct ggml_tensor *op) {
    return op->src[0]->type == GGML_TYPE_F32 || op->src[0]->type == GGML_TYPE_F16;
}

// OUT_PROD: batches are broadcast rightly with a first source of F32 only.
static bool claim_outer(const struct ggml_tensor *op) {
    const struct ggml_tensor *a = op->src[0], *b = op->src[1];
    if (b->type != GGML_TYPE_F32 || a->type == GGML_TYPE_BF16) return false;
    return a->type == GGML_TYPE_F32 || (a->ne[2] == b->ne[2] && a->ne[3] == b->ne[3]);
}

// Conversions between coded types, and coded tensors with strides, are asserted away in ggml's
// copies.
static bool claim_copy(const struct ggml_tensor *op) {
    const struct ggml_tensor *src = op->src[0];
    if (is_float(op) && is_float(src)) return true;
    if (!is_packed(op) || !is_packed(src)) return false;
    if (src->type == op->type) return op->type == GGML_TYPE_I32 || ggml_is_quantized(op->type);
    return op->op == GGML_OP_CPY &&
           ((op->type == GGML_TYPE_F32 && ggml_is_quantized(src->type)) ||
            (src->type == GGML_TYPE_F32 && ggml_is_quantized(op->type) && is_rounded_to(op->type)));
}

// Parameter 1 of ROPE is the number of channels that are rotated.
static bool claim_turning(const struct ggml_tensor *op) {
    return op->op_params[1] > 0 && op->ne[0] % 2 == 0;
}

// FLASH_ATTN_EXT: K and V of one type out of the four that the kernels decode.
static bool claim_rows(const struct ggml_tensor *op) {
    const struct ggml_tensor *k = op->src[1], *v = op->src[2];
    if (op->src[0]->type != GGML_TYPE_F32 || k->type != v->type) return false;
    if (k->type != GGML_TYPE_F32 && k->type != GGML_TYPE_F16 && k->type != GGML_TYPE_Q8_0 &&
        k->type != GGML_TYPE_Q4_0)
        return false;
    for (int i = 0; i < GGML_MAX_SRC; ++i) {
        if (op->src[i] && !has_whole_rows(op->src[i])) return false;
    }
    return true;
}

// Kinds of UNARY and GLU that differ from the rest.
static bool claim_kind(const struct ggml_tensor *op) {
    const int kind = op->op_params[0];
    if (op->op == GGML_OP_UNARY) return kind != GGML_UNARY_OP_XIELU || claim_plain(op);
    return (kind != GGML_GLU_OP_SWIGLU_OAI && kind != GGML_GLU_OP_SWIGLU_CLAMP) || claim_plain(op);
}

static bool claim_filled(const struct ggml_tensor *op) {
    return claim_plain(op) && ggml_nelements(op->src[0]) > 0;
}

static bool claim_apart(const struct ggml_tensor *op) {
    return !op->view_src || is_packed(op);
}

// The rules by operation; NULL: the device's claim is right.
typedef bool (*rule_t)(const struct ggml_tensor *op);
static const rule_t general_rules[FOREIGN_OPS] = {
    [GGML_OP_UNARY] = claim_kind,
    [GGML_OP_GLU] = claim_kind,
#define CLAIM_ROW(name, rule) [GGML_OP_##name] = claim_##rule,
#include "claim_list.inl"
};
static const rule_t vulkan_rules[FOREIGN_OPS] = {
#define VULKAN_ROW(name, rule) [GGML_OP_##name] = claim_##rule,
#include "claim_list.inl"
};

// Operations that ggml's Vulkan backend asserts or gets wrong where an operand is not aligned.
static const bool vulkan_aligned[FOREIGN_OPS] = {
#define ALIGNED_ROW(name) [GGML_OP_##name] = true,
#include "claim_list.inl"
};

// A tensor that has no memory yet is judged by its offset in what it is a view of: allocators place
// owners at aligned addresses.
static bool is_aligned(const struct ggml_tensor *tensor, size_t alignment) {
    const uintptr_t place = tensor->data ? (uintptr_t)tensor->data : tensor->view_offs;
    return place % alignment == 0;
}

// The alignment is the buffer type's; 1 where the device has none.
static bool are_aligned(const struct foreign_device *device, const struct ggml_tensor *op) {
    ggml_backend_dev_t offered = (ggml_backend_dev_t)(uintptr_t)&device->device;
    ggml_backend_buffer_type_t buft = offered->table->get_buffer_type(offered);
    const size_t alignment = buft ? buft->table->get_alignment(buft) : 1;
    if (!is_aligned(op, alignment)) return false;
    for (int i = 0; i < GGML_MAX_SRC; ++i) {
        if (op->src[i] && !is_aligned(op->src[i], alignment)) return false;
    }
    return true;
}

// Copies are checked for every binary, other general rules only where a device is known to claim
// too much. Called for each node of a new graph: one look-up by operation, no allocation.
bool foreign_claim_holds(const struct foreign_device *device, const struct ggml_tensor *op) {
    const rule_t general = general_rules[op->op], vulkan = vulkan_rules[op->op];
    if (general && (device->overclaims || general == claim_copy) && !general(op)) return false;
    if (!device->is_vulkan) return true;
    return (!vulkan || vulkan(op)) && (!vulkan_aligned[op->op] || are_aligned(device, op));
}
