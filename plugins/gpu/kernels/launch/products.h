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

// Attention of warpgroups: rows of queries and threads of a block, keys of a tile, bytes between
// queries, and between rows of types with blocks as they arrive: 34 bytes at most for 32 channels,
// from an even address within a sector on.
enum {
    ATTENTION_WIDE_ROWS = 128,
    ATTENTION_WIDE_THREADS = 384,
    ATTENTION_WIDE_KEYS = 64,
    ATTENTION_WIDE_PITCH = 2 * 128 + 16,
    ATTENTION_WIDE_CODED_PITCH = 176,
};
// By whether K or V is of a type with blocks: tiles at a time; the most tiles of a part of the
// keys.
#define ATTENTION_WIDE_STAGES(coded) ((coded) ? 2 : 3)
#define ATTENTION_WIDE_TILES(coded) ((coded) ? 1024 : 2048)
// Of shared memory: K and V, with blocks two halves each; two halves of queries; scales, slopes and
// votes; barriers; a word per tile; rows of K and V as they arrive.
#define ATTENTION_WIDE_SHARED(coded)                                                               \
    (ATTENTION_WIDE_STAGES(coded) * ((coded) ? 8 : 4) * 128 * ATTENTION_WIDE_KEYS +                \
     2 * ATTENTION_WIDE_ROWS * ATTENTION_WIDE_PITCH + 4 * (2 * ATTENTION_WIDE_ROWS + 16) + 64 +    \
     4 * ATTENTION_WIDE_TILES(coded) +                                                             \
     ((coded) ? 2 * ATTENTION_WIDE_KEYS * ATTENTION_WIDE_CODED_PITCH : 0))

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
