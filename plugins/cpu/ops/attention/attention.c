// SPDX-License-Identifier: MIT
// flash_attn_ext: softmax(scale * Q K^T + mask) V with the softmax taken online, block by block of
// keys. Query rows that share a head of K and V are computed together, so that a block is unpacked
// once for all of them; each row's arithmetic is the same however many there are. A masked key
// contributes nothing, not even its NaN.
#include "gemm/gemm.h"
#include "gemm/mul_vec.h"
#include "ops/attention/alibi.h"
#include "ops/attention/attention_node.h"
#include "simd/simd.h"
#include "simd/vmath.h"

enum {
    LINE = 64, // bytes of the cache
    QUERIES_AT_A_TIME = 4,
};

// Up to ATTENTION_QUERIES rows.
struct query_tile {
    struct attention_rows rows;
    struct gemm_column columns[ATTENTION_QUERIES]; // query and its scores
    const char *masks[ATTENTION_QUERIES];
    float slopes[ATTENTION_QUERIES];
    float largest[ATTENTION_QUERIES];
    float sums[ATTENTION_QUERIES];
};

struct scratch {
    float *panel, *values, *scores, *masks, *out;
    int64_t stride; // of values and out
};

// Divides a thread's work memory among the arrays of a tile.
static struct scratch scratch_at(float *work, int64_t v_size) {
    struct scratch s = {.panel = work, .stride = attention_padded(v_size)};
    s.scores = s.panel + ATTENTION_KEYS * GEMM_DEPTH;
    s.masks = s.scores + ATTENTION_QUERIES * ATTENTION_KEYS;
    s.values = s.masks + ATTENTION_QUERIES * ATTENTION_KEYS;
    s.out = s.values + s.stride * ATTENTION_KEYS;
    return s;
}

// Begins a tile: addresses of its queries, slopes of the mask, empty sums.
static void open_tile(const struct attention *a, struct query_tile *tile, const struct scratch *s) {
    for (int r = 0; r < tile->rows.n; ++r) {
        const struct ggml_row at = attention_row(a, &tile->rows, r);
        tile->columns[r].x = (const float *)(const void *)ggml_row_data(a->q, at);
        tile->columns[r].y = s->scores + r * ATTENTION_KEYS;
        tile->slopes[r] = cpu_alibi_slope(a->max_bias, a->q->ne[2], at.i2);
        tile->largest[r] = -INFINITY;
        tile->sums[r] = 0.0f;
        if (a->mask) tile->masks[r] = attention_mask(a, at);
        memset(s->out + r * s->stride, 0, (size_t)a->v->ne[0] * sizeof(float));
    }
}

// Loads the mask of a block; false if it hides every key from every row.
static bool load_masks(const struct attention *a, const struct query_tile *tile,
                       const struct scratch *s, int64_t key, int n_keys) {
    bool visible = false;
    for (int r = 0; r < tile->rows.n; ++r) {
        float *to = s->masks + r * ATTENTION_KEYS;
        const float *from = cpu_load(to, tile->masks[r], a->mask->type, key, n_keys);
        if (from != to) memcpy(to, from, (size_t)n_keys * sizeof(float));
        for (int j = 0; j < n_keys; ++j)
            visible |= to[j] != -INFINITY;
    }
    return visible;
}

// Products to scores, padded with -infinity to the whole block; returns the largest.
static float finish_scores(const struct attention *a, float *scores, const float *mask, float slope,
                           int n_keys) {
    for (int j = 0; j < n_keys; ++j)
        scores[j] *= a->scale;
    for (int j = 0; j < n_keys && a->softcap != 0.0f; ++j)
        scores[j] = a->softcap * cpu_tanhf(scores[j] / a->softcap);
    for (int j = 0; j < n_keys && a->mask; ++j)
        scores[j] = mask[j] == -INFINITY ? -INFINITY : scores[j] + slope * mask[j];
    for (int j = n_keys; j < ATTENTION_KEYS; ++j)
        scores[j] = -INFINITY;
    vf largest = vf_load(scores);
    for (int j = LANES; j < ATTENTION_KEYS; j += LANES)
        largest = vf_max(largest, vf_load(scores + j));
    return vf_largest(largest);
}

static void scale_row(float *x, float factor, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
        x[i] *= factor;
}

// Scores to weights relative to the row's new largest score; what was summed before is scaled to
// it.
static void update_row(struct query_tile *tile, int r, float *scores, float largest, float *out,
                       int64_t n) {
    const float before = tile->largest[r];
    const float now = largest > before || isnan(largest) ? largest : before;
    if (now == -INFINITY) {
        memset(scores, 0, ATTENTION_KEYS * sizeof(float));
        return;
    }
    for (int j = 0; j < ATTENTION_KEYS; ++j)
        scores[j] = cpu_expf(scores[j] - now);
    const float factor = before == now ? 1.0f : expf(before - now);
    if (factor != 1.0f) scale_row(out, factor, n);
    tile->sums[r] = tile->sums[r] * factor + vf_sum_row(scores, ATTENTION_KEYS);
    tile->largest[r] = now;
}

// out[0 .. width * LANES) += sum over keys of weight * value.
CPU_INLINE void add_values(float *out, const float *weights, const char *values, size_t stride,
                           int n_keys, const int width) {
    vf sum[4];
    for (int i = 0; i < width; ++i)
        sum[i] = vf_load(out + i * LANES);
    for (int j = 0; j < n_keys; ++j) {
        const float *v = (const float *)(const void *)(values + (size_t)j * stride);
        if (weights[j] == 0.0f) continue;
        for (int i = 0; i < width; ++i)
            sum[i] += vf_load(v + i * LANES) * weights[j];
    }
    for (int i = 0; i < width; ++i)
        vf_store(out + i * LANES, sum[i]);
}

// Adds the weighted values of a block of keys to a row, several vectors at a time, then one,
// then single elements.
static void add_row(float *out, const float *weights, const char *values, size_t stride, int n_keys,
                    int64_t n) {
    int64_t d = 0;
    for (; d + 4 * LANES <= n; d += 4 * LANES)
        add_values(out + d, weights, values + (size_t)d * sizeof(float), stride, n_keys, 4);
    for (; d + LANES <= n; d += LANES)
        add_values(out + d, weights, values + (size_t)d * sizeof(float), stride, n_keys, 1);
    for (; d < n; ++d) {
        float sum = out[d];
        for (int j = 0; j < n_keys; ++j) {
            const char *v = values + (size_t)j * stride + (size_t)d * sizeof(float);
            if (weights[j] != 0.0f) sum += weights[j] * *(const float *)(const void *)v;
        }
        out[d] = sum;
    }
}

// The block's rows of V as floats, and their stride in bytes.
static const char *open_values(const struct attention *a, const struct scratch *s, const char *v,
                               int n_keys, size_t *out_stride) {
    if (a->v->type == GGML_TYPE_F32) {
        *out_stride = a->v->nb[1];
        return v;
    }
    const cpu_unpack_fn unpack = CPU_FN(cpu_unpack)(a->v->type);
    for (int j = 0; j < n_keys; ++j)
        unpack(v + (size_t)j * a->v->nb[1], s->values + j * s->stride, a->v->ne[0]);
    *out_stride = (size_t)s->stride * sizeof(float);
    return (const char *)s->values;
}

// Rows of V are apart from each other where heads lie side by side, so hardware foresees few of
// them: they are asked for before the keys are multiplied, and have come when that is done.
static void prefetch_values(const struct attention *a, const char *v, int n_keys) {
    const size_t size = ggml_row_size(a->v->type, a->v->ne[0]);
    for (int j = 0; j < n_keys; ++j) {
        for (size_t i = 0; i < size; i += LINE)
            __builtin_prefetch(v + (size_t)j * a->v->nb[1] + i);
    }
}

// Keys without blocks are multiplied as they are read, with few queries at a time, which takes less
// than to unpack them first. A score is summed in the same order however many queries there are.
static void multiply_keys(const struct gemm_rows *keys, int n_keys, const struct query_tile *tile,
                          float *panel) {
    const int at_a_time = ggml_is_quantized(keys->type) ? tile->rows.n : QUERIES_AT_A_TIME;
    for (int r = 0; r < tile->rows.n; r += at_a_time) {
        const int n = MIN(tile->rows.n - r, at_a_time);
        if (ggml_is_quantized(keys->type) ||
            !CPU_FN(cpu_mul_vec)(keys, 0, n_keys, tile->columns + r, n))
            CPU_FN(cpu_gemm)(keys, 0, n_keys, tile->columns + r, n, panel);
    }
}

// Adds a block of keys to all rows of the tile; one that is hidden from all is left out.
static void compute_block(const struct attention *a, struct query_tile *tile,
                          const struct scratch *s, int64_t key, int n_keys) {
    if (a->mask && !load_masks(a, tile, s, key, n_keys)) return;
    const struct gemm_rows keys = {attention_keys(a, &tile->rows, key), a->k->nb[1], a->k->type,
                                   a->k->ne[0]};
    prefetch_values(a, attention_values(a, &tile->rows, key), n_keys);
    multiply_keys(&keys, n_keys, tile, s->panel);
    size_t stride;
    const char *values = open_values(a, s, attention_values(a, &tile->rows, key), n_keys, &stride);
    for (int r = 0; r < tile->rows.n; ++r) {
        float *scores = s->scores + r * ATTENTION_KEYS;
        float *out = s->out + r * s->stride;
        const float largest =
            finish_scores(a, scores, s->masks + r * ATTENTION_KEYS, tile->slopes[r], n_keys);
        update_row(tile, r, scores, largest, out, a->v->ne[0]);
        add_row(out, scores, values, stride, n_keys, a->v->ne[0]);
    }
}

// Adds the sink, which has a score but no value, divides by the sum of weights and stores the
// row. A row that sees no key stays 0.
void CPU_FN(cpu_attention_store)(const struct attention *a, struct ggml_row at, float largest,
                                 float sum, float *out) {
    const int64_t n = a->v->ne[0];
    if (a->sinks) {
        const float sink = a->sinks[at.i2];
        const float now = sink > largest ? sink : largest;
        const float factor = largest == now ? 1.0f : expf(largest - now);
        sum = sum * factor + (sink == now ? 1.0f : expf(sink - now));
        scale_row(out, factor, n);
    }
    if (sum != 0.0f) scale_row(out, 1.0f / sum, n);
    memcpy(ggml_row_data(a->dst, (struct ggml_row){at.i2, at.i1, at.i3}), out,
           (size_t)n * sizeof(float));
}

// A tile of few queries, over all keys.
static void compute_few(const struct attention *a, const struct attention_rows *rows, float *work) {
    const struct scratch s = scratch_at(work, a->v->ne[0]);
    struct query_tile tile = {.rows = *rows};
    open_tile(a, &tile, &s);
    const int64_t n_keys = a->k->ne[1];
    for (int64_t key = 0; key < n_keys; key += ATTENTION_KEYS)
        compute_block(a, &tile, &s, key, (int)MIN(n_keys - key, ATTENTION_KEYS));
    for (int r = 0; r < rows->n; ++r) {
        CPU_FN(cpu_attention_store)
        (a, attention_row(a, rows, r), tile.largest[r], tile.sums[r], s.out + r * s.stride);
    }
}

// Operands and parameters of the node.
static struct attention read_node(const struct ggml_tensor *dst) {
    return (struct attention){
        .dst = dst,
        .q = dst->src[0],
        .k = dst->src[1],
        .v = dst->src[2],
        .mask = dst->src[3],
        .sinks = dst->src[4] ? dst->src[4]->data : NULL,
        .scale = ggml_get_op_params_f32(dst, 0),
        .max_bias = ggml_get_op_params_f32(dst, 1),
        .softcap = ggml_get_op_params_f32(dst, 2),
        .group = attention_group(dst),
    };
}

// Threads share tiles of query rows. Tiles are halved until there are two per thread, as far as
// that leaves enough rows to share what is unpacked.
enum ggml_status CPU_FN(cpu_flash_attn_ext)(const struct cpu_task *task) {
    const struct attention a = read_node(task->dst);
    const bool many = attention_is_many(task->dst);
    float *work = (float *)task->work + (size_t)task->ith * attention_work_floats(task->dst);
    const int64_t n_rows = a.q->ne[1] * a.group;
    const int64_t groups = a.q->ne[2] / a.group;
    const int64_t least = many ? ATTENTION_MANY : 1;
    int64_t size = many ? ATTENTION_ROWS : ATTENTION_QUERIES;
    while (size / 2 >= least &&
           (n_rows + size - 1) / size * groups * a.q->ne[3] < 2 * (int64_t)task->nth)
        size /= 2;
    const int64_t tiles = (n_rows + size - 1) / size;
    int64_t begin, end;
    cpu_task_range(task, tiles * groups * a.q->ne[3], &begin, &end);
    for (int64_t unit = begin; unit < end; ++unit) {
        struct attention_rows rows = {
            .batch = unit / tiles / groups,
            .first_head = unit / tiles % groups * a.group,
            .first_row = unit % tiles * size,
        };
        rows.n = (int)MIN(size, n_rows - rows.first_row);
        if (many)
            CPU_FN(cpu_attention_many)(&a, &rows, work);
        else
            compute_few(&a, &rows, work);
    }
    return GGML_STATUS_SUCCESS;
}
