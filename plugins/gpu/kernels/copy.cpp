// SPDX-License-Identifier: MIT
// Elements that are moved or converted, one or a block of a coded type per thread.
#include "encode.h"
#include "tensor.h"

GPU_FN void move_bytes(GPU_GLOBAL u8 *to, GPU_GLOBAL const u8 *from, u32 n) {
    for (u32 i = 0; i < n; ++i)
        to[i] = from[i];
}
GPU_FN u64 blocks_per_row(GPU_ARGS gpu_operand &t) {
    return (u64)t.ne[0] / gpu_block_elements(t.type);
}
GPU_FN u64 block_count(GPU_ARGS gpu_operand &t) {
    return blocks_per_row(t) * (u64)t.ne[1] * (u64)t.ne[2] * (u64)t.ne[3];
}

// The same type on both sides: blocks in the order of either.
GPU_KERNEL(kernel_move, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1];
    const u64 i = gpu_index(g);
    if (i >= block_count(y)) return;
    const gpu_at to = gpu_at_of(y, blocks_per_row(y), i), from = gpu_at_of(x, blocks_per_row(x), i);
    move_bytes(gpu_address(y, to), gpu_address(x, from), gpu_block_bytes(y.type));
}

// To a plain type from any.
GPU_KERNEL(kernel_convert, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    const gpu_at from = gpu_element_at(x, i);
    const float value = gpu_element(x, gpu_row(x, from.y, from.z, from.w), from.x);
    gpu_store(y.type, gpu_address(y, gpu_element_at(y, i)), value);
}

// x, tiled.
GPU_KERNEL(kernel_repeat, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1];
    const u64 i = gpu_index(g);
    if (i >= block_count(y)) return;
    const gpu_at to = gpu_at_of(y, blocks_per_row(y), i);
    const gpu_at from = {to.x % blocks_per_row(x), to.y % (u64)x.ne[1], to.z % (u64)x.ne[2],
                         to.w % (u64)x.ne[3]};
    move_bytes(gpu_address(y, to), gpu_address(x, from), gpu_block_bytes(y.type));
}

// a, then b along the dimension params[0].
GPU_KERNEL(kernel_concat, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &a = p.operands[1], &b = p.operands[2];
    const u64 i = gpu_index(g);
    if (i >= block_count(y)) return;
    const gpu_at to = gpu_at_of(y, blocks_per_row(y), i);
    gpu_at from = to;
    const int dim = p.params[0];
    const u64 first = dim == 0 ? blocks_per_row(a) : (u64)a.ne[dim];
    GPU_PRIVATE u64 &along = dim == 0 ? from.x : dim == 1 ? from.y : dim == 2 ? from.z : from.w;
    const bool second = along >= first;
    if (second) along -= first;
    move_bytes(gpu_address(y, to), gpu_address(second ? b : a, from), gpu_block_bytes(y.type));
}

// Rows of a by index. An index that a does not have gives NaN, in I32 0.
GPU_KERNEL(kernel_get_rows, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &a = p.operands[1], &ids = p.operands[2];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    const gpu_at to = gpu_element_at(y, i), id_at = {to.y, to.z, to.w, 0};
    const i64 id = gpu_index_of(ids, gpu_address(ids, id_at));
    const bool known = id >= 0 && id < a.ne[1];
    GPU_GLOBAL const u8 *row = gpu_row(a, known ? (u64)id : 0, to.z, to.w);
    if (y.type == TYPE_I32)
        *(GPU_GLOBAL i32 *)gpu_address(y, to) =
            known ? *(GPU_GLOBAL const i32 *)(row + (i64)to.x * a.nb[0]) : 0;
    else
        *(GPU_GLOBAL float *)gpu_address(y, to) = known ? gpu_element(a, row, to.x) : GPU_NAN;
}

// Rows of b to rows of y by index. Of rows with the same index the last one stays: a thread per
// element of a row goes through all of them.
GPU_KERNEL(kernel_set_rows, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &b = p.operands[1], &ids = p.operands[2];
    const u64 i = gpu_index(g);
    u64 column, z;
    const u64 plane = gpu_divide(i, (u64)b.ne[0], &column), w = gpu_divide(plane, (u64)b.ne[2], &z);
    if (w >= (u64)b.ne[3]) return;
    for (i64 r = 0; r < b.ne[1]; ++r) {
        const gpu_at id_at = {(u64)r, z % (u64)ids.ne[1], w % (u64)ids.ne[2], 0};
        const i64 id = gpu_index_of(ids, gpu_address(ids, id_at));
        if (id < 0 || id >= y.ne[1]) continue;
        const gpu_at from = {column, (u64)r, z, w}, to = {column, (u64)id, z, w};
        gpu_store(y.type, gpu_address(y, to), gpu_load(b.type, gpu_address(b, from)));
    }
}

// Rows, and elements in order, to types with blocks of 32: a thread per block.
GPU_FN void encode_from(GPU_ARGS gpu_operand &x, gpu_at at, int type, GPU_GLOBAL u8 *to) {
    float values[32];
    for (u32 i = 0; i < 32; ++i) {
        const gpu_at from = {at.x + i, at.y, at.z, at.w};
        values[i] = gpu_load(x.type, gpu_address(x, from));
    }
    gpu_encode_block(type, values, to);
}

GPU_KERNEL(kernel_set_rows_encoded, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &b = p.operands[1], &ids = p.operands[2];
    u64 block, z;
    const u64 plane = gpu_divide(gpu_index(g), (u64)b.ne[0] / 32, &block),
              w = gpu_divide(plane, (u64)b.ne[2], &z);
    if (w >= (u64)b.ne[3]) return;
    for (i64 r = 0; r < b.ne[1]; ++r) {
        const gpu_at id_at = {(u64)r, z % (u64)ids.ne[1], w % (u64)ids.ne[2], 0};
        const i64 id = gpu_index_of(ids, gpu_address(ids, id_at));
        if (id < 0 || id >= y.ne[1]) continue;
        const gpu_at from = {32 * block, (u64)r, z, w};
        encode_from(b, from, y.type, gpu_row(y, (u64)id, z, w) + block * gpu_block_bytes(y.type));
    }
}

// A row of y may be several of x, or a part of one.
GPU_KERNEL(kernel_encode, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y) / 32) return;
    const gpu_at to = gpu_at_of(y, (u64)y.ne[0] / 32, i);
    float values[32];
    for (u32 k = 0; k < 32; ++k)
        values[k] = gpu_load(x.type, gpu_address(x, gpu_element_at(x, 32 * i + k)));
    gpu_encode_block(y.type, values, gpu_row(y, to.y, to.z, to.w) + to.x * gpu_block_bytes(y.type));
}

// A square matrix with x in its diagonal.
GPU_KERNEL(kernel_diag, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    const gpu_at to = gpu_element_at(y, i), from = {to.x, 0, to.z, to.w};
    const u32 size = gpu_block_bytes(y.type);
    GPU_GLOBAL u8 *at = gpu_address(y, to);
    GPU_GLOBAL const u8 *source = gpu_address(x, from);
    for (u32 k = 0; k < size; ++k)
        at[k] = to.x == to.y ? source[k] : (u8)0;
}

// Columns that a row does not keep become numbers[1] (a float's bits). numbers[0]: which ones are
// kept, 0 and 1 from the diagonal and from behind it on, 2 and 3 up to it and to before it, 4 up to
// params[0] behind it.
GPU_KERNEL(kernel_triangle, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    const gpu_at at = gpu_element_at(y, i);
    const i64 column = (i64)at.x, row = (i64)at.y;
    bool kept;
    switch ((int)p.numbers[0]) {
    case 0: kept = column >= row; break;
    case 1: kept = column > row; break;
    case 2: kept = column <= row; break;
    case 3: kept = column < row; break;
    default: kept = column <= row + p.params[0]; break;
    }
    *(GPU_GLOBAL float *)gpu_address(y, at) =
        kept ? *(GPU_GLOBAL const float *)gpu_address(x, at) : gpu_float((u32)p.numbers[1]);
}

// params: before and behind by dimension; params[8]: what is repeated instead of zeros.
GPU_KERNEL(kernel_pad, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    const gpu_at to = gpu_element_at(y, i);
    i64 from[4] = {(i64)to.x - p.params[0], (i64)to.y - p.params[2], (i64)to.z - p.params[4],
                   (i64)to.w - p.params[6]};
    bool inside = true;
    for (int d = 0; d < 4; ++d) {
        if (p.params[8]) from[d] = ((from[d] % x.ne[d]) + x.ne[d]) % x.ne[d];
        if (from[d] < 0 || from[d] >= x.ne[d]) inside = false;
    }
    const u32 size = gpu_block_bytes(y.type);
    GPU_GLOBAL u8 *at = gpu_address(y, to);
    const gpu_at source_at = {inside ? (u64)from[0] : 0, inside ? (u64)from[1] : 0,
                              inside ? (u64)from[2] : 0, inside ? (u64)from[3] : 0};
    GPU_GLOBAL const u8 *source = gpu_address(x, source_at);
    for (u32 k = 0; k < size; ++k)
        at[k] = inside ? source[k] : (u8)0;
}

// params: by how much each dimension is moved on, round about.
GPU_KERNEL(kernel_roll, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    const gpu_at to = gpu_element_at(y, i);
    const u64 index[4] = {to.x, to.y, to.z, to.w};
    u64 from[4];
    for (int d = 0; d < 4; ++d)
        from[d] = (index[d] + (u64)(x.ne[d] - p.params[d])) % (u64)x.ne[d];
    const gpu_at source = {from[0], from[1], from[2], from[3]};
    move_bytes(gpu_address(y, to), gpu_address(x, source), gpu_block_bytes(y.type));
}

// params: start, stop, step.
GPU_KERNEL(kernel_arange, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    *(GPU_GLOBAL float *)gpu_address(y, gpu_element_at(y, i)) =
        gpu_wide_add({gpu_param(p, 0), 0.0f},
                     gpu_wide_mul({gpu_param(p, 2), 0.0f}, gpu_wide_of((i64)i)))
            .high;
}
