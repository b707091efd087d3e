// SPDX-License-Identifier: MIT
// Arena of tensor structs that is emptied for every graph; its addresses stay mapped.
#ifndef GGML_SCHED_TENSOR_POOL_H
#define GGML_SCHED_TENSOR_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include "ggml.h"

struct tensor_pool_block;

// Zero-initialised is empty and ready. [stream]
struct tensor_pool {
    struct tensor_pool_block *first;
    struct tensor_pool_block *current;
};

// A zeroed tensor; NULL when memory runs out.
struct ggml_tensor *tensor_pool_take(struct tensor_pool *pool);
// Takes all tensors back.
void tensor_pool_clear(struct tensor_pool *pool);
// Whether the address is one that take() has returned or may return.
bool tensor_pool_owns(const struct tensor_pool *pool, const struct ggml_tensor *tensor);
void tensor_pool_free(struct tensor_pool *pool);

#endif
