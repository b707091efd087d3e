// SPDX-License-Identifier: MIT
// From a builder's call to a node: operands, type rule, shape rule, then the extents that these
// gave. The first step that fails records why in call->error, and those after it are left out;
// nothing is taken from the context before all have passed.
#include "op/op_build.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/status.h"
#include "base/thread_guard.h"
#include "op/op_table.h"
#include "tensor/context.h"
#include "tensor/error_tensor.h"
#include "tensor/name.h"
#include "tensor/tensor_impl.h"

// The message is formatted once and kept by the context; later failures of a chain pass it on.
bool op_fail(struct op_call *call, const char *format, ...) {
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    call->error = ggml_error_tensor(call->ctx, "%s: %s", call->builder, message);
    return false;
}

bool op_may_set(const char *setter, const struct ggml_tensor *node, enum ggml_op op) {
    if (node == NULL) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: the tensor is NULL", setter);
        return false;
    }
    if (op_is_error(node)) return false;
    if (node->op == op) return true;
    ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: tensor '%s' is %s, it must be %s", setter,
              node->name, ggml_op_name(node->op), ggml_op_name(op));
    return false;
}

// Without this, a chain of hundreds of builders would report its last call instead of the one that
// was wrong.
struct ggml_tensor *op_pass_on(struct ggml_context *ctx, const struct ggml_tensor *bad) {
    if (ctx != NULL && bad == &ctx->error.tensor) return ggml_last_error_tensor(ctx);
    const char *reason = ggml_tensor_error(bad);
    return ggml_error_tensor(ctx, "%s", reason != NULL ? reason : "an operand is in error");
}

// Records the failure of an operand as that of this call.
static bool pass_on(struct op_call *call, const struct ggml_tensor *bad) {
    call->error = op_pass_on(call->ctx, bad);
    return false;
}

// `like` is not a source of the node, so it is not checked among them.
static bool check_like(struct op_call *call) {
    if (call->like == NULL) return op_fail(call, "the tensor that gives the shape is NULL");
    return !op_is_error(call->like) || pass_on(call, call->like);
}

// Operands that are in error pass their reason on, so that a whole graph says what was wrong
// first.
static bool check_operands(struct op_call *call, const struct ggml_op_info *info) {
    if (call->ctx == NULL) return op_fail(call, "the context is NULL");
    for (int i = 0; i < GGML_MAX_SRC; ++i) {
        const struct ggml_tensor *src = call->src[i];
        if (src != NULL && op_is_error(src)) return pass_on(call, src);
        // make_result() fills the slot of the result itself.
        if (src != NULL || i >= info->min_src || (i > 0 && i == call->self_slot)) continue;
        return op_fail(call, "src%d is NULL", i);
    }
    return !call->has_like || check_like(call);
}

// Strides included, so that nothing later can overflow.
static bool check_result(struct op_call *call) {
    // The extents are those of the alias, which passed when that was made.
    if (call->alias != NULL && !call->window) return true;
    // Nearly every result ends here. What follows finds out what is wrong, or that a large one
    // fits.
    if (ggml_shape_is_small(ggml_get_type_traits(call->type), call->ne)) return true;
    if ((unsigned)call->type >= GGML_TYPE_COUNT || ggml_blck_size(call->type) <= 0) {
        return op_fail(call, "there is no type %d", (int)call->type);
    }
    for (int i = 0; i < GGML_MAX_DIMS; ++i) {
        if (call->ne[i] < 0) {
            return op_fail(call, "extent ne%d = %lld of the result is negative", i,
                           (long long)call->ne[i]);
        }
    }
    const int64_t block = ggml_blck_size(call->type);
    if (call->ne[0] % block != 0) {
        return op_fail(call, "ne0 = %lld of the result is not a multiple of %lld, the block of %s",
                       (long long)call->ne[0], (long long)block, ggml_type_name(call->type));
    }
    int64_t size = (int64_t)ggml_type_size(call->type);
    for (int i = 0; i < GGML_MAX_DIMS; ++i) {
        const int64_t count = i == 0 ? call->ne[0] / block : call->ne[i];
        size = op_mul(size, count > 0 ? count : 1);
    }
    if (size > INT64_MAX / 2) {
        return op_fail(call, "a result of [%lld, %lld, %lld, %lld] %s is too large",
                       (long long)call->ne[0], (long long)call->ne[1], (long long)call->ne[2],
                       (long long)call->ne[3], ggml_type_name(call->type));
    }
    return true;
}

// A tensor with memory of its own, an alias (in place) or a window of another tensor (a view).
static struct ggml_tensor *new_result(struct op_call *call) {
    if (call->alias != NULL && !call->window) return ggml_new_alias_impl(call->ctx, call->alias);
    const size_t *nb = call->window && call->strided ? call->nb : NULL;
    return ggml_new_view_impl(call->ctx, call->type, GGML_MAX_DIMS, call->ne, nb, call->alias,
                              call->window ? call->offset : 0);
}

// Results that share memory are named after its owner.
static void name_result(const struct op_call *call, struct ggml_tensor *result) {
    const struct ggml_tensor *base = call->named_after != NULL ? call->named_after : call->alias;
    if (base == NULL) return;
    ggml_name_join(result, base->name, call->suffix != NULL ? call->suffix : " (view)");
}

// Fills in the node. A cast is its own second source (self_slot), as in ggml.
static struct ggml_tensor *make_result(struct op_call *call) {
    struct ggml_tensor *result = new_result(call);
    if (op_is_error(result)) return result;
    if (call->strided) {
        memcpy(result->ne, call->ne, sizeof(result->ne));
        memcpy(result->nb, call->nb, sizeof(result->nb));
    }
    name_result(call, result);
    result->op = call->op;
    memcpy(result->op_params, call->params, sizeof(result->op_params));
    memcpy(result->src, call->src, sizeof(result->src));
    if (call->self_slot > 0) result->src[call->self_slot] = result;
    return result;
}

// The order matters: a type rule may assume that required sources are there, a shape rule that the
// type is set, and the size check that extents are.
struct ggml_tensor *op_build(struct op_call *call) {
    THREAD_GUARD_AS(call->ctx, call->builder, return ggml_last_error_tensor(NULL));
    const struct ggml_op_info *info = ggml_op_info(call->op);
    const bool fits = check_operands(call, info) && info->type_rule(call) &&
                      info->shape_rule(call) && check_result(call);
    return fits ? make_result(call) : call->error;
}

// Whether an element occurs more than once, through a stride of 0. As a result it would be written
// once per repetition, and the repetitions take no memory, so that any number of them could be
// asked for.
static bool repeats_itself(const struct ggml_tensor *tensor) {
    if (!tensor || ggml_is_empty(tensor)) return false;
    for (int i = 0; i < GGML_MAX_DIMS; ++i)
        if (tensor->ne[i] > 1 && tensor->nb[i] == 0) return true;
    return false;
}

// In place: the result is a view of source 0 with the same extents.
struct ggml_tensor *op_build_inplace(struct op_call *call) {
    call->alias = call->src[0];
    if (repeats_itself(call->alias)) {
        op_fail(call, "src0 '%s' repeats its elements and can't be computed in place",
                call->alias->name);
        return call->error;
    }
    return op_build(call);
}

// Saturating arithmetic on extents: INT64_MAX stays the largest value through a chain of products,
// and check_result() refuses it.
int64_t op_mul(int64_t a, int64_t b) {
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

int64_t op_add(int64_t a, int64_t b) {
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

bool op_set_ne(struct op_call *call, int64_t ne0, int64_t ne1, int64_t ne2, int64_t ne3) {
    call->ne[0] = ne0;
    call->ne[1] = ne1;
    call->ne[2] = ne2;
    call->ne[3] = ne3;
    return true;
}

bool op_set_ne_as(struct op_call *call, const struct ggml_tensor *tensor) {
    return op_set_ne(call, tensor->ne[0], tensor->ne[1], tensor->ne[2], tensor->ne[3]);
}

// The last element begins sum((ne[i] - 1) nb[i]) bytes behind the first; one block more is its own
// size. Strides may be any value, also such that rows overlap.
size_t op_region_size(enum ggml_type type, const int64_t ne[GGML_MAX_DIMS],
                      const size_t nb[GGML_MAX_DIMS]) {
    if (ne[0] <= 0 || ne[1] <= 0 || ne[2] <= 0 || ne[3] <= 0) return 0;
    const size_t block = (size_t)ggml_blck_size(type);
    size_t total = 0;
    for (int i = 0; i < GGML_MAX_DIMS; ++i) {
        const size_t steps = i == 0 ? ((size_t)ne[0] + block - 1) / block - 1 : (size_t)ne[i] - 1;
        size_t bytes;
        if (__builtin_mul_overflow(steps, nb[i], &bytes)) return SIZE_MAX;
        if (__builtin_add_overflow(total, bytes, &total)) return SIZE_MAX;
    }
    return __builtin_add_overflow(total, ggml_type_size(type), &total) ? SIZE_MAX : total;
}

void op_packed_strides(enum ggml_type type, const int64_t ne[GGML_MAX_DIMS],
                       size_t nb[GGML_MAX_DIMS]) {
    nb[0] = ggml_type_size(type);
    for (int i = 1; i < GGML_MAX_DIMS; ++i) {
        const int64_t below = i == 1 ? ne[0] / ggml_blck_size(type) : ne[i - 1];
        if (__builtin_mul_overflow(nb[i - 1], (size_t)below, &nb[i])) nb[i] = SIZE_MAX;
    }
}
