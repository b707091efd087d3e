// SPDX-License-Identifier: MIT
// Parameters of the pooling nodes; shared with the accept functions.
#ifndef CPU_POOL_H
#define CPU_POOL_H

#include "ggml-impl.h"

// One-dimensional: window, stride and padding are single numbers.
struct pool_1d {
    int op, k, s, p;
};

struct pool_2d {
    int op;
    int k[2], s[2], p[2]; // window, stride, padding
};

// The parameters are stored in the order of the struct.
static inline struct pool_1d pool_1d_params(const struct ggml_tensor *node) {
    const int32_t *p = node->op_params;
    return (struct pool_1d){p[0], p[1], p[2], p[3]};
}

static inline struct pool_2d pool_2d_params(const struct ggml_tensor *node) {
    const int32_t *p = node->op_params;
    return (struct pool_2d){p[0], {p[1], p[2]}, {p[3], p[4]}, {p[5], p[6]}};
}

#endif
