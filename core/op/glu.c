// SPDX-License-Identifier: MIT
// Gated linear units: an activated half times a gate.
#include "op/op_rules.h"

// In one tensor or two: both halves have the type of the result.
bool op_type_glu(struct op_call *call) {
    call->type = call->src[0]->type;
    return call->src[1] == NULL || op_need_same_type(call, 1, 0);
}

// Rows may be padded, nothing else.
static bool need_packed_rows(struct op_call *call, int src) {
    return ggml_is_contiguous_1(call->src[src]) ||
           op_fail(call, "src%d must be contiguous apart from padding of its rows", src);
}

// One tensor of [2 n, ...] is halved along its rows; two are the halves already. `swapped` says
// that the gate comes first.
bool op_shape_glu(struct op_call *call) {
    const struct ggml_tensor *a = call->src[0];
    if (!op_need_range(call, "op", call->params[0], 0, GGML_GLU_OP_COUNT - 1)) return false;
    if (!need_packed_rows(call, 0)) return false;
    if (call->src[1] != NULL) {
        return need_packed_rows(call, 1) && op_need_same_shape(call, 1, 0) && op_set_ne_as(call, a);
    }
    return op_set_ne(call, a->ne[0] / 2, a->ne[1], a->ne[2], a->ne[3]);
}

struct ggml_tensor *ggml_glu(struct ggml_context *ctx, struct ggml_tensor *a, enum ggml_glu_op op,
                             bool swapped) {
    return op_build(&(struct op_call){OP(ctx, GLU), .src = {a}, .params = {(int32_t)op, swapped}});
}

// Without the second operand this would be another operation.
static struct ggml_tensor *build_split(struct op_call *call) {
    if (call->ctx != NULL && call->src[0] != NULL && call->src[1] == NULL) {
        op_fail(call, "src1 is NULL");
        return call->error;
    }
    return op_build(call);
}

struct ggml_tensor *ggml_glu_split(struct ggml_context *ctx, struct ggml_tensor *a,
                                   struct ggml_tensor *b, enum ggml_glu_op op) {
    return build_split(&(struct op_call){OP(ctx, GLU), .src = {a, b}, .params = {(int32_t)op}});
}

#define GLU(name, NAME)                                                                            \
    struct ggml_tensor *ggml_##name(struct ggml_context *ctx, struct ggml_tensor *a) {             \
        return op_build(                                                                           \
            &(struct op_call){OP(ctx, GLU), .src = {a}, .params = {GGML_GLU_OP_##NAME}});          \
    }
#define GLU_SWAPPED(name, NAME)                                                                    \
    struct ggml_tensor *ggml_##name##_swapped(struct ggml_context *ctx, struct ggml_tensor *a) {   \
        return op_build(                                                                           \
            &(struct op_call){OP(ctx, GLU), .src = {a}, .params = {GGML_GLU_OP_##NAME, 1}});       \
    }
#define GLU_SPLIT(name, NAME)                                                                      \
    struct ggml_tensor *ggml_##name##_split(struct ggml_context *ctx, struct ggml_tensor *a,       \
                                            struct ggml_tensor *b) {                               \
        return build_split(                                                                        \
            &(struct op_call){OP(ctx, GLU), .src = {a, b}, .params = {GGML_GLU_OP_##NAME}});       \
    }
#define GLU_FORMS(name, NAME) GLU(name, NAME) GLU_SWAPPED(name, NAME) GLU_SPLIT(name, NAME)
GLU_FORMS(reglu, REGLU)
GLU_FORMS(geglu, GEGLU)
GLU_FORMS(swiglu, SWIGLU)
GLU_FORMS(geglu_erf, GEGLU_ERF)
GLU_FORMS(geglu_quick, GEGLU_QUICK)

// SwiGLU as in gpt-oss: x sigmoid(alpha x) (1 + g), with x and g limited.
struct ggml_tensor *ggml_swiglu_oai(struct ggml_context *ctx, struct ggml_tensor *a,
                                    struct ggml_tensor *b, float alpha, float limit) {
    return op_build(
        &(struct op_call){OP(ctx, GLU), .src = {a, b},
                          .params = {GGML_GLU_OP_SWIGLU_OAI, 0, op_bits(alpha), op_bits(limit)}});
}

struct ggml_tensor *ggml_swiglu_clamp(struct ggml_context *ctx, struct ggml_tensor *a,
                                      struct ggml_tensor *b, float limit) {
    return op_build(&(struct op_call){OP(ctx, GLU), .src = {a, b},
                                      .params = {GGML_GLU_OP_SWIGLU_CLAMP, 0, 0, op_bits(limit)}});
}
