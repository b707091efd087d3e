// SPDX-License-Identifier: MIT
// What products on tensor cores (plugins/cuda/kernels/mul_mat_*.cpp), and the widest attention,
// agree on with those who launch them. C and C++.
#ifndef GPU_KERNELS_LAUNCH_PRODUCTS_H
#define GPU_KERNELS_LAUNCH_PRODUCTS_H

// numbers[] of the products of few columns.
enum {
    FEW_EXPERTS = 0, // a matrix for each column
    FEW_GATED = 2,   // the function of a gated unit is applied to two products
};

enum { ATTENTION_576_SHARED = 24064 }; // bytes, with blocks

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
