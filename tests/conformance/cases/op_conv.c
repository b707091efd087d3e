// SPDX-License-Identifier: MIT
// Direct and transposed convolutions.
#include <stdio.h>

#include "case.h"
#include "oracle/oracle_sum.h"
#include "volume_form.h"

static const char why_conv[] = "each product and each sum of the terms of an element rounds once";

// Kernels and images in each of F32, F16, BF16: pair number n.
enum { N_TYPE_PAIRS = 9 };

static enum ggml_type kernel_type_of(int n) {
    return conformance_floats[n % 3];
}

static enum ggml_type image_type_of(int n) {
    return conformance_floats[n / 3];
}

// Bound of a sum of n products.
static void bound_products(struct conformance *c, int64_t n) {
    conformance_bound(c, oracle_units((double)n + 1));
}

struct conv_form {
    int64_t kw, kh, w, h, in, out, batch;
    int s0, s1, p0, p1, d0, d1;
};

static const struct conv_form convs[] = {
    {3, 3, 8, 7, 3, 4, 2, 1, 1, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1},
    {2, 3, 13, 11, 4, 2, 1, 2, 1, 0, 2, 1, 1},
    {5, 1, 17, 5, 2, 3, 3, 3, 2, 2, 0, 1, 1},
    {3, 3, 16, 16, 1, 1, 1, 1, 1, 2, 2, 2, 2},
    {3, 2, 11, 13, 5, 7, 2, 2, 3, 3, 1, 3, 2},
    {7, 7, 7, 7, 2, 3, 1, 1, 1, 0, 0, 1, 1},
    {2, 2, 33, 9, 3, 1, 1, 4, 5, 0, 0, 1, 1},
    {4, 4, 6, 6, 17, 5, 1, 1, 1, 3, 3, 1, 1},
    {3, 3, 31, 29, 2, 2, 1, 1, 1, 5, 4, 4, 3},
    {3, 3, 5, 5, 2, 2, 0, 1, 1, 1, 1, 1, 1},
    {1, 1, 12, 9, 64, 33, 1, 1, 1, 0, 0, 1, 1},
    // A kernel larger than the padded image, to the next multiple of the stride; no image left; all
    // of a kernel on one pixel; an image that is cut off.
    {3, 4, 2, 2, 3, 4, 2, 2, 4, 0, 1, 1, 1},
    {4, 2, 3, 9, 2, 3, 1, 1, 2, 0, 0, 1, 1},
    {3, 3, 8, 7, 3, 4, 2, 1, 2, 1, 1, 0, 0},
    {3, 2, 13, 9, 2, 3, 2, 2, 1, -2, -1, 1, 2},
};
enum { N_CONVS = sizeof(convs) / sizeof(convs[0]) };

static void conv_name(const struct conv_form *f, char *out, size_t size) {
    snprintf(out, size, "k=%dx%d/%dx%d/c=%d,%d/n=%d/s=%d,%d/p=%d,%d/d=%d,%d", (int)f->kw,
             (int)f->kh, (int)f->w, (int)f->h, (int)f->in, (int)f->out, (int)f->batch, f->s0, f->s1,
             f->p0, f->p1, f->d0, f->d1);
}

static bool inside(int64_t x, int64_t n) {
    return x >= 0 && x < n;
}

// --- conv_2d -------------------------------------------------------------------------------------

static void conv_2d_at(const struct ggml_tensor *node, const int64_t i[4], struct oracle_sum *sum) {
    const struct ggml_tensor *kernel = node->src[0], *image = node->src[1];
    const int32_t *p = node->op_params;
    const bool depthwise = node->op == GGML_OP_CONV_2D_DW;
    for (int64_t n = 0; n < kernel->ne[0] * kernel->ne[1]; ++n) {
        const int64_t kx = n % kernel->ne[0], ky = n / kernel->ne[0];
        const int64_t x = i[0] * p[0] + kx * p[4] - p[2];
        const int64_t y = i[1] * p[1] + ky * p[5] - p[3];
        if (!inside(x, image->ne[0]) || !inside(y, image->ne[1])) continue;
        for (int64_t ic = 0; ic < kernel->ne[2]; ++ic) {
            oracle_add(sum, oracle_value(kernel, kx, ky, ic, i[2]) *
                                oracle_value(image, x, y, depthwise ? i[2] : ic, i[3]));
        }
    }
}
ORACLE_SUM(conv_2d)

static void conv_2d_case(struct conformance *c, const struct conv_form *f,
                         enum ggml_type kernel_type, enum ggml_type type,
                         enum conformance_layout layout) {
    char conv[120];
    conv_name(f, conv, sizeof(conv));
    if (!conformance_case(c, "%s-%s/%s/%s", ggml_type_name(kernel_type), ggml_type_name(type), conv,
                          conformance_layout_name(layout))) {
        return;
    }
    struct ggml_tensor *kernel =
        conformance_input(c, kernel_type, extents(f->kw, f->kh, f->in, f->out), PACKED);
    struct ggml_tensor *image =
        conformance_input(c, type, extents(f->w, f->h, f->in, f->batch), layout);
    bound_products(c, f->kw * f->kh * f->in);
    conformance_check(
        c, ggml_conv_2d_direct(c->ctx, kernel, image, f->s0, f->s1, f->p0, f->p1, f->d0, f->d1));
}

static void cases_conv_2d(struct conformance *c) {
    for (int s = 0; s < N_CONVS; ++s) {
        for (int layout = 0; layout < N_LAYOUTS; ++layout) {
            for (int t = 0; t < (layout == PACKED ? N_TYPE_PAIRS : 2); ++t)
                conv_2d_case(c, &convs[s], kernel_type_of(t), image_type_of(t),
                             (enum conformance_layout)layout);
        }
    }
}

CONFORMANCE_OP(CONV_2D, oracle_conv_2d, cases_conv_2d, 1, why_conv, .magnitude = magnitude_conv_2d);

// --- conv_2d_dw ----------------------------------------------------------------------------------

// Kernel and image whose channels lie together in memory.
static struct ggml_tensor *channels_first_kernel(struct conformance *c, const struct conv_form *f,
                                                 enum ggml_type type) {
    return ggml_permute(c->ctx, conformance_input(c, type, extents(f->in, 1, f->kw, f->kh), PACKED),
                        3, 2, 0, 1);
}

static struct ggml_tensor *channels_first_image(struct conformance *c, const struct conv_form *f) {
    return ggml_permute(
        c->ctx, conformance_input(c, GGML_TYPE_F32, extents(f->in, f->w, f->h, f->batch), PACKED),
        2, 0, 1, 3);
}

static void conv_2d_dw_case(struct conformance *c, const struct conv_form *f, enum ggml_type type,
                            bool channels_first) {
    char conv[120];
    conv_name(f, conv, sizeof(conv));
    if (!conformance_case(c, "%s-f32/%s/%s", ggml_type_name(type), conv,
                          channels_first ? "cwhn" : "whcn")) {
        return;
    }
    struct ggml_tensor *kernel, *image;
    if (channels_first) {
        kernel = channels_first_kernel(c, f, type);
        image = channels_first_image(c, f);
    } else {
        kernel = conformance_input(c, type, extents(f->kw, f->kh, 1, f->in), PACKED);
        image = conformance_input(c, GGML_TYPE_F32, extents(f->w, f->h, f->in, f->batch), PACKED);
    }
    bound_products(c, f->kw * f->kh);
    conformance_check(
        c, ggml_conv_2d_dw_direct(c->ctx, kernel, image, f->s0, f->s1, f->p0, f->p1, f->d0, f->d1));
}

static void cases_conv_2d_dw(struct conformance *c) {
    for (int s = 0; s < N_CONVS; ++s) {
        for (int m = 0; m < 6; ++m)
            conv_2d_dw_case(c, &convs[s], kernel_type_of(m), m >= 3);
    }
}

CONFORMANCE_OP(CONV_2D_DW, oracle_conv_2d, cases_conv_2d_dw, 1, why_conv,
               .magnitude = magnitude_conv_2d);

// --- conv_3d -------------------------------------------------------------------------------------

static void conv_3d_at(const struct ggml_tensor *node, const int64_t i[4], struct oracle_sum *sum) {
    const struct ggml_tensor *kernel = node->src[0], *image = node->src[1];
    const int32_t *p = node->op_params;
    const int64_t *k = kernel->ne;
    const int64_t in = p[9], oc = i[3] % p[11], batch = i[3] / p[11];
    for (int64_t n = 0; n < k[0] * k[1] * k[2]; ++n) {
        const int64_t kx = n % k[0], ky = n / k[0] % k[1], kz = n / k[0] / k[1];
        const int64_t x = i[0] * p[0] + kx * p[6] - p[3];
        const int64_t y = i[1] * p[1] + ky * p[7] - p[4];
        const int64_t z = i[2] * p[2] + kz * p[8] - p[5];
        if (!inside(x, image->ne[0]) || !inside(y, image->ne[1]) || !inside(z, image->ne[2]))
            continue;
        for (int64_t ic = 0; ic < in; ++ic) {
            oracle_add(sum, oracle_value(kernel, kx, ky, kz, oc * in + ic) *
                                oracle_value(image, x, y, z, batch * in + ic));
        }
    }
}
ORACLE_SUM(conv_3d)

static void conv_3d_case(struct conformance *c, const struct volume_form *f,
                         enum ggml_type kernel_type, enum ggml_type type,
                         enum conformance_layout layout) {
    if (!conformance_case(c, "%s-%s/k=%dx%dx%d/%dx%dx%d/c=%d,%d/n=%d/%s",
                          ggml_type_name(kernel_type), ggml_type_name(type), (int)f->k[0],
                          (int)f->k[1], (int)f->k[2], (int)f->ne[0], (int)f->ne[1], (int)f->ne[2],
                          (int)f->channels, (int)f->out_channels, (int)f->batch,
                          conformance_layout_name(layout))) {
        return;
    }
    struct ggml_tensor *kernel = conformance_input(
        c, kernel_type, extents(f->k[0], f->k[1], f->k[2], f->channels * f->out_channels), PACKED);
    struct ggml_tensor *image = conformance_input(
        c, type, extents(f->ne[0], f->ne[1], f->ne[2], f->channels * f->batch), layout);
    bound_products(c, f->k[0] * f->k[1] * f->k[2] * f->channels);
    conformance_check(c,
                      ggml_conv_3d_direct(c->ctx, kernel, image, f->s[0], f->s[1], f->s[2], f->p[0],
                                          f->p[1], f->p[2], f->d[0], f->d[1], f->d[2],
                                          (int)f->channels, (int)f->batch, (int)f->out_channels));
}

static void cases_conv_3d(struct conformance *c) {
    for (int s = 0; s < N_VOLUMES; ++s) {
        if (volumes[s].batch == 0) continue; // the builder wants an image
        for (int layout = 0; layout < N_LAYOUTS; ++layout) {
            for (int t = 0; t < (layout == PACKED ? N_TYPE_PAIRS : 2); ++t)
                conv_3d_case(c, &volumes[s], kernel_type_of(t), image_type_of(t),
                             (enum conformance_layout)layout);
        }
    }
}

CONFORMANCE_OP(CONV_3D, oracle_conv_3d, cases_conv_3d, 1, why_conv, .magnitude = magnitude_conv_3d);

// --- transposed ----------------------------------------------------------------------------------

// Input positions whose kernel element `k` reaches x: the position, or -1.
static int64_t reached_from(int64_t x, int64_t k, int stride, int64_t n) {
    const int64_t at = x - k;
    return at >= 0 && at % stride == 0 && at / stride < n ? at / stride : -1;
}

static void conv_transpose_1d_at(const struct ggml_tensor *node, const int64_t i[4],
                                 struct oracle_sum *sum) {
    const struct ggml_tensor *kernel = node->src[0], *b = node->src[1];
    for (int64_t k = 0; k < kernel->ne[0]; ++k) {
        const int64_t l = reached_from(i[0], k, node->op_params[0], b->ne[0]);
        for (int64_t ic = 0; ic < kernel->ne[2] && l >= 0; ++ic)
            oracle_add(sum, oracle_value(kernel, k, i[1], ic, 0) * oracle_value(b, l, ic, 0, 0));
    }
}
ORACLE_SUM(conv_transpose_1d)

static void cases_conv_transpose_1d(struct conformance *c) {
    static const int forms[][5] = {
        // K, OC, IC, L, stride
        {3, 4, 5, 7, 1},  {1, 1, 1, 1, 1},   {4, 3, 2, 13, 2}, {16, 2, 3, 9, 8},   {2, 5, 4, 11, 3},
        {7, 1, 33, 5, 2}, {3, 17, 1, 64, 1}, {5, 2, 2, 1, 4},  {10, 8, 16, 31, 5}, {3, 2, 2, 0, 1},
    };
    for (int m = 0; m < 3 * N_TYPE_PAIRS; ++m) {
        for (size_t s = m % 3; s < sizeof(forms) / sizeof(forms[0]); s += m < 6 ? 1 : 2) {
            static const enum conformance_layout layouts[] = {PACKED, GAPS, TRANSPOSED};
            const int *f = forms[s];
            const enum ggml_type kernel_type = kernel_type_of(m / 3);
            const enum ggml_type type = image_type_of(m / 3);
            const enum conformance_layout layout = layouts[m % 3];
            if (!conformance_case(c, "%s-%s/K=%d/OC=%d/IC=%d/L=%d/s=%d/%s",
                                  ggml_type_name(kernel_type), ggml_type_name(type), f[0], f[1],
                                  f[2], f[3], f[4], conformance_layout_name(layout))) {
                continue;
            }
            struct ggml_tensor *a = conformance_input(c, kernel_type, extents(f[0], f[1], f[2], 1),
                                                      layout == GAPS ? GAPS : PACKED);
            struct ggml_tensor *b = conformance_input(c, type, extents(f[3], f[2], 1, 1), layout);
            bound_products(c, (f[0] / f[4] + 1) * f[2]);
            conformance_check(c, ggml_conv_transpose_1d(c->ctx, a, b, f[4], 0, 1));
        }
    }
}

CONFORMANCE_OP(CONV_TRANSPOSE_1D, oracle_conv_transpose_1d, cases_conv_transpose_1d, 1, why_conv,
               .magnitude = magnitude_conv_transpose_1d);

static void conv_transpose_2d_at(const struct ggml_tensor *node, const int64_t i[4],
                                 struct oracle_sum *sum) {
    const struct ggml_tensor *kernel = node->src[0], *b = node->src[1];
    const int stride = node->op_params[0];
    for (int64_t n = 0; n < kernel->ne[0] * kernel->ne[1]; ++n) {
        const int64_t kx = n % kernel->ne[0], ky = n / kernel->ne[0];
        const int64_t x = reached_from(i[0], kx, stride, b->ne[0]);
        const int64_t y = reached_from(i[1], ky, stride, b->ne[1]);
        for (int64_t ic = 0; ic < kernel->ne[3] && x >= 0 && y >= 0; ++ic) {
            oracle_add(sum,
                       oracle_value(kernel, kx, ky, i[2], ic) * oracle_value(b, x, y, ic, i[3]));
        }
    }
}
ORACLE_SUM(conv_transpose_2d)

static void cases_conv_transpose_2d(struct conformance *c) {
    for (int m = 0; m < 2 * N_TYPE_PAIRS; ++m) {
        for (int s = m % 2; s < N_CONVS; s += m < 4 ? 1 : 2) {
            const struct conv_form *f = &convs[s];
            const enum ggml_type kernel_type = kernel_type_of(m / 2);
            const enum ggml_type type = image_type_of(m / 2);
            const enum conformance_layout layout = m % 2 ? GAPS : PACKED;
            if (!conformance_case(c, "%s-%s/k=%dx%d/%dx%d/c=%d,%d/n=%d/s=%d/%s",
                                  ggml_type_name(kernel_type), ggml_type_name(type), (int)f->kw,
                                  (int)f->kh, (int)f->w, (int)f->h, (int)f->in, (int)f->out,
                                  (int)f->batch, f->s0, conformance_layout_name(layout))) {
                continue;
            }
            struct ggml_tensor *a =
                conformance_input(c, kernel_type, extents(f->kw, f->kh, f->out, f->in), layout);
            struct ggml_tensor *b =
                conformance_input(c, type, extents(f->w, f->h, f->in, f->batch), layout);
            bound_products(c, f->kw * f->kh * f->in);
            conformance_check(c, ggml_conv_transpose_2d_p0(c->ctx, a, b, f->s0));
        }
    }
}

CONFORMANCE_OP(CONV_TRANSPOSE_2D, oracle_conv_transpose_2d, cases_conv_transpose_2d, 1, why_conv,
               .magnitude = magnitude_conv_transpose_2d);
