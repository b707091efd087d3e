// SPDX-License-Identifier: MIT
// Declarations of every rule that abi/op_list.inl names. A type or shape rule returns false
// after op_fail(); a cost rule is only asked about well-formed nodes.
#ifndef GGML_OP_OP_RULES_H
#define GGML_OP_OP_RULES_H

#include "op/op_build.h"
#include "op/op_table.h"

// The same list yields declarations here, the table in op_table.c and the enum in ggml.h: a rule
// that is named and not defined does not link.
#define GGML_OP_ROW(number, name, symbol, min, max, type, shape, cost, ...)                        \
    bool op_type_##type(struct op_call *call);                                                     \
    bool op_shape_##shape(struct op_call *call);                                                   \
    struct ggml_op_cost op_cost_##cost(const struct ggml_tensor *node, double flops);
#include "op_list.inl"

#endif
