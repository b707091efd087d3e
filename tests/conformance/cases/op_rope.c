// SPDX-License-Identifier: MIT
// Rotary position embedding and its inverse.
#include "case.h"
#include "oracle/oracle_sum.h"

static const char why_rope[] =
    "an angle formed in F32 is off by 4 units of the position times the largest frequency; "
    "cosine, sine, magnitude and rotation add 8 units";

// Both channels of a pair: what the result may be as large as.
static void magnitude_rope(const struct ggml_tensor *node, double *out) {
    const int64_t n = node->ne[0];
    double scale = fmax(1, fabs((double)conformance_param_f32(node, 8)));
    if (conformance_param_f32(node, 7) != 0)
        scale *= 1 + 0.1 * fabs(log((double)conformance_param_f32(node, 6)));
    for (int64_t i = 0; i < ggml_nelements(node); i += n) {
        int64_t i0, i1, i2, i3;
        double square = 0;
        ggml_unravel_index(node, i, &i0, &i1, &i2, &i3);
        for (int64_t k = 0; k < n; ++k)
            square = fmax(square, fabs(oracle_value(node->src[0], k, i1, i2, i3)));
        for (int64_t k = 0; k < n; ++k)
            out[i + k] = scale * square;
    }
}

struct rope_form {
    const char *name;
    int mode;
    int n_dims; // 0: all, -1: none
    int n_offs;
    bool factors, inplace;
    int n_ctx_orig;
    float base, scale, ext, attn, fast, slow;
    int sections[4];
    int positions; // below
};

static const struct rope_form rope_forms[] = {
    {"plain", 0, 0, 0, false, false, 0, 1e4f, 1, 0, 1, 0, 0, {0}, 40},
    {"partial", 0, 4, 0, false, true, 0, 1e4f, 1, 0, 1, 0, 0, {0}, 40},
    {"offset", 0, 4, 2, false, false, 0, 1e4f, 1, 0, 1, 0, 0, {0}, 40},
    {"copied", 0, -1, 0, false, false, 0, 1e4f, 1, 0, 1, 0, 0, {0}, 40},
    {"far", 0, 0, 0, false, false, 0, 5e5f, 1, 0, 1, 0, 0, {0}, 30000},
    {"scaled", 0, 0, 0, false, false, 0, 1e4f, 0.25f, 0, 1.5f, 0, 0, {0}, 90},
    {"factors", 0, 0, 0, true, false, 0, 1e4f, 1, 0, 1, 0, 0, {0}, 40},
    {"yarn", 0, 0, 0, false, true, 4096, 1e4f, 0.25f, 1, 1, 32, 1, {0}, 90},
    {"yarn-half", 0, 0, 0, true, false, 512, 1e4f, 0.5f, 0.5f, 0.9f, 8, 2, {0}, 90},
    {"plain", 2, 0, 0, false, true, 0, 1e4f, 1, 0, 1, 0, 0, {0}, 40},
    {"partial", 2, 4, 0, false, false, 0, 1e4f, 1, 0, 1, 0, 0, {0}, 40},
    {"copied", 2, -1, 0, false, true, 4096, 1e4f, 0.25f, 1, 1, 32, 1, {0}, 40},
    {"offset", 2, 4, 4, true, false, 0, 1e4f, 1, 0, 1, 0, 0, {0}, 40},
    {"far", 2, 0, 0, false, false, 0, 1e6f, 1, 0, 1, 0, 0, {0}, 30000},
    {"factors", 2, 0, 0, true, true, 0, 1e4f, 0.5f, 0, 1, 0, 0, {0}, 40},
    {"yarn", 2, 0, 0, false, false, 2048, 5e5f, 0.125f, 1, 1.25f, 32, 1, {0}, 90},
    {"sections", 8, 0, 0, false, false, 0, 1e4f, 1, 0, 1, 0, 0, {2, 1, 1, 0}, 40},
    {"partial", 8, 4, 0, false, false, 0, 1e4f, 1, 0, 1, 0, 0, {1, 1, 1, 1}, 40},
    {"yarn", 8, 0, 0, true, true, 1024, 1e4f, 0.5f, 1, 1, 32, 1, {1, 2, 1, 1}, 40},
    {"text", 8, 0, 0, false, false, 0, 1e4f, 1, 0, 1, 0, 0, {3, 0, 0, 0}, 40},
    {"sections", 24, 0, 0, false, false, 0, 1e4f, 1, 0, 1, 0, 0, {2, 2, 0, 0}, 40},
    {"four", 24, 0, 0, true, true, 0, 1e4f, 1, 0, 1, 0, 0, {1, 1, 1, 1}, 40},
    {"sections", 40, 0, 0, false, false, 0, 1e4f, 1, 0, 1, 0, 0, {2, 1, 1, 0}, 40},
    {"partial", 40, 4, 2, false, true, 0, 1e4f, 1, 0, 1, 0, 0, {1, 2, 1, 0}, 40},
    {"factors", 40, 0, 0, true, false, 0, 1e6f, 0.5f, 0, 1, 0, 0, {3, 2, 1, 1}, 40},
};

static const struct conformance_extents rope_shapes[] = {
    {{8, 3, 5, 2}},  {{64, 4, 3, 1}}, {{10, 1, 7, 1}}, {{128, 2, 13, 1}}, {{8, 2, 0, 1}},
    {{80, 5, 2, 1}}, {{66, 3, 1, 3}}, {{8, 1, 1, 1}},  {{12, 0, 3, 1}},   {{256, 2, 33, 1}},
};
enum { N_ROPE_SHAPES = sizeof(rope_shapes) / sizeof(rope_shapes[0]) };

static const char *rope_mode_name(int mode) {
    switch (mode) {
    case GGML_ROPE_TYPE_NEOX: return "neox";
    case GGML_ROPE_TYPE_MROPE: return "mrope";
    case GGML_ROPE_TYPE_VISION: return "vision";
    case GGML_ROPE_TYPE_IMROPE: return "imrope";
    default: return "normal";
    }
}

struct rope_sources {
    struct ggml_tensor *a, *positions, *factors;
    int n_dims;
};

static struct ggml_tensor *build_rope(struct conformance *c, const struct rope_form *f,
                                      const struct rope_sources *s) {
    int sections[4];
    memcpy(sections, f->sections, sizeof(sections));
    const bool back = strcmp(c->op->name, "ROPE_BACK") == 0;
    if ((f->mode & GGML_ROPE_TYPE_MROPE) != 0) {
        return (back         ? ggml_rope_multi_back
                : f->inplace ? ggml_rope_multi_inplace
                             : ggml_rope_multi)(c->ctx, s->a, s->positions, s->factors, s->n_dims,
                                                sections, f->mode, f->n_ctx_orig, f->base, f->scale,
                                                f->ext, f->attn, f->fast, f->slow);
    }
    return (back         ? ggml_rope_ext_back
            : f->inplace ? ggml_rope_ext_inplace
                         : ggml_rope_ext)(c->ctx, s->a, s->positions, s->factors, s->n_dims,
                                          f->mode, f->n_ctx_orig, f->base, f->scale, f->ext,
                                          f->attn, f->fast, f->slow);
}

static void rope_case(struct conformance *c, const struct rope_form *f, enum ggml_type type,
                      struct conformance_extents ne, enum conformance_layout layout) {
    const bool vision = f->mode == GGML_ROPE_TYPE_VISION;
    const bool multi = (f->mode & GGML_ROPE_TYPE_MROPE) != 0;
    if (vision && ne.ne[0] % 4 != 0) return;
    if (!conformance_case(c, "%s/%s/%s%s/%s/%s", ggml_type_name(type), rope_mode_name(f->mode),
                          f->name, f->inplace ? "-inplace" : "", conformance_shape(c, ne),
                          conformance_layout_name(layout))) {
        return;
    }
    struct rope_sources s = {.n_dims = vision ? (int)ne.ne[0] / 2 : (int)ne.ne[0]};
    if (f->n_dims != 0) s.n_dims = f->n_dims > 0 ? f->n_dims : 0;
    s.a = conformance_input(c, type, ne, layout);
    s.positions = conformance_indices(
        c, GGML_TYPE_I32, extents(ne.ne[2] * (multi ? 4 : 1), 1, 1, 1), PACKED, f->positions);
    if (f->factors) {
        const struct conformance_extents n = extents(vision ? s.n_dims : s.n_dims / 2, 1, 1, 1);
        s.factors = conformance_range(c, GGML_TYPE_F32, n, PACKED, 0.5, 4);
    }
    struct ggml_tensor *node = build_rope(c, f, &s);
    if (f->n_offs > 0) node = ggml_rope_set_offset(node, f->n_offs);
    const double frequency = fmax(fabs((double)f->scale), fabs((double)f->ext));
    conformance_bound(c, oracle_units(4.0 * f->positions * frequency * (f->factors ? 2 : 1) + 8));
    conformance_check(c, node);
}

static void cases_rope(struct conformance *c) {
    static const enum conformance_layout layouts[] = {PACKED, GAPS, PERMUTED, ROTATED};
    for (size_t f = 0; f < sizeof(rope_forms) / sizeof(rope_forms[0]); ++f) {
        for (int s = 0; s < N_ROPE_SHAPES; ++s) {
            const int first = (int)f + s;
            rope_case(c, &rope_forms[f], GGML_TYPE_F32, rope_shapes[s], layouts[first % 4]);
            rope_case(c, &rope_forms[f], GGML_TYPE_F16, rope_shapes[s], layouts[(first + 1) % 4]);
        }
    }
}

CONFORMANCE_OP(ROPE, oracle_rope, cases_rope, 1, why_rope, .magnitude = magnitude_rope);

static void cases_rope_back(struct conformance *c) {
    static const enum conformance_layout layouts[] = {PACKED, GAPS, PERMUTED, ROTATED};
    for (size_t f = 0; f < sizeof(rope_forms) / sizeof(rope_forms[0]); ++f) {
        if (rope_forms[f].inplace) continue;
        for (int s = 0; s < N_ROPE_SHAPES; ++s) {
            const int first = (int)f + s;
            rope_case(c, &rope_forms[f], GGML_TYPE_F32, rope_shapes[s], layouts[first % 4]);
            if (s % 2 == 0)
                rope_case(c, &rope_forms[f], GGML_TYPE_F16, rope_shapes[s],
                          layouts[(first + 1) % 4]);
        }
    }
}

CONFORMANCE_OP(ROPE_BACK, oracle_rope, cases_rope_back, 1, why_rope, .magnitude = magnitude_rope);
