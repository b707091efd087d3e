// SPDX-License-Identifier: MIT
// flash_attn_ext for few queries, as when one token comes after another: softmax(scale * Q K^T +
// mask) V over a range of keys, with the softmax taken online, block by block of keys. Lanes of
// scores hold keys. All heads of queries that share a head of K and V are computed together, so
// that it is read once, and heads side by side in turn for each block of keys, so that memory is
// read as it lies. Each row's arithmetic is the same however many there are. A masked key
// contributes nothing, not even its NaN.
#include "ops/attention/alibi.h"
#include "ops/attention/attention_inner.h"
#include "ops/attention/attention_node.h"
#include "simd/vmath.h"
#include "types/unpack.h"

enum { BLOCK = ATTENTION_KEYS };

_Static_assert(BLOCK % 16 == 0, "whole vectors of any level");

// Rows of queries, group after group, and where their sums go.
struct tile {
    const struct attention *a;
    struct attention_rows rows; // of the first group
    int n_groups, n;            // all rows
    int block;                  // keys of a block
    int64_t k_size;
    float *queries;       // [row][element], times the scale, padded with zeros
    int16_t *words;       // the same rounded, where keys are multiplied so
    float *word_scales;   // by row
    float *scores;        // [row][key]
    float *biases;        // [row][key], the mask
    float *keys, *values; // unpacked blocks of rows
    float *parts;
    int64_t stride; // of parts
    bool special;   // values may be no numbers: those of weight 0 are left out
    const char *masks[ATTENTION_QUERIES];
    float slopes[ATTENTION_QUERIES];
};

// The block's mask of a row as floats, of which the first that sees the same has them.
static const float *bias_of(const struct tile *t, int r) {
    while (r > 0 && t->masks[r - 1] == t->masks[r])
        --r;
    return t->biases + r * BLOCK;
}

// Divides a thread's work memory among the arrays of a tile.
static void place_memory(struct tile *t, float *work) {
    t->k_size = attention_padded(t->a->k->ne[0]);
    t->queries = work;
    t->scores = t->queries + ATTENTION_QUERIES * t->k_size;
    t->biases = t->scores + ATTENTION_QUERIES * BLOCK;
    t->keys = t->biases + ATTENTION_QUERIES * BLOCK;
    t->values = t->keys + (ggml_is_quantized(t->a->k->type) ? BLOCK * t->k_size : 0);
    const size_t v_floats = BLOCK * (size_t)attention_padded(t->a->v->ne[0]);
    t->word_scales = t->values + (ggml_is_quantized(t->a->v->type) ? v_floats : 0);
    t->words = (int16_t *)(void *)(t->word_scales + ATTENTION_QUERIES);
}

// Whether keys are multiplied as whole numbers, with rounded queries.
static bool rounds(const struct tile *t) {
    return t->a->rounds && attention_has_bytes(t->a->k->type);
}

// Rows of one of the groups.
static struct attention_rows group_rows(const struct tile *t, int group) {
    struct attention_rows rows = t->rows;
    rows.first_head += group * t->a->group;
    return rows;
}

// Begins a tile: its queries, its rows of the mask with their slopes, empty sums.
static void open_tile(struct tile *t) {
    const struct attention *a = t->a;
    const int64_t n = a->q->ne[0];
    for (int r = 0; r < t->n; ++r) {
        const struct attention_rows rows = group_rows(t, r / t->rows.n);
        const struct ggml_row at = attention_row(a, &rows, r % t->rows.n);
        float *query = t->queries + r * t->k_size;
        const void *row = ggml_row_data(a->q, at);
        const float *from = row;
        for (int64_t i = 0; i < n; ++i)
            query[i] = from[i] * a->scale;
        memset(query + n, 0, (size_t)(t->k_size - n) * sizeof(float));
        if (rounds(t))
            t->word_scales[r] = CPU_FN(cpu_attention_round)(query, n, t->words + r * t->k_size);
        t->slopes[r] = cpu_alibi_slope(a->max_bias, a->q->ne[2], at.i2);
        t->masks[r] = a->mask ? attention_mask(a, at) : NULL;
        float *part = t->parts + r * t->stride;
        memset(part, 0, (size_t)attention_part(a->dst) * sizeof(float));
        part[0] = -INFINITY;
    }
}

// Loads the mask of a block as floats.
static void load_biases(const struct tile *t, int64_t key, int n_keys) {
    for (int r = 0; r < t->n; ++r) {
        if (r > 0 && t->masks[r] == t->masks[r - 1]) continue;
        float *to = t->biases + r * BLOCK;
        const float *from = cpu_load(to, t->masks[r], t->a->mask->type, key, n_keys);
        if (from != to) memcpy(to, from, (size_t)n_keys * sizeof(float));
    }
}

// Products to scores, -infinity from n_keys on; returns the largest. NaN is not the largest, but
// makes its weight NaN. The scale is in the queries: with two products to add, which of them is
// rounded would be the compiler's choice, and could differ between calls.
static float finish_scores(const struct tile *t, float *scores, const float *bias, float slope,
                           int n_keys) {
    const float softcap = t->a->softcap;
    for (int j = n_keys; j % LANES != 0; ++j)
        scores[j] = 0.0f;
    for (int j = 0; j < n_keys && softcap != 0.0f; ++j)
        scores[j] = softcap * cpu_tanhf(scores[j] / softcap);
    const vf hidden = vf_set(-INFINITY);
    vf largest = hidden;
    for (int j = 0; j < n_keys; j += LANES) {
        vf score = vf_load(scores + j);
        if (bias) {
            const vf b = vf_load(bias + j);
            score = vf_select(b == hidden, hidden, score + b * slope);
        }
        if (n_keys - j < LANES) score = vf_select(vi_from(n_keys - j), hidden, score);
        vf_store(scores + j, score);
        largest = vf_max(largest, score);
    }
    return vf_largest(largest);
}

// Scores to weights relative to the row's new largest score; what was summed before is scaled to
// it.
static void update_row(float *part, int64_t n, float *scores, float largest, int n_keys) {
    const float before = part[0];
    const float now = largest > before ? largest : before;
    const vf base = vf_set(now == -INFINITY ? 0.0f : now);
    vf sum = {0};
    for (int j = 0; j < n_keys; j += LANES) {
        const vf weight = attention_weight(vf_load(scores + j) - base);
        vf_store(scores + j, weight);
        sum += weight;
    }
    part[0] = now;
    if (before == now) {
        part[1] += vf_sum(sum);
        return;
    }
    const vf factor = attention_weight(vf_set(before) - base);
    part[1] = part[1] * factor[0] + vf_sum(sum);
    float *out = part + ATTENTION_HEADER;
    for (int64_t i = 0; i < n; i += LANES)
        vf_store(out + i, vf_load(out + i) * factor);
}

// Rows of a block as the inner kernels know them, which `opened` has room for: as they lie, of
// Q8_0, or of floats.
static struct attention_lines open_lines(const struct ggml_tensor *t, const char *data, int n_keys,
                                         bool as_bytes, void *opened) {
    struct attention_lines lines = {
        .type = t->type, .data = data, .stride = t->nb[1], .size = t->ne[0], .n = n_keys};
    if (!ggml_is_quantized(t->type) || (as_bytes && t->type == GGML_TYPE_Q8_0)) return lines;
    lines.type = as_bytes ? GGML_TYPE_Q8_0 : GGML_TYPE_F32;
    lines.data = opened;
    lines.stride = as_bytes ? ggml_row_size(GGML_TYPE_Q8_0, t->ne[0])
                            : (size_t)attention_padded(t->ne[0]) * sizeof(float);
    const cpu_unpack_fn unpack = CPU_FN(cpu_unpack)(t->type);
    for (int j = 0; j < n_keys; ++j) {
        char *row = (char *)opened + (size_t)j * lines.stride;
        const char *from = data + (size_t)j * t->nb[1];
        if (as_bytes)
            CPU_FN(cpu_attention_open_bytes)(t->type, from, t->ne[0], row);
        else
            unpack(from, (float *)(void *)row, t->ne[0]);
    }
    return lines;
}

// Keys [first, end) of K or V are asked for while a group is computed: all its heads, or where
// those lie side by side a share of all groups' heads.
static void set_ahead(struct attention_lines *lines, const struct tile *t, int group,
                      const struct ggml_tensor *from, const struct attention_range *keys) {
    const size_t bytes = ggml_row_size(from->type, from->ne[0]);
    const bool together = t->a->k->ne[2] == t->a->v->ne[2] && from->nb[2] == bytes;
    const int64_t n = keys->end - keys->first;
    const int64_t first = together ? n * group / t->n_groups : 0;
    const struct attention_rows rows = group_rows(t, together ? 0 : group);
    lines->ahead = from == t->a->k ? attention_keys(t->a, &rows, keys->first + first)
                                   : attention_values(t->a, &rows, keys->first + first);
    lines->ahead_stride = from->nb[1];
    lines->ahead_bytes = together ? bytes * (size_t)t->n_groups : bytes;
    lines->n_ahead = (int)((together ? n * (group + 1) / t->n_groups : n) - first);
}

// The products of a block of keys with the rows of a group.
static void multiply_keys(const struct tile *t, int group, int64_t key, int n_keys,
                          const struct attention_range *next) {
    const struct attention *a = t->a;
    const struct attention_rows rows = group_rows(t, group);
    const int first = group * rows.n;
    struct attention_lines lines =
        open_lines(a->k, attention_keys(a, &rows, key), n_keys, rounds(t), t->keys);
    if (next->end > next->first) set_ahead(&lines, t, group, a->k, next);
    if (rounds(t)) {
        const struct attention_words words = {t->words + first * t->k_size, t->k_size,
                                              t->word_scales + first};
        CPU_FN(cpu_attention_block_scores)(&lines, &words, rows.n, t->scores, BLOCK);
    } else {
        const float *queries = t->queries + first * t->k_size;
        CPU_FN(cpu_attention_scores)(&lines, queries, t->k_size, rows.n, t->scores, BLOCK);
    }
}

// Adds the values of a block, times their weights, to the rows of a group.
static void add_values(const struct tile *t, int group, int64_t key, int n_keys,
                       const struct attention_range *next) {
    const struct ggml_tensor *v = t->a->v;
    const struct attention_rows rows = group_rows(t, group);
    const bool blocks = attention_has_bytes(v->type);
    struct attention_lines lines =
        open_lines(v, attention_values(t->a, &rows, key), n_keys, blocks, t->values);
    if (next->end > next->first) set_ahead(&lines, t, group, v, next);
    float *out = t->parts + group * rows.n * t->stride + ATTENTION_HEADER;
    if (t->special)
        (blocks ? CPU_FN(cpu_attention_special_block_sums)
                : CPU_FN(cpu_attention_special_sums))(&lines, t->scores, out);
    else
        (blocks ? CPU_FN(cpu_attention_block_sums)
                : CPU_FN(cpu_attention_sums))(&lines, t->scores, BLOCK, rows.n, out, t->stride);
}

// Adds a block of keys to the rows of a group. `next`: those of the block after it.
static void compute_group(const struct tile *t, int group, int64_t key, int n_keys, bool biased,
                          const struct attention_range *next) {
    const int n = t->rows.n, first = group * n;
    multiply_keys(t, group, key, n_keys, next);
    for (int r = 0; r < n; ++r) {
        float *scores = t->scores + r * BLOCK;
        const float *bias = biased ? bias_of(t, first + r) : NULL;
        const float largest = finish_scores(t, scores, bias, t->slopes[first + r], n_keys);
        update_row(t->parts + (first + r) * t->stride, t->a->v->ne[0], scores, largest, n_keys);
    }
    add_values(t, group, key, n_keys, next);
}

// All blocks of the range. One that is hidden from all rows is left out.
static void compute(struct tile *t, const struct attention_range *range) {
    open_tile(t);
    for (int64_t key = range->first; key < range->end; key += t->block) {
        const int n_keys = (int)MIN(range->end - key, t->block);
        const struct attention_range next = {.first = key + n_keys,
                                             .end = MIN(key + n_keys + t->block, range->soon)};
        const enum mask_kind kind =
            t->a->mask ? attention_look_at(t->a, t->masks, t->n, key, n_keys) : MASK_ZERO;
        if (kind == MASK_HIDES) continue;
        if (kind == MASK_MIXED) load_biases(t, key, n_keys);
        for (int group = 0; group < t->n_groups; ++group)
            compute_group(t, group, key, n_keys, kind == MASK_MIXED, &next);
    }
}

static bool is_finite(const float *part, int64_t n) {
    const vi exponent = (vi)vf_set(INFINITY);
    vi special = {0};
    for (int64_t i = 0; i < n; i += LANES)
        special |= ((vi)vf_load(part + ATTENTION_HEADER + i) & exponent) == exponent;
    int32_t any = 0;
    for (int i = 0; i < LANES; ++i)
        any |= special[i];
    return any == 0;
}

// Values that are no numbers stay in the sums, also where their weight is 0: rows that such a value
// may have reached are computed again, without those that are hidden from them.
void CPU_FN(cpu_attention_few)(const struct attention *a, const struct attention_rows *rows,
                               int n_groups, const struct attention_range *range, float *parts,
                               int64_t stride, float *work) {
    struct tile t = {.a = a, .rows = *rows, .n_groups = n_groups, .parts = parts, .stride = stride};
    t.n = rows->n * n_groups;
    t.block = attention_block(a->dst);
    place_memory(&t, work);
    compute(&t, range);
    const struct tile all = t;
    t.special = true;
    t.n_groups = t.n = 1;
    for (int r = 0; r < all.n; ++r) {
        t.parts = parts + r * stride;
        t.rows = group_rows(&all, r / rows->n);
        t.rows.first_row += r % rows->n;
        t.rows.n = 1;
        if (!is_finite(t.parts, a->v->ne[0])) compute(&t, range);
    }
}
