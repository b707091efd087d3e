// SPDX-License-Identifier: MIT
#include "foreign.h"

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

static bool has_whole_rows(const struct ggml_tensor *tensor) {
    return tensor->nb[0] == ggml_type_size(tensor->type);
}

static bool from_source_on(const struct ggml_tensor *op, int first) {
    if (!is_plain_type(op) || !is_packed(op)) return false;
    for (int i = first; i < GGML_MAX_SRC; ++i) {
        const struct ggml_tensor *src = op->src[i];
        if (src && (!is_plain_type(src) || !is_packed(src))) return false;
    }
    return true;
}

static bool claim_never(const struct ggml_tensor *op) {
    (void)op;
    return false;
}

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

static bool claim_copy(const struct ggml_tensor *op) {
    const struct ggml_tensor *src = op->src[0];
    if (is_float(op) && is_float(src)) return true;
    if (!is_packed(op) || !is_packed(src)) return false;
    if (src->type == op->type) return op->type == GGML_TYPE_I32 || ggml_is_quantized(op->type);
    return op->op == GGML_OP_CPY && ((op->type == GGML_TYPE_F32 && ggml_is_quantized(src->type)) ||
                                     (src->type == GGML_TYPE_F32 && ggml_is_quantized(op->type)));
}

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

// The rules by operation; NULL: what is said holds.
typedef bool (*rule_t)(const struct ggml_tensor *op);
static const rule_t rules[FOREIGN_OPS] = {
    [GGML_OP_UNARY] = claim_kind,
    [GGML_OP_GLU] = claim_kind,
#define CLAIM_ROW(name, rule) [GGML_OP_##name] = claim_##rule,
#include "claim_list.inl"
};

bool foreign_claim_holds(const struct foreign_device *device, const struct ggml_tensor *op) {
    const rule_t rule = rules[op->op];
    return !rule || (!device->is_ggml_cpu && rule != claim_copy) || rule(op);
}
