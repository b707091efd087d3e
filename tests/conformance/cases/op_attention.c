// SPDX-License-Identifier: MIT
// Fused attention, its gradient (which does not exist), and the lightning indexer.
#include "case.h"
#include "oracle/oracle_sum.h"
#include "table.h"

// --- flash_attn_ext ------------------------------------------------------------------------------

static const char why_flash_attn[] =
    "a score is off by D + 2 units of scale sum |q k| and a few of its mask, which exp makes "
    "relative; the weighted sum over KV adds KV + 16 units";

// The weighted mean of |v| is at most the largest |v| of the channel.
static void magnitude_flash_attn(const struct ggml_tensor *node, double *out) {
    const struct ggml_tensor *q = node->src[0], *v = node->src[2];
    for (int64_t i = 0; i < ggml_nelements(node); ++i) {
        int64_t i0, head, token, batch;
        ggml_unravel_index(node, i, &i0, &head, &token, &batch);
        out[i] = 0;
        for (int64_t j = 0; j < v->ne[1] && token == 0; ++j)
            out[i] =
                fmax(out[i], fabs(oracle_value(v, i0, j, head / (q->ne[2] / v->ne[2]), batch)));
        if (token > 0) out[i] = out[i0 + node->ne[0] * (head + node->ne[1] * node->ne[2] * batch)];
    }
}

struct attention_form {
    const char *name;
    float max_bias, softcap;
    bool mask, sinks;
    int64_t mask_heads, mask_batches; // 0: as many as heads or batches
    enum ggml_prec prec;
};

static const struct attention_form attention_forms[] = {
    {"plain", 0, 0, false, false, 1, 1, GGML_PREC_DEFAULT},
    {"mask", 0, 0, true, false, 1, 1, GGML_PREC_F32},
    {"alibi", 8, 0, true, false, 1, 0, GGML_PREC_DEFAULT},
    {"softcap", 0, 5, false, false, 1, 1, GGML_PREC_DEFAULT},
    {"sinks", 0, 0, false, true, 1, 1, GGML_PREC_DEFAULT},
    {"softcap-mask-heads", 0, 2.5f, true, false, 0, 0, GGML_PREC_DEFAULT},
    {"all", 4, 10, true, true, 1, 0, GGML_PREC_DEFAULT},
};
enum { N_ATTENTION_FORMS = sizeof(attention_forms) / sizeof(attention_forms[0]) };

struct attention_shape {
    int64_t dk, dv, n, kv, heads, k_heads, v_heads, batch;
};

static const struct attention_shape attention_shapes[] = {
    {64, 64, 3, 17, 4, 2, 2, 1},    {16, 16, 1, 1, 1, 1, 1, 1},     {40, 40, 5, 33, 6, 2, 2, 2},
    {128, 128, 1, 256, 8, 2, 2, 1}, {80, 80, 2, 64, 3, 3, 3, 1},    {7, 5, 3, 11, 2, 1, 1, 1},
    {192, 128, 2, 31, 2, 1, 1, 1},  {64, 64, 70, 65, 2, 1, 1, 1},   {32, 32, 4, 130, 4, 4, 1, 1},
    {72, 72, 1, 600, 2, 2, 2, 1},   {64, 64, 9, 40, 12, 2, 4, 1},   {256, 256, 2, 19, 2, 2, 2, 1},
    {32, 32, 0, 5, 2, 1, 1, 1},     {576, 512, 2, 9, 3, 1, 1, 1},   {128, 128, 35, 72, 4, 2, 2, 1},
    {192, 128, 17, 72, 4, 1, 1, 1}, {256, 256, 17, 56, 4, 1, 1, 1},
};
enum { N_ATTENTION_SHAPES = sizeof(attention_shapes) / sizeof(attention_shapes[0]) };

// Rows are longer than there are keys, and begin at a multiple of 16 bytes where the number of keys
// is one of eight.
static struct ggml_tensor *attention_mask(struct conformance *c, const struct attention_form *f,
                                          const struct attention_shape *s, bool hidden) {
    static const double causal[] = {0, 0, -INFINITY, -1.5, 0, -INFINITY, 0.25};
    static const double nothing[] = {-INFINITY};
    const int64_t heads = f->mask_heads ? f->mask_heads : s->heads;
    const int64_t batches = f->mask_batches ? f->mask_batches : s->batch;
    const int64_t longer = hidden ? 0 : s->kv % 8 == 0 ? 8 : 3;
    const struct conformance_fill fill = {FILL_CYCLE, 0, 0, hidden ? nothing : causal,
                                          hidden ? 1 : 7};
    return conformance_filled(c, GGML_TYPE_F16, extents(s->kv + longer, s->n + 2, heads, batches),
                              PACKED, fill);
}

static void attention_case(struct conformance *c, const struct attention_form *f,
                           const struct attention_shape *s, enum ggml_type k_type,
                           enum ggml_type v_type, enum conformance_layout layout, bool hidden) {
    if (!conformance_case(c, "%s-%s/%s%s/D=%d,%d/N=%d/KV=%d/H=%d,%d,%d/B=%d/%s",
                          ggml_type_name(k_type), ggml_type_name(v_type), f->name,
                          hidden ? "-hidden" : "", (int)s->dk, (int)s->dv, (int)s->n, (int)s->kv,
                          (int)s->heads, (int)s->k_heads, (int)s->v_heads, (int)s->batch,
                          conformance_layout_name(layout))) {
        return;
    }
    const struct conformance_extents q_ne = extents(s->dk, s->n, s->heads, s->batch);
    struct ggml_tensor *q = conformance_input(c, GGML_TYPE_F32, q_ne, layout);
    struct ggml_tensor *k =
        conformance_input(c, k_type, extents(s->dk, s->kv, s->k_heads, s->batch), layout);
    struct ggml_tensor *v =
        conformance_input(c, v_type, extents(s->dv, s->kv, s->v_heads, s->batch), layout);
    struct ggml_tensor *mask = f->mask ? attention_mask(c, f, s, hidden) : NULL;
    const float scale = 1 / sqrtf((float)s->dk);
    struct ggml_tensor *node =
        ggml_flash_attn_ext(c->ctx, q, k, v, mask, scale, f->max_bias, f->softcap);
    ggml_prec_set_acc(node, f->prec);
    if (f->sinks)
        ggml_flash_attn_ext_add_sinks(
            node, conformance_input(c, GGML_TYPE_F32, extents(s->heads, 1, 1, 1), PACKED));
    // Operands in [-1, 1) (blocks: of a few units) have a mean |q k| of 1/4.
    const double d = (double)s->dk;
    const double score = sqrt(d) * (ggml_is_quantized(k_type) ? 4 : 0.25);
    conformance_bound(c, oracle_units((d + 2) * score + (double)s->kv + 16));
    conformance_check(c, node);
}

// Each form with each shape; caches in the types that go with it.
static void attention_plain_cases(struct conformance *c) {
    static const enum ggml_type caches[][2] = {{GGML_TYPE_F32, GGML_TYPE_F32},
                                               {GGML_TYPE_F16, GGML_TYPE_F16},
                                               {GGML_TYPE_BF16, GGML_TYPE_BF16},
                                               {GGML_TYPE_F32, GGML_TYPE_F16},
                                               {GGML_TYPE_F16, GGML_TYPE_F32}};
    for (int f = 0; f < N_ATTENTION_FORMS; ++f) {
        for (int s = 0; s < N_ATTENTION_SHAPES; ++s) {
            for (int t = 0; t < 5; ++t) {
                if (t > 2 && (f + s) % 3 != 0) continue;
                attention_case(c, &attention_forms[f], &attention_shapes[s], caches[t][0],
                               caches[t][1], (enum conformance_layout)((f + s + t) % 4), false);
            }
        }
    }
    for (int s = 0; s < N_ATTENTION_SHAPES; ++s) {
        attention_case(c, &attention_forms[1], &attention_shapes[s], GGML_TYPE_F16, GGML_TYPE_F16,
                       PACKED, true);
        attention_case(c, &attention_forms[6], &attention_shapes[s], GGML_TYPE_F32, GGML_TYPE_F32,
                       PACKED, true);
    }
}

// Forms and layouts go round with `turn`.
static void attention_quant_cases(struct conformance *c, const struct attention_shape *shape,
                                  enum ggml_type quant, int turn) {
    const int64_t block = ggml_blck_size(quant);
    const enum conformance_layout layout = (enum conformance_layout)(turn % 4);
    if (shape->dk % block != 0) return;
    attention_case(c, &attention_forms[turn % N_ATTENTION_FORMS], shape, quant, GGML_TYPE_F32,
                   layout, false);
    if (shape->dv % block != 0) return;
    attention_case(c, &attention_forms[(turn + 1) % N_ATTENTION_FORMS], shape, quant, quant, layout,
                   false);
    attention_case(c, &attention_forms[(turn + 2) % N_ATTENTION_FORMS], shape, GGML_TYPE_F16, quant,
                   layout, false);
}

static void cases_flash_attn(struct conformance *c) {
    static const struct attention_shape quant_shapes[] = {
        {64, 64, 3, 17, 4, 2, 2, 1},    {128, 128, 1, 40, 4, 1, 1, 2},
        {256, 256, 2, 9, 2, 1, 1, 1},   {32, 32, 5, 33, 2, 2, 2, 1},
        {256, 128, 2, 70, 2, 1, 1, 1},  {128, 128, 35, 72, 4, 2, 2, 1},
        {192, 128, 17, 72, 4, 1, 1, 1}, {256, 256, 17, 56, 4, 1, 1, 1},
    };
    enum { N_QUANT_SHAPES = sizeof(quant_shapes) / sizeof(quant_shapes[0]) };
    // More keys than drivers that limit loops can take in one; few and odd channels, and many.
    static const struct attention_shape long_shapes[] = {
        {68, 68, 2, 20011, 1, 1, 1, 1},
        {64, 64, 1, 20011, 2, 1, 1, 1},
        {576, 512, 1, 9001, 2, 1, 1, 1},
    };
    attention_plain_cases(c);
    for (int s = 0; s < 3; ++s)
        attention_case(c, &attention_forms[s], &long_shapes[s], GGML_TYPE_F16, GGML_TYPE_F16,
                       PACKED, false);
    for (int t = 0; t < conformance_n_quants + 2; ++t) {
        const enum ggml_type quant = t < conformance_n_quants    ? conformance_quants[t]
                                     : t == conformance_n_quants ? GGML_TYPE_Q8_1
                                                                 : GGML_TYPE_Q8_K;
        for (int s = 0; s < N_QUANT_SHAPES; ++s)
            attention_quant_cases(c, &quant_shapes[s], quant, t + s);
    }
}

CONFORMANCE_OP(FLASH_ATTN_EXT, oracle_flash_attn_ext, cases_flash_attn, 1, why_flash_attn,
               .magnitude = magnitude_flash_attn);

// --- flash_attn_back -----------------------------------------------------------------------------

static void oracle_nothing(const struct ggml_tensor *node, double *out) {
    for (int64_t i = 0; i < ggml_nelements(node); ++i)
        out[i] = NAN;
}

// There is no gradient of fused attention: the builder says so with an error tensor.
static void cases_flash_attn_back(struct conformance *c) {
    if (!conformance_case(c, "f32/refused")) return;
    struct ggml_tensor *x = conformance_input(c, GGML_TYPE_F32, extents(8, 4, 2, 1), PACKED);
    const struct ggml_tensor *node = ggml_flash_attn_back(c->ctx, x, x, x, x, true);
    const bool refused = ggml_tensor_is_error(node) && strlen(ggml_tensor_error(node)) > 0;
    if (refused == (c->options->corruption == CORRUPT_NOTHING)) {
        conformance_pass(c, NULL, 0, 0);
    } else {
        conformance_fail(c, "the builder answered a node");
    }
}

CONFORMANCE_OP(FLASH_ATTN_BACK, oracle_nothing, cases_flash_attn_back, 0, NULL, PLAIN);

// --- lightning_indexer ---------------------------------------------------------------------------

static const char why_indexer[] = "D + H + 3 products and sums of a term round once each";

static void lightning_indexer_at(const struct ggml_tensor *node, const int64_t i[4],
                                 struct oracle_sum *sum) {
    const struct ggml_tensor *q = node->src[0], *k = node->src[1], *w = node->src[2];
    const struct ggml_tensor *mask = node->src[3];
    for (int64_t h = 0; h < q->ne[1]; ++h) {
        struct oracle_sum dot = {0, 0};
        const double weight = oracle_value(w, h, i[1], 0, i[3]);
        for (int64_t d = 0; d < q->ne[0]; ++d)
            oracle_add(&dot, oracle_value(q, d, h, i[1], i[3]) * oracle_value(k, d, 0, i[0], i[3]));
        sum->value += fmax(0, dot.value) * weight;
        sum->size += dot.size * fabs(weight);
    }
    oracle_add(sum, oracle_value(mask, i[0], i[1], 0, i[3] % mask->ne[3]));
}
ORACLE_SUM(lightning_indexer)

static void indexer_case(struct conformance *c, enum ggml_type type, int64_t d, int64_t h,
                         int64_t t, int64_t kv, int64_t s, bool one_mask,
                         enum conformance_layout layout) {
    static const double mask_values[] = {0, 1.5, -INFINITY, -2, 0};
    const struct conformance_fill fill = {FILL_CYCLE, 0, 0, mask_values, 5};
    if (!conformance_can_lay_out(type, extents(d, 1, kv, s), layout)) return;
    if (!conformance_case(c, "%s/D=%d/H=%d/T=%d/KV=%d/S=%d%s/%s", ggml_type_name(type), (int)d,
                          (int)h, (int)t, (int)kv, (int)s, one_mask ? "/one-mask" : "",
                          conformance_layout_name(layout))) {
        return;
    }
    struct ggml_tensor *q = conformance_input(c, GGML_TYPE_F32, extents(d, h, t, s), layout);
    struct ggml_tensor *k = conformance_input(c, type, extents(d, 1, kv, s), layout);
    struct ggml_tensor *w = conformance_input(c, GGML_TYPE_F32, extents(h, t, 1, s), layout);
    struct ggml_tensor *mask =
        conformance_filled(c, GGML_TYPE_F16, extents(kv, t, 1, one_mask ? 1 : s), PACKED, fill);
    conformance_bound(c, oracle_units((double)(d + h) + 3));
    conformance_check(c, ggml_lightning_indexer(c->ctx, q, k, w, mask));
}

static void indexer_shapes(struct conformance *c, enum ggml_type type,
                           enum conformance_layout layout) {
    const bool plain = !ggml_is_quantized(type);
    indexer_case(c, type, 128, 4, 3, 17, 2, true, layout);
    indexer_case(c, type, 256, 2, 1, 40, 1, false, layout);
    indexer_case(c, type, 64, 7, 5, 13, 3, false, layout);
    if (!plain) return;
    indexer_case(c, type, 1, 1, 1, 1, 1, false, layout);
    indexer_case(c, type, 33, 3, 2, 129, 2, false, layout);
    indexer_case(c, type, 16, 64, 2, 9, 1, false, layout);
    indexer_case(c, type, 32, 2, 0, 9, 1, false, layout);
}

static void cases_lightning_indexer(struct conformance *c) {
    for (int layout = 0; layout < 4; ++layout) {
        for (int t = 0; t < 3; ++t)
            indexer_shapes(c, conformance_floats[t], (enum conformance_layout)layout);
        for (int t = layout % 2; t < conformance_n_quants; t += 2)
            indexer_shapes(c, conformance_quants[t], (enum conformance_layout)layout);
    }
}

CONFORMANCE_OP(LIGHTNING_INDEXER, oracle_lightning_indexer, cases_lightning_indexer, 1, why_indexer,
               .magnitude = magnitude_lightning_indexer);
