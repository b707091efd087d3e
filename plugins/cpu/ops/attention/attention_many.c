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

#define LOG2_E 1.44269504f
#define LN_2 0.693147181f

enum {
    WIDE = 3,                           // vectors of a register tile of scores
    TALL = VECTORS == 32 ? 8 : 4,       // keys that it multiplies them with
    PANEL = LANES == 16 ? 48 : 24,      // rows whose scores are computed together
    STEP = LANES > TALL ? LANES : TALL, // rows are computed in multiples
    OUT_WIDE = VECTORS == 32 ? 3 : 2,   // vectors of a register tile of results
    OUT_TALL = VECTORS == 32 ? 8 : 6,   // its rows, or 4 of them
    MAX_PANELS = ATTENTION_ROWS / PANEL,
    LINE = 64, // bytes of the cache
};

_Static_assert(PANEL % STEP == 0 && PANEL % LANES == 0 && ATTENTION_BLOCK % TALL == 0,
               "padding must fit");
_Static_assert((int)PANEL <= (int)ATTENTION_MAX_PANEL, "work memory");

// Rows of K or V that are computed with next. Heads lie side by side, so that hardware foresees few
// rows of one of them.
struct ahead {
    const char *data;
    size_t stride, bytes;
    int n;
};

// Keys of a block that rows of a panel see: [first, end), of which `first` is a multiple of TALL.
struct seen {
    int first, end; // end 0: none
    int plain;      // the mask is 0 for those before it
};

// Rows of Q and the blocks they are computed from. The n rows are padded with copies of the last
// to a multiple of STEP.
struct tile {
    const struct attention *a;
    const struct attention_rows *rows;
    int n, padded;
    int block;              // keys
    int64_t k_size, v_size; // of rows in work memory
    int64_t v_stride;
    float *keys, *values; // [key][element]
    float *queries;       // [panel][element][row], times the scale
    float *out;           // [row][element]
    float *scores, *bias; // [key][row], of one panel
    float *mask_rows;     // [row][key], of one panel
    struct ahead next_keys, next_values;
    struct seen seen[MAX_PANELS];
    const char *masks[ATTENTION_ROWS];
    float slopes[ATTENTION_ROWS], largest[ATTENTION_ROWS], sums[ATTENTION_ROWS];
    float factors[ATTENTION_ROWS];
};

// y[t * PANEL + i] = x[i][t]
static void interleave(const float *const x[QUAD], int64_t n, float *y) {
    if (x[0] != x[1] || x[0] != x[2] || x[0] != x[3]) {
        interleave_4(x, n, y, PANEL);
        return;
    }
    for (int64_t t = 0; t < n; ++t)
        quad_store(y + t * PANEL, (quad){x[0][t], x[0][t], x[0][t], x[0][t]});
}

// Divides a thread's work memory among the arrays of a tile. Rows of V are an odd number of lines
// apart where they would be a power of two: few of these fit the first level of cache.
static void place_memory(struct tile *t, float *work) {
    const int64_t rows = attention_many_rows(t->a->dst);
    t->block = attention_many_keys(t->a->dst);
    t->k_size = attention_padded(t->a->k->ne[0]);
    t->v_size = attention_padded(t->a->v->ne[0]);
    t->v_stride = t->v_size + ATTENTION_APART;
    t->keys = work;
    t->values = t->keys + t->block * t->k_size;
    t->queries = t->values + t->block * t->v_stride;
    t->out = t->queries + (rows + PANEL - 1) / PANEL * PANEL * t->k_size;
    t->scores = t->out + rows * t->v_size;
    t->bias = t->scores + t->block * PANEL;
    t->mask_rows = t->bias + t->block * PANEL;
}

static int count_panels(const struct tile *t) {
    return (t->padded + PANEL - 1) / PANEL;
}

// Rows of a panel, padded.
static int panel_rows(const struct tile *t, int panel) {
    return MIN(t->padded - panel * PANEL, PANEL);
}

static float *panel_queries(const struct tile *t, int panel) {
    return t->queries + (int64_t)panel * PANEL * t->k_size;
}

// Goes to the row of Q after it: the next head of the group, or the first one's of the next token.
static void next_row(const struct tile *t, struct ggml_row *at) {
    if (++at->i2 < t->rows->first_head + t->a->group) return;
    at->i2 = t->rows->first_head;
    ++at->i1;
}

// Asks for memory that is read soon.
static void ask(const void *data, size_t bytes) {
    for (size_t at = 0; at < bytes; at += LINE)
        __builtin_prefetch((const char *)data + at);
}

// Transposes the queries, so that lanes hold rows, and clears the results. Scores are powers of
// two where they aren't capped first.
static void open_tile(struct tile *t) {
    const struct attention *a = t->a;
    const float scale = a->softcap != 0.0f ? a->scale / a->softcap : a->scale * LOG2_E;
    const float *x[ATTENTION_ROWS];
    struct ggml_row at = attention_row(a, t->rows, 0);
    for (int r = 0; r < t->padded; ++r) {
        x[r] = (const float *)(const void *)ggml_row_data(a->q, at);
        const bool again = r > 0 && at.i2 > t->rows->first_head && a->mask && a->mask->ne[2] == 1;
        t->masks[r] = again ? t->masks[r - 1] : a->mask ? attention_mask(a, at) : NULL;
        t->slopes[r] = LOG2_E * cpu_alibi_slope(a->max_bias, a->q->ne[2], at.i2);
        t->largest[r] = -INFINITY;
        t->sums[r] = 0.0f;
        ask(x[r], (size_t)a->q->ne[0] * sizeof(float));
        ask(ggml_row_data(a->dst, (struct ggml_row){at.i2, at.i1, at.i3}),
            (size_t)a->v->ne[0] * sizeof(float));
        if (r < t->n - 1) next_row(t, &at);
    }
    for (int p = 0; p < count_panels(t); ++p) {
        float *queries = panel_queries(t, p);
        for (int r = 0; r < panel_rows(t, p); r += QUAD)
            interleave(x + p * PANEL + r, a->q->ne[0], queries + r);
        for (int64_t i = 0; i < a->q->ne[0] * PANEL; i += LANES)
            vf_store(queries + i, vf_load(queries + i) * scale);
    }
    memset(t->out, 0, (size_t)(t->padded * t->v_size) * sizeof(float));
    if (a->v->ne[0] != t->v_size)
        memset(t->values, 0, (size_t)(t->block * t->v_stride) * sizeof(float));
}

// Rows [first, end) of a block of K as floats, and zeros up to a multiple of TALL.
static void open_keys(const struct tile *t, int64_t key, int first, int end) {
    const struct ggml_tensor *k = t->a->k;
    const cpu_unpack_fn unpack = CPU_FN(cpu_unpack)(k->type);
    const char *from = attention_keys(t->a, t->rows, key);
    int j = first;
    for (; j < end; ++j)
        unpack(from + (size_t)j * k->nb[1], t->keys + j * t->k_size, k->ne[0]);
    for (; j % TALL != 0; ++j)
        memset(t->keys + j * t->k_size, 0, (size_t)k->ne[0] * sizeof(float));
}

// Rows of V as floats; whether all are finite.
static bool open_values(const struct tile *t, int64_t key, int first, int end) {
    const struct ggml_tensor *v = t->a->v;
    const cpu_unpack_fn unpack = CPU_FN(cpu_unpack)(v->type);
    const char *from = attention_values(t->a, t->rows, key);
    const vi exponent = (vi)vf_set(INFINITY);
    vi special = {0};
    for (int j = first; j < end; ++j) {
        float *x = t->values + j * t->v_stride;
        unpack(from + (size_t)j * v->nb[1], x, v->ne[0]);
        for (int64_t i = 0; i < t->v_size; i += LANES)
            special |= ((vi)vf_load(x + i) & exponent) == exponent;
    }
    int32_t any = 0;
    for (int i = 0; i < LANES; ++i)
        any |= special[i];
    return any == 0;
}

static struct ahead ahead_of(const struct ggml_tensor *from, const char *data, int n) {
    return (struct ahead){data, from->nb[1], ggml_row_size(from->type, from->ne[0]), n};
}

// Asks for the i-th of n shares of them.
static void fetch(const struct ahead *ahead, int i, int n) {
    for (int j = ahead->n * i / n; j < ahead->n * (i + 1) / n; ++j)
        ask(ahead->data + (size_t)j * ahead->stride, ahead->bytes);
}

// --- mask ----------------------------------------------------------------------------------------

// A vector of numbers of a mask in F16, and how many are looked at together.
typedef uint16_t halves __attribute__((vector_size(BYTES)));
enum { HALVES = BYTES / 2, LOOK = 2 * HALVES };

CPU_INLINE halves halves_load(const char *p) {
    halves v;
    memcpy(&v, p, sizeof(v));
    return v;
}

// Looks at LOOK numbers of F16 of rows of a mask, `at` bytes from their beginnings: which keys any
// row sees, and whether any number isn't 0. Those of the next block are asked for.
static void look_halves(const char *const *rows, int n_rows, size_t at, uint16_t *visible,
                        uint16_t *nonzero) {
    const halves hidden = (halves){0} + 0xFC00;
    halves seen[2] = {{0}}, other[2] = {{0}};
    for (int r = 0; r < n_rows; ++r) {
        if (r > 0 && rows[r] == rows[r - 1]) continue;
        const char *from = rows[r] + at;
        const halves x = halves_load(from), y = halves_load(from + sizeof(halves));
        __builtin_prefetch(from + ATTENTION_BLOCK * sizeof(ggml_fp16_t));
        seen[0] |= x ^ hidden;
        seen[1] |= y ^ hidden;
        other[0] |= x << 1; // without the sign
        other[1] |= y << 1;
    }
    memcpy(visible, seen, sizeof(seen));
    memcpy(nonzero, other, sizeof(other));
}

// The same of any n numbers of either type, from `key` on.
static void look_each(const struct tile *t, const char *const *rows, int n_rows, int64_t key, int n,
                      uint16_t *visible, uint16_t *nonzero) {
    for (int j = 0; j < n; ++j) {
        struct mask_bits bits = {0};
        for (int r = 0; r < n_rows; ++r) {
            if (r == 0 || rows[r] != rows[r - 1]) attention_look(t->a, rows[r], key + j, 1, &bits);
        }
        visible[j] = bits.visible != 0;
        nonzero[j] = bits.nonzero != 0;
    }
}

// What rows of a panel see of a block.
static struct seen look(const struct tile *t, int panel, int64_t key, int n_keys) {
    struct seen seen = {.end = n_keys, .plain = n_keys};
    if (!t->a->mask) return seen;
    const char *const *rows = t->masks + panel * PANEL;
    const int n_rows = panel_rows(t, panel);
    uint16_t visible[ATTENTION_BLOCK], nonzero[ATTENTION_BLOCK];
    int j = 0;
    if (t->a->mask->type == GGML_TYPE_F16) {
        for (; j + LOOK <= n_keys; j += LOOK) {
            const size_t at = (size_t)(key + j) * sizeof(ggml_fp16_t);
            look_halves(rows, n_rows, at, visible + j, nonzero + j);
        }
    }
    look_each(t, rows, n_rows, key + j, n_keys - j, visible + j, nonzero + j);
    while (seen.end > 0 && visible[seen.end - 1] == 0)
        --seen.end;
    while (seen.first < seen.end && visible[seen.first] == 0)
        ++seen.first;
    seen.first = seen.first / TALL * TALL;
    for (seen.plain = seen.first; seen.plain < seen.end && nonzero[seen.plain] == 0;)
        ++seen.plain;
    return seen;
}

// The panel's mask as floats, side by side.
static void load_bias(const struct tile *t, int panel, int64_t key) {
    const struct seen *seen = &t->seen[panel];
    const char *const *masks = t->masks + panel * PANEL;
    const float *x[PANEL];
    const int n = seen->end - seen->plain;
    for (int r = 0; r < panel_rows(t, panel); ++r) {
        const bool again = r > 0 && masks[r] == masks[r - 1];
        x[r] = again ? x[r - 1]
                     : cpu_load(t->mask_rows + r * t->block, masks[r], t->a->mask->type,
                                key + seen->plain, n);
    }
    for (int r = 0; r < panel_rows(t, panel); r += QUAD)
        interleave(x + r, n, t->bias + seen->plain * PANEL + r);
}

// --- scores and weights --------------------------------------------------------------------------

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
            x[v] = vf_load(q + t * PANEL + v * LANES);
        for (int i = 0; i < TALL; ++i) {
            const vf y = vf_set(k[i * k_stride + t]);
            for (int v = 0; v < width; ++v)
                sum[i][v] += x[v] * y;
        }
    }
    for (int i = 0; i < TALL; ++i) {
        for (int v = 0; v < width; ++v)
            vf_store(scores + i * PANEL + v * LANES, sum[i][v]);
    }
}

// Of n vectors that are left, how many to compute together: never one of several.
static int next_width(int64_t n, int most) {
    return (int)(n == most + 1 && most > 2 ? most - 1 : MIN(n, most));
}

// All scores of a panel, by tiles of TALL keys and up to WIDE vectors of rows that stay in
// registers.
static void compute_scores(const struct tile *t, int panel) {
    const struct seen *seen = &t->seen[panel];
    const int64_t n = t->a->k->ne[0];
    const int n_rows = panel_rows(t, panel);
    int width;
    for (int r = 0; r < n_rows; r += width * LANES) {
        const float *q = panel_queries(t, panel) + r;
        width = next_width((n_rows - r) / LANES, WIDE);
        for (int j = seen->first; j < seen->end; j += TALL) {
            const float *k = t->keys + j * t->k_size;
            float *scores = t->scores + j * PANEL + r;
            switch (width) {
            case 1: multiply(q, k, t->k_size, n, scores, 1); break;
            case 2: multiply(q, k, t->k_size, n, scores, 2); break;
            default: multiply(q, k, t->k_size, n, scores, WIDE); break;
            }
        }
    }
}

// softcap * tanh(score): keeps scores within a range.
static void cap_scores(const struct tile *t, int panel) {
    const struct seen *seen = &t->seen[panel];
    const float softcap = LOG2_E * t->a->softcap;
    for (int i = seen->first * PANEL; i < seen->end * PANEL; ++i)
        t->scores[i] = softcap * cpu_tanhf(t->scores[i]);
}

// Adds the mask to scores of width vectors of rows; `largest` becomes that of each row with those
// before. NaN is not the largest, but makes its weight NaN.
CPU_INLINE void finish_scores(const struct tile *t, int panel, int r, vf *largest,
                              const int width) {
    const struct seen *seen = &t->seen[panel];
    const float *slopes = t->slopes + panel * PANEL + r;
    const vf hidden = vf_set(-INFINITY);
    int j = seen->first;
    for (; j < seen->plain; ++j) {
        for (int v = 0; v < width; ++v)
            largest[v] = vf_max(largest[v], vf_load(t->scores + j * PANEL + r + v * LANES));
    }
    for (; j < seen->end; ++j) {
        for (int v = 0; v < width; ++v) {
            float *at = t->scores + j * PANEL + r + v * LANES;
            const vf bias = vf_load(t->bias + j * PANEL + r + v * LANES);
            const vf score = vf_load(at) + bias * vf_load(slopes + v * LANES);
            vf_store(at, vf_select(bias == hidden, hidden, score));
            largest[v] = vf_max(largest[v], vf_load(at));
        }
    }
}

// x[v] = 2^x[v] for x[v] <= 0, 0 below -126.5; 2^0 is 1. By steps of all vectors, since one after
// the other would wait for its own results.
CPU_INLINE void powers(vf *x, const int n) {
    const vf least = vf_set(-127.0f), round = vf_set(12583039.0f); // 1.5 * 2^23 + 127
    vf r[WIDE], p[WIDE];
    vi power[WIDE];
    for (int v = 0; v < n; ++v)
        x[v] = vf_max(x[v], least);
    for (int v = 0; v < n; ++v) {
        const vf shifted = x[v] + round;
        power[v] = (vi)shifted << 23;
        r[v] = x[v] - (shifted - round);
    }
    for (int v = 0; v < n; ++v)
        p[v] = r[v] * 1.694824023e-4f + 1.343552372e-3f;
    for (int v = 0; v < n; ++v)
        p[v] = p[v] * r[v] + 9.612638503e-3f;
    for (int v = 0; v < n; ++v)
        p[v] = p[v] * r[v] + 5.550204590e-2f;
    for (int v = 0; v < n; ++v)
        p[v] = p[v] * r[v] + 2.402269691e-1f;
    for (int v = 0; v < n; ++v)
        p[v] = p[v] * r[v] + 6.931473017e-1f;
    for (int v = 0; v < n; ++v)
        x[v] = (p[v] * r[v] + 1.0f) * (vf)power[v];
}

// Scores of width vectors of rows to weights relative to each row's new largest score; the factors
// scale to it what was summed before.
CPU_INLINE void weigh(struct tile *t, int panel, int r, const int width) {
    const struct seen *seen = &t->seen[panel];
    vf largest[WIDE], base[WIDE], factor[WIDE], sum[WIDE];
    for (int v = 0; v < width; ++v)
        largest[v] = vf_load(t->largest + panel * PANEL + r + v * LANES);
    finish_scores(t, panel, r, largest, width);
    for (int v = 0; v < width; ++v) {
        const int at = panel * PANEL + r + v * LANES;
        base[v] = vf_select(largest[v] == vf_set(-INFINITY), (vf){0}, largest[v]);
        factor[v] = vf_load(t->largest + at) - base[v];
        sum[v] = (vf){0};
        vf_store(t->largest + at, largest[v]);
    }
    powers(factor, width);
    for (int j = seen->first; j < seen->end; ++j) {
        float *at = t->scores + j * PANEL + r;
        vf x[WIDE];
        for (int v = 0; v < width; ++v)
            x[v] = vf_load(at + v * LANES) - base[v];
        powers(x, width);
        for (int v = 0; v < width; ++v) {
            vf_store(at + v * LANES, x[v]);
            sum[v] += x[v];
        }
    }
    for (int v = 0; v < width; ++v) {
        const int at = panel * PANEL + r + v * LANES;
        vf_store(t->factors + at, factor[v]);
        vf_store(t->sums + at, vf_load(t->sums + at) * factor[v] + sum[v]);
    }
}

static void compute_weights(struct tile *t, int panel) {
    if (t->a->softcap != 0.0f) cap_scores(t, panel);
    const int n_rows = panel_rows(t, panel);
    int width;
    for (int r = 0; r < n_rows; r += width * LANES) {
        width = next_width((n_rows - r) / LANES, WIDE);
        switch (width) {
        case 1: weigh(t, panel, r, 1); break;
        case 2: weigh(t, panel, r, 2); break;
        default: weigh(t, panel, r, WIDE); break;
        }
    }
}

// --- values --------------------------------------------------------------------------------------

// Keys of V with their weights, and results.
struct sums {
    const float *values, *weights, *factors;
    float *out;
    int64_t v_stride, out_stride;
    int n_keys;
};

// `tall` rows of results, scaled by their factors, += weights * width vectors of V.
CPU_INLINE void add_values(const struct sums *s, const int tall, const int width) {
    vf sum[OUT_TALL][OUT_WIDE];
    for (int i = 0; i < tall; ++i) {
        for (int v = 0; v < width; ++v)
            sum[i][v] = vf_load(s->out + i * s->out_stride + v * LANES) * s->factors[i];
    }
    const float *weights = s->weights, *values = s->values;
    for (int j = 0; j < s->n_keys; ++j, weights += PANEL, values += s->v_stride) {
        vf x[OUT_WIDE];
        for (int v = 0; v < width; ++v)
            x[v] = vf_load(values + v * LANES);
        for (int i = 0; i < tall; ++i) {
            const vf y = vf_set(weights[i]);
            for (int v = 0; v < width; ++v)
                sum[i][v] += x[v] * y;
        }
    }
    for (int i = 0; i < tall; ++i) {
        for (int v = 0; v < width; ++v)
            vf_store(s->out + i * s->out_stride + v * LANES, sum[i][v]);
    }
}

CPU_INLINE void add_rows(const struct sums *s, int tall, const int width) {
    if (tall == OUT_TALL)
        add_values(s, OUT_TALL, width);
    else
        add_values(s, 4, width);
}

// Rows to compute together of n that are left, a multiple of 4 or of OUT_TALL.
static int next_tall(int n) {
    return OUT_TALL == 6 && (n == 4 || n == 8) ? 4 : OUT_TALL;
}

// Adds the weighted values of a block, by tiles of rows and up to OUT_WIDE vectors of channels.
static void add_block(const struct tile *t, int panel) {
    const struct seen *seen = &t->seen[panel];
    const int64_t n = t->a->v->ne[0];
    const int n_rows = panel_rows(t, panel);
    int width, tall;
    for (int64_t d = 0; d < n; d += width * LANES) {
        width = next_width((n - d + LANES - 1) / LANES, OUT_WIDE);
        for (int r = 0; r < n_rows; r += tall) {
            const struct sums s = {
                .values = t->values + seen->first * t->v_stride + d,
                .weights = t->scores + seen->first * PANEL + r,
                .factors = t->factors + panel * PANEL + r,
                .out = t->out + (panel * PANEL + r) * t->v_size + d,
                .v_stride = t->v_stride,
                .out_stride = t->v_size,
                .n_keys = seen->end - seen->first,
            };
            tall = next_tall(n_rows - r);
            switch (width) {
            case 1: add_rows(&s, tall, 1); break;
            case 2: add_rows(&s, tall, 2); break;
            default: add_rows(&s, tall, OUT_WIDE); break;
            }
        }
    }
}

// The same sums for values that are not all finite, which a weight of 0 must keep out.
static void add_special_block(const struct tile *t, int panel) {
    const struct seen *seen = &t->seen[panel];
    for (int r = 0; r < panel_rows(t, panel); ++r) {
        float *out = t->out + (panel * PANEL + r) * t->v_size;
        for (int64_t d = 0; d < t->v_size; d += LANES)
            vf_store(out + d, vf_load(out + d) * t->factors[panel * PANEL + r]);
        for (int j = seen->first; j < seen->end; ++j) {
            const float weight = t->scores[j * PANEL + r];
            if (weight == 0.0f) continue;
            const float *values = t->values + j * t->v_stride;
            for (int64_t d = 0; d < t->v_size; d += LANES)
                vf_store(out + d, vf_load(out + d) + vf_load(values + d) * weight);
        }
    }
}

// Adds a block of keys to all rows. What the mask hides from all rows of a panel at the block's
// beginning and end is left out; a mask that hides nothing isn't read again.
static void compute_block(struct tile *t, int64_t key, int n_keys) {
    const struct attention *a = t->a;
    const int n_panels = count_panels(t);
    int first = n_keys, end = 0;
    for (int p = 0; p < n_panels; ++p) {
        t->seen[p] = look(t, p, key, n_keys);
        if (t->seen[p].end == 0) continue;
        first = MIN(first, t->seen[p].first);
        end = MAX(end, t->seen[p].end);
    }
    if (end == 0) return;
    open_keys(t, key, first, end);
    const bool finite = open_values(t, key, first, end);
    const int64_t next = key + n_keys;
    const int n_next = (int)MIN(a->k->ne[1] - next, t->block);
    t->next_keys = ahead_of(a->k, attention_keys(a, t->rows, next), n_next);
    t->next_values = ahead_of(a->v, attention_values(a, t->rows, next), n_next);
    for (int p = 0; p < n_panels; ++p) {
        fetch(&t->next_keys, p, n_panels);
        fetch(&t->next_values, p, n_panels);
        if (t->seen[p].end == 0) continue;
        if (t->seen[p].plain < t->seen[p].end) load_bias(t, p, key);
        compute_scores(t, p);
        compute_weights(t, p);
        if (finite)
            add_block(t, p);
        else
            add_special_block(t, p);
    }
}

// A tile of up to ROWS query rows over all keys.
void CPU_FN(cpu_attention_many)(const struct attention *a, const struct attention_rows *rows,
                                float *work) {
    struct tile t = {.a = a, .rows = rows, .n = rows->n};
    t.padded = (t.n + STEP - 1) / STEP * STEP;
    place_memory(&t, work);
    open_tile(&t);
    const int64_t n_keys = a->k->ne[1];
    for (int64_t key = 0; key < n_keys; key += t.block)
        compute_block(&t, key, (int)MIN(n_keys - key, t.block));
    struct ggml_row at = attention_row(a, rows, 0);
    for (int r = 0; r < t.n; ++r, next_row(&t, &at))
        CPU_FN(cpu_attention_store)(a, at, t.largest[r] * LN_2, t.sums[r], t.out + r * t.v_size);
}
