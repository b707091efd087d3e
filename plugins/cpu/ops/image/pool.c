// SPDX-License-Identifier: MIT
// pool_1d, pool_2d and the gradient of pool_2d.
#include <float.h>

#include "ops/image/pool.h"
#include "simd/strided.h"

// Positions of the source that a window covers.
struct span {
    int64_t begin, end;
};

// Window i of size k at stride s, without what lies in the padding p.
static struct span span_of(int64_t i, int k, int s, int p, int64_t n) {
    const int64_t first = i * s - p;
    return (struct span){MAX(first, 0), MIN(first + k, n)};
}

// Largest element or mean of a window; 0 for the mean of an empty one.
static float pool(const struct ggml_tensor *a, const char *plane, struct span x, struct span y,
                  int op, double divisor) {
    // As ggml's: a window that has only padding yields -FLT_MAX, and NaN counts until a number
    // follows it, so that a window of nothing else yields NaN.
    float largest = -FLT_MAX;
    double sum = 0.0;
    for (int64_t iy = y.begin; iy < y.end; ++iy) {
        const char *row = plane + (size_t)iy * a->nb[1];
        for (int64_t ix = x.begin; ix < x.end; ++ix) {
            const float value = cpu_float_at(row + (size_t)ix * a->nb[0], a->type);
            largest = largest > value ? largest : value;
            sum += (double)value;
        }
    }
    if (op == GGML_OP_POOL_MAX) return largest;
    return divisor > 0.0 ? (float)(sum / divisor) : 0.0f;
}

// The mean is over what the window covers of the source.
enum ggml_status CPU_FN(cpu_pool_1d)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const struct ggml_tensor *a = dst->src[0];
    const struct pool_1d p = pool_1d_params(dst);
    int64_t begin, end;
    cpu_task_range(task, ggml_nrows(dst), &begin, &end);
    for (int64_t r = begin; r < end; ++r) {
        const struct ggml_row at = ggml_row_at(dst, r);
        const char *row = ggml_row_data(a, at);
        float *y = (float *)(void *)ggml_row_data(dst, at);
        for (int64_t i = 0; i < dst->ne[0]; ++i) {
            const struct span x = span_of(i, p.k, p.s, p.p, a->ne[0]);
            y[i] = pool(a, row, x, (struct span){0, 1}, p.op, (double)(x.end - x.begin));
        }
    }
    return GGML_STATUS_SUCCESS;
}

// The mean is over the whole window, padding included.
enum ggml_status CPU_FN(cpu_pool_2d)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const struct ggml_tensor *a = dst->src[0];
    const struct pool_2d p = pool_2d_params(dst);
    const double divisor = (double)p.k[0] * p.k[1];
    int64_t begin, end;
    cpu_task_range(task, ggml_nrows(dst), &begin, &end);
    for (int64_t r = begin; r < end; ++r) {
        const struct ggml_row at = ggml_row_at(dst, r);
        const char *plane = ggml_row_data(a, (struct ggml_row){0, at.i2, at.i3});
        float *out = (float *)(void *)ggml_row_data(dst, at);
        const struct span y = span_of(at.i1, p.k[1], p.s[1], p.p[1], a->ne[1]);
        for (int64_t i = 0; i < dst->ne[0]; ++i) {
            const struct span x = span_of(i, p.k[0], p.s[0], p.p[0], a->ne[0]);
            out[i] = pool(a, plane, x, y, p.op, divisor);
        }
    }
    return GGML_STATUS_SUCCESS;
}

// --- gradient ------------------------------------------------------------------------------------

// Rows of one plane that a thread writes.
struct strip {
    const struct ggml_tensor *dst;
    int64_t i2, i3;
    struct span rows;
};

// Adds to an element if this thread's rows have it.
static void add_at(const struct strip *strip, int64_t x, int64_t y, float value) {
    if (y < strip->rows.begin || y >= strip->rows.end) return;
    float *row =
        (float *)(void *)ggml_row_data(strip->dst, (struct ggml_row){y, strip->i2, strip->i3});
    row[x] += value;
}

// To the first largest element; to none if nothing is larger than -FLT_MAX.
static void add_to_largest(const struct strip *strip, struct span x, struct span y,
                           float gradient) {
    const struct ggml_tensor *input = strip->dst->src[1];
    const char *plane = ggml_row_data(input, (struct ggml_row){0, strip->i2, strip->i3});
    float largest = -FLT_MAX;
    int64_t best_x = -1, best_y = -1;
    for (int64_t iy = y.begin; iy < y.end; ++iy) {
        const char *row = plane + (size_t)iy * input->nb[1];
        for (int64_t ix = x.begin; ix < x.end; ++ix) {
            const float value = cpu_float_at(row + (size_t)ix * input->nb[0], input->type);
            if (!(value > largest)) continue;
            largest = value;
            best_x = ix;
            best_y = iy;
        }
    }
    if (best_x >= 0) add_at(strip, best_x, best_y, gradient);
}

// Adds to each element of a window.
static void add_to_all(const struct strip *strip, struct span x, struct span y, float value) {
    for (int64_t iy = y.begin; iy < y.end; ++iy) {
        for (int64_t ix = x.begin; ix < x.end; ++ix)
            add_at(strip, ix, iy, value);
    }
}

// Windows in scan order, so that the order of additions does not depend on the strip.
static void pool_2d_back(const struct strip *strip, const struct pool_2d *p) {
    const struct ggml_tensor *grad = strip->dst->src[0];
    const float share = 1.0f / ((float)p->k[0] * (float)p->k[1]);
    for (int64_t oy = 0; oy < grad->ne[1]; ++oy) {
        const struct span y = span_of(oy, p->k[1], p->s[1], p->p[1], strip->dst->ne[1]);
        if (y.end <= strip->rows.begin || y.begin >= strip->rows.end) continue;
        const char *row = ggml_row_data(grad, (struct ggml_row){oy, strip->i2, strip->i3});
        for (int64_t ox = 0; ox < grad->ne[0]; ++ox) {
            const struct span x = span_of(ox, p->k[0], p->s[0], p->p[0], strip->dst->ne[0]);
            const float g = cpu_f32_at(row + (size_t)ox * grad->nb[0]);
            if (p->op == GGML_OP_POOL_MAX)
                add_to_largest(strip, x, y, g);
            else
                add_to_all(strip, x, y, g * share);
        }
    }
}

// A thread takes neighbouring rows of the result and goes through all windows that touch them,
// so that no two threads write the same element.
enum ggml_status CPU_FN(cpu_pool_2d_back)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const struct pool_2d p = pool_2d_params(dst);
    int64_t begin, end;
    // Units are rows of the result, joined to strips of one plane.
    cpu_task_range(task, ggml_nrows(dst), &begin, &end);
    for (int64_t r = begin; r < end;) {
        const struct ggml_row at = ggml_row_at(dst, r);
        const int64_t n = MIN(end - r, dst->ne[1] - at.i1);
        const struct strip strip = {dst, at.i2, at.i3, {at.i1, at.i1 + n}};
        // Windows add to the rows: they begin as 0.
        for (int64_t i = 0; i < n; ++i)
            memset(ggml_row_data(dst, ggml_row_at(dst, r + i)), 0,
                   (size_t)dst->ne[0] * sizeof(float));
        pool_2d_back(&strip, &p);
        r += n;
    }
    return GGML_STATUS_SUCCESS;
}
