// SPDX-License-Identifier: MIT
// The points of the grids as bytes, made of grid_list.inl by the compiler.
#include "ggml-impl.h"

// What a digit stands for, as a byte.
#define IQ1_VALUE(digit) ((8 * (digit) + 248) & 255)
#define IQ2_VALUE(digit) (8 + 17 * (digit) + ((digit) >> 1))
#define IQ3_XXS_VALUE(digit) (4 + 8 * (digit) + 2 * ((digit) / 7))
#define IQ3_S_VALUE(digit) (1 + 2 * (digit))

#define EIGHT_AT(value, c, j) ((uint64_t)value((uint64_t)(c) >> 2 * (j)&3) << 8 * (j))
#define EIGHT_HALF(value, c, j)                                                                    \
    EIGHT_AT(value, c, j) | EIGHT_AT(value, c, j + 1) | EIGHT_AT(value, c, j + 2) |                \
        EIGHT_AT(value, c, j + 3)
#define EIGHT(value, c) EIGHT_HALF(value, c, 0) | EIGHT_HALF(value, c, 4)

#define FOUR_AT(value, c, j) ((uint32_t)value((uint32_t)(c) >> 3 * (j)&7) << 8 * (j))
#define FOUR(value, c)                                                                             \
    FOUR_AT(value, c, 0) | FOUR_AT(value, c, 1) | FOUR_AT(value, c, 2) | FOUR_AT(value, c, 3)

// A row of the list: eight points.
#define ROW(form, value, a, b, c, d, e, f, g, h)                                                   \
    form(value, a), form(value, b), form(value, c), form(value, d), form(value, e),                \
        form(value, f), form(value, g), form(value, h),

const uint64_t ggml_grid_iq1[2048] = {
#define GGML_GRID_IQ1_S(...) ROW(EIGHT, IQ1_VALUE, __VA_ARGS__)
#include "grid_list.inl"
};
const uint64_t ggml_grid_iq2_xxs[256] = {
#define GGML_GRID_IQ2_XXS(...) ROW(EIGHT, IQ2_VALUE, __VA_ARGS__)
#include "grid_list.inl"
};
const uint64_t ggml_grid_iq2_xs[512] = {
#define GGML_GRID_IQ2_XS(...) ROW(EIGHT, IQ2_VALUE, __VA_ARGS__)
#include "grid_list.inl"
};
const uint64_t ggml_grid_iq2_s[1024] = {
#define GGML_GRID_IQ2_S(...) ROW(EIGHT, IQ2_VALUE, __VA_ARGS__)
#include "grid_list.inl"
};
const uint32_t ggml_grid_iq3_xxs[256] = {
#define GGML_GRID_IQ3_XXS(...) ROW(FOUR, IQ3_XXS_VALUE, __VA_ARGS__)
#include "grid_list.inl"
};
const uint32_t ggml_grid_iq3_s[512] = {
#define GGML_GRID_IQ3_S(...) ROW(FOUR, IQ3_S_VALUE, __VA_ARGS__)
#include "grid_list.inl"
};
