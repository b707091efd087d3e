// SPDX-License-Identifier: MIT
#include "base/mem.h"
#include "sched/sched.h"

bool item_map_clear(struct item_map *map, size_t count) {
    size_t n = 64;
    while (n / 2 <= count && n <= SIZE_MAX / 8) {
        n *= 2;
    }
    map->count = 0;
    if (n > map->capacity) {
        ggml_mem_free(map->slots);
        *map = (struct item_map){.slots = ggml_mem_alloc(n * sizeof(map->slots[0]))};
        if (!map->slots) return false;
        map->capacity = n;
    }
    map->mask = n - 1;
    memset(map->slots, 0, n * sizeof(map->slots[0]));
    return true;
}

bool item_map_grow(struct item_map *map, const struct sched_item *items) {
    if (!map->slots) return item_map_clear(map, 1);
    if (2 * (map->count + 1) <= map->mask + 1) return true;
    struct item_map grown = {0};
    if (!item_map_clear(&grown, map->mask + 1)) return false;
    for (size_t i = 0; i <= map->mask; ++i) {
        const int32_t number = map->slots[i] - 1;
        if (number >= 0) item_map_add(&grown, items, items[number].tensor, number);
    }
    ggml_mem_free(map->slots);
    *map = grown;
    return true;
}

void item_map_free(struct item_map *map) {
    ggml_mem_free(map->slots);
    *map = (struct item_map){0};
}
