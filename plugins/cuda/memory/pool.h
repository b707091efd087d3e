// SPDX-License-Identifier: MIT
// Small buffers of a device share a range of addresses that grows with them.
#ifndef CUDA_MEMORY_POOL_H
#define CUDA_MEMORY_POOL_H

#include <pthread.h>
#include <stdbool.h>

#include "memory/range.h"

// Larger buffers are allocations of their own.
#define CUDA_POOL_MOST ((size_t)4 << 20)

// A part of the range, free or taken; the next one begins where it ends.
struct cuda_piece {
    CUdeviceptr begin;
    size_t bytes;
    bool is_taken;
    struct cuda_piece *next;
};

struct cuda_pool {
    pthread_mutex_t mutex; // of what follows
    struct cuda_range range;
    struct cuda_piece *pieces; // all memory of the range, in order
};

// [init]
void cuda_pool_init(struct cuda_pool *pool);
// All pieces were given back. The context is current, or there is nothing to give back.
void cuda_pool_free(struct cuda_context *context);
// Memory for `bytes`, a multiple of the buffers' alignment that is at most CUDA_POOL_MOST.
// UNSUPPORTED: the driver has no memory that grows. The context is current. [any-thread]
enum ggml_host_status cuda_pool_take(struct cuda_context *context, size_t bytes,
                                     struct cuda_piece **out_piece);
// No work uses it any more. The context is current. [any-thread]
void cuda_pool_give_back(struct cuda_context *context, struct cuda_piece *piece);
// Lets kernels of another device reach what lies in the pool, now and later. The context is
// current. [any-thread]
enum ggml_host_status cuda_pool_admit(struct cuda_context *context, CUdevice device);

#endif
