// SPDX-License-Identifier: MIT
// An open-addressing hash table. The number of slots is a power of two, at most half of them are
// used. A slot holds the number plus one, and 0 is empty: clearing is a memset.
#include "base/data/tensor_index.h"

#include <string.h>

#include "base/mem.h"

bool tensor_index_clear(struct tensor_index *index, size_t count) {
    size_t n = 64;
    // At most half full also after `count` entries. The limit keeps the size in bytes from wrapping
    // around.
    while (n / 2 <= count && n <= SIZE_MAX / 8) {
        n *= 2;
    }
    index->count = 0;
    // A larger table of an earlier use is kept, but only its first n slots are used: clearing costs
    // what the new contents need.
    if (n > index->capacity) {
        ggml_mem_free(index->slots);
        *index = (struct tensor_index){.slots = ggml_mem_alloc(n * sizeof(index->slots[0]))};
        if (!index->slots) return false;
        index->capacity = n;
    }
    index->mask = n - 1;
    memset(index->slots, 0, n * sizeof(index->slots[0]));
    return true;
}

bool tensor_index_grow(struct tensor_index *index, struct tensor_list list) {
    if (!index->slots) return tensor_index_clear(index, 1);
    if (2 * (index->count + 1) <= index->mask + 1) return true;
    struct tensor_index grown = {0};
    // Asking for mask + 1 entries doubles the slots at least: growing is O(1) per entry, amortised.
    if (!tensor_index_clear(&grown, index->mask + 1)) return false;
    for (size_t i = 0; i <= index->mask; ++i) {
        const int32_t number = index->slots[i] - 1;
        if (number >= 0) tensor_index_add(&grown, list, tensor_list_at(list, number), number);
    }
    ggml_mem_free(index->slots);
    *index = grown;
    return true;
}

void tensor_index_free(struct tensor_index *index) {
    ggml_mem_free(index->slots);
    *index = (struct tensor_index){0};
}
