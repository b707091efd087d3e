// SPDX-License-Identifier: MIT
// Patches of images as columns, and columns added up to images.
#include <stdio.h>

#include "case.h"
#include "oracle/oracle_sum.h"
#include "volume_form.h"

// --- im2col --------------------------------------------------------------------------------------

static const char why_copied[] = "numbers are copied and rounded to the type of the result";

// Element of the image, 0 outside of it.
static double pixel(const struct ggml_tensor *image, int64_t x, int64_t y, int64_t z, int64_t n) {
    if (x < 0 || x >= image->ne[0] || y < 0 || y >= image->ne[1]) return 0;
    return oracle_value(image, x, y, z, n);
}

static void oracle_im2col(const struct ggml_tensor *node, double *out) {
    const struct ggml_tensor *kernel = node->src[0], *image = node->src[1];
    const int32_t *p = node->op_params;
    const int64_t kw = kernel->ne[0], kh = p[6] ? kernel->ne[1] : 1;
    for (int64_t n = 0; n < ggml_nelements(node); ++n) {
        int64_t column, ox, oy, batch;
        ggml_unravel_index(node, n, &column, &ox, &oy, &batch);
        const int64_t x = ox * p[0] + column % kw * p[4] - p[2];
        const int64_t channel = column / kw / kh;
        if (p[6]) {
            const int64_t y = oy * p[1] + column / kw % kh * p[5] - p[3];
            out[n] = pixel(image, x, y, channel, batch);
        } else {
            out[n] = pixel(image, x, channel, oy, 0);
        }
    }
}

struct window_form {
    int64_t kw, kh, w, h, channels, batch;
    int s0, s1, p0, p1, d0, d1;
};

static const struct window_form windows[] = {
    {3, 3, 8, 7, 3, 2, 1, 1, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1},
    {2, 3, 13, 11, 4, 1, 2, 1, 0, 2, 1, 1},
    {5, 1, 17, 5, 2, 3, 3, 2, 2, 0, 1, 1},
    {3, 3, 16, 16, 1, 1, 1, 1, 2, 2, 2, 2},
    {3, 2, 11, 13, 5, 2, 2, 3, 3, 1, 3, 2},
    {7, 7, 7, 7, 2, 1, 1, 1, 0, 0, 1, 1},
    {2, 2, 33, 9, 3, 1, 4, 5, 0, 0, 1, 1},
    {4, 4, 6, 6, 17, 1, 1, 1, 3, 3, 1, 1},
    {3, 3, 31, 29, 2, 1, 1, 1, 5, 4, 4, 3},
    {3, 3, 5, 5, 2, 0, 1, 1, 1, 1, 1, 1},
    {3, 1, 64, 1, 8, 2, 1, 1, 1, 0, 1, 1},
    // as the last of conv_2d, but im2col needs an output
    {3, 4, 2, 2, 3, 2, 2, 4, 0, 1, 1, 1},
    {3, 3, 8, 7, 3, 2, 1, 2, 1, 1, 0, 0},
    {3, 2, 13, 9, 2, 2, 2, 1, -2, -1, 1, 2},
};
enum { N_WINDOWS = sizeof(windows) / sizeof(windows[0]) };

static void window_name(const struct window_form *f, char *out, size_t size) {
    snprintf(out, size, "k=%dx%d/%dx%dx%dx%d/s=%d,%d/p=%d,%d/d=%d,%d", (int)f->kw, (int)f->kh,
             (int)f->w, (int)f->h, (int)f->channels, (int)f->batch, f->s0, f->s1, f->p0, f->p1,
             f->d0, f->d1);
}

static void im2col_case(struct conformance *c, const struct window_form *f, bool is_2d,
                        enum ggml_type from, enum ggml_type to, enum conformance_layout layout) {
    char window[120];
    window_name(f, window, sizeof(window));
    if (!conformance_case(c, "%s-%s/%s/%s/%s", ggml_type_name(from), ggml_type_name(to),
                          is_2d ? "2d" : "1d", window, conformance_layout_name(layout))) {
        return;
    }
    const enum ggml_type kernel_type = to == GGML_TYPE_F32 ? GGML_TYPE_F32 : GGML_TYPE_F16;
    struct ggml_tensor *kernel = conformance_input(
        c, kernel_type,
        is_2d ? extents(f->kw, f->kh, f->channels, 3) : extents(f->kw, f->channels, 3, 1), PACKED);
    struct ggml_tensor *image = conformance_input(c, from,
                                                  is_2d ? extents(f->w, f->h, f->channels, f->batch)
                                                        : extents(f->w, f->channels, f->batch, 1),
                                                  layout);
    conformance_check(
        c, ggml_im2col(c->ctx, kernel, image, f->s0, f->s1, f->p0, f->p1, f->d0, f->d1, is_2d, to));
}

static void cases_im2col(struct conformance *c) {
    for (int t = 0; t < 9; ++t) {
        const enum ggml_type from = conformance_floats[t / 3], to = conformance_floats[t % 3];
        for (int s = 0; s < N_WINDOWS; s += t < 2 ? 1 : 2) {
            for (int m = 0; m < 3; ++m) {
                const enum conformance_layout layout =
                    m == 0 ? PACKED : (enum conformance_layout)(1 + (m + s + t) % 3);
                im2col_case(c, &windows[s], true, from, to, layout);
                if (m < 2) im2col_case(c, &windows[s], false, from, to, m == 0 ? PACKED : GAPS);
            }
        }
    }
}

CONFORMANCE_OP(IM2COL, oracle_im2col, cases_im2col, 0, why_copied, PLAIN);

// --- im2col_back ---------------------------------------------------------------------------------

static const char why_im2col_back[] = "at most one term per element of the kernel, each sum rounds";

// Which window position covers coordinate x with kernel element k; -1: none.
static int64_t covering(int64_t x, int64_t k, int s, int p, int d, int64_t n_out) {
    const int64_t at = x + p - k * d;
    return at >= 0 && at % s == 0 && at / s < n_out ? at / s : -1;
}

static void im2col_back_at(const struct ggml_tensor *node, const int64_t i[4],
                           struct oracle_sum *sum) {
    const struct ggml_tensor *grad = node->src[0], *kernel = node->src[1];
    const int32_t *p = node->op_params;
    const int64_t kw = kernel->ne[0], kh = kernel->ne[1];
    for (int64_t x = 0; x < kw; ++x) {
        const int64_t ox = covering(i[0], x, p[0], p[2], p[4], grad->ne[1]);
        if (ox < 0) continue;
        if (!p[6]) oracle_add(sum, oracle_value(grad, i[1] * kw + x, ox, i[2], 0));
        for (int64_t y = 0; y < kh && p[6]; ++y) {
            const int64_t oy = covering(i[1], y, p[1], p[3], p[5], grad->ne[2]);
            if (oy >= 0)
                oracle_add(sum, oracle_value(grad, (i[2] * kh + y) * kw + x, ox, oy, i[3]));
        }
    }
}
ORACLE_SUM(im2col_back)

static int64_t out_extent(int64_t in, int64_t k, int s, int p, int d) {
    return (in + 2 * p - d * (k - 1) - 1) / s + 1;
}

static void im2col_back_case(struct conformance *c, const struct window_form *f, bool is_2d,
                             enum ggml_type kernel_type) {
    char window[120];
    window_name(f, window, sizeof(window));
    if (!conformance_case(c, "f32-%s/%s/%s", ggml_type_name(kernel_type), is_2d ? "2d" : "1d",
                          window)) {
        return;
    }
    const int64_t ow = out_extent(f->w, f->kw, f->s0, f->p0, f->d0);
    const int64_t oh = out_extent(f->h, f->kh, f->s1, f->p1, f->d1);
    struct conformance_extents grad = extents(f->kw * f->channels, ow, f->batch, 1);
    struct conformance_extents kernel = extents(f->kw, f->channels, 3, 1);
    int64_t ne[4] = {f->w, f->channels, f->batch, 1};
    if (is_2d) {
        grad = extents(f->kw * f->kh * f->channels, ow, oh, f->batch);
        kernel = extents(f->kw, f->kh, f->channels, 3);
        memcpy(ne, (int64_t[4]){f->w, f->h, f->channels, f->batch}, sizeof(ne));
    }
    conformance_bound(c, oracle_units((double)(f->kw * f->kh)));
    conformance_check(c, ggml_im2col_back(c->ctx, conformance_input(c, GGML_TYPE_F32, grad, PACKED),
                                          conformance_input(c, kernel_type, kernel, PACKED), ne,
                                          f->s0, f->s1, f->p0, f->p1, f->d0, f->d1, is_2d));
}

static void cases_im2col_back(struct conformance *c) {
    for (int s = 0; s < N_WINDOWS; ++s) {
        im2col_back_case(c, &windows[s], true, GGML_TYPE_F32);
        im2col_back_case(c, &windows[s], true, GGML_TYPE_F16);
        im2col_back_case(c, &windows[s], false, GGML_TYPE_F32);
        im2col_back_case(c, &windows[s], false, GGML_TYPE_F16);
    }
}

CONFORMANCE_OP(IM2COL_BACK, oracle_im2col_back, cases_im2col_back, 1, why_im2col_back,
               .magnitude = magnitude_im2col_back);

// --- im2col_3d -----------------------------------------------------------------------------------

static void oracle_im2col_3d(const struct ggml_tensor *node, double *out) {
    const struct ggml_tensor *kernel = node->src[0], *image = node->src[1];
    const int32_t *p = node->op_params;
    const int64_t *k = kernel->ne;
    const int64_t od = out_extent(image->ne[2], k[2], p[2], p[5], p[8]);
    for (int64_t n = 0; n < ggml_nelements(node); ++n) {
        int64_t column, ox, oy, plane;
        ggml_unravel_index(node, n, &column, &ox, &oy, &plane);
        const int64_t x = ox * p[0] + column % k[0] * p[6] - p[3];
        const int64_t y = oy * p[1] + column / k[0] % k[1] * p[7] - p[4];
        const int64_t z = plane % od * p[2] + column / k[0] / k[1] % k[2] * p[8] - p[5];
        const int64_t channel = column / k[0] / k[1] / k[2];
        out[n] =
            z < 0 || z >= image->ne[2] ? 0 : pixel(image, x, y, z, plane / od * p[9] + channel);
    }
}

static void volume_name(const struct volume_form *f, char *out, size_t size) {
    snprintf(out, size, "k=%dx%dx%d/%dx%dx%d/c=%d/n=%d/s=%d,%d,%d/p=%d,%d,%d/d=%d,%d,%d",
             (int)f->k[0], (int)f->k[1], (int)f->k[2], (int)f->ne[0], (int)f->ne[1], (int)f->ne[2],
             (int)f->channels, (int)f->batch, f->s[0], f->s[1], f->s[2], f->p[0], f->p[1], f->p[2],
             f->d[0], f->d[1], f->d[2]);
}

static void im2col_3d_case(struct conformance *c, const struct volume_form *f, enum ggml_type from,
                           enum ggml_type to, enum conformance_layout layout) {
    char volume[120];
    volume_name(f, volume, sizeof(volume));
    if (!conformance_case(c, "%s-%s/%s/%s", ggml_type_name(from), ggml_type_name(to), volume,
                          conformance_layout_name(layout))) {
        return;
    }
    struct ggml_tensor *kernel = conformance_input(
        c, to, extents(f->k[0], f->k[1], f->k[2], f->out_channels * f->channels), PACKED);
    struct ggml_tensor *image = conformance_input(
        c, from,
        extents(f->ne[0], f->ne[1], f->ne[2], f->batch * f->channels + f->further_channels),
        layout);
    conformance_check(c,
                      ggml_im2col_3d(c->ctx, kernel, image, f->channels, f->s[0], f->s[1], f->s[2],
                                     f->p[0], f->p[1], f->p[2], f->d[0], f->d[1], f->d[2], to));
}

static void cases_im2col_3d(struct conformance *c) {
    for (int s = 0; s < N_VOLUMES; ++s) {
        for (int layout = 0; layout < N_LAYOUTS; ++layout) {
            im2col_3d_case(c, &volumes[s], GGML_TYPE_F32, GGML_TYPE_F32,
                           (enum conformance_layout)layout);
            im2col_3d_case(c, &volumes[s], GGML_TYPE_F32, GGML_TYPE_F16,
                           (enum conformance_layout)layout);
        }
        for (int t = 2; t < 9; ++t)
            im2col_3d_case(c, &volumes[s], conformance_floats[t / 3], conformance_floats[t % 3],
                           (enum conformance_layout)(t % N_LAYOUTS));
    }
}

CONFORMANCE_OP(IM2COL_3D, oracle_im2col_3d, cases_im2col_3d, 0, why_copied, PLAIN);

// --- col2im_1d -----------------------------------------------------------------------------------

static const char why_col2im[] = "one term per column that covers the element, each sum rounds";

static void col2im_1d_at(const struct ggml_tensor *node, const int64_t i[4],
                         struct oracle_sum *sum) {
    const struct ggml_tensor *a = node->src[0];
    const int32_t *p = node->op_params;
    const int64_t n_k = a->ne[0] / p[1];
    for (int64_t t = 0; t < a->ne[1]; ++t) {
        const int64_t k = i[0] + p[2] - t * p[0];
        if (k >= 0 && k < n_k) oracle_add(sum, oracle_value(a, i[1] * n_k + k, t, 0, 0));
    }
}
ORACLE_SUM(col2im_1d)

static void cases_col2im_1d(struct conformance *c) {
    static const int forms[][5] = {
        // K, OC, T, stride, padding
        {3, 4, 7, 1, 0},  {1, 1, 1, 1, 0}, {16, 5, 9, 8, 4}, {4, 3, 13, 2, 1},   {2, 7, 5, 3, 0},
        {8, 2, 33, 4, 2}, {5, 1, 2, 1, 2}, {7, 3, 10, 7, 3}, {10, 16, 31, 5, 2}, {3, 2, 4, 5, 1},
    };
    for (int t = 0; t < 3; ++t) {
        for (size_t s = 0; s < sizeof(forms) / sizeof(forms[0]); ++s) {
            const int *f = forms[s];
            if (!conformance_case(c, "%s/K=%d/OC=%d/T=%d/s=%d/p=%d",
                                  ggml_type_name(conformance_floats[t]), f[0], f[1], f[2], f[3],
                                  f[4])) {
                continue;
            }
            struct ggml_tensor *a = conformance_input(c, conformance_floats[t],
                                                      extents(f[0] * f[1], f[2], 1, 1), PACKED);
            conformance_bound(c, oracle_units(f[0]));
            conformance_check(c, ggml_col2im_1d(c->ctx, a, f[3], f[1], f[4]));
        }
    }
}

CONFORMANCE_OP(COL2IM_1D, oracle_col2im_1d, cases_col2im_1d, 1, why_col2im,
               .magnitude = magnitude_col2im_1d);
