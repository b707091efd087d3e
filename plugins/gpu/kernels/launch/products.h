// SPDX-License-Identifier: MIT
// What products on tensor cores (plugins/cuda/kernels/mul_mat_*.cpp), and the widest attention,
// agree on with those who launch them. C and C++.
#ifndef GPU_KERNELS_LAUNCH_PRODUCTS_H
#define GPU_KERNELS_LAUNCH_PRODUCTS_H

// numbers[] of the products of few columns.
enum {
    FEW_EXPERTS = 0, // a matrix for each column
    FEW_GATED = 2,   // the function of a gated unit is applied to two products
    FEW_EARLY = 3,   // weights may be read before the launches before this one have ended
};

enum { ATTENTION_576_SHARED = 24064 }; // bytes, with blocks

// Types with blocks that attention on tensor cores decodes.
#define ATTENTION_CODED_TYPES(X) X(Q4_0) X(Q4_1) X(Q5_0) X(Q5_1) X(Q8_0) X(IQ4_NL)

// Attention of warpgroups: rows of queries and threads of a block; the most tiles of a part of the
// keys.
enum { ATTENTION_WIDE_ROWS = 128, ATTENTION_WIDE_THREADS = 384, ATTENTION_WIDE_TILES = 1792 };

// By the most channels of K and V: keys of a tile and how many tiles there are at a time; the same
// where K or V is of a type with blocks. It is what finds room beside the queries.
// X(channels of K, of V, keys, tiles, keys with blocks, tiles with blocks)
#define ATTENTION_WIDE_FORMS(X)                                                                    \
    X(128, 128, 64, 3, 64, 2)                                                                      \
    X(192, 128, 64, 3, 64, 1)                                                                      \
    X(256, 256, 48, 2, 32, 1)
// Bytes between rows of types with blocks as they arrive: 34 at most for 32 channels, from an even
// address within a sector on.
#define ATTENTION_WIDE_CODED_PITCH(channels) ((((channels) / 32 * 34 + 45) / 16 | 1) * 16)
// Of shared memory: K and V, with blocks two halves each; two halves of queries; scales, slopes and
// votes; barriers; a byte for each tile; rows of K and V as they arrive.
#define ATTENTION_WIDE_SHARED(coded, n_k, n_v, keys, stages)                                       \
    ((stages) * (keys) * ((n_k) + (n_v)) * ((coded) ? 4 : 2) + 4 * ATTENTION_WIDE_ROWS * (n_k) +   \
     4 * (2 * ATTENTION_WIDE_ROWS + 16) + 128 + ATTENTION_WIDE_TILES +                             \
     ((coded) ? (keys) * (ATTENTION_WIDE_CODED_PITCH(n_k) + ATTENTION_WIDE_CODED_PITCH(n_v)) : 0))

enum {
    WIDE_ROWS = 128, // of a tile
    WIDE_STEP = 64,  // elements of k of a column that lie together, as 128 bytes
    WIDE_THREADS = 384,
    WIDE_COLUMN_THREADS = 128,
    WIDE_B_STAGES = 4,
    WIDE_BARRIERS = 128, // bytes
    // numbers[] of the arguments.
    WIDE_COLUMNS = 1, // of a tile: 128 or 256
    WIDE_TILES = 2,   // of columns, per plane
    WIDE_STEPS = 3,
    WIDE_EXPONENTS = 4, // bytes from the beginning of scratch memory to a word for each column
    WIDE_AS_BF16 = 5,
};

// Types of weights, by elements and bytes of a block: X(name, elements, bytes).
#define WIDE_TYPES(X)                                                                              \
    X(F16, 1, 2)                                                                                   \
    X(BF16, 1, 2)                                                                                  \
    X(Q4_0, 32, 18)                                                                                \
    X(Q8_0, 32, 34)                                                                                \
    X(Q4_K, 256, 144)                                                                              \
    X(Q6_K, 256, 210)

// Of weights with blocks of so many elements and bytes: elements of a row that are copied at a
// time, their bytes, bytes between rows. Blocks begin anywhere, types without them at multiples of
// 16 bytes; rows of those lie so that eight bytes of four rows are in different banks.
#define WIDE_DEPTH(elements) ((elements) == 1 ? WIDE_STEP : 256)
#define WIDE_USED(elements, bytes) (WIDE_DEPTH(elements) / (elements) * (bytes))
#define WIDE_PITCH(elements, bytes)                                                                \
    ((elements) == 1 ? 2 * WIDE_STEP + 32 : ((WIDE_USED(elements, bytes) + 46) / 16 | 1) * 16)
#define WIDE_A_STAGES(elements) ((elements) == 1 ? 4 : 2)
// Of shared memory.
#define WIDE_BYTES(elements, bytes, columns)                                                       \
    (WIDE_B_STAGES * (columns)*2 * WIDE_STEP +                                                     \
     WIDE_A_STAGES(elements) * WIDE_ROWS * WIDE_PITCH(elements, bytes) + WIDE_BARRIERS)

#endif
