// SPDX-License-Identifier: MIT
// abi/op_list.inl expanded once: an operation whose rule for types, shapes or cost is missing
// does not link.
#include "op/op_table.h"

#include "op/op_rules.h"

#define GGML_OP_PARAM(text, word, n, since) text "@" #word ", "
#define GGML_OP_ROW(number, NAME, symbol, min, max, type, shape, cost, flops, flag, made_by,       \
                    since, more)                                                                   \
    [number] = {#NAME,                                                                             \
                symbol,                                                                            \
                min,                                                                               \
                max,                                                                               \
                op_type_##type,                                                                    \
                op_shape_##shape,                                                                  \
                op_cost_##cost,                                                                    \
                flops,                                                                             \
                GGML_OP_FLAG_##flag,                                                               \
                made_by,                                                                           \
                "" more},
static const struct ggml_op_info op_infos[GGML_OP_COUNT] = {
#include "op_list.inl"
};

// O(1), by number.
const struct ggml_op_info *ggml_op_info(enum ggml_op op) {
    return (unsigned)op < GGML_OP_COUNT ? &op_infos[op] : NULL;
}

// A node with a missing source comes from a client that wrote to it; the cost rules read the
// required ones without a check.
struct ggml_op_cost ggml_op_cost(const struct ggml_tensor *node) {
    const struct ggml_op_cost nothing = {0};
    if (node == NULL || (node->flags & GGML_TENSOR_FLAG_ERROR) != 0) return nothing;
    const struct ggml_op_info *info = ggml_op_info(node->op);
    if (info == NULL) return nothing;
    for (int i = 0; i < info->min_src; ++i) {
        if (node->src[i] == NULL) return nothing;
    }
    return info->cost_rule(node, info->flops);
}
