// SPDX-License-Identifier: MIT
// Growing of arrays: see array.h.
#include "base/array.h"

#include <string.h>

#include "base/mem.h"
#include "base/status.h"

// Elements are counted by int32_t; the room below INT32_MAX lets callers add to counts.
enum { MOST_ELEMENTS = INT32_MAX / 4, FEWEST_ELEMENTS = 16 };

bool array_grow_slow(void *array, int32_t *capacity, int64_t needed, size_t element) {
    int64_t wanted = *capacity > 0 ? 2 * (int64_t)*capacity : FEWEST_ELEMENTS;
    if (wanted < needed) wanted = needed;
    void *memory; // a copy, as the pointer's own type is not known here
    memcpy(&memory, array, sizeof(memory));
    if (wanted <= MOST_ELEMENTS) memory = ggml_mem_realloc(memory, (size_t)wanted * element);
    if (wanted > MOST_ELEMENTS || !memory) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for a list of %lld entries",
                  (long long)needed);
        return false;
    }
    memcpy(array, &memory, sizeof(memory));
    *capacity = (int32_t)wanted;
    return true;
}
