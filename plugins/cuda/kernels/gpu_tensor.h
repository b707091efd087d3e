// SPDX-License-Identifier: MIT
// What gpu.h has not, since Metal's kernels don't use it: warp products on tensor cores, copies
// into shared memory that go on while the warp computes, arithmetic on pairs of halves. For sm_75
// and later, and for the emulator. GPU_HAS_TENSOR_CORES: whether the target has them. sm_75 has no
// BF16: kernels with it are compiled, but not launched there (SIMT_TENSOR_BF16).
//
// Fragments of a warp's product of 16 x 16 by 16 x 8, for lane 4 g + c (PTX ISA, "Matrix Fragments
// for mma.m16n8k16"), two neighbours in k per word, the lower one in the low half:
//   a[0], a[2]: row g, k = 2 c and 2 c + 8; a[1], a[3]: the same of row g + 8
//   b[0], b[1]: column g, k = 2 c and 2 c + 8
//   d[0], d[1]: row g, columns 2 c and 2 c + 1; d[2], d[3]: the same of row g + 8
// The order of k is the caller's, as long as it is the same in a and b.
#ifndef CUDA_KERNELS_GPU_TENSOR_H
#define CUDA_KERNELS_GPU_TENSOR_H

#include "gpu.h"

struct alignas(16) gpu_words4 {
    u32 x, y, z, w;
};
struct alignas(8) gpu_words2 {
    u32 x, y;
};

#if defined(GPU_EMULATED)
#include "gpu_tensor_emulated.h"
#else
#include "gpu_tensor_nvidia.h"
#endif

// clang-format off
// GPU_KERNEL_FOR(name, threads, blocks, args, p): as GPU_KERNEL, with registers for so many blocks of a multiprocessor at
// least; without it ptxas may keep some in memory to have more blocks.
// GPU_SHARED_LARGE(type, name, n): as GPU_SHARED, beyond 48 KB: the array whose bytes the launch says, at a multiple of
// 1,024. A kernel has one at most.
// The wrappers; tests/simt/test_primitives.c compares each with its definition:
//   GPU_THREAD_EARLY(g)             in place of GPU_THREAD(g): the kernel does not wait for the launches before its own
//   gpu_wait_for_launches()         here it does. Before, a thread writes no device memory, and reads none that a launch
//                                   may still write; each thread calls it
//   gpu_load_16(p), gpu_load_8(p), gpu_store_16(p, words), gpu_store_8   one access to aligned memory
//   gpu_mma_f16(d, a, b), gpu_mma_bf16   d += a b, sums in F32
//   gpu_mma_f16_8(d, a, b)          the same with half the depth, k < 8: a[0], a[1] and b[0] alone. sm_75 has no other, and
//                                   does gpu_mma_f16 by two
//   gpu_load_matrices(r, row)       ldmatrix: four matrices of 8 x 8 halves; lane i gives the address of row i % 8 of
//                                   matrix i / 8, in shared memory, and gets of each matrix m r[m]: row i / 4, columns
//                                   2 (i % 4) and the next
//   gpu_load_matrices_turned(r, row)   the same with each matrix transposed
//   gpu_copy_16(to, from, n)        begins to copy 16 bytes to shared memory, of which only the first n are read, the
//                                   others 0; both addresses are multiples of 16. sm_75 copies at once: gpu_copies_at_once(), and
//                                   GPU_COPIES_AT_ONCE for sizes of arrays, which the emulator has as of later devices
//   gpu_copy_group()                closes a group of copies
//   gpu_copy_wait<N>()              waits until at most N groups of this thread are under way
//   gpu_sync_warp()                 barrier of the warp, also for shared memory
//   gpu_pack_f16(low, high), gpu_pack_bf16   two floats, rounded to nearest even
//   gpu_sub_f16, gpu_fma_f16, gpu_fma_bf16   on pairs, each rounded once
//   gpu_bytes(a, b, selector)       prmt: byte i of the result is byte (selector >> 4 i & 7) of a, b
// clang-format on

#endif
