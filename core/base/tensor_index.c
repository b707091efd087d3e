// SPDX-License-Identifier: MIT
// A power of two of slots, at most half of them taken. A slot holds the number plus one: 0 is
// empty, so that clearing is a memset.
#include "base/tensor_index.h"

#include <string.h>

#include "base/mem.h"

bool tensor_index_clear(struct tensor_index *index, size_t count) {
    size_t n = 64;
    while (n / 2 <= count && n <= SIZE_MAX / 8) {
        n *= 2;
    }
    index->count = 0;
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
