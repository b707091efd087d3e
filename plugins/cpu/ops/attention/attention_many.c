// SPDX-License-Identifier: MIT
// flash_attn_ext for many queries. Lanes of scores hold rows of Q: nothing is summed across lanes,
// and the softmax of a vector of rows is that of one. Lanes of results hold elements of V. What a
// row comes out as depends on no other row.
#include "gemm/interleave.h"
#include "ops/attention/alibi.h"
#include "ops/attention/attention_node.h"
#include "simd/simd.h"
#include "simd/vmath.h"
#include "types/unpack.h"

enum {
    ROWS = ATTENTION_ROWS,
    WIDE = 3,                           // vectors of a register tile
    TALL = VECTORS == 32 ? 8 : 4,       // numbers that it multiplies them with
    STEP = LANES > TALL ? LANES : TALL, // rows are computed in multiples
    LINE = 64,                          // bytes of the cache
};

_Static_assert(ROWS % STEP == 0 && ATTENTION_BLOCK % TALL == 0, "padding must fit");

// Rows of K or V that are computed with next. Heads lie side by side, so that hardware foresees few
// rows of one of them.
struct ahead {
    const char *data;
    size_t stride, bytes;
    int n;
};

// Rows of Q and the blocks they are computed from. The n rows are padded with copies of the last.
struct tile {
    const struct attention *a;
    const struct attention_rows *rows;
    int n, padded;
    int64_t k_size, v_size; // of rows in work memory
    float *keys, *values;   // [key][element]
    float *queries;         // [element][row]
    float *scores, *bias;   // [key][row]
    float *mask_rows;       // [row][key]
    float *out;             // [row][element]
    struct ahead ahead;
    const char *masks[ROWS];
    float slopes[ROWS], largest[ROWS], sums[ROWS], factors[ROWS];
};

// y[t * ROWS + i] = x[i][t]
static void interleave(const float *const x[QUAD], int64_t n, float *y) {
    if (x[0] != x[1] || x[0] != x[2] || x[0] != x[3]) {
        interleave_4(x, n, y, ROWS);
        return;
    }
    for (int64_t t = 0; t < n; ++t)
        quad_store(y + t * ROWS, (quad){x[0][t], x[0][t], x[0][t], x[0][t]});
}

// Divides a thread's work memory among the arrays of a tile.
static void place_memory(struct tile *t, float *work) {
    t->k_size = attention_padded(t->a->k->ne[0]);
    t->v_size = attention_padded(t->a->v->ne[0]);
    t->keys = work;
    t->values = t->keys + ATTENTION_BLOCK * t->k_size;
    t->queries = t->values + ATTENTION_BLOCK * t->v_size;
    t->out = t->queries + ROWS * t->k_size;
    t->scores = t->out + ROWS * t->v_size;
    t->bias = t->scores + ATTENTION_BLOCK * ROWS;
    t->mask_rows = t->bias + ATTENTION_BLOCK * ROWS;
}

// Transposes the queries, so that lanes hold rows, and clears the results.
static void open_tile(struct tile *t) {
    const struct attention *a = t->a;
    const float *x[ROWS];
    for (int r = 0; r < t->padded; ++r) {
        const struct ggml_row at = attention_row(a, t->rows, MIN(r, t->n - 1));
        x[r] = (const float *)(const void *)ggml_row_data(a->q, at);
        t->masks[r] = a->mask ? attention_mask(a, at) : NULL;
        t->slopes[r] = cpu_alibi_slope(a->max_bias, a->q->ne[2], at.i2);
        t->largest[r] = -INFINITY;
        t->sums[r] = 0.0f;
    }
    for (int r = 0; r < t->padded; r += QUAD)
        interleave(x + r, a->q->ne[0], t->queries + r);
    memset(t->out, 0, (size_t)(t->padded * t->v_size) * sizeof(float));
    memset(t->values, 0, (size_t)(ATTENTION_BLOCK * t->v_size) * sizeof(float));
}

// The block's mask as floats.
static void load_mask(const struct tile *t, int64_t key, int n_keys, const float **x) {
    for (int r = 0; r < t->padded; ++r) {
        const bool again = r > 0 && t->masks[r] == t->masks[r - 1];
        x[r] = again ? x[r - 1]
                     : cpu_load(t->mask_rows + r * ATTENTION_BLOCK, t->masks[r], t->a->mask->type,
                                key, n_keys);
    }
}

// Rows of K as floats, and zeros up to a multiple of TALL.
static void open_keys(const struct tile *t, int64_t key, int n_keys) {
    const struct ggml_tensor *k = t->a->k;
    const cpu_unpack_fn unpack = CPU_FN(cpu_unpack)(k->type);
    const char *from = attention_keys(t->a, t->rows, key);
    int j = 0;
    for (; j < n_keys; ++j)
        unpack(from + (size_t)j * k->nb[1], t->keys + j * t->k_size, k->ne[0]);
    for (; j % TALL != 0; ++j)
        memset(t->keys + j * t->k_size, 0, (size_t)k->ne[0] * sizeof(float));
}

// Rows of V as floats; whether all are finite.
static bool open_values(const struct tile *t, int64_t key, int n_keys) {
    const struct ggml_tensor *v = t->a->v;
    const cpu_unpack_fn unpack = CPU_FN(cpu_unpack)(v->type);
    const char *from = attention_values(t->a, t->rows, key);
    const vi exponent = (vi)vf_set(INFINITY);
    vi special = {0};
    for (int j = 0; j < n_keys; ++j) {
        float *x = t->values + j * t->v_size;
        unpack(from + (size_t)j * v->nb[1], x, v->ne[0]);
        for (int64_t i = 0; i < t->v_size; i += LANES)
            special |= ((vi)vf_load(x + i) & exponent) == exponent;
    }
    int32_t any = 0;
    for (int i = 0; i < LANES; ++i)
        any |= special[i];
    return any == 0;
}

// Products of TALL rows of K with width vectors of rows of Q; width is a constant where this is
// inlined.
CPU_INLINE void multiply(const float *q, const float *k, int64_t k_stride, int64_t n, float *scores,
                         const int width) {
    vf sum[TALL][WIDE];
    for (int i = 0; i < TALL; ++i) {
        for (int v = 0; v < width; ++v)
            sum[i][v] = (vf){0};
    }
    for (int64_t t = 0; t < n; ++t) {
        vf x[WIDE];
        for (int v = 0; v < width; ++v)
            x[v] = vf_load(q + t * ROWS + v * LANES);
        for (int i = 0; i < TALL; ++i) {
            const vf y = vf_set(k[i * k_stride + t]);
            for (int v = 0; v < width; ++v)
                sum[i][v] += x[v] * y;
        }
    }
    for (int i = 0; i < TALL; ++i) {
        for (int v = 0; v < width; ++v)
            vf_store(scores + i * ROWS + v * LANES, sum[i][v]);
    }
}

// Of n vectors that are left, how many to compute together: never one of several.
static int next_width(int64_t n) {
    return (int)(n == WIDE + 1 ? WIDE - 1 : MIN(n, WIDE));
}

static struct ahead ahead_of(const struct ggml_tensor *from, const char *data, int n) {
    return (struct ahead){data, from->nb[1], ggml_row_size(from->type, from->ne[0]), n};
}

// Asks for the share of them that belongs to [first, end) of n.
static inline void fetch(const struct ahead *ahead, int first, int end, int n) {
    for (int j = ahead->n * first / n; j < ahead->n * MIN(end, n) / n; ++j) {
        for (size_t i = 0; i < ahead->bytes; i += LINE)
            __builtin_prefetch(ahead->data + (size_t)j * ahead->stride + i);
    }
}

// All scores of a block of keys, by tiles of TALL keys and up to WIDE vectors of rows that stay
// in registers.
static void compute_scores(const struct tile *t, int n_keys) {
    const int64_t n = t->a->k->ne[0];
    int width;
    for (int r = 0; r < t->padded; r += width * LANES) {
        width = next_width((t->padded - r) / LANES);
        for (int j = 0; j < n_keys; j += TALL) {
            const float *k = t->keys + j * t->k_size;
            float *scores = t->scores + j * ROWS + r;
            if (r == 0) fetch(&t->ahead, j, j + TALL, n_keys);
            switch (width) {
            case 1: multiply(t->queries + r, k, t->k_size, n, scores, 1); break;
            case 2: multiply(t->queries + r, k, t->k_size, n, scores, 2); break;
            default: multiply(t->queries + r, k, t->k_size, n, scores, WIDE); break;
            }
        }
    }
}

// softcap * tanh(scale * score / softcap): keeps scores within a range.
static void cap_scores(const struct tile *t, int n_keys) {
    const float scale = t->a->scale, softcap = t->a->softcap;
    for (int j = 0; j < n_keys; ++j) {
        float *scores = t->scores + j * ROWS;
        for (int r = 0; r < t->padded; ++r)
            scores[r] = softcap * cpu_tanhf(scores[r] * scale / softcap);
    }
}

// Products to scores of a vector of rows; returns the largest of each with those before. NaN is
// not the largest, but makes its weight NaN.
CPU_INLINE vf finish_scores(const struct tile *t, int r, int n_keys, bool masked) {
    const vf scale = vf_set(t->a->softcap != 0.0f ? 1.0f : t->a->scale);
    const vf hidden = vf_set(-INFINITY);
    const vf slope = vf_load(t->slopes + r);
    vf largest = vf_load(t->largest + r);
    for (int j = 0; j < n_keys; ++j) {
        float *at = t->scores + j * ROWS + r;
        vf score = vf_load(at) * scale;
        if (masked) {
            const vf bias = vf_load(t->bias + j * ROWS + r);
            score = vf_select(bias == hidden, hidden, score + bias * slope);
        }
        vf_store(at, score);
        largest = vf_max(largest, score);
    }
    return largest;
}

// Scores to weights relative to each row's new largest score; the factors scale to it what was
// summed before.
static void compute_weights(struct tile *t, int n_keys, bool masked) {
    if (t->a->softcap != 0.0f) cap_scores(t, n_keys);
    for (int r = 0; r < t->padded; r += LANES) {
        const vf now =
            masked ? finish_scores(t, r, n_keys, true) : finish_scores(t, r, n_keys, false);
        const vf base = vf_select(now == vf_set(-INFINITY), (vf){0}, now);
        vf sum = {0};
        for (int j = 0; j < n_keys; ++j) {
            float *at = t->scores + j * ROWS + r;
            const vf weight = attention_weight(vf_load(at) - base);
            vf_store(at, weight);
            sum += weight;
        }
        const vf factor = attention_weight(vf_load(t->largest + r) - base);
        vf_store(t->factors + r, factor);
        vf_store(t->sums + r, vf_load(t->sums + r) * factor + sum);
        vf_store(t->largest + r, now);
    }
}

// TALL rows of results, scaled by their factors, += weights * width vectors of V.
CPU_INLINE void add_values(const struct tile *t, const float *values, const float *weights,
                           const float *factors, float *out, int n_keys, const int width) {
    vf sum[TALL][WIDE];
    for (int i = 0; i < TALL; ++i) {
        for (int v = 0; v < width; ++v)
            sum[i][v] = vf_load(out + i * t->v_size + v * LANES) * factors[i];
    }
    for (int j = 0; j < n_keys; ++j, weights += ROWS, values += t->v_size) {
        vf x[WIDE];
        for (int v = 0; v < width; ++v)
            x[v] = vf_load(values + v * LANES);
        for (int i = 0; i < TALL; ++i) {
            const vf y = vf_set(weights[i]);
            for (int v = 0; v < width; ++v)
                sum[i][v] += x[v] * y;
        }
    }
    for (int i = 0; i < TALL; ++i) {
        for (int v = 0; v < width; ++v)
            vf_store(out + i * t->v_size + v * LANES, sum[i][v]);
    }
}

// Adds the weighted values of a block, by tiles of TALL rows and up to WIDE vectors of channels.
static void add_block(const struct tile *t, int n_keys) {
    const int64_t n = t->a->v->ne[0];
    int width;
    for (int64_t d = 0; d < n; d += width * LANES) {
        width = next_width((n - d + LANES - 1) / LANES);
        for (int r = 0; r < t->n; r += TALL) {
            const float *weights = t->scores + r;
            const float *factors = t->factors + r;
            float *out = t->out + r * t->v_size + d;
            if (d == 0) fetch(&t->ahead, r, r + TALL, t->n);
            switch (width) {
            case 1: add_values(t, t->values + d, weights, factors, out, n_keys, 1); break;
            case 2: add_values(t, t->values + d, weights, factors, out, n_keys, 2); break;
            default: add_values(t, t->values + d, weights, factors, out, n_keys, WIDE); break;
            }
        }
    }
}

// The same sums for values that are not all finite, which a weight of 0 must keep out.
static void add_special_block(const struct tile *t, int n_keys) {
    for (int r = 0; r < t->n; ++r) {
        float *out = t->out + r * t->v_size;
        for (int64_t d = 0; d < t->v_size; d += LANES)
            vf_store(out + d, vf_load(out + d) * t->factors[r]);
        for (int j = 0; j < n_keys; ++j) {
            const float weight = t->scores[j * ROWS + r];
            if (weight == 0.0f) continue;
            const float *values = t->values + j * t->v_size;
            for (int64_t d = 0; d < t->v_size; d += LANES)
                vf_store(out + d, vf_load(out + d) + vf_load(values + d) * weight);
        }
    }
}

// Adds a block of keys to all rows. One that the mask hides from all is left out; a mask that
// hides nothing isn't read again.
static void compute_block(struct tile *t, int64_t key, int n_keys) {
    const struct attention *a = t->a;
    const enum mask_kind kind =
        a->mask ? attention_look_at(a, t->masks, t->n, key, n_keys) : MASK_ZERO;
    if (kind == MASK_HIDES) return;
    if (kind == MASK_MIXED) {
        const float *mask[ROWS];
        load_mask(t, key, n_keys, mask);
        for (int r = 0; r < t->padded; r += QUAD)
            interleave(mask + r, n_keys, t->bias + r);
    }
    const int64_t next = key + n_keys;
    open_keys(t, key, n_keys);
    t->ahead = ahead_of(a->v, attention_values(a, t->rows, key), n_keys);
    compute_scores(t, n_keys);
    compute_weights(t, n_keys, kind == MASK_MIXED);
    t->ahead = ahead_of(a->k, attention_keys(a, t->rows, next),
                        (int)MIN(a->k->ne[1] - next, ATTENTION_BLOCK));
    if (open_values(t, key, n_keys))
        add_block(t, n_keys);
    else
        add_special_block(t, n_keys);
}

// A tile of up to ROWS query rows over all keys.
void CPU_FN(cpu_attention_many)(const struct attention *a, const struct attention_rows *rows,
                                float *work) {
    struct tile t = {.a = a, .rows = rows, .n = rows->n};
    t.padded = (t.n + STEP - 1) / STEP * STEP;
    place_memory(&t, work);
    open_tile(&t);
    const int64_t n_keys = a->k->ne[1];
    for (int64_t key = 0; key < n_keys; key += ATTENTION_BLOCK)
        compute_block(&t, key, (int)MIN(n_keys - key, ATTENTION_BLOCK));
    for (int r = 0; r < t.n; ++r) {
        const struct ggml_row at = attention_row(a, rows, r);
        CPU_FN(cpu_attention_store)(a, at, t.largest[r], t.sums[r], t.out + r * t.v_size);
    }
}
