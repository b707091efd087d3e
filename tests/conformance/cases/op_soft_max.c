// SPDX-License-Identifier: MIT
// soft_max with scale, mask, ALiBi and sinks, and its gradient.
#include "case.h"
#include "oracle/oracle_sum.h"

// --- soft_max ------------------------------------------------------------------------------------

static const char why_soft_max[] =
    "z = scale a + slope mask and z - max are off by 3 units of |z|, which exp makes relative; "
    "exp, sum and quotient add 8 units";

struct soft_max_form {
    const char *name;
    float scale, max_bias;
    bool mask, sinks, inplace;
    enum ggml_type mask_type;
    int64_t extra_rows; // of the mask
    int divide;         // bit d: the mask has extent 1 in dim d and is repeated
};

static const struct soft_max_form soft_max_forms[] = {
    {"plain", 1, 0, false, false, false, GGML_TYPE_F32, 0, 0},
    {"inplace", 1, 0, false, false, true, GGML_TYPE_F32, 0, 0},
    {"scaled", 8.5f, 0, false, false, false, GGML_TYPE_F32, 0, 0},
    {"negative", -3, 0, false, false, true, GGML_TYPE_F32, 0, 0},
    {"mask", 0.25f, 0, true, false, false, GGML_TYPE_F32, 0, 0},
    {"mask-rows", 2, 0, true, false, true, GGML_TYPE_F32, 5, 4},
    {"mask", 0.25f, 0, true, false, false, GGML_TYPE_F16, 0, 12},
    {"mask-rows", 1, 0, true, false, true, GGML_TYPE_F16, 3, 8},
    {"alibi", 0.5f, 8, true, false, false, GGML_TYPE_F32, 0, 12},
    {"alibi", 0.5f, 8, true, false, false, GGML_TYPE_F16, 1, 8},
    {"sinks", 1, 0, false, true, false, GGML_TYPE_F32, 0, 0},
    {"sinks-mask", 3, 0, true, true, true, GGML_TYPE_F32, 0, 12},
    {"sinks-alibi", 1, 4.5f, true, true, false, GGML_TYPE_F16, 2, 12},
};

static const struct conformance_extents soft_max_shapes[] = {
    {{33, 5, 3, 2}}, {{1, 1, 1, 1}},    {{64, 4, 12, 1}},  {{0, 3, 1, 1}},   {{257, 3, 1, 1}},
    {{7, 1, 1, 1}},  {{1, 13, 2, 1}},   {{256, 2, 1, 3}},  {{16, 1, 5, 2}},  {{5, 0, 2, 1}},
    {{31, 2, 8, 2}}, {{1024, 3, 2, 1}}, {{4099, 2, 1, 1}}, {{17, 2, 20, 1}}, {{8, 3, 64, 1}},
};
enum { N_SOFT_MAX_SHAPES = sizeof(soft_max_shapes) / sizeof(soft_max_shapes[0]) };

static struct ggml_tensor *soft_max_mask(struct conformance *c, const struct soft_max_form *form,
                                         struct conformance_extents ne) {
    for (int d = 2; d < 4; ++d) {
        if (form->divide >> d & 1) ne.ne[d] = 1;
    }
    ne.ne[1] += form->extra_rows;
    return conformance_range(c, form->mask_type, ne, PACKED, -4, 1);
}

static void soft_max_case(struct conformance *c, const struct soft_max_form *form,
                          struct conformance_extents ne) {
    const char *types = form->mask ? ggml_type_name(form->mask_type) : "f32";
    if (!conformance_case(c, "%s/%s%s%s/%s", types, form->name, form->inplace ? "-inplace" : "",
                          form->divide ? "-repeated" : "", conformance_shape(c, ne))) {
        return;
    }
    struct ggml_tensor *a = conformance_input(c, GGML_TYPE_F32, ne, PACKED);
    struct ggml_tensor *mask = form->mask ? soft_max_mask(c, form, ne) : NULL;
    struct ggml_tensor *node =
        form->inplace ? ggml_soft_max_ext_inplace(c->ctx, a, mask, form->scale, form->max_bias)
                      : ggml_soft_max_ext(c->ctx, a, mask, form->scale, form->max_bias);
    if (form->sinks) {
        ggml_soft_max_add_sinks(
            node, conformance_range(c, GGML_TYPE_F32, extents(ne.ne[2], 1, 1, 1), PACKED, -2, 3));
    }
    const double largest = fabs((double)form->scale) + (mask ? 4 : 0) + (form->sinks ? 3 : 0);
    conformance_bound(c, oracle_units(3 * 2 * largest + 8));
    conformance_check(c, node);
}

// Cycles through these numbers in mask and operand.
static void soft_max_special(struct conformance *c, const char *name, const double *mask_values,
                             int n_values, double low, double high, bool sinks) {
    const struct conformance_extents ne = extents(67, 5, 2, 1);
    if (!conformance_case(c, "f32/%s", name)) return;
    const struct conformance_fill fill = {FILL_CYCLE, 0, 0, mask_values, n_values};
    struct ggml_tensor *a = conformance_range(c, GGML_TYPE_F32, ne, PACKED, low, high);
    struct ggml_tensor *mask = conformance_filled(c, GGML_TYPE_F32, ne, PACKED, fill);
    struct ggml_tensor *node = ggml_soft_max_ext(c->ctx, a, mask, 1, 0);
    if (sinks)
        ggml_soft_max_add_sinks(node,
                                conformance_input(c, GGML_TYPE_F32, extents(2, 1, 1, 1), PACKED));
    conformance_bound(c, oracle_units(3 * 2 * fmax(fabs(low), fabs(high)) + 8));
    conformance_check(c, node);
}

static void cases_soft_max(struct conformance *c) {
    static const double some[] = {0, -INFINITY, 0.5, -INFINITY, -INFINITY};
    static const double all[] = {-INFINITY};
    static const double zero[] = {0};
    for (size_t f = 0; f < sizeof(soft_max_forms) / sizeof(soft_max_forms[0]); ++f) {
        for (int s = 0; s < N_SOFT_MAX_SHAPES; ++s)
            soft_max_case(c, &soft_max_forms[f], soft_max_shapes[s]);
    }
    for (int s = 0; s < conformance_n_long_rows; ++s)
        soft_max_case(c, &soft_max_forms[0], conformance_long_rows[s]);
    soft_max_special(c, "partly-masked", some, 5, -2, 2, false);
    soft_max_special(c, "partly-masked-sinks", some, 5, -2, 2, true);
    soft_max_special(c, "all-masked", all, 1, -1, 1, false);
    soft_max_special(c, "all-masked-sinks", all, 1, -1, 1, true);
    soft_max_special(c, "large", zero, 1, 9000, 9050, false);
    soft_max_special(c, "far-apart", zero, 1, -300, 300, false);
}

CONFORMANCE_OP(SOFT_MAX, oracle_soft_max, cases_soft_max, 1, why_soft_max, PLAIN);

// --- soft_max_back -------------------------------------------------------------------------------

static const char why_soft_max_back[] =
    "each of n products and sums of <y, dy> and two more products round once";

static void soft_max_back_rows(const struct ggml_tensor *node, double *values, double *sizes) {
    const struct ggml_tensor *dy = node->src[0], *y = node->src[1];
    const int64_t n = node->ne[0];
    for (int64_t row = 0; row < ggml_nrows(node) && n > 0; ++row) {
        struct oracle_sum dot = {0, 0};
        int64_t i[4];
        ggml_unravel_index(node, row * n, &i[0], &i[1], &i[2], &i[3]);
        for (int64_t k = 0; k < n; ++k)
            oracle_add(&dot, oracle_value(y, k, i[1], i[2], i[3]) *
                                 oracle_value(dy, k, i[1], i[2], i[3]));
        for (int64_t k = 0; k < n; ++k) {
            const double factor =
                (double)conformance_param_f32(node, 0) * oracle_value(y, k, i[1], i[2], i[3]);
            const double own = oracle_value(dy, k, i[1], i[2], i[3]);
            if (values) values[row * n + k] = factor * (own - dot.value);
            if (sizes) sizes[row * n + k] = fabs(factor) * (fabs(own) + dot.size);
        }
    }
}

static void oracle_soft_max_back(const struct ggml_tensor *node, double *out) {
    soft_max_back_rows(node, out, NULL);
}

static void magnitude_soft_max_back(const struct ggml_tensor *node, double *out) {
    soft_max_back_rows(node, NULL, out);
}

static void cases_soft_max_back(struct conformance *c) {
    static const float scales[] = {1, 0.125f, -2};
    for (int m = 0; m < 6; ++m) {
        for (int s = 0; s < N_SOFT_MAX_SHAPES; ++s) {
            const struct conformance_extents ne = soft_max_shapes[s];
            const float scale = scales[m % 3];
            if (ne.ne[0] > 2000) continue;
            if (!conformance_case(c, "f32/%s/scale=%g/%s", m < 3 ? "new" : "inplace", (double)scale,
                                  conformance_shape(c, ne))) {
                continue;
            }
            struct ggml_tensor *dy = conformance_input(c, GGML_TYPE_F32, ne, PACKED);
            struct ggml_tensor *y = conformance_range(c, GGML_TYPE_F32, ne, PACKED, 0, 1);
            conformance_bound(c, oracle_units((double)ne.ne[0] + 3));
            conformance_check(c, m < 3 ? ggml_soft_max_ext_back(c->ctx, dy, y, scale, 0)
                                       : ggml_soft_max_ext_back_inplace(c->ctx, dy, y, scale, 0));
        }
    }
}

CONFORMANCE_OP(SOFT_MAX_BACK, oracle_soft_max_back, cases_soft_max_back, 1, why_soft_max_back,
               .magnitude = magnitude_soft_max_back);
