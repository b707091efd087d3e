// SPDX-License-Identifier: MIT
// Weights of any type as the left operand of products on tensor cores: rows are copied to shared
// memory as they are, in pieces of 16 bytes from a multiple of 32 on, which is where a sector of
// device memory begins, and decoded into registers.
//
// Within each 16 elements of k the order is one that suits the decoder: lane 4 g + c holds elements
// 4 c to 4 c + 3, the first two as k = 2 c of the fragment, the others as k = 2 c + 8. The right
// operand has the same order, so that the sum is the same.
//
// Rows lie an odd multiple of 16 bytes apart (32 for types without blocks): eight rows' 16 bytes
// are then in different banks.
#ifndef CUDA_KERNELS_FRAGMENTS_H
#define CUDA_KERNELS_FRAGMENTS_H

#include "four.h"
#include "gpu_tensor.h"
#include "tensor.h"

enum { SECTOR = 32 };

template <int TYPE_, int ELEMENTS_, int BYTES_, int DEPTH_> struct weights {
    enum {
        TYPE = TYPE_,
        ELEMENTS = ELEMENTS_,
        BYTES = BYTES_,
        DEPTH = DEPTH_, // elements of a row that are copied at a time
        USED = DEPTH / ELEMENTS * BYTES,
        CHUNKS = (USED + SECTOR - 1 + 15) / 16, // of 16 bytes, wherever the row begins
        SEGMENTS = (CHUNKS + 7) / 8,            // of eight lanes
        UNIT = ELEMENTS == 1 ? 32 : 16,
        PITCH = SEGMENTS * 128 + UNIT,
        // BF16 has no more digits; the scales of MXFP4 are beyond what F16 can have.
        AS_BF16 = TYPE == TYPE_BF16 || TYPE == TYPE_MXFP4,
        HAS_OFFSET = TYPE == TYPE_Q4_1 || TYPE == TYPE_Q5_1 || TYPE == TYPE_Q2_K ||
                     TYPE == TYPE_Q4_K || TYPE == TYPE_Q5_K,
    };
};

#if GPU_HAS_TENSOR_CORES

// Begins to copy what `n_rows` rows have from byte `first` on; row r begins at rows + r * stride
// and has row_bytes. Rows from `last` on are copies of it, which nobody stores.
template <class W>
GPU_FN void copy_rows(gpu_thread g, u8 *to, const u8 *rows, i64 stride, u32 n_rows, u32 last,
                      i64 first, i64 row_bytes) {
    GPU_UNROLL
    for (u32 i = gpu_tid(g) / 8; i < n_rows * W::SEGMENTS; i += gpu_ntid(g) / 8) {
        const u32 r = i / W::SEGMENTS, chunk = i % W::SEGMENTS * 8 + gpu_tid(g) % 8;
        const u8 *row = rows + (i64)(r < last ? r : last) * stride;
        const u64 begin = (u64)(row + first), aligned = begin & ~(u64)(SECTOR - 1);
        const u64 from = aligned + 16 * chunk, end = (u64)(row + row_bytes);
        // What nobody needs is not read.
        const bool used = from < end && from < begin + W::USED;
        gpu_copy_16(to + r * W::PITCH + 16 * chunk, (const void *)(used ? from : aligned),
                    !used             ? 0u
                    : end - from < 16 ? (u32)(end - from)
                                      : 16u);
    }
}

// Four bytes less the type's bias as two pairs of F16, without rounding: 1024 + byte is a half with
// the byte in the lowest bits.
GPU_FN void bytes_as_halves(int type, u32 bytes, u32 *pairs) {
    const u32 bias = 0x64006400u + 0x00010001u * (u32)gpu_four_bias(type);
    pairs[0] = gpu_sub_f16(gpu_bytes(bytes, 0x64646464u, 0x4140), bias);
    pairs[1] = gpu_sub_f16(gpu_bytes(bytes, 0x64646464u, 0x4342), bias);
}

// Elements 4 c to 4 c + 3 as the words of a fragment.
template <class W> GPU_FN void four_as_words(gpu_four f, u32 *low, u32 *high) {
    if (W::AS_BF16) { // 128 + byte is a BF16
        const u32 bias = gpu_pack_bf16(-128.0f - (float)gpu_four_bias(W::TYPE),
                                       -128.0f - (float)gpu_four_bias(W::TYPE));
        const u32 scale = gpu_pack_bf16(f.scale, f.scale);
        const u32 x = gpu_bytes(f.bytes, 0x43434343u, 0x4140),
                  y = gpu_bytes(f.bytes, 0x43434343u, 0x4342);
        *low = gpu_fma_bf16(gpu_fma_bf16(x, 0x3f803f80u, bias), scale, 0x80008000u);
        *high = gpu_fma_bf16(gpu_fma_bf16(y, 0x3f803f80u, bias), scale, 0x80008000u);
    } else {
        const u32 scale = gpu_pack_f16(f.scale, f.scale);
        const u32 offset = W::HAS_OFFSET ? gpu_pack_f16(f.offset, f.offset) : 0x80008000u;
        u32 pairs[2];
        bytes_as_halves(W::TYPE, f.bytes, pairs);
        *low = gpu_fma_f16(pairs[0], scale, offset);
        *high = gpu_fma_f16(pairs[1], scale, offset);
    }
}

// Of the row that begins at p: elements k + 4 c to k + 4 c + 3, k a multiple of 16.
template <class W> GPU_FN void row_words(const u8 *p, u32 k, u32 c, u32 *low, u32 *high) {
    if (W::ELEMENTS == 1) {
        const gpu_words2 pair = gpu_load_8(p + (k + 4 * c) * 2);
        *low = pair.x;
        *high = pair.y;
    } else {
        const gpu_four f =
            gpu_four_at(W::TYPE, p + k / W::ELEMENTS * W::BYTES, k % W::ELEMENTS + 4 * c);
        four_as_words<W>(f, low, high);
    }
}

// The left operand: rows g and g + 8.
template <class W>
GPU_FN void decode_fragment(const u8 *row, const u8 *row_8, u32 k, u32 c, u32 *a) {
    row_words<W>(row, k, c, &a[0], &a[2]);
    row_words<W>(row_8, k, c, &a[1], &a[3]);
}

template <class W> GPU_FN void multiply_fragments(float *d, const u32 *a, const u32 *b) {
    if (W::AS_BF16)
        gpu_mma_bf16(d, a, b);
    else
        gpu_mma_f16(d, a, b);
}

// --- a bias --------------------------------------------------------------------------------------

// Operand 4 of a product from row m on, of the column and matrix; 0: there is none. It has one
// column or all of them.
GPU_FN const u8 *bias_at(const gpu_args &p, u64 m, u64 n, u64 z, u64 w) {
    const gpu_operand &bias = p.operands[4];
    if (!bias.data) return 0;
    return gpu_row(bias, bias.ne[1] > 1 ? n : 0, z % (u64)bias.ne[2], w % (u64)bias.ne[3]) + 4 * m;
}
GPU_FN i64 bias_pitch(const gpu_args &p) {
    return p.operands[4].ne[1] > 1 ? p.operands[4].nb[1] : 0;
}

// --- activations ---------------------------------------------------------------------------------

// Four neighbours of a dense row of F32, F16 or BF16 as floats.
GPU_FN void load_four(int type, const u8 *row, u64 i, float *out) {
    if (type == TYPE_F32) {
        const gpu_words4 words = gpu_load_16(row + 4 * i);
        out[0] = gpu_float(words.x);
        out[1] = gpu_float(words.y);
        out[2] = gpu_float(words.z);
        out[3] = gpu_float(words.w);
        return;
    }
    const gpu_words2 words = gpu_load_8(row + 2 * i);
    const u16 halves[4] = {(u16)words.x, (u16)(words.x >> 16), (u16)words.y, (u16)(words.y >> 16)};
    GPU_UNROLL
    for (int e = 0; e < 4; ++e)
        out[e] = type == TYPE_F16 ? gpu_f16_to_f32(halves[e]) : gpu_bf16_to_f32(halves[e]);
}

// As words of the right operand, times a power of two.
template <class W> GPU_FN void pack_four(const float *x, float scale, u32 *b) {
    if (W::AS_BF16) {
        b[0] = gpu_pack_bf16(x[0], x[1]);
        b[1] = gpu_pack_bf16(x[2], x[3]);
    } else {
        b[0] = gpu_pack_f16(x[0] * scale, x[1] * scale);
        b[1] = gpu_pack_f16(x[2] * scale, x[3] * scale);
    }
}

// Activations are rounded to F16 as they are, and the largest of each column is found on the way. A
// column whose largest element is beyond F16, or so small that F16 has few digits for the others,
// is computed again after a power of two has taken that to [2^14, 2^15). Exponents are the bits of
// a float's; 254 minus one is that of the inverse.
enum { NO_SCALE = 127 };
// 2^-8 and 65,504: between them F16 holds the largest without a scale.
GPU_FN u32 scale_exponent(float largest) {
    if (largest == 0.0f || (largest >= 0.00390625f && largest <= 65504.0f)) return NO_SCALE;
    const i32 e = (i32)(gpu_bits(largest) >> 23 & 255u), wanted = 127 + 14 - (e - 127);
    return (u32)(wanted > 253 ? 253 : wanted < 1 ? 1 : wanted);
}
GPU_FN float power_of_exponent(u32 e) {
    return gpu_float(e << 23);
}
GPU_FN float larger_of_four(float largest, const float *x) {
    GPU_UNROLL
    for (int e = 0; e < 4; ++e)
        largest = gpu_larger(largest, gpu_abs(x[e]));
    return largest;
}

#endif
#endif
