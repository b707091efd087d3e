// SPDX-License-Identifier: MIT
// mul_mat_id: each token's slots are multiplied with the expert that ids names. The (slot, token)
// pairs are first sorted by expert, so that an expert's rows are unpacked once for all its columns.
#include "gemm/bf16_pairs.h"
#include "gemm/gemm.h"
#include "gemm/mul_vec.h"
#include "ops/mul_mat/mul_mat_pack.h"
#include "ops/mul_mat/rounded/gemm_rounded.h"
#include "ops/mul_mat/rounded/mul_repacked.h"
#include "ops/mul_mat/rounded/mul_rounded.h"

enum {
    ROW_BLOCK = 16,
    UNPACK_COST = 8, // of a row, in products with a column
};

struct experts {
    const struct ggml_tensor *dst;
    const float *packed;
    bool rounds_few, rounds_many; // src1, where so many columns share an expert
    bool to_bf16;                 // columns that are packed are rounded to BF16
    bool repacked;                // rows of src0 are
    bool vnni;                    // see struct cpu_task
    int64_t n_experts;
    const int64_t *starts; // expert e has pairs [starts[e], starts[e + 1])
    const struct mul_mat_pair *pairs;
};

// Read once, as other threads of the application may write to it.
static int32_t id_at(const struct ggml_tensor *ids, int64_t slot, int64_t token) {
    int32_t id;
    memcpy(&id, (const char *)ids->data + (size_t)slot * ids->nb[0] + (size_t)token * ids->nb[1],
           sizeof(id));
    CPU_READ_ONCE(id);
    return id;
}

// Counting sort, in token-major order within an expert; false if an id names no expert. starts has
// room for n_experts + 2, kept for all ids: each is read once, so that both passes see the same.
static bool sort_pairs(const struct ggml_tensor *ids, int64_t n_experts, int64_t *starts,
                       int32_t *kept, struct mul_mat_pair *pairs) {
    memset(starts, 0, ((size_t)n_experts + 2) * sizeof(*starts));
    for (int64_t i = 0; i < ids->ne[0] * ids->ne[1]; ++i) {
        kept[i] = id_at(ids, i % ids->ne[0], i / ids->ne[0]);
        if (kept[i] < 0 || kept[i] >= n_experts) return false;
        ++starts[kept[i] + 2];
    }
    for (int64_t e = 2; e < n_experts + 2; ++e)
        starts[e] += starts[e - 1];
    for (int64_t i = 0; i < ids->ne[0] * ids->ne[1]; ++i) {
        const int64_t slot = i % ids->ne[0];
        const int64_t token = i / ids->ne[0];
        pairs[starts[kept[i] + 1]++] = (struct mul_mat_pair){(int32_t)slot, (int32_t)token};
    }
    return true;
}

// Column and result of the i-th pair.
static struct gemm_column column_at(const struct experts *x, int64_t i) {
    const struct ggml_tensor *b = x->dst->src[1];
    const struct mul_mat_pair pair = x->pairs[i];
    const struct ggml_row to = {pair.slot, pair.token, 0};
    return (struct gemm_column){
        .x = mul_mat_column(b, x->packed, (struct ggml_row){pair.slot % b->ne[1], pair.token, 0}),
        .y = (float *)(void *)ggml_row_data(x->dst, to),
    };
}

// Blocks of some length that begin before a place.
static int64_t blocks_before(int64_t place, int64_t length, int64_t n_blocks) {
    return place <= 0 ? 0 : MIN((place + length - 1) / length, n_blocks);
}

// Rounds a part of the depth at a time.
static void compute_strips(const struct gemm_rows *rows, int64_t row, int64_t n_rows,
                           const struct gemm_column *columns, int64_t n_columns, bool vnni,
                           void *work) {
    const int parts = strip_parts(rows->type);
    const struct strips strips = {(struct strip *)((struct strip_panel *)work + 1),
                                  strips_across(n_columns) * parts, vnni};
    const int64_t depth = strips_at_a_time(n_columns, parts) * STRIP_DEPTH;
    for (int64_t k0 = 0; k0 < rows->k; k0 += depth) {
        const int64_t k1 = MIN(k0 + depth, rows->k);
        struct strip *to = strips.at;
        for (int64_t from = k0; from < k1; from += STRIP_DEPTH) {
            for (int64_t c = 0; c < n_columns; c += STRIP_COLUMNS, to += parts)
                CPU_FN(cpu_round_strip)
            (rows->type, columns + c, MIN(n_columns - c, STRIP_COLUMNS), from,
             MIN(k1 - from, STRIP_DEPTH), to);
        }
        CPU_FN(cpu_gemm_rounded)(rows, row, n_rows, columns, n_columns, k0, k1, &strips, work);
    }
}

// How n columns that share an expert, or the last n of many, are multiplied: at levels whose others
// aren't rounded, fours are not either.
static bool experts_in_fours(const struct experts *x, int64_t n) {
    const struct ggml_tensor *a = x->dst->src[0];
    if (!CPU_STRIPS && n > ROUNDED_COLUMNS) return false;
    return x->rounds_few && in_fours(a->type, n, a->ne[0], x->repacked);
}

static bool experts_in_strips(const struct experts *x, int64_t n) {
    return x->rounds_many && n > ROUNDED_COLUMNS && !experts_in_fours(x, n);
}

// Rows of an expert that are multiplied with them at a time.
static int64_t rows_at_once(const struct experts *x, int64_t n) {
    if (experts_in_fours(x, n)) return ROW_BLOCK;
    if (experts_in_strips(x, n)) return STRIP_PANEL;
    const struct ggml_tensor *a = x->dst->src[0];
    return gemm_packs(a->ne[1], n) && n > most_as_read(a->type) ? GEMM_PANEL : ROW_BLOCK;
}

// Rows [row, end) of an expert with pairs [first, first + n), at most as many as are packed at a
// time.
static void compute_rows(const struct experts *x, int64_t expert, int64_t row, int64_t end,
                         int64_t first, int64_t n, float *work) {
    const struct ggml_tensor *a = x->dst->src[0];
    const struct gemm_rows rows = {(const char *)a->data + (size_t)expert * a->nb[2], a->nb[1],
                                   a->type, a->ne[0], x->repacked};
    struct gemm_column columns[PACKED_COLUMNS];
    for (int64_t c = 0; c < n; ++c)
        columns[c] = column_at(x, first + c);
    if (experts_in_fours(x, n)) {
        CPU_FN(cpu_round_columns)(rows.type, x->repacked, columns, n, rows.k, work);
        const struct gemm_piece all = gemm_all(row, end - row);
        (x->repacked ? CPU_FN(cpu_mul_repacked) : CPU_FN(cpu_mul_rounded))(&rows, &all, columns, n,
                                                                           work);
        return;
    }
    if (experts_in_strips(x, n)) {
        compute_strips(&rows, row, end - row, columns, n, x->vnni, work);
        return;
    }
    if (CPU_FN(cpu_mul_vec)(&rows, row, end - row, columns, n)) return;
    if (gemm_packs(a->ne[1], n)) {
        if (x->to_bf16)
            CPU_FN(cpu_gemm_pairs)(&rows, row, end - row, columns, n, work);
        else
            CPU_FN(cpu_gemm_packed)(&rows, row, end - row, columns, n, work);
        return;
    }
    for (; row < end; row += GEMM_STREAMS)
        CPU_FN(cpu_gemm)(&rows, row, (int)MIN(GEMM_STREAMS, end - row), columns, n, work);
}

// All experts' work, laid end to end, is measured in products of a row with a column; computes what
// begins in [begin, end) of it, in whole blocks of rows. Returns the length of all.
static int64_t compute_share(const struct experts *x, int64_t begin, int64_t end, float *work) {
    const int64_t m = x->dst->src[0]->ne[1];
    int64_t at = 0;
    for (int64_t e = 0; e < x->n_experts; ++e) {
        int64_t n = 0;
        for (int64_t first = x->starts[e]; first < x->starts[e + 1]; first += n) {
            n = MIN(x->starts[e + 1] - first, PACKED_COLUMNS);
            const int64_t block = rows_at_once(x, n);
            const int64_t n_blocks = (m + block - 1) / block;
            const int64_t length = block * (n + UNPACK_COST);
            const int64_t row = blocks_before(begin - at, length, n_blocks) * block;
            const int64_t row_end = MIN(blocks_before(end - at, length, n_blocks) * block, m);
            if (row < row_end) compute_rows(x, e, row, row_end, first, n, work);
            at += n_blocks * length;
        }
    }
    return at;
}

// The first thread sorts the pairs while others pack; after the barrier threads share rows of
// all experts. FAILED for an id that names no expert.
enum ggml_status CPU_FN(cpu_mul_mat_id)(const struct cpu_task *task) {
    const struct ggml_tensor *a = task->dst->src[0];
    const struct mul_mat_id_layout layout = mul_mat_id_layout(task->dst);
    char *work = task->work;
    int64_t *starts = (int64_t *)(void *)(work + layout.starts);
    struct mul_mat_pair *pairs = (struct mul_mat_pair *)(void *)(work + layout.pairs);
    float *packed = (float *)(void *)(work + layout.packed);
    const bool packs = mul_mat_packs(task->dst->src[1]);
    if (packs) mul_mat_pack(task, task->dst->src[1], packed);
    int32_t *kept = (int32_t *)(void *)(work + layout.ids);
    if (task->ith == 0 && !sort_pairs(task->dst->src[2], a->ne[2], starts, kept, pairs))
        starts[0] = -1;
    cpu_team_barrier(task->team, task->ith);
    if (starts[0] != 0) return GGML_STATUS_FAILED;
    const bool repacked = cpu_layout_of(a) == CPU_LAYOUT_REPACKED;
    const struct experts x = {
        .dst = task->dst,
        .packed = packs ? packed : NULL,
        .repacked = repacked,
        .rounds_few = (repacked ? CPU_REPACKS : rounding_pays(a->type)) && !task->exact &&
                      rounds_few(task->dst),
        .rounds_many = CPU_STRIPS && !task->exact && rounds_many(task->dst) && a->ne[0] > 0,
        .to_bf16 = CPU_BF16_PAIRS && task->bf16 && !task->exact && rounds_to_bf16(task->dst),
        .vnni = task->vnni,
        .n_experts = a->ne[2],
        .starts = starts,
        .pairs = pairs};
    float *thread_work = (float *)(void *)(work + layout.panels +
                                           (size_t)task->ith * mul_mat_id_thread_size(task->dst));
    int64_t begin, end;
    cpu_task_range(task, compute_share(&x, 0, 0, NULL), &begin, &end);
    compute_share(&x, begin, end, thread_work);
    return GGML_STATUS_SUCCESS;
}
