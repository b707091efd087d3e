// SPDX-License-Identifier: MIT
// Open addressing with linear probing (Knuth, TAOCP 3, 6.4), at most three quarters full. The hash
// is seeded for each index, so that no file can be made whose names all collide.
#include "gguf/name_index.h"

#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/status.h"

// Mixes a word: each input bit changes about half of the output bits.
static uint64_t mix(uint64_t x) {
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

// Eight bytes at a time; the length is mixed in first, so that a tail of zeros differs from none.
static uint64_t hash_of(const struct name_index *index, const char *name) {
    uint64_t hash = index->seed;
    size_t left = strlen(name);
    hash ^= left;
    for (; left >= sizeof(uint64_t); left -= sizeof(uint64_t), name += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, name, sizeof(word));
        hash = mix(hash ^ word) + index->seed;
    }
    uint64_t tail = 0;
    memcpy(&tail, name, left);
    return mix(hash ^ tail);
}

// Compares hashes before strings: a wrong slot costs no access to the owner's memory. O(1)
// expected.
size_t name_index_find(const struct name_index *index, const char *name, name_of names,
                       const void *owner) {
    if (index->count == 0) return NAME_NOT_FOUND;
    const uint64_t hash = hash_of(index, name);
    const size_t mask = index->capacity - 1;
    for (size_t i = (size_t)hash & mask; index->slots[i].place > 0; i = (i + 1) & mask) {
        const struct name_slot *slot = &index->slots[i];
        if (slot->hash == hash && strcmp(names(owner, slot->place - 1), name) == 0) {
            return slot->place - 1;
        }
    }
    return NAME_NOT_FOUND;
}

// Puts the slot into the first free one after its home; there is one, as the table is never full.
static void put(struct name_index *index, struct name_slot slot) {
    const size_t mask = index->capacity - 1;
    size_t i = (size_t)slot.hash & mask;
    while (index->slots[i].place > 0) {
        i = (i + 1) & mask;
    }
    index->slots[i] = slot;
}

// Doubles the table and enters all slots again; their hashes are kept.
bool name_index_reserve(struct name_index *index) {
    if (index->count < index->capacity / 4 * 3) return true;
    struct name_index grown = *index;
    grown.capacity = index->capacity > 0 ? index->capacity * 2 : 16;
    grown.slots = ggml_mem_calloc(grown.capacity, sizeof(grown.slots[0]));
    if (!grown.slots) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "gguf: no memory for an index of %zu names",
                  grown.capacity);
        return false;
    }
    if (grown.seed == 0) {
        // Seeded from the table's address and the time. The author of a file can't predict both,
        // which is sufficient here.
        grown.seed = mix((uint64_t)(uintptr_t)grown.slots ^ mix((uint64_t)time(NULL))) | 1;
    }
    for (size_t i = 0; i < index->capacity; ++i) {
        if (index->slots[i].place > 0) put(&grown, index->slots[i]);
    }
    ggml_mem_free(index->slots);
    *index = grown;
    return true;
}

void name_index_add(struct name_index *index, const char *name, size_t position) {
    put(index, (struct name_slot){hash_of(index, name), position + 1});
    index->count++;
}

// Deletes slot `freed` without a tombstone: later entries of the same run that would no longer be
// found move up (Knuth's algorithm R).
static void remove_slot(struct name_index *index, size_t freed) {
    const size_t mask = index->capacity - 1;
    for (size_t i = (freed + 1) & mask; index->slots[i].place > 0; i = (i + 1) & mask) {
        const size_t home = (size_t)index->slots[i].hash & mask;
        if (((i - home) & mask) < ((i - freed) & mask)) continue;
        index->slots[freed] = index->slots[i];
        freed = i;
    }
    index->slots[freed].place = 0;
}

// Positions after the removed one decrease by one, as in the owner's array. O(capacity): keys are
// removed rarely.
void name_index_remove(struct name_index *index, size_t position) {
    size_t freed = NAME_NOT_FOUND;
    for (size_t i = 0; i < index->capacity; ++i) {
        if (index->slots[i].place == position + 1) {
            freed = i;
        } else if (index->slots[i].place > position + 1) {
            index->slots[i].place--;
        }
    }
    if (freed == NAME_NOT_FOUND) return;
    remove_slot(index, freed);
    index->count--;
}

void name_index_free(struct name_index *index) {
    ggml_mem_free(index->slots);
    *index = (struct name_index){0};
}
