// SPDX-License-Identifier: MIT
// Copies and conversions.
#include "op/op_rules.h"
#include "tensor/name.h"

struct ggml_tensor *ggml_dup(struct ggml_context *ctx, struct ggml_tensor *a) {
    return op_build(&(struct op_call){OP(ctx, DUP), .src = {a}});
}

struct ggml_tensor *ggml_dup_inplace(struct ggml_context *ctx, struct ggml_tensor *a) {
    return op_build_inplace(&(struct op_call){OP(ctx, DUP), .src = {a}});
}

// A conversion (ggml_cast) has its type set by the builder and is its own second source; a copy
// takes the type of its destination.
bool op_type_cpy(struct op_call *call) {
    if (call->self_slot == 0) call->type = call->src[1]->type;
    return true;
}

// A conversion has the shape of its source, a copy that of its destination.
bool op_shape_cpy(struct op_call *call) {
    const struct ggml_tensor *a = call->src[0];
    if (call->self_slot != 0) return op_set_ne_as(call, a);
    op_set_ne_as(call, call->src[1]);
    return op_need_elements(call, a);
}

// Copies a into the memory of b, converting between their types; the result is a view of b, so that
// what follows depends on the copy. Named after both.
struct ggml_tensor *ggml_cpy(struct ggml_context *ctx, struct ggml_tensor *a,
                             struct ggml_tensor *b) {
    struct ggml_tensor *result =
        op_build(&(struct op_call){OP(ctx, CPY), .src = {a, b}, .alias = b});
    if (op_is_error(result)) return result;
    if (b->name[0] == '\0') {
        ggml_name_join(result, a->name, " (copy)");
        return result;
    }
    ggml_name_join(result, b->name, " (copy of ");
    ggml_name_join(result, result->name, a->name);
    ggml_name_join(result, result->name, ")");
    return result;
}

struct ggml_tensor *ggml_cast(struct ggml_context *ctx, struct ggml_tensor *a,
                              enum ggml_type type) {
    return op_build(&(struct op_call){OP(ctx, CPY), .src = {a}, .self_slot = 1, .typed = true,
                                      .type = type, .named_after = a, .suffix = " (copy)"});
}

// Same number of elements, in the order of memory; extents may differ.
bool op_shape_same_elements(struct op_call *call) {
    return op_need_elements(call, call->src[0]);
}

// Contiguous copies keep the elements' order and may give other extents at once.
static struct ggml_tensor *build_cont(struct op_call *call) {
    call->named_after = call->src[0];
    call->suffix = " (cont)";
    return op_build(call);
}

struct ggml_tensor *ggml_cont(struct ggml_context *ctx, struct ggml_tensor *a) {
    struct op_call call = {OP(ctx, CONT), .src = {a}};
    if (a != NULL) op_set_ne_as(&call, a);
    return build_cont(&call);
    // Source 0 is checked by op_build(); its extents are needed before that.
}

struct ggml_tensor *ggml_cont_1d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0) {
    return build_cont(&(struct op_call){OP(ctx, CONT), .src = {a}, .ne = {ne0, 1, 1, 1}});
}

struct ggml_tensor *ggml_cont_2d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0,
                                 int64_t ne1) {
    return build_cont(&(struct op_call){OP(ctx, CONT), .src = {a}, .ne = {ne0, ne1, 1, 1}});
}

struct ggml_tensor *ggml_cont_3d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0,
                                 int64_t ne1, int64_t ne2) {
    return build_cont(&(struct op_call){OP(ctx, CONT), .src = {a}, .ne = {ne0, ne1, ne2, 1}});
}

struct ggml_tensor *ggml_cont_4d(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0,
                                 int64_t ne1, int64_t ne2, int64_t ne3) {
    return build_cont(&(struct op_call){OP(ctx, CONT), .src = {a}, .ne = {ne0, ne1, ne2, ne3}});
}
