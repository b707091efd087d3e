// SPDX-License-Identifier: MIT
// gpu.h for GPUs, by builtins and inline PTX that nvcc and clang both have.
#ifndef CUDA_KERNELS_GPU_NVIDIA_H
#define CUDA_KERNELS_GPU_NVIDIA_H

#if !defined(__CUDACC_VER_MAJOR__) // clang without NVIDIA's headers
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __grid_constant__
#endif

// One address space, as far as the source is concerned.
#define GPU_GLOBAL
#define GPU_LOCAL
#define GPU_PRIVATE
#define GPU_ARGS const
#define GPU_FN static __device__ __forceinline__
// Not static: nvcc would put a hash of the source's path into the name, and builds in two folders
// would differ.
#define GPU_FAR inline __device__ __attribute__((noinline))
#define GPU_TABLE(type, name, n) static __device__ const type name[n]
#define GPU_SHARED(type, name, n) __shared__ type name[n]
#define GPU_KERNEL(name, threads, args_type, p)                                                    \
    extern "C" __global__ void __launch_bounds__(threads) name(const __grid_constant__ args_type p)

// The registers know it.
struct gpu_thread {};

// Launches that an edge of this kind leads to begin when all blocks of this one have begun; they
// wait, before they touch anything that changes, until this one has ended (gpu_tensor.h).
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
GPU_FN void gpu_begin_next() {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
GPU_FN void gpu_wait_for_launches() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}
#else
GPU_FN void gpu_begin_next() {
}
GPU_FN void gpu_wait_for_launches() {
}
#endif

#define GPU_THREAD_EARLY(g)                                                                        \
    const gpu_thread g = {};                                                                       \
    (void)g;                                                                                       \
    gpu_begin_next()
#define GPU_THREAD(g)                                                                              \
    GPU_THREAD_EARLY(g);                                                                           \
    gpu_wait_for_launches()

#define GPU_REGISTER(function, special)                                                            \
    GPU_FN u32 function(gpu_thread) {                                                              \
        u32 value;                                                                                 \
        asm("mov.u32 %0, %%" special ";" : "=r"(value));                                           \
        return value;                                                                              \
    }
GPU_REGISTER(gpu_tid, "tid.x")
GPU_REGISTER(gpu_ntid, "ntid.x")
GPU_REGISTER(gpu_bid_x, "ctaid.x")
GPU_REGISTER(gpu_bid_y, "ctaid.y")
GPU_REGISTER(gpu_bid_z, "ctaid.z")
GPU_REGISTER(gpu_nbid_x, "nctaid.x")

// Volatile and with memory clobbered: the compiler must move no access to shared memory across.
GPU_FN void gpu_sync(gpu_thread) {
    asm volatile("bar.sync 0;" ::: "memory");
}
GPU_FN void gpu_sync_global(gpu_thread g) {
    gpu_sync(g); // which orders all memory
}
GPU_FN u32 gpu_bits(float value) {
    u32 bits;
    asm("mov.b32 %0, %1;" : "=r"(bits) : "f"(value));
    return bits;
}
GPU_FN float gpu_float(u32 bits) {
    float value;
    asm("mov.b32 %0, %1;" : "=f"(value) : "r"(bits));
    return value;
}
// Of all 32 lanes: callers leave no lane out, also where it has nothing to add. "volatile" keeps
// the shuffle where all lanes still come by.
GPU_FN float gpu_shfl_xor(float value, int mask) {
    float other;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;"
                 : "=f"(other)
                 : "f"(value), "r"(mask));
    return other;
}
// Halves travel as bits, so that no type of a toolkit's header is needed. Exact in this direction,
// rounded to nearest even in the other.
GPU_FN float gpu_f16_to_f32(u16 bits) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}
GPU_FN u16 gpu_f32_to_f16(float value) {
    u16 bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}
// Named, so that no compiler decides between a fused and a rounded product: results are the same
// with nvcc, with clang and on the emulator.
GPU_FN float gpu_fma(float a, float b, float c) {
    float value;
    asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(value) : "f"(a), "f"(b), "f"(c));
    return value;
}
GPU_FN float gpu_mul(float a, float b) {
    float value;
    asm("mul.rn.f32 %0, %1, %2;" : "=f"(value) : "f"(a), "f"(b));
    return value;
}
// Rounded correctly, unlike sqrt.approx.
GPU_FN float gpu_sqrt(float a) {
    float value;
    asm("sqrt.rn.f32 %0, %1;" : "=f"(value) : "f"(a));
    return value;
}
GPU_FN float gpu_floor(float a) {
    float value;
    asm("cvt.rmi.f32.f32 %0, %1;" : "=f"(value) : "f"(a));
    return value;
}

#endif
