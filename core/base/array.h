// SPDX-License-Identifier: MIT
// Growing arrays. The array stays a plain pointer beside its capacity, so that loops over it need
// no accessors; only growing is written once.
#ifndef GGML_BASE_ARRAY_H
#define GGML_BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Makes the array that `array`, a pointer to the pointer, refers to hold at least `needed` elements
// of `element` bytes. The capacity doubles, which makes appending n elements O(n). false after the
// error was set: the array is then as it was. [any-thread]
bool array_grow_slow(void *array, int32_t *capacity, int64_t needed, size_t element);

// The same where sizes are counted by size_t, as those of texts and messages are: room for `more`
// elements behind n. false when memory runs out, without a message: what is written differs.
// [any-thread]
bool array_extend(void *array, size_t *capacity, size_t n, size_t more, size_t element);

// Inline, as loops that append ask for every element and hardly ever grow.
static inline bool array_grow(void *array, int32_t *capacity, int64_t needed, size_t element) {
    return needed <= *capacity || array_grow_slow(array, capacity, needed, element);
}

// The same for the array `field` of what `owner` points to, whose capacity is `field`_capacity.
#define ARRAY_GROW(owner, field, needed)                                                           \
    array_grow(&(owner)->field, &(owner)->field##_capacity, needed, sizeof((owner)->field[0]))

#endif
