#version 450
// SPDX-License-Identifier: MIT
// upscale and interpolate: resamples dimensions 0 and 1 by MODE; dimensions 2 and 3 take the
// nearest. Positions between elements are fractions of integers, so that they are exact. An
// invocation per element of the result.
#include "shaders/common.glsl"
layout(constant_id = 3) const uint DST_TYPE = 0;
layout(constant_id = 4) const uint SRC_TYPE = 0;
layout(constant_id = 5) const uint MODE = 0; // 0 nearest, 1 bilinear, 2 bicubic, 3 antialiased
layout(constant_id = 6) const uint ALIGN_CORNERS = 0;
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2)

// With aligned corners the ends of both grids coincide, otherwise their borders do.
bool inner(const uint d) {
    return ALIGN_CORNERS != 0 && d < 2 && DST.ne[d] > 1 && SRC0.ne[d] > 1;
}
uint from(const uint d) { return SRC0.ne[d] - (inner(d) ? 1 : 0); }
uint to(const uint d) { return DST.ne[d] - (inner(d) ? 1 : 0); }

// i - q * scale without rounding of the products: factors in halves of 12 bits.
float residual(const float i, const float q, const float scale) {
    const float q_high = uintBitsToFloat(floatBitsToUint(q) & 0xfffff000u);
    const float s_high = uintBitsToFloat(floatBitsToUint(scale) & 0xfffff000u);
    precise float q_low = q - q_high;
    precise float s_low = scale - s_high;
    precise float rest = ((i - q_high * s_high) - q_high * s_low - q_low * s_high) - q_low * s_low;
    return rest;
}

// floor(i / scale) as if the quotient were rounded to single precision first.
uint nearest_index(const uint d, const uint i) {
    const float scale = uintBitsToFloat(number(d));
    uint q = uint(float(i) / scale);
    if (q > 0 && residual(float(i), float(q), scale) < 0) --q;
    // Just below q + 1 the quotient rounds up to it.
    const float next = float(q + 1);
    const float ulp = uintBitsToFloat((floatBitsToUint(next) & 0x7f800000u) - (23u << 23));
    const float half_ulp = (floatBitsToUint(next) & 0x7fffffu) == 0 ? 0.25 * ulp : 0.5 * ulp;
    if (residual(float(i), next, scale) >= -half_ulp * scale) ++q;
    return min(q, SRC0.ne[d] - 1);
}

// Position of element i: index below it, and the rest as a fraction.
void position(const uint d, const uint i, out int below, out float rest) {
    const int denominator = int(ALIGN_CORNERS != 0 ? to(d) : 2 * to(d));
    const int numerator =
        ALIGN_CORNERS != 0 ? int(i * from(d)) : int((2 * i + 1) * from(d)) - int(to(d));
    below = numerator / denominator;
    if (numerator < below * denominator) --below;
    rest = float(numerator - below * denominator) / float(denominator);
}

uint clamp_index(const int i, const uint d) { return uint(clamp(i, 0, int(SRC0.ne[d]) - 1)); }

float pixel(const uint x, const uint y, const uvec2 outer) {
    return src0_load(SRC_TYPE, address(SRC0, uvec4(x, y, outer)));
}

// Weights two neighbours along each dimension; at the borders both are the last element.
float bilinear(const uvec2 i, const uvec2 outer) {
    ivec2 below;
    vec2 rest;
    position(0, i.x, below.x, rest.x);
    position(1, i.y, below.y, rest.y);
    const uint x0 = clamp_index(below.x, 0), x1 = clamp_index(below.x + 1, 0);
    const uint y0 = clamp_index(below.y, 1), y1 = clamp_index(below.y + 1, 1);
    const float wx = below.x < 0 ? 0 : rest.x, wy = below.y < 0 ? 0 : rest.y;
    const float a = pixel(x0, y0, outer) * (1 - wx) + pixel(x1, y0, outer) * wx;
    const float b = pixel(x0, y1, outer) * (1 - wx) + pixel(x1, y1, outer) * wx;
    return a * (1 - wy) + b * wy;
}

// Keys' kernel with a = -0.75, at distance t.
float cubic_weight(const float t) {
    const float a = -0.75;
    return t <= 1 ? ((a + 2) * t - (a + 3)) * t * t + 1 : ((a * t - 5 * a) * t + 8 * a) * t - 4 * a;
}

// Weights four neighbours along each dimension.
float bicubic(const uvec2 i, const uvec2 outer) {
    ivec2 below;
    vec2 rest;
    position(0, i.x, below.x, rest.x);
    position(1, i.y, below.y, rest.y);
    float sum = 0;
    for (int k = 0; k < 4; ++k) {
        float line = 0;
        for (int j = 0; j < 4; ++j)
            line += pixel(clamp_index(below.x + j - 1, 0), clamp_index(below.y + k - 1, 1), outer) *
                    cubic_weight(abs(rest.x + 1 - float(j)));
        sum += line * cubic_weight(abs(rest.y + 1 - float(k)));
    }
    return sum;
}

// Elements [begin, end) under a triangle. With aligned corners its end may be a whole number,
// which must not be rounded down: it is exact.
void triangle(const uint d, const uint i, out int begin, out int end, out float centre,
              out float inverse) {
    const float offset = ALIGN_CORNERS != 0 ? 0 : 0.5;
    const float step = float(from(d)) / float(to(d));
    const float x = (float(i) + offset) * step;
    const float support = max(1, step);
    begin = max(int(x - support + offset), 0);
    end = ALIGN_CORNERS != 0 ? int((i * from(d) + max(from(d), to(d))) / to(d))
                             : int(x + support + offset);
    end = min(end, int(SRC0.ne[d]));
    centre = x - offset;
    inverse = 1 / support;
}

// Mean under a triangle that is as wide as a step where the image shrinks, so that no element is
// skipped.
float antialiased(const uvec2 i, const uvec2 outer) {
    int x0, x1, y0, y1;
    float cx, cy, ix, iy;
    triangle(0, i.x, x0, x1, cx, ix);
    triangle(1, i.y, y0, y1, cy, iy);
    float sum = 0, total = 0;
    for (int y = y0; y < y1; ++y) {
        const float wy = max(1 - abs((float(y) - cy) * iy), 0);
        for (int x = x0; x < x1; ++x) {
            const float w = max(1 - abs((float(x) - cx) * ix), 0) * wy;
            sum += pixel(x, y, outer) * w;
            total += w;
        }
    }
    return total > 0 ? sum / total : 0;
}

// Dimensions 2 and 3 are never interpolated.
void main() {
    const uint i = invocation_linear();
    if (i >= DST.ne.x * DST.ne.y * DST.ne.z * DST.ne.w) return;
    const uvec4 at = element_at(DST.ne, i);
    const uvec2 outer = uvec2(nearest_index(2, at.z), nearest_index(3, at.w));
    float value;
    if (MODE == 0) value = pixel(nearest_index(0, at.x), nearest_index(1, at.y), outer);
    else if (MODE == 1) value = bilinear(at.xy, outer);
    else if (MODE == 2) value = bicubic(at.xy, outer);
    else value = antialiased(at.xy, outer);
    dst_store(DST_TYPE, address(DST, at), value);
}
