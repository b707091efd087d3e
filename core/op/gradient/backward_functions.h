// SPDX-License-Identifier: MIT
// Gradients of functions of single numbers, and of gated linear units.
#ifndef GGML_OP_BACKWARD_FUNCTIONS_H
#define GGML_OP_BACKWARD_FUNCTIONS_H

#include "op/gradient/backward.h"

// The slope of a UNARY node's function at its source, by element; NULL if none is known. [stream]
struct ggml_tensor *backward_unary_slope(struct ggml_context *ctx, struct ggml_tensor *node);

// The rule of GLU. [stream]
void backward_rule_glu(struct backward *pass, struct ggml_tensor *node, struct ggml_tensor *grad);

#endif
