// SPDX-License-Identifier: MIT
// Softmax and rotary position embedding.
#include <math.h>

#include "base/status.h"
#include "op/op_rules.h"
#include "tensor/error_tensor.h"

// --- softmax -------------------------------------------------------------------------------------

// The result has the type of src0; the mask is F16 or F32.
bool op_type_soft_max(struct op_call *call) {
    call->type = call->src[0]->type;
    return call->src[1] == NULL || op_need_type2(call, 1, GGML_TYPE_F16, GGML_TYPE_F32);
}

// The mask has a column for each of src0's and enough rows, and repeats over heads and batches.
// ALiBi is a slope of the mask and needs one.
bool op_shape_soft_max(struct op_call *call) {
    const struct ggml_tensor *a = call->src[0];
    const struct ggml_tensor *mask = call->src[1];
    if (!op_need_contiguous(call, 0)) return false;
    if (mask == NULL && op_float(call, 1) > 0.0f) {
        return op_fail(call, "max_bias = %g needs a mask", (double)op_float(call, 1));
    }
    if (mask != NULL) {
        if (!op_need_contiguous(call, 1)) return false;
        if (!op_need_ne(call, 1, 0, a->ne[0], "ne0 of src0")) return false;
        if (!op_need_range(call, "src1 ne1", mask->ne[1], a->ne[1], INT64_MAX)) return false;
        if (!op_need_multiple(call, 0, 2, 1, 2) || !op_need_multiple(call, 0, 3, 1, 3))
            return false;
    }
    return op_set_ne_as(call, a);
}

// softmax(a * scale + mask * slope), slopes from max_bias (ALiBi).
static struct ggml_tensor *build_soft_max(struct op_call *call, float scale, float max_bias,
                                          bool inplace) {
    call->params[0] = op_bits(scale);
    call->params[1] = op_bits(max_bias);
    return inplace ? op_build_inplace(call) : op_build(call);
}

struct ggml_tensor *ggml_soft_max(struct ggml_context *ctx, struct ggml_tensor *a) {
    return build_soft_max(&(struct op_call){OP(ctx, SOFT_MAX), .src = {a}}, 1.0f, 0.0f, false);
}

struct ggml_tensor *ggml_soft_max_inplace(struct ggml_context *ctx, struct ggml_tensor *a) {
    return build_soft_max(&(struct op_call){OP(ctx, SOFT_MAX), .src = {a}}, 1.0f, 0.0f, true);
}

#define SOFT_MAX_EXT(suffix, inplace)                                                              \
    struct ggml_tensor *ggml_soft_max_ext##suffix(struct ggml_context *ctx, struct ggml_tensor *a, \
                                                  struct ggml_tensor *mask, float scale,           \
                                                  float max_bias) {                                \
        struct op_call call = {OP(ctx, SOFT_MAX), .src = {a, mask}};                               \
        return build_soft_max(&call, scale, max_bias, inplace);                                    \
    }
SOFT_MAX_EXT(, false)
SOFT_MAX_EXT(_inplace, true)

// a is the gradient, b the result of the softmax: its derivative needs only these.
#define SOFT_MAX_BACK(suffix, inplace)                                                             \
    struct ggml_tensor *ggml_soft_max_ext_back##suffix(                                            \
        struct ggml_context *ctx, struct ggml_tensor *a, struct ggml_tensor *b, float scale,       \
        float max_bias) {                                                                          \
        struct op_call call = {OP(ctx, SOFT_MAX_BACK), .src = {a, b}};                             \
        return build_soft_max(&call, scale, max_bias, inplace);                                    \
    }
SOFT_MAX_BACK(, false)
SOFT_MAX_BACK(_inplace, true)

void ggml_soft_max_add_sinks(struct ggml_tensor *a, struct ggml_tensor *sinks) {
    if (!op_may_set(__func__, a, GGML_OP_SOFT_MAX)) return;
    op_set_sinks(__func__, a, 2, sinks, a->src[0]->ne[2]);
}

// --- rotary position embedding -------------------------------------------------------------------

// Words of op_params, as op_list.inl documents them; the gaps are parameters of older versions.
enum { N_DIMS = 1, MODE = 2, N_CTX_ORIG = 4, FREQ_BASE = 5, SECTIONS = 11, N_OFFS = 15 };

// Positions are I32, frequency factors F32.
bool op_type_rope(struct op_call *call) {
    call->type = call->src[0]->type;
    return op_need_type(call, 1, GGML_TYPE_I32) &&
           (call->src[2] == NULL || op_need_type(call, 2, GGML_TYPE_F32));
}

// Modes, and sections of those with several positions per token, are left to the devices.
bool op_shape_rope(struct op_call *call) {
    const struct ggml_tensor *a = call->src[0];
    const int n_dims = call->params[N_DIMS];
    const bool multi = (call->params[MODE] & GGML_ROPE_TYPE_MROPE) != 0;
    const int64_t positions = multi ? op_mul(4, a->ne[2]) : a->ne[2];
    if (!op_need_range(call, "n_dims", n_dims, 0, a->ne[0]) || !op_need_dims(call, 1, 1))
        return false;
    if (!op_need_ne(call, 1, 0, positions, multi ? "four positions per token" : "one per token")) {
        return false;
    }
    if (call->src[2] != NULL && call->src[2]->ne[0] < n_dims / 2) {
        return op_fail(call, "src2 ne0 = %lld, it must hold n_dims / 2 = %d factors",
                       (long long)call->src[2]->ne[0], n_dims / 2);
    }
    return op_set_ne_as(call, a);
}

// What every form of the builder passes on.
struct rope_params {
    int n_dims;
    int mode;
    int n_ctx_orig;
    float frequencies[6]; // freq_base, freq_scale, ext_factor, attn_factor, beta_fast, beta_slow
    const int *sections;  // or NULL
};

// A node of rope or rope_back with its parameters in the slots that op_list.inl documents.
static struct ggml_tensor *build_rope(struct op_call *call, const struct rope_params *p,
                                      bool inplace) {
    call->params[N_DIMS] = p->n_dims;
    call->params[MODE] = p->mode;
    call->params[N_CTX_ORIG] = p->n_ctx_orig;
    for (int i = 0; i < 6; ++i) {
        call->params[FREQ_BASE + i] = op_bits(p->frequencies[i]);
    }
    for (int i = 0; i < GGML_MROPE_SECTIONS; ++i) {
        call->params[SECTIONS + i] = p->sections != NULL ? p->sections[i] : 0;
    }
    return inplace ? op_build_inplace(call) : op_build(call);
}

#define FREQUENCIES                                                                                \
    float freq_base, float freq_scale, float ext_factor, float attn_factor, float beta_fast,       \
        float beta_slow
#define ROPE_PARAMS(sections)                                                                      \
    &(struct rope_params) {                                                                        \
        n_dims, mode, n_ctx_orig,                                                                  \
            {freq_base, freq_scale, ext_factor, attn_factor, beta_fast, beta_slow}, sections       \
    }

#define ROPE(suffix, inplace)                                                                      \
    struct ggml_tensor *ggml_rope##suffix(struct ggml_context *ctx, struct ggml_tensor *a,         \
                                          struct ggml_tensor *b, int n_dims, int mode) {           \
        struct op_call call = {OP(ctx, ROPE), .src = {a, b}};                                      \
        const struct rope_params p = {n_dims, mode, 0, {10000.0f, 1.0f, 0, 1.0f, 0, 0}, NULL};     \
        return build_rope(&call, &p, inplace);                                                     \
    }
ROPE(, false)
ROPE(_inplace, true)

#define ROPE_CUSTOM(suffix, inplace)                                                               \
    struct ggml_tensor *ggml_rope_custom##suffix(struct ggml_context *ctx, struct ggml_tensor *a,  \
                                                 struct ggml_tensor *b, int n_dims, int mode,      \
                                                 int n_ctx_orig, FREQUENCIES) {                    \
        struct op_call call = {OP(ctx, ROPE), .src = {a, b}};                                      \
        return build_rope(&call, ROPE_PARAMS(NULL), inplace);                                      \
    }
ROPE_CUSTOM(, false)
ROPE_CUSTOM(_inplace, true)

#define ROPE_EXT(name, NAME, inplace)                                                              \
    struct ggml_tensor *ggml_##name(struct ggml_context *ctx, struct ggml_tensor *a,               \
                                    struct ggml_tensor *b, struct ggml_tensor *c, int n_dims,      \
                                    int mode, int n_ctx_orig, FREQUENCIES) {                       \
        struct op_call call = {OP(ctx, NAME), .src = {a, b, c}};                                   \
        return build_rope(&call, ROPE_PARAMS(NULL), inplace);                                      \
    }
ROPE_EXT(rope_ext, ROPE, false)
ROPE_EXT(rope_ext_inplace, ROPE, true)
ROPE_EXT(rope_ext_back, ROPE_BACK, false)

#define ROPE_MULTI(name, NAME, inplace)                                                            \
    struct ggml_tensor *ggml_##name(struct ggml_context *ctx, struct ggml_tensor *a,               \
                                    struct ggml_tensor *b, struct ggml_tensor *c, int n_dims,      \
                                    int sections[GGML_MROPE_SECTIONS], int mode, int n_ctx_orig,   \
                                    FREQUENCIES) {                                                 \
        struct op_call call = {OP(ctx, NAME), .src = {a, b, c}};                                   \
        if (sections == NULL) {                                                                    \
            op_fail(&call, "the sections are NULL");                                               \
            return call.error;                                                                     \
        }                                                                                          \
        return build_rope(&call, ROPE_PARAMS(sections), inplace);                                  \
    }
ROPE_MULTI(rope_multi, ROPE, false)
ROPE_MULTI(rope_multi_inplace, ROPE, true)
ROPE_MULTI(rope_multi_back, ROPE_BACK, false)

// Rotates dimensions from n_offs on instead of the first ones. Vision mode rotates the whole row
// and can have no offset.
struct ggml_tensor *ggml_rope_set_offset(struct ggml_tensor *a, int n_offs) {
    if (a != NULL && op_is_error(a)) return a;
    if (a == NULL || (a->op != GGML_OP_ROPE && a->op != GGML_OP_ROPE_BACK)) {
        return ggml_error_tensor(NULL, "%s: the tensor is no ROPE or ROPE_BACK node", __func__);
    }
    const bool vision = a->op_params[MODE] == GGML_ROPE_TYPE_VISION;
    if (n_offs < 0 || n_offs % 2 != 0 || (vision && n_offs != 0) ||
        (int64_t)n_offs + a->op_params[N_DIMS] > a->ne[0]) {
        return ggml_error_tensor(
            NULL, "%s: offset %d with n_dims %d does not fit into ne0 = %lld%s", __func__, n_offs,
            a->op_params[N_DIMS], (long long)a->ne[0], vision ? " in vision mode" : "");
    }
    a->op_params[N_OFFS] = n_offs;
    return a;
}

// Dimension whose wave turns `rotations` times over the original context.
static float yarn_dim(int n_dims, int n_ctx_orig, float rotations, float base) {
    const float two_pi = 6.28318530717958647692f;
    return (float)n_dims * logf((float)n_ctx_orig / (rotations * two_pi)) / (2.0f * logf(base));
}

// The pairs of dimensions between which YaRN (Peng et al., 2023) blends interpolated and
// extrapolated frequencies: those that turn beta_fast and beta_slow times over the original
// context.
void ggml_rope_yarn_corr_dims(int n_dims, int n_ctx_orig, float freq_base, float beta_fast,
                              float beta_slow, float dims[2]) {
    if (dims == NULL) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: dims is NULL", __func__);
        return;
    }
    const float start = floorf(yarn_dim(n_dims, n_ctx_orig, beta_fast, freq_base));
    const float end = ceilf(yarn_dim(n_dims, n_ctx_orig, beta_slow, freq_base));
    dims[0] = start > 0.0f ? start : 0.0f;
    dims[1] = end < (float)(n_dims - 1) ? end : (float)(n_dims - 1);
}
