// SPDX-License-Identifier: MIT
// Names and fixed properties of operations.
#include "ggml-impl.h"

// clang-format off
const char *ggml_op_name(enum ggml_op op) {
    switch ((int)op) {
#define GGML_OP_ROW(number, name, ...) case number: return #name;
#include "op_list.inl"
    default: return "UNKNOWN";
    }
}

const char *ggml_op_symbol(enum ggml_op op) {
    switch ((int)op) {
#define GGML_OP_ROW(number, name, symbol, ...) case number: return symbol;
#include "op_list.inl"
    default: return "unknown";
    }
}

const char *ggml_unary_op_name(enum ggml_unary_op op) {
    switch ((int)op) {
#define GGML_UNARY_ROW(number, name, ...) case number: return #name;
#include "unary_list.inl"
    default: return "UNKNOWN";
    }
}

const char *ggml_glu_op_name(enum ggml_glu_op op) {
    switch ((int)op) {
#define GGML_GLU_ROW(number, name, ...) case number: return #name;
#include "glu_list.inl"
    default: return "UNKNOWN";
    }
}
// clang-format on

enum ggml_unary_op ggml_get_unary_op(const struct ggml_tensor *tensor) {
    return tensor && tensor->op == GGML_OP_UNARY
               ? (enum ggml_unary_op)ggml_get_op_params_i32(tensor, 0)
               : GGML_UNARY_OP_COUNT;
}

enum ggml_glu_op ggml_get_glu_op(const struct ggml_tensor *tensor) {
    return tensor && tensor->op == GGML_OP_GLU ? (enum ggml_glu_op)ggml_get_op_params_i32(tensor, 0)
                                               : GGML_GLU_OP_COUNT;
}

const char *ggml_op_desc(const struct ggml_tensor *t) {
    if (!t) return ggml_op_name(GGML_OP_NONE);
    if (t->op == GGML_OP_UNARY) return ggml_unary_op_name(ggml_get_unary_op(t));
    if (t->op == GGML_OP_GLU) return ggml_glu_op_name(ggml_get_glu_op(t));
    return ggml_op_name(t->op);
}

// Flags of the operation list that say so.
enum { REUSES_NONE = 0, REUSES_VIEW = 0, REUSES_ALIAS = 0, REUSES_HOST = 0, REUSES_REUSE = 1 };

// clang-format off
bool ggml_op_can_inplace(enum ggml_op op) {
    switch ((int)op) {
#define GGML_OP_ROW(number, name, symbol, min, max, type, shape, cost, flops, flags, ...)          \
    case number: return REUSES_##flags;
#include "op_list.inl"
    default: return false;
    }
}
// clang-format on
