// SPDX-License-Identifier: MIT
// flash_attn_ext: softmax(scale * Q K^T + mask) V. Divides the node among threads: few rows of
// queries by heads and chunks of keys, whose sums are put together at the end, many by tiles of
// rows.
#include "ops/attention/attention_node.h"
#include "simd/vmath.h"

// Adds the sink, which has a score but no value, divides by the sum of weights and stores the
// row. A row that sees no key stays 0.
void CPU_FN(cpu_attention_store)(const struct attention *a, struct ggml_row at, float largest,
                                 float sum, const float *out) {
    const int64_t n = a->v->ne[0];
    float *y = (float *)ggml_row_data(a->dst, (struct ggml_row){at.i2, at.i1, at.i3});
    float factor = 1.0f;
    if (a->sinks) {
        const float sink = a->sinks[at.i2];
        const float now = sink > largest ? sink : largest;
        factor = largest == now ? 1.0f : expf(largest - now);
        sum = sum * factor + (sink == now ? 1.0f : expf(sink - now));
    }
    if (sum != 0.0f) factor *= 1.0f / sum;
    for (int64_t i = 0; i < n; ++i)
        y[i] = out[i] * factor;
}

// Operands and parameters of the task's node.
static struct attention read_node(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
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
        .rounds = !task->exact && !task->use_ref,
    };
}

// How a node is divided: rows of queries that share a head of K and V into tiles, keys into chunks.
struct division {
    struct attention a;
    int64_t n_rows, groups;
    int64_t size, tiles;   // rows of a tile
    int64_t chunk, chunks; // keys
    int64_t part;          // floats that a row sums over a chunk
    int64_t together;      // groups that take turns
    int64_t units;
};

// The rows of a unit.
static struct attention_rows rows_of(const struct division *d, int64_t unit) {
    const int64_t tile = unit % d->tiles;
    const int64_t group = unit / d->tiles % d->groups;
    return (struct attention_rows){
        .batch = unit / d->tiles / d->groups / d->chunks,
        .first_head = group * d->a.group,
        .first_row = tile * d->size,
        .n = (int)MIN(d->size, d->n_rows - tile * d->size),
    };
}

static int64_t chunk_of(const struct division *d, int64_t unit) {
    return unit / d->tiles / d->groups % d->chunks;
}

// A row's place among the parts of all chunks.
static int64_t index_of(const struct division *d, const struct attention_rows *rows) {
    return (rows->batch * d->groups + rows->first_head / d->a.group) * d->n_rows + rows->first_row;
}

// Puts the parts of a row together relative to the largest of their scores, in the first one's
// place, and stores the row.
static void finish_row(const struct division *d, struct ggml_row at, float *parts) {
    float largest = -INFINITY;
    for (int64_t i = 0; i < d->chunks; ++i)
        largest = MAX(largest, parts[i * d->part]);
    const float base = largest == -INFINITY ? 0.0f : largest;
    float *out = parts + ATTENTION_HEADER;
    float sum = 0.0f;
    for (int64_t i = 0; i < d->chunks; ++i) {
        const float *part = parts + i * d->part;
        const float factor = part[0] == base ? 1.0f : cpu_expf(part[0] - base);
        sum += part[1] * factor;
        for (int64_t j = 0; j < d->a.v->ne[0]; ++j)
            out[j] = (i == 0 ? 0.0f : out[j]) + part[ATTENTION_HEADER + j] * factor;
    }
    CPU_FN(cpu_attention_store)(&d->a, at, largest, sum, out);
}

// Units from this one on that are computed together: groups that have the same keys.
static int64_t units_together(const struct division *d, int64_t unit, int64_t end) {
    if (d->tiles > 1) return 1;
    return MIN(MIN(end - unit, d->groups - unit % d->groups), d->together);
}

// Rows of few queries over chunks of keys, of which each is summed into its place in `parts`.
static void compute_chunks(const struct division *d, int64_t begin, int64_t end, float *parts,
                           float *work) {
    int64_t n;
    for (int64_t unit = begin; unit < end; unit += n) {
        const struct attention_rows rows = rows_of(d, unit);
        const int64_t chunk = chunk_of(d, unit);
        n = units_together(d, unit, end);
        struct attention_range range = {.first = chunk * d->chunk};
        range.end = MIN(range.first + d->chunk, d->a.k->ne[1]);
        range.soon = unit + n < end ? d->a.k->ne[1] : range.end;
        CPU_FN(cpu_attention_few)
        (&d->a, &rows, (int)n, &range, parts + (index_of(d, &rows) * d->chunks + chunk) * d->part,
         d->chunks * d->part, work);
    }
}

// Threads share units, and put the parts of rows together when all are there.
static void compute_few(const struct cpu_task *task, const struct division *d, float *parts,
                        float *work) {
    int64_t begin, end;
    cpu_task_range(task, d->units, &begin, &end);
    compute_chunks(d, begin, end, parts, work);
    cpu_team_barrier(task->team, task->ith);
    cpu_task_range(task, d->n_rows * d->groups * d->a.q->ne[3], &begin, &end);
    for (int64_t i = begin; i < end; ++i) {
        const struct attention_rows rows = {
            .batch = i / d->n_rows / d->groups,
            .first_head = i / d->n_rows % d->groups * d->a.group,
            .first_row = i % d->n_rows,
            .n = 1,
        };
        finish_row(d, attention_row(&d->a, &rows, 0), parts + i * d->chunks * d->part);
    }
}

// Threads take tiles as they come: under a causal mask later ones have more keys.
static void compute_many(const struct cpu_task *task, const struct division *d, float *work) {
    struct cpu_range range = {0};
    for (; range.begin < range.end || cpu_task_take(task, d->units, 1, &range); ++range.begin) {
        const struct attention_rows rows = rows_of(d, range.begin);
        CPU_FN(cpu_attention_many)(&d->a, &rows, work);
    }
}

// Tiles are halved until there are two units per thread, as far as that leaves enough rows to share
// what is read.
static struct division divide(const struct cpu_task *task, bool many) {
    struct division d = {.a = read_node(task), .chunk = 1, .chunks = 1};
    d.n_rows = d.a.q->ne[1] * d.a.group;
    d.groups = d.a.q->ne[2] / d.a.group;
    d.size = many ? attention_many_rows(task->dst) : ATTENTION_QUERIES;
    d.part = attention_part(task->dst);
    d.together = attention_together(task->dst);
    if (!many) {
        d.chunk = attention_chunk(task->dst);
        d.chunks = attention_chunks(task->dst);
    }
    const int64_t least = many ? ATTENTION_MANY : 1;
    const int64_t others = d.groups * d.chunks * d.a.q->ne[3];
    while (d.size / 2 >= least &&
           (d.n_rows + d.size - 1) / d.size * others < 2 * (int64_t)task->nth)
        d.size /= 2;
    d.tiles = (d.n_rows + d.size - 1) / d.size;
    d.units = d.tiles * others;
    return d;
}

enum ggml_status CPU_FN(cpu_flash_attn_ext)(const struct cpu_task *task) {
    const bool many = attention_is_many(task->dst);
    const struct division d = divide(task, many);
    float *shared = task->work;
    float *work = shared + attention_shared_floats(task->dst) +
                  (size_t)task->ith * attention_work_floats(task->dst);
    if (many)
        compute_many(task, &d, work);
    else
        compute_few(task, &d, shared, work);
    return GGML_STATUS_SUCCESS;
}
