// SPDX-License-Identifier: MIT
// The operation table: one description per op, from abi/op_list.inl.
#ifndef GGML_OP_OP_TABLE_H
#define GGML_OP_OP_TABLE_H

#include "ggml-impl.h"

struct op_call;

enum ggml_op_flag {
    GGML_OP_FLAG_NONE = 0,
    GGML_OP_FLAG_REUSE = 1, // the result may take the memory of a source with the same layout
    GGML_OP_FLAG_VIEW = 2,  // no data moves
    GGML_OP_FLAG_ALIAS = 4, // always writes into the memory of a source
    GGML_OP_FLAG_HOST = 8,  // calls a function of the application
};

// Work of one node: floating-point operations, and bytes if each operand is touched once.
struct ggml_op_cost {
    double flops;
    double bytes_read;
    double bytes_written;
};

struct ggml_op_info {
    const char *name;   // "MUL_MAT"
    const char *symbol; // "X*Y"
    int min_src;
    int max_src;
    bool (*type_rule)(struct op_call *call);
    bool (*shape_rule)(struct op_call *call);
    struct ggml_op_cost (*cost_rule)(const struct ggml_tensor *node, double flops);
    double flops; // handed to cost_rule
    enum ggml_op_flag flags;
    const char *builders; // public functions that make the node, for the documents
    const char *params;   // "i32 n_dims@1, i32 mode@2, "
};

// The row of an op, or NULL for a number outside the list. Constant. [any-thread]
const struct ggml_op_info *ggml_op_info(enum ggml_op op);

// What computing the node takes; zeros for NULL, for an error tensor and for views. [any-thread]
struct ggml_op_cost ggml_op_cost(const struct ggml_tensor *node);

#endif
