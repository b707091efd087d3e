#version 450
// SPDX-License-Identifier: MIT
// Gated linear units: y = act(x) g; x and g are two operands or the halves of one.
#include "math.glsl"
#include "runs.glsl"
VK_OPERAND(dst, 1)
VK_OPERAND(src0, 2)
VK_OPERAND(src1, 3)
VK_RUNS(dst)
VK_RUNS(src0)
VK_RUNS(src1)
layout(constant_id = 3) const uint TYPE = 0;
layout(constant_id = 4) const uint OP = 0;
layout(constant_id = 5) const uint DIMS = 4;
layout(constant_id = 6) const bool SPLIT = false;
layout(constant_id = 7) const bool SWAPPED = false;

float swiglu_oai(const float x, const float g) {
    const float limit = op_param_f32(3);
    const float limited = x < limit ? x : limit;
    const float low = g < limit ? g : limit;
    const float gate = low > -limit ? low : -limit;
    return limited / (1.0 + exp_accurate(-op_param_f32(2) * limited)) * (gate + 1.0);
}

float compute(const float x, const float g) {
    switch (OP) {
    case 0: return (x > 0.0 ? x : 0.0) * g;
    case 1: return gelu_accurate(x) * g;
    case 2: return silu_accurate(x) * g;
    case 3: return swiglu_oai(x, g);
    case 4: return gelu_erf_accurate(x) * g;
    default: return gelu_quick_accurate(x) * g;
    }
}

// Address of the gate of a run.
uint gate_address(const uvec4 at, const uint second_half) {
    return SPLIT ? address(SRC1, at) : address(SRC0, at) + (SWAPPED ? 0u : second_half);
}

void main() {
    const uvec4 ne = run_extents(DST.ne, DIMS);
    const Run run = run_at(ne, invocation_linear(), DIMS);
    if (run.n == 0) return;
    const uint size = plain_size(TYPE), second_half = DST.ne.x * size;
    const uint y = address(DST, run.at), g = gate_address(run.at, second_half);
    const uint x = address(SRC0, run.at) + (!SPLIT && SWAPPED ? second_half : 0u);
    if (ne.x % RUN == 0 && runs_aligned(DST, TYPE, DIMS) && runs_aligned(SRC0, TYPE, DIMS) &&
        (!SPLIT || runs_aligned(SRC1, TYPE, DIMS))) {
        const vec4 a = src0_load4(TYPE, x), b = SPLIT ? src1_load4(TYPE, g) : src0_load4(TYPE, g);
        dst_store4(TYPE, y, vec4(compute(a.x, b.x), compute(a.y, b.y), compute(a.z, b.z),
                                 compute(a.w, b.w)));
        return;
    }
    for (uint i = 0; i < run.n; ++i) {
        const uint step = i * size;
        const float b = SPLIT ? src1_load(TYPE, g + step) : src0_load(TYPE, g + step);
        dst_store(TYPE, y + step, compute(src0_load(TYPE, x + step), b));
    }
}
