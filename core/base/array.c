// SPDX-License-Identifier: MIT
// Growing of arrays: see array.h.
#include "base/array.h"

#include <string.h>

#include "base/mem.h"
#include "base/status.h"

// Elements are counted by int32_t; the room below INT32_MAX lets callers add to counts.
enum { MOST_ELEMENTS = INT32_MAX / 4, FEWEST_ELEMENTS = 16 };

// Reallocates what the pointer at `array` refers to. It is copied, as its own type is not known.
static bool resize(void *array, size_t bytes) {
    void *memory;
    memcpy(&memory, array, sizeof(memory));
    memory = ggml_mem_realloc(memory, bytes);
    if (memory) memcpy(array, &memory, sizeof(memory));
    return memory != NULL;
}

bool array_grow_slow(void *array, int32_t *capacity, int64_t needed, size_t element) {
    int64_t wanted = *capacity > 0 ? 2 * (int64_t)*capacity : FEWEST_ELEMENTS;
    if (wanted < needed) wanted = needed;
    if (wanted > MOST_ELEMENTS || !resize(array, (size_t)wanted * element)) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for a list of %lld entries",
                  (long long)needed);
        return false;
    }
    *capacity = (int32_t)wanted;
    return true;
}

// Half of the address space is more than there is, and keeps sums of two sizes from overflowing.
bool array_extend(void *array, size_t *capacity, size_t n, size_t more, size_t element) {
    const size_t most = SIZE_MAX / 2 / element;
    if (more <= *capacity - n) return true;
    if (more > most || n > most - more) return false;
    size_t wanted = *capacity < most / 2 ? 2 * *capacity : most;
    if (wanted < n + more) wanted = n + more;
    if (wanted < FEWEST_ELEMENTS) wanted = FEWEST_ELEMENTS;
    if (!resize(array, wanted * element)) return false;
    *capacity = wanted;
    return true;
}
