// SPDX-License-Identifier: MIT
// Lanes hold rows, four numbers of each; four of a column are broadcast. Products of a group are
// added as whole numbers, which is exact, then scaled and added as floats.
#include "ops/mul_mat/rounded/gemm_rounded.h"

#include "gemm/interleave.h"
#include "ops/mul_mat/rounded/number_ranges.h"
#include "ops/mul_mat/rounded/round_group.h"
#include "types/blocks.h"
#include "types/repacked.h"

#if defined(__SSE4_1__) || (defined(CPU_NEON) && defined(__ARM_FEATURE_DOTPROD))

enum {
#if defined(CPU_NEON) && defined(__ARM_FEATURE_MATMUL_INT8)
    RUN = 8, // numbers of a row, or of a column, that lie side by side
#else
    RUN = 4,
#endif
    ROWS = STRIPS_OF_PAIRS && LANES == 4 ? 8 : 16, // that are laid side by side together
    OPEN_ROWS = 4,                                 // at a time
    PANEL_ROWS = LANES < 16        ? ROWS
                 : STRIPS_OF_PAIRS ? 2 * ROWS
                                   : STRIP_PANEL,
    LINE = 64, // bytes of the cache
};

// --- what levels differ in -----------------------------------------------------------------------

// Parts of ROWS rows, before they are laid side by side.
struct opened_rows {
    int8_t numbers[ROWS][STRIP_DEPTH];
    float scales[ROWS][STRIP_GROUPS];
    float offsets[ROWS][STRIP_GROUPS];
};

// Panel of ROWS rows: vectors of one group or of four numbers lie `stride` lanes apart.
struct panel_rows {
    const char *const *rows;
    int64_t k;
    struct strip_panel *panel;
    int64_t first, stride; // lanes
};

// Results of a tile: row r of column c at columns[c].y[row + r].
struct tile {
    const struct gemm_column *columns;
    int64_t n_columns, row, n_rows;
    int64_t k;
    bool first; // nothing was summed yet
};

// Stores the sums of a tile, or adds them where earlier elements of k have been added.
static void add_part(const struct tile *to, const float (*sums)[PANEL_ROWS]) {
    for (int64_t c = 0; c < to->n_columns; ++c) {
        float *y = to->columns[c].y + to->row;
        for (int64_t r = 0; r < to->n_rows; ++r)
            y[r] = to->first ? sums[c][r] : y[r] + sums[c][r];
    }
}

typedef void (*multiply_fn)(const struct strip_panel *a, const struct strip *b,
                            const struct tile *to);

#if defined(__AVX512VNNI__)
#include "ops/mul_mat/rounded/strips_vnni.h"
#elif defined(__SSE4_1__)
#include "ops/mul_mat/rounded/strips_pairs.h"
#else
#include "ops/mul_mat/rounded/strips_neon.h"
#endif

static const int8_t group_of[GGML_TYPE_COUNT] = {
#define CPU_BLOCK_ROW(NAME, name, size, group, ...) [GGML_TYPE_##NAME] = group,
#include "types/block_list.inl"
};

// --- columns -------------------------------------------------------------------------------------

// What makes up for offsets of rows, or for the bias of their numbers: scaled sums, or what sums of
// pairs begin with. `numbers` are those of group g of column c.
CPU_INLINE void put_sums(const int8_t *numbers, const int group, int bias, float scale, int g,
                         int c, struct strip *out) {
    if (bias == 0) {
        int32_t sum = 0;
        for (int i = 0; i < group; ++i)
            sum += numbers[i];
        out->sums[g][c] = scale * (float)sum;
        return;
    }
    for (int half = 0; half < 2; ++half) {
        int32_t sum = 0;
        for (int i = 2 * half; i < group; i += 4)
            sum += numbers[i] + numbers[i + 1];
        out->starts[g][c][half] = (int16_t)(-bias * sum);
    }
}

// Lays columns of `bytes` each, whole fours of words, which follow each other, side by side: `unit`
// bytes of each in turn.
CPU_INLINE void lay_columns(const char *columns, int bytes, const int unit, char *out) {
    enum { FOUR_WORDS = 4 * REPACKED_WORD };
    if (unit == REPACKED_WORD) {
        for (int i = 0; i < bytes; i += FOUR_WORDS, out += STRIP_COLUMNS * FOUR_WORDS)
            repacked_transpose(columns + i, (size_t)bytes, out, STRIP_COLUMNS * REPACKED_WORD);
        return;
    }
    for (int i = 0; i < bytes; i += unit) {
        for (int c = 0; c < STRIP_COLUMNS; ++c, out += unit)
            memcpy(out, columns + c * bytes + i, (size_t)unit);
    }
}

// Rounds 32 elements of each column, from `from` on, to bytes with a scale: group g of the strip.
static void round_part(enum ggml_type type, const struct gemm_column *columns, int64_t n_columns,
                       int64_t from, int g, const int group, int bias, struct strip *out) {
    int8_t numbers[STRIP_COLUMNS][ROUNDED_GROUP] = {{0}};
    const bool as_words = strip_parts(type) > 1;
    for (int c = 0; c < n_columns; ++c) {
        const float scale = round_group(columns[c].x + from, numbers[c]);
        out->scales[g][c] = scale;
        if (as_words) continue;
        for (int i = 0; i < ROUNDED_GROUP; i += group)
            put_sums(numbers[c] + i, group, bias, scale, (g * ROUNDED_GROUP + i) / group, c, out);
    }
    if (as_words) {
        int16_t words[STRIP_COLUMNS][ROUNDED_GROUP];
        for (int c = 0; c < STRIP_COLUMNS; ++c) {
            for (int i = 0; i < ROUNDED_GROUP; ++i)
                words[c][i] = numbers[c][i];
        }
        lay_columns((const char *)words, sizeof(words[0]), 2 * sizeof(int16_t),
                    (char *)out->words[g * ROUNDED_GROUP / 2]);
        return;
    }
    for (int c = 0; c < STRIP_COLUMNS; ++c) {
        for (int i = 0; i < ROUNDED_GROUP; ++i)
            numbers[c][i] = (int8_t)(numbers[c][i] ^ -COLUMN_BIAS);
    }
    lay_columns((const char *)numbers, sizeof(numbers[0]), RUN,
                (char *)out->numbers + g * ROUNDED_GROUP * STRIP_COLUMNS);
}

// Rounds elements [k0, k0 + k) of up to STRIP_COLUMNS columns; missing columns are 0.
void CPU_FN(cpu_round_strip)(enum ggml_type type, const struct gemm_column *columns,
                             int64_t n_columns, int64_t k0, int64_t k, struct strip *out) {
    const int group = group_of[type], bias = start_bias(type, group);
    const int groups = STRIP_DEPTH / ROUNDED_GROUP / strip_parts(type); // in a strip
    if (n_columns < STRIP_COLUMNS) memset(out, 0, (size_t)strip_parts(type) * sizeof(*out));
    for (int g = 0; g < k / ROUNDED_GROUP; ++g) {
        const int64_t from = k0 + g * ROUNDED_GROUP;
        if (group == 16)
            round_part(type, columns, n_columns, from, g, 16, bias, out);
        else
            round_part(type, columns, n_columns, from, g % groups, 32, 0, out + g / groups);
    }
}

// --- rows ----------------------------------------------------------------------------------------

// Opens block number `block` of OPEN_ROWS rows, several at a time to hide latencies.
CPU_INLINE void open_part(const struct block_format f, const char *const *rows, const int64_t block,
                          const int r, struct opened_rows *out) {
    const int groups = f.size / f.group;
    const char *blocks[OPEN_ROWS];
    struct opened o[OPEN_ROWS];
    const int8_t *q[OPEN_ROWS];
    for (int i = 0; i < OPEN_ROWS; ++i)
        blocks[i] = rows[r + i] + block * f.bytes;
    open_blocks(f, blocks, OPEN_ROWS, o, q);
    for (int i = 0; i < OPEN_ROWS; ++i) {
        memcpy(out->numbers[r + i] + block * f.size, q[i], (size_t)f.size);
        for (int g = 0; g < groups; ++g) {
            out->scales[r + i][block * groups + g] = o[i].scales[g];
            if (f.offset_at >= 0) out->offsets[r + i][block * groups + g] = offsets(f, &o[i])[g];
        }
    }
}

// Packs k elements of ROWS rows: a vector's lanes of rows at a time where the type has that way.
CPU_INLINE void pack_rows(const struct block_format f, const struct panel_rows *to) {
    struct opened_rows o __attribute__((aligned(64)));
    if (pack_in_words(f, to)) return;
    for (int r = 0; r < ROWS; r += OPEN_ROWS) {
        for (int64_t block = 0; block < to->k / f.size; ++block)
            open_part(f, to->rows, block, r, &o);
    }
    lay_rows(f, &o, to);
}

struct type_row {
    void (*pack)(const struct panel_rows *to);
    int size, bytes; // of a block
    bool has_offsets;
};

#define CPU_BLOCK_ROW(NAME, name, ...)                                                             \
    static void pack_##name(const struct panel_rows *to) {                                         \
        pack_rows(BLOCK_FORMAT(NAME, name, __VA_ARGS__), to);                                      \
    }
#include "types/block_list.inl"

static const struct type_row type_rows[GGML_TYPE_COUNT] = {
#define CPU_BLOCK_ROW(NAME, name, size, group, scale_at, offset_at)                                \
    [GGML_TYPE_##NAME] = {pack_##name, size, sizeof(block_##name), offset_at >= 0},
#include "types/block_list.inl"
};

// Bytes of k elements of a row.
static size_t bytes_of(const struct gemm_rows *rows, int64_t k) {
    const struct type_row *type = &type_rows[rows->type];
    return (size_t)(k / type->size * type->bytes);
}

// Asks for what is packed next, `ahead` bytes behind what is packed now: rows side by side are too
// many streams for hardware to follow.
static void fetch_next(const char *const *rows, size_t ahead, size_t size) {
    for (int r = 0; r < ROWS; ++r) {
        for (size_t i = 0; i < size; i += LINE)
            __builtin_prefetch(rows[r] + ahead + i, 0, 2);
    }
}

// Packs the panel that all columns pass over: elements [k0, k0 + k) of n_rows rows, the last of
// which is repeated.
static void pack_panel(const struct gemm_rows *rows, int64_t row, int64_t n_rows, int64_t n_lanes,
                       int64_t k0, int64_t k, size_t ahead, struct strip_panel *panel) {
    const struct type_row *type = &type_rows[rows->type];
    if (rows->repacked && pack_repacked(rows, row, n_rows, k0, k, ahead, panel)) return;
    char blocks[ROWS][REPACKED_MAX_BYTES];
    for (int64_t v = 0; v < n_lanes; v += ROWS) {
        const char *lanes[ROWS];
        for (int r = 0; r < ROWS; ++r)
            lanes[r] = gemm_blocks(rows, row + MIN(v + r, n_rows - 1), k0, k, blocks[r]);
        if (!rows->repacked) fetch_next(lanes, ahead, bytes_of(rows, k));
        const struct panel_rows to = {lanes, k, panel, v, n_lanes};
        type->pack(&to);
    }
}

// Multiplies a panel of rows with all columns, STRIP_DEPTH elements at a time, so that the
// packed panel stays in the cache while all strips use it.
static void compute_panel(const struct gemm_rows *rows, const struct tile *all, int64_t k0,
                          int64_t k1, const struct strips *strips, struct strip_panel *panel) {
    const int64_t n_vectors = (all->n_rows + ROWS - 1) / ROWS; // of ROWS lanes
    const multiply_fn multiply =
        choose_multiply(rows->type, group_of[rows->type], type_rows[rows->type].has_offsets,
                        n_vectors, strips->vnni);
    const struct strip *x = strips->at;
    for (int64_t from = k0; from < k1; from += STRIP_DEPTH, x += strips->stride) {
        struct tile to = *all;
        to.k = MIN(k1 - from, STRIP_DEPTH);
        to.first = from == 0;
        // The next part of these rows, or the first one of the next rows.
        const size_t together = rows->repacked ? REPACKED_ROWS : 1;
        const size_t ahead = from + STRIP_DEPTH < k1
                                 ? bytes_of(rows, STRIP_DEPTH) * together
                                 : PANEL_ROWS * rows->stride - bytes_of(rows, from - k0) * together;
        pack_panel(rows, to.row, to.n_rows, n_vectors * ROWS, from, to.k, ahead, panel);
        for (int64_t c = 0; c < all->n_columns; c += STRIP_COLUMNS) {
            to.columns = all->columns + c;
            to.n_columns = MIN(all->n_columns - c, STRIP_COLUMNS);
            multiply(panel, x + c / STRIP_COLUMNS * strip_parts(rows->type), &to);
        }
    }
}

// Multiplies rows by panels of PANEL_ROWS. `strips`: the columns as cpu_round_strip() left
// them.
void CPU_FN(cpu_gemm_rounded)(const struct gemm_rows *rows, int64_t row, int64_t n_rows,
                              const struct gemm_column *columns, int64_t n_columns, int64_t k0,
                              int64_t k1, const struct strips *strips, struct strip_panel *panel) {
    for (int64_t r = 0; r < n_rows; r += PANEL_ROWS) {
        const struct tile all = {.columns = columns,
                                 .n_columns = n_columns,
                                 .row = row + r,
                                 .n_rows = MIN(n_rows - r, PANEL_ROWS)};
        compute_panel(rows, &all, k0, k1, strips, panel);
    }
}

#else

// Never called at levels without rounded strips.
void CPU_FN(cpu_round_strip)(enum ggml_type type, const struct gemm_column *columns,
                             int64_t n_columns, int64_t k0, int64_t k, struct strip *out) {
    (void)type, (void)columns, (void)n_columns, (void)k0, (void)k, (void)out;
    GGML_UNREACHABLE();
}

// Never called: the levels without the instructions for it don't offer the rounded product.
void CPU_FN(cpu_gemm_rounded)(const struct gemm_rows *rows, int64_t row, int64_t n_rows,
                              const struct gemm_column *columns, int64_t n_columns, int64_t k0,
                              int64_t k1, const struct strips *strips, struct strip_panel *panel) {
    (void)rows, (void)row, (void)n_rows, (void)columns, (void)n_columns, (void)k0, (void)k1;
    (void)strips, (void)panel;
    GGML_UNREACHABLE();
}

#endif
