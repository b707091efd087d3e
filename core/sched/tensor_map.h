// SPDX-License-Identifier: MIT
// Small integers by tensor address. Tensors that were made one after the other lie side by side in
// the table too, so that walking a graph in order walks the table in order.
#ifndef GGML_SCHED_TENSOR_MAP_H
#define GGML_SCHED_TENSOR_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tensor_map_slot {
    const void *key;
    int32_t value;
    uint32_t era; // the slot is free unless this is the map's
};

// Zero-initialised is empty, without room. [stream]
struct tensor_map {
    struct tensor_map_slot *slots;
    size_t mask; // number of slots - 1
    size_t count;
    uint32_t era;
};

// Forgets all entries and makes room for `count`; false when memory runs out: the map is then
// empty.
bool tensor_map_clear(struct tensor_map *map, size_t count);
// Room for one more entry; false when memory runs out: the map is then unchanged.
bool tensor_map_grow(struct tensor_map *map);
void tensor_map_free(struct tensor_map *map);

// A tensor struct is larger than 256 bytes: neighbours get different homes. Where two regions of
// memory share homes, the second probe and later ones scatter.
static inline struct tensor_map_slot *tensor_map_find(const struct tensor_map *map,
                                                      const void *key) {
    const uint64_t address = (uintptr_t)key;
    const uint64_t region = (address >> 16) * 0x9E3779B97F4A7C15u;
    size_t i = (size_t)((address >> 8) + (region >> 32)) & map->mask;
    if (map->slots[i].era != map->era || map->slots[i].key == key) return &map->slots[i];
    const size_t step = (size_t)((address * 0xD6E8FEB86659FD93u) >> 32) | 1u;
    do {
        i = (i + step) & map->mask;
    } while (map->slots[i].era == map->era && map->slots[i].key != key);
    return &map->slots[i];
}

// Value of the key, or -1.
static inline int32_t tensor_map_get(const struct tensor_map *map, const void *key) {
    if (map->count == 0) return -1;
    const struct tensor_map_slot *slot = tensor_map_find(map, key);
    return slot->era == map->era ? slot->value : -1;
}

// Enters the pair unless the key is there, and returns its value. There must be room.
static inline int32_t tensor_map_add(struct tensor_map *map, const void *key, int32_t value) {
    struct tensor_map_slot *slot = tensor_map_find(map, key);
    if (slot->era == map->era) return slot->value;
    *slot = (struct tensor_map_slot){key, value, map->era};
    map->count++;
    return value;
}

#endif
