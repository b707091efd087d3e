// SPDX-License-Identifier: MIT
// plugins/cuda/kernels/gpu_tensor.h for the emulator. Exchanges of a warp are done by the lane that
// arrives last; copies are done as late as they may be, when somebody waits for them.
#ifndef SIMT_GPU_TENSOR_EMULATED_H
#define SIMT_GPU_TENSOR_EMULATED_H

#define GPU_HAS_TENSOR_CORES 1
#define GPU_COPIES_AT_ONCE 0 // not of all devices
#define GPU_UNROLL
#define GPU_SHARED_LARGE(type, name, n)                                                            \
    type *const name = (type *)simt_shared_large(sizeof(type) * (n))
#define GPU_KERNEL_FOR(name, threads, blocks, args_type, p) GPU_KERNEL(name, threads, args_type, p)

extern "C" {
bool simt_is_before(u32 capability); // whether the device's is older
void *simt_shared_large(size_t bytes);
void simt_mma(float *d, const u32 *a, const u32 *b, bool is_bf16);
void simt_mma_8(float *d, const u32 *a, const u32 *b);
void simt_needs_bf16(void);
void simt_load_matrices(u32 *r, const void *row, bool turned);
void simt_copy_16(void *to, const void *from, u32 n);
void simt_copy_group(void);
void simt_copy_wait(int most);
void simt_sync_warp(void);
}

// As vectors, which the compiler's instrumentation sees as one access; volatile, since clang reads
// the four words of others one by one.
GPU_FN gpu_words4 gpu_load_16(const void *p) {
    typedef u32 vector __attribute__((vector_size(16)));
    const vector v = *(const volatile vector *)p;
    return {v[0], v[1], v[2], v[3]};
}
GPU_FN gpu_words2 gpu_load_8(const void *p) {
    const u64 v = *(const u64 *)p;
    return {(u32)v, (u32)(v >> 32)};
}
GPU_FN void gpu_store_8(void *p, gpu_words2 words) {
    *(u64 *)p = words.x | (u64)words.y << 32;
}
GPU_FN void gpu_store_16(void *p, gpu_words4 words) {
    typedef u32 vector __attribute__((vector_size(16)));
    const vector v = {words.x, words.y, words.z, words.w};
    *(volatile vector *)p = v;
}
GPU_FN void gpu_sync_warp(gpu_thread) {
    simt_sync_warp();
}
GPU_FN u32 gpu_bytes(u32 a, u32 b, u32 selector) {
    const u64 both = (u64)b << 32 | a;
    u32 r = 0;
    for (u32 i = 0; i < 4; ++i)
        r |= (u32)(both >> (8 * (selector >> (4 * i) & 7u)) & 255u) << (8 * i);
    return r;
}
GPU_FN void gpu_mma_f16_8(float *d, const u32 *a, const u32 *b) {
    simt_mma_8(d, a, b);
}
#include "gpu_tensor_75.h"
GPU_FN void gpu_mma_f16(float *d, const u32 *a, const u32 *b) {
    if (simt_is_before(80))
        gpu_mma_f16_by_halves(d, a, b);
    else
        simt_mma(d, a, b, false);
}
GPU_FN void gpu_mma_bf16(float *d, const u32 *a, const u32 *b) {
    simt_mma(d, a, b, true);
}
GPU_FN void gpu_load_matrices(u32 *r, const void *row) {
    simt_load_matrices(r, row, false);
}
GPU_FN void gpu_load_matrices_turned(u32 *r, const void *row) {
    simt_load_matrices(r, row, true);
}
GPU_FN bool gpu_copies_at_once() {
    return simt_is_before(80);
}
GPU_FN void gpu_copy_16(void *to, const void *from, u32 n) {
    if (gpu_copies_at_once())
        gpu_copy_16_at_once(to, from, n);
    else
        simt_copy_16(to, from, n);
}
GPU_FN void gpu_copy_group() {
    simt_copy_group();
}
template <int N> GPU_FN void gpu_copy_wait() {
    simt_copy_wait(N);
}

// Sums and products of halves are exact in a float's double, so that they are rounded once.
GPU_FN u16 gpu_f64_to_f16(double value) {
    const float f = (float)value;
    // To odd: a float between two halves keeps what was lost.
    u32 bits = gpu_bits(f);
    if (f != 0.0f && value == value && (double)f != value && (bits & 1u) == 0)
        bits += ((double)f < value) == (f > 0) ? 1u : 0xffffffffu;
    return gpu_f32_to_f16(gpu_float(bits));
}
GPU_FN u16 gpu_f64_to_bf16(double value) {
    const float f = (float)value;
    u32 bits = gpu_bits(f);
    if (f != 0.0f && value == value && (double)f != value && (bits & 1u) == 0)
        bits += ((double)f < value) == (f > 0) ? 1u : 0xffffffffu;
    const float odd = gpu_float(bits);
    const u32 b = gpu_bits(odd);
    if ((b & 0x7fffffffu) > 0x7f800000u) return (u16)(b >> 16 | 64u);
    return (u16)((b + 0x7fffu + (b >> 16 & 1u)) >> 16);
}
GPU_FN float gpu_half_of(u32 pair, u32 shift) {
    return gpu_f16_to_f32((u16)(pair >> shift));
}
GPU_FN float gpu_bf16_of(u32 pair, u32 shift) {
    return gpu_float(pair >> shift << 16);
}
GPU_FN u32 gpu_pack_f16(float low, float high) {
    return gpu_f32_to_f16(low) | (u32)gpu_f32_to_f16(high) << 16;
}
GPU_FN u32 gpu_pack_bf16(float low, float high) {
    simt_needs_bf16();
    return gpu_f64_to_bf16((double)low) | (u32)gpu_f64_to_bf16((double)high) << 16;
}
GPU_FN u32 gpu_sub_f16(u32 a, u32 b) {
    u32 r = 0;
    for (u32 i = 0; i < 32; i += 16)
        r |= (u32)gpu_f64_to_f16((double)gpu_half_of(a, i) - (double)gpu_half_of(b, i)) << i;
    return r;
}
GPU_FN u32 gpu_fma_f16(u32 a, u32 b, u32 c) {
    u32 r = 0;
    for (u32 i = 0; i < 32; i += 16)
        r |= (u32)gpu_f64_to_f16((double)gpu_half_of(a, i) * (double)gpu_half_of(b, i) +
                                 (double)gpu_half_of(c, i))
             << i;
    return r;
}
GPU_FN u32 gpu_fma_bf16(u32 a, u32 b, u32 c) {
    simt_needs_bf16();
    u32 r = 0;
    for (u32 i = 0; i < 32; i += 16)
        r |= (u32)gpu_f64_to_bf16((double)gpu_bf16_of(a, i) * (double)gpu_bf16_of(b, i) +
                                  (double)gpu_bf16_of(c, i))
             << i;
    return r;
}

#endif
