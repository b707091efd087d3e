// SPDX-License-Identifier: MIT
// Maps names to positions in an array of the owner's.
#ifndef GGML_GGUF_NAME_INDEX_H
#define GGML_GGUF_NAME_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct name_slot {
    uint64_t hash;
    size_t place; // position + 1; 0: free
};

struct name_index {
    struct name_slot *slots;
    size_t capacity; // a power of two, or 0
    size_t count;
    uint64_t seed; // so that a file can't be made of names that collide
};

// The name at a position of the owner's array.
typedef const char *(*name_of)(const void *owner, size_t position);

#define NAME_NOT_FOUND SIZE_MAX

// Position of a name, or NAME_NOT_FOUND. [any-thread]
size_t name_index_find(const struct name_index *index, const char *name, name_of names,
                       const void *owner);
// Room for one more name; false with a message when memory runs out. [stream]
bool name_index_reserve(struct name_index *index);
// Adds a name that isn't there yet, after name_index_reserve(). [stream]
void name_index_add(struct name_index *index, const char *name, size_t position);
// Removes the name at a position, before the owner moves the later elements down by one. [stream]
void name_index_remove(struct name_index *index, size_t position);
void name_index_free(struct name_index *index);

#endif
