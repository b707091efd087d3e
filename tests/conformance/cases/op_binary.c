// SPDX-License-Identifier: MIT
// a + b, a - b, a * b, a / b with repetition of b, and sums with a scalar, chosen rows, a region.
#include <math.h>

#include "case.h"

typedef struct ggml_tensor *(*binary_fn)(struct ggml_context *, struct ggml_tensor *,
                                         struct ggml_tensor *);

static const char why_binary[] = "one F32 operation, rounded once (division: to 2.5 units)";
static const double binary_bound = 16 * UNIT_F32 * UNIT_F32;

static double repeated(const struct ggml_tensor *b, const int64_t i[4]) {
    return oracle_value(b, i[0] % b->ne[0], i[1] % b->ne[1], i[2] % b->ne[2], i[3] % b->ne[3]);
}

static double apply(enum ggml_op op, double x, double y) {
    switch (op) {
    case GGML_OP_SUB: return x - y;
    case GGML_OP_MUL: return x * y;
    case GGML_OP_DIV: return x / y;
    default: return x + y;
    }
}

static void oracle_binary(const struct ggml_tensor *node, double *out) {
    for (int64_t n = 0; n < ggml_nelements(node); ++n) {
        int64_t i[4];
        ggml_unravel_index(node, n, &i[0], &i[1], &i[2], &i[3]);
        out[n] = apply(node->op, oracle_value(node->src[0], i[0], i[1], i[2], i[3]),
                       repeated(node->src[1], i));
    }
}

// Terms of a sum may cancel.
static void binary_magnitude(const struct ggml_tensor *node, double *out) {
    for (int64_t n = 0; n < ggml_nelements(node); ++n) {
        int64_t i[4];
        ggml_unravel_index(node, n, &i[0], &i[1], &i[2], &i[3]);
        const double x = oracle_value(node->src[0], i[0], i[1], i[2], i[3]);
        const double y = repeated(node->src[1], i);
        out[n] = node->op == GGML_OP_MUL || node->op == GGML_OP_DIV ? 0 : fmax(fabs(x), fabs(y));
    }
}

// Divides extent d of `extents` away if bit d of the mask is set; to half of it if it is even.
static struct conformance_extents shrink(struct conformance_extents extents, int mask) {
    for (int d = 0; d < GGML_MAX_DIMS; ++d) {
        if ((mask >> d & 1) == 0 || extents.ne[d] == 0) continue;
        extents.ne[d] = extents.ne[d] % 2 == 0 && mask == 15 ? extents.ne[d] / 2 : 1;
    }
    return extents;
}

struct binary_types {
    enum ggml_type a, b;
};

static const struct binary_types binary_types[] = {
    {GGML_TYPE_F32, GGML_TYPE_F32},   {GGML_TYPE_F16, GGML_TYPE_F16},
    {GGML_TYPE_BF16, GGML_TYPE_BF16}, {GGML_TYPE_F16, GGML_TYPE_F32},
    {GGML_TYPE_BF16, GGML_TYPE_F32},
};
enum { N_BINARY_TYPES = sizeof(binary_types) / sizeof(binary_types[0]) };

static void binary_case(struct conformance *c, binary_fn build, struct binary_types types,
                        struct conformance_extents ne, int mask, enum conformance_layout layout,
                        const char *form) {
    const struct conformance_extents ne_b = shrink(ne, mask);
    if (!conformance_case(c, "%s,%s/%s,%s/%s/%s", ggml_type_name(types.a), ggml_type_name(types.b),
                          conformance_shape(c, ne), conformance_shape(c, ne_b),
                          conformance_layout_name(layout), form)) {
        return;
    }
    struct ggml_tensor *a = conformance_range(c, types.a, ne, layout, -4, 4);
    const enum conformance_layout layout_b = layout == GAPS && mask == 0 ? TRANSPOSED : layout;
    struct ggml_tensor *b = conformance_range(c, types.b, ne_b, layout_b, 0.5, 3);
    conformance_check(c, build(c->ctx, a, b));
}

// Shapes of which every layout is tried: kernels take packed operands as one long row, whose length
// is none of these extents.
static const struct conformance_extents unit_shapes[] = {
    {{1, 1, 8, 3}}, {{1, 5, 3, 2}}, {{1, 64, 1, 1}}, {{2, 1, 1, 9}}, {{1, 1, 1, 7}},
};
enum { N_UNIT_SHAPES = sizeof(unit_shapes) / sizeof(unit_shapes[0]) };

static void binary_cases(struct conformance *c, binary_fn build, binary_fn build_inplace) {
    static const int masks[] = {0, 14, 1, 10, 15, 5};
    for (int t = 0; t < N_BINARY_TYPES; ++t) {
        for (int s = 0; s < 4 * N_UNIT_SHAPES; ++s) {
            const enum conformance_layout layout = (enum conformance_layout)(s % 4);
            const struct conformance_extents ne = unit_shapes[s / 4];
            binary_case(c, build, binary_types[t], ne, 0, layout, "new");
            binary_case(c, build_inplace, binary_types[t], ne, 4, layout, "inplace");
        }
        for (int s = 0; s < conformance_n_shapes; ++s) {
            const struct conformance_extents ne = conformance_shapes[s];
            for (int m = 0; m < (s < CONFORMANCE_FEW_SHAPES ? 6 : 2); ++m) {
                const enum conformance_layout layout = (enum conformance_layout)((s + m) % 4);
                binary_case(c, build, binary_types[t], ne, masks[m], layout, "new");
                if (m < 3)
                    binary_case(c, build_inplace, binary_types[t], ne, masks[m],
                                (enum conformance_layout)((s + m + 1) % 4), "inplace");
            }
        }
    }
}

static struct ggml_tensor *add_to_f32(struct ggml_context *ctx, struct ggml_tensor *a,
                                      struct ggml_tensor *b) {
    return ggml_add_cast(ctx, a, b, GGML_TYPE_F32);
}

static void cases_add(struct conformance *c) {
    binary_cases(c, ggml_add, ggml_add_inplace);
    for (int t = 1; t < N_BINARY_TYPES; ++t) {
        if (binary_types[t].b != GGML_TYPE_F32) continue;
        for (int s = 0; s < conformance_n_shapes; ++s)
            binary_case(c, add_to_f32, binary_types[t], conformance_shapes[s], s % 2 ? 14 : 0,
                        (enum conformance_layout)(s % 4), "to-f32");
    }
}

static void cases_sub(struct conformance *c) {
    binary_cases(c, ggml_sub, ggml_sub_inplace);
}

static void cases_mul(struct conformance *c) {
    binary_cases(c, ggml_mul, ggml_mul_inplace);
}

static void cases_div(struct conformance *c) {
    binary_cases(c, ggml_div, ggml_div_inplace);
}

CONFORMANCE_OP(ADD, oracle_binary, cases_add, binary_bound, why_binary,
               .magnitude = binary_magnitude);
CONFORMANCE_OP(SUB, oracle_binary, cases_sub, binary_bound, why_binary,
               .magnitude = binary_magnitude);
CONFORMANCE_OP(MUL, oracle_binary, cases_mul, binary_bound, why_binary, PLAIN);
CONFORMANCE_OP(DIV, oracle_binary, cases_div, binary_bound, why_binary, PLAIN);
