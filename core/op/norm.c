// SPDX-License-Identifier: MIT
// Reductions, repetition, concatenation and normalisation.
#include "op/op_rules.h"

#define ONE_SOURCE(name, NAME)                                                                     \
    struct ggml_tensor *ggml_##name(struct ggml_context *ctx, struct ggml_tensor *a) {             \
        return op_build(&(struct op_call){OP(ctx, NAME), .src = {a}});                             \
    }
ONE_SOURCE(sum, SUM)
ONE_SOURCE(sum_rows, SUM_ROWS)
ONE_SOURCE(mean, MEAN)
ONE_SOURCE(cumsum, CUMSUM)
ONE_SOURCE(argmax, ARGMAX)

bool op_shape_scalar(struct op_call *call) {
    return op_set_ne(call, 1, 1, 1, 1);
}

// Reduces each row to one element: SUM_ROWS and MEAN.
bool op_shape_row_reduction(struct op_call *call) {
    const int64_t *ne = call->src[0]->ne;
    return op_set_ne(call, 1, ne[1], ne[2], ne[3]);
}

// The index of each row's largest element, as I32, hence the limit of ne0.
bool op_shape_argmax(struct op_call *call) {
    const int64_t *ne = call->src[0]->ne;
    return op_need_dims(call, 0, 2) && op_need_range(call, "src0 ne0", ne[0], 0, INT32_MAX) &&
           op_set_ne(call, ne[1], 1, 1, 1);
}

bool op_shape_count_equal(struct op_call *call) {
    return op_need_same_shape(call, 1, 0) && op_set_ne(call, 1, 1, 1, 1);
}

struct ggml_tensor *ggml_count_equal(struct ggml_context *ctx, struct ggml_tensor *a,
                                     struct ggml_tensor *b) {
    return op_build(&(struct op_call){OP(ctx, COUNT_EQUAL), .src = {a, b}});
}

// --- repetition and concatenation ----------------------------------------------------------------

// Whether part divides whole along every dimension. An empty part only divides an empty whole.
static bool need_multiples(struct op_call *call, const int64_t *whole, const int64_t *part) {
    if (op_is_empty(part) && op_is_empty(whole)) return true;
    for (int i = 0; i < GGML_MAX_DIMS; ++i) {
        if (part[i] == 0 ? whole[i] == 0 : whole[i] % part[i] == 0) continue;
        return op_fail(call, "%lld along ne%d is not a multiple of %lld", (long long)whole[i], i,
                       (long long)part[i]);
    }
    return true;
}

// The extents come from a tensor (ggml_repeat) or from numbers (ggml_repeat_4d).
bool op_shape_repeat(struct op_call *call) {
    if (call->has_like) op_set_ne_as(call, call->like);
    return need_multiples(call, call->ne, call->src[0]->ne);
}

// Sums over the repetitions: the gradient of REPEAT.
bool op_shape_repeat_back(struct op_call *call) {
    return op_set_ne_as(call, call->like) && need_multiples(call, call->src[0]->ne, call->ne);
}

struct ggml_tensor *ggml_repeat(struct ggml_context *ctx, struct ggml_tensor *a,
                                struct ggml_tensor *b) {
    return op_build(&(struct op_call){OP(ctx, REPEAT), .src = {a}, .has_like = true, .like = b});
}

struct ggml_tensor *ggml_repeat_4d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0,
                                   int64_t ne1, int64_t ne2, int64_t ne3) {
    return op_build(&(struct op_call){OP(ctx, REPEAT), .src = {a}, .ne = {ne0, ne1, ne2, ne3}});
}

struct ggml_tensor *ggml_repeat_back(struct ggml_context *ctx, struct ggml_tensor *a,
                                     struct ggml_tensor *b) {
    return op_build(
        &(struct op_call){OP(ctx, REPEAT_BACK), .src = {a}, .has_like = true, .like = b});
}

// Extents add up along `dim` and agree along the others.
bool op_shape_concat(struct op_call *call) {
    const int dim = call->params[0];
    if (!op_need_range(call, "dim", dim, 0, GGML_MAX_DIMS - 1)) return false;
    op_set_ne_as(call, call->src[0]);
    for (int i = 0; i < GGML_MAX_DIMS; ++i) {
        if (i != dim && !op_need_ne(call, 1, i, call->ne[i], "as in src0")) return false;
    }
    call->ne[dim] = op_add(call->ne[dim], call->src[1]->ne[dim]);
    return true;
}

struct ggml_tensor *ggml_concat(struct ggml_context *ctx, struct ggml_tensor *a,
                                struct ggml_tensor *b, int dim) {
    return op_build(&(struct op_call){OP(ctx, CONCAT), .src = {a, b}, .params = {dim}});
}

// --- normalisation -------------------------------------------------------------------------------

// NORM: (x - mean) / sqrt(variance + eps) of a row; RMS_NORM: x / sqrt(mean of squares + eps);
// L2_NORM: x / max(norm, eps).
bool op_shape_norm(struct op_call *call) {
    return op_set_ne_as(call, call->src[0]);
}

#define NORM(name, NAME)                                                                           \
    struct ggml_tensor *ggml_##name(struct ggml_context *ctx, struct ggml_tensor *a, float eps) {  \
        return op_build(&(struct op_call){OP(ctx, NAME), .src = {a}, .params = {op_bits(eps)}});   \
    }                                                                                              \
    struct ggml_tensor *ggml_##name##_inplace(struct ggml_context *ctx, struct ggml_tensor *a,     \
                                              float eps) {                                         \
        return op_build_inplace(                                                                   \
            &(struct op_call){OP(ctx, NAME), .src = {a}, .params = {op_bits(eps)}});               \
    }
NORM(norm, NORM)
NORM(rms_norm, RMS_NORM)
NORM(l2_norm, L2_NORM)

bool op_shape_norm_back(struct op_call *call) {
    return op_shape_same_pair(call);
}

// a is the gradient of the result, b the source of the norm.
struct ggml_tensor *ggml_rms_norm_back(struct ggml_context *ctx, struct ggml_tensor *a,
                                       struct ggml_tensor *b, float eps) {
    return op_build(
        &(struct op_call){OP(ctx, RMS_NORM_BACK), .src = {a, b}, .params = {op_bits(eps)}});
}

// Channels (ne2) are divided into n_groups, each normalised over its elements; the last group may
// have fewer channels.
bool op_shape_group_norm(struct op_call *call) {
    return op_need_range(call, "n_groups", call->params[0], 1, INT32_MAX) &&
           op_set_ne_as(call, call->src[0]);
}

struct ggml_tensor *ggml_group_norm(struct ggml_context *ctx, struct ggml_tensor *a, int n_groups,
                                    float eps) {
    return op_build(
        &(struct op_call){OP(ctx, GROUP_NORM), .src = {a}, .params = {n_groups, op_bits(eps)}});
}

struct ggml_tensor *ggml_group_norm_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                            int n_groups, float eps) {
    return op_build_inplace(
        &(struct op_call){OP(ctx, GROUP_NORM), .src = {a}, .params = {n_groups, op_bits(eps)}});
}
