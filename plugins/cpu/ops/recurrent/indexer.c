// SPDX-License-Identifier: MIT
// lightning_indexer: for each token and key the weighted sum over heads of the positive part of <q,
// k>.
#include "ops/recurrent/indexer.h"
#include "gemm/gemm.h"
#include "simd/strided.h"

struct scratch {
    float *panel;
    float *products; // INDEXER_KEYS per head
};

// Scores of keys [first, first + n) for a token.
static void score(const struct ggml_tensor *dst, struct scratch scratch, int64_t seq, int64_t token,
                  int64_t first, int n) {
    const struct ggml_tensor *q = dst->src[0], *k = dst->src[1], *weights = dst->src[2];
    const struct ggml_tensor *mask = dst->src[3];
    const struct gemm_rows rows = {ggml_row_data(k, (struct ggml_row){0, first, seq}), k->nb[2],
                                   k->type, k->ne[0], false};
    struct gemm_column columns[GEMM_COLUMNS];
    float sum[INDEXER_KEYS];
    // The scores begin with the mask's values.
    const struct ggml_row mask_row = {token, 0, seq % mask->ne[3]};
    cpu_gather_floats(sum, ggml_row_data(mask, mask_row) + (size_t)first * mask->nb[0], mask->nb[0],
                      mask->type, n);
    for (int64_t h0 = 0; h0 < q->ne[1]; h0 += GEMM_COLUMNS) {
        const int64_t heads = MIN(q->ne[1] - h0, GEMM_COLUMNS);
        for (int64_t h = 0; h < heads; ++h) {
            const char *x = ggml_row_data(q, (struct ggml_row){h0 + h, token, seq});
            columns[h] = (struct gemm_column){(const float *)(const void *)x,
                                              scratch.products + h * INDEXER_KEYS};
        }
        CPU_FN(cpu_gemm)(&rows, 0, n, columns, heads, scratch.panel);
        const char *w = ggml_row_data(weights, (struct ggml_row){token, 0, seq});
        for (int64_t h = 0; h < heads; ++h) {
            const float weight = cpu_f32_at(w + (size_t)(h0 + h) * weights->nb[0]);
            const float *p = columns[h].y;
            for (int j = 0; j < n; ++j)
                sum[j] += (p[j] > 0.0f ? p[j] : 0.0f) * weight;
        }
    }
    memcpy(ggml_row_data(dst, (struct ggml_row){token, 0, seq}) + (size_t)first * sizeof(float),
           sum, (size_t)n * sizeof(float));
}

// Scores of one query token with a block of keys are a unit of work; a thread keeps a panel of
// converted keys in its scratch memory.
enum ggml_status CPU_FN(cpu_lightning_indexer)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    float *work = (float *)task->work + (size_t)task->ith * INDEXER_FLOATS;
    const struct scratch scratch = {work, work + GEMM_MAX_ROWS * GEMM_DEPTH};
    const int64_t blocks = (dst->ne[0] + INDEXER_KEYS - 1) / INDEXER_KEYS;
    int64_t begin, end;
    cpu_task_range(task, blocks * ggml_nrows(dst), &begin, &end);
    for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t first = unit % blocks * INDEXER_KEYS;
        // One row of the result is a query token of a sequence.
        const struct ggml_row at = ggml_row_at(dst, unit / blocks);
        score(dst, scratch, at.i3, at.i1, first, (int)MIN(dst->ne[0] - first, INDEXER_KEYS));
    }
    return GGML_STATUS_SUCCESS;
}
