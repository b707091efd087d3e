// SPDX-License-Identifier: MIT
// Elements that are moved or converted, one or a block of a coded type per thread.
#include "encode_large.h"
#include "exact.h"
#include "tensor.h"

// As the largest units that both lie at multiples of: neighbouring threads then read and write
// whole sectors at a time.
GPU_FN void move_bytes(GPU_GLOBAL u8 *to, GPU_GLOBAL const u8 *from, u32 n) {
    // The lowest set bit of both addresses and the length gives the largest unit that divides all
    // three.
    const u32 places = (u32)(u64)to | (u32)(u64)from | n;
    if (places % 4 == 0) {
        for (u32 i = 0; i < n; i += 4)
            *(GPU_GLOBAL u32 *)(to + i) = *(GPU_GLOBAL const u32 *)(from + i);
    } else if (places % 2 == 0) {
        for (u32 i = 0; i < n; i += 2)
            *(GPU_GLOBAL u16 *)(to + i) = *(GPU_GLOBAL const u16 *)(from + i);
    } else {
        for (u32 i = 0; i < n; ++i)
            to[i] = from[i];
    }
}
// Moves count in blocks: a type that is not coded has blocks of one element.
GPU_FN u64 blocks_per_row(GPU_ARGS gpu_operand &t) {
    return (u64)t.ne[0] / gpu_block_elements(t.type);
}
GPU_FN u64 block_count(GPU_ARGS gpu_operand &t) {
    return blocks_per_row(t) * (u64)t.ne[1] * (u64)t.ne[2] * (u64)t.ne[3];
}

// The same type on both sides: blocks in the order of either.
// Number i is split by each side's own extents: shapes may differ as long as both sides have
// equally many blocks.
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

// Between plain types of which one is an integer or F64, or to F64 from any.
GPU_KERNEL(kernel_convert_exact, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    const gpu_at from = gpu_element_at(x, i);
    gpu_exact value;
    // A coded element is decoded to a float first: a format of 23 bits of mantissa and 8 of
    // exponent.
    if (gpu_block_elements(x.type) > 1)
        value = gpu_exact_of_bits(
            gpu_bits(gpu_element_far(x, gpu_row(x, from.y, from.z, from.w), from.x)), 23, 8);
    else
        value = gpu_exact_load(x.type, gpu_address(x, from));
    gpu_exact_store(y.type, gpu_address(y, gpu_element_at(y, i)), value);
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
    // `along` is the index in that dimension: below a's extent it selects from a, beyond it, less
    // that extent, from b. Dimension 0 is counted in blocks.
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
    // Dimensions 1 to 3 of y are 0 to 2 of the indices, of which 1 and 2 are dimensions 2 and 3 of
    // a. An unknown index reads row 0, which exists, and drops the value.
    const gpu_at to = gpu_element_at(y, i), id_at = {to.y, to.z, to.w, 0};
    const i64 id = gpu_index_of(ids, gpu_address(ids, id_at));
    const bool known = id >= 0 && id < a.ne[1];
    GPU_GLOBAL const u8 *row = gpu_row(a, known ? (u64)id : 0, to.z, to.w);
    const bool wide = a.type == TYPE_F64 || a.type == TYPE_I64;
    if (wide)
        *(GPU_GLOBAL float *)gpu_address(y, to) =
            known ? gpu_load_any(a.type, row + (i64)to.x * a.nb[0]) : GPU_NAN;
    else if (y.type == TYPE_I32)
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
        // Indices may be shared by several planes of rows.
        const gpu_at id_at = {(u64)r, z % (u64)ids.ne[1], w % (u64)ids.ne[2], 0};
        const i64 id = gpu_index_of(ids, gpu_address(ids, id_at));
        if (id < 0 || id >= y.ne[1]) continue;
        const gpu_at from = {column, (u64)r, z, w}, to = {column, (u64)id, z, w};
        const float value = gpu_load(b.type, gpu_address(b, from));
        if (y.type == TYPE_F32 || y.type == TYPE_F16 || y.type == TYPE_BF16)
            gpu_store(y.type, gpu_address(y, to), value);
        else
            gpu_exact_store(y.type, gpu_address(y, to), gpu_exact_of_bits(gpu_bits(value), 23, 8));
    }
}

// Rows, and elements in order, to types with blocks: a thread per block. Blocks of 32 and larger
// ones have kernels of their own, for the memory of a thread.
GPU_FN void read_of_row(GPU_ARGS gpu_operand &x, gpu_at at, u32 n, GPU_PRIVATE float *values) {
    for (u32 i = 0; i < n; ++i) {
        const gpu_at from = {at.x + i, at.y, at.z, at.w};
        values[i] = gpu_load(x.type, gpu_address(x, from));
    }
}
// Elements from number `first` on, of any type.
GPU_FN void read_in_order(GPU_ARGS gpu_operand &x, u64 first, u32 n, GPU_PRIVATE float *values) {
    for (u32 i = 0; i < n; ++i) {
        const gpu_at from = gpu_element_at(x, first + i);
        values[i] = x.type == TYPE_F64
                        ? gpu_load_any(x.type, gpu_address(x, from))
                        : gpu_element_far(x, gpu_row(x, from.y, from.z, from.w), from.x);
    }
}

// Block `number` of a row of b, of all planes of rows.
struct block_place {
    u64 block, z, w;
};
GPU_FN block_place block_place_of(GPU_ARGS gpu_operand &b, u64 number, u32 n) {
    block_place place;
    const u64 plane = gpu_divide(number, (u64)b.ne[0] / n, &place.block);
    place.w = gpu_divide(plane, (u64)b.ne[2], &place.z);
    return place;
}
// Row of y for row r of b; -1: y has none.
GPU_FN i64 target_row(GPU_ARGS gpu_operand &y, GPU_ARGS gpu_operand &ids, i64 r,
                      block_place place) {
    const gpu_at id_at = {(u64)r, place.z % (u64)ids.ne[1], place.w % (u64)ids.ne[2], 0};
    const i64 id = gpu_index_of(ids, gpu_address(ids, id_at));
    return id >= 0 && id < y.ne[1] ? id : -1;
}

GPU_KERNEL(kernel_set_rows_encoded, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &b = p.operands[1], &ids = p.operands[2];
    const block_place place = block_place_of(b, gpu_index(g), 32);
    if (place.w >= (u64)b.ne[3]) return;
    for (i64 r = 0; r < b.ne[1]; ++r) {
        const i64 id = target_row(y, ids, r, place);
        if (id < 0) continue;
        float values[32];
        const gpu_at from = {32 * place.block, (u64)r, place.z, place.w};
        read_of_row(b, from, 32, values);
        gpu_encode_block(y.type, values,
                         gpu_row(y, (u64)id, place.z, place.w) +
                             place.block * gpu_block_bytes(y.type));
    }
}
GPU_KERNEL(kernel_set_rows_large, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &b = p.operands[1], &ids = p.operands[2];
    const u32 n = gpu_block_elements(y.type);
    const block_place place = block_place_of(b, gpu_index(g), n);
    if (place.w >= (u64)b.ne[3]) return;
    for (i64 r = 0; r < b.ne[1]; ++r) {
        const i64 id = target_row(y, ids, r, place);
        if (id < 0) continue;
        float values[LARGE_BLOCK];
        const gpu_at from = {n * place.block, (u64)r, place.z, place.w};
        read_of_row(b, from, n, values);
        gpu_encode_large_block(y.type, values,
                               gpu_row(y, (u64)id, place.z, place.w) +
                                   place.block * gpu_block_bytes(y.type));
    }
}

// A row of y may be several of x, or a part of one.
GPU_KERNEL(kernel_encode, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1];
    const u64 i = gpu_index(g);
    // Block i takes elements 32 i to 32 i + 31 of x, counted through all of its dimensions.
    if (i >= gpu_count(y) / 32) return;
    const gpu_at to = gpu_at_of(y, (u64)y.ne[0] / 32, i);
    float values[32];
    read_in_order(x, 32 * i, 32, values);
    gpu_encode_block(y.type, values, gpu_row(y, to.y, to.z, to.w) + to.x * gpu_block_bytes(y.type));
}
GPU_KERNEL(kernel_encode_large, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1];
    const u32 n = gpu_block_elements(y.type);
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y) / n) return;
    const gpu_at to = gpu_at_of(y, (u64)y.ne[0] / n, i);
    float values[LARGE_BLOCK];
    read_in_order(x, n * i, n, values);
    gpu_encode_large_block(y.type, values,
                           gpu_row(y, to.y, to.z, to.w) + to.x * gpu_block_bytes(y.type));
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
        // The remainder of a negative number is not positive: + ne, and the remainder again.
        if (p.params[8]) from[d] = ((from[d] % x.ne[d]) + x.ne[d]) % x.ne[d];
        if (from[d] < 0 || from[d] >= x.ne[d]) inside = false;
    }
    const gpu_at source = {(u64)from[0], (u64)from[1], (u64)from[2], (u64)from[3]};
    gpu_move_element(y, to, x, source, inside);
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
        // A shift is less than the extent, so that the sum is positive.
        from[d] = (index[d] + (u64)(x.ne[d] - p.params[d])) % (u64)x.ne[d];
    const gpu_at source = {from[0], from[1], from[2], from[3]};
    move_bytes(gpu_address(y, to), gpu_address(x, source), gpu_block_bytes(y.type));
}

// params: start, stop, step.
// Evaluated as sums of two floats: i and i step keep all digits until the single rounding at the
// end.
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

// --- regions -------------------------------------------------------------------------------------

// Where an element of the result lies in the region that b fills: at most one place, where rows of
// the region lie one behind the other.
// Mixed-radix decomposition of the offset, from the slowest dimension on. It finds the only element
// there, because each stride is at least the span of the faster dimensions (region_overlaps() in
// simt/copy.c). In a gap behind a row the index of dimension 0 exceeds the extent.
GPU_FN bool place_in_region(GPU_ARGS gpu_args &p, i64 offset, GPU_PRIVATE gpu_at *out_at) {
    GPU_ARGS gpu_operand &b = p.operands[2];
    u64 at[4] = {0, 0, 0, 0}, rest = (u64)offset;
    for (int d = 3; d > 0; --d) {
        const u64 step = (u32)p.params[d - 1];
        if (b.ne[d] <= 1 || step == 0) continue;
        at[d] = rest / step;
        if (at[d] >= (u64)b.ne[d]) at[d] = (u64)b.ne[d] - 1;
        rest -= at[d] * step;
    }
    at[0] = rest / gpu_block_bytes(b.type);
    *out_at = {at[0], at[1], at[2], at[3]};
    return offset >= 0 && at[0] < (u64)b.ne[0];
}

// Whether b's row r covers the element.
GPU_FN bool row_in_region(GPU_ARGS gpu_args &p, i64 offset, u64 r, GPU_PRIVATE gpu_at *out_at) {
    GPU_ARGS gpu_operand &b = p.operands[2];
    *out_at = gpu_row_at(b, r);
    const i64 size = gpu_block_bytes(b.type);
    const i64 begin = (i64)(out_at->y * (u32)p.params[0] + out_at->z * (u32)p.params[1] +
                            out_at->w * (u32)p.params[2]);
    if (offset < begin || offset >= begin + b.ne[0] * size) return false;
    out_at->x = (u64)(offset - begin) / (u64)size;
    return true;
}

// acc and set: a, with a region, which has b's extents and the strides params[0] to [2], from byte
// params[3] on, added to (numbers[0] is 1) or overwritten. y and a are packed, and may be one.
// numbers[1]: 1: rows of the region may overlap: each element then goes through all of b's, in
// order.
GPU_KERNEL(kernel_region, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &a = p.operands[1], &b = p.operands[2];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    const u32 size = gpu_block_bytes(y.type);
    const bool adds = p.numbers[0] != 0, in_order = p.numbers[1] != 0;
    GPU_GLOBAL u8 *to = (GPU_GLOBAL u8 *)y.data + i * size;
    GPU_GLOBAL const u8 *from = (GPU_GLOBAL const u8 *)a.data + i * size;
    const i64 offset = (i64)(i * size) - (i64)(u32)p.params[3];
    // Time for an element: constant, or linear in the rows of the region.
    const u64 rows = in_order ? (u64)(b.ne[1] * b.ne[2] * b.ne[3]) : gpu_count(b) > 0 ? 1 : 0;
    float sum = adds ? *(GPU_GLOBAL const float *)from : 0.0f;
    for (u64 r = 0; r < rows; ++r) {
        gpu_at at;
        if (!(in_order ? row_in_region(p, offset, r, &at) : place_in_region(p, offset, &at)))
            continue;
        GPU_GLOBAL const u8 *term = gpu_address(b, at);
        if (adds)
            sum += *(GPU_GLOBAL const float *)term;
        else
            from = term;
    }
    if (adds)
        *(GPU_GLOBAL float *)to = sum;
    else
        move_bytes(to, from, size);
}
