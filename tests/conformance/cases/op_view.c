// SPDX-License-Identifier: MIT
// Views: nothing moves, and the elements are those that the definition names.
#include "case.h"

static const char why_view[] = "no data moves";

static const enum ggml_type view_types[] = {GGML_TYPE_F32,  GGML_TYPE_F16,  GGML_TYPE_BF16,
                                            GGML_TYPE_I32,  GGML_TYPE_I64,  GGML_TYPE_Q4_0,
                                            GGML_TYPE_Q6_K, GGML_TYPE_MXFP4};
enum { N_VIEW_TYPES = sizeof(view_types) / sizeof(view_types[0]) };

static void oracle_reshape(const struct ggml_tensor *node, double *out) {
    oracle_read(node->src[0], out);
}

static struct ggml_tensor *reshape(struct conformance *c, struct ggml_tensor *a, int form) {
    const int64_t *ne = a->ne;
    switch (form) {
    case 0: return ggml_reshape_1d(c->ctx, a, ggml_nelements(a));
    case 1: return ggml_reshape_2d(c->ctx, a, ne[0] * ne[1], ne[2] * ne[3]);
    case 2: return ggml_reshape_3d(c->ctx, a, ne[0], ne[1] * ne[2], ne[3]);
    case 3: return ggml_reshape_4d(c->ctx, a, ne[0], ne[3], ne[1], ne[2]);
    default:
        return ggml_reshape(c->ctx, a,
                            ggml_new_tensor_3d(c->ctx, GGML_TYPE_F32, ne[0], ne[2], ne[1] * ne[3]));
    }
}

static void cases_reshape(struct conformance *c) {
    for (int t = 0; t < N_VIEW_TYPES; ++t) {
        for (int form = 0; form < 5; ++form) {
            const struct conformance_extents ne = extents(256, 3, 2, 4);
            if (!conformance_case(c, "%s/%s/form%d", ggml_type_name(view_types[t]),
                                  conformance_shape(c, ne), form)) {
                continue;
            }
            struct ggml_tensor *a = conformance_range(c, view_types[t], ne, PACKED, -100, 100);
            conformance_check(c, reshape(c, a, form));
        }
    }
}
CONFORMANCE_OP(RESHAPE, oracle_reshape, cases_reshape, 0, why_view, PLAIN);

static void oracle_permute(const struct ggml_tensor *node, double *out) {
    for (int64_t n = 0; n < ggml_nelements(node); ++n) {
        int64_t to[4], from[4];
        ggml_unravel_index(node, n, &to[0], &to[1], &to[2], &to[3]);
        for (int d = 0; d < GGML_MAX_DIMS; ++d)
            from[d] = to[node->op == GGML_OP_TRANSPOSE ? (d < 2 ? 1 - d : d) : node->op_params[d]];
        out[n] = oracle_value(node->src[0], from[0], from[1], from[2], from[3]);
    }
}

static void cases_permute(struct conformance *c) {
    static const int axes[][4] = {{0, 1, 2, 3}, {0, 2, 1, 3}, {1, 0, 2, 3},
                                  {3, 2, 1, 0}, {1, 2, 3, 0}, {2, 0, 3, 1}};
    for (int t = 0; t < N_VIEW_TYPES; ++t) {
        for (size_t p = 0; p < sizeof(axes) / sizeof(axes[0]); ++p) {
            const int *x = axes[p];
            if ((ggml_blck_size(view_types[t]) > 1 && x[0] != 0) ||
                !conformance_case(c, "%s/%d%d%d%d", ggml_type_name(view_types[t]), x[0], x[1], x[2],
                                  x[3])) {
                continue;
            }
            struct ggml_tensor *a =
                conformance_range(c, view_types[t], extents(256, 3, 2, 5), PACKED, -100, 100);
            conformance_check(c, ggml_permute(c->ctx, a, x[0], x[1], x[2], x[3]));
        }
    }
}
CONFORMANCE_OP(PERMUTE, oracle_permute, cases_permute, 0, why_view, PLAIN);

static void cases_transpose(struct conformance *c) {
    for (int t = 0; t < N_VIEW_TYPES; ++t) {
        for (int s = 0; s < conformance_n_shapes; ++s) {
            const struct conformance_extents ne = conformance_shapes[s];
            if (ggml_blck_size(view_types[t]) > 1 ||
                !conformance_case(c, "%s/%s", ggml_type_name(view_types[t]),
                                  conformance_shape(c, ne))) {
                continue;
            }
            conformance_check(
                c, ggml_transpose(c->ctx, conformance_range(c, view_types[t], ne, PACKED, -9, 9)));
        }
    }
}
CONFORMANCE_OP(TRANSPOSE, oracle_permute, cases_transpose, 0, why_view, PLAIN);

// Element i of a view lies at the sum of its strides behind the offset, in a packed source.
static void oracle_view(const struct ggml_tensor *node, double *out) {
    const struct ggml_tensor *a = node->src[0];
    const int64_t block = ggml_blck_size(a->type);
    size_t offset;
    memcpy(&offset, node->op_params, sizeof(offset));
    for (int64_t n = 0; n < ggml_nelements(node); ++n) {
        int64_t i[4];
        ggml_unravel_index(node, n, &i[0], &i[1], &i[2], &i[3]);
        const size_t at = offset + (size_t)i[1] * node->nb[1] + (size_t)i[2] * node->nb[2] +
                          (size_t)i[3] * node->nb[3];
        const int64_t k = (int64_t)(at / ggml_type_size(a->type)) * block + i[0];
        out[n] = oracle_element(a->type, a->data, k);
    }
}

static struct ggml_tensor *view(struct conformance *c, struct ggml_tensor *a, int form) {
    const size_t one = ggml_row_size(a->type, 256);
    switch (form) {
    case 0: return ggml_view_1d(c->ctx, a, 256, one);
    case 1: return ggml_view_2d(c->ctx, a, 256, 3, 2 * one, one);
    case 2: return ggml_view_3d(c->ctx, a, 256, 2, 3, 3 * one, 6 * one, 4 * one);
    case 3: return ggml_view_4d(c->ctx, a, 512, 2, 2, 2, 2 * one, 6 * one, 12 * one, 0);
    default: return ggml_view_1d(c->ctx, a, 0, one);
    }
}

static void cases_view(struct conformance *c) {
    for (int t = 0; t < N_VIEW_TYPES; ++t) {
        for (int form = 0; form < 5; ++form) {
            if (!conformance_case(c, "%s/form%d", ggml_type_name(view_types[t]), form)) continue;
            struct ggml_tensor *a =
                conformance_range(c, view_types[t], extents(512, 3, 2, 4), PACKED, -100, 100);
            conformance_check(c, view(c, a, form));
        }
    }
}
CONFORMANCE_OP(VIEW, oracle_view, cases_view, 0, why_view, PLAIN);
