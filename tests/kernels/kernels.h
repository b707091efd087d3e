// SPDX-License-Identifier: MIT
// The CPU plugin's inner kernels, each by itself: tables of them by instruction-set level, and what
// compares a level with its scalar twin. Everything here may be called by any thread; a table is
// constant.
#ifndef KERNELS_H
#define KERNELS_H

#include <stdbool.h>
#include <stdio.h>

#include "ggml.h"

// Ways to multiply rows with columns.
enum kernel_way {
    KERNEL_VECTOR,   // few columns, as floats
    KERNEL_ROUNDED,  // few columns, rounded to bytes
    KERNEL_TILES,    // columns as they lie
    KERNEL_PACKED,   // packed columns and panels of rows
    KERNEL_PAIRS,    // the same of BF16, columns rounded to it
    KERNEL_STRIPS,   // the same of blocks, columns rounded to bytes
    KERNEL_DOTS,     // strips by AVX-VNNI
    KERNEL_REPACKED, // few columns, rounded to bytes, with rows side by side
    KERNEL_SCORES,   // plain rows with few columns, in attention
    KERNEL_SUMS,     // plain rows added up, of which the columns have the weights, in attention
    KERNEL_WAYS,
};

enum {
    KERNEL_MAX_COLUMNS = 64, // of a product
    KERNEL_MAX_TILE_ROWS = 4 // of a product with KERNEL_TILES; the others have no limit
};

// y[c * y_stride + r] = product of row r with column c; with KERNEL_SUMS y[c * y_stride + i] =
// sum over all r of element i of row r times x[c * x_stride + r].
struct kernel_product {
    enum ggml_type type; // of the rows
    const char *rows;    // with KERNEL_REPACKED as types/repacked.h has them
    size_t row_stride;   // bytes
    int64_t k;           // elements of a row, > 0, whole blocks
    int64_t n_rows;
    const float *x; // column c from x[c * x_stride] on
    int64_t x_stride;
    int64_t n_columns; // 1 to KERNEL_MAX_COLUMNS
    float *y;
    int64_t y_stride;
    void *work; // kernel_work_bytes(), 64-byte aligned
};

// A level's kernels. The types are those of kernel_types(), and of traits_list.inl for `dot`.
struct kernel_table {
    int lanes;
    // Rows of any type to and from F32; n elements, whole blocks. pack() takes F32, F16, BF16, I32.
    void (*unpack)(enum ggml_type type, const void *x, float *y, int64_t n);
    void (*pack)(enum ggml_type type, const float *x, void *y, int64_t n);
    // y[i] = f(x[i]).
    void (*map)(enum ggml_unary_op op, const float *x, float *y, int64_t n);
    // n floats, whole groups of 32, as bytes and a scale for each group.
    void (*round)(const float *x, int8_t *numbers, float *scales, int64_t n);
    // Dot product of two quantised rows; false where the type has none.
    bool (*dot)(enum ggml_type type, const void *x, const void *y, int n, float *out_sum);
    // How many rows of the type lie side by side with KERNEL_REPACKED; 0: the way is not there.
    int (*repacked_rows)(enum ggml_type type);
    // By kernel_way; false, and nothing computed, where the level or the type has no such way.
    bool (*multiply[KERNEL_WAYS])(const struct kernel_product *product);
};

struct kernel_level {
    const char *name; // as in GGML_CPU_LEVEL
    uint64_t
        features; // GGML_CPU_BIT, all needed to call what the table has; other ways ask for theirs
    const struct kernel_table *table;
};

// All levels that were compiled, the scalar one first.
const struct kernel_level *kernel_levels(int *out_count);

const char *kernel_way_name(enum kernel_way way);
// Bytes that a product needs as `work`.
// Whether this machine has the feature, a number of abi/cpu_feature_list.inl.
bool kernel_has(int feature);

size_t kernel_work_bytes(int64_t k, int64_t n_columns);
// Types of rows that products take.
const enum ggml_type *kernel_types(int *out_count);
// Functions that map() takes.
const enum ggml_unary_op *kernel_maps(int *out_count);
// n bytes of blocks of a type with scales of everyday size, all else random. `state` is changed.
void kernel_random_rows(enum ggml_type type, void *rows, size_t n, uint32_t *state);
// n floats in [-1, 1).
void kernel_random_floats(float *x, int64_t n, uint32_t *state);

// What is checked: bits.
enum kernel_part {
    KERNEL_PART_UNPACK = 1,
    KERNEL_PART_PACK = 2,
    KERNEL_PART_ROUND = 4,
    KERNEL_PART_DOT = 8,
    KERNEL_PART_MAP = 16,
    KERNEL_PART_PRODUCT = 32, // shifted to the left by kernel_way
    KERNEL_ALL_PARTS = KERNEL_PART_PRODUCT * (1 << KERNEL_WAYS) - 1,
};

// Compares kernels of a table with the scalar ones, in random and edge inputs; the first difference
// of each is a line on `log`. Returns how many kernels differ; *out_checks (may be NULL): how many
// comparisons were made. Needs some megabytes; aborts where there are none.
int kernel_check(const struct kernel_table *table, const struct kernel_table *scalar,
                 unsigned parts, FILE *log, int64_t *out_checks);

#endif
