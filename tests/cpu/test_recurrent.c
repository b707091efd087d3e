// SPDX-License-Identifier: MIT
// State-space models, linear attention and other special ops against loops in double precision.
#include "cpu_test.h"

#include <stdlib.h>

static struct ggml_tensor *dense(struct ggml_context *ctx, int64_t a, int64_t b, int64_t c,
                                 int64_t d, uint32_t seed) {
    return test_tensor(ctx, GGML_TYPE_F32, (struct extents){{a, b, c, d}}, seed, -1, 1);
}

static struct ggml_tensor *gapped(struct ggml_context *ctx, int64_t a, int64_t b, int64_t c,
                                  int64_t d, uint32_t seed) {
    return test_gapped(ctx, GGML_TYPE_F32, (struct extents){{a, b, c, d}}, seed, -1, 1);
}

// Element n of a dense tensor of floats.
static double at(const struct ggml_tensor *t, int64_t n) {
    return (double)((const float *)t->data)[n];
}

// The result of a recurrence as a list; elements that it leaves alone are NAN.
static double listed(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    return ((const double *)context)[i[0] + y->ne[0] * i[1]];
}

static void check_list(struct ggml_context *ctx, struct ggml_tensor *y, double *want,
                       const char *what) {
    assert_null(ggml_tensor_error(y));
    for (int64_t n = 0; n < ggml_nelements(y); ++n) {
        if (isnan(want[n])) ((float *)y->data)[n] = NAN;
    }
    test_against(ctx, y, listed, want, what);
    free(want);
}

static double *new_list(const struct ggml_tensor *y) {
    double *list = malloc((size_t)ggml_nelements(y) * sizeof(*list));
    for (int64_t n = 0; n < ggml_nelements(y); ++n)
        list[n] = NAN;
    return list;
}

// --- state-space models --------------------------------------------------------------------------

static double ssm_conv_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    (void)context;
    double sum = 0;
    for (int64_t k = 0; k < y->src[1]->ne[0]; ++k)
        sum += test_get(y->src[0], i[1] + k, i[0], i[2], 0) * test_get(y->src[1], k, i[0], 0, 0);
    return sum;
}

// Few tokens, and more than are transposed at once, of filters of which all but one kind are as
// long as a quad; tokens of a channel and taps of a filter adjacent and apart.
static void test_ssm_conv(void **state) {
    (void)state;
    enum { CHANNELS = 37, SEQUENCES_OF = 2 };
    static const int64_t tokens[] = {1, 3, 7, 29, 150};
    for (size_t n = 0; n < sizeof(tokens) / sizeof(tokens[0]); ++n) {
        for (int64_t taps = 3; taps < 5; ++taps) {
            struct ggml_context *ctx = test_context(8);
            const int64_t columns = taps - 1 + tokens[n];
            struct ggml_tensor *x = gapped(ctx, columns, CHANNELS, SEQUENCES_OF, 1, 2);
            struct ggml_tensor *apart =
                ggml_permute(ctx, gapped(ctx, CHANNELS, columns, SEQUENCES_OF, 1, 3), 1, 0, 2, 3);
            struct ggml_tensor *c = gapped(ctx, taps, CHANNELS, 1, 1, 1);
            struct ggml_tensor *c_apart = ggml_transpose(ctx, dense(ctx, CHANNELS, taps, 1, 1, 4));
            test_against(ctx, ggml_ssm_conv(ctx, x, c), ssm_conv_oracle, NULL, "ssm_conv");
            test_against(ctx, ggml_ssm_conv(ctx, apart, c), ssm_conv_oracle, NULL, "apart");
            test_against(ctx, ggml_ssm_conv(ctx, x, c_apart), ssm_conv_oracle, NULL, "taps apart");
            ggml_free(ctx);
        }
    }
}

enum { N = 19, P = 7, H = 6, G = 2, T = 4, S = 3 };

static double *scan(struct ggml_tensor *y, int64_t snapshots) {
    double *want = new_list(y);
    struct ggml_tensor *const *src = y->src;
    const int64_t states = N * P * H * S;
    double *slots = want + P * H * T * S;
    for (int64_t u = 0; u < P * H * S; ++u) {
        const int64_t p = u % P, h = u / P % H, s = u / P / H, group = h / (H / G);
        const int id = ggml_get_i32_1d(src[6], (int)s);
        for (int64_t n = 0; n < N; ++n)
            slots[u * N + n] = test_get(src[0], n, p, h, id);
        for (int64_t t = 0; t < T; ++t) {
            const double delta = log1p(exp(test_get(src[2], h, t, s, 0)));
            double sum = 0;
            for (int64_t n = 0; n < N; ++n) {
                double *x = &slots[u * N + n];
                const double rate = test_get(src[3], src[3]->ne[0] == 1 ? 0 : n, h, 0, 0);
                *x = *x * exp(delta * rate) +
                     test_get(src[4], n, group, t, s) * test_get(src[1], p, h, t, s) * delta;
                sum += *x * test_get(src[5], n, group, t, s);
                const int64_t slot = T - 1 - t;
                if (slot > 0 && slot < snapshots) slots[slot * states + u * N + n] = *x;
            }
            want[((s * T + t) * H + h) * P + p] = sum;
        }
    }
    return want;
}

static struct ggml_tensor *scan_node(struct ggml_context *ctx, int64_t rates, int64_t snapshots) {
    struct ggml_tensor *ids = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, S);
    for (int i = 0; i < S; ++i)
        ggml_set_i32_1d(ids, i, (i * 2 + 1) % 5);
    struct ggml_tensor *b = ggml_view_4d(ctx, dense(ctx, N, G, T + 1, S, 3), N, G, T, S, N * 4,
                                         N * G * 4, N * G * (T + 1) * 4, 0);
    return ggml_ssm_scan(ctx, dense(ctx, N, P, H, 5, 1), dense(ctx, P, H, T, S, 2),
                         dense(ctx, H, T, S, 1, 4), dense(ctx, rates, H, 1, 1, 5), b,
                         dense(ctx, N, G, T, S, 6), ids, snapshots);
}

static void test_ssm_scan(void **state) {
    (void)state;
    struct ggml_context *ctx = test_context(4);
    static const int64_t snapshots[] = {1, 2, 6};
    for (int k = 0; k < 3; ++k) {
        struct ggml_tensor *y = scan_node(ctx, 1, snapshots[k]);
        check_list(ctx, y, scan(y, snapshots[k]), "ssm_scan");
    }
    struct ggml_tensor *y = scan_node(ctx, N, 1);
    check_list(ctx, y, scan(y, 1), "ssm_scan, rate per element");
    // Without elements of a state, the output is 0.
    struct ggml_tensor *ids = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, S);
    ggml_set_i32(ids, 0);
    struct ggml_tensor *none = dense(ctx, 0, G, T, S, 7);
    struct ggml_tensor *zero =
        ggml_ssm_scan(ctx, dense(ctx, 0, P, H, S, 1), dense(ctx, P, H, T, S, 2),
                      dense(ctx, H, T, S, 1, 4), dense(ctx, 1, H, 1, 1, 5), none, none, ids, 1);
    assert_null(ggml_tensor_error(zero));
    ggml_set_f32(zero, 1.0f);
    assert_int_equal(test_compute(test_graph(ctx, zero), 2), GGML_STATUS_SUCCESS);
    for (int i = 0; i < P * H * T * S; ++i)
        assert_true(ggml_get_f32_1d(zero, i) == 0.0f);
    ggml_set_i32_1d(y->src[6], S - 1, 5);
    assert_int_equal(test_compute(test_graph(ctx, y), 2), GGML_STATUS_FAILED);
    ggml_free(ctx);
}

// --- linear attention ----------------------------------------------------------------------------

enum { SIZE = 21, HEADS = 3, TOKENS = 8, SEQUENCES = 2, EACH = TOKENS / SEQUENCES };

static double *start(const struct ggml_tensor *y, const struct ggml_tensor *state) {
    double *want = new_list(y);
    for (int64_t n = 0; n < ggml_nelements(state); ++n)
        want[SIZE * HEADS * TOKENS + n] = at(state, n);
    return want;
}

// Rows of the operands of token t and head h start at the index that this returns.
static int64_t row_of(int64_t t, int64_t h) {
    return (t * HEADS + h) * SIZE;
}

// The state of the head that token t belongs to.
static double *state_of(double *want, int64_t t, int64_t h) {
    return want + SIZE * HEADS * TOKENS + (t / EACH * HEADS + h) * SIZE * SIZE;
}

static void wkv6(double *want, struct ggml_tensor *const *src, int64_t t, int64_t h) {
    const int64_t row = row_of(t, h);
    double *st = state_of(want, t, h);
    for (int64_t j = 0; j < SIZE; ++j) {
        double sum = 0;
        for (int64_t i = 0; i < SIZE; ++i) {
            const double kv = at(src[0], row + i) * at(src[1], row + j);
            double *x = &st[i * SIZE + j];
            sum += at(src[2], row + i) * (at(src[3], h * SIZE + i) * kv + *x);
            *x = *x * at(src[4], row + i) + kv;
        }
        want[row + j] = sum;
    }
}

static void gated(double *want, struct ggml_tensor *const *src, int64_t t, int64_t h) {
    const int64_t row = row_of(t, h);
    double *st = state_of(want, t, h);
    for (int64_t j = 0; j < SIZE; ++j) {
        double sum = 0;
        for (int64_t i = 0; i < SIZE; ++i) {
            double *x = &st[i * SIZE + j];
            *x = *x * at(src[3], row + i) + at(src[0], row + i) * at(src[1], row + j);
            sum += *x * at(src[2], row + i) * 0.5;
        }
        want[row + j] = sum;
    }
}

static void wkv7(double *want, struct ggml_tensor *const *src, int64_t t, int64_t h) {
    const int64_t row = row_of(t, h);
    for (int64_t i = 0; i < SIZE; ++i) {
        double *st = state_of(want, t, h) + i * SIZE;
        double sa = 0, sum = 0;
        for (int64_t j = 0; j < SIZE; ++j)
            sa += at(src[4], row + j) * st[j];
        for (int64_t j = 0; j < SIZE; ++j) {
            st[j] = st[j] * at(src[1], row + j) + at(src[3], row + i) * at(src[2], row + j) +
                    sa * at(src[5], row + j);
            sum += st[j] * at(src[0], row + j);
        }
        want[row + i] = sum;
    }
}

static void check_attention(struct ggml_context *ctx, struct ggml_tensor *y, int state,
                            void (*step)(double *, struct ggml_tensor *const *, int64_t, int64_t)) {
    double *want = start(y, y->src[state]);
    for (int64_t n = 0; n < TOKENS * HEADS; ++n)
        step(want, y->src, n / HEADS, n % HEADS);
    check_list(ctx, y, want, ggml_op_name(y->op));
}

static void test_linear_attention(void **unused) {
    (void)unused;
    struct ggml_context *ctx = test_context(4);
    struct ggml_tensor *x[6];
    for (int i = 0; i < 6; ++i)
        x[i] = test_tensor(ctx, GGML_TYPE_F32, (struct extents){{SIZE, HEADS, TOKENS, 1}},
                           10u + (uint32_t)i, -0.5f, 0.5f);
    struct ggml_tensor *tf = dense(ctx, SIZE, HEADS, 1, 1, 20);
    struct ggml_tensor *state = dense(ctx, SIZE * SIZE * HEADS, SEQUENCES, 1, 1, 21);
    check_attention(ctx, ggml_rwkv_wkv6(ctx, x[0], x[1], x[2], tf, x[3], state), 5, wkv6);
    check_attention(ctx, ggml_gated_linear_attn(ctx, x[0], x[1], x[2], x[3], state, 0.5f), 4,
                    gated);
    check_attention(ctx, ggml_rwkv_wkv7(ctx, x[0], x[1], x[2], x[3], x[4], x[5], state), 6, wkv7);
    ggml_free(ctx);
}

// q has HEADS heads and one sequence, k all of them.
static double *delta_net(struct ggml_tensor *y, int64_t snapshots) {
    double *want = new_list(y);
    struct ggml_tensor *const *src = y->src;
    enum { V_HEADS = 2 * HEADS, STATES = SIZE * SIZE * V_HEADS * SEQUENCES };
    const int64_t tokens = src[2]->ne[2];
    double *slots = want + SIZE * V_HEADS * tokens * SEQUENCES;
    for (int64_t u = 0; u < SIZE * V_HEADS * SEQUENCES; ++u) {
        const int64_t j = u % SIZE, h = u / SIZE % V_HEADS, b = u / SIZE / V_HEADS;
        double *row = slots + u * SIZE;
        for (int64_t i = 0; i < SIZE; ++i)
            row[i] = at(src[5], u * SIZE + i);
        for (int64_t t = 0; t < tokens; ++t) {
            double known = 0, sum = 0;
            for (int64_t i = 0; i < SIZE; ++i) {
                row[i] *= exp(test_get(src[3], src[3]->ne[0] == 1 ? 0 : i, h, t, b));
                known += row[i] * test_get(src[1], i, h, t, b);
            }
            const double delta =
                (test_get(src[2], j, h, t, b) - known) * test_get(src[4], 0, h, t, b);
            for (int64_t i = 0; i < SIZE; ++i) {
                row[i] += test_get(src[1], i, h, t, b) * delta;
                sum += row[i] * test_get(src[0], i, h % HEADS, t, 0);
                const int64_t slot = tokens - 1 - t;
                if (slot > 0 && slot < snapshots) slots[slot * STATES + u * SIZE + i] = row[i];
            }
            want[((b * tokens + t) * V_HEADS + h) * SIZE + j] = sum / sqrt(SIZE);
        }
    }
    return want;
}

static void check_delta_net(int64_t tokens, int64_t gates, int64_t snapshots) {
    struct ggml_context *ctx = test_context(16);
    struct ggml_tensor *q = gapped(ctx, SIZE, HEADS, tokens, 1, 30);
    const struct extents keys = {{SIZE, 2 * HEADS, tokens, SEQUENCES}};
    struct ggml_tensor *k = test_gapped(ctx, GGML_TYPE_F32, keys, 31, -0.3f, 0.3f);
    struct ggml_tensor *v = gapped(ctx, SIZE, 2 * HEADS, tokens, SEQUENCES, 32);
    struct ggml_tensor *beta = dense(ctx, 1, 2 * HEADS, tokens, SEQUENCES, 33);
    struct ggml_tensor *state = dense(ctx, SIZE, SIZE, 2 * HEADS, SEQUENCES, 34);
    // The state must not grow from token to token.
    struct ggml_tensor *gate = test_tensor(
        ctx, GGML_TYPE_F32, (struct extents){{gates, 2 * HEADS, tokens, SEQUENCES}}, 35, -1, 0);
    struct ggml_tensor *y = ggml_gated_delta_net(ctx, q, k, v, gate, beta, state, snapshots);
    check_list(ctx, y, delta_net(y, snapshots), "gated_delta_net");
    ggml_free(ctx);
}

// 35 tokens are more than two blocks of them; snapshots of all, and of more than there are.
static void test_gated_delta_net(void **unused) {
    (void)unused;
    static const int64_t snapshots[] = {1, 3, 5, 20, 40};
    for (size_t i = 0; i < sizeof(snapshots) / sizeof(snapshots[0]); ++i) {
        for (int64_t gates = 1; gates <= SIZE; gates += SIZE - 1) {
            check_delta_net(1, gates, snapshots[i]);
            check_delta_net(EACH, gates, snapshots[i]);
            check_delta_net(35, gates, snapshots[i]);
        }
    }
}

// --- triangular systems, indexer -----------------------------------------------------------------

static void test_solve_tri(void **state) {
    (void)state;
    struct ggml_context *ctx = test_context(4);
    enum { ROWS = 23, COLUMNS = 101, MATRICES = 6 };
    struct ggml_tensor *a = dense(ctx, ROWS, ROWS, 2, 3, 40);
    for (int n = 0; n < ROWS * MATRICES; ++n)
        ggml_set_f32_nd(a, n % ROWS, n % ROWS, n / ROWS % 2, n / ROWS / 2, 8.0f + (float)(n % 5));
    struct ggml_tensor *b = dense(ctx, COLUMNS, ROWS, 2, 3, 41);
    struct ggml_tensor *y = ggml_solve_tri(ctx, a, b, true, true, false);
    assert_int_equal(test_compute(test_graph(ctx, y), 3), GGML_STATUS_SUCCESS);
    for (int64_t n = 0; n < COLUMNS * ROWS * MATRICES; ++n) {
        const int64_t c = n % COLUMNS, r = n / COLUMNS % ROWS, i2 = n / COLUMNS / ROWS % 2;
        const int64_t i3 = n / COLUMNS / ROWS / 2;
        double sum = 0;
        for (int64_t t = 0; t <= r; ++t)
            sum += test_get(a, t, r, i2, i3) * test_get(y, c, t, i2, i3);
        assert_float_equal(sum, test_get(b, c, r, i2, i3), 1e-5);
    }
    ggml_free(ctx);
}

static double indexer_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    const struct ggml_tensor *q = y->src[0], *keys = context, *mask = y->src[3];
    double sum = test_get(mask, i[0], i[1], 0, i[3] % mask->ne[3]);
    for (int64_t h = 0; h < q->ne[1]; ++h) {
        double product = 0;
        for (int64_t d = 0; d < q->ne[0]; ++d)
            product += test_get(q, d, h, i[1], i[3]) * test_get(keys, d, 0, i[0], i[3]);
        sum += fmax(product, 0) * test_get(y->src[2], h, i[1], 0, i[3]);
    }
    return sum;
}

static void test_lightning_indexer(void **state) {
    (void)state;
    static const enum ggml_type types[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q8_0};
    enum { D = 64, KEYS = 75, Q_HEADS = 131 };
    for (int n = 0; n < 3; ++n) {
        struct ggml_context *ctx = test_context(8);
        struct ggml_tensor *q =
            test_gapped(ctx, GGML_TYPE_F32, (struct extents){{D, Q_HEADS, 3, 4}}, 50, -0.1f, 0.1f);
        struct ggml_tensor *raw = dense(ctx, D, 1, KEYS, 4, 51);
        struct ggml_tensor *k = ggml_new_tensor_4d(ctx, types[n], D, 1, KEYS, 4);
        struct ggml_tensor *keys = ggml_new_tensor_4d(ctx, GGML_TYPE_F32, D, 1, KEYS, 4);
        ggml_quantize_chunk(types[n], raw->data, k->data, 0, KEYS * 4, D, NULL);
        if (types[n] == GGML_TYPE_F32)
            memcpy(keys->data, raw->data, ggml_nbytes(raw));
        else
            ggml_get_type_traits(types[n])->to_float(k->data, keys->data, ggml_nelements(k));
        struct ggml_tensor *w = dense(ctx, Q_HEADS, 3, 1, 4, 52);
        struct ggml_tensor *mask =
            test_tensor(ctx, GGML_TYPE_F16, (struct extents){{KEYS, 3, 1, 2}}, 53, -1, 0);
        ggml_set_f32_nd(mask, 5, 1, 0, 1, -INFINITY);
        test_against(ctx, ggml_lightning_indexer(ctx, q, k, w, mask), indexer_oracle, keys,
                     "indexer");
        ggml_free(ctx);
    }
}

// --- hyper-connections ---------------------------------------------------------------------------

static double pre_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    (void)context;
    double sum = 0;
    for (int64_t h = 0; h < y->src[0]->ne[1]; ++h)
        sum += test_get(y->src[0], i[0], h, i[1], 0) * test_get(y->src[1], h, i[1], 0, 0);
    return sum;
}

static double post_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    (void)context;
    double sum = test_get(y->src[0], i[0], i[2], 0, 0) * test_get(y->src[2], i[1], i[2], 0, 0);
    for (int64_t s = 0; s < 4; ++s)
        sum += test_get(y->src[1], i[0], s, i[2], 0) * test_get(y->src[3], i[1], s, i[2], 0);
    return sum;
}

static double comb_element(const struct ggml_tensor *y, int64_t d, int64_t s, int64_t t) {
    return test_get(y->src[0], 8 + d + 4 * s, t, 0, 0) * test_get(y->src[1], 2, 0, 0, 0) +
           test_get(y->src[2], 8 + d + 4 * s, 0, 0, 0);
}

// One iteration: a softmax over the destinations, then the sources normalised.
static double comb_oracle(const struct ggml_tensor *y, const int64_t *i, const void *context) {
    const double eps = (double)*(const float *)context;
    double own = 0, total = 0;
    for (int64_t s = 0; s < 4; ++s) {
        double sum = 0;
        for (int64_t d = 0; d < 4; ++d)
            sum += exp(comb_element(y, d, s, i[2]));
        const double value = exp(comb_element(y, i[0], s, i[2])) / sum + eps;
        if (s == i[1]) own = value;
        total += value;
    }
    return own / (eps + total);
}

static void test_hyper_connections(void **state) {
    (void)state;
    static const float eps = 1e-2f;
    struct ggml_context *ctx = test_context(8);
    struct ggml_tensor *x = gapped(ctx, 1037, 4, 9, 1, 60);
    struct ggml_tensor *turned = ggml_permute(ctx, dense(ctx, 4, 9, 1037, 1, 61), 1, 2, 0, 3);
    test_against(ctx, ggml_dsv4_hc_pre(ctx, x, gapped(ctx, 4, 9, 1, 1, 62)), pre_oracle, NULL,
                 "hc_pre");
    test_against(ctx, ggml_dsv4_hc_pre(ctx, turned, dense(ctx, 4, 9, 1, 1, 62)), pre_oracle, NULL,
                 "hc_pre");
    struct ggml_tensor *y =
        ggml_dsv4_hc_post(ctx, gapped(ctx, 1037, 9, 1, 1, 63), turned, dense(ctx, 4, 9, 1, 1, 64),
                          gapped(ctx, 4, 4, 9, 1, 65));
    test_against(ctx, y, post_oracle, NULL, "hc_post");
    struct ggml_tensor *mixes = gapped(ctx, 24, 300, 1, 1, 66);
    struct ggml_tensor *scale = dense(ctx, 3, 1, 1, 1, 67), *base = dense(ctx, 24, 1, 1, 1, 68);
    test_against(ctx, ggml_dsv4_hc_comb(ctx, mixes, scale, base, eps, 1), comb_oracle, &eps,
                 "hc_comb");
    struct ggml_tensor *many = ggml_dsv4_hc_comb(ctx, mixes, scale, base, 1e-6f, 40);
    assert_int_equal(test_compute(test_graph(ctx, many), 1), GGML_STATUS_SUCCESS);
    for (int t = 0; t < 300; ++t) {
        double row = 0, column = 0;
        for (int n = 0; n < 4; ++n) {
            row += test_get(many, n, 1, t, 0);
            column += test_get(many, 2, n, t, 0);
        }
        assert_float_equal(row, 1, 1e-4);
        assert_float_equal(column, 1, 1e-4);
    }
    ggml_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ssm_conv),          cmocka_unit_test(test_ssm_scan),
        cmocka_unit_test(test_linear_attention),  cmocka_unit_test(test_gated_delta_net),
        cmocka_unit_test(test_solve_tri),         cmocka_unit_test(test_lightning_indexer),
        cmocka_unit_test(test_hyper_connections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
