// SPDX-License-Identifier: MIT
// Types and shapes that an operation derives from its operands. `given` rules accept what the
// builder has set itself.
// Type and shape rules that several families share.
#include "op/op_rules.h"

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
