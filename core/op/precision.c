// SPDX-License-Identifier: MIT
// How precisely a node must be computed: parameters of products and attention.
#include "base/status.h"
#include "op/op_build.h"

// Slots of op_params, by what they constrain; -1: the operation has no such parameter.
static int acc_slot(enum ggml_op op) {
    switch (op) {
    case GGML_OP_MUL_MAT:
    case GGML_OP_MUL_MAT_ID: return 0;
    case GGML_OP_FLASH_ATTN_EXT: return 3;
    default: return -1;
    }
}

static int src_slot(enum ggml_op op, int idx) {
    return (op == GGML_OP_MUL_MAT || op == GGML_OP_MUL_MAT_ID) && idx == 1 ? 3 : -1;
}

// Whether `prec` is a known grade, and no coarser than the parameter permits. Grades rise with
// coarseness.
static bool is_grade(enum ggml_prec prec, enum ggml_prec coarsest) {
    switch (prec) {
    case GGML_PREC_UNDEFINED:
    case GGML_PREC_F32:
    case GGML_PREC_BF16:
    case GGML_PREC_F16:
    case GGML_PREC_Q8:
    case GGML_PREC_Q4: return prec <= coarsest;
    }
    return false;
}

// Refused values leave the node as it was.
static bool set_slot(const char *setter, struct ggml_tensor *node, int slot, enum ggml_prec prec,
                     enum ggml_prec coarsest) {
    if (slot < 0) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: %s has no such parameter", setter,
                  ggml_op_desc(node));
        return false;
    }
    if (!is_grade(prec, coarsest)) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: %d is no precision that can be asked for",
                  setter, (int)prec);
        return false;
    }
    node->op_params[slot] = (int32_t)prec;
    return true;
}

bool ggml_prec_set_acc(struct ggml_tensor *a, enum ggml_prec prec) {
    if (a == NULL) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: the tensor is NULL", __func__);
        return false;
    }
    return !op_is_error(a) && set_slot(__func__, a, acc_slot(a->op), prec, GGML_PREC_F16);
}

bool ggml_prec_set_src(struct ggml_tensor *a, enum ggml_prec prec, int idx) {
    if (a == NULL) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: the tensor is NULL", __func__);
        return false;
    }
    return !op_is_error(a) && set_slot(__func__, a, src_slot(a->op, idx), prec, GGML_PREC_Q4);
}

// Older setters, of one operation each.
void ggml_mul_mat_set_prec(struct ggml_tensor *a, enum ggml_prec prec) {
    if (op_may_set(__func__, a, GGML_OP_MUL_MAT)) {
        set_slot(__func__, a, acc_slot(a->op), prec, GGML_PREC_F16);
    }
}

void ggml_flash_attn_ext_set_prec(struct ggml_tensor *a, enum ggml_prec prec) {
    if (op_may_set(__func__, a, GGML_OP_FLASH_ATTN_EXT)) {
        set_slot(__func__, a, acc_slot(a->op), prec, GGML_PREC_F16);
    }
}

enum ggml_prec ggml_flash_attn_ext_get_prec(const struct ggml_tensor *a) {
    if (!op_may_set(__func__, a, GGML_OP_FLASH_ATTN_EXT)) return GGML_PREC_UNDEFINED;
    return (enum ggml_prec)a->op_params[acc_slot(a->op)];
}
