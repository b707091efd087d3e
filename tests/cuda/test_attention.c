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

#include "../../core/base/sanitizer.h"
#include "kernels/launch/products.h"
#include "tensor_run.h"

enum { HOPPER = SIMT_TENSOR_CORES | SIMT_WARPGROUPS };

static int64_t channels = 64, v_channels = 64;
static unsigned features = SIMT_TENSOR_CORES;

struct operands {
    struct ggml_tensor q, k, v, mask, sinks, y;
};

static void set_channels(int64_t of_k, int64_t of_v) {
    channels = of_k;
    v_channels = of_v;
}

static float value_of(int64_t i) {
    return (float)((i * 7919 + 13) % 31 - 15) / 16.0f; // exact in F16 and BF16
}

// Bytes of any kind, with scales of several digits by which numbers are within [-1, 1].
static void fill_blocks(struct ggml_tensor *t, int64_t seed) {
    const size_t size = ggml_type_size(t->type);
    const bool has_offset = t->type == GGML_TYPE_Q4_1 || t->type == GGML_TYPE_Q5_1;
    uint8_t *block = t->data;
    float scale = 1.0f / 128; // of Q8_0 and IQ4_NL
    if (t->type == GGML_TYPE_Q4_0 || t->type == GGML_TYPE_Q4_1) scale = 1.0f / 8;
    if (t->type == GGML_TYPE_Q5_0 || t->type == GGML_TYPE_Q5_1) scale = 1.0f / 16;
    for (int64_t i = 0; i < ggml_nelements(t) / 32; ++i, block += size) {
        const uint16_t halves[2] = {
            ggml_fp32_to_fp16(scale * (float)(1000 - (i + seed) % 89) / 1024),
            ggml_fp32_to_fp16((float)((i + seed) % 61 - 60) / 61)};
        for (size_t k = 0; k < size; ++k)
            block[k] = (uint8_t)(((size_t)i * 31 + k * 7 + (size_t)seed) * 2654435761u >> 13);
        memcpy(block, halves, has_offset ? 4 : 2);
    }
}

static void fill(struct ggml_tensor *t, int64_t seed) {
    if (ggml_blck_size(t->type) > 1) fill_blocks(t, seed);
    for (int64_t i = 0; i < ggml_nelements(t) && ggml_blck_size(t->type) == 1; ++i) {
        const float x = value_of(i + seed + i / 31);
        if (t->type == GGML_TYPE_F32) ((float *)t->data)[i] = x;
        if (t->type == GGML_TYPE_F16) ((uint16_t *)t->data)[i] = ggml_fp32_to_fp16(x);
        if (t->type == GGML_TYPE_BF16) ((ggml_bf16_t *)t->data)[i] = ggml_fp32_to_bf16(x);
    }
}

// n queries of `heads` heads, which share one of K and V; V may be of another type.
static struct operands new_mixture(enum ggml_type type, enum ggml_type v_type, int64_t n,
                                   int64_t heads, int64_t keys) {
    struct operands o = {.q = new_tensor_3d(GGML_TYPE_F32, channels, n, heads),
                         .k = new_tensor_3d(type, channels, keys, 1),
                         .v = new_tensor_3d(v_type, v_channels, keys, 1),
                         .mask = new_tensor(GGML_TYPE_F16, keys, n),
                         .sinks = new_tensor(GGML_TYPE_F32, heads, 1),
                         .y = new_tensor_3d(GGML_TYPE_F32, v_channels, heads, n)};
    const float scale = 0.25f;
    fill(&o.q, 0);
    fill(&o.k, 1);
    fill(&o.v, 2);
    fill(&o.sinks, 3);
    o.y.op = GGML_OP_FLASH_ATTN_EXT;
    memcpy(o.y.op_params, &scale, sizeof(scale));
    return o;
}

static struct operands new_operands(enum ggml_type type, int64_t n, int64_t heads, int64_t keys) {
    return new_mixture(type, type, n, heads, keys);
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
    free_tensor(&o->sinks);
    free_tensor(&o->y);
}

static double half_of(enum ggml_type type, const void *at) {
    uint16_t bits;
    memcpy(&bits, at, sizeof(bits));
    return type == GGML_TYPE_BF16 ? (double)ggml_bf16_to_fp32((ggml_bf16_t){bits})
                                  : (double)ggml_fp16_to_fp32(bits);
}

// Element j of a block of 32, in the layouts that kernels/decode.h tells.
static double element_of(enum ggml_type type, const uint8_t *block, int64_t j) {
    static const int iq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                1,    13,   25,  38,  53,  69,  89,  113};
    const bool has_offset = type == GGML_TYPE_Q4_1 || type == GGML_TYPE_Q5_1,
               has_fifth = type == GGML_TYPE_Q5_0 || type == GGML_TYPE_Q5_1;
    const double scale = half_of(GGML_TYPE_F16, block);
    const uint8_t *bits = block + (has_offset ? 4 : 2);
    if (type == GGML_TYPE_Q8_0) return scale * (int8_t)bits[j];
    const uint8_t *nibbles = bits + (has_fifth ? 4 : 0);
    int n = nibbles[j % 16] >> (j / 16 * 4) & 15;
    if (has_fifth) n |= (bits[j / 8] >> (j % 8) & 1) << 4;
    if (has_offset) return scale * n + half_of(GGML_TYPE_F16, block + 2);
    return scale * (type == GGML_TYPE_IQ4_NL ? iq4[n] : n - (has_fifth ? 16 : 8));
}

static double number_at(const struct ggml_tensor *t, int64_t i) {
    const int64_t n = ggml_blck_size(t->type);
    const uint8_t *block = (const uint8_t *)t->data + (size_t)(i / n) * ggml_type_size(t->type);
    return n == 1 ? half_of(t->type, block) : element_of(t->type, block, i % n);
}

enum { MOST_KEYS = 700 };

// Weights of the keys for query i, head h, in double precision, and their sum; those whose mask is
// -infinity have 0, and are not looked at.
static double weigh(const struct operands *o, int64_t i, int64_t h, double *out_weights) {
    float params[3]; // scale, ALiBi, softcap
    double sum = 0.0;
    memcpy(params, o->y.op_params, sizeof(params));
    // Where it counts the heads are a power of two.
    const double slope =
        params[1] > 0.0f ? exp2(-(double)params[1] / (double)o->q.ne[2] * (double)(h + 1)) : 1.0;
    for (int64_t j = 0; j < o->k.ne[1]; ++j) {
        const double bias = o->y.src[3] ? number_at(&o->mask, i * o->k.ne[1] + j) : 0.0;
        double dot = 0.0;
        out_weights[j] = 0.0;
        if (isinf(bias)) continue;
        for (int64_t d = 0; d < channels; ++d)
            dot += (double)((float *)o->q.data)[(h * o->q.ne[1] + i) * channels + d] *
                   number_at(&o->k, j * channels + d);
        double score = dot * (double)params[0];
        if (params[2] > 0.0f) score = (double)params[2] * tanh(score / (double)params[2]);
        sum += out_weights[j] = exp(score + slope * bias);
    }
    return o->y.src[4] ? sum + exp((double)((float *)o->sinks.data)[h]) : sum;
}

// Channel c of the values with these weights.
static double expected_at(const struct operands *o, const double *weights, double all, int64_t c) {
    double sum = 0.0;
    for (int64_t j = 0; j < o->k.ne[1]; ++j) {
        if (weights[j] != 0.0) sum += weights[j] * number_at(&o->v, j * v_channels + c);
    }
    return all > 0.0 ? sum / all : 0.0;
}

// Each result is within `limit`, or not a number where that is expected.
static void check(const struct operands *o, double limit) {
    double weights[MOST_KEYS];
    assert_true(o->k.ne[1] <= MOST_KEYS);
    for (int64_t r = 0; r < o->q.ne[1] * o->q.ne[2]; ++r) {
        const int64_t i = r / o->q.ne[2], h = r % o->q.ne[2];
        const double all = weigh(o, i, h, weights);
        for (int64_t c = 0; c < v_channels; c += 7) {
            const double expected = expected_at(o, weights, all, c),
                         actual = (double)((float *)o->y.data)[r * v_channels + c];
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

// Not a number, or a block of which none is.
static void spoil(struct ggml_tensor *t, int64_t key, int64_t channel) {
    const uint16_t nan = ggml_fp32_to_fp16(NAN);
    const int64_t block = (key * t->ne[0] + channel) / ggml_blck_size(t->type);
    memcpy((char *)t->data + (size_t)block * ggml_type_size(t->type), &nan, sizeof(nan));
}

// What is hidden may be anything; what one query sees is not for the others.
static void check_hidden(enum ggml_type type, int64_t n, int64_t heads, int64_t keys,
                         const char *kernel) {
    struct operands o = new_operands(type, n, heads, keys);
    connect(&o, true);
    for (int64_t j = keys - 20; j < keys; ++j) { // nobody sees the last ones
        for (int64_t c = 0; c < channels; ++c)
            spoil(&o.k, j, c);
        for (int64_t c = 0; c < v_channels; ++c)
            spoil(&o.v, j, c);
        for (int64_t i = 0; i < n; ++i)
            hide(&o, i, j);
    }
    spoil(&o.v, 5, 7); // the first query doesn't see this
    hide(&o, 0, 5);
    for (int64_t j = 0; j < keys; ++j) // nothing at all
        hide(&o, n - 1, j);
    run_node_with(&o.y, kernel, features);
    check(&o, 1e-5);
    free_operands(&o);
}

static void test_hidden(void **state) {
    (void)state;
    check_hidden(GGML_TYPE_F16, 3, 2, 100, "kernel_attention_few_128_F16");
    check_hidden(GGML_TYPE_F16, 3, 2, 600, "kernel_attention_few_128_F16");
    check_hidden(GGML_TYPE_Q5_0, 3, 2, 600, "kernel_attention_few_128_coded");
    check_hidden(GGML_TYPE_F16, 20, 2, 200, "kernel_attention_128_F16");
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
#if GGML_THREAD_SANITIZER // which leaves no counts of memory accesses
    run_node_with(&o.y, "kernel_attention_128_F16", features);
    check(&o, 1e-5);
#else
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
#endif
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

// Runs the node on numbers that are all finite, for which no block may go the way of those that are
// not: each row by itself would give right results as well, from whatever was in shared memory.
// Tiles of K and V are read once by a block, and all else a few times.
static int run_finite(const struct operands *o, const char *kernel) {
#if GGML_THREAD_SANITIZER // which leaves no counts of memory accesses
    return run_node_with(&o->y, kernel, features);
#else
    const uint64_t rows = (uint64_t)(o->q.ne[1] * o->q.ne[2]),
                   block = features == HOPPER ? ATTENTION_WIDE_ROWS : 32,
                   blocks = (rows + block - 1) / block;
    const uint64_t of_cache = ggml_nbytes(&o->k) + ggml_nbytes(&o->v),
                   others = ggml_nbytes(&o->q) + ggml_nbytes(&o->mask) + ggml_nbytes(&o->y);
    struct simt_traffic traffic;
    simt_traffic_start();
    const int launches = run_node_with(&o->y, kernel, features);
    simt_traffic_stop(&traffic);
    const uint64_t most = (2 * blocks * of_cache + 4 * others) / 32;
    if (traffic.read_sectors > most)
        fail_msg("%llu sectors are read, not at most %llu",
                 (unsigned long long)traffic.read_sectors, (unsigned long long)most);
    return launches;
#endif
}

// The same by warpgroups, in three orders of threads: keys that do not fill a tile, several parts,
// channels that do not fill a panel, what is hidden, queries beyond what F16 has.
static void check_wide(enum ggml_type type, int64_t n, int64_t heads, int64_t keys, bool masked,
                       const char *kernel, int launches) {
    struct operands o = new_operands(type, n, heads, keys);
    connect(&o, masked);
    for (int64_t i = 0; i < n && masked; ++i) {
        for (int64_t j = i + keys / 4; j < keys; ++j)
            hide(&o, i, j);
    }
    assert_int_equal(run_finite(&o, kernel), launches);
    check(&o, 1e-5);
    free_operands(&o);
}

// By the most channels of K and V that a kernel has, and fewer.
static const struct wide_kernel {
    int64_t k, v, least_k, least_v;
    const char *f16, *bf16, *coded;
} wide_kernels[] = {
#define WIDE_KERNEL(n, ...)                                                                        \
    {                                                                                              \
        n, __VA_ARGS__, "kernel_attention_wide_" #n "_F16", "kernel_attention_wide_" #n "_BF16",   \
            "kernel_attention_wide_" #n "_coded"                                                   \
    }
    WIDE_KERNEL(128, 128, 72, 72),
    WIDE_KERNEL(192, 128, 136, 72),
    WIDE_KERNEL(256, 256, 72, 136),
    WIDE_KERNEL(256, 128, 200, 72),
};
enum { N_WIDE = sizeof(wide_kernels) / sizeof(wide_kernels[0]) };

static void test_warpgroups(void **state) {
    (void)state;
    features = HOPPER;
    for (int i = 0; i < N_WIDE; ++i) {
        const struct wide_kernel *w = &wide_kernels[i];
        set_channels(w->k, w->v);
        for (uint64_t seed = 0; seed < 3; ++seed) {
            simt_set_seed(seed);
            check_wide(GGML_TYPE_F16, 70, 1, 296, true, w->f16, 1);
        }
        simt_set_seed(0);
        check_wide(GGML_TYPE_BF16, 70, 2, 200, true, w->bf16, 1);
        check_wide(GGML_TYPE_F16, 33, 4, 77, false, w->f16, 1);
        check_wide(GGML_TYPE_F16, 22, 3, 520, false, w->f16, 2);
        set_channels(w->least_k, w->least_v);
        check_wide(GGML_TYPE_F16, 80, 1, 64, false, w->f16, 1);
        check_hidden(GGML_TYPE_F16, 70, 1, 200, w->f16);
    }
    set_channels(128, 128);
    struct operands o = new_operands(GGML_TYPE_F16, 66, 1, 64);
    const float scale = ldexpf(0.25f, -40);
    connect(&o, false);
    for (int64_t i = 0; i < ggml_nelements(&o.q); ++i)
        ((float *)o.q.data)[i] *= ldexpf(1.0f, 40);
    memcpy(o.y.op_params, &scale, sizeof(scale));
    run_node_with(&o.y, "kernel_attention_wide_128_F16", features);
    check(&o, 1e-5);
    free_operands(&o);
    features = SIMT_TENSOR_CORES;
    set_channels(64, 64);
}

static void check_choice(int64_t n, int64_t keys, bool masked, int64_t of_k, int64_t of_v,
                         const char *kernel) {
    struct simt_work work;
    set_channels(of_k, of_v);
    struct operands o = new_operands(GGML_TYPE_F16, n, 1, keys);
    connect(&o, masked);
    assert_true(simt_kernel_prepare_for(&work, &o.y, HOPPER));
    assert_string_equal(simt_kernel_names[work.kernel], kernel);
    free_operands(&o);
    set_channels(64, 64);
}

// What warpgroups do not take: keys that are no multiple of eight, with a mask; few rows; few
// channels, and more than 256.
static void test_choice_of_warpgroups(void **state) {
    (void)state;
    check_choice(66, 60, false, 128, 128, "kernel_attention_wide_128_F16");
    check_choice(66, 60, true, 128, 128, "kernel_attention_128_F16");
    check_choice(66, 60, true, 256, 256, "kernel_attention_256_F16");
    check_choice(64, 64, false, 128, 128, "kernel_attention_128_F16");
    check_choice(64, 64, false, 192, 128, "kernel_attention_256_F16");
    check_choice(66, 64, false, 192, 64, "kernel_attention_256_F16");
    check_choice(66, 64, false, 192, 192, "kernel_attention_wide_256_F16");
    check_choice(66, 64, false, 264, 256, "kernel_attention_576_F16");
    check_choice(66, 64, false, 576, 512, "kernel_attention_576_F16");
}

// Types with blocks, by warpgroups each with another one and with F16, too; sinks, softcap, ALiBi,
// shared heads; keys that do not fill a tile, or are hidden from all; several parts; blocks that do
// not fill the panels.
static const enum ggml_type coded[] = {
#define TYPE_NUMBER(name) GGML_TYPE_##name,
    ATTENTION_CODED_TYPES(TYPE_NUMBER)};
enum { N_CODED = sizeof(coded) / sizeof(coded[0]) };

struct coded_form {
    int64_t n, heads, keys;
    bool masked, sinks;
    int less; // channels than the kernel has
    float alibi, softcap;
    int launches;
};

static void check_coded(enum ggml_type k, enum ggml_type v, const struct coded_form *f,
                        const struct wide_kernel *w, const char *kernel) {
    set_channels(w->k - f->less, w->v - f->less);
    struct operands o = new_mixture(k, v, f->n, f->heads, f->keys);
    connect(&o, f->masked);
    if (f->sinks) o.y.src[4] = &o.sinks;
    memcpy(&o.y.op_params[1], &f->alibi, sizeof(float));
    memcpy(&o.y.op_params[2], &f->softcap, sizeof(float));
    for (int64_t i = 0; i < f->n && f->masked; ++i) {
        for (int64_t j = 0; j < f->keys; ++j) {
            ((uint16_t *)o.mask.data)[i * f->keys + j] = ggml_fp32_to_fp16((float)(j - i) / 64);
            if (j > i + f->keys / 4 || (j >= 64 && j < 128)) hide(&o, i, j);
        }
    }
    assert_int_equal(run_finite(&o, kernel), f->launches);
    check(&o, 1e-5);
    free_operands(&o);
}

static void test_coded(void **state) {
    static const struct coded_form forms[] = {
        {70, 1, 296, true, false, 0, 0.0f, 0.0f, 1},  {33, 4, 77, false, true, 0, 0.0f, 0.0f, 1},
        {70, 2, 200, true, false, 32, 4.0f, 3.0f, 1}, {22, 3, 520, false, false, 0, 0.0f, 2.0f, 2},
        {129, 1, 136, true, true, 0, 0.0f, 0.0f, 1},  {70, 1, 24, false, false, 0, 0.0f, 0.0f, 1},
    };
    enum { N_FORMS = sizeof(forms) / sizeof(forms[0]) };
    (void)state;
    for (int t = 0; t < N_CODED; ++t) {
        const enum ggml_type k = coded[t], other = coded[(t + 1) % N_CODED];
        simt_set_seed((uint64_t)t % 3);
        features = SIMT_TENSOR_CORES;
        check_coded(k, k, &forms[t % N_FORMS], &wide_kernels[0], "kernel_attention_128_coded");
        features = HOPPER;
        // All pairs with one kernel, each type with the others.
        for (int i = 0; i < N_WIDE; ++i) {
            const struct wide_kernel *w = &wide_kernels[i];
            check_coded(k, k, &forms[(t + i) % N_FORMS], w, w->coded);
            check_coded(k, other, &forms[(t + i + 1) % N_FORMS], w, w->coded);
            if (i > 0 && t % 2 == i % 2) continue;
            check_coded(k, GGML_TYPE_F16, &forms[(t + i + 2) % N_FORMS], w, w->coded);
            check_coded(GGML_TYPE_F16, k, &forms[(t + i + 3) % N_FORMS], w, w->coded);
            check_coded(other, k, &forms[(t + i + 4) % N_FORMS], w, w->coded);
        }
    }
    simt_set_seed(0);
    for (int i = 0; i < N_WIDE; ++i) {
        set_channels(wide_kernels[i].k, wide_kernels[i].v);
        check_hidden(GGML_TYPE_Q8_0, 70, 1, 200, wide_kernels[i].coded);
    }
    features = SIMT_TENSOR_CORES;
    set_channels(64, 64);
}

// More keys than a block of warpgroups has bytes for its tiles: more parts.
static void test_many_keys(void **state) {
    (void)state;
    for (int i = 0; i < 2; ++i) {
        const int64_t most = (i ? 32 : 64) * ATTENTION_WIDE_TILES;
        struct simt_work work;
        set_channels(i ? 256 : 128, 128);
        struct operands o = new_operands(GGML_TYPE_Q8_0, 65, 1, 8);
        connect(&o, false);
        o.k.ne[1] = o.v.ne[1] = 64 * most + 1;
        assert_true(simt_kernel_prepare_for(&work, &o.y, HOPPER));
        assert_string_equal(simt_kernel_names[work.kernel], i ? "kernel_attention_wide_256_coded"
                                                              : "kernel_attention_wide_128_coded");
        assert_int_equal(work.args.numbers[3], 65);
        assert_true(work.args.numbers[2] <= most);
        free_operands(&o);
    }
    set_channels(64, 64);
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

// On capability 7.5, which has no BF16.
static void test_turing(void **state) {
    (void)state;
    simt_set_capability(75);
    features = SIMT_TENSOR_F16;
    check_hidden(GGML_TYPE_F16, 6, 2, 200, "kernel_attention_few_128_F16");
    check_hidden(GGML_TYPE_F16, 40, 1, 200, "kernel_attention_128_F16");
    check_hidden(GGML_TYPE_Q5_1, 40, 1, 200, "kernel_attention_128_coded");
    struct operands o = new_operands(GGML_TYPE_BF16, 6, 2, 200);
    connect(&o, false);
    run_node_with(&o.y, "kernel_flash_attn", features);
    check(&o, 1e-5);
    free_operands(&o);
    channels = 256;
    check_hidden(GGML_TYPE_F16, 6, 2, 100, "kernel_attention_256_F16");
    channels = 512;
    check_hidden(GGML_TYPE_F16, 6, 2, 100, "kernel_attention_576_F16");
    check_hidden(GGML_TYPE_Q8_0, 6, 2, 100, "kernel_attention_576_coded");
    channels = 64;
    features = SIMT_TENSOR_CORES;
    simt_set_capability(90);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),      cmocka_unit_test(test_hidden),
        cmocka_unit_test(test_causal),     cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_choice),     cmocka_unit_test(test_choice_of_warpgroups),
        cmocka_unit_test(test_warpgroups), cmocka_unit_test(test_coded),
        cmocka_unit_test(test_many_keys),  cmocka_unit_test(test_turing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
