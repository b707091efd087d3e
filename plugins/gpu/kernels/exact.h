// SPDX-License-Identifier: MIT
// Conversions between plain types that a float would lose something of: integers and F64, which not
// every GPU computes with. Numbers are whole multiples of powers of two, rounded once, to nearest
// even, or towards zero and to the nearest end of the range for integers.
#ifndef GPU_KERNELS_EXACT_H
#define GPU_KERNELS_EXACT_H

#include "decode.h"

enum gpu_exact_kind { EXACT_FINITE, EXACT_INFINITE, EXACT_NAN };

// mantissa 2^exponent.
struct gpu_exact {
    int kind, exponent;
    bool negative;
    u64 mantissa;
};

// Significant bits.
// Binary search, six steps.
GPU_FN int gpu_bit_length(u64 m) {
    int n = 0;
    for (int step = 32; step > 0; step >>= 1) {
        if (m >> step == 0) continue;
        m >>= step;
        n += step;
    }
    return n + (int)m;
}

GPU_FN gpu_exact gpu_exact_of_whole(i64 value) {
    const bool negative = value < 0;
    return {EXACT_FINITE, 0, negative, negative ? 0 - (u64)value : (u64)value};
}
// From the bits of a format with `width` bits of mantissa and `range` of exponent.
GPU_FN gpu_exact gpu_exact_of_bits(u64 bits, int width, int range) {
    const u64 rest = bits & (((u64)1 << width) - 1);
    const int field = (int)(bits >> width) & ((1 << range) - 1);
    const int least = 2 - (1 << (range - 1)) - width;
    const bool negative = (bits >> (width + range) & 1) != 0;
    // `least` is the exponent of the last bit of subnormal and of the smallest normal numbers: -149
    // of floats.
    if (field == (1 << range) - 1) return {rest ? EXACT_NAN : EXACT_INFINITE, 0, negative, 0};
    if (field == 0) return {EXACT_FINITE, least, negative, rest};
    return {EXACT_FINITE, least + field - 1, negative, rest | (u64)1 << width};
}
// The reverse, rounded.
GPU_FN u64 gpu_exact_to_bits(gpu_exact x, int width, int range) {
    const u64 sign = (u64)x.negative << (width + range), infinity = (((u64)1 << range) - 1)
                                                                    << width;
    if (x.kind == EXACT_NAN) return sign | infinity | (u64)1 << (width - 1);
    if (x.kind == EXACT_INFINITE) return sign | infinity;
    const int least = 2 - (1 << (range - 1)) - width;
    u64 m = x.mantissa;
    // Bits are dropped until the mantissa has width + 1 of them, or until the last one stands for
    // the least exponent: then the result is subnormal.
    const int excess = gpu_bit_length(m) - (width + 1), below = least - x.exponent;
    const int drop = excess > below ? excess : below;
    if (m == 0 || drop > 64) return sign;
    int e = x.exponent + drop;
    if (drop > 0) {
        const u64 kept = drop < 64 ? m >> drop : 0, tie = (u64)1 << (drop - 1);
        // More than half, or half with an odd last bit, rounds up: to nearest even.
        const u64 rest = drop < 64 ? m & ((tie << 1) - 1) : m;
        m = kept + (rest > tie || (rest == tie && (kept & 1)));
    } else {
        m <<= -drop;
    }
    if (m >> (width + 1)) { // it was rounded up to the next power of two
        m >>= 1;
        ++e;
    }
    const bool normal = (m >> width) != 0;
    const u64 field = normal ? (u64)(e - least + 1) : 0;
    if (field >= ((u64)1 << range) - 1) return sign | infinity;
    return sign | field << width | (m & (((u64)1 << width) - 1));
}
// As an integer of so many bits; NaN is 0.
GPU_FN i64 gpu_exact_to_whole(gpu_exact x, int bits) {
    const u64 limit = (u64)1 << (bits - 1);
    if (x.kind == EXACT_NAN) return 0;
    u64 size = x.exponent < -63 ? 0 : x.exponent < 0 ? x.mantissa >> -x.exponent : x.mantissa;
    if (x.kind == EXACT_INFINITE ||
        (x.exponent > 0 && size != 0 && gpu_bit_length(size) + x.exponent >= bits))
        size = limit;
    else if (x.exponent > 0)
        size <<= x.exponent;
    if (x.negative) return size >= limit ? -(i64)(limit - 1) - 1 : -(i64)size;
    return size >= limit ? (i64)(limit - 1) : (i64)size;
}

GPU_FN gpu_exact gpu_exact_load(int type, GPU_GLOBAL const void *p) {
    switch (type) {
    case TYPE_I8: return gpu_exact_of_whole(*(GPU_GLOBAL const i8 *)p);
    case TYPE_I16: return gpu_exact_of_whole(*(GPU_GLOBAL const i16 *)p);
    case TYPE_I32: return gpu_exact_of_whole(*(GPU_GLOBAL const i32 *)p);
    case TYPE_I64: return gpu_exact_of_whole(*(GPU_GLOBAL const i64 *)p);
    case TYPE_F64: return gpu_exact_of_bits(*(GPU_GLOBAL const u64 *)p, 52, 11);
    default: return gpu_exact_of_bits(gpu_bits(gpu_load(type, p)), 23, 8);
    }
}
GPU_FN void gpu_exact_store(int type, GPU_GLOBAL void *p, gpu_exact x) {
    switch (type) {
    case TYPE_I8: *(GPU_GLOBAL i8 *)p = (i8)gpu_exact_to_whole(x, 8); break;
    case TYPE_I16: *(GPU_GLOBAL i16 *)p = (i16)gpu_exact_to_whole(x, 16); break;
    case TYPE_I32: *(GPU_GLOBAL i32 *)p = (i32)gpu_exact_to_whole(x, 32); break;
    case TYPE_I64: *(GPU_GLOBAL i64 *)p = gpu_exact_to_whole(x, 64); break;
    case TYPE_F64: *(GPU_GLOBAL u64 *)p = gpu_exact_to_bits(x, 52, 11); break;
    case TYPE_F16: *(GPU_GLOBAL u16 *)p = (u16)gpu_exact_to_bits(x, 10, 5); break;
    case TYPE_BF16: *(GPU_GLOBAL u16 *)p = (u16)gpu_exact_to_bits(x, 7, 8); break;
    default: *(GPU_GLOBAL u32 *)p = (u32)gpu_exact_to_bits(x, 23, 8); break;
    }
}

// An element of any plain type as a float.
GPU_FN float gpu_load_any(int type, GPU_GLOBAL const void *p) {
    if (type != TYPE_F64 && type != TYPE_I64) return gpu_load(type, p);
    return gpu_float((u32)gpu_exact_to_bits(gpu_exact_load(type, p), 23, 8));
}

#endif
