// SPDX-License-Identifier: MIT
// Reading the objects of ggml's binaries: which generation has what where.
#ifndef FOREIGN_LAYOUT_H
#define FOREIGN_LAYOUT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct foreign_layout {
    int api_version;  // first member of the binary's ggml_backend_reg
    const char *text; // for people
#define LAYOUT_ROW(member, version_2, version_3) int16_t member;
#include "layout_list.inl"
};

// NULL for a version that is not known. [any-thread]
const struct foreign_layout *foreign_layout_of(int api_version);

// Every entry has this type until it is called as what it is.
typedef void (*foreign_fn)(void);

static inline const void *foreign_slot(const void *object, int slot) {
    return (const char *)object + (size_t)slot * sizeof(void *);
}

static inline void *foreign_pointer(const void *object, int slot) {
    void *pointer;
    memcpy(&pointer, foreign_slot(object, slot), sizeof(pointer));
    return pointer;
}

static inline foreign_fn foreign_entry(const void *object, int slot) {
    foreign_fn entry;
    memcpy(&entry, foreign_slot(object, slot), sizeof(entry));
    return entry;
}

#endif
