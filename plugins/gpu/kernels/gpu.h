// SPDX-License-Identifier: MIT
// The language of the kernels: a subset of C++14 and the calls below, with implementations for
// NVIDIA's GPUs (plugins/cuda), for Metal (plugins/metal) and for the emulator of the tests. Only
// this header is included besides args.h; no header of a toolkit is. What Metal does not have is
// not used: double, long long, lambdas, recursion, goto, pointers without an address space.
#ifndef GPU_KERNELS_GPU_H
#define GPU_KERNELS_GPU_H

#include "args.h"

typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef short i16;
typedef unsigned int u32;
typedef int i32;
typedef gpu_word u64;
typedef gpu_number i64;

// clang-format off
// An implementation defines:
//   GPU_KERNEL(name, threads, args, p) { GPU_THREAD(g); ... }
//                                   a kernel of up to `threads` threads; p: its arguments, by value; g: which thread
//                                   this is. Where a launch may begin before those that it depends on have ended, that
//                                   is where it waits for them
//   GPU_FN                          before every other function
//   GPU_FAR                         before one that is called and not inlined: large, for kernels that need not be fast
//   GPU_TABLE(type, name, n)        a constant array: GPU_TABLE(u8, powers, 5) = {...};
//   GPU_SHARED(type, name, n)       an array in shared memory, at the top of a kernel; not initialised
//   GPU_GLOBAL, GPU_LOCAL, GPU_PRIVATE, GPU_ARGS
//                                   what a pointer or reference is to: device memory, shared memory, a variable of
//                                   the thread, the kernel's arguments (which are const)
//   gpu_tid(g), gpu_ntid(g)         number of the thread in its block, threads of a block (one-dimensional)
//   gpu_bid_x/y/z(g), gpu_nbid_x(g) number of the block, blocks in x
//   gpu_sync(g)                     barrier of the block, which orders shared memory
//   gpu_sync_global(g)              one that also orders device memory between the threads of the block
//   gpu_shfl_xor(v, m)              value of the lane whose number differs by m; all 32 lanes call it
//   gpu_bits(f), gpu_float(u)       a float's bits, and back
//   gpu_f16_to_f32, gpu_f32_to_f16  to nearest, ties to even
//   gpu_fma, gpu_sqrt, gpu_floor    correctly rounded
//   gpu_mul                         likewise; never a part of an fma
// clang-format on
#if defined(GPU_EMULATED)
#include "gpu_emulated.h"
#elif defined(__METAL_VERSION__)
#include "gpu_metal.h"
#else
#include "gpu_nvidia.h"
#endif

GPU_FN float gpu_bf16_to_f32(u16 bits) {
    return gpu_float((u32)bits << 16);
}

// To nearest, ties to even; NaN stays NaN.
GPU_FN u16 gpu_f32_to_bf16(float value) {
    const u32 bits = gpu_bits(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (u16)(bits >> 16 | 64u);
    return (u16)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

#endif
