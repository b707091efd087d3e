// SPDX-License-Identifier: MIT
// gpu.h in Metal's language. SIMD groups have 32 lanes, or a multiple of them: the host checks.
#ifndef METAL_KERNELS_GPU_METAL_H
#define METAL_KERNELS_GPU_METAL_H

#include <metal_stdlib>

// By the name that each version of the compiler knows.
#pragma METAL fp contract(off)
#pragma clang fp contract(off)

// What the checks without Apple's compiler define in other ways.
#if !defined(METAL_ATTRIBUTE)
#define METAL_ATTRIBUTE(...) [[__VA_ARGS__]]
#define METAL_SHARED
#endif

#define GPU_GLOBAL device
#define GPU_LOCAL threadgroup
#define GPU_PRIVATE thread
#define GPU_ARGS constant const
#define GPU_FN static inline
#define GPU_FAR static __attribute__((noinline))
#define GPU_TABLE(type, name, n) constant const type name[n]
#define GPU_SHARED(type, name, n) METAL_SHARED threadgroup type name[n]

struct gpu_thread {
    uint tid, ntid, nbid;
    uint3 bid;
};

#define GPU_KERNEL(name, threads, args_type, p)                                                    \
    METAL_ATTRIBUTE(kernel, max_total_threads_per_threadgroup(threads))                            \
    void name(constant const args_type &p METAL_ATTRIBUTE(buffer(0)),                              \
              uint gpu_tid_ METAL_ATTRIBUTE(thread_index_in_threadgroup),                          \
              uint3 gpu_ntid_ METAL_ATTRIBUTE(threads_per_threadgroup),                            \
              uint3 gpu_bid_ METAL_ATTRIBUTE(threadgroup_position_in_grid),                        \
              uint3 gpu_nbid_ METAL_ATTRIBUTE(threadgroups_per_grid))
#define GPU_THREAD(g)                                                                              \
    const gpu_thread g = {gpu_tid_, gpu_ntid_.x, gpu_nbid_.x, gpu_bid_};                           \
    (void)g

GPU_FN u32 gpu_tid(gpu_thread g) {
    return g.tid;
}
GPU_FN u32 gpu_ntid(gpu_thread g) {
    return g.ntid;
}
GPU_FN u32 gpu_bid_x(gpu_thread g) {
    return g.bid.x;
}
GPU_FN u32 gpu_bid_y(gpu_thread g) {
    return g.bid.y;
}
GPU_FN u32 gpu_bid_z(gpu_thread g) {
    return g.bid.z;
}
GPU_FN u32 gpu_nbid_x(gpu_thread g) {
    return g.nbid;
}
// Both are barriers of the whole threadgroup. The first orders threadgroup memory alone.
GPU_FN void gpu_sync(gpu_thread) {
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
}
GPU_FN void gpu_sync_global(gpu_thread) {
    metal::threadgroup_barrier(metal::mem_flags::mem_device | metal::mem_flags::mem_threadgroup);
}
GPU_FN u32 gpu_bits(float value) {
    return as_type<uint>(value);
}
GPU_FN float gpu_float(u32 bits) {
    return as_type<float>(bits);
}
GPU_FN float gpu_shfl_xor(float value, int mask) {
    return metal::simd_shuffle_xor(value, (ushort)mask);
}
GPU_FN float gpu_f16_to_f32(u16 bits) {
    return (float)as_type<half>(bits);
}
GPU_FN u16 gpu_f32_to_f16(float value) {
    return as_type<ushort>((half)value);
}
GPU_FN float gpu_fma(float a, float b, float c) {
    return metal::fma(a, b, c);
}
// No fma: contraction is off in the whole file.
GPU_FN float gpu_mul(float a, float b) {
    return a * b;
}
// The fast variant, which some options of the compiler choose, is not correctly rounded.
GPU_FN float gpu_sqrt(float a) {
    return metal::precise::sqrt(a);
}
GPU_FN float gpu_floor(float a) {
    return metal::floor(a);
}

#endif
