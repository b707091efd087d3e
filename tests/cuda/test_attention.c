// SPDX-License-Identifier: MIT
// Attention on tensor cores where more than ordinary numbers matter: parts of the keys, what a
// query does not see, numbers beyond F16, and which kernel is chosen. The conformance cases see to
// the rest.
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <math.h>

#include "tensor_run.h"

enum { HOPPER = SIMT_TENSOR_CORES | SIMT_WARPGROUPS };

static int64_t channels = 64;
static unsigned features = SIMT_TENSOR_CORES;

struct operands {
    struct ggml_tensor q, k, v, mask, y;
};

static float value_of(int64_t i) {
    return (float)((i * 7919 + 13) % 31 - 15) / 16.0f; // exact in F16 and BF16
}

static void fill(struct ggml_tensor *t, int64_t seed) {
    for (int64_t i = 0; i < ggml_nelements(t); ++i) {
        const float x = value_of(i + seed + i / 31);
        if (t->type == GGML_TYPE_F32) ((float *)t->data)[i] = x;
        if (t->type == GGML_TYPE_F16) ((uint16_t *)t->data)[i] = ggml_fp32_to_fp16(x);
        if (t->type == GGML_TYPE_BF16) ((ggml_bf16_t *)t->data)[i] = ggml_fp32_to_bf16(x);
    }
}

// n queries of `heads` heads, which share one of K and V.
static struct operands new_operands(enum ggml_type type, int64_t n, int64_t heads, int64_t keys) {
    struct operands o = {.q = new_tensor_3d(GGML_TYPE_F32, channels, n, heads),
                         .k = new_tensor_3d(type, channels, keys, 1),
                         .v = new_tensor_3d(type, channels, keys, 1),
                         .mask = new_tensor(GGML_TYPE_F16, keys, n),
                         .y = new_tensor_3d(GGML_TYPE_F32, channels, heads, n)};
    const float scale = 0.25f;
    fill(&o.q, 0);
    fill(&o.k, 1);
    fill(&o.v, 2);
    o.y.op = GGML_OP_FLASH_ATTN_EXT;
    memcpy(o.y.op_params, &scale, sizeof(scale));
    return o;
}

static void connect(struct operands *o, bool has_mask) {
    o->y.src[0] = &o->q;
    o->y.src[1] = &o->k;
    o->y.src[2] = &o->v;
    o->y.src[3] = has_mask ? &o->mask : NULL;
}

static void free_operands(const struct operands *o) {
    free_tensor(&o->q);
    free_tensor(&o->k);
    free_tensor(&o->v);
    free_tensor(&o->mask);
    free_tensor(&o->y);
}

static double half_at(const struct ggml_tensor *t, int64_t i) {
    const uint16_t bits = ((uint16_t *)t->data)[i];
    return t->type == GGML_TYPE_BF16 ? (double)ggml_bf16_to_fp32((ggml_bf16_t){bits})
                                     : (double)ggml_fp16_to_fp32(bits);
}

// Channel c of query i, head h, in double precision; a key whose mask is -infinity is not looked
// at.
static double expected_at(const struct operands *o, int64_t i, int64_t h, int64_t c) {
    float scale;
    double sum = 0.0, weights = 0.0;
    memcpy(&scale, o->y.op_params, sizeof(scale));
    for (int64_t j = 0; j < o->k.ne[1]; ++j) {
        const double bias = o->y.src[3] ? half_at(&o->mask, i * o->k.ne[1] + j) : 0.0;
        double dot = 0.0;
        if (isinf(bias)) continue;
        for (int64_t d = 0; d < channels; ++d)
            dot += (double)((float *)o->q.data)[(h * o->q.ne[1] + i) * channels + d] *
                   half_at(&o->k, j * channels + d);
        const double weight = exp(dot * (double)scale + bias);
        weights += weight;
        sum += weight * half_at(&o->v, j * channels + c);
    }
    return weights > 0.0 ? sum / weights : 0.0;
}

// Each result is within `limit`, or not a number where that is expected.
static void check(const struct operands *o, double limit) {
    for (int64_t r = 0; r < o->q.ne[1] * o->q.ne[2]; ++r) {
        const int64_t i = r / o->q.ne[2], h = r % o->q.ne[2];
        for (int64_t c = 0; c < channels; c += 7) {
            const double expected = expected_at(o, i, h, c),
                         actual = (double)((float *)o->y.data)[r * channels + c];
            if (isnan(expected) ? !isnan(actual) : !(fabs(actual - expected) <= limit))
                fail_msg("query %d, head %d, channel %d: %g, not %g", (int)i, (int)h, (int)c,
                         actual, expected);
        }
    }
}

// Few queries against many keys: several blocks, whose parts a second launch adds up.
static void test_parts(void **state) {
    (void)state;
    static const enum ggml_type types[] = {GGML_TYPE_F16, GGML_TYPE_BF16};
    for (size_t t = 0; t < 2; ++t) {
        struct operands o = new_operands(types[t], 2, 3, 700);
        connect(&o, false);
        assert_int_equal(run_node_with(&o.y, "kernel_attention_few_128_", features), 2);
        check(&o, 1e-5);
        free_operands(&o);
        o = new_operands(types[t], 2, 3, 300);
        connect(&o, false);
        assert_int_equal(run_node_with(&o.y, "kernel_attention_few_128_", features), 1);
        check(&o, 1e-5);
        free_operands(&o);
    }
}

static void hide(const struct operands *o, int64_t query, int64_t key) {
    ((uint16_t *)o->mask.data)[query * o->k.ne[1] + key] = ggml_fp32_to_fp16(-INFINITY);
}

// What is hidden may be anything; what one query sees is not for the others.
static void check_hidden(int64_t n, int64_t heads, int64_t keys, const char *kernel) {
    struct operands o = new_operands(GGML_TYPE_F16, n, heads, keys);
    uint16_t *v = o.v.data, *k = o.k.data;
    connect(&o, true);
    for (int64_t j = keys - 20; j < keys; ++j) { // nobody sees the last ones
        for (int64_t c = 0; c < channels; ++c)
            v[j * channels + c] = k[j * channels + c] = ggml_fp32_to_fp16(NAN);
        for (int64_t i = 0; i < n; ++i)
            hide(&o, i, j);
    }
    v[5 * channels + 7] = ggml_fp32_to_fp16(NAN); // the first query doesn't see this
    hide(&o, 0, 5);
    for (int64_t j = 0; j < keys; ++j) // nothing at all
        hide(&o, n - 1, j);
    run_node_with(&o.y, kernel, features);
    check(&o, 1e-5);
    free_operands(&o);
}

static void test_hidden(void **state) {
    (void)state;
    check_hidden(3, 2, 100, "kernel_attention_few_128_F16");
    check_hidden(3, 2, 600, "kernel_attention_few_128_F16");
    check_hidden(20, 2, 200, "kernel_attention_128_F16");
}

// A causal mask: tiles that nobody of a block sees are not read.
static void test_causal(void **state) {
    (void)state;
    struct operands o = new_operands(GGML_TYPE_F16, 64, 1, 512);
    connect(&o, true);
    for (int64_t i = 0; i < 64; ++i) {
        for (int64_t j = i + 1; j < 512; ++j)
            hide(&o, i, j);
    }
    simt_traffic_start();
    run_node_with(&o.y, "kernel_attention_128_F16", features);
    struct simt_traffic some, all;
    simt_traffic_stop(&some);
    check(&o, 1e-5);
    memset(o.mask.data, 0, o.mask.nb[3]);
    simt_traffic_start();
    run_node_with(&o.y, "kernel_attention_128_F16", features);
    simt_traffic_stop(&all);
    check(&o, 1e-5);
    // Each of two blocks of rows sees one of eight tiles, and begins to copy one that it doesn't.
    const uint64_t of_cache = 2 * (ggml_nbytes(&o.k) + ggml_nbytes(&o.v)) / 32;
    assert_true(all.read_sectors >= of_cache);
    assert_true(all.read_sectors - some.read_sectors >= of_cache * 3 / 4);
    free_operands(&o);
}

// Queries beyond what F16 has, and tiny ones.
static void test_sizes(void **state) {
    (void)state;
    static const int powers[] = {40, -40};
    for (size_t t = 0; t < 2; ++t) {
        struct operands o = new_operands(GGML_TYPE_F16, 2, 2, 70);
        const float scale = ldexpf(0.25f, -powers[t]);
        connect(&o, false);
        for (int64_t i = 0; i < ggml_nelements(&o.q); ++i)
            ((float *)o.q.data)[i] *= ldexpf(1.0f, powers[t]);
        memcpy(o.y.op_params, &scale, sizeof(scale));
        run_node_with(&o.y, "kernel_attention_few_128_F16", features);
        check(&o, 1e-5);
        free_operands(&o);
    }
}

// The same by warpgroups, in three orders of threads: keys that do not fill a tile, several parts,
// channels that do not fill a panel, what is hidden, queries beyond what F16 has.
static void check_wide(enum ggml_type type, int64_t n, int64_t heads, int64_t keys, bool masked,
                       int launches) {
    struct operands o = new_operands(type, n, heads, keys);
    connect(&o, masked);
    for (int64_t i = 0; i < n && masked; ++i) {
        for (int64_t j = i + keys / 4; j < keys; ++j)
            hide(&o, i, j);
    }
    assert_int_equal(run_node_with(&o.y, "kernel_attention_wide_", features), launches);
    check(&o, 1e-5);
    free_operands(&o);
}

static void test_warpgroups(void **state) {
    features = HOPPER;
    channels = 128;
    for (uint64_t seed = 0; seed < 3; ++seed) {
        simt_set_seed(seed);
        check_wide(GGML_TYPE_F16, 70, 1, 296, true, 1);
    }
    simt_set_seed(0);
    check_wide(GGML_TYPE_BF16, 70, 2, 200, true, 1);
    check_wide(GGML_TYPE_F16, 33, 4, 77, false, 1);
    check_wide(GGML_TYPE_F16, 22, 3, 520, false, 2);
    channels = 72;
    check_wide(GGML_TYPE_F16, 80, 1, 64, false, 1);
    check_hidden(70, 1, 200, "kernel_attention_wide_F16");
    channels = 128;
    struct operands o = new_operands(GGML_TYPE_F16, 66, 1, 64);
    const float scale = ldexpf(0.25f, -40);
    connect(&o, false);
    for (int64_t i = 0; i < ggml_nelements(&o.q); ++i)
        ((float *)o.q.data)[i] *= ldexpf(1.0f, 40);
    memcpy(o.y.op_params, &scale, sizeof(scale));
    run_node_with(&o.y, "kernel_attention_wide_F16", features);
    check(&o, 1e-5);
    free_operands(&o);
    // What it does not take.
    o = new_operands(GGML_TYPE_F16, 66, 1, 60);
    connect(&o, true); // a number of keys that is no multiple of eight
    run_node_with(&o.y, "kernel_attention_128_F16", features);
    free_operands(&o);
    o = new_operands(GGML_TYPE_F16, 64, 1, 64);
    connect(&o, false);
    run_node_with(&o.y, "kernel_attention_128_F16", features);
    free_operands(&o);
    features = SIMT_TENSOR_CORES;
    channels = 64;
    (void)state;
}

static void test_choice(void **state) {
    (void)state;
    struct operands o = new_operands(GGML_TYPE_F16, 2, 2, 64);
    connect(&o, true);
    run_node_with(&o.y, "kernel_attention_few_128_F16", features);
    o.mask.ne[2] = 2; // of its own per head
    o.mask.nb[2] = 0;
    run_node_with(&o.y, "kernel_attention_few_128_F16", features);
    o.k.ne[0] = o.q.ne[0] = 60; // no multiple of eight
    run_node_with(&o.y, "kernel_flash_attn", features);
    o.k.ne[0] = o.q.ne[0] = 64;
    o.k.data = (char *)o.k.data + 8;
    o.k.ne[1] = 63;
    run_node_with(&o.y, "kernel_flash_attn", features);
    o.k.data = (char *)o.k.data - 8;
    o.v.type = GGML_TYPE_BF16; // two kinds of halves
    run_node_with(&o.y, "kernel_flash_attn", features);
    free_operands(&o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),  cmocka_unit_test(test_hidden),
        cmocka_unit_test(test_causal), cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_choice), cmocka_unit_test(test_warpgroups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
