// SPDX-License-Identifier: MIT
// A list of blocks, of which only the newest is taken from: O(1) for each object. Blocks come
// zeroed, and so do objects. A block has 4 KiB, or the size of one larger object.
#include "base/data/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"

enum { BLOCK_SIZE = 4096 };

struct arena_block {
    struct arena_block *next;
    size_t used;
    size_t size;
    alignas(max_align_t) char data[];
};

void *arena_alloc(struct arena *arena, size_t size) {
    const size_t unit = alignof(max_align_t);
    // Rounding up below must not wrap around.
    if (size > SIZE_MAX / 2) return NULL;
    // Every size is a multiple of the strictest alignment, so that the next object starts aligned
    // as well.
    size = (size + unit - 1) / unit * unit;

    struct arena_block *block = arena->blocks;
    if (!block || block->size - block->used < size) {
        const size_t capacity = size > BLOCK_SIZE ? size : BLOCK_SIZE;
        block = ggml_mem_calloc(1, sizeof(*block) + capacity);
        if (!block) return NULL;
        block->size = capacity;
        block->next = arena->blocks;
        arena->blocks = block;
    }
    void *memory = block->data + block->used;
    block->used += size;
    return memory;
}

char *arena_strdup(struct arena *arena, const char *text) {
    const size_t size = strlen(text) + 1;
    char *copy = arena_alloc(arena, size);
    return copy ? memcpy(copy, text, size) : NULL;
}

// O(blocks of `from`): its list is put in front of that of `to`, whose current block is no longer
// allocated from.
void arena_take(struct arena *to, struct arena *from) {
    struct arena_block **end = &from->blocks;
    while (*end)
        end = &(*end)->next;
    *end = to->blocks;
    to->blocks = from->blocks;
    from->blocks = NULL;
}

void arena_free(struct arena *arena) {
    while (arena->blocks) {
        struct arena_block *next = arena->blocks->next;
        ggml_mem_free(arena->blocks);
        arena->blocks = next;
    }
}
