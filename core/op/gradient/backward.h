// SPDX-License-Identifier: MIT
// A backward pass: the rules of the ops give gradients to the sources of a node.
#ifndef GGML_OP_BACKWARD_H
#define GGML_OP_BACKWARD_H

#include "ggml-impl.h"

struct backward {
    struct ggml_context *ctx;  // owner of the nodes that the rules make
    struct ggml_cgraph *graph; // gets them appended
    bool *wanted; // by slot of the graph's hash set: a gradient reaches the loss through it
    const struct ggml_tensor *node; // whose rule runs; named in messages
    bool failed;                    // the graph is in error: rules that follow do nothing
};

// Where a region lies in a packed F32 tensor: strides and offset in bytes.
struct backward_region {
    size_t nb[GGML_MAX_DIMS];
    size_t offset;
};

// Gives gradients to those sources of the node that want one; grad is the node's own.
typedef void (*backward_rule)(struct backward *pass, struct ggml_tensor *node,
                              struct ggml_tensor *grad);

// The rule of an op, or NULL if it has no gradient. Constant. [any-thread]
backward_rule backward_rule_of(enum ggml_op op);

// Whether a tensor needs a gradient; false for NULL. [stream]
bool backward_wants(const struct backward *pass, const struct ggml_tensor *tensor);
// Adds to the gradient of a tensor; an error tensor ends the pass. [stream]
void backward_give(struct backward *pass, struct ggml_tensor *tensor, struct ggml_tensor *grad);
// The same for a part of the tensor; the rest gets nothing. [stream]
void backward_give_region(struct backward *pass, struct ggml_tensor *tensor,
                          struct ggml_tensor *grad, const struct backward_region *region);
// Ends the pass: the graph is in error, and the message names the op. [stream]
void backward_fail(struct backward *pass, const struct ggml_tensor *node, const char *why);

#endif
