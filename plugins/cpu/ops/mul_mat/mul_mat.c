// SPDX-License-Identifier: MIT
// mul_mat: dst[i, j] = <row i of src0, row j of src1>, accumulated in F32. Rows of src0 are
// unpacked to F32 a panel at a time and used for all columns that share their matrix.
#include "ops/mul_mat/mul_mat.h"

#include "gemm/bf16_pairs.h"
#include "gemm/gemm.h"
#include "gemm/mul_vec.h"
#include "ops/mul_mat/mul_mat_pack.h"
#include "ops/mul_mat/rounded/gemm_rounded.h"
#include "ops/mul_mat/rounded/mul_repacked.h"
#include "ops/mul_mat/rounded/mul_rounded.h"

// Few columns: memory is read in streams that are not worth ending before so many bytes of rows.
enum { LEAST_BYTES = 1 << 18 };

// The columns that one matrix of src0 is multiplied with: j fastest, then the broadcast dims.
struct product {
    const struct ggml_tensor *dst;
    const float *packed;
    struct strip *strips; // of all matrices' columns, where they are rounded so
    bool pairs;           // columns are rounded to BF16
    bool repacked;        // rows of src0 are
    int64_t r2, r3;       // matrices of src1 per matrix of src0
    int64_t n_columns;
};

// Column c of those that share a matrix: dimensions 1, 2 and 3 of src1 are counted as one.
static struct gemm_column column_at(const struct product *p, int64_t i2, int64_t i3, int64_t c) {
    const struct ggml_tensor *b = p->dst->src[1];
    const int64_t above = c / b->ne[1];
    const struct ggml_row at = {c % b->ne[1], i2 * p->r2 + above % p->r2,
                                i3 * p->r3 + above / p->r2};
    return (struct gemm_column){
        .x = mul_mat_column(b, p->packed, at),
        .y = (float *)(void *)ggml_row_data(p->dst, at),
    };
}

// Few rows at a time where few columns share them or threads would go without; more where four of
// them that lie apart are streams.
static int choose_rows(int64_t n_rows, int64_t n_columns, int64_t other_units, int nth) {
    enum { STREAMED_ROWS = GEMM_APART ? 64 : 4 };
    int rows = n_columns < 8 ? STREAMED_ROWS : GEMM_MAX_ROWS;
    while (rows > 4 && (n_rows + rows - 1) / rows * other_units < 4 * (int64_t)nth)
        rows /= 2;
    return rows;
}

// Rows of a matrix, and n of its columns.
static struct gemm_rows open_matrix(const struct product *p, int64_t matrix, int64_t column,
                                    int64_t n, struct gemm_column *columns) {
    const struct ggml_tensor *a = p->dst->src[0];
    const int64_t i2 = matrix % a->ne[2];
    const int64_t i3 = matrix / a->ne[2];
    for (int64_t c = 0; c < n; ++c)
        columns[c] = column_at(p, i2, i3, column + c);
    return (struct gemm_rows){ggml_row_data(a, (struct ggml_row){0, i2, i3}), a->nb[1], a->type,
                              a->ne[0], p->repacked};
}

// Some rows times some columns: by vectors if that is worth it, otherwise by unpacked panels.
static void compute_unit(const struct product *p, int64_t matrix, int64_t row, int n_rows,
                         int64_t column, float *panel) {
    struct gemm_column columns[GEMM_COLUMNS];
    const int64_t n = MIN(p->n_columns - column, GEMM_COLUMNS);
    const struct gemm_rows rows = open_matrix(p, matrix, column, n, columns);
    if (CPU_FN(cpu_mul_vec)(&rows, row, n_rows, columns, n)) return;
    for (int r = 0; r < n_rows; r += GEMM_STREAMS)
        CPU_FN(cpu_gemm)(&rows, row + r, MIN(n_rows - r, GEMM_STREAMS), columns, n, panel);
}

// Panels of rows are split between the threads, and columns too where there are few panels; a
// thread packs the columns for as many panels as it may, and so takes no more of them later.
static void compute_panels(const struct product *p, const struct cpu_task *task, float *work) {
    const struct ggml_tensor *a = task->dst->src[0];
    const int64_t matrices = a->ne[2] * a->ne[3];
    const int64_t panels = (a->ne[1] + GEMM_PANEL - 1) / GEMM_PANEL;
    int64_t width = MIN(p->n_columns, PACKED_COLUMNS);
    while (width >= 64 && matrices * panels * (p->n_columns / width) < 4 * (int64_t)task->nth)
        width = width / 2;
    const int64_t blocks = (p->n_columns + width - 1) / width;
    int64_t unit, end;
    cpu_task_range(task, matrices * blocks * panels, &unit, &end);
    while (unit < end) {
        const int64_t row = unit % panels * GEMM_PANEL;
        const int64_t column = unit / panels % blocks * width;
        const int64_t n = MIN(end - unit, panels - unit % panels);
        const int64_t n_columns = MIN(p->n_columns - column, width);
        struct gemm_column columns[PACKED_COLUMNS];
        const struct gemm_rows rows =
            open_matrix(p, unit / panels / blocks, column, n_columns, columns);
        const int64_t n_rows = MIN(a->ne[1] - row, n * GEMM_PANEL);
        if (p->pairs)
            CPU_FN(cpu_gemm_pairs)(&rows, row, n_rows, columns, n_columns, work);
        else
            CPU_FN(cpu_gemm_packed)(&rows, row, n_rows, columns, n_columns, work);
        unit += n;
    }
}

// What some items, GEMM_PIECE rows each, have of a matrix whose first item is `first`: from item
// `at` on.
static struct gemm_piece piece_of(const struct cpu_piece *some, int64_t first, int64_t at,
                                  int64_t n_rows) {
    const int64_t row = MAX(some->part.begin - first, 0) * GEMM_PIECE;
    const int64_t n = MIN(n_rows, (some->part.end - first) * GEMM_PIECE) - row;
    return (struct gemm_piece){
        .row = row,
        .n_rows = n,
        .begin = (at - first) * GEMM_PIECE - row,
        .end = MIN(n, (some->items.end - first) * GEMM_PIECE - row),
    };
}

// Rows are shared out among the threads; each rounds the columns for itself, which takes less time
// than to wait for others.
static void compute_rounded(const struct product *p, const struct cpu_task *task, void *work) {
    const struct ggml_tensor *a = task->dst->src[0];
    const int64_t items = (a->ne[1] + GEMM_PIECE - 1) / GEMM_PIECE; // of a matrix
    const int64_t all = a->ne[2] * a->ne[3] * items;
    const int64_t least = (int64_t)(LEAST_BYTES / (a->nb[1] * GEMM_PIECE + 1));
    struct cpu_piece some = {0};
    int64_t rounded = -1; // matrix whose columns are in memory
    while (cpu_task_take_near(task, all, least, &some)) {
        for (int64_t at = some.items.begin; at < some.items.end;) {
            struct gemm_column columns[ROUNDED_MOST];
            const int64_t matrix = at / items;
            const struct gemm_rows rows = open_matrix(p, matrix, 0, p->n_columns, columns);
            const struct gemm_piece piece = piece_of(&some, matrix * items, at, a->ne[1]);
            if (matrix != rounded) CPU_FN(cpu_round_columns)
            (rows.type, p->repacked, columns, p->n_columns, rows.k, work);
            rounded = matrix;
            (p->repacked ? CPU_FN(cpu_mul_repacked)
                         : CPU_FN(cpu_mul_rounded))(&rows, &piece, columns, p->n_columns, work);
            at = MIN(some.items.end, (matrix + 1) * items);
        }
    }
}

// All threads round the columns together: strip s, d deep, of a matrix is strip_at() of it.
static struct strip *strip_at(const struct product *p, int64_t matrix, int64_t d, int64_t s) {
    const struct ggml_tensor *a = p->dst->src[0];
    const int64_t deep = strips_deep(a->ne[0]);
    return p->strips +
           ((matrix * deep + d) * strips_across(p->n_columns) + s) * strip_parts(a->type);
}

// Rounds all columns to bytes, shared out among the threads; a barrier follows.
static void round_strips(const struct product *p, const struct cpu_task *task) {
    enum { LEAST = 8 };
    const struct ggml_tensor *a = task->dst->src[0];
    const int64_t across = strips_across(p->n_columns), deep = strips_deep(a->ne[0]);
    const int64_t units = a->ne[2] * a->ne[3] * across * deep;
    struct cpu_range range = {0};
    for (; range.begin < range.end || cpu_task_take(task, units, LEAST, &range); ++range.begin) {
        const int64_t unit = range.begin;
        const int64_t s = unit % across, d = unit / across % deep, matrix = unit / across / deep;
        const int64_t n = MIN(p->n_columns - s * STRIP_COLUMNS, STRIP_COLUMNS);
        struct gemm_column columns[STRIP_COLUMNS];
        open_matrix(p, matrix, s * STRIP_COLUMNS, n, columns);
        CPU_FN(cpu_round_strip)
        (a->type, columns, n, d * STRIP_DEPTH, MIN(a->ne[0] - d * STRIP_DEPTH, STRIP_DEPTH),
         strip_at(p, matrix, d, s));
    }
}

// Panels are split as in compute_panels(); as much of the depth as stays in the second-level cache
// is multiplied with all of a thread's panels first.
static void compute_strips(const struct product *p, const struct cpu_task *task, void *panel) {
    const struct ggml_tensor *a = task->dst->src[0];
    const int64_t matrices = a->ne[2] * a->ne[3];
    const int64_t panels = (a->ne[1] + STRIP_PANEL - 1) / STRIP_PANEL;
    int64_t width = MIN(p->n_columns, STRIP_WIDTH);
    while (width >= 64 && matrices * panels * (p->n_columns / width) < 4 * (int64_t)task->nth)
        width = width / 2;
    width = strips_across(width) * STRIP_COLUMNS;
    const int64_t blocks = (p->n_columns + width - 1) / width;
    const int64_t depth = strips_at_a_time(width, strip_parts(a->type)) * STRIP_DEPTH;
    struct cpu_range range = {0};
    while (range.begin < range.end || cpu_task_take(task, matrices * blocks * panels, 1, &range)) {
        const int64_t unit = range.begin;
        const int64_t row = unit % panels * STRIP_PANEL;
        const int64_t matrix = unit / panels / blocks;
        const int64_t column = unit / panels % blocks * width;
        const int64_t n = MIN(range.end - unit, panels - unit % panels);
        const int64_t n_columns = MIN(p->n_columns - column, width);
        struct gemm_column columns[STRIP_WIDTH + STRIP_COLUMNS];
        const struct gemm_rows rows = open_matrix(p, matrix, column, n_columns, columns);
        for (int64_t k0 = 0; k0 < rows.k; k0 += depth) {
            const struct strips strips = {
                strip_at(p, matrix, k0 / STRIP_DEPTH, column / STRIP_COLUMNS),
                strips_across(p->n_columns) * strip_parts(a->type), task->vnni};
            CPU_FN(cpu_gemm_rounded)
            (&rows, row, MIN(a->ne[1] - row, n * STRIP_PANEL), columns, n_columns, k0,
             MIN(k0 + depth, rows.k), &strips, panel);
        }
        range.begin += n;
    }
}

// Chooses the way: rounded vectors for few columns and rounded strips for many, where the node
// permits rounding, otherwise floats. src1 is packed first if its rows aren't dense.
enum ggml_status CPU_FN(cpu_mul_mat)(const struct cpu_task *task) {
    const struct ggml_tensor *a = task->dst->src[0];
    const struct ggml_tensor *b = task->dst->src[1];
    struct product p = {.dst = task->dst, .r2 = b->ne[2] / a->ne[2], .r3 = b->ne[3] / a->ne[3]};
    p.n_columns = mul_mat_columns(task->dst);
    p.repacked = cpu_layout_of(a) == CPU_LAYOUT_REPACKED;
    char *strips = (char *)task->work + mul_mat_pack_size(b);
    float *work =
        (float *)(void *)(strips + mul_mat_strips_size(task->dst) +
                          (size_t)task->ith * mul_mat_thread_size(task->dst, p.n_columns));
    if (mul_mat_packs(b)) {
        p.packed = task->work;
        mul_mat_pack(task, b, task->work);
        cpu_team_barrier(task->team, task->ith);
    }
    if ((p.repacked ? CPU_REPACKS : rounding_pays(a->type)) &&
        in_fours(a->type, p.n_columns, a->ne[0], p.repacked) && !task->exact &&
        rounds_few(task->dst)) {
        compute_rounded(&p, task, work);
        return GGML_STATUS_SUCCESS;
    }
    if (CPU_STRIPS && p.n_columns > ROUNDED_COLUMNS && !task->exact && rounds_many(task->dst) &&
        a->ne[0] > 0) {
        p.strips = (struct strip *)(void *)strips;
        round_strips(&p, task);
        cpu_team_barrier(task->team, task->ith);
        compute_strips(&p, task, work);
        return GGML_STATUS_SUCCESS;
    }
    if (gemm_packs(a->ne[1], p.n_columns) && p.n_columns > most_as_read(a->type)) {
        p.pairs = CPU_BF16_PAIRS && task->bf16 && !task->exact && rounds_to_bf16(task->dst);
        compute_panels(&p, task, work);
        return GGML_STATUS_SUCCESS;
    }
    const int64_t matrices = a->ne[2] * a->ne[3];
    const int64_t column_blocks = (p.n_columns + GEMM_COLUMNS - 1) / GEMM_COLUMNS;
    const int block = choose_rows(a->ne[1], p.n_columns, matrices * column_blocks, task->nth);
    const int64_t row_blocks = (a->ne[1] + block - 1) / block;
    const int64_t units = matrices * row_blocks * column_blocks;
    const int64_t least = (int64_t)(LEAST_BYTES / (a->nb[1] * (size_t)block + 1));
    struct cpu_range range = {0};
    for (; range.begin < range.end || cpu_task_take(task, units, least, &range); ++range.begin) {
        const int64_t unit = range.begin;
        const int64_t row = unit / column_blocks % row_blocks * block;
        compute_unit(&p, unit / column_blocks / row_blocks, row, (int)MIN(block, a->ne[1] - row),
                     unit % column_blocks * GEMM_COLUMNS, work);
    }
    return GGML_STATUS_SUCCESS;
}
