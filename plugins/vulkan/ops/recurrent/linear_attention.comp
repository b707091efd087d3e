#version 450
// SPDX-License-Identifier: MIT
// rwkv_wkv6, gated_linear_attn and rwkv_wkv7: a matrix of state per head, updated token by
// token, stands in the result behind the outputs. An invocation keeps a column of it (wkv7: a
// row). All operands are contiguous. A launch takes the tokens [number(0), number(1)) of each
// sequence.
#include "shaders/common.glsl"
layout(constant_id = 3) const uint MODE = 0;
GVK_OPERAND(dst, 1)
GVK_OPERAND(s0, 2)
GVK_OPERAND(s1, 3)
GVK_OPERAND(s2, 4)
GVK_OPERAND(s3, 5)
GVK_OPERAND(s4, 6)
GVK_OPERAND(s5, 7)
GVK_OPERAND(s6, 8)

const uint WKV6 = 0, GATED = 1, WKV7 = 2;
const uint STATE_SOURCE = MODE == WKV6 ? 5 : MODE == GATED ? 4 : 6;

// Index of the first float of a source.
uint base(const uint source) { return tensors[1 + source].at.x >> 2; }

// Element i of the state before the first token.
float initial_state(const uint i) {
    if (MODE == WKV6) return s5_f32[base(5) + i];
    if (MODE == GATED) return s4_f32[base(4) + i];
    return s6_f32[base(6) + i];
}

// k, v, r, bonus, decay
float step_wkv6(const uint state, const uint n, const uint row, const uint head, const uint j) {
    const float v = s1_f32[base(1) + row + j];
    float result = 0;
    for (uint i = 0; i < n; ++i) {
        const float kv = s0_f32[base(0) + row + i] * v;
        const float old = dst_f32[state + i * n + j];
        result += s2_f32[base(2) + row + i] * (s3_f32[base(3) + head * n + i] * kv + old);
        dst_f32[state + i * n + j] = old * s4_f32[base(4) + row + i] + kv;
    }
    return result;
}

// k, v, q, gate
float step_gated(const uint state, const uint n, const uint row, const uint j) {
    const float v = s1_f32[base(1) + row + j];
    const float scale = op_param_f32(0);
    float result = 0;
    for (uint i = 0; i < n; ++i) {
        const float value = dst_f32[state + i * n + j] * s3_f32[base(3) + row + i] +
                            s0_f32[base(0) + row + i] * v;
        dst_f32[state + i * n + j] = value;
        result += value * (s2_f32[base(2) + row + i] * scale);
    }
    return result;
}

// r, w, k, v, a, b
float step_wkv7(const uint state, const uint n, const uint row, const uint i) {
    const float v = s3_f32[base(3) + row + i];
    float along = 0;
    for (uint j = 0; j < n; ++j) along += s4_f32[base(4) + row + j] * dst_f32[state + i * n + j];
    float result = 0;
    for (uint j = 0; j < n; ++j) {
        const float value = dst_f32[state + i * n + j] * s1_f32[base(1) + row + j] +
                            v * s2_f32[base(2) + row + j] + along * s5_f32[base(5) + row + j];
        dst_f32[state + i * n + j] = value;
        result += value * s0_f32[base(0) + row + j];
    }
    return result;
}

// An invocation computes one column of a head's state over all tokens of a sequence, in order. A
// long sequence is cut into several launches, of which the first one copies the initial state.
void main() {
    const uint n = SRC0.ne.x, heads = SRC0.ne.y;
    const uint sequences = tensors[1 + STATE_SOURCE].ne.y;
    const uint tokens = SRC0.ne.z / sequences;
    const uint unit = invocation_linear();
    if (unit >= n * heads * sequences) return;
    const uint j = unit % n, head = unit / n % heads, seq = unit / n / heads;
    const uint matrix = unit / n * n * n;
    const uint state = (DST.at.x >> 2) + sequences * tokens * heads * n + matrix;
    for (uint i = 0; i < n && number(0) == 0; ++i) {
        const uint at = MODE == WKV7 ? j * n + i : i * n + j;
        dst_f32[state + at] = initial_state(matrix + at);
    }
    for (uint t = seq * tokens + number(0); t < seq * tokens + number(1); ++t) {
        const uint row = (t * heads + head) * n;
        float result;
        if (MODE == WKV6) result = step_wkv6(state, n, row, head, j);
        else if (MODE == GATED) result = step_gated(state, n, row, j);
        else result = step_wkv7(state, n, row, j);
        dst_f32[(DST.at.x >> 2) + row + j] = result;
    }
}
