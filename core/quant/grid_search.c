// SPDX-License-Identifier: MIT
// Candidates: if the nearest values of all coordinates make a point of the grid, that point, else
// the points nearest to it by the squared distance of digits, without weights. Which ones these are
// is tabulated for all 6561 or 4096 combinations; distances are whole numbers below 200, by which
// points are sorted in linear time.
#include "quant/grid_search.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "ggml-impl.h"
#include "quant/quant_block.h"

enum {
    TUPLES = QUANT_GRID_HALF * QUANT_GRID_HALF,
    MAX_POINTS = 2048,
    MAX_DISTANCE = 4 * 7 * 7 + 1,
    K = QUANT_GRID_CANDIDATES,
};

// Tables of one grid: 0.1 to 0.3 MiB, made at first use and never freed.
struct tables {
    atomic_bool ready;        // acquire/release: what follows is visible once it is true
    int16_t index_of[TUPLES]; // -1: not a point
    struct quant_point nearest[TUPLES][K];
};

// Constant description of a grid.
struct quant_grid {
    int base;       // of the digits
    int half;       // codes of a half
    int half_width; // coordinates of a half
    int n_points;
    const uint16_t *codes;
    struct tables *tables;
};

#define CODES(...) __VA_ARGS__,
static const uint16_t iq1_codes[] = {
#define GGML_GRID_IQ1_S CODES
#include "grid_list.inl"
};
static const uint16_t iq2_xxs_codes[] = {
#define GGML_GRID_IQ2_XXS CODES
#include "grid_list.inl"
};
static const uint16_t iq2_xs_codes[] = {
#define GGML_GRID_IQ2_XS CODES
#include "grid_list.inl"
};
static const uint16_t iq2_s_codes[] = {
#define GGML_GRID_IQ2_S CODES
#include "grid_list.inl"
};
static const uint16_t iq3_xxs_codes[] = {
#define GGML_GRID_IQ3_XXS CODES
#include "grid_list.inl"
};
static const uint16_t iq3_s_codes[] = {
#define GGML_GRID_IQ3_S CODES
#include "grid_list.inl"
};

static struct tables all_tables[QUANT_GRIDS];

#define GRID(base, half, half_width, id, list)                                                     \
    [QUANT_GRID_##id] = {base,       half,                                                         \
                         half_width, sizeof(list) / sizeof((list)[0]),                             \
                         list,       &all_tables[QUANT_GRID_##id]}
static const struct quant_grid grids[QUANT_GRIDS] = {
    GRID(3, 81, 4, IQ1, iq1_codes),         GRID(3, 81, 4, IQ2_XXS, iq2_xxs_codes),
    GRID(3, 81, 4, IQ2_XS, iq2_xs_codes),   GRID(3, 81, 4, IQ2_S, iq2_s_codes),
    GRID(8, 64, 2, IQ3_XXS, iq3_xxs_codes), GRID(8, 64, 2, IQ3_S, iq3_s_codes),
};

// --- tables --------------------------------------------------------------------------------------

// The halves of a point from its code in grid_list.inl.
static struct quant_point point_of(const struct quant_grid *grid, uint16_t code) {
    const int bits = grid->base == 3 ? 2 : 3;
    struct quant_point point = {{0, 0}};
    for (int h = 0; h < 2; ++h) {
        for (int j = grid->half_width - 1; j >= 0; --j) {
            const int digit = code >> bits * (h * grid->half_width + j) & ((1 << bits) - 1);
            point.half[h] = (uint8_t)(point.half[h] * grid->base + digit);
        }
    }
    return point;
}

// Squared distance of two halves of grid points, which are numbers to the grid's base.
static int half_distance(const struct quant_grid *grid, int a, int b) {
    int sum = 0;
    for (int j = 0; j < grid->half_width; ++j) {
        const int diff = a % grid->base - b % grid->base;
        sum += diff * diff;
        a /= grid->base;
        b /= grid->base;
    }
    return sum;
}

// The K points nearest to halves with distances `first`, `second` to all others.
static void sort_nearest(const struct quant_grid *grid, const struct quant_point *points,
                         const uint8_t *first, const uint8_t *second, struct quant_point *out) {
    uint16_t distance[MAX_POINTS];
    int starts[MAX_DISTANCE + 1] = {0};
    for (int i = 0; i < grid->n_points; ++i) {
        distance[i] = (uint16_t)(first[points[i].half[0]] + second[points[i].half[1]]);
        ++starts[distance[i] + 1];
    }
    for (int d = 0; d < MAX_DISTANCE; ++d)
        starts[d + 1] += starts[d];
    for (int i = 0; i < grid->n_points; ++i) {
        const int place = starts[distance[i]]++;
        if (place < K) out[place] = points[i];
    }
}

// Makes a grid's tables, inside the critical section: the work arrays are static. O(TUPLES *
// points).
static void make_tables(const struct quant_grid *grid) {
    struct tables *tables = grid->tables;
    static struct quant_point points[MAX_POINTS];
    static uint8_t distances[QUANT_GRID_HALF][QUANT_GRID_HALF];
    const int half = grid->half;
    // No combination is a point until it is entered.
    for (int i = 0; i < half * half; ++i)
        tables->index_of[i] = -1;
    for (int i = 0; i < grid->n_points; ++i) {
        points[i] = point_of(grid, grid->codes[i]);
        tables->index_of[points[i].half[0] + half * points[i].half[1]] = (int16_t)i;
    }
    for (int i = 0; i < half * half; ++i)
        distances[i / half][i % half] = (uint8_t)half_distance(grid, i / half, i % half);
    for (int i = 0; i < half * half; ++i) {
        if (tables->index_of[i] >= 0) continue;
        sort_nearest(grid, points, distances[i % half], distances[i / half], tables->nearest[i]);
    }
}

// Double-checked: the common case is one acquire load.
const struct quant_grid *quant_grid(enum quant_grid_id id) {
    const struct quant_grid *grid = &grids[id];
    atomic_bool *ready = &grid->tables->ready;
    if (atomic_load_explicit(ready, memory_order_acquire)) return grid;
    ggml_critical_section_start();
    if (!atomic_load_explicit(ready, memory_order_relaxed)) {
        make_tables(grid);
        atomic_store_explicit(ready, true, memory_order_release);
    }
    ggml_critical_section_end();
    return grid;
}

// -1 for halves that make no point.
int quant_grid_index(const struct quant_grid *grid, struct quant_point point) {
    return grid->tables->index_of[point.half[0] + grid->half * point.half[1]];
}

// --- searching -----------------------------------------------------------------------------------

// n sums become base * n: with each digit of a further coordinate, v of which is values[digit].
static void add_digit(float *sums, int n, int base, const float *values, float factor) {
    for (int digit = base - 1; digit >= 0; --digit) {
        for (int i = 0; i < n; ++i)
            sums[digit * n + i] = sums[i] + values[digit] * factor;
    }
}

// Tabulates the sums for all codes of both halves: 2 * 81 or 2 * 64 entries, so that each trial of
// a scale costs look-ups only.
void quant_open_part(const struct quant_grid *grid, const float *values, const float *x,
                     const float *w, struct quant_part *out) {
    float squares[8];
    for (int digit = 0; digit < grid->base; ++digit)
        squares[digit] = values[digit] * values[digit];
    memcpy(out->x, x, sizeof(float) * 2 * (size_t)grid->half_width);
    for (int h = 0; h < 2; ++h) {
        out->xv[h][0] = out->vv[h][0] = 0.0f;
        int n = 1;
        for (int j = 0; j < grid->half_width; ++j, ++x, ++w) {
            add_digit(out->xv[h], n, grid->base, values, *w * *x);
            add_digit(out->vv[h], n, grid->base, squares, *w);
            n *= grid->base;
        }
    }
    out->between[0] = 0.5f * (values[0] + values[1]);
    out->between[1] = 0.5f * (values[1] + values[2]);
    out->first = values[0];
    out->inverse_step = 1.0f / (values[1] - values[0]);
}

// The nearest value of each coordinate.
static struct quant_point nearest_of_three(const struct quant_part *part, float scale) {
    const float low = scale * part->between[0];
    const float high = scale * part->between[1];
    const float *x = part->x;
    int digit[8];
    for (int j = 0; j < 8; ++j)
        digit[j] = (x[j] > low) + (x[j] > high);
    return (struct quant_point){
        {(uint8_t)(digit[0] + 3 * digit[1] + 9 * digit[2] + 27 * digit[3]),
         (uint8_t)(digit[4] + 3 * digit[5] + 9 * digit[6] + 27 * digit[7])}};
}

// Values of the eight-valued grids are evenly spaced but for rounding, so that one multiplication
// finds the nearest.
static struct quant_point nearest_of_eight(const struct quant_part *part, float scale) {
    const float factor = part->inverse_step / scale;
    const float shift = 0.5f - part->first * part->inverse_step;
    int digit[4];
    for (int j = 0; j < 4; ++j)
        digit[j] = (int)quant_clamp(part->x[j] * factor + shift, 0.0f, 7.0f);
    return (struct quant_point){
        {(uint8_t)(digit[0] + 8 * digit[1]), (uint8_t)(digit[2] + 8 * digit[3])}};
}

// Sum over both halves of a point.
static float sum_of(const float sums[2][QUANT_GRID_HALF], struct quant_point point) {
    return sums[0][point.half[0]] + sums[1][point.half[1]];
}

// error / scale = scale * vv / 2 - xv: half the squared error without its constant part.
struct quant_choice quant_choose_point(const struct quant_grid *grid, const struct quant_part *part,
                                       float scale) {
    struct quant_point best =
        grid->base == 3 ? nearest_of_three(part, scale) : nearest_of_eight(part, scale);
    const int tuple = best.half[0] + grid->half * best.half[1];
    if (grid->tables->index_of[tuple] < 0) {
        const struct quant_point *points = grid->tables->nearest[tuple];
        const float half_scale = 0.5f * scale;
        float least = INFINITY;
        for (int i = 0; i < K; ++i) {
            const float error =
                half_scale * sum_of(part->vv, points[i]) - sum_of(part->xv, points[i]);
            best = error < least ? points[i] : best;
            least = error < least ? error : least;
        }
    }
    return (struct quant_choice){best, sum_of(part->xv, best), sum_of(part->vv, best)};
}
