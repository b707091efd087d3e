// SPDX-License-Identifier: MIT
// Operands of a case: their layout in memory and the numbers in them.
#include <stdlib.h>

#include "oracle/oracle_store.h"
#include "table.h"

const struct conformance_extents conformance_shapes[] = {
    {{33, 5, 3, 2}}, {{1, 1, 1, 1}},   {{64, 4, 2, 1}},  {{0, 3, 1, 1}},    {{257, 3, 1, 1}},
    {{7, 1, 1, 1}},  {{1, 13, 2, 1}},  {{256, 2, 1, 3}}, {{1031, 7, 1, 1}}, {{16, 1, 5, 2}},
    {{5, 0, 2, 1}},  {{127, 2, 2, 2}}, {{32, 33, 1, 1}}, {{4099, 9, 1, 1}},
};
const int conformance_n_shapes = sizeof(conformance_shapes) / sizeof(conformance_shapes[0]);

const struct conformance_extents conformance_long_rows[] = {{{375960, 1, 1, 1}},
                                                            {{2200003, 1, 1, 1}}};
const int conformance_n_long_rows =
    sizeof(conformance_long_rows) / sizeof(conformance_long_rows[0]);

const enum ggml_type conformance_quants[] = {
    GGML_TYPE_Q4_0,   GGML_TYPE_Q4_1,    GGML_TYPE_Q5_0,  GGML_TYPE_Q5_1,    GGML_TYPE_Q8_0,
    GGML_TYPE_Q2_K,   GGML_TYPE_Q3_K,    GGML_TYPE_Q4_K,  GGML_TYPE_Q5_K,    GGML_TYPE_Q6_K,
    GGML_TYPE_IQ4_NL, GGML_TYPE_IQ4_XS,  GGML_TYPE_TQ1_0, GGML_TYPE_TQ2_0,   GGML_TYPE_MXFP4,
    GGML_TYPE_NVFP4,  GGML_TYPE_Q1_0,    GGML_TYPE_Q2_0,  GGML_TYPE_IQ2_XXS, GGML_TYPE_IQ2_XS,
    GGML_TYPE_IQ2_S,  GGML_TYPE_IQ3_XXS, GGML_TYPE_IQ3_S, GGML_TYPE_IQ1_S,   GGML_TYPE_IQ1_M,
};
const int conformance_n_quants = sizeof(conformance_quants) / sizeof(conformance_quants[0]);
const enum ggml_type conformance_floats[3] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16};

const char *conformance_layout_name(enum conformance_layout layout) {
    static const char *const names[N_LAYOUTS] = {"packed", "gaps", "permuted", "rotated",
                                                 "transposed"};
    return names[layout];
}

bool conformance_can_lay_out(enum ggml_type type, struct conformance_extents extents,
                             enum conformance_layout layout) {
    if (extents.ne[0] % ggml_blck_size(type) != 0) return false;
    return layout != TRANSPOSED || oracle_is_plain(type);
}

static struct ggml_tensor *lay_out(struct ggml_context *ctx, enum ggml_type type,
                                   const int64_t ne[GGML_MAX_DIMS],
                                   enum conformance_layout layout) {
    struct ggml_tensor *whole;
    switch (layout) {
    case GAPS:
        whole = ggml_new_tensor_4d(ctx, type, ne[0] + 2 * ggml_blck_size(type), ne[1] + 1,
                                   ne[2] + 1, ne[3]);
        return ggml_view_4d(ctx, whole, ne[0], ne[1], ne[2], ne[3], whole->nb[1], whole->nb[2],
                            whole->nb[3], whole->nb[0] + (ne[1] > 0 ? whole->nb[1] : 0));
    case PERMUTED:
        whole = ggml_new_tensor_4d(ctx, type, ne[0], ne[2], ne[1], ne[3]);
        return ggml_permute(ctx, whole, 0, 2, 1, 3);
    case ROTATED:
        whole = ggml_new_tensor_4d(ctx, type, ne[0], ne[2], ne[3], ne[1]);
        return ggml_permute(ctx, whole, 0, 2, 3, 1);
    case TRANSPOSED:
        whole = ggml_new_tensor_4d(ctx, type, ne[1], ne[0], ne[2], ne[3]);
        return ggml_transpose(ctx, whole);
    default: return ggml_new_tensor(ctx, type, GGML_MAX_DIMS, ne);
    }
}

void conformance_fill(struct conformance *c, struct ggml_tensor *tensor,
                      struct conformance_fill fill) {
    if (c->n_operands == CONFORMANCE_MAX_OPERANDS) return;
    c->operands[c->n_operands++] = (struct conformance_operand){tensor, fill};
}

struct ggml_tensor *conformance_filled(struct conformance *c, enum ggml_type type,
                                       struct conformance_extents extents,
                                       enum conformance_layout layout,
                                       struct conformance_fill fill) {
    struct ggml_tensor *tensor = lay_out(c->ctx, type, extents.ne, layout);
    conformance_fill(c, tensor, fill);
    return tensor;
}

struct ggml_tensor *conformance_range(struct conformance *c, enum ggml_type type,
                                      struct conformance_extents extents,
                                      enum conformance_layout layout, double low, double high) {
    return conformance_filled(c, type, extents, layout,
                              (struct conformance_fill){FILL_UNIFORM, low, high, NULL, 0});
}

struct ggml_tensor *conformance_input(struct conformance *c, enum ggml_type type,
                                      struct conformance_extents extents,
                                      enum conformance_layout layout) {
    return conformance_range(c, type, extents, layout, -1, 1);
}

struct ggml_tensor *conformance_indices(struct conformance *c, enum ggml_type type,
                                        struct conformance_extents extents,
                                        enum conformance_layout layout, int64_t n) {
    return conformance_filled(c, type, extents, layout,
                              (struct conformance_fill){FILL_INTEGER, 0, (double)n, NULL, 0});
}

// --- numbers -------------------------------------------------------------------------------------

// Where the F16 scales of a block lie; the rest of it may be random. -1: none.
struct block_scales {
    enum ggml_type type;
    int offset[2];
};

static const struct block_scales block_scales[] = {
    {GGML_TYPE_Q4_0, {0, -1}},   {GGML_TYPE_Q4_1, {0, 2}},    {GGML_TYPE_Q5_0, {0, -1}},
    {GGML_TYPE_Q5_1, {0, 2}},    {GGML_TYPE_Q8_0, {0, -1}},   {GGML_TYPE_Q8_1, {0, 2}},
    {GGML_TYPE_Q2_K, {80, 82}},  {GGML_TYPE_Q3_K, {108, -1}}, {GGML_TYPE_Q4_K, {0, 2}},
    {GGML_TYPE_Q5_K, {0, 2}},    {GGML_TYPE_Q6_K, {208, -1}}, {GGML_TYPE_IQ4_NL, {0, -1}},
    {GGML_TYPE_IQ4_XS, {0, -1}}, {GGML_TYPE_TQ1_0, {52, -1}}, {GGML_TYPE_TQ2_0, {64, -1}},
    {GGML_TYPE_Q1_0, {0, -1}},   {GGML_TYPE_Q2_0, {0, -1}},   {GGML_TYPE_IQ2_XXS, {0, -1}},
    {GGML_TYPE_IQ2_XS, {0, -1}}, {GGML_TYPE_IQ2_S, {0, -1}},  {GGML_TYPE_IQ3_XXS, {0, -1}},
    {GGML_TYPE_IQ3_S, {0, -1}},  {GGML_TYPE_IQ1_S, {0, -1}},
};

// Bytes of TQ1_0 hold ceil(v * 256 / 243) of five digits v, or of four and a zero.
static uint8_t ternary_byte(struct test_random *random, bool four) {
    const int64_t v = four ? 3 * random_below(random, 81) : random_below(random, 243);
    return (uint8_t)((v * 256 + 242) / 243);
}

// The top nibbles of four little-endian words of IQ1_M, the lowest first, are the scale.
static void write_iq1_m_scale(struct test_random *random, uint8_t *scales) {
    uint8_t d[2];
    oracle_store(GGML_TYPE_F16, d, (double)random_uniform(random, 0.01f, 0.1f));
    for (int k = 0; k < 4; ++k) {
        const int nibble = d[k / 2] >> 4 * (k % 2) & 15;
        scales[2 * k + 1] = (uint8_t)((scales[2 * k + 1] & 15) | nibble << 4);
    }
}

static void write_block(struct test_random *random, enum ggml_type type, uint8_t *block) {
    const size_t size = ggml_type_size(type);
    for (size_t k = 0; k < size; ++k)
        block[k] = (uint8_t)random_u32(random);
    for (size_t r = 0; r < sizeof(block_scales) / sizeof(block_scales[0]); ++r) {
        for (int s = 0; s < 2 && block_scales[r].type == type; ++s) {
            const int offset = block_scales[r].offset[s];
            const float scale = random_uniform(random, 0.01f, 0.1f);
            if (offset >= 0) oracle_store(GGML_TYPE_F16, block + offset, (double)scale);
        }
    }
    if (type == GGML_TYPE_MXFP4) block[0] = (uint8_t)(120 + random_below(random, 8));
    for (int s = 0; s < 4 && type == GGML_TYPE_NVFP4; ++s)
        block[s] = (uint8_t)(24 + random_below(random, 40));
    if (type == GGML_TYPE_IQ1_M) write_iq1_m_scale(random, block + 48);
    for (int k = 0; k < 52 && type == GGML_TYPE_TQ1_0; ++k)
        block[k] = ternary_byte(random, k >= 48);
    if (type == GGML_TYPE_Q8_K)
        oracle_store(GGML_TYPE_F32, block, (double)random_uniform(random, 0.01f, 0.1f));
}

// `left` distinct numbers of this row are yet to be drawn; keeps the drawn ones in `used`.
static double draw_distinct(struct test_random *random, uint8_t *used, int64_t n, int64_t left) {
    int64_t skip = random_below(random, left);
    for (int64_t i = 0; i < n; ++i) {
        if (used[i] || skip-- > 0) continue;
        used[i] = 1;
        return (double)i;
    }
    return 0;
}

// Element i of all, column i0 of a row of n.
static double next_value(struct test_random *random, const struct conformance_fill *fill, int64_t i,
                         int64_t i0, int64_t n, uint8_t *used) {
    switch (fill->kind) {
    case FILL_INTEGER:
        return fill->low + (double)random_below(random, (int64_t)(fill->high - fill->low));
    case FILL_CYCLE: return fill->values[i % fill->n_values];
    case FILL_RAMP: return fill->low + fill->high * (double)i;
    case FILL_DISTINCT: {
        const int64_t choices = (int64_t)(fill->high - fill->low);
        if (i0 == 0) memset(used, 0, (size_t)choices);
        (void)n;
        return fill->low + draw_distinct(random, used, choices, choices - i0);
    }
    default: return fill->low + (fill->high - fill->low) * (double)random_u32(random) * 0x1p-32;
    }
}

// The row that begins with element i of all.
static uint8_t *row_at(const struct ggml_tensor *t, int64_t i) {
    int64_t i0, i1, i2, i3;
    ggml_unravel_index(t, i, &i0, &i1, &i2, &i3);
    return (uint8_t *)t->data + (size_t)i1 * t->nb[1] + (size_t)i2 * t->nb[2] +
           (size_t)i3 * t->nb[3];
}

void conformance_write_operand(struct conformance *c, const struct conformance_operand *operand,
                               const struct ggml_tensor *t) {
    const struct conformance_fill *fill = &operand->fill;
    const bool plain = oracle_is_plain(t->type);
    const int64_t block = ggml_blck_size(t->type);
    uint8_t *used = fill->kind == FILL_DISTINCT ? malloc((size_t)(fill->high - fill->low)) : NULL;
    uint8_t *at = t->data;
    for (int64_t i = 0; i < ggml_nelements(t); i += block, at += t->nb[0]) {
        const int64_t i0 = i % t->ne[0];
        if (i0 == 0) at = row_at(t, i);
        if (plain) {
            oracle_store(t->type, at, next_value(&c->random, fill, i, i0, t->ne[0], used));
        } else {
            write_block(&c->random, t->type, at);
        }
    }
    free(used);
}
