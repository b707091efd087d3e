#version 450
// SPDX-License-Identifier: MIT
// norm, rms_norm, l2_norm: a row per group. y may be x. SCALED: times src1, plus src2 if ADDED, both
// of them repeated.
#include "reduce.glsl"
VK_OPERAND(dst, 1)
VK_OPERAND(src0, 2)
#ifdef SCALED
VK_OPERAND(src1, 3)
VK_OPERAND(src2, 4)
layout(constant_id = 4) const bool ADDED = false;
#endif
layout(constant_id = 3) const uint OP = 0;
const uint OP_NORM = 0, OP_RMS_NORM = 1, OP_L2_NORM = 2;

// Elements that an invocation takes at once; 4 where rows are aligned.
uint width() {
    uint bits = DST.at.x | DST.nb.y | DST.nb.z | DST.nb.w | SRC0.at.x | SRC0.nb.y |
                      SRC0.nb.z | SRC0.nb.w | DST.ne.x * 4;
#ifdef SCALED
    bits |= SRC1.at.x | SRC1.nb.y | SRC1.nb.z | SRC1.nb.w;
    if (ADDED) bits |= SRC2.at.x | SRC2.nb.y | SRC2.nb.z | SRC2.nb.w;
#endif
    return SRC0.nb.x == 4 && (bits & 15u) == 0u ? 4 : 1;
}

float sum_of(const vec4 v) { return (v.x + v.y) + (v.z + v.w); }

// Sum of the row, or of the squares around the offset.
float row_sum(const uint x, const bool squares, const float offset, const bool wide) {
    const uint n = DST.ne.x, step = gl_WorkGroupSize.x;
    vec4 sum = vec4(0);
    if (wide) {
        for (uint i = gl_LocalInvocationID.x; i < n / 4; i += step) {
            const vec4 v = src0_vec4[(x >> 4) + i] - offset;
            sum += squares ? v * v : v;
        }
    } else {
        for (uint i = gl_LocalInvocationID.x; i < n; i += step) {
            const float v = src0_f32[(x + i * SRC0.nb.x) >> 2] - offset;
            sum.x += squares ? v * v : v;
        }
    }
    return group_sum(sum_of(sum));
}

uint scale_at, term_at; // rows of src1 and src2

void find_operands(const uvec4 at) {
#ifdef SCALED
    scale_at = address(SRC1, at % SRC1.ne);
    term_at = ADDED ? address(SRC2, at % SRC2.ne) : 0;
#endif
}
vec4 finished4(const vec4 v, const uint i) {
#ifdef SCALED
    const vec4 scaled = v * src1_vec4[(scale_at >> 4) + i];
    return ADDED ? scaled + src2_vec4[(term_at >> 4) + i] : scaled;
#else
    return v;
#endif
}
float finished(const float v, const uint i) {
#ifdef SCALED
    const float scaled = v * src1_f32[(scale_at >> 2) + i];
    return ADDED ? scaled + src2_f32[(term_at >> 2) + i] : scaled;
#else
    return v;
#endif
}

void scale_row(const uint y, const uint x, const float offset, const float scale, const bool wide) {
    const uint n = DST.ne.x, step = gl_WorkGroupSize.x;
    if (wide) {
        for (uint i = gl_LocalInvocationID.x; i < n / 4; i += step)
            dst_vec4[(y >> 4) + i] = finished4((src0_vec4[(x >> 4) + i] - offset) * scale, i);
    } else {
        for (uint i = gl_LocalInvocationID.x; i < n; i += step)
            dst_f32[(y >> 2) + i] =
                finished((src0_f32[(x + i * SRC0.nb.x) >> 2] - offset) * scale, i);
    }
}

void main() {
    const uint row = group_linear();
    if (row >= DST.ne.y * DST.ne.z * DST.ne.w) return;
    const uvec4 at = row_at(DST.ne, row);
    const uint x = address(SRC0, at), y = address(DST, at);
    const bool wide = width() == 4;
    find_operands(at);
    const float n = float(DST.ne.x), eps = op_param_f32(0);
    const float mean = OP == OP_NORM ? row_sum(x, false, 0.0, wide) / n : 0.0;
    const float squares = row_sum(x, true, mean, wide);
    const float length = OP == OP_L2_NORM ? sqrt(squares) : sqrt(squares / n + eps);
    scale_row(y, x, mean, 1.0 / (OP == OP_L2_NORM ? max(length, eps) : length), wide);
}
