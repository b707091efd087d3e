// SPDX-License-Identifier: MIT
// Panels of rows and their products with strips where no instruction adds four products of bytes to
// a lane: the part of gemm_rounded.c, which includes this, for SSSE3, AVX2, and AVX-512 without
// VNNI. Bytes without sign (rows) are multiplied with such that have one (columns); pairs of
// products are added in 16 bits for as long as their sum fits, then widened. A bias makes numbers
// bytes without sign: with groups of 16, sums begin with what it adds, negated, so that those of
// whole groups fit. Where rows need all eight bits no sum of two fits: both sides are words of 16
// bits then, of which an instruction adds two products to a lane. Processors with AVX-VNNI have
// instructions that do all of that, on the same operands.
#ifndef CPU_STRIPS_PAIRS_H
#define CPU_STRIPS_PAIRS_H

#include "ops/mul_mat/rounded/panel_words.h"
#include "ops/mul_mat/rounded/repacked_lanes.h"
#include "simd/words.h"

enum {
    COLUMN_BIAS = 0,
    PANEL_VECTORS = PANEL_ROWS / LANES,
};

// --- panels --------------------------------------------------------------------------------------

// y[i * stride + r] = x[r][i], for four rows.
static void lay_four(const float *x, int64_t x_stride, int64_t n, float *y, int64_t stride) {
    const float *rows[QUAD];
    for (int r = 0; r < QUAD; ++r)
        rows[r] = x + r * x_stride;
    interleave_4(rows, n, y, stride);
}

// Lays numbers, scales and offsets of opened rows side by side. What a bias adds to products that
// no start makes up for is proportional to the sums of columns, as offsets are.
CPU_INLINE void lay_rows(const struct block_format f, struct opened_rows *o,
                         const struct panel_rows *to) {
    const int bias = number_range_of(f.type).bias;
    const bool starts = start_bias(f.type, f.group) > 0;
    const int64_t groups = to->k / f.group;
    for (int r = 0; r < ROWS; ++r) {
        for (int64_t j = 0; j < to->k; j += BYTES)
            vb_store(o->numbers[r] + j, vb_load(o->numbers[r] + j) + (uint8_t)bias);
        for (int64_t g = 0; g < groups && f.offset_at < 0 && !starts; ++g)
            o->offsets[r][g] = (float)-bias * o->scales[r][g];
    }
    for (int r = 0; r < ROWS; r += QUAD) {
        const int64_t at = to->first + r;
        // Four numbers count as a lane whose bits are moved.
        lay_four((const float *)(const void *)o->numbers[r], STRIP_DEPTH / 4, to->k / 4,
                 (float *)(void *)to->panel->numbers + at, to->stride);
        lay_four(o->scales[r], STRIP_GROUPS, groups, to->panel->scales + at, to->stride);
        if (!starts)
            lay_four(o->offsets[r], STRIP_GROUPS, groups, to->panel->offsets + at, to->stride);
    }
}

#if !defined(__AVX2__)
// The level doesn't repack.
static bool pack_repacked(const struct gemm_rows *rows, int64_t row, int64_t n_rows, int64_t k0,
                          int64_t k, size_t ahead, struct strip_panel *panel) {
    (void)rows, (void)row, (void)n_rows, (void)k0, (void)k, (void)ahead, (void)panel;
    return false;
}
#elif !defined(__AVX512F__)
// --- panels of repacked rows ---------------------------------------------------------------------

// Elements [k0, k0 + k) of ROWS rows, or of n_rows and the last eight of them again.
CPU_INLINE void pack_eights(const struct block_format f, const struct gemm_rows *rows, int64_t row,
                            int64_t n_rows, int64_t k0, int64_t k, struct strip_panel *panel) {
    for (int r = 0; r < ROWS; r += REPACKED_ROWS) {
        const int64_t from = row + MIN(r, n_rows - REPACKED_ROWS);
        const char *block = rows->data + (size_t)from * rows->stride +
                            (size_t)(k0 / f.size * f.bytes * REPACKED_ROWS);
        for (int64_t i = 0; i < k; i += f.size, block += REPACKED_ROWS * f.bytes)
            lanes_to_panel(f, block, i, r, ROWS, panel);
    }
}

// False for types that aren't repacked.
static bool pack_repacked(const struct gemm_rows *rows, int64_t row, int64_t n_rows, int64_t k0,
                          int64_t k, size_t ahead, struct strip_panel *panel) {
    (void)ahead;
    switch ((int)rows->type) {
#define CPU_BLOCK_ROW(NAME, name, ...)                                                             \
    case GGML_TYPE_##NAME:                                                                         \
        pack_eights(BLOCK_FORMAT(NAME, name, __VA_ARGS__), rows, row, n_rows, k0, k, panel);       \
        return true;
#include "ops/mul_mat/rounded/repacked_list.inl"
    default: return false;
    }
}
#endif

// --- products ------------------------------------------------------------------------------------

// Adds the products of four bytes, of which those of the rows have no sign, to each lane. The
// compiler is not told of these instructions, as it would use them everywhere.
CPU_INLINE wi dot_four(wi sum, wi rows, wi column) {
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(rows), "x"(column));
    return sum;
}

// The same of two words.
CPU_INLINE wi dot_two(wi sum, wi rows, wi column) {
    __asm__("%{vex%} vpdpwssd %2, %1, %0" : "+x"(sum) : "x"(rows), "x"(column));
    return sum;
}

// Which kind of products a function computes, known when compiling.
struct strip_way {
    int group;   // of the type
    int chain;   // fours of a row whose products are added in 16 bits: a power of two; 0: words
    int n;       // vectors of the panel
    bool starts; // of the strips, instead of offsets
    bool vnni;
};

typedef wi tile_dots[STRIP_COLUMNS][PANEL_VECTORS];

CPU_INLINE void clear_dots(const struct strip_way way, const int columns,
                           wi (*dots)[PANEL_VECTORS]) {
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c) {
        CPU_UNROLLED
        for (int v = 0; v < way.n; ++v)
            dots[c][v] = (wi){0};
    }
}

// Fours, or words, number t of a panel.
CPU_INLINE void load_rows(const struct strip_way way, const int8_t *numbers, int64_t t, wi *w) {
    CPU_UNROLLED
    for (int v = 0; v < way.n; ++v)
        memcpy(&w[v], numbers + (t * way.n + v) * WORD * LANES, sizeof(w[v]));
}

// What is read with the index or the pointer is read again, rather than kept from before.
#define KEEP_APART(index) __asm__("" : "+r"(index))

// The order of additions stays: as a tree of sums they would need more registers than there are.
#if defined(CPU_SIMULATED_VNNI)
#define KEEP_IN_ORDER(sum) // no register is as wide
#elif defined(__AVX512F__)
#define KEEP_IN_ORDER(sum) __asm__("" : "+v"(sum))
#else
#define KEEP_IN_ORDER(sum) KEEP_IN_REGISTER(sum)
#endif

// Pairs of products of a chain of fours of the rows with as many columns as are computed together.
CPU_INLINE void add_chain(const struct strip_way way, const int8_t *numbers, int64_t four,
                          const uint8_t (*x)[STRIP_COLUMNS][RUN], const int16_t (*starts)[2],
                          const int columns, wi (*pairs)[PANEL_VECTORS]) {
    CPU_UNROLLED
    for (int t = 0; t < way.chain; ++t) {
        wi w[PANEL_VECTORS];
        load_rows(way, numbers, four + t, w);
        CPU_UNROLLED
        for (int c = 0; c < columns; ++c) {
            const wi column = spread_word(x[t][c]);
            CPU_UNROLLED
            for (int v = 0; v < way.n; ++v) {
                const wi products = multiply_pairs((wb)w[v], column);
                if (t == 0 && way.starts)
                    pairs[c][v] = add_pairs(spread_word(starts[c]), products);
                else if (t == 0)
                    pairs[c][v] = products;
                else
                    add_pairs_to(&pairs[c][v], products);
                KEEP_IN_ORDER(pairs[c][v]);
            }
        }
    }
}

// Products of a group, numbers from `four` fours on, with columns from the first of x on.
CPU_INLINE void multiply_group(const struct strip_way way, const struct strip_panel *a,
                               const uint8_t (*x)[STRIP_COLUMNS][RUN], const int16_t (*starts)[2],
                               int64_t four, const int columns, wi (*dots)[PANEL_VECTORS]) {
    CPU_UNROLLED
    for (int t = 0; t < way.group / 4; t += way.chain) {
        tile_dots pairs;
        KEEP_APART(x);
        add_chain(way, a->numbers, four + t, x + t, starts, columns, pairs);
        CPU_UNROLLED
        for (int c = 0; c < columns; ++c) {
            CPU_UNROLLED
            for (int v = 0; v < way.n; ++v) {
                const wi wide = scale_pairs(pairs[c][v], (wi)((wb_pairs){0} + 1));
                dots[c][v] = t == 0 ? wide : (wi)((vi)dots[c][v] + (vi)wide);
                KEEP_IN_ORDER(dots[c][v]);
            }
        }
    }
}

// The same by AVX-VNNI.
CPU_INLINE void multiply_group_vnni(const struct strip_way way, const struct strip_panel *a,
                                    const uint8_t (*x)[STRIP_COLUMNS][RUN],
                                    const int16_t (*starts)[2], int64_t four, const int columns,
                                    wi (*dots)[PANEL_VECTORS]) {
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c) {
        wi start = (wi){0};
        if (way.starts) start = scale_pairs(spread_word(starts[c]), (wi)((wb_pairs){0} + 1));
        CPU_UNROLLED
        for (int v = 0; v < way.n; ++v)
            dots[c][v] = start;
    }
    CPU_UNROLLED
    for (int t = 0; t < way.group / 4; ++t) {
        wi w[PANEL_VECTORS];
        load_rows(way, a->numbers, four + t, w);
        CPU_UNROLLED
        for (int c = 0; c < columns; ++c) {
            const wi column = spread_word(x[t][c]);
            CPU_UNROLLED
            for (int v = 0; v < way.n; ++v)
                dots[c][v] = dot_four(dots[c][v], w[v], column);
        }
    }
}

// The same of words: a lane of a panel's vector has two numbers of its row.
CPU_INLINE void multiply_words(const struct strip_way way, const struct strip_panel *a,
                               const int16_t (*x)[STRIP_COLUMNS][2], int64_t two, const int columns,
                               wi (*dots)[PANEL_VECTORS]) {
    clear_dots(way, columns, dots);
    CPU_UNROLLED
    for (int half = 0; half < 2; ++half) {
        CPU_UNROLLED
        for (int i = 0; i < ROUNDED_GROUP / 4; ++i) {
            const int t = half * ROUNDED_GROUP / 4 + i;
            wi w[PANEL_VECTORS];
            load_rows(way, a->numbers, two + t, w);
            CPU_UNROLLED
            for (int c = 0; c < columns; ++c) {
                const wi pair = spread_word(x[t][c]);
                CPU_UNROLLED
                for (int v = 0; v < way.n; ++v) {
                    if (way.vnni)
                        dots[c][v] = dot_two(dots[c][v], w[v], pair);
                    else
                        add_words_to(&dots[c][v], scale_pairs(w[v], pair));
                    KEEP_IN_ORDER(dots[c][v]);
                }
            }
        }
    }
}

// As many columns together as registers hold sums of: those of 16 bits and, where they are widened
// meanwhile, those of 32.
CPU_INLINE int columns_at_a_time(const struct strip_way way) {
    const bool widens_once = way.chain == way.group / 4;
    return VECTORS == 32 || way.vnni || widens_once || way.chain <= 1 ? STRIP_COLUMNS
                                                                      : STRIP_COLUMNS / 2;
}

// Adds the products of a group, scaled, to the sums of some columns from `first` on. Those of
// floats stay in the first level of cache: registers are for those of whole numbers.
CPU_INLINE void add_group(const struct strip_way way, const struct strip_panel *a,
                          const struct strip *b, int64_t g, int64_t of_strip, int first,
                          const int columns, float (*sums)[PANEL_ROWS]) {
    tile_dots dots;
    const uint8_t(*x)[STRIP_COLUMNS][RUN] = (const uint8_t(*)[STRIP_COLUMNS][RUN])(
        b->numbers + of_strip * way.group * STRIP_COLUMNS + first * RUN);
    const int16_t(*starts)[2] = b->starts[of_strip] + first;
    if (way.chain == 0)
        multiply_words(
            way, a, (const int16_t(*)[STRIP_COLUMNS][2])b->words[of_strip * way.group / 2][first],
            g * way.group / 2, columns, dots);
    else if (way.vnni)
        multiply_group_vnni(way, a, x, starts, g * way.group / 4, columns, dots);
    else
        multiply_group(way, a, x, starts, g * way.group / 4, columns, dots);
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c) {
        const vf scale = vf_set(b->scales[of_strip * way.group / ROUNDED_GROUP][first + c]);
        const vf sum = vf_set(b->sums[of_strip][first + c]);
        CPU_UNROLLED
        for (int v = 0; v < way.n; ++v) {
            float *y = sums[c] + v * LANES;
            const int64_t at = (g * way.n + v) * LANES;
            const vf product = floats_of(dots[c][v]) * vf_load(a->scales + at);
            vf so_far = vf_load(y);
            if (way.chain > 0 && !way.starts) so_far = fused(vf_load(a->offsets + at), sum, so_far);
            vf_store(y, fused(product, scale, so_far));
        }
    }
}

// Sums of some columns from `first` on.
CPU_INLINE void multiply_columns(const struct strip_way way, const struct strip_panel *a,
                                 const struct strip *b, int64_t k, int first, const int columns,
                                 float (*sums)[PANEL_ROWS]) {
    const int64_t parts = way.chain == 0 ? 2 : 1, groups = STRIP_DEPTH / way.group / parts;
    CPU_UNROLLED
    for (int c = 0; c < columns; ++c) {
        CPU_UNROLLED
        for (int v = 0; v < way.n; ++v)
            vf_store(sums[c] + v * LANES, (vf){0});
    }
    for (int64_t part = 0; part < parts; ++part) {
        for (int64_t g = 0; g < MIN(k / way.group - part * groups, groups); ++g)
            add_group(way, a, b + part, part * groups + g, g, first, columns, sums);
    }
}

// Stores the sums of a whole tile, or adds them to what is there.
CPU_INLINE void add_tile(const struct strip_way way, const struct tile *to,
                         const float (*sums)[PANEL_ROWS]) {
    CPU_UNROLLED
    for (int c = 0; c < STRIP_COLUMNS; ++c) {
        float *y = to->columns[c].y + to->row;
        CPU_UNROLLED
        for (int v = 0; v < way.n; ++v) {
            const vf sum = vf_load(sums[c] + v * LANES);
            vf_store(y + v * LANES, to->first ? sum : sum + vf_load(y + v * LANES));
        }
    }
}

CPU_INLINE void multiply_tile(const struct strip_way way, const struct strip_panel *a,
                              const struct strip *b, const struct tile *to) {
    float sums[STRIP_COLUMNS][PANEL_ROWS] __attribute__((aligned(64)));
    const int step = columns_at_a_time(way), half = STRIP_COLUMNS / 2;
    if (step > half && to->n_columns <= half) {
        multiply_columns(way, a, b, to->k, 0, half, sums);
    } else {
        for (int first = 0; first < to->n_columns; first += step) {
            KEEP_APART(first);
            multiply_columns(way, a, b, to->k, first, step, sums + first);
        }
    }
    if (to->n_columns == STRIP_COLUMNS && to->n_rows == way.n * LANES)
        add_tile(way, to, (const float(*)[PANEL_ROWS])sums);
    else
        add_part(to, (const float(*)[PANEL_ROWS])sums);
}

#define MULTIPLY(name, ...)                                                                        \
    static void name(const struct strip_panel *a, const struct strip *b, const struct tile *to) {  \
        multiply_tile((struct strip_way){__VA_ARGS__}, a, b, to);                                  \
    }
#define MULTIPLY_ROWS(name, n)                                                                     \
    MULTIPLY(name##_16_starts, 16, 4, n, true, false)                                              \
    MULTIPLY(name##_16_4, 16, 4, n, false, false)                                                  \
    MULTIPLY(name##_16_1, 16, 1, n, false, false)                                                  \
    MULTIPLY(name##_32_8, 32, 8, n, false, false)                                                  \
    MULTIPLY(name##_32_4, 32, 4, n, false, false)                                                  \
    MULTIPLY(name##_32_1, 32, 1, n, false, false)                                                  \
    MULTIPLY(name##_words, 32, 0, n, false, false)

MULTIPLY_ROWS(tiles, PANEL_VECTORS)
#if defined(__AVX512F__)
MULTIPLY_ROWS(tiles_of_one, 1) // the last rows
#elif defined(__AVX2__)
MULTIPLY(vnni_16_starts, 16, 4, PANEL_VECTORS, true, true)
MULTIPLY(vnni_16, 16, 4, PANEL_VECTORS, false, true)
MULTIPLY(vnni_32, 32, 8, PANEL_VECTORS, false, true)
MULTIPLY(vnni_words, 32, 0, PANEL_VECTORS, false, true)

static multiply_fn choose_vnni(int most, int group, bool starts) {
    if (most == ALL_BITS) return vnni_words;
    if (group == 32) return vnni_32;
    return starts ? vnni_16_starts : vnni_16;
}
#endif

// The fewer bits a type's numbers have, the more products are added in 16 bits before the sum is
// widened.
#define CHOOSE(name)                                                                               \
    (most == ALL_BITS ? name##_words                                                               \
     : group == 16    ? (starts      ? name##_16_starts                                            \
                         : most < 33 ? name##_16_4                                                 \
                                     : name##_16_1)                                                \
     : most < 17      ? name##_32_8                                                                \
     : most < 33      ? name##_32_4                                                                \
                      : name##_32_1)

// `n_rows`: lanes of the panel, in ROWS.
static multiply_fn choose_multiply(enum ggml_type type, int group, bool offset, int64_t n_rows,
                                   bool vnni) {
    const int most = number_range_of(type).most;
    const bool starts = start_bias(type, group) > 0;
    (void)offset, (void)n_rows, (void)vnni;
#if defined(__AVX512F__)
    if (n_rows == 1) return CHOOSE(tiles_of_one);
#elif defined(__AVX2__)
    if (vnni) return choose_vnni(most, group, starts);
#endif
    return CHOOSE(tiles);
}

#endif
