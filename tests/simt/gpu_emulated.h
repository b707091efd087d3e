// SPDX-License-Identifier: MIT
// plugins/gpu/kernels/gpu.h for the emulator: kernels as C++ for the host.
#ifndef SIMT_GPU_EMULATED_H
#define SIMT_GPU_EMULATED_H

#include <stddef.h>
#include <string.h>

// The host has one address space.
#define GPU_GLOBAL
#define GPU_LOCAL
#define GPU_PRIVATE
#define GPU_ARGS const
#define GPU_FN static inline
#define GPU_FAR static __attribute__((noinline, unused))
#define GPU_TABLE(type, name, n) static const type name[n]

struct simt_kernel {
    const char *name;
    void (*body)(const void *args);
    size_t args_size;
    unsigned max_threads;
    simt_kernel *next;
};
extern "C" void simt_register(simt_kernel *kernel);

#define GPU_KERNEL(name, threads, args_type, p)                                                    \
    static void name##_body(const args_type &p);                                                   \
    static simt_kernel name##_kernel = {                                                           \
        #name, [](const void *args) { name##_body(*(const args_type *)args); }, sizeof(args_type), \
        threads, 0};                                                                               \
    __attribute__((constructor)) static void name##_register() {                                   \
        simt_register(&name##_kernel);                                                             \
    }                                                                                              \
    static void name##_body(const args_type &p)

// Each declaration has a key of its own, by which all threads of a block find the same memory.
#define GPU_SHARED(type, name, n)                                                                  \
    static const char name##_key = 0;                                                              \
    type *const name = (type *)simt_shared(&name##_key, sizeof(type) * (n))

// The emulator knows it.
struct gpu_thread {};
#define GPU_THREAD_EARLY(g)                                                                        \
    const gpu_thread g = {};                                                                       \
    (void)g
#define GPU_THREAD(g)                                                                              \
    GPU_THREAD_EARLY(g);                                                                           \
    simt_wait_for_launches()

struct simt_self {
    u32 tid, ntid, bid_x, bid_y, bid_z, nbid_x;
};
extern "C" {
extern thread_local simt_self simt_me __attribute__((tls_model("initial-exec")));
void *simt_shared(const void *key, size_t bytes);
void simt_barrier(bool orders_global);
void simt_wait_for_launches(void);
u32 simt_shfl_xor(u32 value, int mask);
}

GPU_FN u32 gpu_tid(gpu_thread) {
    return simt_me.tid;
}
GPU_FN u32 gpu_ntid(gpu_thread) {
    return simt_me.ntid;
}
GPU_FN u32 gpu_bid_x(gpu_thread) {
    return simt_me.bid_x;
}
GPU_FN u32 gpu_bid_y(gpu_thread) {
    return simt_me.bid_y;
}
GPU_FN u32 gpu_bid_z(gpu_thread) {
    return simt_me.bid_z;
}
GPU_FN u32 gpu_nbid_x(gpu_thread) {
    return simt_me.nbid_x;
}
GPU_FN void gpu_wait_for_launches() {
    simt_wait_for_launches();
}
GPU_FN void gpu_sync(gpu_thread) {
    simt_barrier(false);
}
GPU_FN void gpu_sync_global(gpu_thread) {
    simt_barrier(true);
}
GPU_FN u32 gpu_bits(float value) {
    return __builtin_bit_cast(u32, value);
}
GPU_FN float gpu_float(u32 bits) {
    return __builtin_bit_cast(float, bits);
}
GPU_FN float gpu_shfl_xor(float value, int mask) {
    return gpu_float(simt_shfl_xor(gpu_bits(value), mask));
}
GPU_FN float gpu_fma(float a, float b, float c) {
    return __builtin_fmaf(a, b, c);
}
GPU_FN float gpu_mul(float a, float b) {
    return a * b; // the kernels are compiled without contraction
}
GPU_FN float gpu_sqrt(float a) {
    return __builtin_sqrtf(a);
}
GPU_FN float gpu_floor(float a) {
    return __builtin_floorf(a);
}

GPU_FN float gpu_f16_to_f32(u16 bits) {
    const u32 sign = (u32)(bits & 0x8000u) << 16, size = bits & 0x7fffu;
    if (size >= 0x7c00u) return gpu_float(sign | size << 13 | 0x70000000u);
    // Exponents of the two formats differ by 112; subnormal halves are normal floats.
    return gpu_float(sign | gpu_bits(gpu_float(size << 13) * 5.192296858534828e33f));
}
GPU_FN u16 gpu_f32_to_f16(float value) {
    const u32 bits = gpu_bits(value), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
    if (size > 0x7f800000u) return (u16)(sign | 0x7e00u);
    if (size >= 0x477ff000u) return (u16)(sign | 0x7c00u);
    if (size >= 0x38800000u) return (u16)(sign | (size + 0xc8000fffu + (size >> 13 & 1u)) >> 13);
    if (size < 0x33000000u) return (u16)sign;
    const u32 shift = 126u - (size >> 23), mantissa = (size & 0x007fffffu) | 0x00800000u;
    const u32 half = mantissa >> shift, rest = mantissa - (half << shift), tie = 1u << (shift - 1u);
    return (u16)(sign | (half + (rest > tie || (rest == tie && (half & 1u)))));
}

#endif
