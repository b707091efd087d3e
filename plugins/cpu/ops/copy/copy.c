// SPDX-License-Identifier: MIT
// cpy, cont, dup: elements in logical order (dim 0 fastest) from any layout to any other of as many
// elements. The same type is moved bytewise; other types go through chunks of floats, or of doubles
// where floats would lose something.
#include "ggml-shape.h"
#include "ops/copy/transpose.h"
#include "simd/convert.h"
#include "types/codec.h"
#include "types/unpack.h"

// Whole blocks of every type, also of those with 256 elements.
enum { CHUNK = 512 };

// A position in a tensor, counted in blocks along dim 0.
struct cursor {
    const struct ggml_tensor *t;
    int64_t block; // elements per block
    int64_t width; // blocks per row
    int64_t i0;    // block within the row
    struct ggml_row at;
    char *row;
};

// The place of an element in logical order, which begins a block.
static struct cursor cursor_at(const struct ggml_tensor *t, int64_t element) {
    const int64_t block = ggml_blck_size(t->type);
    struct cursor c = {.t = t, .block = block, .width = t->ne[0] / block};
    const int64_t i = element / block;
    c.i0 = i % c.width;
    c.at = ggml_row_at(t, i / c.width);
    c.row = ggml_row_data(t, c.at);
    return c;
}

static char *cursor_data(const struct cursor *c) {
    return c->row + (size_t)c->i0 * c->t->nb[0];
}

// Blocks left in the row.
static int64_t cursor_run(const struct cursor *c) {
    return c->width - c->i0;
}

// By at most cursor_run() blocks.
static void cursor_advance(struct cursor *c, int64_t n) {
    c->i0 += n;
    if (c->i0 < c->width) return;
    c->i0 = 0;
    if (++c->at.i1 == c->t->ne[1]) {
        c->at.i1 = 0;
        if (++c->at.i2 == c->t->ne[2]) {
            c->at.i2 = 0;
            ++c->at.i3;
        }
    }
    c->row = ggml_row_data(c->t, c->at);
}

// Moves n blocks between strides. Sizes 4 and 2 have loops of their own, which become single
// moves.
static void move_blocks(char *y, size_t y_step, const char *x, size_t x_step, int64_t n,
                        size_t size) {
    if (y_step == size && x_step == size) {
        memmove(y, x, (size_t)n * size);
        return;
    }
    if (size == 4) {
        for (int64_t i = 0; i < n; ++i)
            memcpy(y + (size_t)i * y_step, x + (size_t)i * x_step, 4);
    } else if (size == 2) {
        for (int64_t i = 0; i < n; ++i)
            memcpy(y + (size_t)i * y_step, x + (size_t)i * x_step, 2);
    } else {
        for (int64_t i = 0; i < n; ++i)
            memcpy(y + (size_t)i * y_step, x + (size_t)i * x_step, size);
    }
}

// Moves blocks [begin, end) in runs that end where either side's row ends.
static void copy_same_type(const struct ggml_tensor *dst, const struct ggml_tensor *src,
                           int64_t begin, int64_t end) {
    const struct ggml_type_traits *type = ggml_get_type_traits(dst->type);
    struct cursor from = cursor_at(src, begin * type->blck_size);
    struct cursor to = cursor_at(dst, begin * type->blck_size);
    while (begin < end) {
        const int64_t n = MIN(MIN(cursor_run(&from), cursor_run(&to)), end - begin);
        move_blocks(cursor_data(&to), dst->nb[0], cursor_data(&from), src->nb[0], n,
                    type->type_size);
        cursor_advance(&from, n);
        cursor_advance(&to, n);
        begin += n;
    }
}

// Two packed tensors are one run of bytes per thread.
static enum ggml_status run_same_type(const struct cpu_task *task, const struct ggml_tensor *src) {
    const struct ggml_tensor *dst = task->dst;
    const struct ggml_type_traits *type = ggml_get_type_traits(dst->type);
    int64_t begin, end;
    cpu_task_range(task, ggml_nelements(dst) / type->blck_size, &begin, &end);
    if (begin == end) return GGML_STATUS_SUCCESS;
    if (ggml_is_packed(src) && ggml_is_packed(dst)) {
        const size_t offset = (size_t)begin * type->type_size;
        memmove((char *)dst->data + offset, (char *)src->data + offset,
                (size_t)(end - begin) * type->type_size);
        return GGML_STATUS_SUCCESS;
    }
    copy_same_type(dst, src, begin, end);
    return GGML_STATUS_SUCCESS;
}

// Decodes the next n elements to floats; whole runs at a time where they are dense.
static void gather(struct cursor *c, cpu_unpack_fn unpack, float *y, int64_t n) {
    const size_t size = ggml_type_size(c->t->type);
    while (n > 0) {
        const int64_t run = MIN(cursor_run(c), n / c->block);
        const char *x = cursor_data(c);
        if (c->t->nb[0] == size) {
            unpack(x, y, run * c->block);
        } else {
            for (int64_t i = 0; i < run; ++i)
                unpack(x + (size_t)i * c->t->nb[0], y + i * c->block, c->block);
        }
        cursor_advance(c, run);
        y += run * c->block;
        n -= run * c->block;
    }
}

// Encodes n floats as the next elements.
static void scatter(struct cursor *c, cpu_pack_fn pack, const float *x, int64_t n) {
    const size_t size = ggml_type_size(c->t->type);
    while (n > 0) {
        const int64_t run = MIN(cursor_run(c), n / c->block);
        char *y = cursor_data(c);
        if (c->t->nb[0] == size) {
            pack(x, y, run * c->block);
        } else {
            for (int64_t i = 0; i < run; ++i)
                pack(x + i * c->block, y + (size_t)i * c->t->nb[0], c->block);
        }
        cursor_advance(c, run);
        x += run * c->block;
        n -= run * c->block;
    }
}

// Converts by way of chunks of floats, which begin at multiples of CHUNK and so of every block.
static enum ggml_status run_converted(const struct cpu_task *task, const struct ggml_tensor *src) {
    const struct ggml_tensor *dst = task->dst;
    const cpu_unpack_fn unpack = CPU_FN(cpu_unpack)(src->type);
    const cpu_pack_fn pack = CPU_FN(cpu_pack)(dst->type);
    const int64_t n = ggml_nelements(dst);
    float buffer[CHUNK];
    int64_t begin, end;
    cpu_task_range(task, (n + CHUNK - 1) / CHUNK, &begin, &end);
    if (begin == end) return GGML_STATUS_SUCCESS;
    struct cursor from = cursor_at(src, begin * CHUNK);
    struct cursor to = cursor_at(dst, begin * CHUNK);
    for (int64_t i = begin * CHUNK; i < MIN(end * CHUNK, n); i += CHUNK) {
        const int64_t count = MIN(n - i, CHUNK);
        gather(&from, unpack, buffer, count);
        scatter(&to, pack, buffer, count);
    }
    return GGML_STATUS_SUCCESS;
}

// n elements at the cursor, from or to dense memory.
static void move_dense(struct cursor *c, char *dense, int64_t n, bool out) {
    const size_t size = ggml_type_size(c->t->type);
    while (n > 0) {
        const int64_t run = MIN(cursor_run(c), n / c->block);
        if (out)
            move_blocks(cursor_data(c), c->t->nb[0], dense, size, run, size);
        else
            move_blocks(dense, size, cursor_data(c), c->t->nb[0], run, size);
        cursor_advance(c, run);
        dense += (size_t)run * size;
        n -= run * c->block;
    }
}

// Converts by way of doubles: for 64-bit types and for integers that floats don't hold.
static enum ggml_status run_wide(const struct cpu_task *task, const struct ggml_tensor *src) {
    const struct ggml_tensor *dst = task->dst;
    const int64_t n = ggml_nelements(dst);
    double values[CHUNK];
    double dense[CHUNK]; // no type is wider
    int64_t begin, end;
    cpu_task_range(task, (n + CHUNK - 1) / CHUNK, &begin, &end);
    if (begin == end) return GGML_STATUS_SUCCESS;
    struct cursor from = cursor_at(src, begin * CHUNK);
    struct cursor to = cursor_at(dst, begin * CHUNK);
    for (int64_t i = begin * CHUNK; i < MIN(end * CHUNK, n); i += CHUNK) {
        const int64_t count = MIN(n - i, CHUNK);
        move_dense(&from, (char *)dense, count, false);
        cpu_to_double(src->type, dense, values, count);
        cpu_from_double(dst->type, values, dense, count);
        move_dense(&to, (char *)dense, count, true);
    }
    return GGML_STATUS_SUCCESS;
}

// A copy of a tensor to itself is nothing.
enum ggml_status CPU_FN(cpu_copy)(const struct cpu_task *task) {
    const struct ggml_tensor *src = task->dst->src[0];
    if (src->data == task->dst->data && ggml_are_same_layout(src, task->dst))
        return GGML_STATUS_SUCCESS;
    if (src->type == task->dst->type) {
        if (CPU_FN(cpu_transpose)(task, src)) return GGML_STATUS_SUCCESS;
        return run_same_type(task, src);
    }
    if (cpu_converts_wide(src->type, task->dst->type)) return run_wide(task, src);
    return run_converted(task, src);
}
