// SPDX-License-Identifier: MIT
// Hash table with a power of two of slots, at most half full. Each slot has the era in which it was
// written: emptying the table for the next graph is one increment.
#include "sched/tensor_map.h"

#include "base/mem.h"

static struct tensor_map_slot *new_slots(size_t n) {
    return ggml_mem_calloc(n, sizeof(struct tensor_map_slot));
}

bool tensor_map_clear(struct tensor_map *map, size_t count) {
    size_t n = 64;
    while (n / 2 <= count && n <= SIZE_MAX / 4) {
        n *= 2;
    }
    map->count = 0;
    map->era++;
    if (map->slots && n <= map->mask + 1 && map->era != 0) return true;
    struct tensor_map_slot *slots = new_slots(n);
    if (!slots) {
        tensor_map_free(map);
        return false;
    }
    ggml_mem_free(map->slots);
    *map = (struct tensor_map){.slots = slots, .mask = n - 1, .era = 1};
    return true;
}

bool tensor_map_grow(struct tensor_map *map) {
    if (!map->slots) return tensor_map_clear(map, 1);
    if (2 * (map->count + 1) <= map->mask + 1) return true;
    const size_t n = 2 * (map->mask + 1);
    struct tensor_map grown = {.slots = new_slots(n), .mask = n - 1, .era = 1};
    if (!grown.slots) return false;
    for (size_t i = 0; i <= map->mask; ++i) {
        if (map->slots[i].era == map->era) {
            tensor_map_add(&grown, map->slots[i].key, map->slots[i].value);
        }
    }
    ggml_mem_free(map->slots);
    *map = grown;
    return true;
}

void tensor_map_free(struct tensor_map *map) {
    ggml_mem_free(map->slots);
    *map = (struct tensor_map){0};
}
