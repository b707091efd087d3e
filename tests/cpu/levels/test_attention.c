// SPDX-License-Identifier: MIT
// soft_max, rope and flash_attn_ext on the CPU: modes, masks, views of a cache, infinities and
// NaN, all against oracles.
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>

#include "fixture.h"
#include "support/setenv.h"

// Errors of a few ulp of 2^-24 per element, squared.
static const double SOFT_MAX = 1e-12;
static const double ROPE = 1e-12;
static const double ROPE_F16 = 1e-6; // the result is rounded to 2^-11
static const double ATTENTION = 1e-11;

// --- softmax -------------------------------------------------------------------------------------

// A mask as attention uses: 0 or a bias, and minus infinity after the diagonal.
static struct ggml_tensor *new_mask(struct fixture *f, enum ggml_type type, int64_t n_keys,
                                    int64_t n_rows, int64_t ne2, int64_t ne3) {
    struct ggml_tensor *mask = fixture_tensor(f, type, n_keys, n_rows, ne2, ne3);
    for (int64_t i = 0; i < ggml_nelements(mask); ++i) {
        const int64_t row = i / n_keys % n_rows;
        if (i % n_keys <= row + n_keys / 3) continue;
        if (type == GGML_TYPE_F32) {
            ((float *)mask->data)[i] = -INFINITY;
        } else {
            ((uint16_t *)mask->data)[i] = 0xFC00;
        }
    }
    return mask;
}

static void test_soft_max(void **state) {
    struct fixture *f = *state;
    static const int64_t widths[] = {1, 2, 5, 16, 33, 511, 512, 1037};
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); ++i) {
        struct ggml_tensor *a = fixture_tensor(f, GGML_TYPE_F32, widths[i], 7, 6, 2);
        struct ggml_tensor *wide = new_mask(f, GGML_TYPE_F32, widths[i], 9, 1, 1);
        struct ggml_tensor *half = new_mask(f, GGML_TYPE_F16, widths[i], 7, 3, 2);
        fixture_check(f, ggml_soft_max(f->ctx, a), oracle_soft_max, SOFT_MAX);
        fixture_check(f, ggml_soft_max_ext(f->ctx, a, wide, 3.5f, 0.0f), oracle_soft_max, SOFT_MAX);
        fixture_check(f, ggml_soft_max_ext(f->ctx, a, half, 0.125f, 8.0f), oracle_soft_max,
                      SOFT_MAX);
        struct ggml_tensor *sunk = ggml_soft_max_ext(f->ctx, a, half, 1.0f, 8.0f);
        ggml_soft_max_add_sinks(sunk, fixture_tensor(f, GGML_TYPE_F32, 6, 1, 1, 1));
        fixture_check(f, sunk, oracle_soft_max, SOFT_MAX);
    }
}

static void test_soft_max_of_large_numbers(void **state) {
    struct fixture *f = *state;
    struct ggml_tensor *a = fixture_tensor(f, GGML_TYPE_F32, 100, 3, 1, 1);
    fixture_check(f, ggml_soft_max_ext(f->ctx, a, NULL, 1e30f, 0.0f), oracle_soft_max, SOFT_MAX);
    struct ggml_tensor *copy = ggml_dup(f->ctx, a);
    struct ggml_tensor *inplace = ggml_soft_max_inplace(f->ctx, copy);
    struct ggml_tensor *plain = ggml_soft_max(f->ctx, a);
    assert_int_equal(fixture_compute(f, inplace, 1), GGML_STATUS_SUCCESS);
    assert_int_equal(fixture_compute(f, plain, 1), GGML_STATUS_SUCCESS);
    assert_memory_equal(inplace->data, plain->data, ggml_nbytes(plain));
}

static void test_soft_max_of_nothing_is_nan(void **state) {
    struct fixture *f = *state;
    struct ggml_tensor *a = fixture_tensor(f, GGML_TYPE_F32, 33, 1, 1, 1);
    struct ggml_tensor *mask = ggml_new_tensor_1d(f->ctx, GGML_TYPE_F32, 33);
    for (int i = 0; i < 33; ++i)
        ((float *)mask->data)[i] = -INFINITY;
    fixture_check(f, ggml_soft_max_ext(f->ctx, a, mask, 1.0f, 0.0f), oracle_soft_max, SOFT_MAX);
}

// --- rope ----------------------------------------------------------------------------------------

struct rope_case {
    int64_t ne0, heads, tokens;
    int n_dims, mode;
    int sections[4];
    float base, scale, ext, attn;
    int n_offs;
    bool factors;
    int max_position;
};

static const struct rope_case rope_cases[] = {
    {64, 5, 33, 64, GGML_ROPE_TYPE_NORMAL, {0}, 10000, 1, 0, 1, 0, false, 4096},
    {64, 5, 33, 40, GGML_ROPE_TYPE_NORMAL, {0}, 10000, 1, 0, 1, 6, false, 4096},
    {128, 4, 7, 128, GGML_ROPE_TYPE_NEOX, {0}, 500000, 1, 0, 1, 0, true, 131072},
    {80, 1, 1, 20, GGML_ROPE_TYPE_NEOX, {0}, 10000, 0.25f, 0, 1, 12, true, 100},
    {128, 2, 19, 128, GGML_ROPE_TYPE_NEOX, {0}, 10000, 0.25f, 1.0f, 1.1f, 0, false, 20000},
    {96, 2, 19, 64, GGML_ROPE_TYPE_NORMAL, {0}, 10000, 0.5f, 0.7f, 1, 0, true, 20000},
    {128, 3, 11, 128, GGML_ROPE_TYPE_MROPE, {16, 24, 24, 0}, 1000000, 1, 0, 1, 0, false, 500},
    {128, 3, 11, 64, GGML_ROPE_TYPE_MROPE, {4, 5, 6, 3}, 10000, 1, 0, 1, 0, true, 500},
    {128, 3, 11, 128, GGML_ROPE_TYPE_IMROPE, {24, 20, 20, 0}, 1000000, 1, 0, 1, 0, false, 500},
    {80, 3, 11, 40, GGML_ROPE_TYPE_VISION, {20, 20, 0, 0}, 10000, 1, 0, 1, 0, false, 500},
    {80, 3, 11, 40, GGML_ROPE_TYPE_VISION, {10, 10, 10, 10}, 10000, 1, 0, 1, 0, false, 500},
};

static struct ggml_tensor *build_rope(struct fixture *f, const struct rope_case *c,
                                      struct ggml_tensor *a, bool back) {
    struct ggml_context *ctx = f->ctx;
    const bool multi = c->mode >= GGML_ROPE_TYPE_MROPE;
    struct ggml_tensor *b = fixture_indices(f, c->max_position, c->tokens * (multi ? 4 : 1), 1, 1);
    struct ggml_tensor *factors = NULL;
    if (c->factors) {
        factors = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, c->ne0 / 2);
        for (int64_t i = 0; i < c->ne0 / 2; ++i)
            ((float *)factors->data)[i] = random_uniform(&f->random, 0.5f, 8.0f);
    }
    int sections[4];
    memcpy(sections, c->sections, sizeof(sections));
    struct ggml_tensor *node =
        multi && !back ? ggml_rope_multi(ctx, a, b, factors, c->n_dims, sections, c->mode, 2048,
                                         c->base, c->scale, c->ext, c->attn, 32, 1)
        : multi ? ggml_rope_multi_back(ctx, a, b, factors, c->n_dims, sections, c->mode, 2048,
                                       c->base, c->scale, c->ext, c->attn, 32, 1)
        : back ? ggml_rope_ext_back(ctx, a, b, factors, c->n_dims, c->mode, 2048, c->base, c->scale,
                                    c->ext, c->attn, 32, 1)
               : ggml_rope_ext(ctx, a, b, factors, c->n_dims, c->mode, 2048, c->base, c->scale,
                               c->ext, c->attn, 32, 1);
    if (c->n_offs) ggml_rope_set_offset(node, c->n_offs);
    return node;
}

static void test_rope_in_every_mode(void **state) {
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof(rope_cases) / sizeof(rope_cases[0]); ++i) {
        const struct rope_case *c = &rope_cases[i];
        struct ggml_tensor *a = fixture_tensor(f, GGML_TYPE_F32, c->ne0, c->heads, c->tokens, 2);
        struct ggml_tensor *h = fixture_tensor(f, GGML_TYPE_F16, c->ne0, c->heads, c->tokens, 2);
        fixture_check(f, build_rope(f, c, a, false), oracle_rope, ROPE);
        fixture_check(f, build_rope(f, c, a, true), oracle_rope, ROPE);
        fixture_check(f, build_rope(f, c, h, false), oracle_rope, ROPE_F16);
    }
}

static void test_rope_of_a_view(void **state) {
    struct fixture *f = *state;
    // The K part of a fused QKV row
    struct ggml_tensor *qkv = fixture_tensor(f, GGML_TYPE_F32, 3 * 256, 37, 1, 1);
    struct ggml_tensor *k = ggml_view_3d(f->ctx, qkv, 64, 4, 37, 64 * 4, qkv->nb[1], 256 * 4);
    struct ggml_tensor *positions = fixture_indices(f, 3000, 37, 1, 1);
    fixture_check(f, ggml_rope(f->ctx, k, positions, 64, GGML_ROPE_TYPE_NEOX), oracle_rope, ROPE);
}

// --- attention -----------------------------------------------------------------------------------

struct attention_case {
    int64_t dk, dv, tokens, keys, heads, k_heads, v_heads, batches;
    enum ggml_type k, v;
    int mask_heads; // 0: no mask
    bool sinks;
    float max_bias, softcap;
};

static const struct attention_case attention_cases[] = {
    {64, 64, 1, 1, 1, 1, 1, 1, GGML_TYPE_F32, GGML_TYPE_F32, 0, false, 0, 0},
    {64, 64, 1, 97, 8, 2, 2, 1, GGML_TYPE_F16, GGML_TYPE_F16, 1, false, 0, 0},
    {128, 128, 33, 65, 4, 4, 4, 1, GGML_TYPE_F16, GGML_TYPE_F16, 1, false, 0, 0},
    {80, 48, 19, 40, 6, 2, 3, 2, GGML_TYPE_F32, GGML_TYPE_F32, 1, true, 0, 0},
    {40, 40, 7, 31, 6, 6, 6, 2, GGML_TYPE_BF16, GGML_TYPE_F16, 3, false, 8, 0},
    {64, 64, 70, 128, 4, 1, 1, 1, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, 1, false, 0, 30},
    {96, 32, 5, 200, 4, 2, 2, 1, GGML_TYPE_Q4_0, GGML_TYPE_Q8_0, 4, true, 4, 50},
    {576, 512, 3, 50, 4, 1, 1, 1, GGML_TYPE_F16, GGML_TYPE_F16, 1, false, 0, 0},
    {3, 5, 11, 13, 3, 1, 3, 1, GGML_TYPE_F32, GGML_TYPE_F32, 1, false, 0, 0},
    // Around the borders of tiles (192 rows by 128 keys, 96 by 64 where rows have more than 128
    // elements), of panels within them, and of what is computed in tiles: 16 rows of up to 1024
    // elements.
    {128, 128, 193, 129, 1, 1, 1, 1, GGML_TYPE_F16, GGML_TYPE_F16, 1, true, 8, 0},
    {40, 136, 97, 65, 1, 1, 1, 1, GGML_TYPE_F16, GGML_TYPE_F16, 1, false, 0, 20},
    {72, 96, 61, 257, 4, 1, 1, 1, GGML_TYPE_BF16, GGML_TYPE_Q8_0, 0, false, 0, 0},
    {40, 40, 97, 129, 1, 1, 1, 1, GGML_TYPE_F16, GGML_TYPE_F16, 1, false, 0, 0},
    {64, 64, 24, 64, 4, 1, 1, 1, GGML_TYPE_F32, GGML_TYPE_BF16, 0, false, 0, 0},
    {64, 80, 25, 63, 4, 1, 1, 1, GGML_TYPE_Q8_0, GGML_TYPE_F16, 4, true, 8, 0},
    {32, 32, 100, 130, 2, 2, 2, 1, GGML_TYPE_F16, GGML_TYPE_F16, 2, false, 8, 20},
    {20, 24, 15, 65, 1, 1, 1, 1, GGML_TYPE_F16, GGML_TYPE_F16, 1, true, 0, 0},
    {20, 24, 16, 65, 1, 1, 1, 1, GGML_TYPE_F16, GGML_TYPE_F16, 1, true, 0, 0},
    {72, 72, 1, 70, 17, 1, 1, 1, GGML_TYPE_F16, GGML_TYPE_F32, 1, true, 0, 0},
    {576, 512, 17, 67, 1, 1, 1, 1, GGML_TYPE_F16, GGML_TYPE_F16, 1, false, 0, 0},
    {1024, 1024, 17, 66, 1, 1, 1, 1, GGML_TYPE_F32, GGML_TYPE_F32, 1, false, 0, 0},
    {1025, 8, 9, 66, 1, 1, 1, 1, GGML_TYPE_F32, GGML_TYPE_F32, 1, false, 0, 0},
    {8, 1025, 9, 66, 1, 1, 1, 1, GGML_TYPE_F32, GGML_TYPE_F32, 1, false, 0, 0},
    {1025, 8, 40, 66, 1, 1, 1, 1, GGML_TYPE_F32, GGML_TYPE_F32, 1, false, 0, 0},
    {72, 72, 1, 70, 9, 1, 1, 1, GGML_TYPE_F16, GGML_TYPE_F32, 1, true, 0, 0},
    // Few queries, whose keys are divided into chunks of 256; with a mask, whole chunks are hidden.
    {64, 64, 1, 257, 8, 2, 2, 1, GGML_TYPE_F16, GGML_TYPE_F16, 0, false, 0, 0},
    {64, 64, 1, 700, 8, 2, 2, 1, GGML_TYPE_BF16, GGML_TYPE_F16, 1, true, 0, 0},
    {128, 96, 2, 530, 6, 2, 2, 2, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, 6, true, 8, 10},
    {72, 40, 3, 600, 2, 1, 2, 2, GGML_TYPE_F16, GGML_TYPE_F32, 1, false, 0, 0},
    {128, 128, 1, 530, 8, 2, 2, 1, GGML_TYPE_Q8_0, GGML_TYPE_Q8_0, 1, false, 0, 0},
    {64, 96, 1, 300, 6, 2, 2, 2, GGML_TYPE_Q8_0, GGML_TYPE_Q8_0, 1, true, 8, 0},
    {32, 32, 7, 77, 1, 1, 1, 1, GGML_TYPE_Q8_0, GGML_TYPE_F16, 0, false, 0, 20},
    {96, 128, 1, 66, 10, 2, 5, 1, GGML_TYPE_Q8_0, GGML_TYPE_Q8_0, 0, false, 0, 0},
    // Rows that become those of Q8_0 first, or floats.
    {128, 128, 1, 300, 8, 2, 2, 1, GGML_TYPE_Q4_0, GGML_TYPE_Q4_0, 1, false, 0, 0},
    {96, 64, 2, 77, 6, 2, 2, 2, GGML_TYPE_Q5_0, GGML_TYPE_IQ4_NL, 1, true, 8, 0},
    {64, 96, 1, 70, 3, 3, 3, 1, GGML_TYPE_IQ4_NL, GGML_TYPE_Q5_0, 0, false, 0, 20},
    {64, 64, 3, 130, 4, 2, 2, 1, GGML_TYPE_Q4_1, GGML_TYPE_Q5_1, 1, false, 0, 0},
    // Heads whose rows are so large that a block has 32 keys.
    {256, 256, 1, 300, 4, 4, 4, 1, GGML_TYPE_Q8_0, GGML_TYPE_Q8_0, 0, false, 0, 0},
    {256, 256, 1, 300, 4, 4, 4, 1, GGML_TYPE_F32, GGML_TYPE_F32, 0, false, 0, 0},
};

static struct ggml_tensor *build_attention(struct fixture *f, const struct attention_case *c) {
    struct ggml_tensor *q =
        fixture_tensor(f, GGML_TYPE_F32, c->dk, c->tokens, c->heads, c->batches);
    struct ggml_tensor *k = fixture_tensor(f, c->k, c->dk, c->keys, c->k_heads, c->batches);
    struct ggml_tensor *v = fixture_tensor(f, c->v, c->dv, c->keys, c->v_heads, c->batches);
    struct ggml_tensor *mask = NULL;
    if (c->mask_heads) mask = new_mask(f, GGML_TYPE_F16, c->keys, c->tokens, c->mask_heads, 1);
    const float scale = 1.0f / sqrtf((float)c->dk);
    struct ggml_tensor *node =
        ggml_flash_attn_ext(f->ctx, q, k, v, mask, scale, c->max_bias, c->softcap);
    if (c->sinks)
        ggml_flash_attn_ext_add_sinks(node, fixture_tensor(f, GGML_TYPE_F32, c->heads, 1, 1, 1));
    return node;
}

// Rows of queries are rounded to 32767 steps of their largest magnitude where they are multiplied
// with few rows of whole numbers with a scale: fewer than 16 that share a head of keys and values.
static void oracle_rounded(const struct ggml_tensor *node, double *out) {
    const struct ggml_tensor *q = node->src[0], *k = node->src[1], *v = node->src[2];
    const int64_t shared = q->ne[2] / (k->ne[2] > v->ne[2] ? k->ne[2] : v->ne[2]);
    const bool rounds = k->type == GGML_TYPE_Q8_0 || k->type == GGML_TYPE_Q4_0 ||
                        k->type == GGML_TYPE_Q5_0 || k->type == GGML_TYPE_IQ4_NL;
    if (!rounds || q->ne[1] * shared >= 16) {
        oracle_flash_attn_ext(node, out);
        return;
    }
    const size_t n = (size_t)ggml_nelements(q);
    double *x = malloc(n * sizeof(*x));
    float *y = malloc(n * sizeof(*y));
    oracle_read(q, x);
    const float factor = ggml_get_op_params_f32(node, 0);
    for (size_t row = 0; row < n; row += (size_t)q->ne[0]) {
        float largest = 0;
        for (size_t i = row; i < row + (size_t)q->ne[0]; ++i)
            largest = fmaxf(largest, fabsf((float)x[i] * factor));
        for (size_t i = row; i < row + (size_t)q->ne[0]; ++i)
            y[i] = rintf((float)x[i] * factor * (32767 / largest)) * (largest / 32767) / factor;
    }
    struct ggml_tensor rounded_q = *q, rounded = *node;
    rounded_q.data = y;
    rounded_q.nb[0] = sizeof(float);
    for (int d = 1; d < GGML_MAX_DIMS; ++d)
        rounded_q.nb[d] = rounded_q.nb[d - 1] * (size_t)q->ne[d - 1];
    rounded.src[0] = &rounded_q;
    oracle_flash_attn_ext(&rounded, out);
    free(x);
    free(y);
}

static void check_attention(struct fixture *f, struct ggml_tensor *node) {
    fixture_check(f, node, oracle_rounded, ATTENTION);
    setenv("GGML_CPU_DISABLE_ROUNDING", "1", 1);
    fixture_check(f, node, oracle_flash_attn_ext, ATTENTION);
    unsetenv("GGML_CPU_DISABLE_ROUNDING");
}

static void test_attention(void **state) {
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof(attention_cases) / sizeof(attention_cases[0]); ++i) {
        check_attention(f, build_attention(f, &attention_cases[i]));
        ggml_reset(f->ctx);
    }
}

// K and V as they lie in a cache: [size, heads, slots], seen as [size, slots, heads].
static void check_cache_views(struct fixture *f, enum ggml_type type, int64_t n_tokens,
                              int64_t n_keys) {
    struct ggml_tensor *q =
        ggml_permute(f->ctx, fixture_tensor(f, GGML_TYPE_F32, 64, 8, n_tokens, 1), 0, 2, 1, 3);
    struct ggml_tensor *k =
        ggml_permute(f->ctx, fixture_tensor(f, type, 64, 4, n_keys, 1), 0, 2, 1, 3);
    struct ggml_tensor *v =
        ggml_permute(f->ctx, fixture_tensor(f, GGML_TYPE_Q8_0, 64, 4, n_keys, 1), 0, 2, 1, 3);
    struct ggml_tensor *mask = new_mask(f, GGML_TYPE_F16, n_keys, n_tokens, 1, 1);
    check_attention(f, ggml_flash_attn_ext(f->ctx, q, k, v, mask, 0.125f, 0, 0));
}

static void test_attention_on_cache_views(void **state) {
    check_cache_views(*state, GGML_TYPE_F16, 37, 90);
    check_cache_views(*state, GGML_TYPE_F16, 1, 90);
    check_cache_views(*state, GGML_TYPE_F16, 2, 1000);
    check_cache_views(*state, GGML_TYPE_Q8_0, 1, 1000);
}

// A window of keys around each token's, whose mask is 0; one token sees none. Parts of blocks are
// hidden from some rows and not from others.
static struct ggml_tensor *new_window(struct fixture *f, int64_t n_keys, int64_t n_tokens) {
    struct ggml_tensor *mask = ggml_new_tensor_2d(f->ctx, GGML_TYPE_F16, n_keys, n_tokens);
    for (int64_t i = 0; i < n_keys * n_tokens; ++i) {
        const int64_t token = i / n_keys, key = i % n_keys, at = token * n_keys / n_tokens;
        const bool hidden = key < at - 50 || key > at + 3 || token == 7;
        ((uint16_t *)mask->data)[i] = hidden ? 0xFC00 : 0;
    }
    return mask;
}

static void check_window(struct fixture *f, int64_t size, int64_t n_tokens, int64_t n_keys,
                         int64_t n_heads) {
    struct ggml_tensor *q = fixture_tensor(f, GGML_TYPE_F32, size, n_tokens, n_heads, 1);
    struct ggml_tensor *k = fixture_tensor(f, GGML_TYPE_F16, size, n_keys, 1, 1);
    struct ggml_tensor *v = fixture_tensor(f, GGML_TYPE_F32, size, n_keys, 1, 1);
    struct ggml_tensor *mask = new_window(f, n_keys, n_tokens);
    struct ggml_tensor *node = ggml_flash_attn_ext(f->ctx, q, k, v, mask, 0.2f, 0, 0);
    fixture_check(f, node, oracle_flash_attn_ext, ATTENTION);
    void *before = malloc(ggml_nbytes(node));
    assert_non_null(before);
    memcpy(before, node->data, ggml_nbytes(node));
    assert_int_equal(fixture_compute(f, node, 5), GGML_STATUS_SUCCESS);
    assert_memory_equal(before, node->data, ggml_nbytes(node));
    free(before);
}

static void test_attention_in_windows(void **state) {
    check_window(*state, 64, 50, 400, 4);
    check_window(*state, 40, 200, 270, 1);
    check_window(*state, 136, 60, 200, 2);
    check_window(*state, 128, 17, 131, 1);
}

// Makes a row of 32 elements NaN or infinite.
static void spoil_row(struct ggml_tensor *t, int64_t row, bool infinite) {
    char *data = (char *)t->data + (size_t)row * t->nb[1];
    const float number = infinite ? INFINITY : NAN;
    if (t->type == GGML_TYPE_Q8_0) { // by its scale
        const uint16_t scale = infinite ? 0x7C00 : 0x7E00;
        memcpy(data, &scale, sizeof(scale));
        return;
    }
    for (int i = 0; i < 32; ++i)
        memcpy(data + (size_t)i * sizeof(number), &number, sizeof(number));
}

static void check_masked_keys(struct fixture *f, enum ggml_type type, int n_tokens) {
    struct ggml_tensor *q = fixture_tensor(f, GGML_TYPE_F32, 32, n_tokens, 2, 1);
    struct ggml_tensor *k = fixture_tensor(f, type, 32, 70, 2, 1);
    struct ggml_tensor *v = fixture_tensor(f, type, 32, 70, 2, 1);
    struct ggml_tensor *mask = ggml_new_tensor_2d(f->ctx, GGML_TYPE_F16, 70, n_tokens);
    for (int i = 0; i < 70 * n_tokens; ++i)
        ((uint16_t *)mask->data)[i] = i % 70 >= 45 || i / 70 == 3 ? 0xFC00 : 0;
    struct ggml_tensor *node = ggml_flash_attn_ext(f->ctx, q, k, v, mask, 1.0f, 0, 0);
    // Row 3 sees no key at all: zeros
    check_attention(f, node);
    assert_int_equal(fixture_compute(f, node, 1), GGML_STATUS_SUCCESS);
    float before[32 * 2 * 40];
    assert_true(ggml_nbytes(node) <= sizeof(before));
    memcpy(before, node->data, ggml_nbytes(node));
    for (int64_t head = 0; head < 2; ++head) {
        for (int64_t key = 45; key < 70; ++key) {
            spoil_row(k, head * 70 + key, false);
            spoil_row(v, head * 70 + key, key % 2 == 0);
        }
    }
    assert_int_equal(fixture_compute(f, node, 2), GGML_STATUS_SUCCESS);
    assert_memory_equal(before, node->data, ggml_nbytes(node));
}

static void test_masked_keys_contribute_nothing(void **state) {
    check_masked_keys(*state, GGML_TYPE_F32, 5);
    check_masked_keys(*state, GGML_TYPE_F32, 40);
    check_masked_keys(*state, GGML_TYPE_Q8_0, 5);
    check_masked_keys(*state, GGML_TYPE_Q8_0, 40);
}

static void check_nan_value(struct fixture *f, int n_tokens) {
    struct ggml_tensor *q = fixture_tensor(f, GGML_TYPE_F32, 32, n_tokens, 1, 1);
    struct ggml_tensor *k = fixture_tensor(f, GGML_TYPE_F32, 32, 70, 1, 1);
    struct ggml_tensor *mask = ggml_new_tensor_2d(f->ctx, GGML_TYPE_F16, 70, n_tokens);
    for (int i = 0; i < 70 * n_tokens; ++i)
        ((uint16_t *)mask->data)[i] = i % 70 == 66 && i / 70 != 3 ? 0xFC00 : 0x3800;
    struct ggml_tensor *v = fixture_tensor(f, GGML_TYPE_F32, 32, 70, 1, 1);
    ((float *)v->data)[66 * 32 + 7] = NAN;
    struct ggml_tensor *node = ggml_flash_attn_ext(f->ctx, q, k, v, mask, 0.1f, 0, 0);
    assert_int_equal(fixture_compute(f, node, 2), GGML_STATUS_SUCCESS);
    for (int64_t i = 0; i < 32 * n_tokens; ++i)
        assert_true(!isnan(((float *)node->data)[i]) == (i != 3 * 32 + 7));
}

static void test_nan_value_reaches_those_who_see_it(void **state) {
    check_nan_value(*state, 5);
    check_nan_value(*state, 40);
}

static void test_nan_query_stays_visible(void **state) {
    struct fixture *f = *state;
    for (int64_t n = 2; n <= 18; n += 16) {
        struct ggml_tensor *q = fixture_tensor(f, GGML_TYPE_F32, 32, n, 1, 1);
        struct ggml_tensor *k = fixture_tensor(f, GGML_TYPE_F32, 32, 9, 1, 1);
        ((float *)q->data)[5] = NAN;
        struct ggml_tensor *node = ggml_flash_attn_ext(f->ctx, q, k, k, NULL, 1.0f, 0, 0);
        assert_int_equal(fixture_compute(f, node, 1), GGML_STATUS_SUCCESS);
        for (int64_t i = 0; i < 32 * n; ++i)
            assert_true(!isfinite(((float *)node->data)[i]) == (i < 32));
    }
}

static void test_short_mask_is_refused(void **state) {
    struct fixture *f = *state;
    struct ggml_tensor *q = fixture_tensor(f, GGML_TYPE_F32, 32, 4, 2, 1);
    struct ggml_tensor *k = fixture_tensor(f, GGML_TYPE_F32, 32, 20, 2, 1);
    struct ggml_tensor *mask = new_mask(f, GGML_TYPE_F16, 19, 4, 1, 1);
    struct ggml_tensor *node = ggml_flash_attn_ext(f->ctx, q, k, k, mask, 1.0f, 0, 0);
    assert_true(ggml_tensor_error(node) || !ggml_backend_supports_op(f->cpu, node));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cpu_test(test_soft_max),
        cpu_test(test_soft_max_of_large_numbers),
        cpu_test(test_soft_max_of_nothing_is_nan),
        cpu_test(test_rope_in_every_mode),
        cpu_test(test_rope_of_a_view),
        cpu_test(test_attention),
        cpu_test(test_attention_on_cache_views),
        cpu_test(test_attention_in_windows),
        cpu_test(test_masked_keys_contribute_nothing),
        cpu_test(test_nan_value_reaches_those_who_see_it),
        cpu_test(test_nan_query_stays_visible),
        cpu_test(test_short_mask_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
