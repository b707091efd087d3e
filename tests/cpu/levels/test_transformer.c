// SPDX-License-Identifier: MIT
// A transformer block as models have it, with weights in three types, through the public API alone,
// against the same block written out in double precision.
#define _POSIX_C_SOURCE 200809L
#include "fixture.h"
#include "support/setenv.h"

enum {
    WIDTH = 256,
    HEADS = 8,
    KV_HEADS = 2,
    HEAD_SIZE = WIDTH / HEADS,
    KV_WIDTH = KV_HEADS * HEAD_SIZE,
    HIDDEN = 512,
    TOKENS = 37,
    VOCABULARY = 50,
    FIRST_POSITION = 1000,
};

static const float EPSILON = 1e-5f;
static const float ROPE_BASE = 10000.0f;

// Weights are decoded exactly and every sum is F32. A relative error of about 1e-6 per stage passes
// through two attention steps and eight products: 1e-5 at the end, squared.
static const double BLOCK = 1e-10;

// Rounding normally distributed activations to 8 bits adds 2.3e-5 to a product; four of the block's
// products may have quantised weights and rounded activations.
static const double ROUNDED = 4 * 2.3e-5;

struct block {
    struct ggml_tensor *embedding, *tokens, *positions, *mask;
    struct ggml_tensor *norm1, *wq, *wk, *wv, *wo;
    struct ggml_tensor *norm2, *gate, *up, *down;
};

// Weights with a standard deviation of 1 / sqrt(inputs), so that activations keep their size.
static struct ggml_tensor *new_weights(struct fixture *f, enum ggml_type type, int64_t n_in,
                                       int64_t n_out) {
    struct ggml_tensor *t = ggml_new_tensor_2d(f->ctx, type, n_in, n_out);
    float *row = malloc((size_t)n_in * sizeof(float));
    for (int64_t r = 0; r < n_out; ++r) {
        for (int64_t i = 0; i < n_in; ++i)
            row[i] = random_normal(&f->random) / sqrtf((float)n_in);
        ggml_quantize_chunk(type, row, (char *)t->data + (size_t)r * t->nb[1], 0, 1, n_in, NULL);
    }
    free(row);
    return t;
}

static struct block new_block(struct fixture *f) {
    struct block b = {
        .embedding = fixture_tensor(f, GGML_TYPE_Q4_0, WIDTH, VOCABULARY, 1, 1),
        .tokens = fixture_indices(f, VOCABULARY, TOKENS, 1, 1),
        .positions = ggml_new_tensor_1d(f->ctx, GGML_TYPE_I32, TOKENS),
        .mask = ggml_new_tensor_2d(f->ctx, GGML_TYPE_F16, TOKENS, TOKENS),
        .norm1 = fixture_tensor(f, GGML_TYPE_F32, WIDTH, 1, 1, 1),
        .wq = new_weights(f, GGML_TYPE_F16, WIDTH, WIDTH),
        .wk = new_weights(f, GGML_TYPE_F16, WIDTH, KV_WIDTH),
        .wv = new_weights(f, GGML_TYPE_F16, WIDTH, KV_WIDTH),
        .wo = new_weights(f, GGML_TYPE_Q8_0, WIDTH, WIDTH),
        .norm2 = fixture_tensor(f, GGML_TYPE_F32, WIDTH, 1, 1, 1),
        .gate = new_weights(f, GGML_TYPE_Q4_K, WIDTH, HIDDEN),
        .up = new_weights(f, GGML_TYPE_Q4_K, WIDTH, HIDDEN),
        .down = new_weights(f, GGML_TYPE_Q4_K, HIDDEN, WIDTH),
    };
    for (int i = 0; i < TOKENS; ++i) {
        ((int32_t *)b.positions->data)[i] = FIRST_POSITION + i;
        for (int j = 0; j < TOKENS; ++j)
            ((uint16_t *)b.mask->data)[i * TOKENS + j] = j > i ? 0xFC00 : 0;
    }
    return b;
}

// --- the graph -----------------------------------------------------------------------------------

static struct ggml_tensor *normed(struct ggml_context *ctx, struct ggml_tensor *x,
                                  struct ggml_tensor *w) {
    return ggml_mul(ctx, ggml_rms_norm(ctx, x, EPSILON), w);
}

// Heads of a projection: [HEAD_SIZE, tokens, heads].
static struct ggml_tensor *split_heads(struct ggml_context *ctx, struct ggml_tensor *x,
                                       int64_t heads, struct ggml_tensor *positions) {
    struct ggml_tensor *y = ggml_reshape_3d(ctx, x, HEAD_SIZE, heads, TOKENS);
    if (positions) {
        y = ggml_rope_ext(ctx, y, positions, NULL, HEAD_SIZE, GGML_ROPE_TYPE_NEOX, 0, ROPE_BASE, 1,
                          0, 1, 0, 0);
    }
    return ggml_permute(ctx, y, 0, 2, 1, 3);
}

static struct ggml_tensor *attention(struct ggml_context *ctx, const struct block *b,
                                     struct ggml_tensor *q, struct ggml_tensor *k,
                                     struct ggml_tensor *v, bool flash) {
    const float scale = 1.0f / sqrtf((float)HEAD_SIZE);
    if (flash) {
        struct ggml_tensor *y = ggml_flash_attn_ext(ctx, q, k, v, b->mask, scale, 0, 0);
        return ggml_reshape_2d(ctx, y, WIDTH, TOKENS);
    }
    struct ggml_tensor *scores = ggml_mul_mat(ctx, k, q);
    struct ggml_tensor *weights = ggml_soft_max_ext(ctx, scores, b->mask, scale, 0);
    struct ggml_tensor *turned = ggml_cont(ctx, ggml_transpose(ctx, v));
    struct ggml_tensor *y = ggml_mul_mat(ctx, turned, weights);
    return ggml_cont_2d(ctx, ggml_permute(ctx, y, 0, 2, 1, 3), WIDTH, TOKENS);
}

static struct ggml_tensor *build(struct ggml_context *ctx, const struct block *b, bool flash) {
    struct ggml_tensor *x = ggml_get_rows(ctx, b->embedding, b->tokens);
    struct ggml_tensor *h = normed(ctx, x, b->norm1);
    struct ggml_tensor *q = split_heads(ctx, ggml_mul_mat(ctx, b->wq, h), HEADS, b->positions);
    struct ggml_tensor *k = split_heads(ctx, ggml_mul_mat(ctx, b->wk, h), KV_HEADS, b->positions);
    struct ggml_tensor *v = split_heads(ctx, ggml_mul_mat(ctx, b->wv, h), KV_HEADS, NULL);
    x = ggml_add(ctx, x, ggml_mul_mat(ctx, b->wo, attention(ctx, b, q, k, v, flash)));
    h = normed(ctx, x, b->norm2);
    struct ggml_tensor *hidden =
        ggml_swiglu_split(ctx, ggml_mul_mat(ctx, b->gate, h), ggml_mul_mat(ctx, b->up, h));
    return ggml_add(ctx, x, ggml_mul_mat(ctx, b->down, hidden));
}

// --- the same in double precision ----------------------------------------------------------------

static void project(const struct ggml_tensor *w, const double *x, double *y) {
    for (int64_t r = 0; r < w->ne[1]; ++r) {
        y[r] = 0;
        for (int64_t i = 0; i < w->ne[0]; ++i)
            y[r] += oracle_value(w, i, r, 0, 0) * x[i];
    }
}

static void norm(const double *x, const struct ggml_tensor *w, double *y) {
    double sum = 0;
    for (int i = 0; i < WIDTH; ++i)
        sum += x[i] * x[i];
    for (int i = 0; i < WIDTH; ++i)
        y[i] = x[i] / sqrt(sum / WIDTH + (double)EPSILON) * oracle_value(w, i, 0, 0, 0);
}

static void rotate(double *heads, int n_heads, int position) {
    for (int i = 0; i < n_heads * HEAD_SIZE / 2; ++i) {
        const int pair = i % (HEAD_SIZE / 2);
        double *x = heads + i / (HEAD_SIZE / 2) * HEAD_SIZE + pair;
        const double angle = position * pow((double)ROPE_BASE, -2.0 * pair / HEAD_SIZE);
        const double first = x[0] * cos(angle) - x[HEAD_SIZE / 2] * sin(angle);
        x[HEAD_SIZE / 2] = x[0] * sin(angle) + x[HEAD_SIZE / 2] * cos(angle);
        x[0] = first;
    }
}

static double x_rows[TOKENS][WIDTH], q_rows[TOKENS][WIDTH];
static double k_rows[TOKENS][KV_WIDTH], v_rows[TOKENS][KV_WIDTH];

static void attend(int token, int head, double *y) {
    const int shared = head / (HEADS / KV_HEADS) * HEAD_SIZE;
    double weight[TOKENS];
    double sum = 0;
    for (int j = 0; j <= token; ++j) {
        double dot = 0;
        for (int c = 0; c < HEAD_SIZE; ++c)
            dot += q_rows[token][head * HEAD_SIZE + c] * k_rows[j][shared + c];
        weight[j] = exp(dot / sqrt(HEAD_SIZE));
        sum += weight[j];
    }
    for (int c = 0; c < HEAD_SIZE; ++c) {
        y[c] = 0;
        for (int j = 0; j <= token; ++j)
            y[c] += weight[j] / sum * v_rows[j][shared + c];
    }
}

static void expect_token(const struct block *b, int token, double *y) {
    double heads[WIDTH], h[WIDTH], gate[HIDDEN], up[HIDDEN], down[WIDTH];
    for (int head = 0; head < HEADS; ++head)
        attend(token, head, heads + head * HEAD_SIZE);
    project(b->wo, heads, y);
    for (int i = 0; i < WIDTH; ++i)
        y[i] += x_rows[token][i];
    norm(y, b->norm2, h);
    project(b->gate, h, gate);
    project(b->up, h, up);
    for (int i = 0; i < HIDDEN; ++i)
        up[i] *= gate[i] / (1 + exp(-gate[i]));
    project(b->down, up, down);
    for (int i = 0; i < WIDTH; ++i)
        y[i] += down[i];
}

static void expect(const struct block *b, double *out) {
    for (int t = 0; t < TOKENS; ++t) {
        double h[WIDTH];
        const int id = ((const int32_t *)b->tokens->data)[t];
        for (int i = 0; i < WIDTH; ++i)
            x_rows[t][i] = oracle_value(b->embedding, i, id, 0, 0);
        norm(x_rows[t], b->norm1, h);
        project(b->wq, h, q_rows[t]);
        project(b->wk, h, k_rows[t]);
        project(b->wv, h, v_rows[t]);
        rotate(q_rows[t], HEADS, FIRST_POSITION + t);
        rotate(k_rows[t], KV_HEADS, FIRST_POSITION + t);
    }
    for (int t = 0; t < TOKENS; ++t)
        expect_token(b, t, out + t * WIDTH);
}

// --- tests ---------------------------------------------------------------------------------------

static void compare(struct fixture *f, struct ggml_tensor *node, const double *expected,
                    double bound) {
    static double actual[TOKENS * WIDTH], again[TOKENS * WIDTH];
    assert_int_equal(fixture_compute(f, node, 1), GGML_STATUS_SUCCESS);
    oracle_read(node, actual);
    const double error = oracle_nmse(actual, expected, TOKENS * WIDTH);
    print_message("# nmse %.3g\n", error);
    assert_true(error <= bound);
    for (int n_threads = 2; n_threads <= 5; ++n_threads) {
        assert_int_equal(fixture_compute(f, node, n_threads), GGML_STATUS_SUCCESS);
        oracle_read(node, again);
        assert_memory_equal(actual, again, sizeof(actual));
    }
}

static void check(struct fixture *f, bool flash) {
    static double expected[TOKENS * WIDTH];
    const struct block b = new_block(f);
    struct ggml_tensor *node = build(f->ctx, &b, flash);
    assert_null(ggml_tensor_error(node));
    expect(&b, expected);
    compare(f, node, expected, ROUNDED);
    setenv("GGML_CPU_DISABLE_ROUNDING", "1", 1);
    compare(f, node, expected, BLOCK);
    unsetenv("GGML_CPU_DISABLE_ROUNDING");
}

static void test_block_with_flash_attention(void **state) {
    check(*state, true);
}

static void test_block_with_soft_max(void **state) {
    check(*state, false);
}

// Every node of the block says beforehand that it is supported.
static void test_block_is_supported(void **state) {
    struct fixture *f = *state;
    const struct block b = new_block(f);
    struct ggml_cgraph *graph = ggml_new_graph(f->ctx);
    ggml_build_forward_expand(graph, build(f->ctx, &b, true));
    ggml_build_forward_expand(graph, build(f->ctx, &b, false));
    for (int i = 0; i < ggml_graph_n_nodes(graph); ++i)
        assert_true(ggml_backend_supports_op(f->cpu, ggml_graph_node(graph, i)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cpu_test(test_block_is_supported),
        cpu_test(test_block_with_flash_attention),
        cpu_test(test_block_with_soft_max),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
