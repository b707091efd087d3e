// SPDX-License-Identifier: MIT
// Pooling, resampling, padding, windows and sequences against loops in double precision.
#include "cpu_test.h"

#include <float.h>
#include <stdlib.h>

static struct ggml_tensor *small_image(struct ggml_context *ctx) {
    return test_gapped(ctx, GGML_TYPE_F32, (struct extents){{9, 7, 3, 2}}, 1, -2, 2);
}

// --- pooling -------------------------------------------------------------------------------------

struct pooling {
    enum ggml_op_pool op;
    int k[2], s[2], p[2];
    bool one_dim;
};

static bool inside(int64_t i, int64_t n) {
    return i >= 0 && i < n;
}

static double pool_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    const struct pooling *p = context;
    const struct ggml_tensor *x = y->src[0];
    double largest = -(double)FLT_MAX, sum = 0, valid = 0;
    for (int64_t n = 0; n < p->k[0] * p->k[1]; ++n) {
        const int64_t ix = i[0] * p->s[0] - p->p[0] + n % p->k[0];
        const int64_t iy = i[1] * p->s[1] - p->p[1] + n / p->k[0];
        if (!inside(ix, x->ne[0]) || !inside(iy, x->ne[1])) continue;
        largest = fmax(largest, test_get(x, ix, iy, i[2], i[3]));
        sum += test_get(x, ix, iy, i[2], i[3]);
        ++valid;
    }
    if (p->op == GGML_OP_POOL_MAX) return largest;
    return valid == 0 ? 0 : sum / (p->one_dim ? valid : p->k[0] * p->k[1]);
}

static const struct pooling poolings[] = {
    {GGML_OP_POOL_MAX, {3, 2}, {2, 1}, {1, 1}, false},
    {GGML_OP_POOL_AVG, {3, 2}, {2, 1}, {1, 1}, false},
    {GGML_OP_POOL_MAX, {2, 2}, {2, 2}, {0, 0}, false},
    {GGML_OP_POOL_AVG, {4, 1}, {1, 3}, {2, 0}, false},
};

static void test_pool(void **state) {
    (void)state;
    for (int k = 0; k < 4; ++k) {
        struct ggml_context *ctx = test_context(4);
        struct pooling p = poolings[k];
        struct ggml_tensor *x = small_image(ctx);
        struct ggml_tensor *y = ggml_pool_2d(ctx, x, p.op, p.k[0], p.k[1], p.s[0], p.s[1],
                                             (float)p.p[0], (float)p.p[1]);
        test_against(ctx, y, pool_oracle, &p, "pool_2d");
        p.one_dim = true;
        p.k[1] = p.s[1] = 1;
        p.p[1] = 0;
        struct ggml_tensor *h =
            test_tensor(ctx, GGML_TYPE_F16, (struct extents){{97, 200, 2, 1}}, 2, -2, 2);
        test_against(ctx, ggml_pool_1d(ctx, h, p.op, p.k[0], p.s[0], p.p[0]), pool_oracle, &p,
                     "pool_1d");
        ggml_free(ctx);
    }
}

// NaN is the maximum of a window that has nothing else, or where no number follows it.
static void test_maximum_of_nan(void **state) {
    (void)state;
    static const float rows[15] = {NAN, NAN, NAN, 1, NAN, 2, 2, NAN, 1, NAN, 3, NAN, 1, 2, 3};
    static const float largest[5] = {NAN, 2, 1, NAN, 3};
    struct ggml_context *ctx = test_context(2);
    struct ggml_tensor *line = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 15);
    memcpy(line->data, rows, sizeof(rows));
    struct ggml_tensor *plane = ggml_reshape_2d(ctx, line, 3, 5);
    struct ggml_tensor *pooled[2] = {ggml_pool_1d(ctx, line, GGML_OP_POOL_MAX, 3, 3, 0),
                                     ggml_pool_2d(ctx, plane, GGML_OP_POOL_MAX, 3, 1, 3, 1, 0, 0)};
    for (int k = 0; k < 2; ++k) {
        assert_int_equal(test_compute(test_graph(ctx, pooled[k]), 1), GGML_STATUS_SUCCESS);
        for (int i = 0; i < 5; ++i) {
            const float got = ggml_get_f32_1d(pooled[k], i);
            assert_true(isnan(largest[i]) ? isnan(got) : got == largest[i]);
        }
    }
    ggml_free(ctx);
}

// Whether (x, y) is where the maximum of window (ox, oy) is first found.
static bool takes_maximum(const struct ggml_tensor *in, const struct pooling *p, const int64_t *i,
                          int64_t ox, int64_t oy) {
    double largest = -INFINITY;
    int64_t best[2] = {-1, -1};
    for (int64_t n = 0; n < p->k[0] * p->k[1]; ++n) {
        const int64_t ix = ox * p->s[0] - p->p[0] + n % p->k[0];
        const int64_t iy = oy * p->s[1] - p->p[1] + n / p->k[0];
        if (!inside(ix, in->ne[0]) || !inside(iy, in->ne[1])) continue;
        const double value = test_get(in, ix, iy, i[2], i[3]);
        if (!(value > largest)) continue;
        largest = value;
        best[0] = ix;
        best[1] = iy;
    }
    return best[0] == i[0] && best[1] == i[1];
}

static double pool_back_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    const struct pooling *p = context;
    const struct ggml_tensor *grad = y->src[0];
    double sum = 0;
    for (int64_t n = 0; n < grad->ne[0] * grad->ne[1]; ++n) {
        const int64_t ox = n % grad->ne[0], oy = n / grad->ne[0];
        const double g = test_get(grad, ox, oy, i[2], i[3]);
        if (!inside(i[0] - ox * p->s[0] + p->p[0], p->k[0]) ||
            !inside(i[1] - oy * p->s[1] + p->p[1], p->k[1])) {
            continue;
        }
        if (p->op == GGML_OP_POOL_AVG)
            sum += g / (p->k[0] * p->k[1]);
        else if (takes_maximum(y->src[1], p, i, ox, oy))
            sum += g;
    }
    return sum;
}

static void test_pool_back(void **state) {
    (void)state;
    for (int k = 0; k < 4; ++k) {
        struct ggml_context *ctx = test_context(4);
        const struct pooling p = poolings[k];
        struct ggml_tensor *x = test_tensor(ctx, k % 2 ? GGML_TYPE_F16 : GGML_TYPE_F32,
                                            (struct extents){{29, 23, 3, 1}}, 3, -2, 2);
        ggml_set_f32_nd(x, 2, 2, 0, 0, 9);
        ggml_set_f32_nd(x, 3, 2, 0, 0, 9);
        struct ggml_tensor *y = ggml_pool_2d(ctx, x, p.op, p.k[0], p.k[1], p.s[0], p.s[1],
                                             (float)p.p[0], (float)p.p[1]);
        struct ggml_tensor *g =
            test_tensor(ctx, GGML_TYPE_F32, (struct extents){{y->ne[0], y->ne[1], 3, 1}}, 4, -1, 1);
        struct ggml_tensor *back = ggml_pool_2d_back(ctx, g, x, p.op, p.k[0], p.k[1], p.s[0],
                                                     p.s[1], (float)p.p[0], (float)p.p[1]);
        test_against(ctx, back, pool_back_oracle, &p, "pool_2d_back");
        ggml_free(ctx);
    }
}

// --- resampling ----------------------------------------------------------------------------------

static void check_scaled(struct ggml_tensor *y, const float *want, int n) {
    assert_int_equal(ggml_nelements(y), n);
    for (int i = 0; i < n; ++i)
        assert_float_equal(ggml_get_f32_1d(y, i), want[i], 1e-5);
}

static void test_upscale_by_hand(void **state) {
    (void)state;
    static const struct {
        uint32_t mode;
        int64_t n;
        float want[8];
    } rows[] = {
        {GGML_SCALE_MODE_NEAREST, 8, {0, 0, 1, 1, 4, 4, 9, 9}},
        {GGML_SCALE_MODE_BILINEAR, 8, {0, 0.25f, 0.75f, 1.75f, 3.25f, 5.25f, 7.75f, 9}},
        {GGML_SCALE_MODE_BILINEAR | GGML_SCALE_FLAG_ALIGN_CORNERS,
         7,
         {0, 0.5f, 1, 2.5f, 4, 6.5f, 9}},
        {GGML_SCALE_MODE_BILINEAR | GGML_SCALE_FLAG_ANTIALIAS, 2, {1, 5.7142857f}},
        {GGML_SCALE_MODE_BICUBIC | GGML_SCALE_FLAG_ALIGN_CORNERS, 4, {0, 1, 4, 9}},
        {GGML_SCALE_MODE_BICUBIC, 2, {0.21875f, 6.78125f}},
    };
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); ++k) {
        struct ggml_context *ctx = test_context(1);
        struct ggml_tensor *x = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4);
        for (int i = 0; i < 4; ++i)
            ggml_set_f32_1d(x, i, (float)(i * i));
        struct ggml_tensor *y = ggml_interpolate(ctx, x, rows[k].n, 1, 1, 1, rows[k].mode);
        assert_int_equal(test_compute(test_graph(ctx, y), 1), GGML_STATUS_SUCCESS);
        check_scaled(y, rows[k].want, (int)rows[k].n);
        ggml_free(ctx);
    }
}

// A plane stays one, away from the borders.
static double plane_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    (void)context;
    const int64_t *ne = y->src[0]->ne;
    const double x0 =
        fmin(fmax((double)(2 * i[0] + 1) * (double)ne[0] / (double)(2 * y->ne[0]) - 0.5, 0),
             (double)ne[0] - 1);
    const double x1 =
        fmin(fmax((double)(2 * i[1] + 1) * (double)ne[1] / (double)(2 * y->ne[1]) - 0.5, 0),
             (double)ne[1] - 1);
    return x0 + 10 * x1 + 100 * (double)(i[2] / 2) + 1000 * (double)i[3];
}

static void test_upscale_of_a_plane(void **state) {
    (void)state;
    struct ggml_context *ctx = test_context(4);
    struct ggml_tensor *x = small_image(ctx);
    for (int64_t n = 0; n < ggml_nelements(x); ++n) {
        const int i0 = (int)(n % 9), i1 = (int)(n / 9 % 7), i2 = (int)(n / 63 % 3),
                  i3 = (int)(n / 189);
        ggml_set_f32_nd(x, i0, i1, i2, i3, (float)(i0 + 10 * i1 + 100 * i2 + 1000 * i3));
    }
    struct ggml_tensor *y = ggml_interpolate(ctx, x, 31, 16, 6, 2, GGML_SCALE_MODE_BILINEAR);
    test_against(ctx, y, plane_oracle, NULL, "upscale");
    ggml_free(ctx);
}

// --- padding -------------------------------------------------------------------------------------

static double pad_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    const bool circular = *(const bool *)context;
    const struct ggml_tensor *x = y->src[0];
    int64_t at[4];
    for (int d = 0; d < 4; ++d) {
        at[d] = i[d] - y->op_params[2 * d];
        if (circular) at[d] = (at[d] + x->ne[d]) % x->ne[d];
        if (!inside(at[d], x->ne[d])) return 0;
    }
    return test_get(x, at[0], at[1], at[2], at[3]);
}

static double reflect_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    (void)context;
    const int64_t n = y->src[0]->ne[0], at = llabs(i[0] - y->op_params[0]);
    return test_get(y->src[0], at < n ? at : 2 * (n - 1) - at, i[1], i[2], i[3]);
}

static double roll_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    (void)context;
    int64_t at[4];
    for (int d = 0; d < 4; ++d)
        at[d] = (i[d] - y->op_params[d] + y->ne[d]) % y->ne[d];
    return test_get(y->src[0], at[0], at[1], at[2], at[3]);
}

static void test_pad_and_roll(void **state) {
    (void)state;
    static const bool no = false, yes = true;
    struct ggml_context *ctx = test_context(8);
    struct ggml_tensor *x = small_image(ctx);
    struct ggml_tensor *turned = ggml_permute(ctx, x, 1, 0, 3, 2);
    test_against(ctx, ggml_pad_ext(ctx, x, 1, 2, 0, 3, 2, 1, 1, 0), pad_oracle, &no, "pad");
    test_against(ctx, ggml_pad(ctx, turned, 40, 9, 1, 2), pad_oracle, &no, "pad, strided");
    test_against(ctx, ggml_pad_ext_circular(ctx, x, 9, 4, 1, 7, 0, 3, 2, 1), pad_oracle, &yes,
                 "pad_circular");
    test_against(ctx, ggml_roll(ctx, x, 4, -6, 2, -1), roll_oracle, NULL, "roll");
    struct ggml_tensor *dense =
        test_tensor(ctx, GGML_TYPE_F32, (struct extents){{9, 7, 3, 2}}, 11, -2, 2);
    test_against(ctx, ggml_pad_reflect_1d(ctx, dense, 8, 3), reflect_oracle, NULL,
                 "pad_reflect_1d");
    ggml_free(ctx);
}

// --- windows -------------------------------------------------------------------------------------

static double part_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    (void)context;
    const struct ggml_tensor *x = y->src[0];
    const int64_t w = y->ne[1], npx = (x->ne[1] + w - 1) / w;
    const int64_t x1 = i[3] % npx * w + i[1], x2 = i[3] / npx * w + i[2];
    return inside(x1, x->ne[1]) && inside(x2, x->ne[2]) ? test_get(x, i[0], x1, x2, 0) : 0;
}

static double original_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    (void)y;
    return test_get(context, i[0], i[1], i[2], i[3]);
}

static double rel_pos_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    (void)context;
    return test_get(y->src[0], i[0], y->ne[1] - 1 - i[1] + i[2], 0, 0);
}

static double add_rel_pos_oracle(const struct ggml_tensor *y, const int64_t *i,
                                 const void *context) {
    (void)context;
    const struct ggml_tensor *pw = y->src[1], *ph = y->src[2];
    const int64_t n = pw->ne[0], at1 = i[1] % pw->ne[1], at2 = i[1] / pw->ne[1];
    return test_get(y->src[0], i[0], i[1], i[2], 0) + test_get(ph, i[0] / n, at1, at2, i[2]) +
           test_get(pw, i[0] % n, at1, at2, i[2]);
}

static void test_windows(void **state) {
    (void)state;
    struct ggml_context *ctx = test_context(8);
    struct ggml_tensor *x =
        test_tensor(ctx, GGML_TYPE_F32, (struct extents){{19, 23, 37, 1}}, 5, -1, 1);
    struct ggml_tensor *parts = ggml_win_part(ctx, x, 5);
    test_against(ctx, parts, part_oracle, NULL, "win_part");
    test_against(ctx, ggml_win_unpart(ctx, parts, 23, 37, 5), original_oracle, x, "win_unpart");
    struct ggml_tensor *r =
        test_tensor(ctx, GGML_TYPE_F16, (struct extents){{6, 13, 1, 1}}, 6, -1, 1);
    test_against(ctx, ggml_get_rel_pos(ctx, r, 7, 7), rel_pos_oracle, NULL, "get_rel_pos");
    struct ggml_tensor *a =
        test_tensor(ctx, GGML_TYPE_F32, (struct extents){{25, 350, 2, 1}}, 7, -1, 1);
    struct ggml_tensor *pw =
        test_tensor(ctx, GGML_TYPE_F32, (struct extents){{5, 50, 7, 2}}, 8, -1, 1);
    struct ggml_tensor *ph =
        test_tensor(ctx, GGML_TYPE_F32, (struct extents){{5, 50, 7, 2}}, 9, -1, 1);
    test_against(ctx, ggml_add_rel_pos(ctx, a, pw, ph), add_rel_pos_oracle, NULL, "add_rel_pos");
    ggml_free(ctx);
}

// --- sequences -----------------------------------------------------------------------------------

static double arange_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    (void)y;
    (void)context;
    return -3.0 + 0.25 * (double)i[0];
}

static double timestep_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    (void)context;
    const int64_t half = y->ne[0] / 2;
    if (i[0] == 2 * half) return 0;
    const double frequency = pow(10000.0, -(double)(i[0] % half) / (double)half);
    const double phase = test_get(y->src[0], i[1], 0, 0, 0) * frequency;
    return i[0] < half ? cos(phase) : sin(phase);
}

static void test_sequences(void **state) {
    (void)state;
    struct ggml_context *ctx = test_context(4);
    test_against(ctx, ggml_arange(ctx, -3.0f, 5000.0f, 0.25f), arange_oracle, NULL, "arange");
    struct ggml_tensor *t =
        test_tensor(ctx, GGML_TYPE_F32, (struct extents){{5, 1, 1, 1}}, 10, 0, 1000);
    test_against(ctx, ggml_timestep_embedding(ctx, t, 321, 10000), timestep_oracle, NULL,
                 "timesteps");
    test_against(ctx, ggml_timestep_embedding(ctx, t, 1, 10000), timestep_oracle, NULL,
                 "timesteps");
    ggml_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pool),
        cmocka_unit_test(test_maximum_of_nan),
        cmocka_unit_test(test_pool_back),
        cmocka_unit_test(test_upscale_by_hand),
        cmocka_unit_test(test_upscale_of_a_plane),
        cmocka_unit_test(test_pad_and_roll),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_sequences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
