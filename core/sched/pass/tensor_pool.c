// SPDX-License-Identifier: MIT
// Blocks of tensors in a list. Clearing the pool goes back to the first block and frees none, so
// that a repeated graph allocates nothing.
#include "sched/pass/tensor_pool.h"

#include <stdint.h>
#include <string.h>

#include "base/mem.h"

enum { BLOCK_TENSORS = 64 };

// Blocks are never moved: tensors are referred to by address.
struct tensor_pool_block {
    struct tensor_pool_block *next;
    size_t used;
    struct ggml_tensor tensors[BLOCK_TENSORS];
};

// The next tensor of the current block, of the block behind it, or of a new one.
struct ggml_tensor *tensor_pool_take(struct tensor_pool *pool) {
    struct tensor_pool_block *block = pool->current;
    if (!block || block->used == BLOCK_TENSORS) {
        struct tensor_pool_block *next = block ? block->next : pool->first;
        if (!next) {
            next = ggml_mem_calloc(1, sizeof(*next));
            if (!next) return NULL;
            *(block ? &block->next : &pool->first) = next;
        }
        next->used = 0;
        pool->current = block = next;
    }
    struct ggml_tensor *tensor = &block->tensors[block->used++];
    memset(tensor, 0, sizeof(*tensor));
    return tensor;
}

// The next tensor is the first of the first block again.
void tensor_pool_clear(struct tensor_pool *pool) {
    pool->current = NULL;
}

// O(blocks): copies fill few.
bool tensor_pool_owns(const struct tensor_pool *pool, const struct ggml_tensor *tensor) {
    const uintptr_t address = (uintptr_t)tensor;
    for (const struct tensor_pool_block *block = pool->first; block; block = block->next) {
        const uintptr_t begin = (uintptr_t)block->tensors;
        if (address >= begin && address < begin + sizeof(block->tensors)) return true;
    }
    return false;
}

void tensor_pool_free(struct tensor_pool *pool) {
    struct tensor_pool_block *block = pool->first;
    while (block) {
        struct tensor_pool_block *next = block->next;
        ggml_mem_free(block);
        block = next;
    }
    *pool = (struct tensor_pool){0};
}
