// SPDX-License-Identifier: MIT
// What sorting keeps in work memory; shared with the work function.
#ifndef CPU_SORT_H
#define CPU_SORT_H

#include <stddef.h>
#include <stdint.h>

// A number of a row.
struct sort_item {
    uint32_t key;
    int32_t index;
};

// Bytes per thread for rows of n.
static inline size_t sort_work_size(int64_t n) {
    return 2 * (size_t)n * sizeof(struct sort_item);
}

#endif
