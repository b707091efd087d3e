// SPDX-License-Identifier: MIT
// Pooling, resampling, reflected borders, windows and relative positions: a thread per element of
// the result.
#include "tensor.h"

// --- pooling -------------------------------------------------------------------------------------

// What a window of size k covers of n elements, without what lies in the padding.
struct pool_span {
    i64 begin, end;
};
GPU_FN pool_span span_of(u64 i, int k, int stride, int padding, i64 n) {
    const i64 first = (i64)i * stride - padding;
    return {first > 0 ? first : 0, first + k < n ? first + k : n};
}

#define POOL_LEAST gpu_float(0xff7fffffu) // -FLT_MAX: the largest element of no elements

// params: 0 the largest, 1 the mean; window, stride and padding of each dimension. numbers[0]:
// dimensions, 1 or 2. A mean is over what is covered of one dimension, over the whole window of
// two.
GPU_KERNEL(kernel_pool, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    const gpu_at to = gpu_element_at(y, i);
    const int dims = (int)p.numbers[0];
    const pool_span columns =
        span_of(to.x, p.params[1], p.params[1 + dims], p.params[1 + 2 * dims], x.ne[0]);
    pool_span rows = {(i64)to.y, (i64)to.y + 1};
    if (dims == 2) rows = span_of(to.y, p.params[2], p.params[4], p.params[6], x.ne[1]);
    float largest = POOL_LEAST;
    gpu_wide sum = {0.0f, 0.0f};
    for (i64 r = rows.begin; r < rows.end; ++r) {
        GPU_GLOBAL const u8 *row = gpu_row(x, (u64)r, to.z, to.w);
        for (i64 c = columns.begin; c < columns.end; ++c) {
            const float value = gpu_load(x.type, row + c * x.nb[0]);
            largest = gpu_larger(largest, value);
            sum = gpu_wide_add(sum, {value, 0.0f});
        }
    }
    const i64 covered = columns.end - columns.begin;
    const float n = dims == 2 ? (float)p.params[1] * (float)p.params[2] : (float)covered;
    const float mean = n > 0.0f ? sum.high / n : 0.0f;
    *(GPU_GLOBAL float *)gpu_address(y, to) = p.params[0] == 0 ? largest : mean;
}

// Whether (x, y) is the first of the largest elements of a window; of none if none is above
// -FLT_MAX.
GPU_FN bool is_first_largest(GPU_ARGS gpu_operand &input, gpu_at at, pool_span columns,
                             pool_span rows) {
    float largest = POOL_LEAST;
    i64 best_column = -1, best_row = -1;
    for (i64 r = rows.begin; r < rows.end; ++r) {
        GPU_GLOBAL const u8 *row = gpu_row(input, (u64)r, at.z, at.w);
        for (i64 c = columns.begin; c < columns.end; ++c) {
            const float value = gpu_load(input.type, row + c * input.nb[0]);
            if (!(value > largest)) continue;
            largest = value;
            best_column = c;
            best_row = r;
        }
    }
    return best_column == (i64)at.x && best_row == (i64)at.y;
}

// The first window along a dimension that may cover element i.
GPU_FN i64 first_window(u64 i, int k, int stride, int padding) {
    const i64 before = (i64)i + padding - k + 1;
    return before > 0 ? (before + stride - 1) / stride : 0;
}

// Each element is the sum over the windows that cover it; of the largest, over those whose largest
// it is.
GPU_KERNEL(kernel_pool_back, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &grad = p.operands[1], &input = p.operands[2];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    const gpu_at at = gpu_element_at(y, i);
    const int k0 = p.params[1], k1 = p.params[2], s0 = p.params[3], s1 = p.params[4],
              p0 = p.params[5], p1 = p.params[6];
    const float share = 1.0f / ((float)k0 * (float)k1);
    float sum = 0.0f;
    // Windows are sorted by their first element: the search ends at the first that begins behind
    // this one.
    for (i64 oy = first_window(at.y, k1, s1, p1); oy < grad.ne[1]; ++oy) {
        const pool_span rows = span_of((u64)oy, k1, s1, p1, y.ne[1]);
        if (rows.begin > (i64)at.y) break;
        GPU_GLOBAL const u8 *row = gpu_row(grad, (u64)oy, at.z, at.w);
        for (i64 ox = first_window(at.x, k0, s0, p0); ox < grad.ne[0]; ++ox) {
            const pool_span columns = span_of((u64)ox, k0, s0, p0, y.ne[0]);
            if (columns.begin > (i64)at.x) break;
            const float value = *(GPU_GLOBAL const float *)(row + ox * grad.nb[0]);
            if (p.params[0] != 0)
                sum += value * share;
            else if (is_first_largest(input, at, columns, rows))
                sum += value;
        }
    }
    *(GPU_GLOBAL float *)gpu_address(y, at) = sum;
}

// --- resampling ----------------------------------------------------------------------------------

// numbers[0]: 0 nearest, 1 bilinear, 2 bicubic, 3 antialiased; numbers[1]: 1: the ends of both
// grids coincide, not their borders; numbers[2 + d]: extents of the result and of the source, less
// 1 where the ends coincide, as high and low 32 bits; reals[d]: the ratio for the nearest.
enum { UPSCALE_MODE, UPSCALE_ALIGNED, UPSCALE_EXTENTS };

GPU_FN u64 nearest_of(GPU_ARGS gpu_args &p, int d, u64 i) {
    const u64 n = (u64)p.operands[1].ne[d], at = (u64)((float)i / p.reals[d].high);
    return at < n ? at : n - 1;
}
GPU_FN i64 resampled_to(GPU_ARGS gpu_args &p, int d) {
    return p.numbers[UPSCALE_EXTENTS + d] >> 32;
}
GPU_FN i64 resampled_from(GPU_ARGS gpu_args &p, int d) {
    return p.numbers[UPSCALE_EXTENTS + d] & 0xffffffff;
}
// Where element i lies in the source: the index below, and what is left. Exact, as a fraction.
struct resampled_at {
    i64 below;
    float rest;
};
GPU_FN resampled_at place_of(GPU_ARGS gpu_args &p, int d, u64 i) {
    const i64 to = resampled_to(p, d), from = resampled_from(p, d);
    const bool aligned = p.numbers[UPSCALE_ALIGNED] != 0;
    // Pixel i has its centre at i + 1/2: (i + 1/2) from / to - 1/2, as a fraction over 2 to; with
    // ends that coincide i from / to. Rounded down, also below 0.
    const i64 bottom = aligned ? to : 2 * to;
    const i64 top = aligned ? (i64)i * from : (2 * (i64)i + 1) * from - to;
    i64 below = top / bottom;
    if (top < below * bottom) --below;
    return {below, (float)(top - below * bottom) / (float)bottom};
}
GPU_FN u64 kept_within(i64 i, i64 n) {
    return i < 0 ? 0 : i >= n ? (u64)(n - 1) : (u64)i;
}
GPU_FN float pixel_at(GPU_ARGS gpu_operand &x, i64 column, i64 row, gpu_at plane) {
    const gpu_at at = {kept_within(column, x.ne[0]), kept_within(row, x.ne[1]), plane.z, plane.w};
    return gpu_load(x.type, gpu_address(x, at));
}

GPU_FN float bilinear(GPU_ARGS gpu_args &p, gpu_at to, gpu_at plane) {
    GPU_ARGS gpu_operand &x = p.operands[1];
    const resampled_at c = place_of(p, 0, to.x), r = place_of(p, 1, to.y);
    const float wx = c.below < 0 ? 0.0f : c.rest, wy = r.below < 0 ? 0.0f : r.rest;
    const float above = pixel_at(x, c.below, r.below, plane) * (1.0f - wx) +
                        pixel_at(x, c.below + 1, r.below, plane) * wx;
    const float below = pixel_at(x, c.below, r.below + 1, plane) * (1.0f - wx) +
                        pixel_at(x, c.below + 1, r.below + 1, plane) * wx;
    return above * (1.0f - wy) + below * wy;
}

// Keys' kernel with a = -0.75 at distance t.
// R. Keys, Cubic convolution interpolation for digital image processing (1981).
GPU_FN float cubic_weight(float t) {
    const float a = -0.75f;
    return t <= 1.0f ? ((a + 2.0f) * t - (a + 3.0f)) * t * t + 1.0f
                     : ((a * t - 5.0f * a) * t + 8.0f * a) * t - 4.0f * a;
}
GPU_FN float bicubic(GPU_ARGS gpu_args &p, gpu_at to, gpu_at plane) {
    GPU_ARGS gpu_operand &x = p.operands[1];
    const resampled_at c = place_of(p, 0, to.x), r = place_of(p, 1, to.y);
    float sum = 0.0f;
    for (int k = 0; k < 4; ++k) {
        float line = 0.0f;
        for (int j = 0; j < 4; ++j)
            line += pixel_at(x, c.below + j - 1, r.below + k - 1, plane) *
                    cubic_weight(gpu_abs(c.rest + 1.0f - (float)j));
        sum += line * cubic_weight(gpu_abs(r.rest + 1.0f - (float)k));
    }
    return sum;
}

// Elements under a triangle around a place, which is as wide as a step where the image shrinks.
// With aligned corners its end may be a whole number, which must not be rounded down: it is exact.
struct resample_triangle {
    i64 begin, end;
    float centre, inverse;
};
GPU_FN resample_triangle triangle_at(GPU_ARGS gpu_args &p, int d, u64 i) {
    const i64 to = resampled_to(p, d), from = resampled_from(p, d);
    const bool aligned = p.numbers[UPSCALE_ALIGNED] != 0;
    const float offset = aligned ? 0.0f : 0.5f, step = (float)from / (float)to;
    const float x = ((float)i + offset) * step, support = step > 1.0f ? step : 1.0f;
    const i64 begin = (i64)(x - support + offset);
    const i64 end =
        aligned ? ((i64)i * from + (from > to ? from : to)) / to : (i64)(x + support + offset);
    const i64 n = p.operands[1].ne[d];
    return {begin > 0 ? begin : 0, end < n ? end : n, x - offset, 1.0f / support};
}
GPU_FN float triangle_weight(resample_triangle t, i64 i) {
    const float weight = 1.0f - gpu_abs(((float)i - t.centre) * t.inverse);
    return weight > 0.0f ? weight : 0.0f;
}
GPU_FN float antialiased(GPU_ARGS gpu_args &p, gpu_at to, gpu_at plane) {
    const resample_triangle c = triangle_at(p, 0, to.x), r = triangle_at(p, 1, to.y);
    float sum = 0.0f, total = 0.0f;
    for (i64 row = r.begin; row < r.end; ++row) {
        const float by_row = triangle_weight(r, row);
        for (i64 column = c.begin; column < c.end && by_row > 0.0f; ++column) {
            const float weight = triangle_weight(c, column) * by_row;
            if (!(weight > 0.0f)) continue; // not even a NaN's
            sum += pixel_at(p.operands[1], column, row, plane) * weight;
            total += weight;
        }
    }
    return total > 0.0f ? sum / total : 0.0f;
}

// Dimensions 2 and 3 take the nearest.
GPU_KERNEL(kernel_upscale, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    const gpu_at to = gpu_element_at(y, i);
    gpu_at from = {0, 0, nearest_of(p, 2, to.z), nearest_of(p, 3, to.w)};
    float value;
    switch ((int)p.numbers[UPSCALE_MODE]) {
    case 0:
        from.x = nearest_of(p, 0, to.x);
        from.y = nearest_of(p, 1, to.y);
        value = gpu_load(x.type, gpu_address(x, from));
        break;
    case 1: value = bilinear(p, to, from); break;
    case 2: value = bicubic(p, to, from); break;
    default: value = antialiased(p, to, from); break;
    }
    gpu_store(y.type, gpu_address(y, to), value);
}

// --- elements from elsewhere ---------------------------------------------------------------------

// params: elements before and behind; the first and the last element are not repeated.
GPU_KERNEL(kernel_pad_reflect, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    const gpu_at to = gpu_element_at(y, i);
    const i64 at = (i64)to.x - p.params[0], last = x.ne[0] - 1;
    const i64 mirrored = at < 0 ? -at : at > last ? 2 * last - at : at;
    const gpu_at from = {(u64)mirrored, to.y, to.z, to.w};
    gpu_move_element(y, to, x, from, true);
}

// An image as windows of params[2] by params[2], params[0] of them beside each other.
GPU_KERNEL(kernel_win_part, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    const gpu_at to = gpu_element_at(y, i);
    const u64 beside = (u64)p.params[0], size = (u64)p.params[2];
    const gpu_at from = {to.x, to.w % beside * size + to.y, to.w / beside * size + to.z, 0};
    gpu_move_element(y, to, x, from, from.y < (u64)x.ne[1] && from.z < (u64)x.ne[2]);
}

// The reverse, without what lies beyond the image. params[0]: the windows' size.
GPU_KERNEL(kernel_win_unpart, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    const gpu_at to = gpu_element_at(y, i);
    const u64 size = (u64)p.params[0], beside = ((u64)y.ne[1] + size - 1) / size;
    const gpu_at from = {to.x, to.y % size, to.z % size, to.z / size * beside + to.y / size};
    gpu_move_element(y, to, x, from, true);
}

// Row (q, k) is the embedding of their distance; the table begins with the least one.
GPU_KERNEL(kernel_get_rel_pos, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    const gpu_at to = gpu_element_at(y, i);
    const gpu_at from = {to.x, (u64)y.ne[1] - 1 - to.y + to.z, 0, 0};
    gpu_move_element(y, to, x, from, true);
}

// All packed. Operand 2 has a number for each column of the keys' grid, operand 3 for each row.
GPU_KERNEL(kernel_add_rel_pos, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    u64 column;
    const u64 n = (u64)p.operands[2].ne[0], line = gpu_divide(i, n, &column);
    GPU_GLOBAL const float *a = (GPU_GLOBAL const float *)p.operands[1].data,
                           *columns = (GPU_GLOBAL const float *)p.operands[2].data,
                           *rows = (GPU_GLOBAL const float *)p.operands[3].data;
    ((GPU_GLOBAL float *)y.data)[i] = a[i] + rows[line] + columns[line / n * n + column];
}
