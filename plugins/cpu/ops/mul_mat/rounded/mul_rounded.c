// SPDX-License-Identifier: MIT
// The products of a group are added as whole numbers, which is exact; then they are scaled and
// added as floats.
#include "ops/mul_mat/rounded/mul_rounded.h"

#include "ops/mul_mat/rounded/dot_bytes.h"
#include "ops/mul_mat/rounded/lines_neon.h"
#include "ops/mul_mat/rounded/round_group.h"
#include "ops/mul_mat/rounded/rounded_lines.h"
#include "ops/mul_mat/rounded/rounded_rows.h"
#include "ops/mul_mat/rounded/word_dots.h"
#include "types/blocks.h"

enum {
    ROWS = 4,                   // of a tile
    SETS = LANES == 16 ? 2 : 1, // tiles that are computed together, at most
    COLUMNS = ROUNDED_COLUMNS,
    LINE = 64, // bytes of the cache
    SIDE_BY_SIDE_AHEAD = 16384,
    TILES_AHEAD = 16384, // bytes, at least, that tiles of lanes are asked for ahead
};

#if !CPU_ROWS_AS_LANES
CPU_INLINE int least_in_lanes(const enum ggml_type type) {
    (void)type;
    return ROUNDED_MOST + 1;
}
#endif

// --- columns -------------------------------------------------------------------------------------

// Adds what the kernels of the level need of n groups, of rows that are lanes or not.
static void finish_part(enum ggml_type type, bool for_lanes, int64_t n, struct rounded *out) {
    (void)type, (void)for_lanes, (void)n, (void)out;
#if CPU_ROWS_AS_LANES
    for (int64_t g = 0; g < n && for_lanes; ++g)
        words_start(type, out->numbers + g * ROUNDED_GROUP, out->starts[g]);
#endif
#if defined(__AVX512BW__)
    for (int64_t g = 0; g < n && !for_lanes; ++g)
        quarters_start(type, out->numbers + g * ROUNDED_GROUP, out->starts[g]);
#elif defined(__AVX2__)
    if (!for_lanes) lines_start(type, n, out);
#elif CPU_LINES_NEON
    for (int64_t g = 0; g < n && !for_lanes; ++g)
        line_start(type, out->numbers + g * ROUNDED_GROUP, out->starts[g]);
#endif
}

// Rounds k elements, whole groups, with scaled sums of 16 and of 32, which offsets of types are
// multiplied by.
static void round_part(enum ggml_type type, const float *x, int64_t k, bool for_lanes,
                       struct rounded *out) {
    for (int64_t g = 0; g < k / ROUNDED_GROUP; ++g) {
        int8_t *numbers = out->numbers + g * ROUNDED_GROUP;
        const float scale = round_group(x + g * ROUNDED_GROUP, numbers);
        const int32_t sums[2] = {sum_of_16(numbers), sum_of_16(numbers + 16)};
        out->scales[g] = scale;
        out->sums[2 * g] = scale * (float)sums[0];
        out->sums[2 * g + 1] = scale * (float)sums[1];
        out->sums32[g] = scale * (float)(sums[0] + sums[1]);
    }
    finish_part(type, for_lanes, k / ROUNDED_GROUP, out);
}

// Rounds up to ROUNDED_COLUMNS columns to parts that lie side by side, `stored` of them. Returns
// where the next ones begin.
static struct rounded *round_four(enum ggml_type type, const struct gemm_column *columns, int64_t n,
                                  int64_t k, bool for_lanes, int stored, struct rounded *out) {
    for (int64_t first = 0; first < k; first += ROUNDED_DEPTH, out += stored) {
        for (int c = 0; c < n; ++c)
            round_part(type, columns[c].x + first, MIN(k - first, ROUNDED_DEPTH), for_lanes,
                       &out[c]);
        for (int64_t c = n; c < stored; ++c)
            out[c] = out[n - 1];
    }
    return out;
}

void CPU_FN(cpu_round_columns)(enum ggml_type type, bool repacked,
                               const struct gemm_column *columns, int64_t n_columns, int64_t k,
                               void *memory) {
    struct rounded *out = memory;
    const bool for_lanes = n_columns >= least_in_lanes(type) || (repacked && LANES != 8);
    const int64_t before = rounded_before(n_columns);
    for (int64_t c = 0; c < before; c += ROUNDED_COLUMNS)
        out = round_four(type, columns + c, ROUNDED_COLUMNS, k, for_lanes, ROUNDED_COLUMNS, out);
    round_four(type, columns + before, n_columns - before, k, for_lanes, rounded_last(n_columns),
               out);
}

// --- rows ----------------------------------------------------------------------------------------

// Rows and columns beyond the last repeat it.
struct tile {
    const char *a[SETS * ROWS];
    const struct rounded *x; // the first part of all columns
    int64_t k;
    size_t ahead; // from a row to what is asked for, in bytes
    size_t apart; // from a row to the one beyond the next, of the next tiles
    float y[SETS][COLUMNS][ROWS];
};

struct sums {
    vdf products[COLUMNS][ROWS];
    float offsets[COLUMNS][ROWS];
};

// What is multiplied with the sums of numbers from `first` on: the scale of their group, or of
// their two groups.
CPU_INLINE vdf scale_part(const struct block_format f, const float *scales, const int first) {
    if (f.group >= DOT_BYTES) return vdf_set(scales[first / f.group]);
    vd in_first;
    for (int i = 0; i < DOTS; ++i)
        in_first[i] = i < DOTS / 2 ? -1 : 0;
    const vd low = (vd)vdf_set(scales[first / f.group]);
    const vd high = (vd)vdf_set(scales[first / f.group + 1]);
    return (vdf)((in_first & low) | (~in_first & high));
}

// 32 numbers each of all rows with those of a column; what they are scaled by belongs to the column
// too.
CPU_INLINE void add_group(const struct block_format f, vdf *sums, const int8_t *const *q,
                          const float (*scales)[MAX_GROUPS], const int first, const int8_t *x) {
    enum { PARTS = ROUNDED_GROUP / DOT_BYTES };
    const int step = f.group > DOT_BYTES ? f.group : DOT_BYTES;
    CPU_UNROLLED
    for (int from = first; from < first + ROUNDED_GROUP; from += step) {
        vd start[PARTS];
        CPU_UNROLLED
        for (int i = 0; i < step / DOT_BYTES; ++i)
            start[i] = dot_start(x + from - first + i * DOT_BYTES);
        CPU_UNROLLED
        for (int r = 0; r < ROWS; ++r) {
            vd dots = {0};
            CPU_UNROLLED
            for (int i = 0; i < step / DOT_BYTES; ++i) {
                const int j = i * DOT_BYTES;
                dots = dot_add(i == 0 ? start[0] : dots + start[i], q[r] + from + j,
                               x + from - first + j);
            }
            sums[r] += __builtin_convertvector(dots, vdf) * scale_part(f, scales[r], from);
        }
    }
}

// scaled[r][g] = the scale of group g of row r times that of the column.
CPU_INLINE void scale_columns(const struct block_format f, struct opened *o, const float *scales,
                              float (*scaled)[MAX_GROUPS]) {
    const int groups = f.size / f.group;
    for (int r = 0; r < ROWS; ++r) {
        for (int g = 0; g < groups; ++g)
            scaled[r][g] = o[r].scales[g] * scales[g * f.group / ROUNDED_GROUP];
    }
}

// Sums of the groups from element `at` on.
CPU_INLINE const float *group_sums(const struct block_format f, const struct rounded *x,
                                   const int at) {
    return f.group == 16 ? x->sums + at / 16 : x->sums32 + at / 32;
}

// Adds what the offsets of a block (minimum, or zero point) contribute: offset times sum of the
// column's group.
CPU_INLINE void add_offsets(const struct block_format f, float *sums, struct opened *o,
                            const float *of_column) {
    CPU_UNROLLED
    for (int r = 0; r < ROWS; ++r) {
        float sum = 0;
        for (int g = 0; g < f.size / f.group; ++g) {
            sum += offsets(f, &o[r])[g] * of_column[g];
        }
        sums[r] += sum;
    }
}

// Adds one block of each row times elements `at` and up of each column's part.
CPU_INLINE void add_block(const struct block_format f, struct sums *sums, const char *const *blocks,
                          const struct rounded *x, const int at, const int columns) {
    struct opened o[ROWS];
    const int8_t *q[ROWS];
    open_blocks(f, blocks, ROWS, o, q);
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c) {
        float scaled[ROWS][MAX_GROUPS];
        scale_columns(f, o, x[c].scales + at / ROUNDED_GROUP, scaled);
        for (int from = 0; from < f.size; from += ROUNDED_GROUP)
            add_group(f, sums->products[c], q, (const float(*)[MAX_GROUPS])scaled, from,
                      x[c].numbers + at + from);
        if (f.offset_at >= 0) add_offsets(f, sums->offsets[c], o, group_sums(f, &x[c], at));
    }
}

// Each turn asks for so many bytes of each row that come later, as in mul_vec.c.
CPU_INLINE void prefetch_next(const int bytes, const char *const *blocks, const int n_rows,
                              const size_t ahead) {
    CPU_UNROLLED
    for (int r = 0; r < n_rows; ++r) {
        CPU_UNROLLED
        for (int i = 0; i < bytes; i += LINE)
            __builtin_prefetch(blocks[r] + ahead + i, 0, 2);
    }
}

// Products of a tile of rows and columns, block by block.
CPU_INLINE void dot_blocks(const struct block_format f, struct tile *t, const int columns) {
    struct sums sums = {0};
    const struct rounded *x = t->x;
    for (int64_t i = 0; i < t->k / f.size; ++i) {
        const int at = (int)(i * f.size % ROUNDED_DEPTH);
        const char *blocks[ROWS];
        CPU_UNROLLED
        for (int r = 0; r < ROWS; ++r)
            blocks[r] = t->a[r] + i * f.bytes;
        prefetch_next(f.bytes, blocks, ROWS, t->ahead);
        add_block(f, &sums, blocks, x, at, columns);
        if (at + f.size == ROUNDED_DEPTH) x += columns;
    }
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c) {
        CPU_UNROLLED
        for (int r = 0; r < ROWS; ++r)
            t->y[0][c][r] = vdf_sum(sums.products[c][r]) + sums.offsets[c][r];
    }
}

#if defined(__AVX512BW__)
// Whether the type has the faster way, in which blocks aren't opened to memory but multiplied
// out of registers. Known when compiling.
CPU_INLINE bool multiplied_in_registers(const enum ggml_type type) {
#if !defined(__AVX512VNNI__)
    if (quarter_bias(type) > 64) return false; // numbers need eight bits
#endif
    switch (type) {
    case GGML_TYPE_Q4_0:
    case GGML_TYPE_Q4_1:
    case GGML_TYPE_Q5_0:
    case GGML_TYPE_Q5_1:
    case GGML_TYPE_Q8_0:
    case GGML_TYPE_IQ4_NL:
    case GGML_TYPE_TQ2_0:
    case GGML_TYPE_MXFP4:
    case GGML_TYPE_NVFP4:
    case GGML_TYPE_Q2_K:
    case GGML_TYPE_Q4_K:
    case GGML_TYPE_Q5_K:
    case GGML_TYPE_Q6_K:
    case GGML_TYPE_IQ4_XS: return true;
    default: return false;
    }
}
#elif defined(__AVX2__)
// The same ways at this level, a vector per row.
CPU_INLINE bool multiplied_in_registers(const enum ggml_type type) {
    return type != GGML_TYPE_NVFP4;
}
#elif CPU_LINES_NEON
// The same, two vectors per row.
CPU_INLINE bool multiplied_in_registers(const enum ggml_type type) {
    return type == GGML_TYPE_Q8_0 || type == GGML_TYPE_Q4_0 || type == GGML_TYPE_Q4_1 ||
           type == GGML_TYPE_IQ4_NL;
}
#else
CPU_INLINE bool multiplied_in_registers(const enum ggml_type type) {
    (void)type;
    return false;
}
#endif

#if defined(__AVX2__) || CPU_LINES_NEON
// Products of tiles by that way. Short blocks are prefetched every other time, as two of them share
// a cache line. Rows of two tiles follow each other: what is asked for beyond a row's end is of
// the one after the other tile's.
CPU_INLINE void dot_quartered(const struct block_format f, struct tile *t, const int columns,
                              const int sets) {
    struct lane_sums sums[SETS][COLUMNS] = {0};
    const struct rounded *x = t->x;
    const int64_t n = t->k / f.size;
    const int64_t last = sets == 1 ? n : n - (int64_t)(t->ahead / (size_t)f.bytes);
    const int at_once = blocks_at_once(f);
    for (int64_t i = 0; i < n; i += at_once) {
        const int at = (int)(i * f.size % ROUNDED_DEPTH);
        const char *blocks[SETS * ROWS];
        CPU_UNROLLED
        for (int r = 0; r < sets * ROWS; ++r)
            blocks[r] = t->a[r] + i * f.bytes;
        if (at_once * f.bytes > LINE / 2 || i % 2 == 0)
            prefetch_next(at_once * f.bytes, blocks, sets * ROWS,
                          i < last ? t->ahead : t->ahead + t->apart);
        if (at_once == 1 || i + 1 == n)
            add_lanes(f, sets, sums, blocks, x, at, 1, columns);
        else
            add_lanes(f, sets, sums, blocks, x, at, 2, columns);
        if (at + at_once * f.size == ROUNDED_DEPTH) x += columns;
    }
    CPU_UNROLLED
    for (int s = 0; s < sets; ++s) {
        CPU_UNROLLED
        for (int c = 0; c < columns; ++c)
            close_lanes(f, &sums[s][c], t->y[s][c]);
    }
}
#else
CPU_INLINE int sets_at_once(const struct block_format f, const int columns) {
    (void)f, (void)columns;
    return 1;
}

CPU_INLINE void dot_quartered(const struct block_format f, struct tile *t, const int columns,
                              const int sets) {
    (void)f, (void)t, (void)columns, (void)sets;
}
#endif

// The format is a compile-time constant, so that only one branch is left in each function. Returns
// how many tiles were computed, at most n_tiles.
CPU_INLINE int dot_tiles(const struct block_format f, struct tile *t, const int columns,
                         int64_t n_tiles) {
    if (!multiplied_in_registers(f.type)) {
        dot_blocks(f, t, columns);
        return 1;
    }
    const int sets = sets_at_once(f, columns);
    if (sets > 1 && n_tiles >= sets) {
        dot_quartered(f, t, columns, sets);
        return sets;
    }
    dot_quartered(f, t, columns, 1);
    return 1;
}

// In bytes: a little further on in a stream, or whole tiles where rows lie side by side.
CPU_INLINE size_t distance_ahead(const struct gemm_rows *rows) {
    if (GEMM_APART) return gemm_ahead(rows);
    const size_t tile = ROWS * rows->stride;
    return (1 + SIDE_BY_SIDE_AHEAD / MAX(tile, 1)) * tile;
}

// Multiplies ROWS rows, or twice as many, at a time; the last ones are repeated at the edge and not
// stored. `width` is what n_columns are stored as.
CPU_INLINE void mul_tiles(const struct block_format f, const struct gemm_rows *rows,
                          const struct gemm_piece *piece, const struct gemm_column *columns,
                          int64_t n_columns, void *memory, const int width) {
    if (width >= least_in_lanes(f.type)) return; // never called: mul_in_lanes() has them
    const size_t stride = rows->stride;
    const int64_t row = piece->row, n_rows = piece->n_rows, end = gemm_tiles(piece->end);
    const char *data = rows->data + (size_t)row * stride;
    struct tile t = {.x = memory, .k = rows->k, .ahead = distance_ahead(rows)};
    t.apart = (GEMM_APART ? 1 : ROWS) * stride;
    for (int64_t tile = piece->begin / ROWS, done; tile < end; tile += done) {
        CPU_UNROLLED
        for (int r = 0; r < SETS * ROWS; ++r) {
            const int64_t at = gemm_tile_row(n_rows, tile + r / ROWS, r % ROWS);
            t.a[r] = data + (size_t)MIN(at, n_rows - 1) * stride;
        }
        done = dot_tiles(f, &t, width, end - tile);
        for (int r = 0; r < done * ROWS; ++r) {
            const int64_t at = gemm_tile_row(n_rows, tile + r / ROWS, r % ROWS);
            CPU_UNROLLED
            for (int c = 0; c < width; ++c) {
                if (at < n_rows && c < n_columns)
                    columns[c].y[row + at] = t.y[r / ROWS][c][r % ROWS];
            }
        }
    }
}

typedef void (*mul_fn)(const struct gemm_rows *rows, const struct gemm_piece *piece,
                       const struct gemm_column *columns, int64_t n_columns, void *memory);

#define CPU_BLOCK_ROW(NAME, name, ...)                                                             \
    static void mul_##name(const struct gemm_rows *rows, const struct gemm_piece *piece,           \
                           const struct gemm_column *columns, int64_t n_columns, void *memory) {   \
        const struct block_format f = BLOCK_FORMAT(NAME, name, __VA_ARGS__);                       \
        if (n_columns == 1)                                                                        \
            mul_tiles(f, rows, piece, columns, 1, memory, 1);                                      \
        else if (n_columns == 2)                                                                   \
            mul_tiles(f, rows, piece, columns, 2, memory, 2);                                      \
        else                                                                                       \
            mul_tiles(f, rows, piece, columns, n_columns, memory, COLUMNS);                        \
    }
#include "ops/mul_mat/rounded/rounded_list.inl"

static const mul_fn mul_of[GGML_TYPE_COUNT] = {
#define CPU_BLOCK_ROW(NAME, name, ...) [GGML_TYPE_##NAME] = mul_##name,
#include "ops/mul_mat/rounded/rounded_list.inl"
};

#if CPU_ROWS_AS_LANES
// `last` columns after fours.
typedef void (*lanes_fn)(struct word_tile *t, int last);

#define CPU_BLOCK_ROW(NAME, name, ...)                                                             \
    static void lanes_##name(struct word_tile *t, int last) {                                      \
        const struct block_format f = BLOCK_FORMAT(NAME, name, __VA_ARGS__);                       \
        if (least_in_lanes(GGML_TYPE_##NAME) < NEVER_IN_LANES) dot_word_tile(f, t, last, false);   \
    }
#include "ops/mul_mat/rounded/rounded_list.inl"

static const lanes_fn lanes_of[GGML_TYPE_COUNT] = {
#define CPU_BLOCK_ROW(NAME, name, ...) [GGML_TYPE_##NAME] = lanes_##name,
#include "ops/mul_mat/rounded/rounded_list.inl"
};

// Stores the results of a tile of n rows, at most WORD_ROWS, from `row` on.
static void store_lanes(const struct word_tile *t, const struct gemm_column *columns,
                        int64_t n_columns, int64_t row, int n) {
    for (int c = 0; c < n_columns; ++c) {
        for (int v = 0; v < WORD_VECTORS && v * LANES < n; ++v)
            vf_store_most(columns[c].y + row + v * LANES,
                          t->sums[c / ROUNDED_COLUMNS][c % ROUNDED_COLUMNS][v], n - v * LANES);
    }
}

// Multiplies WORD_ROWS rows at a time.
static void mul_in_lanes(const struct gemm_rows *rows, const struct gemm_piece *piece,
                         const struct gemm_column *columns, int64_t n_columns, void *memory) {
    struct word_tile t = {.x = memory, .k = rows->k};
    t.fours = (int)rounded_before(n_columns) / ROUNDED_COLUMNS;
    const size_t tile = WORD_ROWS * rows->stride;
    const size_t next = LANES == 16 ? (1 + TILES_AHEAD / (tile + 1)) * tile : tile;
    t.next_step = WORD_ROWS * rows->stride / (size_t)MAX(rows->k / ROUNDED_GROUP, 1);
    const int64_t row = piece->row, n_rows = piece->n_rows;
    for (int64_t first = piece->begin; first < piece->end; first += WORD_ROWS) {
        for (int r = 0; r < WORD_ROWS; ++r)
            t.rows[r] = rows->data + (size_t)(row + MIN(first + r, n_rows - 1)) * rows->stride;
        t.next = t.rows[0] + (n_rows - first > WORD_ROWS ? next : 0);
        lanes_of[rows->type](&t, rounded_last(n_columns));
        store_lanes(&t, columns, n_columns, row + first, (int)MIN(piece->end - first, WORD_ROWS));
    }
}
#endif

// Rows that stay in the second-level cache until all columns were multiplied with them.
static int64_t rows_at_a_time(const struct gemm_rows *rows) {
    enum { CACHED = 128 << 10, LEAST = SETS * ROWS }; // bytes, rows
    const int64_t n = CACHED / (int64_t)(rows->stride + 1) / LEAST * LEAST;
    return MAX(n, LEAST);
}

// Multiplies the rows with fours of the columns in turn.
static void mul_in_fours(const struct gemm_rows *rows, const struct gemm_piece *piece,
                         const struct gemm_column *columns, int64_t n_columns, void *memory) {
    const size_t size = rounded_size(rows->k, ROUNDED_COLUMNS);
    const int64_t step = n_columns > ROUNDED_COLUMNS ? rows_at_a_time(rows) : piece->n_rows;
    struct gemm_piece some = *piece;
    for (; some.begin < piece->end; some.begin = some.end) {
        char *x = memory;
        some.end = MIN(piece->end, some.begin + step);
        for (int64_t c = 0; c < n_columns; c += ROUNDED_COLUMNS, x += size)
            mul_of[rows->type](rows, &some, columns + c, MIN(n_columns - c, ROUNDED_COLUMNS), x);
    }
}

void CPU_FN(cpu_mul_rounded)(const struct gemm_rows *rows, const struct gemm_piece *piece,
                             const struct gemm_column *columns, int64_t n_columns, void *memory) {
#if CPU_ROWS_AS_LANES
    if (n_columns >= least_in_lanes(rows->type)) {
        mul_in_lanes(rows, piece, columns, n_columns, memory);
        return;
    }
#endif
    mul_in_fours(rows, piece, columns, n_columns, memory);
}
