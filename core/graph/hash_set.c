// SPDX-License-Identifier: MIT
// ggml's hash set of tensors: open addressing with linear probing and prime sizes, as its macros in
// the public headers expect.
#include "base/mem.h"
#include "base/status.h"
#include "ggml-impl.h"

// The smallest prime above each power of two from 2^0.
static const size_t hash_sizes[] = {
    2,        3,        5,        11,        17,        37,        67,         131,
    257,      521,      1031,     2053,      4099,      8209,      16411,      32771,
    65537,    131101,   262147,   524309,    1048583,   2097169,   4194319,    8388617,
    16777259, 33554467, 67108879, 134217757, 268435459, 536870923, 1073741827, 2147483659,
};

// The smallest size in the table that is large enough; beyond the table, the next odd number.
size_t ggml_hash_size(size_t min_sz) {
    const size_t n = sizeof(hash_sizes) / sizeof(hash_sizes[0]);
    for (size_t i = 0; i < n; ++i) {
        if (hash_sizes[i] >= min_sz) return hash_sizes[i];
    }
    // Odd: coprime to the multiples of 16 that addresses are.
    return min_sz | 1;
}

struct ggml_hash_set ggml_hash_set_new(size_t min_sz) {
    struct ggml_hash_set set = {.size = ggml_hash_size(min_sz)};
    set.keys = set.size <= SIZE_MAX / 2 / sizeof(set.keys[0])
                   ? ggml_mem_alloc(set.size * sizeof(set.keys[0]))
                   : NULL;
    set.used = set.keys ? ggml_mem_calloc(ggml_bitset_size(set.size), sizeof(set.used[0])) : NULL;
    if (!set.used) {
        ggml_mem_free(set.keys);
        set = (struct ggml_hash_set){0};
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "ggml_hash_set_new: no memory for %zu tensors", min_sz);
    }
    return set;
}

void ggml_hash_set_free(struct ggml_hash_set *hash_set) {
    if (!hash_set) return;
    ggml_mem_free(hash_set->keys);
    ggml_mem_free(hash_set->used);
    *hash_set = (struct ggml_hash_set){0};
}

// Keys stay: only the bits decide which slots are in use.
void ggml_hash_set_reset(struct ggml_hash_set *hash_set) {
    if (!hash_set || hash_set->size == 0) return;
    memset(hash_set->used, 0, ggml_bitset_size(hash_set->size) * sizeof(hash_set->used[0]));
}
