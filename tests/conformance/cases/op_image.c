// SPDX-License-Identifier: MIT
// Resampling and padding.
#include "case.h"
#include "oracle/oracle_sum.h"

static const enum ggml_type image_types[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16};

// --- upscale -------------------------------------------------------------------------------------

static const char why_upscale[] =
    "a coordinate is off by 4 units of the extent, a sample by that times the slope of the "
    "filter; up to 16 taps and their weights add 40 units";

// A sample along one dimension: taps from `first` on, clamped to the image.
enum { MAX_TAPS = 256 };
struct taps {
    int64_t first;
    int n;
    double weight[MAX_TAPS];
};

struct scaling {
    uint32_t mode;
    bool align, antialias;
};

static struct scaling scaling_of(const struct ggml_tensor *node) {
    const uint32_t bits = (uint32_t)node->op_params[0];
    return (struct scaling){bits & 255, (bits & GGML_SCALE_FLAG_ALIGN_CORNERS) != 0,
                            (bits & GGML_SCALE_FLAG_ANTIALIAS) != 0};
}

static double keys_kernel(double x) {
    const double a = -0.75;
    x = fabs(x);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static void linear_taps(double x, int64_t n, struct taps *out) {
    const double first = fmin(fmax(floor(x), 0), (double)n - 1);
    const double fraction = fmin(fmax(x - first, 0), 1);
    *out = (struct taps){(int64_t)first, 2, {1 - fraction, fraction}};
}

static void triangle_taps(double x, double offset, double support, int64_t n, struct taps *out) {
    double total = 0;
    const int64_t first = (int64_t)fmax(trunc(x - support + offset), 0);
    const int64_t end = (int64_t)fmin(trunc(x + support + offset + 1e-6), (double)n);
    *out = (struct taps){first, 0, {0}};
    for (int64_t s = first; s < end; ++s) {
        const double weight = fmax(1 - fabs(((double)s - x + offset) / support), 0);
        out->weight[out->n++] = weight;
        total += weight;
    }
    for (int k = 0; k < out->n; ++k)
        out->weight[k] /= total;
}

// The quotient is defined in single precision.
static int64_t nearest(int64_t i, int64_t to, int64_t from) {
    const float factor = (float)to / (float)from;
    return (int64_t)((float)i / factor);
}

// What element i of `to` elements along dim 0 or 1 is made of.
static void find_taps(const struct scaling *s, int64_t i, int64_t to, int64_t from,
                      struct taps *out) {
    const int inner = s->align && to > 1 && from > 1;
    const double factor = (double)(to - inner) / (double)(from - inner);
    const double offset = s->align ? 0 : 0.5;
    const double x = ((double)i + offset) / factor;
    if (s->mode == GGML_SCALE_MODE_NEAREST) {
        *out = (struct taps){nearest(i, to - inner, from - inner), 1, {1}};
    } else if (s->antialias) {
        triangle_taps(x, offset, fmax(1, 1 / factor), from, out);
    } else if (s->mode == GGML_SCALE_MODE_BILINEAR) {
        linear_taps(x - offset, from, out);
    } else {
        const double first = floor(x - offset);
        *out = (struct taps){(int64_t)first - 1, 4, {0}};
        for (int k = 0; k < 4; ++k)
            out->weight[k] = keys_kernel(x - offset - first - (k - 1));
    }
}

static int64_t clamp_index(int64_t i, int64_t n) {
    return i < 0 ? 0 : i < n ? i : n - 1;
}

static void upscale_at(const struct ggml_tensor *node, const int64_t i[4], struct oracle_sum *sum) {
    const struct ggml_tensor *a = node->src[0];
    const struct scaling s = scaling_of(node);
    static struct taps x, y;
    find_taps(&s, i[0], node->ne[0], a->ne[0], &x);
    find_taps(&s, i[1], node->ne[1], a->ne[1], &y);
    const int64_t z = nearest(i[2], node->ne[2], a->ne[2]);
    const int64_t n = nearest(i[3], node->ne[3], a->ne[3]);
    for (int ky = 0; ky < y.n; ++ky) {
        for (int kx = 0; kx < x.n; ++kx) {
            oracle_add(sum, x.weight[kx] * y.weight[ky] *
                                oracle_value(a, clamp_index(x.first + kx, a->ne[0]),
                                             clamp_index(y.first + ky, a->ne[1]), z, n));
        }
    }
}
ORACLE_SUM(upscale)

struct upscale_form {
    const char *name;
    uint32_t mode;
};

static const struct upscale_form upscale_forms[] = {
    {"nearest", GGML_SCALE_MODE_NEAREST},
    {"bilinear", GGML_SCALE_MODE_BILINEAR},
    {"bicubic", GGML_SCALE_MODE_BICUBIC},
    {"bilinear-align", GGML_SCALE_MODE_BILINEAR | GGML_SCALE_FLAG_ALIGN_CORNERS},
    {"bicubic-align", GGML_SCALE_MODE_BICUBIC | GGML_SCALE_FLAG_ALIGN_CORNERS},
    {"nearest-align", GGML_SCALE_MODE_NEAREST | GGML_SCALE_FLAG_ALIGN_CORNERS},
    {"bilinear-antialias", GGML_SCALE_MODE_BILINEAR | GGML_SCALE_FLAG_ANTIALIAS},
    {"bilinear-antialias-align",
     GGML_SCALE_MODE_BILINEAR | GGML_SCALE_FLAG_ANTIALIAS | GGML_SCALE_FLAG_ALIGN_CORNERS},
};
enum { N_UPSCALE_FORMS = sizeof(upscale_forms) / sizeof(upscale_forms[0]) };

static void upscale_case(struct conformance *c, const struct upscale_form *f, enum ggml_type type,
                         struct conformance_extents from, struct conformance_extents to,
                         enum conformance_layout layout) {
    if (!conformance_case(c, "%s/%s/%s-%s/%s", ggml_type_name(type), f->name,
                          conformance_shape(c, from), conformance_shape(c, to),
                          conformance_layout_name(layout))) {
        return;
    }
    struct ggml_tensor *a = conformance_input(c, type, from, layout);
    // The steepest filter loses 2 per sample along each of two dimensions.
    const double reach = (double)(from.ne[0] + from.ne[1]);
    conformance_bound(
        c, (f->mode & 255) == GGML_SCALE_MODE_NEAREST ? 0 : oracle_units(4 * 2 * reach + 40));
    conformance_check(c,
                      ggml_interpolate(c->ctx, a, to.ne[0], to.ne[1], to.ne[2], to.ne[3], f->mode));
}

static void cases_upscale(struct conformance *c) {
    static const struct conformance_extents pairs[][2] = {
        {{{5, 7, 3, 2}}, {{10, 14, 3, 2}}},   {{{1, 1, 1, 1}}, {{4, 3, 1, 1}}},
        {{{8, 8, 2, 1}}, {{13, 11, 2, 1}}},   {{{16, 9, 1, 1}}, {{5, 4, 1, 1}}},
        {{{4, 5, 2, 1}}, {{9, 5, 6, 3}}},     {{{33, 17, 1, 2}}, {{1, 1, 1, 2}}},
        {{{2, 3, 4, 1}}, {{64, 31, 4, 1}}},   {{{31, 2, 1, 1}}, {{8, 29, 1, 1}}},
        {{{12, 1, 5, 1}}, {{24, 3, 5, 1}}},   {{{6, 6, 6, 2}}, {{6, 6, 3, 1}}},
        {{{32, 58, 1, 1}}, {{30, 50, 1, 1}}}, {{{4052, 2, 1, 1}}, {{4051, 2, 1, 1}}},
    };
    for (int f = 0; f < N_UPSCALE_FORMS; ++f) {
        for (size_t s = 0; s < sizeof(pairs) / sizeof(pairs[0]); ++s) {
            const enum conformance_layout layout = (enum conformance_layout)((f + (int)s) % 5);
            upscale_case(c, &upscale_forms[f], GGML_TYPE_F32, pairs[s][0], pairs[s][1], PACKED);
            if (layout != PACKED)
                upscale_case(c, &upscale_forms[f], GGML_TYPE_F32, pairs[s][0], pairs[s][1], layout);
            if (s < 3)
                upscale_case(c, &upscale_forms[f], image_types[1 + f % 2], pairs[s][0], pairs[s][1],
                             PACKED);
        }
        if (!conformance_case(c, "f32/%s/factor-3", upscale_forms[f].name)) continue;
        struct ggml_tensor *a = conformance_input(c, GGML_TYPE_F32, extents(7, 5, 2, 2), PACKED);
        const bool exact = (upscale_forms[f].mode & 255) == GGML_SCALE_MODE_NEAREST;
        conformance_bound(c, exact ? 0 : oracle_units(4 * 2 * 12 + 40));
        conformance_check(
            c, ggml_upscale(c->ctx, a, 3, (enum ggml_scale_mode)(int)upscale_forms[f].mode));
    }
}

CONFORMANCE_OP(UPSCALE, oracle_upscale, cases_upscale, 1, why_upscale,
               .magnitude = magnitude_upscale);

// --- pad -----------------------------------------------------------------------------------------

static const char why_moved[] = "numbers are moved";

static void oracle_pad(const struct ggml_tensor *node, double *out) {
    const struct ggml_tensor *a = node->src[0];
    const int32_t *p = node->op_params;
    for (int64_t n = 0; n < ggml_nelements(node); ++n) {
        int64_t i[4];
        bool within = true;
        ggml_unravel_index(node, n, &i[0], &i[1], &i[2], &i[3]);
        for (int d = 0; d < GGML_MAX_DIMS; ++d) {
            i[d] -= p[2 * d];
            if (p[8] && a->ne[d] > 0) i[d] = (i[d] + a->ne[d]) % a->ne[d];
            within = within && i[d] >= 0 && i[d] < a->ne[d];
        }
        out[n] = within ? oracle_value(a, i[0], i[1], i[2], i[3]) : 0;
    }
}

static void pad_case(struct conformance *c, const int *p, bool circular, enum ggml_type type,
                     struct conformance_extents ne, enum conformance_layout layout) {
    for (int d = 0; d < 8; ++d) {
        if (circular && p[d] > ne.ne[d / 2]) return;
        if (p[d] + p[d ^ 1] < -ne.ne[d / 2]) return;
    }
    if (!conformance_case(c, "%s/%s/%d,%d/%d,%d/%d,%d/%d,%d/%s/%s", ggml_type_name(type),
                          circular ? "circular" : "zero", p[0], p[1], p[2], p[3], p[4], p[5], p[6],
                          p[7], conformance_shape(c, ne), conformance_layout_name(layout))) {
        return;
    }
    struct ggml_tensor *a = conformance_input(c, type, ne, layout);
    const bool right_only = p[0] == 0 && p[2] == 0 && p[4] == 0 && p[6] == 0;
    if (right_only) {
        conformance_check(
            c, (circular ? ggml_pad_circular : ggml_pad)(c->ctx, a, p[1], p[3], p[5], p[7]));
        return;
    }
    conformance_check(c, (circular ? ggml_pad_ext_circular : ggml_pad_ext)(
                             c->ctx, a, p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]));
}

static const struct conformance_extents pad_shapes[] = {
    {{33, 5, 3, 2}}, {{1, 1, 1, 1}}, {{64, 4, 2, 1}}, {{7, 1, 1, 1}}, {{257, 3, 1, 1}}};

static void cases_pad(struct conformance *c) {
    static const enum ggml_type moved[] = {GGML_TYPE_I8, GGML_TYPE_I16, GGML_TYPE_I32,
                                           GGML_TYPE_I64, GGML_TYPE_F64};
    static const int paddings[][8] = {
        {0, 1, 0, 0, 0, 0, 0, 0}, {0, 3, 0, 2, 0, 1, 0, 1},   {1, 0, 0, 0, 0, 0, 0, 0},
        {2, 3, 1, 0, 0, 2, 1, 1}, {0, 0, 4, 5, 0, 0, 0, 0},   {0, 0, 0, 0, 0, 0, 0, 0},
        {1, 1, 1, 1, 1, 1, 1, 1}, {-1, 2, 0, -1, 0, 0, 0, 0}, {2, -2, -1, 0, 1, -1, 0, -1},
    };
    for (int p = 0; p < 9; ++p) {
        for (int s = 0; s < 5; ++s) {
            for (int layout = 0; layout < N_LAYOUTS; ++layout) {
                for (int m = 0; m < 2; ++m)
                    pad_case(c, paddings[p], m == 1, GGML_TYPE_F32, pad_shapes[s],
                             (enum conformance_layout)layout);
            }
            pad_case(c, paddings[p], p % 2 == 0, GGML_TYPE_F16, pad_shapes[s], PACKED);
            pad_case(c, paddings[p], p % 2 == 1, GGML_TYPE_BF16, pad_shapes[s], GAPS);
            for (size_t t = 0; t < sizeof(moved) / sizeof(moved[0]); ++t)
                pad_case(c, paddings[p], (p + (int)t) % 2 == 1, moved[t], pad_shapes[s],
                         (enum conformance_layout)((p + s) % N_LAYOUTS));
        }
    }
    pad_case(c, paddings[1], false, GGML_TYPE_F32, extents(0, 3, 1, 1), PACKED);
    pad_case(c, paddings[3], false, GGML_TYPE_F32, extents(5, 0, 2, 1), PACKED);
}

CONFORMANCE_OP(PAD, oracle_pad, cases_pad, 0, why_moved, PLAIN);

// --- pad_reflect_1d ------------------------------------------------------------------------------

static void oracle_pad_reflect_1d(const struct ggml_tensor *node, double *out) {
    const struct ggml_tensor *a = node->src[0];
    for (int64_t n = 0; n < ggml_nelements(node); ++n) {
        int64_t i0, i1, i2, i3;
        ggml_unravel_index(node, n, &i0, &i1, &i2, &i3);
        i0 -= node->op_params[0];
        if (i0 < 0) i0 = -i0;
        if (i0 >= a->ne[0]) i0 = 2 * (a->ne[0] - 1) - i0;
        out[n] = oracle_value(a, i0, i1, i2, i3);
    }
}

static void cases_pad_reflect_1d(struct conformance *c) {
    static const struct conformance_extents shapes[] = {
        {{33, 5, 3, 2}},  {{1, 1, 1, 1}}, {{64, 4, 2, 1}}, {{7, 1, 1, 1}},
        {{257, 3, 1, 1}}, {{2, 9, 1, 1}}, {{5, 0, 2, 1}}};
    static const int64_t paddings[][2] = {{0, 0}, {1, 0}, {0, 1}, {3, 2}, {1000, 1000}, {5, 999}};
    for (int s = 0; s < 7; ++s) {
        for (int p = 0; p < 6; ++p) {
            const int64_t most = shapes[s].ne[0] - 1;
            const int p0 = (int)(paddings[p][0] < most ? paddings[p][0] : most);
            const int p1 = (int)(paddings[p][1] < most ? paddings[p][1] : most);
            if (!conformance_case(c, "f32/%d,%d/%s/%d", p0, p1, conformance_shape(c, shapes[s]), p))
                continue;
            struct ggml_tensor *a = conformance_input(c, GGML_TYPE_F32, shapes[s], PACKED);
            conformance_check(c, ggml_pad_reflect_1d(c->ctx, a, p0, p1));
        }
    }
}

CONFORMANCE_OP(PAD_REFLECT_1D, oracle_pad_reflect_1d, cases_pad_reflect_1d, 0, why_moved, PLAIN);
