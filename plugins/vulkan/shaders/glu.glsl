// SPDX-License-Identifier: MIT
// The functions of glu, by GGML_GLU_OP_x.
#ifndef GLU_GLSL
#define GLU_GLSL

#include "shaders/common.glsl"
#include "shaders/math.glsl"

// Both inputs are limited; the gate is shifted by 1.
float swiglu_oai(const float x, const float g) {
    const float limit = op_param_f32(3);
    const float limited = x < limit ? x : limit;
    const float high = g > -limit ? g : -limit;
    const float gate = high < limit ? high : limit;
    return limited / (1.0 + exp_accurate(-op_param_f32(2) * limited)) * (gate + 1.0);
}

float swiglu_clamp(const float x, const float g) {
    const float limit = op_param_f32(3);
    const float high = g > -limit ? g : -limit;
    return silu_accurate(x < limit ? x : limit) * (high < limit ? high : limit);
}

// The numbering is that of enum ggml_glu_op.
float glu(const uint op, const float x, const float g) {
    switch (op) {
    case 0: return (x > 0.0 ? x : 0.0) * g;
    case 1: return gelu_accurate(x) * g;
    case 2: return silu_accurate(x) * g;
    case 3: return swiglu_oai(x, g);
    case 4: return gelu_erf_accurate(x) * g;
    case 5: return gelu_quick_accurate(x) * g;
    default: return swiglu_clamp(x, g);
    }
}

#endif
