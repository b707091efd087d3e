#version 450
// SPDX-License-Identifier: MIT
// Quantisation of src1 (the only source here) to signed bytes for mul_mat_dot.comp. An
// invocation turns a group of 32 elements of a column into 12 words: the scale, the scale times
// the sum of the bytes, two unused words, then the bytes.
#include "shaders/common.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2)

void main() {
    const uint groups = SRC0.ne.x / 32;
    const uint i = invocation_linear();
    if (i >= groups * SRC0.ne.y * SRC0.ne.z * SRC0.ne.w) return;
    uvec4 at = row_at(SRC0.ne, i / groups);
    at.x = i % groups * 32;
    const uint from = address(SRC0, at) >> 2;
    float x[32];
    float largest = 0;
    [[unroll]] for (uint k = 0; k < 32; ++k) {
        x[k] = src0_f32[from + k];
        largest = max(largest, abs(x[k]));
    }
    const float inverse = largest > 0.0 ? 127.0 / largest : 0.0;
    const uint to = (DST.at.x >> 2) + 12 * i;
    int sum = 0;
    [[unroll]] for (uint w = 0; w < 8; ++w) {
        uint word = 0;
        [[unroll]] for (uint c = 0; c < 4; ++c) {
            const int q = int(roundEven(x[4 * w + c] * inverse));
            sum += q;
            word |= (uint(q) & 255u) << (8 * c);
        }
        dst_u32[to + 4 + w] = word;
    }
    const float scale = largest / 127.0;
    dst_f32[to] = scale;
    dst_f32[to + 1] = scale * float(sum);
}
