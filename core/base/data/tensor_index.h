// SPDX-License-Identifier: MIT
// Hash table from tensors to their numbers. A slot holds only the number: the address is compared
// in the numbered structs, which are read next anyway. Tensors made one after the other have
// neighbouring slots, so that walking a graph in order walks the table in order.
#ifndef GGML_BASE_TENSOR_INDEX_H
#define GGML_BASE_TENSOR_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ggml_tensor;

// Zero-initialised is empty, without room. [stream]
struct tensor_index {
    int32_t *slots; // number + 1; 0: free
    size_t mask;    // number of slots - 1
    size_t capacity;
    size_t count;
};

// The numbered structs: an array of elements of `stride` bytes that begin with a pointer to their
// tensor.
struct tensor_list {
    const void *first;
    size_t stride;
};

// Forgets all entries and makes room for `count`; false when memory runs out: the index is then
// empty.
bool tensor_index_clear(struct tensor_index *index, size_t count);
// Room for one more entry; false when memory runs out: the index is then unchanged.
bool tensor_index_grow(struct tensor_index *index, struct tensor_list list);
void tensor_index_free(struct tensor_index *index);

static inline const struct ggml_tensor *tensor_list_at(struct tensor_list list, int32_t number) {
    const char *numbered = (const char *)list.first + (size_t)(uint32_t)number * list.stride;
    return *(struct ggml_tensor *const *)(const void *)numbered;
}

// First slot that is tried.
static inline int32_t *tensor_index_home(const struct tensor_index *index,
                                         const struct ggml_tensor *tensor) {
    // A tensor is larger than 256 bytes.
    return &index->slots[((uintptr_t)tensor >> 8) & index->mask];
}

// Slot of the tensor, or the free slot where it would be entered. If another tensor has the first
// slot, the search goes on in steps that depend on the whole address (double hashing; the step is
// odd, so that it reaches every slot of a power of two). There must be a free slot.
static inline int32_t *tensor_index_find(const struct tensor_index *index, struct tensor_list list,
                                         const struct ggml_tensor *tensor) {
    int32_t *slot = tensor_index_home(index, tensor);
    if (__builtin_expect(*slot == 0 || tensor_list_at(list, *slot - 1) == tensor, 1)) return slot;
    const size_t step = (size_t)(((uint64_t)(uintptr_t)tensor * 0xD6E8FEB86659FD93u) >> 32) | 1u;
    do {
        slot = &index->slots[((size_t)(slot - index->slots) + step) & index->mask];
    } while (*slot != 0 && tensor_list_at(list, *slot - 1) != tensor);
    return slot;
}

// Number of the tensor, or -1. Laid out for callers that nearly always find it in its first slot.
// There must be a free slot.
static inline int32_t tensor_index_at(const struct tensor_index *index, struct tensor_list list,
                                      const struct ggml_tensor *tensor) {
    const int32_t id = *tensor_index_home(index, tensor);
    if (__builtin_expect(id == 0, 0)) return -1;
    if (__builtin_expect(tensor_list_at(list, id - 1) == tensor, 1)) return id - 1;
    return *tensor_index_find(index, list, tensor) - 1;
}

// Number of the tensor, or -1.
static inline int32_t tensor_index_get(const struct tensor_index *index, struct tensor_list list,
                                       const struct ggml_tensor *tensor) {
    return index->slots ? *tensor_index_find(index, list, tensor) - 1 : -1;
}

// Enters the pair unless the tensor is there, and returns its number. There must be room, and
// the list must name the tensor at that number.
static inline int32_t tensor_index_add(struct tensor_index *index, struct tensor_list list,
                                       const struct ggml_tensor *tensor, int32_t number) {
    int32_t *slot = tensor_index_find(index, list, tensor);
    if (*slot != 0) return *slot - 1;
    *slot = number + 1;
    index->count++;
    return number;
}

#endif
