// SPDX-License-Identifier: MIT
// The point of a grid that leaves the least weighted squared error.
//
// A part is as many elements as a point has coordinates: eight of three values, or four of eight.
// Points are named by the codes of their halves: numbers with a digit per coordinate, 81 of base 3
// or 64 of base 8. Sums over a half's coordinates are tabulated by its code, so that the error of a
// point takes four look-ups whatever its coordinates are.
#ifndef GGML_QUANT_GRID_SEARCH_H
#define GGML_QUANT_GRID_SEARCH_H

#include <stdint.h>

enum {
    QUANT_GRID_HALF = 81,       // codes of a half, at most
    QUANT_GRID_CANDIDATES = 20, // points that are tried per part
};

enum quant_grid_id {
    QUANT_GRID_IQ1,
    QUANT_GRID_IQ2_XXS,
    QUANT_GRID_IQ2_XS,
    QUANT_GRID_IQ2_S,
    QUANT_GRID_IQ3_XXS,
    QUANT_GRID_IQ3_S,
    QUANT_GRIDS
};

struct quant_grid;

// The grid with its tables of neighbours, which are made when it is first asked for: 5 to 40 ms.
// [any-thread]
const struct quant_grid *quant_grid(enum quant_grid_id id);

// Codes of a point's halves.
struct quant_point {
    uint8_t half[2];
};

// The index of a point of the grid.
int quant_grid_index(const struct quant_grid *grid, struct quant_point point);

// Elements with tables, by the code of a half: sums of w x v and w v^2 over its coordinates, where
// v is what the digit stands for.
struct quant_part {
    float x[8];
    float xv[2][QUANT_GRID_HALF];
    float vv[2][QUANT_GRID_HALF];
    float between[2]; // three values: what lies halfway between two of them
    float first, inverse_step;
};

// The elements of a part with their weights; `values` are those of the digits.
void quant_open_part(const struct quant_grid *grid, const float *values, const float *x,
                     const float *w, struct quant_part *out);

struct quant_choice {
    struct quant_point point;
    float xv; // sums of w x v, w v^2
    float vv;
};

// The best of the candidates for x = scale * v, scale > 0.
struct quant_choice quant_choose_point(const struct quant_grid *grid, const struct quant_part *part,
                                       float scale);

#endif
