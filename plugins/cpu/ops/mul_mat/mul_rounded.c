// SPDX-License-Identifier: MIT
// The products of a group are added as whole numbers, which is exact; then they are scaled and
// added as floats.
#include "ops/mul_mat/mul_rounded.h"

#include "ops/mul_mat/dot_bytes.h"
#include "ops/mul_mat/round_group.h"
#include "ops/mul_mat/rounded_lines.h"
#include "ops/mul_mat/rounded_rows.h"
#include "types/blocks.h"

// --- columns -------------------------------------------------------------------------------------

// Rounds a column, with scaled sums of 16 and of 32 elements, which offsets of types are
// multiplied by.
static void round_column(const float *x, int64_t k, const struct rounded *out) {
    for (int64_t g = 0; g < k / ROUNDED_GROUP; ++g) {
        int8_t *numbers = out->numbers + g * ROUNDED_GROUP;
        const float scale = round_group(x + g * ROUNDED_GROUP, numbers);
        int32_t sums[2] = {0};
        for (int j = 0; j < 16; ++j) {
            sums[0] += numbers[j];
            sums[1] += numbers[j + 16];
        }
        out->scales[g] = scale;
        out->sums[2 * g] = scale * (float)sums[0];
        out->sums[2 * g + 1] = scale * (float)sums[1];
        out->sums32[g] = scale * (float)(sums[0] + sums[1]);
    }
}

// `memory` has room for n_columns columns, one after the other.
void CPU_FN(cpu_round_columns)(const struct gemm_column *columns, int64_t n_columns, int64_t k,
                               void *memory) {
    for (int64_t c = 0; c < n_columns; ++c) {
        const struct rounded out = rounded_at(memory, k, c);
        round_column(columns[c].x, k, &out);
    }
}

// --- rows ----------------------------------------------------------------------------------------

enum {
    ROWS = 4, // that are computed together
    COLUMNS = ROUNDED_COLUMNS,
    LINE = 64, // bytes of the cache
    SIDE_BY_SIDE_AHEAD = 16384,
};

// Rows and columns beyond the last repeat it.
struct tile {
    const char *a[ROWS];
    struct rounded x[COLUMNS];
    int64_t k;
    size_t ahead; // from a row to what is asked for, in bytes
    float y[COLUMNS][ROWS];
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

// Sums of the groups from element `first` on.
CPU_INLINE const float *group_sums(const struct block_format f, const struct rounded *x,
                                   int64_t first) {
    return f.group == 16 ? x->sums + first / 16 : x->sums32 + first / 32;
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

// Adds one block of each row times the same elements of each column.
CPU_INLINE void add_block(const struct block_format f, struct sums *sums, const char *const *blocks,
                          const struct rounded *x, int64_t first, const int columns) {
    struct opened o[ROWS];
    const int8_t *q[ROWS];
    open_blocks(f, blocks, ROWS, o, q);
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c) {
        float scaled[ROWS][MAX_GROUPS];
        scale_columns(f, o, x[c].scales + first / ROUNDED_GROUP, scaled);
        for (int from = 0; from < f.size; from += ROUNDED_GROUP)
            add_group(f, sums->products[c], q, (const float(*)[MAX_GROUPS])scaled, from,
                      x[c].numbers + first + from);
        if (f.offset_at >= 0) add_offsets(f, sums->offsets[c], o, group_sums(f, &x[c], first));
    }
}

// Each block asks for that of a tile to come, as in mul_vec.c.
CPU_INLINE void prefetch_next(const struct block_format f, const struct tile *t,
                              const char *const *blocks) {
    CPU_UNROLLED
    for (int r = 0; r < ROWS; ++r) {
        CPU_UNROLLED
        for (int i = 0; i < f.bytes; i += LINE)
            __builtin_prefetch(blocks[r] + t->ahead + i);
    }
}

// Products of a tile of rows and columns, block by block.
CPU_INLINE void dot_blocks(const struct block_format f, struct tile *t, const int columns) {
    struct sums sums = {0};
    for (int64_t i = 0; i < t->k / f.size; ++i) {
        const char *blocks[ROWS];
        CPU_UNROLLED
        for (int r = 0; r < ROWS; ++r)
            blocks[r] = t->a[r] + i * f.bytes;
        prefetch_next(f, t, blocks);
        add_block(f, &sums, blocks, t->x, i * f.size, columns);
    }
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c) {
        CPU_UNROLLED
        for (int r = 0; r < ROWS; ++r)
            t->y[c][r] = vdf_sum(sums.products[c][r]) + sums.offsets[c][r];
    }
}

#if defined(__AVX512BW__)
// Whether the type has the faster way, in which blocks aren't opened to memory but multiplied
// out of registers. Known when compiling.
CPU_INLINE bool lies_in_quarters(const enum ggml_type type) {
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
    case GGML_TYPE_Q3_K:
    case GGML_TYPE_Q4_K:
    case GGML_TYPE_Q5_K:
    case GGML_TYPE_Q6_K:
    case GGML_TYPE_IQ4_XS: return true;
    default: return false;
    }
}
#elif defined(__AVX2__)
// The same ways at this level, a vector per row.
CPU_INLINE bool lies_in_quarters(const enum ggml_type type) {
    return type != GGML_TYPE_NVFP4;
}
#else
CPU_INLINE bool lies_in_quarters(const enum ggml_type type) {
    (void)type;
    return false;
}
#endif

#if defined(__AVX2__)
// Products of a tile by that way. Short blocks are prefetched every other time, as two of them
// share a cache line.
CPU_INLINE void dot_quartered(const struct block_format f, struct tile *t, const int columns) {
    struct lane_sums sums[COLUMNS] = {0};
    for (int64_t i = 0; i < t->k / f.size; ++i) {
        const char *blocks[ROWS];
        CPU_UNROLLED
        for (int r = 0; r < ROWS; ++r)
            blocks[r] = t->a[r] + i * f.bytes;
        if (2 * f.bytes > LINE || i % 2 == 0) prefetch_next(f, t, blocks);
        add_lanes(f, sums, blocks, t->x, i * f.size, columns);
    }
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c)
        close_lanes(f, &sums[c], t->y[c]);
}
#else
CPU_INLINE void dot_quartered(const struct block_format f, struct tile *t, const int columns) {
    (void)f, (void)t, (void)columns;
}
#endif

// The format is a compile-time constant, so that only one branch is left in each function.
CPU_INLINE void dot_tile(const struct block_format f, struct tile *t, const int columns) {
    if (lies_in_quarters(f.type))
        dot_quartered(f, t, columns);
    else
        dot_blocks(f, t, columns);
}

typedef void (*dot_fn)(struct tile *t, int64_t columns);

#define CPU_BLOCK_ROW(NAME, name, ...)                                                             \
    static void dot_##name(struct tile *t, int64_t columns) {                                      \
        const struct block_format f = BLOCK_FORMAT(NAME, name, __VA_ARGS__);                       \
        if (columns == 1)                                                                          \
            dot_tile(f, t, 1);                                                                     \
        else if (columns == 2)                                                                     \
            dot_tile(f, t, 2);                                                                     \
        else                                                                                       \
            dot_tile(f, t, COLUMNS);                                                               \
    }
#include "ops/mul_mat/rounded_list.inl"

static const dot_fn dot_of[GGML_TYPE_COUNT] = {
#define CPU_BLOCK_ROW(NAME, name, ...) [GGML_TYPE_##NAME] = dot_##name,
#include "ops/mul_mat/rounded_list.inl"
};

// In bytes: the stream further on, in whole rows with short vectors, or whole tiles where rows lie
// side by side.
static size_t distance_ahead(size_t stride) {
    if (LANES == 16) return GEMM_AHEAD;
    const size_t tile = (GEMM_APART ? 1 : ROWS) * stride;
    return (1 + (GEMM_APART ? GEMM_AHEAD : SIDE_BY_SIDE_AHEAD) / tile) * tile;
}

// Multiplies ROWS rows at a time; the last ones are repeated at the edge and not stored.
void CPU_FN(cpu_mul_rounded)(const struct gemm_rows *rows, int64_t row, int64_t n_rows,
                             const struct gemm_column *columns, int64_t n_columns, void *memory) {
    struct tile t = {.k = rows->k, .ahead = distance_ahead(rows->stride)};
    for (int c = 0; c < COLUMNS; ++c)
        t.x[c] = rounded_at(memory, rows->k, MIN(c, n_columns - 1));
    for (int64_t tile = 0; tile < gemm_tiles(n_rows); ++tile) {
        for (int r = 0; r < ROWS; ++r) {
            const int64_t at = row + MIN(gemm_tile_row(n_rows, tile, r), n_rows - 1);
            t.a[r] = rows->data + (size_t)at * rows->stride;
        }
        dot_of[rows->type](&t, n_columns);
        for (int c = 0; c < n_columns; ++c) {
            for (int r = 0; r < ROWS; ++r) {
                const int64_t at = gemm_tile_row(n_rows, tile, r);
                if (at < n_rows) columns[c].y[row + at] = t.y[c][r];
            }
        }
    }
}
