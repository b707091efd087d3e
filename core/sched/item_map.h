// SPDX-License-Identifier: MIT
// Numbers of tensors by address. A slot holds nothing but the number: the address is compared in
// the items themselves, whose neighbours are needed anyway. Tensors that were made one after the
// other lie side by side in the table too, so that walking a graph in order walks the table in
// order.
#ifndef GGML_SCHED_ITEM_MAP_H
#define GGML_SCHED_ITEM_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sched_item;
struct ggml_tensor;

// Zero-initialised is empty, without room. [stream]
struct item_map {
    int32_t *slots; // number + 1; 0: free
    size_t mask;    // number of slots - 1
    size_t capacity;
    size_t count;
};

// Forgets all entries and makes room for `count`; false when memory runs out: the map is then
// empty.
bool item_map_clear(struct item_map *map, size_t count);
// Room for one more entry; false when memory runs out: the map is then unchanged.
bool item_map_grow(struct item_map *map, const struct sched_item *items);
void item_map_free(struct item_map *map);

#endif
