// SPDX-License-Identifier: MIT
// What the fast kernels ask of memory, counted by the emulator: sectors of device memory near the
// least there can be, and no two lanes of a request in the same bank of shared memory. Speed itself
// is not to be seen here.
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <stdio.h>

#include "ggml-shape.h"
#include "kernels/launch/products.h"
#include "tensor_run.h"

enum { M = 32, K = 4096 };

static struct simt_traffic count(const struct ggml_tensor *node, const char *kernel) {
    struct simt_traffic traffic;
    simt_traffic_start();
    run_node_with(node, kernel,
                  strstr(kernel, "_wide_") ? SIMT_TENSOR_CORES | SIMT_WARPGROUPS
                                           : SIMT_TENSOR_CORES);
    simt_traffic_stop(&traffic);
    return traffic;
}

// The limit, in percent.
static void check(const char *what, struct simt_traffic t, unsigned long long percent) {
    print_message("# %s: sectors read %llu of at least %llu, written %llu of %llu, wavefronts %llu "
                  "of %llu\n",
                  what, t.read_sectors, t.read_least, t.write_sectors, t.write_least, t.wavefronts,
                  t.wavefronts_least);
    if (t.read_sectors * 100 > t.read_least * percent) fail_msg("%s: reads too many sectors", what);
    if (t.write_sectors * 100 > t.write_least * percent) fail_msg("%s: writes too many", what);
    if (t.wavefronts != t.wavefronts_least) fail_msg("%s: conflicts in shared memory", what);
}

static void check_product(enum ggml_type type, int64_t n, const char *kernel) {
    struct ggml_tensor a = new_tensor(type, K, M), b = new_tensor(GGML_TYPE_F32, K, n),
                       y = new_tensor(GGML_TYPE_F32, M, n);
    char what[100];
    y.op = GGML_OP_MUL_MAT;
    y.src[0] = &a;
    y.src[1] = &b;
    snprintf(what, sizeof(what), "%s %s, n = %d", kernel, ggml_type_name(type), (int)n);
    check(what, count(&y, kernel), 101);
    free_tensor(&a);
    free_tensor(&b);
    free_tensor(&y);
}

static const enum ggml_type types[] = {
#define TENSOR_TYPE(name, elements, bytes) GGML_TYPE_##name,
#include "kernels/tensor_types.inl"
};

static void test_few_columns(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); ++i) {
        check_product(types[i], 1, "kernel_few_");
        if (i % 4 == 0) check_product(types[i], 8, "kernel_few_");
    }
}

static void test_many_columns(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); ++i)
        check_product(types[i], 64, "kernel_tile_");
}

// Both launches.
static void test_warpgroups(void **state) {
    (void)state;
#define TYPE_NUMBER(name, elements, bytes) GGML_TYPE_##name,
    static const enum ggml_type wide[] = {WIDE_TYPES(TYPE_NUMBER)};
    for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); ++i)
        check_product(wide[i], 128, "kernel_wide_columns");
}

// K or V of two heads, which take turns as in a cache, so that rows of a head begin alike in their
// sectors.
static struct ggml_tensor new_cache(enum ggml_type type, int64_t channels, int64_t keys) {
    enum { CACHE_HEADS = 16, USED_HEADS = 2 };
    struct ggml_tensor t = new_tensor(type, channels * CACHE_HEADS, keys);
    t.ne[0] = channels;
    t.ne[2] = USED_HEADS;
    t.nb[2] = ggml_row_size(type, channels);
    return t;
}

// Sectors that the rows of a cache lie in, for each by itself.
static unsigned long long sectors_of(const struct ggml_tensor *t) {
    unsigned long long n = 0;
    for (int64_t i = 0; i < t->ne[1] * t->ne[2]; ++i) {
        const size_t begin = (size_t)(i % t->ne[1]) * t->nb[1] + (size_t)(i / t->ne[1]) * t->nb[2];
        n += (begin + ggml_row_size(t->type, t->ne[0]) - 1) / 32 - begin / 32 + 1;
    }
    return n;
}

// K, V and the mask are read once for all heads that share them, the mask twice where tiles that
// are seen are looked for first, and queries where their largest number is; rows of a cache are
// apart, so that sectors and not bytes are what has to be read.
static void check_attention(enum ggml_type type, int64_t channels, int64_t channels_v, int64_t n,
                            int64_t keys, int64_t heads, const char *kernel) {
    struct ggml_tensor q = new_tensor_3d(GGML_TYPE_F32, channels, n, heads),
                       k = new_cache(type, channels, keys), v = new_cache(type, channels_v, keys),
                       mask = new_tensor(GGML_TYPE_F16, keys, n),
                       y = new_tensor_3d(GGML_TYPE_F32, channels_v, heads, n);
    const float scale = 0.1f;
    char what[100];
    y.op = GGML_OP_FLASH_ATTN_EXT;
    y.src[0] = &q;
    y.src[1] = &k;
    y.src[2] = &v;
    y.src[3] = &mask;
    memcpy(y.op_params, &scale, sizeof(scale));
    snprintf(what, sizeof(what), "%s %s, %d channels, n = %d", kernel, ggml_type_name(type),
             (int)channels, (int)n);
    struct simt_traffic t = count(&y, kernel);
    const unsigned long long least = sectors_of(&k) + sectors_of(&v) +
                                     (strstr(kernel, "_wide_") ? 2u : 1u) *
                                         (unsigned long long)k.ne[2] * ggml_nbytes(&mask) / 32 +
                                     (type == GGML_TYPE_BF16 ? 1u : 2u) * ggml_nbytes(&q) / 32;
    assert_true(t.read_sectors >= least); // nothing was forgotten here
    t.read_least = least;
    // Pieces of longer rows begin within sectors.
    check(what, t, channels == 576 && ggml_blck_size(type) > 1 ? 105 : 100);
    free_tensor(&q);
    free_tensor(&k);
    free_tensor(&v);
    free_tensor(&mask);
    free_tensor(&y);
}

static void test_attention(void **state) {
    (void)state;
    check_attention(GGML_TYPE_F16, 128, 128, 1, 256, 8, "kernel_attention_few_128_F16");
    check_attention(GGML_TYPE_BF16, 128, 128, 1, 256, 8, "kernel_attention_few_128_BF16");
    check_attention(GGML_TYPE_Q8_0, 128, 128, 1, 256, 8, "kernel_attention_few_128_coded");
    check_attention(GGML_TYPE_Q4_0, 128, 128, 1, 64, 8, "kernel_attention_few_128_coded");
    check_attention(GGML_TYPE_F16, 128, 128, 8, 64, 8, "kernel_attention_128_F16");
    check_attention(GGML_TYPE_BF16, 128, 128, 8, 64, 8, "kernel_attention_128_BF16");
    check_attention(GGML_TYPE_Q8_0, 128, 128, 8, 64, 8, "kernel_attention_128_coded");
    check_attention(GGML_TYPE_F16, 128, 128, 32, 256, 8, "kernel_attention_wide_128_F16");
    check_attention(GGML_TYPE_BF16, 128, 128, 32, 256, 8, "kernel_attention_wide_128_BF16");
    // With numbers behind the last channel that are no zeros it would all be computed once more.
    check_attention(GGML_TYPE_F16, 96, 96, 32, 256, 8, "kernel_attention_wide_128_F16");
#define CHECK_CODED(name)                                                                          \
    check_attention(GGML_TYPE_##name, 128, 128, 32, 256, 8, "kernel_attention_wide_128_coded");
    ATTENTION_CODED_TYPES(CHECK_CODED)
    check_attention(GGML_TYPE_Q8_0, 96, 96, 32, 256, 8, "kernel_attention_wide_128_coded");
    check_attention(GGML_TYPE_F16, 192, 128, 32, 256, 8, "kernel_attention_wide_192_F16");
    check_attention(GGML_TYPE_F16, 256, 256, 32, 256, 8, "kernel_attention_wide_256_F16");
    check_attention(GGML_TYPE_BF16, 256, 256, 32, 256, 8, "kernel_attention_wide_256_BF16");
    check_attention(GGML_TYPE_F16, 200, 136, 32, 256, 8, "kernel_attention_wide_256_F16");
#define CHECK_WIDER(name)                                                                          \
    check_attention(GGML_TYPE_##name, 192, 128, 32, 256, 8, "kernel_attention_wide_192_coded");    \
    check_attention(GGML_TYPE_##name, 256, 256, 32, 256, 8, "kernel_attention_wide_256_coded");
    ATTENTION_CODED_TYPES(CHECK_WIDER)
    check_attention(GGML_TYPE_F16, 256, 256, 1, 64, 8, "kernel_attention_256_F16");
    check_attention(GGML_TYPE_BF16, 256, 256, 1, 64, 8, "kernel_attention_256_BF16");
    check_attention(GGML_TYPE_Q8_0, 256, 256, 1, 64, 8, "kernel_attention_256_coded");
    check_attention(GGML_TYPE_Q5_1, 256, 256, 1, 64, 8, "kernel_attention_256_coded");
    check_attention(GGML_TYPE_F16, 576, 512, 1, 64, 8, "kernel_attention_576_F16");
    check_attention(GGML_TYPE_BF16, 576, 512, 1, 64, 8, "kernel_attention_576_BF16");
    check_attention(GGML_TYPE_Q8_0, 576, 512, 1, 64, 8, "kernel_attention_576_coded");
}

enum { STATE = 64, HEADS = 2, TOKENS = 3 }; // elements of a state's row

// A packed tensor of ne0 elements per head and token.
static struct ggml_tensor new_operand(int64_t ne0) {
    struct ggml_tensor t = new_tensor(GGML_TYPE_F32, ne0, HEADS * TOKENS);
    t.ne[1] = HEADS;
    t.ne[2] = TOKENS;
    t.nb[2] = t.nb[1] * HEADS;
    return t;
}

// A state goes once from memory to registers and back, beside one read of each token's operands.
static void test_states(void **state) {
    (void)state;
    struct ggml_tensor x = new_operand(STATE), gate = new_operand(1),
                       first = new_tensor(GGML_TYPE_F32, STATE * STATE * HEADS, 1),
                       bonus = new_tensor(GGML_TYPE_F32, STATE, HEADS),
                       y = new_tensor(GGML_TYPE_F32, STATE * HEADS, TOKENS + STATE);
    struct ggml_tensor wkv7 = y, wkv6 = y, delta = y;
    for (int i = 0; i < 6; ++i)
        wkv7.src[i] = wkv6.src[i] = delta.src[i] = &x;
    wkv7.op = GGML_OP_RWKV_WKV7;
    wkv7.src[6] = &first;
    check("rwkv_wkv7", count(&wkv7, "kernel_rwkv_wkv7"), 100);
    wkv6.op = GGML_OP_RWKV_WKV6;
    wkv6.src[3] = &bonus;
    wkv6.src[5] = &first;
    check("rwkv_wkv6", count(&wkv6, "kernel_linear_attention"), 100);
    delta.op = GGML_OP_GATED_DELTA_NET;
    delta.op_params[0] = 1;
    delta.src[3] = delta.src[4] = &gate;
    delta.src[5] = &first;
    check("gated_delta_net", count(&delta, "kernel_delta_net"), 100);
    free_tensor(&x);
    free_tensor(&gate);
    free_tensor(&first);
    free_tensor(&bonus);
    free_tensor(&y);
}

// Tokens are neighbours in the source, channels in the result. The least is each sector of the
// operands once: what several warps or blocks ask for counts as often. Rows begin with sectors or
// not, end within a tile or not.
static void check_convolution(int64_t length) {
    enum { TAPS = 4, CHANNELS = 64 };
    struct ggml_tensor x = new_tensor(GGML_TYPE_F32, TAPS - 1 + length, CHANNELS),
                       filter = new_tensor(GGML_TYPE_F32, TAPS, CHANNELS),
                       y = new_tensor(GGML_TYPE_F32, CHANNELS, length);
    y.op = GGML_OP_SSM_CONV;
    y.src[0] = &x;
    y.src[1] = &filter;
    struct simt_traffic t = count(&y, "kernel_ssm_conv_tile");
    const unsigned long long least = (ggml_nbytes(&x) + ggml_nbytes(&filter)) / 32;
    assert_true(t.read_sectors >= least);
    t.read_least = least;
    check("ssm_conv", t, 105);
    free_tensor(&x);
    free_tensor(&filter);
    free_tensor(&y);
}

static void test_convolution(void **state) {
    (void)state;
    check_convolution(61);
    check_convolution(512);
    check_convolution(1024);
}

// A row is read once and written once, and pairs of all distances lie in different banks; equal
// elements are not exchanged, others are by some of the lanes.
static void check_sort(bool equal) {
    struct ggml_tensor x = new_tensor(GGML_TYPE_F32, 2048, 1),
                       y = new_tensor(GGML_TYPE_I32, 2048, 1);
    y.op = GGML_OP_ARGSORT;
    y.src[0] = &x;
    for (int64_t i = 0; i < 2048 && !equal; ++i)
        ((float *)x.data)[i] = (float)((uint32_t)i * 2654435761u >> 8);
    const struct simt_traffic t = count(&y, "kernel_sort");
    check(equal ? "argsort of equal elements" : "argsort", t, 100);
    free_tensor(&x);
    free_tensor(&y);
}

static void test_sort(void **state) {
    (void)state;
    check_sort(true);
    check_sort(false);
}

// What is bound by memory alone: rows of a few thousand elements.
enum { WIDTH = 1024, HEIGHT = 4, HEAD = 128 };

static void check_node(struct ggml_tensor *y, struct ggml_tensor *a, struct ggml_tensor *b,
                       const char *kernel) {
    y->src[0] = a;
    y->src[1] = b;
    check(ggml_op_name(y->op), count(y, kernel), 100);
}

static void test_memory_bound(void **state) {
    (void)state;
    struct ggml_tensor a = new_tensor(GGML_TYPE_F32, WIDTH, HEIGHT),
                       b = new_tensor(GGML_TYPE_F32, WIDTH, HEIGHT),
                       half = new_tensor(GGML_TYPE_F16, WIDTH, HEIGHT),
                       y = new_tensor(GGML_TYPE_F32, WIDTH, HEIGHT),
                       wide = new_tensor(GGML_TYPE_F32, 2 * WIDTH, HEIGHT),
                       ids = new_tensor(GGML_TYPE_I32, HEIGHT, 1);
    static const struct {
        enum ggml_op op;
        int param;
        const char *kernel;
    } rows[] = {{GGML_OP_RMS_NORM, 0, "kernel_norm"},
                {GGML_OP_NORM, 0, "kernel_norm"},
                {GGML_OP_SOFT_MAX, 0, "kernel_soft_max"},
                {GGML_OP_SCALE, 0, "kernel_unary"},
                {GGML_OP_UNARY, GGML_UNARY_OP_SILU, "kernel_unary"},
                {GGML_OP_CONT, 0, "kernel_move"},
                {GGML_OP_REPEAT, 0, "kernel_repeat"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        memset(y.op_params, 0, sizeof(y.op_params));
        y.op = rows[i].op;
        y.op_params[0] = rows[i].param;
        check_node(&y, &a, NULL, rows[i].kernel);
    }
    memset(y.op_params, 0, sizeof(y.op_params));
    y.op = GGML_OP_ADD;
    check_node(&y, &a, &b, "kernel_binary");
    y.op = GGML_OP_MUL;
    check_node(&y, &a, &b, "kernel_binary");
    y.op = GGML_OP_GLU;
    check_node(&y, &a, &b, "kernel_glu");
    y.op = GGML_OP_GET_ROWS;
    check_node(&y, &a, &ids, "kernel_get_rows");
    y.op = GGML_OP_CONT;
    check_node(&y, &half, NULL, "kernel_convert");
    half.op = GGML_OP_CONT;
    check_node(&half, &a, NULL, "kernel_convert");
    wide.op = GGML_OP_CONCAT;
    check_node(&wide, &a, &b, "kernel_concat");
    struct ggml_tensor heads = new_tensor_3d(GGML_TYPE_F32, HEAD, WIDTH / HEAD, HEIGHT),
                       turned = new_tensor_3d(GGML_TYPE_F32, HEAD, WIDTH / HEAD, HEIGHT);
    const float one = 1.0f, base = 10000.0f;
    turned.op = GGML_OP_ROPE;
    turned.op_params[GGML_ROPE_SLOT_N_DIMS] = HEAD;
    turned.op_params[GGML_ROPE_SLOT_MODE] = GGML_ROPE_TYPE_NEOX;
    memcpy(&turned.op_params[GGML_ROPE_SLOT_FREQ_BASE], &base, sizeof(base));
    memcpy(&turned.op_params[GGML_ROPE_SLOT_FREQ_SCALE], &one, sizeof(one));
    memcpy(&turned.op_params[GGML_ROPE_SLOT_ATTN_FACTOR], &one, sizeof(one));
    check_node(&turned, &heads, &ids, "kernel_rope");
    const struct ggml_tensor *all[] = {&a, &b, &half, &y, &wide, &ids, &heads, &turned};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); ++i)
        free_tensor(all[i]);
}

// One that is known to be bad: the counts can fail.
static void test_counts(void **state) {
    (void)state;
    struct ggml_tensor a = new_tensor(GGML_TYPE_F32, 64, 64), y = new_tensor(GGML_TYPE_F32, 64, 64);
    a.nb[0] = 64 * sizeof(float); // transposed
    a.nb[1] = sizeof(float);
    y.op = GGML_OP_CONT;
    y.src[0] = &a;
    const struct simt_traffic t = count(&y, "kernel_");
    assert_true(t.read_sectors >= 8 * t.read_least);
    free_tensor(&a);
    free_tensor(&y);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few_columns),  cmocka_unit_test(test_many_columns),
        cmocka_unit_test(test_warpgroups),   cmocka_unit_test(test_attention),
        cmocka_unit_test(test_states),       cmocka_unit_test(test_convolution),
        cmocka_unit_test(test_sort),         cmocka_unit_test(test_counts),
        cmocka_unit_test(test_memory_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
