// SPDX-License-Identifier: MIT
// Copies between tensors of one shape and type whose adjacent elements lie along different
// dimensions, by square tiles as wide as a line of the cache: each line is read and written once
// and as a whole.
#include "ops/copy/transpose.h"
#include "ggml-shape.h"
#include "simd/transpose.h"

enum { LINE = 64 };

struct transposition {
    const struct ggml_tensor *src, *dst;
    size_t size;  // of an element
    int from, to; // the dimensions along which elements of src and of dst are adjacent
    int others[2];
    int64_t tile;
};

// The first dimension with adjacent elements; -1: there is none that is as long as half a tile.
static int adjacent_dim(const struct ggml_tensor *t, size_t size) {
    for (int i = 0; i < GGML_MAX_DIMS; ++i) {
        if (t->nb[i] == size && t->ne[i] * (int64_t)size >= LINE / 2) return i;
    }
    return -1;
}

static bool find_dims(struct transposition *t, const struct ggml_tensor *dst,
                      const struct ggml_tensor *src) {
    const size_t size = ggml_type_size(src->type);
    *t = (struct transposition){.src = src, .dst = dst, .size = size};
    if (ggml_blck_size(src->type) != 1 || (size != 2 && size != 4)) return false;
    if (!ggml_are_same_shape(src, dst)) return false;
    t->tile = (int64_t)(LINE / size);
    t->from = adjacent_dim(src, size);
    t->to = adjacent_dim(dst, size);
    if (t->from < 0 || t->to < 0 || t->from == t->to) return false;
    int n = 0;
    for (int i = 0; i < GGML_MAX_DIMS; ++i) {
        if (i != t->from && i != t->to) t->others[n++] = i;
    }
    return true;
}

// Element j of each of n_rows rows of the tile, for n of them, to a row of dst.
static void write_tile(const struct transposition *t, const char *tile, char *y, int64_t n_rows,
                       int64_t n) {
    const size_t stride = t->dst->nb[t->from];
    if (t->size == 2) {
        for (int64_t j = 0; j < n; ++j) {
            for (int64_t i = 0; i < n_rows; ++i)
                memcpy(y + (size_t)j * stride + (size_t)i * 2, tile + i * LINE + j * 2, 2);
        }
        return;
    }
    float turned[LINE / sizeof(float)][LINE / sizeof(float)];
    const float *from = (const float *)(const void *)tile;
    for (int64_t i = 0; i < t->tile; i += QUAD) {
        for (int64_t j = 0; j < t->tile; j += QUAD) {
            quad rows[QUAD];
            transpose_quads(from + i * t->tile + j, t->tile, rows);
            for (int r = 0; r < QUAD; ++r)
                quad_store(&turned[j + r][i], rows[r]);
        }
    }
    for (int64_t j = 0; j < n; ++j) {
        if (n_rows == t->tile)
            memcpy(y + (size_t)j * stride, turned[j], LINE);
        else
            memcpy(y + (size_t)j * stride, turned[j], (size_t)n_rows * sizeof(float));
    }
}

// n_rows rows of n adjacent elements of src, from x on, to n rows of dst, from y on.
static void move_tile(const struct transposition *t, const char *x, char *y, int64_t n_rows,
                      int64_t n) {
    _Alignas(LINE) char tile[LINE * LINE / 2]; // 16 rows of floats, 32 of halves
    if (n_rows < t->tile || n < t->tile) memset(tile, 0, sizeof(tile)); // all of it is turned
    const size_t stride = t->src->nb[t->to];
    for (int64_t i = 0; i < n_rows; ++i) {
        if (n == t->tile)
            memcpy(tile + i * LINE, x + (size_t)i * stride, LINE);
        else
            memcpy(tile + i * LINE, x + (size_t)i * stride, (size_t)n * t->size);
    }
    write_tile(t, tile, y, n_rows, n);
}

// Threads share the tiles; those of one row of tiles of dst follow each other.
bool CPU_FN(cpu_transpose)(const struct cpu_task *task, const struct ggml_tensor *src) {
    struct transposition t;
    if (!find_dims(&t, task->dst, src)) return false;
    const int64_t *ne = src->ne, others[] = {ne[t.others[0]], ne[t.others[1]]};
    const int64_t columns = (ne[t.from] + t.tile - 1) / t.tile;
    const int64_t rows = (ne[t.to] + t.tile - 1) / t.tile;
    int64_t begin, end;
    cpu_task_range(task, rows * columns * others[0] * others[1], &begin, &end);
    for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t row = unit % rows * t.tile, column = unit / rows % columns * t.tile;
        const int64_t other = unit / rows / columns;
        const int64_t at[] = {other % others[0], other / others[0]};
        const char *x =
            (const char *)src->data + (size_t)column * t.size + (size_t)row * src->nb[t.to];
        char *y =
            (char *)task->dst->data + (size_t)column * task->dst->nb[t.from] + (size_t)row * t.size;
        for (int i = 0; i < 2; ++i) {
            x += (size_t)at[i] * src->nb[t.others[i]];
            y += (size_t)at[i] * task->dst->nb[t.others[i]];
        }
        move_tile(&t, x, y, MIN(ne[t.to] - row, t.tile), MIN(ne[t.from] - column, t.tile));
    }
    return true;
}
