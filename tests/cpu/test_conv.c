// SPDX-License-Identifier: MIT
// Convolutions and their patches against loops in double precision.
#include "cpu_test.h"

// Stride, padding and dilation of three dimensions; 2D cases use the first two.
struct window {
    int s[3], p[3], d[3];
};

static const struct window windows[] = {
    {{1, 1, 1}, {0, 0, 0}, {1, 1, 1}},
    {{2, 1, 1}, {1, 2, 0}, {1, 1, 1}},
    {{1, 3, 2}, {4, 0, 1}, {2, 1, 1}},
    {{3, 2, 1}, {5, 3, 2}, {3, 2, 2}},
};
enum { N_WINDOWS = sizeof(windows) / sizeof(windows[0]) };

// Image element of window `out`, kernel element k along dim d.
static int64_t position(const struct window *w, int d, int64_t out, int64_t k) {
    return out * w->s[d] - w->p[d] + k * w->d[d];
}

// 0 outside; `above` are the indices of dims 2 and 3.
static double pixel(const struct ggml_tensor *t, int64_t x, int64_t y, int64_t i2, int64_t i3) {
    const bool inside =
        x >= 0 && x < t->ne[0] && y >= 0 && y < t->ne[1] && i2 >= 0 && i2 < t->ne[2];
    return inside ? test_get(t, x, y, i2, i3) : 0;
}

static struct ggml_tensor *image(struct ggml_context *ctx, int64_t w, int64_t h, int64_t c,
                                 int64_t n) {
    return test_gapped(ctx, GGML_TYPE_F32, (struct extents){{w, h, c, n}}, 1, -1, 1);
}

static struct ggml_tensor *kernel(struct ggml_context *ctx, enum ggml_type type, int64_t w,
                                  int64_t h, int64_t a, int64_t b) {
    return test_tensor(ctx, type, (struct extents){{w, h, a, b}}, 2, -1, 1);
}

// --- patches -------------------------------------------------------------------------------------

static double im2col_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    const struct ggml_tensor *k = y->src[0];
    const int64_t kx = i[0] % k->ne[0], ky = i[0] / k->ne[0] % k->ne[1];
    return pixel(y->src[1], position(context, 0, i[1], kx), position(context, 1, i[2], ky),
                 i[0] / k->ne[0] / k->ne[1], i[3]);
}

static double im2col_1d_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    const int64_t n = y->src[0]->ne[0];
    return pixel(y->src[1], position(context, 0, i[1], i[0] % n), i[0] / n, i[2], 0);
}

enum { CHANNELS = 2 };

static double im2col_3d_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    const int64_t *k = y->src[0]->ne;
    const int64_t depth = y->ne[3] / (y->src[1]->ne[3] / CHANNELS);
    const int64_t kx = i[0] % k[0], ky = i[0] / k[0] % k[1], kz = i[0] / k[0] / k[1] % k[2];
    const int64_t channel = i[0] / k[0] / k[1] / k[2];
    return pixel(y->src[1], position(context, 0, i[1], kx), position(context, 1, i[2], ky),
                 position(context, 2, i[3] % depth, kz), i[3] / depth * CHANNELS + channel);
}

static void check_im2col(const struct window *w, enum ggml_type type, enum ggml_type image_type) {
    struct ggml_context *ctx = test_context(8);
    struct ggml_tensor *k = kernel(ctx, GGML_TYPE_F16, 3, 2, 4, 5);
    struct ggml_tensor *x =
        test_gapped(ctx, image_type, (struct extents){{13, 11, 4, 3}}, 1, -1, 1);
    struct ggml_tensor *y =
        ggml_im2col(ctx, k, x, w->s[0], w->s[1], w->p[0], w->p[1], w->d[0], w->d[1], true, type);
    test_against(ctx, y, im2col_oracle, w, "im2col");
    k = kernel(ctx, GGML_TYPE_F32, 4, 11, 2, 1);
    x = test_gapped(ctx, image_type, (struct extents){{13, 11, 4, 1}}, 1, -1, 1);
    y = ggml_im2col(ctx, k, x, w->s[0], 0, w->p[0], 0, w->d[0], 0, false, type);
    test_against(ctx, y, im2col_1d_oracle, w, "im2col 1d");
    k = kernel(ctx, GGML_TYPE_F16, 3, 2, 1, 6);
    x = test_gapped(ctx, image_type, (struct extents){{7, 5, 4, 3 * CHANNELS}}, 1, -1, 1);
    y = ggml_im2col_3d(ctx, k, x, CHANNELS, w->s[0], w->s[1], w->s[2], w->p[0], w->p[1], w->p[2],
                       w->d[0], w->d[1], w->d[2], type);
    test_against(ctx, y, im2col_3d_oracle, w, "im2col_3d");
    ggml_free(ctx);
}

static void test_im2col(void **state) {
    (void)state;
    static const enum ggml_type types[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_F16,
                                           GGML_TYPE_BF16};
    static const enum ggml_type images[] = {GGML_TYPE_F32, GGML_TYPE_F32, GGML_TYPE_F16,
                                            GGML_TYPE_F32};
    for (int k = 0; k < N_WINDOWS; ++k)
        check_im2col(&windows[k], types[k], images[k]);
}

static double im2col_back_oracle(const struct ggml_tensor *y, const int64_t *i,
                                 const void *context) {
    const struct ggml_tensor *grad = y->src[0];
    const int64_t kw = y->src[1]->ne[0], kh = y->src[1]->ne[1];
    double sum = 0;
    for (int64_t n = 0; n < grad->ne[1] * grad->ne[2] * kw * kh; ++n) {
        const int64_t kx = n % kw, ky = n / kw % kh;
        const int64_t ox = n / kw / kh % grad->ne[1], oy = n / kw / kh / grad->ne[1];
        if (position(context, 0, ox, kx) == i[0] && position(context, 1, oy, ky) == i[1])
            sum += test_get(grad, (i[2] * kh + ky) * kw + kx, ox, oy, i[3]);
    }
    return sum;
}

static void test_im2col_back(void **state) {
    (void)state;
    for (int k = 0; k < N_WINDOWS; ++k) {
        const struct window *w = &windows[k];
        struct ggml_context *ctx = test_context(8);
        struct ggml_tensor *kern = kernel(ctx, GGML_TYPE_F16, 3, 2, 4, 5);
        struct ggml_tensor *x = image(ctx, 9, 8, 4, 2);
        struct ggml_tensor *y = ggml_im2col(ctx, kern, x, w->s[0], w->s[1], w->p[0], w->p[1],
                                            w->d[0], w->d[1], true, GGML_TYPE_F32);
        struct ggml_tensor *g = image(ctx, y->ne[0], y->ne[1], y->ne[2], y->ne[3]);
        struct ggml_tensor *back = ggml_im2col_back(ctx, g, kern, x->ne, w->s[0], w->s[1], w->p[0],
                                                    w->p[1], w->d[0], w->d[1], true);
        test_against(ctx, back, im2col_back_oracle, w, "im2col_back");
        ggml_free(ctx);
    }
}

static double col2im_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    (void)context;
    const struct ggml_tensor *a = y->src[0];
    const int64_t size = a->ne[0] / y->ne[1];
    double sum = 0;
    for (int64_t t = 0; t < a->ne[1]; ++t) {
        const int64_t k = i[0] + y->op_params[2] - t * y->op_params[0];
        if (k >= 0 && k < size) sum += test_get(a, i[1] * size + k, t, 0, 0);
    }
    return sum;
}

static void test_col2im(void **state) {
    (void)state;
    static const enum ggml_type types[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16};
    for (int k = 0; k < 3; ++k) {
        struct ggml_context *ctx = test_context(4);
        struct ggml_tensor *a =
            test_tensor(ctx, types[k], (struct extents){{7 * 5, 301, 1, 1}}, 3, -1, 1);
        test_against(ctx, ggml_col2im_1d(ctx, a, 1 + 2 * k, 5, k), col2im_oracle, NULL,
                     "col2im_1d");
        ggml_free(ctx);
    }
}

// --- direct --------------------------------------------------------------------------------------

static double conv_2d_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    const struct ggml_tensor *k = y->src[0];
    double sum = 0;
    for (int64_t n = 0; n < k->ne[0] * k->ne[1] * k->ne[2]; ++n) {
        const int64_t kx = n % k->ne[0], ky = n / k->ne[0] % k->ne[1], c = n / k->ne[0] / k->ne[1];
        sum += test_get(k, kx, ky, c, i[2]) * pixel(y->src[1], position(context, 0, i[0], kx),
                                                    position(context, 1, i[1], ky), c, i[3]);
    }
    return sum;
}

static struct ggml_tensor *conv_2d(struct ggml_context *ctx, const struct window *w,
                                   struct ggml_tensor *k, struct ggml_tensor *x) {
    return ggml_conv_2d_direct(ctx, k, x, w->s[0], w->s[1], w->p[0], w->p[1], w->d[0], w->d[1]);
}

static void test_conv_2d(void **state) {
    (void)state;
    for (int k = 0; k < N_WINDOWS; ++k) {
        struct ggml_context *ctx = test_context(8);
        const enum ggml_type type = k % 2 ? GGML_TYPE_F16 : GGML_TYPE_F32;
        struct ggml_tensor *small = kernel(ctx, type, 3, 2, 5, 7);
        struct ggml_tensor *x = image(ctx, 11, 9, 5, 2);
        test_against(ctx, conv_2d(ctx, &windows[k], small, x), conv_2d_oracle, &windows[k],
                     "conv_2d");
        struct ggml_tensor *turned = ggml_permute(ctx, image(ctx, 5, 11, 9, 1), 2, 0, 1, 3);
        test_against(ctx, conv_2d(ctx, &windows[k], small, turned), conv_2d_oracle, &windows[k],
                     "conv_2d, strided");
        struct ggml_tensor *wide = kernel(ctx, GGML_TYPE_BF16, 1, 1, 9, 131);
        test_against(ctx, conv_2d(ctx, &windows[k], wide, image(ctx, 8, 3, 9, 1)), conv_2d_oracle,
                     &windows[k], "conv_2d, 1 x 1");
        ggml_free(ctx);
    }
}

// More than one block of pixels and one group of filters, lines longer than a panel, and so few
// pixels that nothing is packed.
static void test_conv_2d_sizes(void **state) {
    (void)state;
    const struct window *plain = &windows[0], *wide = &windows[1];
    struct ggml_context *ctx = test_context(32);
    struct ggml_tensor *many = kernel(ctx, GGML_TYPE_F32, 3, 3, 2, 259);
    test_against(ctx, conv_2d(ctx, plain, many, image(ctx, 61, 12, 2, 2)), conv_2d_oracle, plain,
                 "conv_2d, many filters");
    test_against(ctx, conv_2d(ctx, wide, many, image(ctx, 131, 11, 2, 1)), conv_2d_oracle, wide,
                 "conv_2d, many filters, stride 2");
    // Weights as small as those of real filters, whose products don't add up to more than their
    // last bits can hold.
    const struct extents shape = {{3, 3, 67, 5}};
    struct ggml_tensor *deep = test_tensor(ctx, GGML_TYPE_F16, shape, 2, -0.25, 0.25);
    test_against(ctx, conv_2d(ctx, plain, deep, image(ctx, 5, 5, 67, 3)), conv_2d_oracle, plain,
                 "conv_2d, few pixels");
    test_against(ctx, conv_2d(ctx, plain, deep, image(ctx, 29, 6, 67, 1)), conv_2d_oracle, plain,
                 "conv_2d, deep patches");
    ggml_free(ctx);
}

static double conv_3d_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    const struct ggml_tensor *k = y->src[0];
    const int64_t channels_out = y->op_params[11];
    const int64_t oc = i[3] % channels_out, batch = i[3] / channels_out;
    double sum = 0;
    for (int64_t n = 0; n < k->ne[0] * k->ne[1] * k->ne[2] * CHANNELS; ++n) {
        const int64_t kx = n % k->ne[0], ky = n / k->ne[0] % k->ne[1];
        const int64_t kz = n / k->ne[0] / k->ne[1] % k->ne[2],
                      c = n / k->ne[0] / k->ne[1] / k->ne[2];
        sum += test_get(k, kx, ky, kz, oc * CHANNELS + c) *
               pixel(y->src[1], position(context, 0, i[0], kx), position(context, 1, i[1], ky),
                     position(context, 2, i[2], kz), batch * CHANNELS + c);
    }
    return sum;
}

static void test_conv_3d(void **state) {
    (void)state;
    for (int k = 0; k < N_WINDOWS; ++k) {
        const struct window *w = &windows[k];
        struct ggml_context *ctx = test_context(8);
        struct ggml_tensor *kern =
            kernel(ctx, k % 2 ? GGML_TYPE_F16 : GGML_TYPE_F32, 2, 3, 2, 3 * CHANNELS);
        struct ggml_tensor *x = image(ctx, 9, 8, 5, 2 * CHANNELS);
        struct ggml_tensor *y =
            ggml_conv_3d_direct(ctx, kern, x, w->s[0], w->s[1], w->s[2], w->p[0], w->p[1], w->p[2],
                                w->d[0], w->d[1], w->d[2], CHANNELS, 2, 3);
        test_against(ctx, y, conv_3d_oracle, w, "conv_3d");
        ggml_free(ctx);
    }
}

static double depthwise_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    const struct ggml_tensor *k = y->src[0];
    double sum = 0;
    for (int64_t n = 0; n < k->ne[0] * k->ne[1]; ++n) {
        const int64_t kx = n % k->ne[0], ky = n / k->ne[0];
        sum += test_get(k, kx, ky, 0, i[2]) * pixel(y->src[1], position(context, 0, i[0], kx),
                                                    position(context, 1, i[1], ky), i[2], i[3]);
    }
    return sum;
}

// Kernel and image whose channels lie side by side in memory.
static struct ggml_tensor *by_channels(struct ggml_context *ctx, enum ggml_type type,
                                       struct extents e, bool is_kernel) {
    if (is_kernel) {
        struct extents memory = {{e.ne[3], 1, e.ne[0], e.ne[1]}};
        return ggml_permute(ctx, test_tensor(ctx, type, memory, 4, -1, 1), 3, 2, 0, 1);
    }
    struct extents memory = {{e.ne[2], e.ne[0], e.ne[1], e.ne[3]}};
    return ggml_permute(ctx, test_tensor(ctx, type, memory, 5, -1, 1), 2, 0, 1, 3);
}

static void test_conv_2d_depthwise(void **state) {
    (void)state;
    static const struct extents kernel_shape = {{3, 2, 1, 37}}, image_shape = {{15, 13, 37, 2}};
    for (int k = 0; k < N_WINDOWS; ++k) {
        const struct window *w = &windows[k];
        struct ggml_context *ctx = test_context(8);
        const enum ggml_type type = k % 2 ? GGML_TYPE_F16 : GGML_TYPE_F32;
        for (int layout = 0; layout < 2; ++layout) {
            struct ggml_tensor *x = layout ? by_channels(ctx, GGML_TYPE_F32, image_shape, false)
                                           : test_gapped(ctx, GGML_TYPE_F32, image_shape, 1, -1, 1);
            struct ggml_tensor *kern = layout ? by_channels(ctx, type, kernel_shape, true)
                                              : test_tensor(ctx, type, kernel_shape, 2, -1, 1);
            struct ggml_tensor *y = ggml_conv_2d_dw_direct(ctx, kern, x, w->s[0], w->s[1], w->p[0],
                                                           w->p[1], w->d[0], w->d[1]);
            assert_int_equal(y->nb[2] == sizeof(float), layout);
            test_against(ctx, y, depthwise_oracle, w, "conv_2d_dw");
        }
        ggml_free(ctx);
    }
}

// --- transposed ----------------------------------------------------------------------------------

static double transposed_1d_oracle(const struct ggml_tensor *y, const int64_t *i,
                                   const void *context) {
    (void)context;
    const struct ggml_tensor *a = y->src[0], *b = y->src[1];
    double sum = 0;
    for (int64_t l = 0; l < b->ne[0]; ++l) {
        const int64_t k = i[0] - l * y->op_params[0];
        for (int64_t c = 0; c < b->ne[1] && k >= 0 && k < a->ne[0]; ++c)
            sum += test_get(a, k, i[1], c, 0) * test_get(b, l, c, 0, 0);
    }
    return sum;
}

static double transposed_2d_oracle(const struct ggml_tensor *y, const int64_t *i,
                                   const void *context) {
    (void)context;
    const struct ggml_tensor *a = y->src[0], *b = y->src[1];
    double sum = 0;
    for (int64_t n = 0; n < b->ne[0] * b->ne[1]; ++n) {
        const int64_t x = n % b->ne[0], row = n / b->ne[0];
        const int64_t kx = i[0] - x * y->op_params[0], ky = i[1] - row * y->op_params[0];
        if (kx < 0 || kx >= a->ne[0] || ky < 0 || ky >= a->ne[1]) continue;
        for (int64_t c = 0; c < b->ne[2]; ++c)
            sum += test_get(a, kx, ky, i[2], c) * test_get(b, x, row, c, i[3]);
    }
    return sum;
}

static void test_conv_transposed(void **state) {
    (void)state;
    static const enum ggml_type types[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16};
    for (int k = 0; k < 3; ++k) {
        struct ggml_context *ctx = test_context(8);
        struct ggml_tensor *a = kernel(ctx, types[k], k == 2 ? 35 : 5, 3, 6, 1);
        struct ggml_tensor *b = image(ctx, 400, 6, 1, 1);
        test_against(ctx, ggml_conv_transpose_1d(ctx, a, b, 1 + 3 * k, 0, 1), transposed_1d_oracle,
                     NULL, "conv_transpose_1d");
        a = kernel(ctx, types[k], 3, 4, 14, 5);
        b = image(ctx, 6, 7, 5, 3);
        test_against(ctx, ggml_conv_transpose_2d_p0(ctx, a, b, 1 + 2 * k), transposed_2d_oracle,
                     NULL, "conv_transpose_2d");
        ggml_free(ctx);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_im2col),
        cmocka_unit_test(test_im2col_back),
        cmocka_unit_test(test_col2im),
        cmocka_unit_test(test_conv_2d),
        cmocka_unit_test(test_conv_2d_sizes),
        cmocka_unit_test(test_conv_3d),
        cmocka_unit_test(test_conv_2d_depthwise),
        cmocka_unit_test(test_conv_transposed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
