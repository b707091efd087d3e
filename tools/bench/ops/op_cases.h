// SPDX-License-Identifier: MIT
// The operations that ggml-bench ops measures.
#ifndef BENCH_OP_CASES_H
#define BENCH_OP_CASES_H

#include "ggml.h"

enum { OP_CASE_NAME = 96 };

// Sizes that the command line can change.
struct op_sizes {
    int64_t m, k;        // rows and columns of weights
    int64_t n;           // columns of the other operand; 0: several
    enum ggml_type type; // of weights; GGML_TYPE_COUNT: several
};

// One thing to measure. `make` builds its tensors without memory and returns the result; flops:
// what it computes, 0: not counted; has_weights: it reads more than a cache holds in use, where
// other weights have been read since.
struct op_case {
    const char *op;
    char name[OP_CASE_NAME];
    struct ggml_tensor *(*make)(struct ggml_context *ctx, const struct op_case *c);
    struct op_sizes sizes;
    double flops;
    bool has_weights;
};

// Fills at most `max` cases of the operation (NULL: of all) and returns how many there are.
int op_cases(const char *op, const struct op_sizes *sizes, struct op_case *cases, int max);
// Says on stderr, a line for each operation, which types it is not measured with, since weights of
// these sizes aren't whole blocks of them.
void op_cases_say_left_out(const char *op, const struct op_sizes *sizes);
// Whether there is this operation (NULL: all); if not, says so on stderr, and which there are.
bool op_cases_know(const char *op);

#endif
