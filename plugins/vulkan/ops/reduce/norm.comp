#version 450
// SPDX-License-Identifier: MIT
// norm, rms_norm and l2_norm, F32: a row per group of invocations; y may be x. Also group_norm
// where number(1) groups of number(0) channels are packed and make rows. SCALED, for fused
// nodes: the result times src1, plus src2 if ADDED, both repeated.
#include "shaders/reduce.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2)
layout(constant_id = 3) const uint OP = 0;
layout(constant_id = 4) const bool VECTORS = false; // of four elements, which rows consist of
#ifdef SCALED
GVK_OPERAND(src1, 3)
GVK_OPERAND(src2, 4)
layout(constant_id = 5) const bool ADDED = false;
#endif
const uint OP_NORM = 0, OP_RMS_NORM = 1, OP_L2_NORM = 2, OP_GROUP_NORM = 3;

float sum_of(const vec4 v) { return (v.x + v.y) + (v.z + v.w); }

// Sum of the row, or of the squares around the offset.
float row_sum(const uint x, const uint n, const bool squares, const float offset) {
    const uint step = gl_WorkGroupSize.x;
    vec4 sum = vec4(0);
    if (VECTORS) {
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

// Addresses of the factor and the term of a fused node, whose rows repeat.
void find_operands(const uvec4 at) {
#ifdef SCALED
    scale_at = address(SRC1, at % SRC1.ne);
    term_at = ADDED ? address(SRC2, at % SRC2.ne) : 0;
#endif
}
// Four elements of the result, with scale and term in the fused shader.
vec4 finished4(const vec4 v, const uint i) {
#ifdef SCALED
    const vec4 scaled = v * src1_vec4[(scale_at >> 4) + i];
    return ADDED ? scaled + src2_vec4[(term_at >> 4) + i] : scaled;
#else
    return v;
#endif
}
// Multiplies by the factor and adds the term of a fused node.
float finished(const float v, const uint i) {
#ifdef SCALED
    const float scaled = v * src1_f32[(scale_at >> 2) + i];
    return ADDED ? scaled + src2_f32[(term_at >> 2) + i] : scaled;
#else
    return v;
#endif
}

// Stores (x - offset) * scale for each element of the row.
void scale_row(const uint y, const uint x, const uint n, const float offset, const float scale) {
    const uint step = gl_WorkGroupSize.x;
    if (VECTORS) {
        for (uint i = gl_LocalInvocationID.x; i < n / 4; i += step)
            dst_vec4[(y >> 4) + i] = finished4((src0_vec4[(x >> 4) + i] - offset) * scale, i);
    } else {
        for (uint i = gl_LocalInvocationID.x; i < n; i += step)
            dst_f32[(y >> 2) + i] =
                finished((src0_f32[(x + i * SRC0.nb.x) >> 2] - offset) * scale, i);
    }
}

// First element of row number i; its length may be 0.
uvec4 row_begin(const uint i, out uint n) {
    n = DST.ne.x;
    if (OP != OP_GROUP_NORM) {
        if (i >= DST.ne.y * DST.ne.z * DST.ne.w) n = 0;
        return row_at(DST.ne, i);
    }
    const uint groups = number(1), i3 = i / groups, first = (i - i3 * groups) * number(0);
    const bool none = i3 >= DST.ne.w || first >= DST.ne.z;
    n = none ? 0 : DST.ne.x * DST.ne.y * min(number(0), DST.ne.z - first);
    return uvec4(0, 0, first, i3);
}

// A group of invocations normalises a row. Mean and variance in two passes; L2 bounds the length
// from below instead of adding eps.
void main() {
    uint n;
    const uvec4 at = row_begin(group_linear(), n);
    if (n == 0) return;
    const uint x = address(SRC0, at), y = address(DST, at);
    find_operands(at);
    const bool centred = OP == OP_NORM || OP == OP_GROUP_NORM;
    const float eps = op_param_f32(OP == OP_GROUP_NORM ? 1 : 0);
    const float mean = centred ? row_sum(x, n, false, 0.0) / float(n) : 0.0;
    const float squares = row_sum(x, n, true, mean);
    const float length = OP == OP_L2_NORM ? sqrt(squares) : sqrt(squares / float(n) + eps);
    scale_row(y, x, n, mean, 1.0 / (OP == OP_L2_NORM ? max(length, eps) : length));
}
