// SPDX-License-Identifier: MIT
// gpu_tensor.h for GPUs: one instruction each, by inline PTX. Capability 7.5 has products of half
// the depth, no BF16, and copies that are done at once.
#ifndef CUDA_KERNELS_GPU_TENSOR_NVIDIA_H
#define CUDA_KERNELS_GPU_TENSOR_NVIDIA_H

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 750
#define GPU_HAS_TENSOR_CORES 1
#define GPU_COPIES_AT_ONCE (__CUDA_ARCH__ < 800)
#else
#define GPU_HAS_TENSOR_CORES 0
#define GPU_COPIES_AT_ONCE 0
#endif

#define GPU_UNROLL _Pragma("unroll")
#define GPU_KERNEL_FOR(name, threads, blocks, args_type, p)                                        \
    extern "C" __global__ void __launch_bounds__(threads, blocks)                                  \
        name(const __grid_constant__ args_type p)

#define GPU_SHARED_LARGE(type, name, n)                                                            \
    extern __shared__ __attribute__((aligned(1024))) u8 gpu_large_memory[];                        \
    type *const name = (type *)gpu_large_memory

GPU_FN gpu_words4 gpu_load_16(const void *p) {
    return *(const gpu_words4 *)p;
}
GPU_FN gpu_words2 gpu_load_8(const void *p) {
    return *(const gpu_words2 *)p;
}
GPU_FN void gpu_store_8(void *p, gpu_words2 words) {
    *(gpu_words2 *)p = words;
}
GPU_FN void gpu_store_16(void *p, gpu_words4 words) {
    *(gpu_words4 *)p = words;
}
GPU_FN void gpu_sync_warp(gpu_thread) {
    asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
}
GPU_FN u32 gpu_bytes(u32 a, u32 b, u32 selector) {
    u32 r;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(selector));
    return r;
}
// Number of an address in shared memory's own window.
GPU_FN u32 gpu_shared_address(const void *p) {
    u32 a;
    asm("{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }" : "=r"(a) : "l"(p));
    return a;
}

#if GPU_HAS_TENSOR_CORES
GPU_FN void gpu_mma_f16_8(float *d, const u32 *a, const u32 *b) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}
#endif

GPU_FN constexpr bool gpu_copies_at_once() {
    return GPU_COPIES_AT_ONCE;
}

#if GPU_HAS_TENSOR_CORES && __CUDA_ARCH__ < 800
#include "gpu_tensor_75.h"

GPU_FN void gpu_mma_f16(float *d, const u32 *a, const u32 *b) {
    gpu_mma_f16_by_halves(d, a, b);
}
GPU_FN void gpu_copy_16(void *to, const void *from, u32 n) {
    gpu_copy_16_at_once(to, from, n);
}
GPU_FN void gpu_copy_group() {
}
template <int N> GPU_FN void gpu_copy_wait() {
    asm volatile("" ::: "memory");
}

GPU_FN u32 gpu_pack_f16(float low, float high) {
    u32 r;
    asm("{ .reg .b16 l, h; cvt.rn.f16.f32 l, %1; cvt.rn.f16.f32 h, %2; mov.b32 %0, {l, h}; }"
        : "=r"(r)
        : "f"(low), "f"(high));
    return r;
}

// Kernels that round to BF16 are not launched there (SIMT_TENSOR_BF16).
GPU_FN void gpu_mma_bf16(float *, const u32 *, const u32 *) {
    asm volatile("trap;");
}
GPU_FN u32 gpu_pack_bf16(float, float) {
    asm volatile("trap;");
    return 0;
}
GPU_FN u32 gpu_fma_bf16(u32, u32, u32) {
    asm volatile("trap;");
    return 0;
}

#elif GPU_HAS_TENSOR_CORES
#define GPU_MMA(name, type)                                                                        \
    GPU_FN void name(float *d, const u32 *a, const u32 *b) {                                       \
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type                        \
                     ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                  \
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                              \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));          \
    }
GPU_MMA(gpu_mma_f16, "f16")
GPU_MMA(gpu_mma_bf16, "bf16")
#undef GPU_MMA

GPU_FN void gpu_copy_16(void *to, const void *from, u32 n) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(gpu_shared_address(to)),
                 "l"(from), "r"(n)
                 : "memory");
}
GPU_FN void gpu_copy_group() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int N> GPU_FN void gpu_copy_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

GPU_FN u32 gpu_pack_f16(float low, float high) {
    u32 r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}
GPU_FN u32 gpu_pack_bf16(float low, float high) {
    u32 r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}
GPU_FN u32 gpu_fma_bf16(u32 a, u32 b, u32 c) {
    u32 r;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
    return r;
}
#endif

#if GPU_HAS_TENSOR_CORES
GPU_FN void gpu_load_matrices(u32 *r, const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(gpu_shared_address(row))
                 : "memory");
}
GPU_FN void gpu_load_matrices_turned(u32 *r, const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(gpu_shared_address(row))
                 : "memory");
}

GPU_FN u32 gpu_sub_f16(u32 a, u32 b) {
    u32 r;
    asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}
GPU_FN u32 gpu_fma_f16(u32 a, u32 b, u32 c) {
    u32 r;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
    return r;
}
#endif

#endif
