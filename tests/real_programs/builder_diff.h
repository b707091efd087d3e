// SPDX-License-Identifier: MIT
// What the parts of builder_diff share: calls, libraries, operands and outcomes.
#ifndef BUILDER_DIFF_H
#define BUILDER_DIFF_H
#include <dlfcn.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "builder_names.inl"
#include "ggml-backend.h"
#include "ggml.h"

enum { MAX_ARGS = 16 };

union value {
    struct ggml_tensor *t;
    int64_t i;
    float f;
    int a[4];
    int64_t n[4];
};

struct builder {
    const char *name;
    struct ggml_tensor *(*call)(void *function, struct ggml_context *ctx,
                                const union value *values);
};

enum bounded { ANY_NUMBER, BOUND_NUMBER, BOUND_EXTENT, POSITIVE };

struct argument {
    char kind; // 't' tensor, 'i' whole number, 'f' number, 'a' four ints, 'n' four int64_t
    const char *type;
    int64_t ne[4];
    bool absent;
    bool distinct;  // no number twice
    bool fixed;     // is never changed
    bool was_float; // in the base case
    enum bounded bounded;
    int bound, bound_of, bound_dim;
    double number;
    int64_t array[4];
};

struct base_case {
    int builder;
    int n_args;
    struct argument args[MAX_ARGS];
};

#define FUNCTIONS(X)                                                                               \
    X(ggml_init)                                                                                   \
    X(ggml_free)                                                                                   \
    X(ggml_new_tensor)                                                                             \
    X(ggml_view_4d)                                                                                \
    X(ggml_permute)                                                                                \
    X(ggml_new_graph)                                                                              \
    X(ggml_build_forward_expand)                                                                   \
    X(ggml_nbytes)                                                                                 \
    X(ggml_nelements)                                                                              \
    X(ggml_op_desc)                                                                                \
    X(ggml_type_name)                                                                              \
    X(ggml_get_type_traits)                                                                        \
    X(ggml_quantize_chunk)                                                                         \
    X(ggml_is_quantized)                                                                           \
    X(ggml_graph_n_nodes)                                                                          \
    X(ggml_graph_node)                                                                             \
    X(ggml_set_abort_callback)                                                                     \
    X(ggml_quantize_requires_imatrix)                                                              \
    X(ggml_blck_size)                                                                              \
    X(ggml_row_size)

#define BACKEND_FUNCTIONS(X)                                                                       \
    X(ggml_backend_alloc_ctx_tensors)                                                              \
    X(ggml_backend_tensor_set)                                                                     \
    X(ggml_backend_tensor_get)                                                                     \
    X(ggml_backend_graph_compute)                                                                  \
    X(ggml_backend_dev_supports_op)                                                                \
    X(ggml_backend_buffer_free) X(ggml_backend_get_device) X(ggml_backend_buffer_clear)

struct library {
    const char *label;
    bool ours;
    void *base, *registry;
    ggml_backend_t cpu;
#define MEMBER(name) __typeof__(name) *name;
    FUNCTIONS(MEMBER) BACKEND_FUNCTIONS(MEMBER) void *functions[N_BUILDERS];
    bool (*is_error)(const struct ggml_tensor *);
    const char *(*last_error)(void);
};

enum layout { PACKED, PERMUTED, GAPPED };

struct operand {
    enum layout layout;
    int order[4]; // PERMUTED: dimension i of the operand is dimension order[i] of its storage
    struct ggml_tensor *root[2];
};

enum stage {
    BOTH_REFUSED,
    OURS_ACCEPTED,
    OURS_REFUSED, // what theirs computes, if that was asked for
    BUILT_OTHERWISE,
    THEIRS_NOT_COMPUTED,
    OURS_UNSUPPORTED,
    OURS_FAILED,
    COMPUTED,
};

struct outcome {
    enum stage stage;
    char what[512];
    double *values[2]; // of the result
    int64_t n;
    double bound;
};

// --- builder_operands.c --------------------------------------------------------------------------

extern const struct builder builders[N_BUILDERS];

// Random numbers; the state can be set, so that a case is the same each time.
extern uint64_t random_state;
int below(int n);
float uniform(float low, float high);

enum ggml_type find_type(const struct library *lib, const char *name);
struct ggml_tensor *make_operand(const struct library *lib, struct ggml_context *ctx,
                                 const struct argument *arg, enum ggml_type type,
                                 struct operand *operand);
struct base_case random_case(long number, uint64_t seed, const char *only);
void random_layouts(const struct base_case *c, long number, struct operand *operands);
bool possible(const struct library *lib, const struct base_case *c, struct operand *operands);
void describe(const struct base_case *c, const struct operand *operands);

// --- builder_known.c -----------------------------------------------------------------------------

// Whether a refusal is one of those that are meant.
bool is_good_reason(const char *message);
// Whether theirs is not to be followed in this case.
bool is_known(const struct base_case *c, const struct operand *operands,
              const struct outcome *outcome);
#endif
