#version 450
// SPDX-License-Identifier: MIT
// soft_max of scale * x + slope * mask, F32, with an optional sink in the denominator. A row per
// group; two passes over it, the first finds maximum and sum together. y may be x.
#include "shaders/math.glsl"
#include "shaders/reduce.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2)
GVK_OPERAND(src1, 3)
GVK_OPERAND(src2, 4)
layout(constant_id = 3) const bool MASK = false;
layout(constant_id = 4) const uint MASK_TYPE = 0;
layout(constant_id = 5) const bool SINKS = false;
layout(constant_id = 6) const bool VECTORS = false; // STEP elements lie in one
layout(constant_id = 7) const bool MASK_VECTORS = false;

// The mask's slope for a head (ALiBi); number(0): largest power of two within the heads.
float slope_of(const uint head) {
    const float max_bias = op_param_f32(1), below = float(number(0));
    if (!(max_bias > 0.0)) return 1.0;
    const float exponent = head < number(0)
                               ? -max_bias / below * float(head + 1)
                               : -max_bias / (2.0 * below) * float(2 * (head - number(0)) + 1);
    return exp_accurate(exponent * 0.69314718055994530942);
}

const uint STEP = 4; // elements that an invocation takes at once

// Row of the operands at hand.
uint x, mask, y;
float slope;

// Element i of scale * x + slope * mask.
float scaled(const uint i) {
    const float z = src0_f32[(x >> 2) + i] * op_param_f32(0);
    return MASK ? z + slope * src1_load(MASK_TYPE, mask + i * SRC1.nb.x) : z;
}

// Four elements of the mask from i on.
vec4 mask_from(const uint i) {
    const uint at = mask + i * SRC1.nb.x, nb = SRC1.nb.x;
    if (MASK_VECTORS) {
        if (MASK_TYPE == TYPE_F32) return src1_vec4[at >> 4];
        return vec4(unpackHalf2x16(src1_u32[at >> 2]), unpackHalf2x16(src1_u32[(at >> 2) + 1]));
    }
    return vec4(src1_load(MASK_TYPE, at), src1_load(MASK_TYPE, at + nb),
                src1_load(MASK_TYPE, at + 2 * nb), src1_load(MASK_TYPE, at + 3 * nb));
}

// Elements from i on; behind the row's end -infinity.
vec4 scaled_from(const uint i) {
    if (VECTORS) {
        const vec4 z = src0_vec4[(x + i * 4) >> 4] * op_param_f32(0);
        return MASK ? z + slope * mask_from(i) : z;
    }
    const uint n = DST.ne.x;
    vec4 z = vec4(-FLT_INFINITY);
    for (uint k = 0; k < STEP; ++k) {
        if (i + k < n) z[k] = scaled(i + k);
    }
    return z;
}

vec4 exp_of(const vec4 v) {
    return vec4(exp_accurate(v.x), exp_accurate(v.y), exp_accurate(v.z), exp_accurate(v.w));
}

// Stores four elements, or what is left of the row.
void store_from(const uint i, const vec4 v) {
    if (VECTORS) {
        dst_vec4[(y + i * 4) >> 4] = v;
        return;
    }
    for (uint k = 0; k < STEP; ++k) {
        if (i + k < DST.ne.x) dst_f32[(y >> 2) + i + k] = v[k];
    }
}

// Largest element and sum of e^(z - largest) of this invocation's elements, in one pass: the sum is
// scaled when a larger one turns up.
vec2 scan(const float least) {
    const uint step = gl_WorkGroupSize.x * STEP;
    float largest = least, sum = 0.0;
    for (uint i = gl_LocalInvocationID.x * STEP; i < DST.ne.x; i += step) {
        const vec4 z = scaled_from(i);
        const float next = larger(larger(larger(z.x, z.y), larger(z.z, z.w)), largest);
        if (next == -FLT_INFINITY) {
            if (is_nan(z.x) || is_nan(z.y) || is_nan(z.z) || is_nan(z.w)) sum = FLT_NAN;
            continue;
        }
        const vec4 e = exp_of(z - next);
        sum = sum * exp_accurate(largest - next) + ((e.x + e.y) + (e.z + e.w));
        largest = next;
    }
    return vec2(largest, sum);
}

// One pass finds maximum and sum together (online softmax), a second one writes the result.
void main() {
    const uint row = group_linear();
    if (row >= DST.ne.y * DST.ne.z * DST.ne.w) return;
    const uvec4 at = row_at(DST.ne, row);
    x = address(SRC0, at);
    y = address(DST, at);
    mask = MASK ? address(SRC1, uvec4(0, at.y, at.z % SRC1.ne.z, at.w % SRC1.ne.w)) : 0u;
    slope = slope_of(at.z);
    const float sink = SINKS ? src2_f32[(SRC2.at.x >> 2) + at.z] : -FLT_INFINITY;
    const vec2 part = scan(sink);
    const float largest = group_max(part.x);
    // Each invocation's sum is relative to its own maximum.
    const float scale = part.x == largest ? 1.0 : exp_accurate(part.x - largest);
    float sum = group_sum(part.y * scale);
    if (SINKS) sum += exp_accurate(sink - largest);
    const float inverse = 1.0 / sum;
    const uint step = gl_WorkGroupSize.x * STEP;
    for (uint i = gl_LocalInvocationID.x * STEP; i < DST.ne.x; i += step)
        store_from(i, exp_of(scaled_from(i) - largest) * inverse);
}
