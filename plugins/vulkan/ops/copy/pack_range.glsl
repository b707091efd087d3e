// SPDX-License-Identifier: MIT
// Scales and minima of Q2_K, Q4_K and Q5_K: value = d scale q - dmin minimum. The search is that of
// core/quant/encode_range.c with equal weights: each group by alternating least squares from 16
// starts; then every group takes the best of 16 pairs of multiples of d and dmin, these are fitted
// again to what was taken, the groups choose again, and the better of both stays.
#ifndef PACK_RANGE_GLSL
#define PACK_RANGE_GLSL

#include "shaders/double_float.glsl"

const float FLOAT_MAX = 3.402823466e38, FLOAT_MIN = 1.17549435e-38;

float scales[16], minima[16]; // of the groups, as whole numbers at last
float quants[16];             // of a group, for pack_q3_K

// A group's own optimum, and sums over its elements.
float own_scale[16], own_min[16], mean_quant[16], sum_x[16];

float quant_of(const float v, const float inverse_scale, const float shift, const float top) {
    precise float q = v * inverse_scale + shift;
    const float kept = q > 0.0 ? q : 0.0;
    return trunc(kept < top ? kept : top);
}

// Lowers the error by the result, from that of encoding everything as 0; `range` is a scale and
// a minimum before and after.
float fit_range(const uint from, const uint n, const float top, const float sum, inout vec2 range) {
    precise float id = 1.0 / range.x;
    precise float shift = range.y * id + 0.5;
    precise float l1 = 0.0, l2 = 0.0, xl = 0.0;
    for (uint i = from; i < from + n; ++i) {
        const float l = quant_of(x[i], id, shift, top);
        l1 += l;
        l2 += l * l;
        xl += l * x[i];
    }
    const float w = float(n);
    precise float inverse_w = 1.0 / w;
    precise float product = w * l2;
    precise float det = product - l1 * l1;
    precise float least = 1e-5 * product;
    const float divisor = det > least ? det : FLOAT_MAX;
    precise float free_scale = (w * xl - sum * l1) / divisor;
    precise float free_min = (free_scale * l1 - sum) * inverse_w;
    const float low = free_scale > 0.0 && !(free_min < 0.0) ? free_min : 0.0;
    precise float scale = (xl + low * l1) / (l2 > FLOAT_MIN ? l2 : FLOAT_MIN);
    precise float gain = scale * xl - low * sum;
    range = vec2(scale > FLOAT_MIN ? scale : FLOAT_MIN, low);
    return gain;
}

// The best scale and minimum of a group; both at least 0.
void fit_group(const uint g, const uint n, const float top) {
    const uint from = g * n;
    precise float sum = 0.0;
    for (uint i = from; i < from + n; ++i) sum += x[i];
    sum_x[g] = sum;
    vec2 ends = range_of(from, n);
    ends.x = min(ends.x, 0.0);
    vec2 best = vec2(0.0, -ends.x), trials[16];
    if (ends.y > ends.x) {
        precise float span = ends.y - ends.x;
        precise float step = 0.7 * span / top;
        for (uint k = 0; k < 16; ++k) {
            precise float low = ends.x + float(int(k % 4) - 1) * step;
            precise float high = ends.y - float(int(k / 4) - 1) * step;
            precise float clipped = high - low, least = 0.1 * span;
            precise float scale = max(clipped, least) / top;
            trials[k] = vec2(scale, -low);
        }
        float best_gain = -FLOAT_MAX;
        for (uint pass = 0; pass < 2; ++pass) {
            for (uint k = 0; k < 16; ++k) {
                const float gain = fit_range(from, n, top, sum, trials[k]);
                if (!(gain > best_gain)) continue;
                best_gain = gain;
                best = trials[k];
            }
        }
    }
    precise float mean = sum / float(n);
    precise float quant = (mean + best.y) / best.x;
    own_scale[g] = best.x;
    own_min[g] = best.y;
    mean_quant[g] = best.x > 0.0 ? quant : 0.0;
}

// Squared error of a group with that scale and minimum; the arithmetic is the CPU's, step by
// step.
float error_of(const uint from, const uint n, const float top, const vec2 range) {
    precise float id = 1.0 / range.x;
    precise float shift = range.y * id + 0.5;
    precise float sum = 0.0;
    for (uint i = from; i < from + n; ++i) {
        precise float diff = quant_of(x[i], id, shift, top) * range.x - range.y - x[i];
        sum += diff * diff;
    }
    return sum;
}

// The group's multiples of d and dmin with the least error, which is returned.
float choose_multiples(const uint g, const uint n, const float top, const float most, const vec2 d) {
    const float id = inverse(d.x), id_min = inverse(d.y);
    precise float wanted = own_scale[g] * id;
    const float first = trunc(limited(wanted, 0.0, most)) - 1.0;
    float best = 0.0;
    for (uint k = 0; k < 16; ++k) {
        const float scale = limited(first + float(k / 4), 0.0, most);
        precise float product = d.x * scale;
        const float trial = product > FLOAT_MIN ? product : FLOAT_MIN;
        precise float low = own_min[g] + (trial - own_scale[g]) * mean_quant[g];
        precise float wanted_min = low * id_min;
        const float first_min = trunc(limited(wanted_min, 0.0, most)) - 1.0;
        const float minimum = limited(first_min + float(k % 4), 0.0, most);
        precise float trial_min = d.y * minimum;
        const float error = error_of(g * n, n, top, vec2(trial, trial_min));
        if (k > 0 && !(error < best)) continue;
        best = error;
        scales[g] = scale;
        minima[g] = minimum;
    }
    return best;
}

float choose_groups(const uint n, const float top, const float most, const vec2 d) {
    precise float sum = 0.0;
    for (uint g = 0; g < 256 / n; ++g) sum += choose_multiples(g, n, top, most, d);
    return sum;
}

// What quant_put_range() does with a group's elements.
float final_quant(const uint g, const uint i, const float top, const vec2 d) {
    precise float scale = d.x * scales[g], low = d.y * minima[g];
    precise float id = 1.0 / scale;
    precise float shift = low * (scale > 0.0 ? id : 0.0) + 0.5;
    return quant_of(x[i], scale > 0.0 ? id : 0.0, shift, top);
}

vec2 df_quotient(const vec2 a, const vec2 b) {
    const float q = a.x / b.x;
    const vec2 rest = df_add(a, -df_multiply(b, q));
    return two_sum(q, rest.x / b.x);
}

// d and dmin by least squares for the multiples and quants. Sums of quants are whole numbers.
vec2 refit(const uint n, const float top, const vec2 d) {
    uint aa = 0, bb = 0;
    int ab = 0;
    vec2 ax = vec2(0), bx = vec2(0);
    for (uint g = 0; g < 256 / n; ++g) {
        uint l1 = 0, l2 = 0;
        precise float xl = 0.0;
        for (uint i = g * n; i < (g + 1) * n; ++i) {
            const float l = final_quant(g, i, top, d);
            l1 += uint(l);
            l2 += uint(l) * uint(l);
            xl += l * x[i];
        }
        const uint scale = uint(scales[g]), minimum = uint(minima[g]);
        aa += scale * scale * l2;
        ab -= int(scale * minimum * l1);
        bb += minimum * minimum * n;
        ax = df_add(ax, two_product(scales[g], xl));
        bx = df_add(bx, two_product(-minima[g], sum_x[g]));
    }
    const vec2 a = two_sum(float(aa & ~0xffffu), float(aa & 0xffffu));
    const vec2 c = two_sum(float(ab), float(ab - int(float(ab))));
    const vec2 b = two_sum(float(bb), float(int(bb) - int(float(bb))));
    const vec2 product = df_multiply(a, b), det = df_add(product, -df_multiply(c, c));
    vec2 fitted = vec2(0);
    if (det.x > 1e-9 * product.x) {
        fitted.x = df_quotient(df_add(df_multiply(ax, b), -df_multiply(bx, c)), det).x;
        fitted.y = df_quotient(df_add(df_multiply(bx, a), -df_multiply(ax, c)), det).x;
    } else if (aa > 0u) {
        fitted.x = df_quotient(ax, a).x;
    }
    return max(fitted, vec2(0));
}

// As a half: never 0 for d > 0, never infinite.
float half_scale(const float d) {
    const float kept = limited(d, 5.9604645e-8, 65504.0);
    return d == 0.0 ? 0.0 : unpackHalf2x16(f32_to_f16(kept)).x;
}

// A group's elements that are no numbers count as 0; none is beyond 2^30.
void open_elements() {
    for (uint i = 0; i < 256; ++i) x[i] = is_nan(x[i]) ? 0.0 : clamp(x[i], -1073741824.0, 1073741824.0);
}

// Groups of n: leaves their multiples in `scales` and `minima`, the quants in x.
void encode_ranges(const uint n, const float top, const float most, const uint at_d) {
    float first_scales[16], first_minima[16];
    float largest = 0.0, largest_min = 0.0;
    open_elements();
    for (uint g = 0; g < 256 / n; ++g) {
        fit_group(g, n, top);
        largest = max(largest, own_scale[g]);
        largest_min = max(largest_min, own_min[g]);
    }
    precise float first = largest / most, first_min = largest_min / most;
    vec2 d = vec2(half_scale(first), half_scale(first_min));
    const float error = choose_groups(n, top, most, d);
    const vec2 fitted = refit(n, top, d);
    const vec2 next = vec2(half_scale(fitted.x), half_scale(fitted.y));
    for (uint g = 0; g < 16; ++g) {
        first_scales[g] = scales[g];
        first_minima[g] = minima[g];
    }
    if (choose_groups(n, top, most, next) < error) {
        d = next;
    } else {
        scales = first_scales;
        minima = first_minima;
    }
    put_half(at_d, d.x);
    put_half(at_d + 2, d.y);
    for (uint i = 0; i < 256; ++i) x[i] = final_quant(i / n, i, top, d);
}

#endif
