// SPDX-License-Identifier: MIT
// What the searching encoders do first and last: elements and weights in, scales out.
#include <float.h>

#include "quant/encode_search.h"
#include "quant/quant_block.h"

// NaN counts as 0 and infinities as the limit. Written with conditional moves.
static float finite_element(float x) {
    const float limit = 1073741824.0f; // 2^30: what no type reaches, and can be squared
    const float bounded = x < limit ? x : limit;
    const float number = x == x ? bounded : 0.0f;
    return number > -limit ? number : -limit;
}

// Weights are scaled to at most 1, so that sums of products stay finite whatever unit the
// importance has.
void quant_load(const float *x, const float *importance, int n, struct quant_elements *out) {
    float max = 0.0f;
    for (int i = 0; i < n; ++i) {
        out->x[i] = finite_element(x[i]);
        const float w = importance ? importance[i] : 1.0f;
        out->w[i] = w > 0.0f && w <= FLT_MAX ? w : 0.0f;
        max = MAX(max, out->w[i]);
    }
    if (!importance) return;
    float sum = 0.0f;
    for (int i = 0; i < n; ++i) {
        out->w[i] = max > 0.0f ? out->w[i] / max : 1.0f;
        sum += out->w[i];
    }
    // The floor: 5 % of the mean weight.
    const float floor = 0.05f * sum / (float)n;
    for (int i = 0; i < n; ++i)
        out->w[i] = (out->w[i] + floor) / (1.0f + floor);
}

// Clamped to what F16 can hold, since a scale of 0 or infinity would destroy the block.
ggml_half quant_half_scale(float d, float *out_rounded) {
    const float least = 5.9604645e-8f; // 2^-24
    const float magnitude = fabsf(d);
    const float bounded = magnitude < 65504.0f ? magnitude : 65504.0f;
    const float kept = bounded > least ? bounded : least;
    const ggml_half half = GGML_FP32_TO_FP16(d == 0.0f ? 0.0f : d < 0.0f ? -kept : kept);
    *out_rounded = GGML_FP16_TO_FP32(half);
    return half;
}
