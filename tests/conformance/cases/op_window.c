// SPDX-License-Identifier: MIT
// Windows of images and relative positions.
#include "case.h"
#include "oracle/oracle_sum.h"

static const char why_moved[] = "numbers are moved";

// --- win_part, win_unpart ------------------------------------------------------------------------

static void oracle_win_part(const struct ggml_tensor *node, double *out) {
    const struct ggml_tensor *a = node->src[0];
    const int64_t npx = node->op_params[0], w = node->op_params[2];
    for (int64_t n = 0; n < ggml_nelements(node); ++n) {
        int64_t channel, x, y, window;
        ggml_unravel_index(node, n, &channel, &x, &y, &window);
        x += window % npx * w;
        y += window / npx * w;
        out[n] = x < a->ne[1] && y < a->ne[2] ? oracle_value(a, channel, x, y, 0) : 0;
    }
}

static void oracle_win_unpart(const struct ggml_tensor *node, double *out) {
    const int64_t w = node->op_params[0];
    const int64_t npx = (node->ne[1] + w - 1) / w;
    for (int64_t n = 0; n < ggml_nelements(node); ++n) {
        int64_t channel, x, y, rest;
        ggml_unravel_index(node, n, &channel, &x, &y, &rest);
        out[n] = oracle_value(node->src[0], channel, x % w, y % w, y / w * npx + x / w);
    }
}

static const int window_forms[][4] = {
    // C, W, H, w
    {3, 8, 6, 2},  {1, 1, 1, 1},  {5, 7, 9, 4},   {64, 14, 14, 7}, {2, 13, 11, 3},
    {17, 5, 5, 8}, {1, 31, 2, 5}, {33, 16, 1, 4}, {4, 64, 33, 14}, {0, 4, 4, 2},
};
enum { N_WINDOW_FORMS = sizeof(window_forms) / sizeof(window_forms[0]) };

static void cases_win_part(struct conformance *c) {
    for (int s = 0; s < N_WINDOW_FORMS; ++s) {
        for (int layout = 0; layout < 4; ++layout) {
            const int *f = window_forms[s];
            if (!conformance_case(c, "f32/C=%d/%dx%d/w=%d/%s", f[0], f[1], f[2], f[3],
                                  conformance_layout_name((enum conformance_layout)layout))) {
                continue;
            }
            struct ggml_tensor *a = conformance_input(
                c, GGML_TYPE_F32, extents(f[0], f[1], f[2], 1), (enum conformance_layout)layout);
            conformance_check(c, ggml_win_part(c->ctx, a, f[3]));
        }
    }
}

CONFORMANCE_OP(WIN_PART, oracle_win_part, cases_win_part, 0, why_moved, PLAIN);

static void cases_win_unpart(struct conformance *c) {
    for (int s = 0; s < N_WINDOW_FORMS; ++s) {
        for (int layout = 0; layout < 4; ++layout) {
            const int *f = window_forms[s];
            const int64_t w = f[3], parts = (f[1] + w - 1) / w * ((f[2] + w - 1) / w);
            if (!conformance_case(c, "f32/C=%d/%dx%d/w=%d/%s", f[0], f[1], f[2], f[3],
                                  conformance_layout_name((enum conformance_layout)layout))) {
                continue;
            }
            struct ggml_tensor *a = conformance_input(c, GGML_TYPE_F32, extents(f[0], w, w, parts),
                                                      (enum conformance_layout)layout);
            conformance_check(c, ggml_win_unpart(c->ctx, a, f[1], f[2], f[3]));
        }
    }
}

CONFORMANCE_OP(WIN_UNPART, oracle_win_unpart, cases_win_unpart, 0, why_moved, PLAIN);

// --- relative positions --------------------------------------------------------------------------

static const char why_bits[] = "16-bit numbers are moved";

static void oracle_get_rel_pos(const struct ggml_tensor *node, double *out) {
    struct ggml_tensor a = *node->src[0];
    a.type = GGML_TYPE_F16; // whatever it is: the bits are copied
    for (int64_t n = 0; n < ggml_nelements(node); ++n) {
        int64_t channel, k, q, rest;
        ggml_unravel_index(node, n, &channel, &k, &q, &rest);
        out[n] = oracle_value(&a, channel, node->ne[1] - 1 - k + q, 0, 0);
    }
}

static void cases_get_rel_pos(struct conformance *c) {
    static const int forms[][2] = {{64, 14}, {1, 1}, {7, 5}, {33, 2}, {80, 31}, {0, 3}};
    for (int m = 0; m < 4; ++m) {
        for (int s = 0; s < 6; ++s) {
            const int *f = forms[s];
            const enum ggml_type type = m % 2 ? GGML_TYPE_BF16 : GGML_TYPE_F16;
            const enum conformance_layout layout = m < 2 ? PACKED : GAPS;
            if (!conformance_case(c, "%s/C=%d/n=%d/%s", ggml_type_name(type), f[0], f[1],
                                  conformance_layout_name(layout))) {
                continue;
            }
            struct ggml_tensor *a =
                conformance_input(c, type, extents(f[0], 2 * f[1] - 1, 1, 1), layout);
            conformance_check(c, ggml_get_rel_pos(c->ctx, a, f[1], f[1]));
        }
    }
}

CONFORMANCE_OP(GET_REL_POS, oracle_get_rel_pos, cases_get_rel_pos, 0, why_bits, PLAIN);

static const char why_add_rel_pos[] = "two sums round once each";

static void add_rel_pos_at(const struct ggml_tensor *node, const int64_t at[4],
                           struct oracle_sum *sum) {
    const struct ggml_tensor *pw = node->src[1], *ph = node->src[2];
    const int64_t n = pw->ne[0];
    const int64_t x = at[1] % pw->ne[1], y = at[1] / pw->ne[1];
    oracle_add(sum, oracle_value(node->src[0], at[0], at[1], at[2], at[3]));
    oracle_add(sum, oracle_value(ph, at[0] / n, x, y, at[2]));
    oracle_add(sum, oracle_value(pw, at[0] % n, x, y, at[2]));
}
ORACLE_SUM(add_rel_pos)

static void cases_add_rel_pos(struct conformance *c) {
    static const int forms[][4] = {
        // n, W, H, B
        {4, 4, 4, 2},    {1, 1, 1, 1}, {7, 7, 7, 3},  {5, 3, 2, 1},
        {14, 14, 14, 1}, {3, 5, 1, 4}, {33, 2, 3, 1}, {16, 0, 4, 1},
    };
    for (int inplace = 0; inplace < 2; ++inplace) {
        for (int s = 0; s < 8; ++s) {
            const int *f = forms[s];
            if (!conformance_case(c, "f32/%s/n=%d/%dx%dx%d", inplace ? "inplace" : "new", f[0],
                                  f[1], f[2], f[3])) {
                continue;
            }
            struct ggml_tensor *a = conformance_input(
                c, GGML_TYPE_F32, extents(f[0] * f[0], f[1] * f[2], f[3], 1), PACKED);
            const struct conformance_extents ne = extents(f[0], f[1], f[2], f[3]);
            struct ggml_tensor *pw = conformance_input(c, GGML_TYPE_F32, ne, PACKED);
            struct ggml_tensor *ph = conformance_input(c, GGML_TYPE_F32, ne, PACKED);
            conformance_check(
                c, (inplace ? ggml_add_rel_pos_inplace : ggml_add_rel_pos)(c->ctx, a, pw, ph));
        }
    }
}

CONFORMANCE_OP(ADD_REL_POS, oracle_add_rel_pos, cases_add_rel_pos, 4 * UNIT_F32 * UNIT_F32,
               why_add_rel_pos, .magnitude = magnitude_add_rel_pos);
