#version 450
// SPDX-License-Identifier: MIT
// unary and the other operations of one operand, sqr, sqrt, log, sin, cos, leaky_relu, scale,
// clamp and fill: y = f(x). An invocation per run of up to four elements.
#include "shaders/math.glsl"
#include "shaders/runs.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2)
GVK_RUNS(dst)
GVK_RUNS(src0)
layout(constant_id = 3) const uint DST_TYPE = 0;
layout(constant_id = 4) const uint SRC0_TYPE = 0;
layout(constant_id = 5) const uint DIMS = 4;
layout(constant_id = 6) const uint OP = 0; // of GGML_OP_UNARY, or what ops/elementwise/unary.c adds
layout(constant_id = 7) const bool VECTORS = false; // runs are whole and aligned

// xIELU (Huang, 2024): quadratic above 0, exponential below, where eps bounds the argument.
float xielu(const float x) {
    const float alpha_n = op_param_f32(1), alpha_p = op_param_f32(2), beta = op_param_f32(3);
    if (x > 0.0) return alpha_p * x * x + beta * x;
    const float limited = x < op_param_f32(4) ? x : op_param_f32(4);
    return (expm1_accurate(limited) - x) * alpha_n + beta * x;
}

// NaN gives 0: it is not above the lower limit.
float hard_sigmoid(const float x) {
    const float y = (x + 3.0) / 6.0;
    return y > 0.0 ? (y < 1.0 ? y : 1.0) : 0.0;
}

// Like roundf(): GLSL's round() leaves the direction of halves to the driver.
float round_half_away(const float x) {
    const float a = abs(x), whole = floor(a);
    const float y = a - whole >= 0.5 ? whole + 1.0 : whole;
    return is_nan(x) || a >= 8388608.0 ? x : x < 0.0 ? -y : y;
}

float clamp_range(const float x) {
    const float high = x < op_param_f32(1) ? x : op_param_f32(1); // NaN: the upper limit
    return high > op_param_f32(0) ? high : op_param_f32(0);
}

// Numbers are those of enum ggml_unary_op.
float unary(const float x) {
    switch (OP) {
    case 0: return abs(x);
    case 1: return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : 0.0;
    case 2: return -x;
    case 3: return x > 0.0 ? 1.0 : 0.0;
    case 4: return tanh_accurate(x);
    case 5: return x > 0.0 ? x : expm1_accurate(x);
    case 6: return x > 0.0 ? x : 0.0;
    case 7: return sigmoid_accurate(x);
    case 8: return gelu_accurate(x);
    case 9: return gelu_quick_accurate(x);
    case 10: return silu_accurate(x);
    case 11: return x * hard_sigmoid(x);
    case 12: return hard_sigmoid(x);
    case 13: return exp_accurate(x);
    case 14: return expm1_accurate(x);
    case 15: return x > 20.0 ? x : log1p_accurate(exp_accurate(x));
    case 16: return gelu_erf_accurate(x);
    case 17: return xielu(x);
    case 18: return floor(x);
    case 19: return ceil(x);
    case 20: return round_half_away(x);
    default: return trunc(x);
    }
}

// Numbers from 32 on are operations of their own, as elementwise/unary.c assigns them.
float compute(const float x) {
    switch (OP) {
    case 32: return x * x;
    case 33: return sqrt(x);
    case 34: return log_accurate(x);
    case 35: return cos_sin(x).y;
    case 36: return cos_sin(x).x;
    case 37: return x > 0.0 ? x : op_param_f32(0) * x;
    case 38: return x * op_param_f32(0) + op_param_f32(1);
    case 39: return clamp_range(x);
    case 40: return op_param_f32(0);
    default: return unary(x);
    }
}

// As binary.comp, with one operand.
void main() {
    const uvec4 ne = run_extents(DST.ne, DIMS);
    const Run run = run_at(ne, invocation_linear(), DIMS);
    if (run.n == 0) return;
    const uint y = address(DST, run.at), x = address(SRC0, run.at);
    if (VECTORS) {
        const vec4 v = src0_load4(SRC0_TYPE, x);
        dst_store4(DST_TYPE, y, vec4(compute(v.x), compute(v.y), compute(v.z), compute(v.w)));
        return;
    }
    for (uint i = 0; i < run.n; ++i)
        dst_store(DST_TYPE, y + i * DST.nb.x, compute(src0_load(SRC0_TYPE, x + i * SRC0.nb.x)));
}
