// SPDX-License-Identifier: MIT
// Weights with eight rows side by side: of each block of the eight, the halves that fill no word,
// then word by word those of all rows. A vector holds four bytes of every row, so that products
// need no sums across lanes. Nothing is rounded, and the size stays the same.
#ifndef CPU_REPACKED_H
#define CPU_REPACKED_H

#include <string.h>

#include "ggml-backend-impl.h"
#include "ggml-common.h"

enum {
    REPACKED_ROWS = 8,
    REPACKED_WORD = 4,
    REPACKED_MAX_BLOCK = 256, // elements
    // Bytes of REPACKED_MAX_BLOCK elements, at most.
    REPACKED_MAX_BYTES = sizeof(block_q3_K),
};

// How blocks of a type are laid; `size` is 0 for types that stay as they are: single tokens of
// others are no faster with it (docs/performance.md).
struct repacked_format {
    int size, bytes; // of a block
    int half_at;     // where it has the half that fills no word, behind all words, or -1
};

static inline struct repacked_format repacked_format(enum ggml_type type) {
    switch ((int)type) {
    case GGML_TYPE_Q2_K: return (struct repacked_format){QK_K, sizeof(block_q2_K), -1};
    case GGML_TYPE_Q3_K:
        return (struct repacked_format){QK_K, sizeof(block_q3_K), offsetof(block_q3_K, d)};
    default: return (struct repacked_format){0, 0, -1};
    }
}

// Where words of eight blocks begin.
static inline int repacked_words_at(struct repacked_format f) {
    return f.half_at >= 0 ? REPACKED_ROWS * (int)sizeof(ggml_half) : 0;
}

static inline int repacked_words(struct repacked_format f) {
    return f.bytes / REPACKED_WORD;
}

// One of eight rows, n_blocks blocks from where the eight begin, as plain blocks.
static inline void repacked_read(struct repacked_format f, const char *from, int row,
                                 int64_t n_blocks, char *to) {
    const char *words = from + repacked_words_at(f) + row * REPACKED_WORD;
    for (int64_t b = 0; b < n_blocks; ++b) {
        if (f.half_at >= 0)
            memcpy(to + f.half_at, from + row * (int)sizeof(ggml_half), sizeof(ggml_half));
        for (int w = 0; w < repacked_words(f); ++w)
            memcpy(to + w * REPACKED_WORD, words + w * REPACKED_ROWS * REPACKED_WORD,
                   REPACKED_WORD);
        from += REPACKED_ROWS * f.bytes;
        words += REPACKED_ROWS * f.bytes;
        to += f.bytes;
    }
}

// The reverse of it.
static inline void repacked_write(struct repacked_format f, const char *from, int row,
                                  int64_t n_blocks, char *to) {
    char *words = to + repacked_words_at(f) + row * REPACKED_WORD;
    for (int64_t b = 0; b < n_blocks; ++b) {
        if (f.half_at >= 0)
            memcpy(to + row * (int)sizeof(ggml_half), from + f.half_at, sizeof(ggml_half));
        for (int w = 0; w < repacked_words(f); ++w)
            memcpy(words + w * REPACKED_ROWS * REPACKED_WORD, from + w * REPACKED_WORD,
                   REPACKED_WORD);
        to += REPACKED_ROWS * f.bytes;
        words += REPACKED_ROWS * f.bytes;
        from += f.bytes;
    }
}

// Of the buffer type whose tensors are laid so when they are set, if their type and extents allow
// it.
extern const struct ggml_buffer_type_table cpu_repacked_table;

enum cpu_layout {
    CPU_LAYOUT_PLAIN,    // not in that memory
    CPU_LAYOUT_REPACKED, // rows lie side by side
    CPU_LAYOUT_OTHER,    // in that memory, but a view, or a tensor that can't be repacked
};

// [any-thread]
enum cpu_layout cpu_layout_of(const struct ggml_tensor *tensor);

#endif
