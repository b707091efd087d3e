// SPDX-License-Identifier: MIT
// What several families share: checks of sources, and the rules for types and shapes that follow
// from the operands. `given` rules accept what the builder has set itself.
#include "op/op_rules.h"

// --- checks

bool op_need_type(struct op_call *call, int src, enum ggml_type type) {
    const struct ggml_tensor *tensor = call->src[src];
    if (tensor->type == type) return true;
    return op_fail(call, "src%d is %s, it must be %s", src, ggml_type_name(tensor->type),
                   ggml_type_name(type));
}

bool op_need_type2(struct op_call *call, int src, enum ggml_type one, enum ggml_type other) {
    const struct ggml_tensor *tensor = call->src[src];
    if (tensor->type == one || tensor->type == other) return true;
    return op_fail(call, "src%d is %s, it must be %s or %s", src, ggml_type_name(tensor->type),
                   ggml_type_name(one), ggml_type_name(other));
}

bool op_need_same_type(struct op_call *call, int src, int other) {
    const struct ggml_tensor *a = call->src[src];
    const struct ggml_tensor *b = call->src[other];
    if (a->type == b->type) return true;
    return op_fail(call, "src%d is %s but src%d is %s, the types must be equal", src,
                   ggml_type_name(a->type), other, ggml_type_name(b->type));
}

bool op_need_same_shape(struct op_call *call, int src, int other) {
    const int64_t *a = call->src[src]->ne;
    const int64_t *b = call->src[other]->ne;
    if (memcmp(a, b, sizeof(call->ne)) == 0) return true;
    return op_fail(call,
                   "src%d [%lld, %lld, %lld, %lld] and src%d [%lld, %lld, %lld, %lld] must have "
                   "the same shape",
                   src, (long long)a[0], (long long)a[1], (long long)a[2], (long long)a[3], other,
                   (long long)b[0], (long long)b[1], (long long)b[2], (long long)b[3]);
}

bool op_need_ne(struct op_call *call, int src, int dim, int64_t expected, const char *what) {
    const int64_t extent = call->src[src]->ne[dim];
    if (extent == expected) return true;
    return op_fail(call, "src%d ne%d = %lld, it must be %lld (%s)", src, dim, (long long)extent,
                   (long long)expected, what);
}

bool op_need_shape(struct op_call *call, int src, int64_t ne0, int64_t ne1, int64_t ne2,
                   int64_t ne3) {
    const int64_t *ne = call->src[src]->ne;
    if (ne[0] == ne0 && ne[1] == ne1 && ne[2] == ne2 && ne[3] == ne3) return true;
    return op_fail(call, "src%d is [%lld, %lld, %lld, %lld], it must be [%lld, %lld, %lld, %lld]",
                   src, (long long)ne[0], (long long)ne[1], (long long)ne[2], (long long)ne[3],
                   (long long)ne0, (long long)ne1, (long long)ne2, (long long)ne3);
}

// Only 0 is a multiple of 0.
static bool divides(int64_t part, int64_t whole) {
    return part == 0 ? whole == 0 : whole % part == 0;
}

bool op_need_multiple(struct op_call *call, int src, int dim, int other, int dim2) {
    const int64_t whole = call->src[src]->ne[dim];
    const int64_t part = call->src[other]->ne[dim2];
    if (divides(part, whole)) return true;
    return op_fail(call, "src%d ne%d = %lld must be a multiple of src%d ne%d = %lld", src, dim,
                   (long long)whole, other, dim2, (long long)part);
}

bool op_need_repeats(struct op_call *call, int src, int other) {
    if (op_is_empty(call->src[src]->ne) && op_is_empty(call->src[other]->ne)) return true;
    for (int i = 0; i < GGML_MAX_DIMS; ++i) {
        if (!op_need_multiple(call, src, i, other, i)) return false;
    }
    return true;
}

bool op_need_contiguous(struct op_call *call, int src) {
    return ggml_is_contiguous(call->src[src]) || op_fail(call, "src%d must be contiguous", src);
}

bool op_need_contiguous_rows(struct op_call *call, int src) {
    return ggml_is_contiguous_rows(call->src[src]) ||
           op_fail(call, "the rows of src%d must be contiguous", src);
}

bool op_need_not_transposed(struct op_call *call, int src) {
    return ggml_is_empty(call->src[src]) || !ggml_is_transposed(call->src[src]) ||
           op_fail(call, "src%d must not be transposed; use ggml_cont first", src);
}

// As GGML's "padded 1D": rows at a constant distance through all dimensions, so that all rows can
// be walked with one stride.
bool op_need_padded_1d(struct op_call *call, int src) {
    const struct ggml_tensor *t = call->src[src];
    if (t->nb[0] == ggml_type_size(t->type) && t->nb[2] == t->nb[1] * (size_t)t->ne[1] &&
        t->nb[3] == t->nb[2] * (size_t)t->ne[2]) {
        return true;
    }
    return op_fail(call, "src%d must be contiguous apart from padding of its rows", src);
}

bool op_need_dims(struct op_call *call, int src, int n) {
    for (int i = n; i < GGML_MAX_DIMS; ++i) {
        if (!op_need_ne(call, src, i, 1, "it has too many dimensions")) return false;
    }
    return true;
}

// Extents are of the result here, which the builder has set; a product that overflows saturates and
// thereby differs from any number of elements.
bool op_need_elements(struct op_call *call, const struct ggml_tensor *tensor) {
    const int64_t *ne = call->ne;
    const int64_t expected = ggml_nelements(tensor);
    const bool negative = ne[0] < 0 || ne[1] < 0 || ne[2] < 0 || ne[3] < 0;
    if (!negative && op_mul(op_mul(ne[0], ne[1]), op_mul(ne[2], ne[3])) == expected) return true;
    return op_fail(call, "[%lld, %lld, %lld, %lld] does not have the %lld elements of src0",
                   (long long)ne[0], (long long)ne[1], (long long)ne[2], (long long)ne[3],
                   (long long)expected);
}

bool op_need_range(struct op_call *call, const char *name, int64_t value, int64_t low,
                   int64_t high) {
    if (value >= low && value <= high) return true;
    return op_fail(call, "%s = %lld, it must be in [%lld, %lld]", name, (long long)value,
                   (long long)low, (long long)high);
}

// --- rules

bool op_type_given(struct op_call *call) {
    (void)call;
    return true;
}

bool op_type_same(struct op_call *call) {
    call->type = call->src[0]->type;
    return true;
}

// Of source 1: the operation returns something of its shape, such as the image of a convolution's
// gradient.
bool op_type_same_1(struct op_call *call) {
    call->type = call->src[1]->type;
    return true;
}

// Both operands have one type, which the result takes over; there is no implicit conversion.
bool op_type_both_same(struct op_call *call) {
    call->type = call->src[0]->type;
    return op_need_same_type(call, 1, 0);
}

bool op_type_same_f32(struct op_call *call) {
    call->type = GGML_TYPE_F32;
    return op_need_type(call, 0, GGML_TYPE_F32);
}

// For operations that exist in F32 only: every source that is present is F32.
bool op_type_all_f32(struct op_call *call) {
    call->type = GGML_TYPE_F32;
    for (int i = 0; i < GGML_MAX_SRC; ++i) {
        if (call->src[i] != NULL && !op_need_type(call, i, GGML_TYPE_F32)) return false;
    }
    return true;
}

// F32 whatever the sources are, since sums of reduced-precision products are accumulated in F32.
bool op_type_f32(struct op_call *call) {
    call->type = GGML_TYPE_F32;
    return true;
}

bool op_type_f16(struct op_call *call) {
    call->type = GGML_TYPE_F16;
    return true;
}

bool op_type_i32(struct op_call *call) {
    call->type = GGML_TYPE_I32;
    return true;
}

bool op_type_i64(struct op_call *call) {
    call->type = GGML_TYPE_I64;
    return true;
}

bool op_shape_given(struct op_call *call) {
    (void)call;
    return true;
}

bool op_shape_same(struct op_call *call) {
    return op_set_ne_as(call, call->src[0]);
}

// For kernels that walk over all elements with one index.
bool op_shape_same_packed(struct op_call *call) {
    return op_need_contiguous(call, 0) && op_set_ne_as(call, call->src[0]);
}

// Both operands have one shape: no broadcasting.
bool op_shape_same_pair(struct op_call *call) {
    return op_need_same_shape(call, 1, 0) && op_set_ne_as(call, call->src[0]);
}
