// SPDX-License-Identifier: MIT
// Encoders of the types whose blocks hold indices of points of a grid: value = d * (2 s + 1) *
// point, with a scale s per group of 16 or 32.
//
// One group: scales are tried from the one that the largest element asks for downwards, each is
// followed by the least-squares scale of the points it chose, and the best one is iterated twice.
// A block: d is such that the largest scale is the largest multiple; each group takes the best of
// the multiples around its own scale, then d is refitted by least squares and they choose again, as
// in encode_levels.c.
#include <float.h>

#include "quant/encode_search.h"
#include "quant/grid_search.h"
#include "quant/quant_block.h"

enum {
    MAX_PARTS = 8,
    MAX_FORMS = 2,
    MAX_STARTS = 24, // scales tried for a group
    PATIENCE = 4,    // of these without improvement
    REFITS = 2,
};

// The parameters that tell the grid types apart.
struct format {
    enum quant_grid_id grid;
    int n;           // elements per group
    int width;       // of a part
    int scale_top;   // of s
    float unit;      // what d is multiplied with
    bool has_signs;  // or else the points have
    bool even_signs; // an even number of eight are negative
    int n_forms;     // sets of values: points moved up or down
    bool same_form;  // within a group
    float values[2][8];
};

struct part_choice { // a part's point and the set of values it is read with
    struct quant_choice point;
    int form;
};

// A block's numbers, before they are put where the type has them.
struct encoded {
    ggml_half d;
    uint8_t scales[QUANT_MAX_GROUPS];
    uint16_t index[QK_K / 4];
    uint8_t forms[QK_K / 4];
    uint8_t signs[QK_K / 8];
};

// One group while its scale is searched: its parts prepared for each form.
struct group {
    const struct format *f;
    const struct quant_grid *grid;
    struct quant_part parts[MAX_FORMS][MAX_PARTS];
    int n_parts;
    float largest;
};

// What a scale leads to: sums over a group.
struct outcome {
    struct part_choice parts[MAX_PARTS]; // the best point of each part
    float xv;                            // sum of w x v: what least squares needs
    float vv;                            // sum of w v^2
};

// Prepares the search for one group: its parts in each of the type's forms.
static void open_group(const struct format *f, const struct quant_grid *grid, const float *x,
                       const float *w, struct group *out) {
    out->f = f;
    out->grid = grid;
    out->n_parts = f->n / f->width;
    out->largest = quant_max_abs(x, f->n);
    for (int form = 0; form < f->n_forms; ++form) {
        for (int p = 0; p < out->n_parts; ++p) {
            quant_open_part(grid, f->values[form], x + p * f->width, w + p * f->width,
                            &out->parts[form][p]);
        }
    }
}

// By how much the error is below that of zeros.
// The squared error is sum w x^2 - gain, so that the largest gain is the least error and the
// constant is never computed.
static float gain_of(float xv, float vv, float scale) {
    return scale * (2.0f * xv - scale * vv);
}

// The nearest point for each part at a scale, all in one form; returns what it gains over
// encoding zeros.
static float choose_form(const struct group *g, int form, float scale, struct outcome *out) {
    out->xv = out->vv = 0.0f;
    for (int p = 0; p < g->n_parts; ++p) {
        out->parts[p].point = quant_choose_point(g->grid, &g->parts[form][p], scale);
        out->parts[p].form = form;
        out->xv += out->parts[p].point.xv;
        out->vv += out->parts[p].point.vv;
    }
    return gain_of(out->xv, out->vv, scale);
}

// Chooses all points for a scale; returns the gain.
static float choose_points(const struct group *g, float scale, struct outcome *out) {
    float gain = choose_form(g, 0, scale, out);
    if (g->f->n_forms == 1) return gain;
    struct outcome other;
    const float other_gain = choose_form(g, 1, scale, &other);
    if (g->f->same_form) {
        if (!(other_gain > gain)) return gain;
        *out = other;
        return other_gain;
    }
    for (int p = 0; p < g->n_parts; ++p) {
        struct quant_choice *mine = &out->parts[p].point;
        const struct quant_choice *theirs = &other.parts[p].point;
        if (!(gain_of(theirs->xv, theirs->vv, scale) > gain_of(mine->xv, mine->vv, scale)))
            continue;
        out->xv += theirs->xv - mine->xv;
        out->vv += theirs->vv - mine->vv;
        out->parts[p] = other.parts[p];
    }
    return gain_of(out->xv, out->vv, scale);
}

// The best scale found for a group by itself; 0 if all elements are.
static float fit_scale(const struct group *g) {
    // The largest coordinate is what the largest element should be mapped to at the first trial.
    const float top = g->f->values[0][g->f->width == 8 ? 2 : 7];
    float best = 0.0f, best_gain = 0.0f;
    float scale = 1.15f * g->largest / top;
    struct outcome o;
    if (!(scale > FLT_MIN)) return 0.0f;
    // Each trial is 15 % smaller; PATIENCE trials without improvement end the search, since the
    // error is close to convex in the scale.
    for (int k = 0, last = 0; k < MAX_STARTS && k - last < PATIENCE; ++k, scale *= 0.85f) {
        choose_points(g, scale, &o);
        const float gain = o.xv > 0.0f ? o.xv * o.xv / o.vv : 0.0f;
        if (!(gain > best_gain)) continue;
        best_gain = gain;
        best = o.xv / o.vv;
        last = k;
    }
    // Alternating minimisation: points for the scale, then the scale that fits them best.
    for (int k = 0; k < REFITS && best > 0.0f; ++k) {
        choose_points(g, best, &o);
        if (!(o.xv > 0.0f)) break;
        best = o.xv / o.vv;
    }
    return best;
}

// --- a block -------------------------------------------------------------------------------------

// Signs away: the targets are magnitudes. Where an odd number would be negative, the element that
// matters least gets the wrong sign.
static void take_signs(const struct format *f, struct quant_elements *e, uint8_t *signs) {
    for (int i = 0; i < QK_K; i += 8) {
        uint8_t byte = 0;
        int least = i;
        int odd = 0;
        for (int j = i; j < i + 8; ++j) {
            const int negative = e->x[j] < 0.0f;
            byte |= (uint8_t)(negative << (j - i));
            odd ^= negative;
            e->x[j] = fabsf(e->x[j]);
            if (e->w[j] * e->x[j] < e->w[least] * e->x[least]) least = j;
        }
        if (f->even_signs && odd) {
            byte ^= (uint8_t)(1 << (least - i));
            e->x[least] = -e->x[least];
        }
        signs[i / 8] = byte;
    }
}

// Writes the chosen points into the block's indices.
static void put_group(const struct format *f, const struct group *g, const struct outcome *o,
                      int first, struct encoded *out) {
    for (int p = 0; p < g->n_parts; ++p) {
        const int at = first / f->width + p;
        out->index[at] = (uint16_t)quant_grid_index(g->grid, o->parts[p].point.point);
        out->forms[at] = (uint8_t)o->parts[p].form;
    }
}

// All groups choose for a d; returns the gain, and the least-squares d for what was chosen.
static float choose_groups(const struct format *f, const struct quant_grid *grid,
                           const struct quant_elements *e, const float *own, float d,
                           struct encoded *out, float *out_refit) {
    const float unit = d * f->unit;
    const float inverse = quant_inverse(unit);
    double sum_xv = 0.0, sum_vv = 0.0;
    float sum = 0.0f;
    struct group g;
    for (int i = 0; i < QK_K / f->n; ++i) {
        const int nearest = quant_truncate(0.5f * own[i] * inverse, 0, f->scale_top);
        struct outcome best = {0};
        float best_gain = -INFINITY;
        open_group(f, grid, e->x + f->n * i, e->w + f->n * i, &g);
        for (int s = MAX(nearest - 1, 0); s <= MIN(nearest + 1, f->scale_top); ++s) {
            struct outcome o;
            const float gain = choose_points(&g, unit * (float)(2 * s + 1), &o);
            if (!(gain > best_gain)) continue;
            best_gain = gain;
            best = o;
            out->scales[i] = (uint8_t)s;
        }
        put_group(f, &g, &best, f->n * i, out);
        const double multiple = f->unit * (float)(2 * out->scales[i] + 1);
        sum_xv += multiple * best.xv;
        sum_vv += multiple * multiple * best.vv;
        sum += best_gain;
    }
    *out_refit = sum_xv > 0.0 ? (float)(sum_xv / sum_vv) : 0.0f;
    return sum;
}

// Encodes a block: each group's own scale, a d of which the largest is a whole multiple, the
// groups' choices for it, and everything once more with the refitted d; the better of both stays.
static void encode(const struct format *f, const float *x, const float *w, struct encoded *out) {
    const struct quant_grid *grid = quant_grid(f->grid);
    struct quant_elements e;
    float own[QUANT_MAX_GROUPS];
    float largest = 0.0f;
    quant_load(x, w, QK_K, &e);
    memset(out, 0, sizeof(*out));
    if (f->has_signs) take_signs(f, &e, out->signs);
    for (int i = 0; i < QK_K / f->n; ++i) {
        struct group g;
        open_group(f, grid, e.x + f->n * i, e.w + f->n * i, &g);
        own[i] = fit_scale(&g);
        largest = MAX(largest, own[i]);
    }
    float d, refit;
    out->d = quant_half_scale(largest / (f->unit * (float)(2 * f->scale_top + 1)), &d);
    if (d == 0.0f) return;
    const float gain = choose_groups(f, grid, &e, own, d, out, &refit);
    struct encoded next = *out;
    next.d = quant_half_scale(refit, &d);
    if (d > 0.0f && choose_groups(f, grid, &e, own, d, &next, &refit) > gain) *out = next;
}

// --- types ---------------------------------------------------------------------------------------

#define IQ2_VALUES                                                                                 \
    { 8, 25, 43 }

// Two words per 32 elements: four bytes of indices, then four times seven signs and the scale.
// The eighth sign follows from the parity.
static void encode_block_iq2_xxs(const float *x, const float *w, block_iq2_xxs *b) {
    static const struct format format = {QUANT_GRID_IQ2_XXS, 32, 8, 15, 0.125f, true, true, 1, true,
                                         {IQ2_VALUES}};
    struct encoded q;
    encode(&format, x, w, &q);
    b->d = q.d;
    for (int g = 0; g < QK_K / 32; ++g) {
        uint32_t words[2] = {0, (uint32_t)q.scales[g] << 28};
        for (int l = 0; l < 4; ++l) {
            words[0] |= (uint32_t)q.index[4 * g + l] << 8 * l;
            words[1] |= (uint32_t)(q.signs[4 * g + l] & 127) << 7 * l;
        }
        memcpy(b->qs + 4 * g, words, sizeof(words));
    }
}
ENCODE_ROW_WEIGHTED(iq2_xxs, QK_K, encode_block_iq2_xxs)

// Two scales of four bits in each byte, the first one low.
static void put_nibble_scales(const struct encoded *q, int n, uint8_t *scales) {
    for (int g = 0; g < n; ++g)
        scales[g] = (uint8_t)(q->scales[2 * g] | q->scales[2 * g + 1] << 4);
}

// Nine bits of index and seven signs per eight elements.
static void encode_block_iq2_xs(const float *x, const float *w, block_iq2_xs *b) {
    static const struct format format = {QUANT_GRID_IQ2_XS, 16, 8, 15, 0.125f, true, true, 1, true,
                                         {IQ2_VALUES}};
    struct encoded q;
    encode(&format, x, w, &q);
    b->d = q.d;
    put_nibble_scales(&q, QK_K / 32, b->scales);
    for (int i = 0; i < QK_K / 8; ++i)
        b->qs[i] = (uint16_t)(q.index[i] | (q.signs[i] & 127) << 9);
}
ENCODE_ROW_WEIGHTED(iq2_xs, QK_K, encode_block_iq2_xs)

// Ten bits of index: eight in qs, two in qh; all eight signs are stored behind the indices.
static void encode_block_iq2_s(const float *x, const float *w, block_iq2_s *b) {
    static const struct format format = {QUANT_GRID_IQ2_S, 16, 8, 15, 0.125f, true, false, 1, true,
                                         {IQ2_VALUES}};
    struct encoded q;
    encode(&format, x, w, &q);
    memset(b, 0, sizeof(*b));
    b->d = q.d;
    put_nibble_scales(&q, QK_K / 32, b->scales);
    memcpy(b->qs + QK_K / 8, q.signs, sizeof(q.signs));
    for (int i = 0; i < QK_K / 8; ++i) {
        b->qs[i] = (uint8_t)q.index[i];
        b->qh[i / 4] |= (uint8_t)(q.index[i] >> 8 << 2 * (i % 4));
    }
}
ENCODE_ROW_BOTH(iq2_s, QK_K)

// An index of eight bits per four elements, then signs and scales as in IQ2_XXS.
static void encode_block_iq3_xxs(const float *x, const float *w, block_iq3_xxs *b) {
    static const struct format format = {QUANT_GRID_IQ3_XXS,
                                         32,
                                         4,
                                         15,
                                         0.25f,
                                         true,
                                         true,
                                         1,
                                         true,
                                         {{4, 12, 20, 28, 36, 44, 52, 62}}};
    struct encoded q;
    encode(&format, x, w, &q);
    b->d = q.d;
    for (int i = 0; i < QK_K / 4; ++i)
        b->qs[i] = (uint8_t)q.index[i];
    for (int g = 0; g < QK_K / 32; ++g) {
        uint32_t codes = (uint32_t)q.scales[g] << 28;
        for (int l = 0; l < 4; ++l)
            codes |= (uint32_t)(q.signs[4 * g + l] & 127) << 7 * l;
        memcpy(b->qs + QK_K / 4 + 4 * g, &codes, sizeof(codes));
    }
}
ENCODE_ROW_BOTH(iq3_xxs, QK_K)

// Nine bits of index per four elements, the ninth in qh.
static void encode_block_iq3_s(const float *x, const float *w, block_iq3_s *b) {
    static const struct format format = {
        QUANT_GRID_IQ3_S, 32, 4, 15, 1.0f, true, false, 1, true, {{1, 3, 5, 7, 9, 11, 13, 15}}};
    struct encoded q;
    encode(&format, x, w, &q);
    memset(b, 0, sizeof(*b));
    b->d = q.d;
    put_nibble_scales(&q, QK_K / 64, b->scales);
    memcpy(b->signs, q.signs, sizeof(q.signs));
    for (int i = 0; i < QK_K / 4; ++i) {
        b->qs[i] = (uint8_t)q.index[i];
        b->qh[i / 8] |= (uint8_t)(q.index[i] >> 8 << (i % 8));
    }
}
ENCODE_ROW_BOTH(iq3_s, QK_K)

#define IQ1_VALUES                                                                                 \
    {-7, 1, 9}, {                                                                                  \
        -9, -1, 7                                                                                  \
    }

// 11 bits of index per eight elements; qh has three bits of four indices, the scale, and the
// form: whether values lie above or below the grid's.
static void encode_block_iq1_s(const float *x, const float *w, block_iq1_s *b) {
    static const struct format format = {QUANT_GRID_IQ1, 32,    8, 7,    0.125f,
                                         false,          false, 2, true, {IQ1_VALUES}};
    struct encoded q;
    encode(&format, x, w, &q);
    b->d = q.d;
    for (int g = 0; g < QK_K / 32; ++g) {
        int high = q.scales[g] << 12 | q.forms[4 * g] << 15;
        for (int l = 0; l < 4; ++l) {
            b->qs[4 * g + l] = (uint8_t)q.index[4 * g + l];
            high |= q.index[4 * g + l] >> 8 << 3 * l;
        }
        b->qh[g] = (uint16_t)high;
    }
}
ENCODE_ROW_WEIGHTED(iq1_s, QK_K, encode_block_iq1_s)

// As IQ1_S, with a form per eight elements. d, a half, is spread over the top four bits of the
// four words of scales.
static void encode_block_iq1_m(const float *x, const float *w, block_iq1_m *b) {
    static const struct format format = {QUANT_GRID_IQ1, 16,    8, 7,     0.125f,
                                         false,          false, 2, false, {IQ1_VALUES}};
    struct encoded q;
    uint16_t scales[QK_K / 64];
    encode(&format, x, w, &q);
    memset(b, 0, sizeof(*b));
    for (int i = 0; i < QK_K / 8; ++i) {
        b->qs[i] = (uint8_t)q.index[i];
        b->qh[i / 2] |= (uint8_t)((q.index[i] >> 8 | q.forms[i] << 3) << 4 * (i % 2));
    }
    for (int i = 0; i < QK_K / 64; ++i) {
        scales[i] = (uint16_t)((q.d >> 4 * i & 15) << 12);
        for (int g = 0; g < 4; ++g)
            scales[i] |= (uint16_t)(q.scales[4 * i + g] << 3 * g);
    }
    memcpy(b->scales, scales, sizeof(scales));
}
ENCODE_ROW_BOTH(iq1_m, QK_K)
