// SPDX-License-Identifier: MIT
// Binary arithmetic, scaling, clamping and other element-wise operations; see unary.c and glu.c
// too.
#include <math.h>

#include "op/op_rules.h"

// --- broadcasting arithmetic ---------------------------------------------------------------------

// The result has a's type; ggml_add_cast() may name another one for weights with blocks or
// halves.
bool op_type_add(struct op_call *call) {
    const struct ggml_tensor *a = call->src[0];
    if (!call->typed) {
        call->type = a->type;
        return true;
    }
    if (ggml_is_quantized(a->type)) return true;
    return op_need_type2(call, 0, GGML_TYPE_F16, GGML_TYPE_BF16);
}

// src1 is repeated to the shape of src0. ggml_add_cast() repeats rows only.
bool op_shape_broadcast(struct op_call *call) {
    if (call->typed && !op_need_ne(call, 1, 0, call->src[0]->ne[0], "ne0 of src0")) return false;
    return op_need_repeats(call, 0, 1) && op_set_ne_as(call, call->src[0]);
}

#define ARITHMETIC(name, NAME)                                                                     \
    struct ggml_tensor *ggml_##name(struct ggml_context *ctx, struct ggml_tensor *a,               \
                                    struct ggml_tensor *b) {                                       \
        return op_build(&(struct op_call){OP(ctx, NAME), .src = {a, b}});                          \
    }                                                                                              \
    struct ggml_tensor *ggml_##name##_inplace(struct ggml_context *ctx, struct ggml_tensor *a,     \
                                              struct ggml_tensor *b) {                             \
        return op_build_inplace(&(struct op_call){OP(ctx, NAME), .src = {a, b}});                  \
    }
ARITHMETIC(add, ADD)
ARITHMETIC(sub, SUB)
ARITHMETIC(mul, MUL)
ARITHMETIC(div, DIV)
ARITHMETIC(add1, ADD1)

// src1 is one element.
bool op_shape_add1(struct op_call *call) {
    return op_need_shape(call, 1, 1, 1, 1, 1) && op_need_padded_1d(call, 0) &&
           op_set_ne_as(call, call->src[0]);
}

struct ggml_tensor *ggml_add_cast(struct ggml_context *ctx, struct ggml_tensor *a,
                                  struct ggml_tensor *b, enum ggml_type type) {
    return op_build(&(struct op_call){OP(ctx, ADD), .src = {a, b}, .typed = true, .type = type});
}

// Adds row ids[i] of b to row i of a; ids are I32.
bool op_type_add_id(struct op_call *call) {
    call->type = call->src[0]->type;
    return op_need_type(call, 2, GGML_TYPE_I32);
}

// a [n, experts used, tokens], b [n, experts], ids [experts used, tokens].
bool op_shape_add_id(struct op_call *call) {
    const int64_t *a = call->src[0]->ne;
    return op_need_ne(call, 1, 0, a[0], "ne0 of src0") &&
           op_need_shape(call, 2, a[1], a[2], 1, 1) && op_set_ne_as(call, call->src[0]);
}

struct ggml_tensor *ggml_add_id(struct ggml_context *ctx, struct ggml_tensor *a,
                                struct ggml_tensor *b, struct ggml_tensor *ids) {
    return op_build(&(struct op_call){OP(ctx, ADD_ID), .src = {a, b, ids}});
}

// --- accumulation into, or assignment of, a region of a: ACC and SET -----------------------------

// ACC adds src1 to a region of src0, both F32; SET assigns, for more types.
bool op_type_acc(struct op_call *call) {
    call->type = GGML_TYPE_F32;
    return op_need_type(call, 0, GGML_TYPE_F32) && op_need_type(call, 1, GGML_TYPE_F32);
}

// Strides and offset as the caller gave them are in nb[1..3] and offset: op_params hold 32 bits.
bool op_shape_region(struct op_call *call) {
    const struct ggml_tensor *a = call->src[0];
    const struct ggml_tensor *b = call->src[1];
    if (call->op == GGML_OP_ACC && !op_need_contiguous(call, 0)) return false;
    if (call->offset > INT32_MAX || (call->op == GGML_OP_SET && call->offset >= 1u << 30)) {
        return op_fail(call, "the offset %zu is too large", call->offset);
    }
    for (int i = 1; i < GGML_MAX_DIMS; ++i) {
        if (b->ne[i] > 1 && call->nb[i] > INT32_MAX) {
            return op_fail(call, "the stride nb%d = %zu does not fit into 32 bits", i, call->nb[i]);
        }
        call->params[i - 1] = (int32_t)(uint32_t)call->nb[i];
    }
    call->params[3] = (int32_t)call->offset;
    call->nb[0] = ggml_type_size(b->type);
    if (ggml_nelements(b) > ggml_nelements(a))
        return op_fail(call, "src1 has more elements than src0");
    const size_t region = op_region_size(b->type, b->ne, call->nb);
    const size_t size = ggml_nbytes(a);
    if (region > size || call->offset > size - region) {
        return op_fail(
            call, "a region of %zu bytes at offset %zu does not fit into the %zu bytes of src0",
            region, call->offset, size);
    }
    return op_set_ne_as(call, a);
}

// A node of set or acc: `nb` are the region's strides in bytes, NULL where the call has them
// already.
static struct ggml_tensor *build_region(struct op_call *call, const size_t nb[4], size_t offset,
                                        bool inplace) {
    call->offset = offset;
    if (nb != NULL) memcpy(call->nb, nb, sizeof(call->nb));
    call->params[4] = inplace;
    call->alias = inplace ? call->src[0] : NULL;
    return op_build(call);
}

#define REGION(name, NAME, suffix, inplace)                                                        \
    struct ggml_tensor *ggml_##name##suffix(struct ggml_context *ctx, struct ggml_tensor *a,       \
                                            struct ggml_tensor *b, size_t nb1, size_t nb2,         \
                                            size_t nb3, size_t offset) {                           \
        struct op_call call = {OP(ctx, NAME), .src = {a, b}};                                      \
        return build_region(&call, (const size_t[4]){0, nb1, nb2, nb3}, offset, inplace);          \
    }
REGION(acc, ACC, , false)
REGION(acc, ACC, _inplace, true)
REGION(set, SET, , false)
REGION(set, SET, _inplace, true)

#define SET_1D(suffix, inplace)                                                                    \
    struct ggml_tensor *ggml_set_1d##suffix(struct ggml_context *ctx, struct ggml_tensor *a,       \
                                            struct ggml_tensor *b, size_t offset) {                \
        struct op_call call = {OP(ctx, SET), .src = {a, b}};                                       \
        return build_region(&call, a != NULL ? a->nb : NULL, offset, inplace);                     \
    }
SET_1D(, false)
SET_1D(_inplace, true)

// A region of whole rows: the strides of dimensions 2 and 3 are those of a.
static struct ggml_tensor *build_set_2d(struct op_call *call, size_t nb1, size_t offset,
                                        bool inplace) {
    const struct ggml_tensor *a = call->src[0];
    const size_t nb[4] = {0, nb1, a != NULL ? a->nb[2] : 0, a != NULL ? a->nb[3] : 0};
    return build_region(call, nb, offset, inplace);
}

struct ggml_tensor *ggml_set_2d(struct ggml_context *ctx, struct ggml_tensor *a,
                                struct ggml_tensor *b, size_t nb1, size_t offset) {
    return build_set_2d(&(struct op_call){OP(ctx, SET), .src = {a, b}}, nb1, offset, false);
}

struct ggml_tensor *ggml_set_2d_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                        struct ggml_tensor *b, size_t nb1, size_t offset) {
    return build_set_2d(&(struct op_call){OP(ctx, SET), .src = {a, b}}, nb1, offset, true);
}

// --- scaling, clamping, filling, masks -----------------------------------------------------------

// A scaled tensor may have padded rows, nothing else, so that kernels scale whole rows.
bool op_shape_scale(struct op_call *call) {
    return op_need_padded_1d(call, 0) && op_set_ne_as(call, call->src[0]);
}

// a * s + b, both as bits of floats in op_params.
static struct ggml_tensor *build_scale(struct op_call *call, float s, float b, bool inplace) {
    call->params[0] = op_bits(s);
    call->params[1] = op_bits(b);
    return inplace ? op_build_inplace(call) : op_build(call);
}

#define SCALE(suffix, inplace)                                                                     \
    struct ggml_tensor *ggml_scale##suffix(struct ggml_context *ctx, struct ggml_tensor *a,        \
                                           float s) {                                              \
        return build_scale(&(struct op_call){OP(ctx, SCALE), .src = {a}}, s, 0.0f, inplace);       \
    }                                                                                              \
    struct ggml_tensor *ggml_scale_bias##suffix(struct ggml_context *ctx, struct ggml_tensor *a,   \
                                                float s, float b) {                                \
        return build_scale(&(struct op_call){OP(ctx, SCALE), .src = {a}}, s, b, inplace);          \
    }
SCALE(, false)
SCALE(_inplace, true)

struct ggml_tensor *ggml_clamp(struct ggml_context *ctx, struct ggml_tensor *a, float min,
                               float max) {
    return op_build(
        &(struct op_call){OP(ctx, CLAMP), .src = {a}, .params = {op_bits(min), op_bits(max)}});
}

struct ggml_tensor *ggml_clamp_inplace(struct ggml_context *ctx, struct ggml_tensor *a, float min,
                                       float max) {
    return op_build_inplace(
        &(struct op_call){OP(ctx, CLAMP), .src = {a}, .params = {op_bits(min), op_bits(max)}});
}

// FILL sets every element; the source gives type and extents and is not read.
bool op_type_fill(struct op_call *call) {
    call->type = call->src[0]->type;
    return op_need_type2(call, 0, GGML_TYPE_F32, GGML_TYPE_F16);
}

struct ggml_tensor *ggml_fill(struct ggml_context *ctx, struct ggml_tensor *a, float c) {
    return op_build(&(struct op_call){OP(ctx, FILL), .src = {a}, .params = {op_bits(c)}});
}

struct ggml_tensor *ggml_fill_inplace(struct ggml_context *ctx, struct ggml_tensor *a, float c) {
    return op_build_inplace(&(struct op_call){OP(ctx, FILL), .src = {a}, .params = {op_bits(c)}});
}

// Keeps a triangle of square matrices (with or without the diagonal, by `type`) and sets the rest
// to zero.
bool op_shape_tri(struct op_call *call) {
    return op_need_range(call, "type", call->params[0], 0, GGML_TRI_TYPE_LOWER) &&
           op_need_contiguous(call, 0) &&
           op_need_ne(call, 0, 0, call->src[0]->ne[1], "ne1, a square matrix") &&
           op_set_ne_as(call, call->src[0]);
}

struct ggml_tensor *ggml_tri(struct ggml_context *ctx, struct ggml_tensor *a,
                             enum ggml_tri_type type) {
    return op_build(&(struct op_call){OP(ctx, TRI), .src = {a}, .params = {(int32_t)type}});
}

#define DIAG_MASK(name, NAME)                                                                      \
    struct ggml_tensor *ggml_diag_mask_##name(struct ggml_context *ctx, struct ggml_tensor *a,     \
                                              int n_past) {                                        \
        return op_build(&(struct op_call){OP(ctx, NAME), .src = {a}, .params = {n_past}});         \
    }                                                                                              \
    struct ggml_tensor *ggml_diag_mask_##name##_inplace(struct ggml_context *ctx,                  \
                                                        struct ggml_tensor *a, int n_past) {       \
        return op_build_inplace(&(struct op_call){OP(ctx, NAME), .src = {a}, .params = {n_past}}); \
    }
DIAG_MASK(inf, DIAG_MASK_INF)
DIAG_MASK(zero, DIAG_MASK_ZERO)

// --- generators ----------------------------------------------------------------------------------

// ceil((stop - start) / step) elements; parameters that make no range, NaN included, are
// refused.
bool op_shape_arange(struct op_call *call) {
    const float start = op_float(call, 0);
    const float stop = op_float(call, 1);
    const float step = op_float(call, 2);
    if (!(stop > start) || !(step > 0.0f)) {
        return op_fail(call, "from %g to %g by %g is no range: stop must exceed start, step 0",
                       (double)start, (double)stop, (double)step);
    }
    const float steps = ceilf((stop - start) / step);
    if (!(steps < 0x1p53f)) return op_fail(call, "%g elements are too many", (double)steps);
    return op_set_ne(call, (int64_t)steps, 1, 1, 1);
}

struct ggml_tensor *ggml_arange(struct ggml_context *ctx, float start, float stop, float step) {
    return op_build(&(struct op_call){OP(ctx, ARANGE),
                                      .params = {op_bits(start), op_bits(stop), op_bits(step)}});
}

// A row of `dim` elements for each timestep.
bool op_shape_timestep_embedding(struct op_call *call) {
    const struct ggml_tensor *timesteps = call->src[0];
    return op_need_range(call, "dim", call->params[0], 0, INT32_MAX) &&
           op_need_range(call, "the elements of src0", ggml_nelements(timesteps), timesteps->ne[0],
                         INT64_MAX) &&
           op_set_ne(call, call->params[0], call->src[0]->ne[0], 1, 1);
}

// Sinusoids after Vaswani et al. 2017: cosines in the first half of a row, sines in the second, at
// frequencies that fall geometrically from 1 to 1 / max_period.
struct ggml_tensor *ggml_timestep_embedding(struct ggml_context *ctx, struct ggml_tensor *timesteps,
                                            int dim, int max_period) {
    return op_build(&(struct op_call){OP(ctx, TIMESTEP_EMBEDDING), .src = {timesteps},
                                      .params = {dim, max_period}});
}
