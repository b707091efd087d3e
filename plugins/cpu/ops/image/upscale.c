// SPDX-License-Identifier: MIT
// upscale: nearest, bilinear (also antialiased) and bicubic resampling of dims 0 and 1; dims 2 and
// 3 take the nearest. Coordinates are in double precision; only the nearest index is defined in
// single.
#include <math.h>

#include "simd/strided.h"

struct scaling {
    const struct ggml_tensor *src;
    float nearest[GGML_MAX_DIMS]; // result extent / source extent
    double step[2];               // source elements per element of the result
    double offset;                // of an element's centre
};

// Steps and scales per dimension. With aligned corners the ends of both grids coincide.
static struct scaling scaling_of(const struct ggml_tensor *dst, uint32_t flags) {
    struct scaling s = {.src = dst->src[0], .offset = 0.5};
    const bool align = flags & GGML_SCALE_FLAG_ALIGN_CORNERS;
    if (align) s.offset = 0.0;
    for (int d = 0; d < GGML_MAX_DIMS; ++d) {
        const bool inner = align && d < 2 && dst->ne[d] > 1 && s.src->ne[d] > 1;
        const int64_t to = dst->ne[d] - (inner ? 1 : 0);
        const int64_t from = s.src->ne[d] - (inner ? 1 : 0);
        s.nearest[d] = (float)to / (float)from;
        if (d < 2) s.step[d] = (double)from / (double)to;
    }
    return s;
}

// Positions outside of the image take its edge.
static int64_t clamp_index(int64_t i, int64_t n) {
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

// In single precision, as ggml defines it: in double some indices would differ.
static int64_t nearest_index(const struct scaling *s, int d, int64_t i) {
    return clamp_index((int64_t)((float)i / s->nearest[d]), s->src->ne[d]);
}

// An element as double, of any plain type.
static double pixel(const struct scaling *s, const char *row, int64_t x) {
    return (double)cpu_float_at(row + (size_t)x * s->src->nb[0], s->src->type);
}

static const char *source_row(const struct scaling *s, const char *plane, int64_t y) {
    return plane + (size_t)y * s->src->nb[1];
}

// A row of the result by nearest neighbours.
static void nearest_row(const struct scaling *s, const char *plane, int64_t i1, float *out,
                        int64_t n) {
    const char *row = source_row(s, plane, nearest_index(s, 1, i1));
    for (int64_t i = 0; i < n; ++i)
        out[i] = (float)pixel(s, row, nearest_index(s, 0, i));
}

// --- bilinear ------------------------------------------------------------------------------------

// Two neighbours and the weight of the second.
struct pair {
    int64_t first, second;
    double weight;
};

// The two elements around position i, and the weight of the second.
static struct pair pair_at(const struct scaling *s, int d, int64_t i) {
    const double x = ((double)i + s->offset) * s->step[d] - s->offset;
    const int64_t below = (int64_t)floor(x);
    const int64_t n = s->src->ne[d];
    struct pair pair = {clamp_index(below, n), clamp_index(below + 1, n), 0.0};
    pair.weight = fmin(fmax(x - (double)pair.first, 0.0), 1.0);
    return pair;
}

// A row of the result by two neighbours along each dimension.
static void bilinear_row(const struct scaling *s, const char *plane, int64_t i1, float *out,
                         int64_t n) {
    const struct pair y = pair_at(s, 1, i1);
    const char *above = source_row(s, plane, y.first);
    const char *below = source_row(s, plane, y.second);
    for (int64_t i = 0; i < n; ++i) {
        const struct pair x = pair_at(s, 0, i);
        const double a =
            pixel(s, above, x.first) * (1.0 - x.weight) + pixel(s, above, x.second) * x.weight;
        const double b =
            pixel(s, below, x.first) * (1.0 - x.weight) + pixel(s, below, x.second) * x.weight;
        out[i] = (float)(a * (1.0 - y.weight) + b * y.weight);
    }
}

// Source elements under a triangle around `centre`.
struct triangle {
    int64_t begin, end;
    double centre, inverse; // of its half width
};

// The elements under a triangle around position i, which is wider than 1 where the image
// shrinks. With aligned corners its end may be a whole number: rounding must not take an element.
static struct triangle triangle_at(const struct scaling *s, int d, int64_t i) {
    const double x = ((double)i + s->offset) * s->step[d];
    const double support = fmax(1.0, s->step[d]), rounding = 1e-6;
    return (struct triangle){
        .begin = MAX((int64_t)(x - support + s->offset), 0),
        .end = MIN((int64_t)(x + support + s->offset + rounding), s->src->ne[d]),
        .centre = x - s->offset,
        .inverse = 1.0 / support,
    };
}

// 1 in the centre, 0 at the half width and beyond.
static double triangle_weight(const struct triangle *t, int64_t i) {
    return fmax(1.0 - fabs(((double)i - t->centre) * t->inverse), 0.0);
}

// Weighted mean of the elements under both triangles. O(support^2).
static double antialiased(const struct scaling *s, const char *plane, const struct triangle *x,
                          const struct triangle *y) {
    double sum = 0.0;
    double total = 0.0;
    for (int64_t iy = y->begin; iy < y->end; ++iy) {
        const char *row = source_row(s, plane, iy);
        const double weight = triangle_weight(y, iy);
        for (int64_t ix = x->begin; ix < x->end && weight > 0.0; ++ix) {
            const double w = triangle_weight(x, ix) * weight;
            if (w <= 0.0) continue;
            sum += pixel(s, row, ix) * w;
            total += w;
        }
    }
    return total > 0.0 ? sum / total : 0.0;
}

// The weights of both directions form a triangle around the source position (a tent filter); its
// width grows with the factor when an image is reduced, which is what avoids aliasing.
static void antialiased_row(const struct scaling *s, const char *plane, int64_t i1, float *out,
                            int64_t n) {
    const struct triangle y = triangle_at(s, 1, i1);
    for (int64_t i = 0; i < n; ++i) {
        const struct triangle x = triangle_at(s, 0, i);
        out[i] = (float)antialiased(s, plane, &x, &y);
    }
}

// --- bicubic -------------------------------------------------------------------------------------

// Four neighbours and their weights.
struct cubic {
    int64_t index[4];
    double weight[4];
};

// Keys' kernel with a = -0.75.
static struct cubic cubic_at(const struct scaling *s, int d, int64_t i) {
    const double a = -0.75;
    const double x = ((double)i + s->offset) * s->step[d] - s->offset;
    const double below = floor(x);
    struct cubic cubic;
    // Neighbours from -1 to 2; t is the distance to each.
    for (int k = 0; k < 4; ++k) {
        const double t = fabs(x - below + 1.0 - k);
        cubic.index[k] = clamp_index((int64_t)below + k - 1, s->src->ne[d]);
        cubic.weight[k] = t <= 1.0 ? ((a + 2.0) * t - (a + 3.0)) * t * t + 1.0
                                   : ((a * t - 5.0 * a) * t + 8.0 * a) * t - 4.0 * a;
    }
    return cubic;
}

// A row of the result by four neighbours along each dimension.
static void bicubic_row(const struct scaling *s, const char *plane, int64_t i1, float *out,
                        int64_t n) {
    const struct cubic y = cubic_at(s, 1, i1);
    for (int64_t i = 0; i < n; ++i) {
        const struct cubic x = cubic_at(s, 0, i);
        double sum = 0.0;
        for (int k = 0; k < 4; ++k) {
            const char *row = source_row(s, plane, y.index[k]);
            double line = 0.0;
            for (int j = 0; j < 4; ++j)
                line += pixel(s, row, x.index[j]) * x.weight[j];
            sum += line * y.weight[k];
        }
        out[i] = (float)sum;
    }
}

// Threads share rows of the result.
enum ggml_status CPU_FN(cpu_upscale)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const uint32_t flags = (uint32_t)ggml_get_op_params_i32(dst, 0);
    const uint32_t mode = flags & 0xFFu;
    const struct scaling s = scaling_of(dst, flags);
    void (*const row)(const struct scaling *, const char *, int64_t, float *, int64_t) =
        mode == GGML_SCALE_MODE_NEAREST     ? nearest_row
        : mode == GGML_SCALE_MODE_BICUBIC   ? bicubic_row
        : flags & GGML_SCALE_FLAG_ANTIALIAS ? antialiased_row
                                            : bilinear_row;
    float *buffer = cpu_row_buffer(task, dst->ne[0]);
    int64_t begin, end;
    cpu_task_range(task, ggml_nrows(dst), &begin, &end);
    for (int64_t r = begin; r < end; ++r) {
        const struct ggml_row at = ggml_row_at(dst, r);
        const struct ggml_row from = {0, nearest_index(&s, 2, at.i2), nearest_index(&s, 3, at.i3)};
        char *to = ggml_row_data(dst, at);
        float *y = cpu_target(buffer, to, dst->type, 0);
        row(&s, ggml_row_data(s.src, from), at.i1, y, dst->ne[0]);
        cpu_store(to, dst->type, 0, y, dst->ne[0]);
    }
    return GGML_STATUS_SUCCESS;
}
