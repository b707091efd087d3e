// SPDX-License-Identifier: MIT
// Rows are multiplied as they are opened, four at a time; of blocks, the products of a group of
// equal scale are added before they are scaled.
#include "gemm/mul_vec.h"

#include "types/nibbles.h"

enum {
    ROWS = NIBBLE_ROWS, // that are computed together
    COLUMNS = 4,
    LINE = 64, // bytes of the cache
};

// Rows and columns beyond the last repeat it.
struct tile {
    const char *a[ROWS];
    const float *x[COLUMNS];
    int64_t k;
    size_t ahead; // from a row to what is asked for, in bytes
    float y[COLUMNS][ROWS];
};

// Weights come from memory: each part of a tile asks for what its streams have further on or, where
// rows lie side by side, which are too many streams for hardware to follow, for that of the next.
CPU_INLINE void prefetch_next(const struct tile *t, const char *part, const size_t bytes) {
    CPU_UNROLLED
    for (size_t i = 0; i < bytes; i += LINE)
        __builtin_prefetch(part + t->ahead + i, 0, 2);
}

// Clears the sums of a tile, which stay in registers.
CPU_INLINE void open_sums(vf (*sums)[ROWS], const int columns) {
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c) {
        CPU_UNROLLED
        for (int r = 0; r < ROWS; ++r)
            sums[c][r] = (vf){0};
    }
}

// Adds up the lanes of each sum.
CPU_INLINE void close_tile(struct tile *t, vf (*sums)[ROWS], const int columns) {
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c) {
        CPU_UNROLLED
        for (int r = 0; r < ROWS; ++r)
            t->y[c][r] = vf_sum(sums[c][r]);
    }
}

// Adds group g of each row times the same elements of each column: the products' sum is scaled
// once, and an offset is multiplied by the column's sum.
CPU_INLINE void add_group(const struct block_format f, vf (*sums)[ROWS], const int8_t *const *q,
                          struct opened *o, int g, const float *const *x, const int columns) {
    const int first = g * f.group;
    vf totals[COLUMNS];
    for (int c = 0; c < columns && f.offset_at >= 0; ++c) {
        totals[c] = vf_load(x[c] + first);
        CPU_UNROLLED
        for (int j = LANES; j < f.group; j += LANES)
            totals[c] += vf_load(x[c] + first + j);
    }
    CPU_UNROLLED
    for (int r = 0; r < ROWS; ++r) {
        vf parts[COLUMNS][2]; // short chains round less
        CPU_UNROLLED
        for (int j = 0; j < f.group; j += LANES) {
            const vf number = vf_from_i8(q[r] + first + j);
            const int i = f.group > 2 * LANES ? j / LANES % 2 : 0;
            CPU_UNROLLED
            for (int c = 0; c < columns; ++c) {
                const vf product = number * vf_load(x[c] + first + j);
                parts[c][i] = j <= i * LANES ? product : parts[c][i] + product;
            }
        }
        CPU_UNROLLED
        for (int c = 0; c < columns; ++c) {
            if (f.group > 2 * LANES) parts[c][0] += parts[c][1];
            sums[c][r] += o[r].scales[g] * parts[c][0];
            if (f.offset_at >= 0) sums[c][r] += offsets(f, &o[r])[g] * totals[c];
        }
    }
}

// Opens a block of each row and adds its groups.
CPU_INLINE void add_block(const struct block_format f, vf (*sums)[ROWS], const char *const *blocks,
                          const float *const *x, const int columns) {
    struct opened o[ROWS];
    const int8_t *q[ROWS];
    open_blocks(f, blocks, ROWS, o, q);
    for (int g = 0; g < f.size / f.group; ++g)
        add_group(f, sums, q, o, g, x, columns);
}

// Whether the type's numbers are looked up as floats by an instruction.
CPU_INLINE bool looks_up(const enum ggml_type type) {
    return LANES == 16 && nibble_format(type).values;
}

// Products of a tile of rows of blocks. Later blocks are asked for.
CPU_INLINE void dot_blocks(const struct block_format f, struct tile *t, const int columns) {
    vf sums[COLUMNS][ROWS];
    open_sums(sums, columns);
    for (int64_t i = 0; i < t->k / f.size; ++i) {
        const char *blocks[ROWS];
        const float *x[COLUMNS];
        CPU_UNROLLED
        for (int r = 0; r < ROWS; ++r)
            blocks[r] = t->a[r] + i * f.bytes;
        CPU_UNROLLED
        for (int r = 0; r < ROWS; ++r)
            prefetch_next(t, blocks[r], (size_t)f.bytes);
        CPU_UNROLLED
        for (int c = 0; c < columns; ++c)
            x[c] = t->x[c] + i * f.size;
        if (looks_up(f.type))
            add_nibbles(f, sums, blocks, x, columns);
        else
            add_block(f, sums, blocks, x, columns);
    }
    close_tile(t, sums, columns);
}

// One vector of a plain type as floats.
CPU_INLINE vf vf_from(const enum ggml_type type, const char *x) {
    if (type == GGML_TYPE_F32) return vf_load((const float *)(const void *)x);
    return type == GGML_TYPE_F16 ? vf_from_f16(x) : vf_from_bf16(x);
}

// Adds n <= LANES elements from element i on.
CPU_INLINE void add_plain(const enum ggml_type type, vf (*sums)[ROWS], const struct tile *t,
                          int64_t i, int64_t n, const int columns) {
    const size_t size = type == GGML_TYPE_F32 ? sizeof(float) : sizeof(uint16_t);
    vf x[COLUMNS];
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c)
        x[c] = n == LANES ? vf_load(t->x[c] + i) : vf_load_part(t->x[c] + i, n);
    CPU_UNROLLED
    for (int r = 0; r < ROWS; ++r) {
        const char *a = t->a[r] + size * (size_t)i;
        uint32_t part[LANES] = {0};
        if (n < LANES) a = memcpy(part, a, size * (size_t)n);
        const vf value = vf_from(type, a);
        CPU_UNROLLED
        for (int c = 0; c < columns; ++c)
            sums[c][r] += value * x[c];
    }
}

// Rows without blocks, at least a vector at a time and, where rows are streams, a line of the
// cache: it is asked for once.
CPU_INLINE void dot_plain(const enum ggml_type type, struct tile *t, const int columns) {
    const int size = type == GGML_TYPE_F32 ? sizeof(float) : sizeof(uint16_t);
    const int step = GEMM_APART ? LINE / size : LANES;
    vf sums[COLUMNS][ROWS];
    open_sums(sums, columns);
    int64_t i = 0;
    for (; i + step <= t->k; i += step) {
        CPU_UNROLLED
        for (int r = 0; r < ROWS; ++r)
            prefetch_next(t, t->a[r] + size * i, (size_t)(size * step));
        CPU_UNROLLED
        for (int j = 0; j < step; j += LANES)
            add_plain(type, sums, t, i + j, LANES, columns);
    }
    for (; i < t->k; i += LANES)
        add_plain(type, sums, t, i, MIN(t->k - i, LANES), columns);
    close_tile(t, sums, columns);
}

typedef void (*dot_fn)(struct tile *t, int64_t columns);

#define CPU_BLOCK_ROW(NAME, name, ...)                                                             \
    static void dot_##name(struct tile *t, int64_t columns) {                                      \
        const struct block_format f = BLOCK_FORMAT(NAME, name, __VA_ARGS__);                       \
        if (columns == 1)                                                                          \
            dot_blocks(f, t, 1);                                                                   \
        else if (columns == 2 || !looks_up(GGML_TYPE_##NAME))                                      \
            dot_blocks(f, t, 2);                                                                   \
        else                                                                                       \
            dot_blocks(f, t, COLUMNS);                                                             \
    }
#include "types/block_list.inl"

#define PLAIN(NAME, name)                                                                          \
    static void dot_##name(struct tile *t, int64_t columns) {                                      \
        if (columns == 1)                                                                          \
            dot_plain(GGML_TYPE_##NAME, t, 1);                                                     \
        else                                                                                       \
            dot_plain(GGML_TYPE_##NAME, t, COLUMNS);                                               \
    }
PLAIN(F32, f32)
PLAIN(F16, f16)
PLAIN(BF16, bf16)

// clang-format off
// The dot product of a row of this type with an F32 column; NULL for types without one.
static dot_fn choose(enum ggml_type type) {
    switch (type) {
    case GGML_TYPE_F32: return dot_f32;
    case GGML_TYPE_F16: return dot_f16;
    case GGML_TYPE_BF16:
        return dot_bf16;
#define CPU_BLOCK_ROW(NAME, name, ...)                                                             \
    case GGML_TYPE_##NAME: return dot_##name;
#include "types/block_list.inl"
    default: return NULL;
    }
}
// clang-format on

// With more, unpacking pays: the numbers would be made floats once more for each few.
static int64_t most_columns(enum ggml_type type) {
    if (most_as_read(type) > 0) return most_as_read(type);
    const bool is_plain = type == GGML_TYPE_F32 || type == GGML_TYPE_F16 || type == GGML_TYPE_BF16;
    return is_plain || looks_up(type) ? COLUMNS : 2;
}

// Stores a tile's results of the rows from `row` on.
static void store_tile(const struct tile *t, const struct gemm_column *columns, int64_t n_columns,
                       int64_t row, int64_t n_rows, int64_t tile) {
    for (int c = 0; c < n_columns; ++c) {
        for (int r = 0; r < ROWS; ++r) {
            const int64_t at = gemm_tile_row(n_rows, tile, r);
            if (at < n_rows) columns[c].y[row + at] = t->y[c][r];
        }
    }
}

// False where the type has no such kernel at this level, or there are too many columns for it to
// pay: nothing is computed then.
bool CPU_FN(cpu_mul_vec)(const struct gemm_rows *rows, int64_t row, int64_t n_rows,
                         const struct gemm_column *columns, int64_t n_columns) {
    const bool few = LANES > 1 && n_columns <= most_columns(rows->type) && !rows->repacked;
    const dot_fn dot = few ? choose(rows->type) : NULL;
    if (!dot) return false;
    struct tile t = {.k = rows->k, .ahead = GEMM_APART ? gemm_ahead(rows) : ROWS * rows->stride};
    for (int64_t tile = 0; tile < gemm_tiles(n_rows); ++tile) {
        for (int r = 0; r < ROWS; ++r) {
            const int64_t at = row + MIN(gemm_tile_row(n_rows, tile, r), n_rows - 1);
            t.a[r] = rows->data + (size_t)at * rows->stride;
        }
        for (int64_t c = 0; c < n_columns; c += COLUMNS) {
            const int64_t n = MIN(n_columns - c, COLUMNS);
            for (int i = 0; i < COLUMNS; ++i)
                t.x[i] = columns[c + MIN(i, n - 1)].x;
            dot(&t, n);
            store_tile(&t, columns + c, n, row, n_rows, tile);
        }
    }
    return true;
}
