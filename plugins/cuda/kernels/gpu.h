// SPDX-License-Identifier: MIT
// The language of the kernels: a subset of C++ and the calls below, with an implementation for GPUs
// (nvcc or clang) and one for the emulator of the tests. Only this header is included besides
// args.h; no header of a toolkit is.
#ifndef CUDA_KERNELS_GPU_H
#define CUDA_KERNELS_GPU_H

typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef short i16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;

// An implementation defines:
//   GPU_KERNEL(name, threads, args, p) { ... }  a kernel of up to `threads` threads; p: its
//   arguments, by value GPU_FN                          before every other function GPU_TABLE(type,
//   name, n)        a constant array: GPU_TABLE(u8, powers, 5) = {...}; GPU_SHARED(type, name, n)
//   an array in shared memory, at the top of a function; not initialised gpu_tid, gpu_ntid number
//   of the thread in its block, threads of a block (one-dimensional) gpu_bid_x/y/z, gpu_nbid_x
//   number of the block, blocks in x gpu_sync()                      barrier of the block
//   gpu_shfl_xor(v, m)              value of the lane whose number differs by m; all 32 lanes call
//   it gpu_bits(f), gpu_float(u)       a float's bits, and back gpu_f16_to_f32, gpu_f32_to_f16  to
//   nearest, ties to even gpu_fma, gpu_sqrt, gpu_floor    correctly rounded
#if defined(GPU_EMULATED)
#include "gpu_emulated.h"
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
