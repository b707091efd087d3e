// SPDX-License-Identifier: MIT
// Weights with as many rows side by side as a level's vectors have lanes: of each block of those,
// the halves that fill no word, then word by word those of all rows. A vector holds four bytes of
// every row, so that products need no sums across lanes. Nothing is rounded, and the size stays the
// same.
#ifndef CPU_REPACKED_H
#define CPU_REPACKED_H

#include <string.h>

#include "ggml-backend-impl.h"
#include "ggml-common.h"

enum {
    REPACKED_WORD = 4,
    REPACKED_MAX_BLOCK = 256, // elements
    // Bytes of REPACKED_MAX_BLOCK elements, at most.
    REPACKED_MAX_BYTES = REPACKED_MAX_BLOCK / QK8_0 * sizeof(block_q8_0),
};

// How blocks of a type are laid.
struct repacked_format {
    int rows;        // side by side, a multiple of four; 0 for types that can't be laid so
    int size, bytes; // of a block
    int half_at;     // where it has the half that fills no word: before all words, behind, or -1
};

#define REPACKED_FORMAT(name, size, half_at)                                                       \
    ((struct repacked_format){rows, size, sizeof(block_##name), half_at})

static inline struct repacked_format repacked_format(enum ggml_type type, int rows) {
    switch ((int)type) {
    case GGML_TYPE_Q4_0: return REPACKED_FORMAT(q4_0, QK4_0, offsetof(block_q4_0, d));
    case GGML_TYPE_Q4_1: return REPACKED_FORMAT(q4_1, QK4_1, -1);
    case GGML_TYPE_Q5_0: return REPACKED_FORMAT(q5_0, QK5_0, offsetof(block_q5_0, d));
    case GGML_TYPE_Q5_1: return REPACKED_FORMAT(q5_1, QK5_1, -1);
    case GGML_TYPE_Q8_0: return REPACKED_FORMAT(q8_0, QK8_0, offsetof(block_q8_0, d));
    case GGML_TYPE_IQ4_NL: return REPACKED_FORMAT(iq4_nl, QK4_NL, offsetof(block_iq4_nl, d));
    case GGML_TYPE_Q2_K: return REPACKED_FORMAT(q2_K, QK_K, -1);
    case GGML_TYPE_Q3_K: return REPACKED_FORMAT(q3_K, QK_K, offsetof(block_q3_K, d));
    case GGML_TYPE_Q4_K: return REPACKED_FORMAT(q4_K, QK_K, -1);
    case GGML_TYPE_Q5_K: return REPACKED_FORMAT(q5_K, QK_K, -1);
    case GGML_TYPE_Q6_K: return REPACKED_FORMAT(q6_K, QK_K, offsetof(block_q6_K, d));
    case GGML_TYPE_IQ4_XS: return REPACKED_FORMAT(iq4_xs, QK_K, -1);
    case GGML_TYPE_TQ2_0: return REPACKED_FORMAT(tq2_0, QK_K, offsetof(block_tq2_0, d));
    default: return (struct repacked_format){0, 0, 0, -1};
    }
}

// Where words of the rows' blocks begin.
static inline int repacked_words_at(struct repacked_format f) {
    return f.half_at >= 0 ? f.rows * (int)sizeof(ggml_half) : 0;
}

static inline int repacked_words(struct repacked_format f) {
    return f.bytes / REPACKED_WORD;
}

// Where the first word of a plain block is.
static inline int repacked_first_word(struct repacked_format f) {
    return f.half_at == 0 ? (int)sizeof(ggml_half) : 0;
}

// One of the rows, n_blocks blocks from where all begin, as plain blocks.
static inline void repacked_read(struct repacked_format f, const char *from, int row,
                                 int64_t n_blocks, char *to) {
    const char *words = from + repacked_words_at(f) + row * REPACKED_WORD;
    for (int64_t b = 0; b < n_blocks; ++b) {
        if (f.half_at >= 0)
            memcpy(to + f.half_at, from + row * (int)sizeof(ggml_half), sizeof(ggml_half));
        char *first = to + repacked_first_word(f);
        for (int w = 0; w < repacked_words(f); ++w)
            memcpy(first + w * REPACKED_WORD, words + w * f.rows * REPACKED_WORD, REPACKED_WORD);
        from += f.rows * f.bytes;
        words += f.rows * f.bytes;
        to += f.bytes;
    }
}

// Words of four rows, or of one row.
typedef uint32_t repacked_quad __attribute__((vector_size(4 * REPACKED_WORD)));

static inline repacked_quad repacked_load(const char *from) {
    repacked_quad v;
    memcpy(&v, from, sizeof(v));
    return v;
}

// Four words of each of four rows, which are `stride` bytes apart, as a quad for each word; those
// are `step` bytes apart.
static inline void repacked_transpose(const char *from, size_t stride, char *to, int step) {
    const repacked_quad a = repacked_load(from), b = repacked_load(from + stride),
                        c = repacked_load(from + 2 * stride), d = repacked_load(from + 3 * stride);
    const repacked_quad ab = __builtin_shufflevector(a, b, 0, 4, 1, 5),
                        cd = __builtin_shufflevector(c, d, 0, 4, 1, 5),
                        ab_last = __builtin_shufflevector(a, b, 2, 6, 3, 7),
                        cd_last = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    const repacked_quad words[4] = {__builtin_shufflevector(ab, cd, 0, 1, 4, 5),
                                    __builtin_shufflevector(ab, cd, 2, 3, 6, 7),
                                    __builtin_shufflevector(ab_last, cd_last, 0, 1, 4, 5),
                                    __builtin_shufflevector(ab_last, cd_last, 2, 3, 6, 7)};
    for (int w = 0; w < 4; ++w)
        memcpy(to + w * step, &words[w], sizeof(words[w]));
}

// All of the rows, which are `stride` bytes apart: the reverse of it.
static inline void repacked_write(struct repacked_format f, const char *from, size_t stride,
                                  int64_t n_blocks, char *to) {
    const int step = f.rows * REPACKED_WORD, n_words = repacked_words(f);
    for (int64_t b = 0; b < n_blocks; ++b, from += f.bytes) {
        for (int row = 0; row < f.rows && f.half_at >= 0; ++row, to += sizeof(ggml_half))
            memcpy(to, from + (size_t)row * stride + f.half_at, sizeof(ggml_half));
        const char *words = from + repacked_first_word(f);
        int w = 0;
        for (; w + 4 <= n_words; w += 4, words += 4 * REPACKED_WORD, to += 4 * step) {
            for (int row = 0; row < f.rows; row += 4)
                repacked_transpose(words + (size_t)row * stride, stride, to + row * REPACKED_WORD,
                                   step);
        }
        for (; w < n_words; ++w, words += REPACKED_WORD) {
            for (int row = 0; row < f.rows; ++row, to += REPACKED_WORD)
                memcpy(to, words + (size_t)row * stride, REPACKED_WORD);
        }
    }
}

// How weights are repacked: the context of the buffer type.
struct cpu_repacking {
    int (*rows)(enum ggml_type type); // side by side, or 0; always the same [any-thread]
};

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
