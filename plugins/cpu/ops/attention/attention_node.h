// SPDX-License-Identifier: MIT
// What the two ways to compute flash_attn_ext have in common.
#ifndef CPU_ATTENTION_NODE_H
#define CPU_ATTENTION_NODE_H

#include "base/kernel.h"
#include "ops/attention/attention.h"
#include "simd/convert.h"
#include "simd/simd.h"

struct attention {
    const struct ggml_tensor *dst, *q, *k, *v, *mask;
    const float *sinks;
    float scale, max_bias, softcap;
    int64_t group; // heads that share K and V
    bool rounds;   // queries may be rounded
};

// Rows of one group of heads: row r is head r % group of token r / group.
struct attention_rows {
    int64_t batch;
    int64_t first_head;
    int64_t first_row;
    int n;
};

// Token, head and batch of the rows' r-th.
static inline struct ggml_row attention_row(const struct attention *a,
                                            const struct attention_rows *rows, int r) {
    const int64_t row = rows->first_row + r;
    return (struct ggml_row){row / a->group, rows->first_head + row % a->group, rows->batch};
}

// The mask of a row of Q.
static inline const char *attention_mask(const struct attention *a, struct ggml_row at) {
    const struct ggml_row from = {at.i1, at.i2 % a->mask->ne[2], at.i3 % a->mask->ne[3]};
    return ggml_row_data(a->mask, from);
}

// What a block of the mask does to the rows that see it.
enum mask_kind {
    MASK_HIDES, // every key from every row
    MASK_ZERO,  // nothing
    MASK_MIXED,
};

// Bits that tell it: none of `nonzero`, or none of `visible`, in any number.
struct mask_bits {
    uint32_t nonzero, visible;
};

// Adds those of n numbers of a row. They are compared as they lie: few blocks have to be converted.
static inline void attention_look(const struct attention *a, const char *row, int64_t key,
                                  int64_t n, struct mask_bits *bits) {
    const void *from = cpu_element(row, a->mask->type, key);
    if (a->mask->type == GGML_TYPE_F16) {
        const ggml_fp16_t *x = from;
        uint16_t nonzero = 0, visible = 0;
        for (int64_t j = 0; j < n; ++j) {
            nonzero |= x[j];
            visible |= x[j] ^ 0xFC00;
        }
        bits->nonzero |= nonzero & 0x7FFFu;
        bits->visible |= visible;
        return;
    }
    const float *x = from;
    uint32_t nonzero = 0, visible = 0;
    for (int64_t j = 0; j < n; ++j) {
        nonzero |= cpu_float_bits(x[j]);
        visible |= cpu_float_bits(x[j]) ^ 0xFF800000u;
    }
    bits->nonzero |= nonzero & 0x7FFFFFFFu;
    bits->visible |= visible;
}

// Of n rows, of which those next to each other are often the same: heads of a token.
static inline enum mask_kind attention_look_at(const struct attention *a, const char *const *rows,
                                               int n, int64_t key, int64_t n_keys) {
    struct mask_bits bits = {0};
    for (int r = 0; r < n; ++r) {
        if (r == 0 || rows[r] != rows[r - 1]) attention_look(a, rows[r], key, n_keys, &bits);
    }
    return bits.visible == 0 ? MASK_HIDES : bits.nonzero == 0 ? MASK_ZERO : MASK_MIXED;
}

// Rows of K and V from `key` on that the rows of Q attend to.
static inline const char *attention_keys(const struct attention *a,
                                         const struct attention_rows *rows, int64_t key) {
    const int64_t head = rows->first_head / (a->q->ne[2] / a->k->ne[2]);
    return ggml_row_data(a->k, (struct ggml_row){key, head, rows->batch});
}

// Several heads of queries share a head of values.
static inline const char *attention_values(const struct attention *a,
                                           const struct attention_rows *rows, int64_t key) {
    const int64_t head = rows->first_head / (a->q->ne[2] / a->v->ne[2]);
    return ggml_row_data(a->v, (struct ggml_row){key, head, rows->batch});
}

// e^x for x <= 0, 0 where it would be subnormal.
CPU_INLINE vf attention_weight(vf x) {
    const vf least = vf_set(-87.0f);
    const vi small = x < least;
    x = vf_select(small, least, x);
    // See cpu_expf.
    const vf shifted = x * 1.44269504f + 12582912.0f;
    const vf n = shifted - 12582912.0f;
    const vf r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    vf p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    const vf y = (p * r) * r + r + 1.0f;
    const vi power = ((vi)shifted - (0x4B400000 - 127)) << 23;
    return (vf)(~small & (vi)(y * (vf)power));
}

// Stores the row of dst: what was summed relative to the largest score, divided by the weights'
// sum. The sink counts in it, but has no value.
void CPU_FN(cpu_attention_store)(const struct attention *a, struct ggml_row at, float largest,
                                 float sum, const float *out);

// Keys [first, end), and the end of those that are computed soon after.
struct attention_range {
    int64_t first, end, soon;
};

// Sums the rows and those of the n_groups - 1 next groups of heads, ATTENTION_QUERIES at most, over
// the keys: parts[r * stride] is row r's largest score, then comes the sum of its weights relative
// to it, and from ATTENTION_HEADER on that of the weighted values. work holds attention_work_floats
// of the node, without the parts.
void CPU_FN(cpu_attention_few)(const struct attention *a, const struct attention_rows *rows,
                               int n_groups, const struct attention_range *range, float *parts,
                               int64_t stride, float *work);

// Computes n <= ATTENTION_ROWS rows; work holds attention_work_floats of the node.
void CPU_FN(cpu_attention_many)(const struct attention *a, const struct attention_rows *rows,
                                float *work);

#endif
