// SPDX-License-Identifier: MIT
// What sm_90a has besides gpu_tensor.h: barriers that count arrivals and bytes, copies of many
// bytes by one thread, products of four warps whose right operand lies in shared memory.
// GPU_HAS_WARPGROUPS: whether the target has them.
//
// The right operand of a product of 64 x 16 by 16 x N is a tile of N columns of 64 halves: column n
// at 128 n bytes, its 16 bytes c at 16 (c ^ n % 8) in it (the swizzle of 128 bytes of PTX ISA,
// "Asynchronous warpgroup level matrix operations"). The left operand is in registers: warp w of
// the four has rows 16 w to 16 w + 15 as in gpu_tensor.h. d[4 j + e] is row 16 w + lane / 4 + 8 (e
// / 2), column 8 j + 2 (lane % 4) + e % 2.
#ifndef CUDA_KERNELS_GPU_WARPGROUP_H
#define CUDA_KERNELS_GPU_WARPGROUP_H

#include "gpu_tensor.h"

#if defined(GPU_EMULATED)
#include "gpu_warpgroup_emulated.h"
#else
#include "gpu_warpgroup_nvidia.h"
#endif

// clang-format off
// The wrappers; tests/simt/test_warpgroup.c compares each with its definition:
//   gpu_barrier_init(b, n)               by one thread: a barrier of n arrivals. Phases have numbers; the first is 0
//   gpu_barrier_publish()                after that, before the block's own barrier
//   gpu_barrier_arrive(b)                one arrival
//   gpu_barrier_expect(b, bytes)         the same, and the phase has so many bytes to wait for
//   gpu_barrier_wait(b, parity)          until the phase whose number has this parity has ended; the thread then sees what
//                                        was done before the arrivals
//   gpu_copy_arrive(b)                   one arrival, when the gpu_copy_16 that this thread began are done
//   gpu_bulk_copy(to, from, bytes, b)    begins to copy to shared memory, in units of 16 bytes; the phase of b counts them
//   gpu_fence_async()                    what this thread wrote to shared memory, or copied there and waited for, is there
//                                        for products of who comes after it by a barrier
//   gpu_wgmma_operand(tile)              the number by which a product finds a tile; + 2 for each 16 elements of k
//   gpu_wgmma_operand_turned(tile, n)    of a tile whose rows are k: row k of 64 columns at 128 k bytes, with the same
//                                        swizzle, by k; the next 64 columns n bytes further on. + 128 for each 16 rows
//   gpu_wgmma_begin()                    before products of a group: registers are as written
//   gpu_wgmma<N, BF16>(d, a, operand)    d += a b; N is 32 (F16), 48, 64, 128 or 256. All four warps call it
//   gpu_wgmma_turned<N, BF16>(...)       the same of a tile whose rows are k; N is 128 or 256
//   gpu_wgmma_commit()                   closes a group of products
//   gpu_wgmma_finish(d)                  waits for all groups, whose sums d has then; before, nobody touches a, d or the tile
//   gpu_registers_fewer<N>(), _more<N>   what each thread of the four warps needs from now on
//   gpu_opaque(x)                        leaves x as it is; what is computed of it later isn't computed before
// clang-format on

#endif
