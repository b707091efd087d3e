// SPDX-License-Identifier: MIT
// Every way to derive a split, and what happens where there is none: results as on one device.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "meta_test.h"

static struct virtual_host host;

static struct ggml_tensor *leaf2(struct meta_run *run, const char *name, int64_t ne0, int64_t ne1) {
    return meta_leaf(run, name, GGML_TYPE_F32, ne0, ne1, 1, 1);
}

static struct ggml_tensor *leaf3(struct meta_run *run, const char *name, int64_t ne0, int64_t ne1,
                                 int64_t ne2) {
    return meta_leaf(run, name, GGML_TYPE_F32, ne0, ne1, ne2, 1);
}

static struct ggml_tensor *leaf1i(struct meta_run *run, const char *name, int64_t n) {
    return meta_leaf(run, name, GGML_TYPE_I32, n, 1, 1, 1);
}

// --- graphs: names of leafs decide about their split ---------------------------------------------

#define BUILD(name) static struct ggml_tensor *name(struct meta_run *run, void *user)
#define CTX run->nodes

BUILD(mul_mat_rows) {
    (void)user;
    return ggml_mul_mat(CTX, leaf2(run, "a", 64, 48), leaf2(run, "m", 64, 5));
}

BUILD(mul_mat_both) {
    (void)user;
    return ggml_mul_mat(CTX, leaf2(run, "a", 64, 48), leaf2(run, "b", 64, 5));
}

BUILD(mul_mat_quantised) {
    (void)user;
    struct ggml_tensor *a = meta_leaf(run, "a", GGML_TYPE_Q8_0, 256, 40, 1, 1);
    return ggml_mul_mat(CTX, a, leaf2(run, "m", 256, 3));
}

BUILD(batched) {
    (void)user;
    return ggml_mul_mat(CTX, leaf3(run, "a", 32, 7, 4), leaf3(run, "b", 32, 5, 8));
}

BUILD(bias) {
    (void)user;
    struct ggml_tensor *x = ggml_mul_mat(CTX, leaf2(run, "a", 32, 48), leaf2(run, "m", 32, 5));
    return ggml_gelu(CTX, ggml_add(CTX, x, leaf2(run, "n", 48, 1)));
}

BUILD(norm_across) {
    (void)user;
    struct ggml_tensor *x = ggml_mul_mat(CTX, leaf2(run, "a", 32, 48), leaf2(run, "m", 32, 5));
    return ggml_mul(CTX, ggml_rms_norm(CTX, x, 1e-5f), leaf2(run, "n", 48, 1));
}

BUILD(soft_max_across) {
    (void)user;
    struct ggml_tensor *x = ggml_mul_mat(CTX, leaf2(run, "a", 32, 48), leaf2(run, "m", 32, 5));
    return ggml_soft_max(CTX, x);
}

BUILD(partial_result) {
    (void)user;
    struct ggml_tensor *x = ggml_mul_mat(CTX, leaf2(run, "a", 64, 48), leaf2(run, "b", 64, 5));
    return ggml_scale(CTX, x, 0.5f);
}

BUILD(partial_used_twice) {
    (void)user;
    struct ggml_tensor *x = ggml_mul_mat(CTX, leaf2(run, "a", 64, 48), leaf2(run, "b", 64, 5));
    struct ggml_tensor *scaled = ggml_scale(CTX, x, 0.5f);
    return ggml_add(CTX, ggml_sqr(CTX, x), scaled);
}

BUILD(partial_sums_add) {
    (void)user;
    struct ggml_tensor *x = ggml_mul_mat(CTX, leaf2(run, "a", 64, 48), leaf2(run, "b", 64, 5));
    struct ggml_tensor *y = ggml_mul_mat(CTX, leaf2(run, "a2", 64, 48), leaf2(run, "b2", 64, 5));
    return ggml_sqr(CTX, ggml_add(CTX, x, y));
}

BUILD(fused_parts) {
    (void)user;
    struct ggml_tensor *x = ggml_mul_mat(CTX, leaf2(run, "a", 32, 96), leaf2(run, "m", 32, 5));
    const size_t row = x->nb[1];
    struct ggml_tensor *q = ggml_view_2d(CTX, x, 32, 5, row, 0);
    struct ggml_tensor *k = ggml_view_2d(CTX, x, 32, 5, row, 32 * sizeof(float));
    struct ggml_tensor *v = ggml_view_2d(CTX, x, 32, 5, row, 64 * sizeof(float));
    struct ggml_tensor *qk = ggml_mul(CTX, ggml_cont(CTX, q), ggml_cont(CTX, k));
    return ggml_add(CTX, qk, ggml_cont(CTX, v));
}

BUILD(glu_fused) {
    (void)user;
    struct ggml_tensor *x = ggml_mul_mat(CTX, leaf2(run, "a", 32, 96), leaf2(run, "m", 32, 5));
    return ggml_swiglu(CTX, x);
}

BUILD(view_across) {
    (void)user;
    struct ggml_tensor *x = ggml_mul_mat(CTX, leaf2(run, "a", 32, 48), leaf2(run, "m", 32, 5));
    struct ggml_tensor *part = ggml_view_2d(CTX, x, 17, 5, x->nb[1], 11 * sizeof(float));
    return ggml_sqr(CTX, ggml_cont(CTX, part));
}

BUILD(heads) {
    (void)user;
    struct ggml_tensor *x = ggml_mul_mat(CTX, leaf2(run, "a", 32, 64), leaf2(run, "m", 32, 5));
    struct ggml_tensor *h = ggml_permute(CTX, ggml_reshape_3d(CTX, x, 8, 8, 5), 0, 2, 1, 3);
    struct ggml_tensor *back =
        ggml_cont(CTX, ggml_permute(CTX, ggml_rms_norm(CTX, h, 1e-5f), 0, 2, 1, 3));
    return ggml_sqr(CTX, ggml_reshape_2d(CTX, back, 64, 5));
}

BUILD(sums) {
    (void)user;
    struct ggml_tensor *x = ggml_mul_mat(CTX, leaf2(run, "a", 32, 48), leaf2(run, "m", 32, 5));
    return ggml_add(CTX, ggml_sqr(CTX, ggml_sum_rows(CTX, x)), ggml_sum(CTX, x));
}

BUILD(in_place) {
    (void)user;
    struct ggml_tensor *x = ggml_mul_mat(CTX, leaf2(run, "a", 32, 48), leaf2(run, "m", 32, 5));
    x = ggml_add_inplace(CTX, x, leaf2(run, "n", 48, 1));
    return ggml_scale_inplace(CTX, ggml_soft_max_inplace(CTX, x), 2.0f);
}

BUILD(rows_of_cache) {
    (void)user;
    struct ggml_tensor *cache = leaf2(run, "c", 48, 16);
    struct ggml_tensor *ids = meta_leaf(run, "rows", GGML_TYPE_I64, 5, 1, 1, 1);
    struct ggml_tensor *x = ggml_mul_mat(CTX, leaf2(run, "a", 32, 48), leaf2(run, "m", 32, 5));
    struct ggml_tensor *written = ggml_set_rows(CTX, cache, x, ids);
    return ggml_sqr(CTX, ggml_view_2d(CTX, written, 48, 9, cache->nb[1], 0));
}

// Into a cache that is split along its rows: there is no way but the fallback.
BUILD(rows_across) {
    (void)user;
    struct ggml_tensor *cache = leaf2(run, "d", 48, 16);
    struct ggml_tensor *ids = meta_leaf(run, "rows", GGML_TYPE_I64, 5, 1, 1, 1);
    struct ggml_tensor *x = ggml_mul_mat(CTX, leaf2(run, "a", 32, 48), leaf2(run, "m", 32, 5));
    struct ggml_tensor *written = ggml_set_rows(CTX, cache, x, ids);
    return ggml_sqr(CTX, written);
}

BUILD(copy_into_view) {
    (void)user;
    struct ggml_tensor *cache = leaf2(run, "c", 48, 16);
    struct ggml_tensor *x = ggml_mul_mat(CTX, leaf2(run, "a", 32, 48), leaf2(run, "m", 32, 5));
    struct ggml_tensor *place = ggml_view_2d(CTX, cache, 48, 5, cache->nb[1], 3 * cache->nb[1]);
    ggml_build_forward_expand(run->graph, ggml_cpy(CTX, x, place));
    return ggml_sqr(CTX, cache);
}

BUILD(embeddings) {
    (void)user;
    return ggml_scale(CTX, ggml_get_rows(CTX, leaf2(run, "c", 48, 16), leaf1i(run, "ids", 6)),
                      2.0f);
}

BUILD(concatenated) {
    (void)user;
    struct ggml_tensor *x = ggml_mul_mat(CTX, leaf2(run, "a", 32, 48), leaf2(run, "m", 32, 5));
    struct ggml_tensor *y = ggml_concat(CTX, x, leaf2(run, "n", 48, 2), 1);
    return ggml_concat(CTX, y, leaf2(run, "o", 3, 7), 0);
}

BUILD(experts) {
    (void)user;
    struct ggml_tensor *ids = meta_leaf(run, "ids", GGML_TYPE_I32, 2, 5, 1, 1);
    struct ggml_tensor *x = leaf3(run, "m", 32, 1, 5);
    struct ggml_tensor *up = ggml_mul_mat_id(CTX, leaf3(run, "a", 32, 64, 4), x, ids);
    up = ggml_silu(CTX, ggml_add_id(CTX, up, leaf2(run, "c", 64, 4), ids));
    struct ggml_tensor *down = ggml_mul_mat_id(CTX, leaf3(run, "e", 64, 32, 4), up, ids);
    down = ggml_add_id(CTX, down, leaf2(run, "p", 32, 4), ids);
    down = ggml_mul(CTX, down, leaf3(run, "w", 1, 2, 5));
    struct ggml_tensor *first = ggml_view_2d(CTX, down, 32, 5, down->nb[2], 0);
    struct ggml_tensor *second = ggml_view_2d(CTX, down, 32, 5, down->nb[2], down->nb[1]);
    struct ggml_tensor *sum = ggml_add(CTX, first, second);
    return ggml_add(CTX, sum, leaf2(run, "n", 32, 5));
}

BUILD(attention) {
    (void)user;
    struct ggml_tensor *q = ggml_permute(CTX, leaf3(run, "q", 16, 8, 5), 0, 2, 1, 3);
    struct ggml_tensor *k =
        ggml_permute(CTX, meta_leaf(run, "k", GGML_TYPE_F16, 16, 4, 9, 1), 0, 2, 1, 3);
    struct ggml_tensor *v =
        ggml_permute(CTX, meta_leaf(run, "v", GGML_TYPE_F16, 16, 4, 9, 1), 0, 2, 1, 3);
    struct ggml_tensor *mask = meta_leaf(run, "mask", GGML_TYPE_F16, 9, 5, 1, 1);
    struct ggml_tensor *x = ggml_flash_attn_ext(CTX, q, k, v, mask, 0.25f, 0.0f, 0.0f);
    return ggml_sqr(CTX, ggml_reshape_2d(CTX, x, 128, 5));
}

// Head h has mask h modulo their number: heads that lie side by side have different ones.
static struct ggml_tensor *attention_with_masks(struct meta_run *run, int64_t n_masks) {
    struct ggml_tensor *q = leaf3(run, "q", 16, 5, 8);
    struct ggml_tensor *k = meta_leaf(run, "k", GGML_TYPE_F16, 16, 9, 8, 1);
    struct ggml_tensor *v = meta_leaf(run, "v", GGML_TYPE_F16, 16, 9, 8, 1);
    struct ggml_tensor *mask = meta_leaf(run, "mask", GGML_TYPE_F16, 9, 5, n_masks, 1);
    return ggml_flash_attn_ext(CTX, q, k, v, mask, 0.25f, 0.0f, 0.0f);
}

BUILD(attention_with_4_masks) {
    (void)user;
    return attention_with_masks(run, 4);
}

BUILD(attention_with_8_masks) {
    (void)user;
    return attention_with_masks(run, 8);
}

// Slopes by the number of the head: only the fallback knows them.
BUILD(attention_with_slopes) {
    (void)user;
    struct ggml_tensor *q = ggml_permute(CTX, leaf3(run, "q", 16, 8, 5), 0, 2, 1, 3);
    struct ggml_tensor *k = ggml_permute(CTX, leaf3(run, "k", 16, 4, 9), 0, 2, 1, 3);
    struct ggml_tensor *kq = ggml_mul_mat(CTX, k, q);
    return ggml_soft_max_ext(CTX, kq, meta_leaf(run, "mask", GGML_TYPE_F32, 9, 5, 1, 1), 0.25f,
                             8.0f);
}

BUILD(rotated) {
    (void)user;
    struct ggml_tensor *x = ggml_mul_mat(CTX, leaf2(run, "a", 32, 64), leaf2(run, "m", 32, 5));
    x = ggml_rope(CTX, ggml_reshape_3d(CTX, x, 8, 8, 5), leaf1i(run, "positions", 5), 8, 0);
    return ggml_reshape_2d(CTX, x, 64, 5);
}

static struct ggml_tensor *leaf4(struct meta_run *run, const char *name, int64_t ne0, int64_t ne1,
                                 int64_t ne2, int64_t ne3) {
    return meta_leaf(run, name, GGML_TYPE_F32, ne0, ne1, ne2, ne3);
}

BUILD(conv_direct) {
    (void)user;
    struct ggml_tensor *x = leaf4(run, "x", 9, 8, 6, 7);
    return ggml_conv_2d_direct(CTX, leaf4(run, "kernel", 3, 3, 6, 12), x, 1, 1, 1, 1, 1, 1);
}

BUILD(conv_depthwise) {
    (void)user;
    struct ggml_tensor *x = leaf4(run, "x", 9, 8, 12, 7);
    x = ggml_conv_2d_dw_direct(CTX, leaf4(run, "kernel", 3, 3, 1, 12), x, 1, 1, 1, 1, 1, 1);
    return ggml_pool_2d(CTX, ggml_relu(CTX, x), GGML_OP_POOL_AVG, 2, 2, 2, 2, 0, 0);
}

BUILD(conv_patches) {
    (void)user;
    struct ggml_tensor *kernel = meta_leaf(run, "kernel", GGML_TYPE_F16, 3, 3, 6, 12);
    return ggml_sqr(CTX, ggml_conv_2d(CTX, kernel, leaf4(run, "x", 9, 8, 6, 2), 1, 1, 1, 1, 1, 1));
}

BUILD(patches_of_channels) {
    (void)user;
    struct ggml_tensor *kernel = leaf4(run, "kernel", 3, 2, 6, 5);
    struct ggml_tensor *x = leaf4(run, "x", 9, 8, 6, 7);
    return ggml_im2col(CTX, kernel, x, 1, 1, 1, 1, 1, 1, true, GGML_TYPE_F32);
}

BUILD(patches_of_signal) {
    (void)user;
    struct ggml_tensor *x = leaf3(run, "x", 9, 6, 7);
    return ggml_im2col(CTX, leaf3(run, "kernel", 3, 6, 5), x, 1, 0, 1, 0, 1, 0, false,
                       GGML_TYPE_F32);
}

BUILD(samples) {
    (void)user;
    struct ggml_tensor *x = ggml_group_norm(CTX, leaf4(run, "x", 9, 8, 6, 7), 3, 1e-5f);
    return ggml_upscale(CTX, x, 2, GGML_SCALE_MODE_NEAREST);
}

BUILD(outer) {
    (void)user;
    return ggml_sqr(CTX, ggml_out_prod(CTX, leaf2(run, "a", 12, 9), leaf2(run, "b", 10, 9)));
}

// A weight is trained: what is written shows in later nodes.
BUILD(training_step) {
    (void)user;
    struct ggml_tensor *w = leaf2(run, "w", 32, 48);
    struct ggml_tensor *dw = ggml_out_prod(CTX, leaf2(run, "a", 32, 5), leaf2(run, "b", 48, 5));
    ggml_set_param(w);
    struct ggml_tensor *parameters = ggml_sqr(CTX, leaf2(run, "params", 2, 1));
    return ggml_sqr(CTX, ggml_opt_step_sgd(CTX, w, dw, parameters));
}

BUILD(adam_step) {
    (void)user;
    struct ggml_tensor *w = leaf2(run, "w", 32, 48);
    struct ggml_tensor *v = ggml_sqr(CTX, leaf2(run, "v", 32, 48));
    ggml_set_param(w);
    struct ggml_tensor *step =
        ggml_opt_step_adamw(CTX, w, leaf2(run, "g", 32, 48), leaf2(run, "moment", 32, 48), v,
                            ggml_sigmoid(CTX, leaf2(run, "params", 7, 1)));
    return ggml_sqr(CTX, step);
}

// The step changes the moments too, which later nodes read.
BUILD(adam_moments) {
    (void)user;
    struct ggml_tensor *w = leaf2(run, "w", 32, 48), *m = leaf2(run, "moment", 32, 48);
    struct ggml_tensor *v = ggml_sqr(CTX, leaf2(run, "v", 32, 48));
    ggml_set_param(w);
    struct ggml_tensor *step = ggml_opt_step_adamw(CTX, w, leaf2(run, "g", 32, 48), m, v,
                                                   ggml_sigmoid(CTX, leaf2(run, "params", 7, 1)));
    ggml_build_forward_expand(run->graph, step);
    return ggml_add(CTX, ggml_sqr(CTX, step), ggml_add(CTX, ggml_sqr(CTX, m), v));
}

// The moments themselves, whole.
BUILD(adam_moments_alone) {
    (void)user;
    struct ggml_tensor *w = leaf2(run, "w", 32, 48), *m = leaf2(run, "moment", 32, 48);
    struct ggml_tensor *v = ggml_sqr(CTX, leaf2(run, "v", 32, 48));
    ggml_set_param(w);
    ggml_build_forward_expand(run->graph,
                              ggml_opt_step_adamw(CTX, w, leaf2(run, "g", 32, 48), m, v,
                                                  ggml_sigmoid(CTX, leaf2(run, "params", 7, 1))));
    return ggml_add(CTX, ggml_scale(CTX, m, 2.0f), v);
}

// Halves are added up as halves.
BUILD(partial_halves) {
    (void)user;
    struct ggml_tensor *x = ggml_cont(CTX, meta_leaf(run, "half", GGML_TYPE_F16, 32, 5, 1, 1));
    return ggml_cast(CTX, x, GGML_TYPE_F32);
}

// The sum in static memory is read after each addition.
BUILD(accumulated) {
    (void)user;
    struct ggml_tensor *x = ggml_mul_mat(CTX, leaf2(run, "a", 64, 48), leaf2(run, "b", 64, 5));
    struct ggml_tensor *sum = ggml_add_inplace(CTX, leaf2(run, "total", 48, 5), x);
    struct ggml_tensor *first = ggml_sqr(CTX, sum);
    ggml_build_forward_expand(run->graph, first);
    return ggml_add(CTX, first, ggml_add_inplace(CTX, sum, ggml_scale(CTX, x, 0.5f)));
}

BUILD(converted) {
    (void)user;
    struct ggml_tensor *x = ggml_mul_mat(CTX, leaf2(run, "a", 64, 48), leaf2(run, "b", 64, 5));
    return ggml_cast(CTX, ggml_cast(CTX, x, GGML_TYPE_F16), GGML_TYPE_F32);
}

BUILD(nothing_split) {
    (void)user;
    return ggml_sqr(CTX, ggml_add(CTX, leaf2(run, "n", 7, 3), ggml_arange(CTX, 0, 7, 1)));
}

enum way { DERIVED, GATHERED };

struct op_case {
    const char *name;
    build_fn build;
    enum way way; // on 3 devices of unequal size
    struct split_rule rules[8];
};

static const struct op_case op_cases[] = {
    {"mul_mat, rows", mul_mat_rows, DERIVED, {{.prefix = "a", .axis = 1}}},
    {"mul_mat, columns of src1", mul_mat_both, DERIVED, {{.prefix = "b", .axis = 1}}},
    {"mul_mat, contraction",
     mul_mat_both,
     DERIVED,
     {{.prefix = "a", .axis = 0}, {.prefix = "b", .axis = 0}}},
    {"mul_mat, contraction with a cut", mul_mat_both, DERIVED, {{.prefix = "a", .axis = 0}}},
    {"mul_mat, contraction with a cut matrix", mul_mat_both, DERIVED, {{.prefix = "b", .axis = 0}}},
    {"mul_mat, impossible",
     mul_mat_both,
     GATHERED,
     {{.prefix = "a", .axis = 1}, {.prefix = "b", .axis = 1}}},
    {"mul_mat, quantised rows", mul_mat_quantised, DERIVED, {{.prefix = "a", .axis = 1}}},
    {"mul_mat, quantised blocks",
     mul_mat_quantised,
     DERIVED,
     {{.prefix = "a", .axis = 0, .step = 32}}},
    {"mul_mat, batches",
     batched,
     DERIVED,
     {{.prefix = "a", .axis = 2}, {.prefix = "b", .axis = 2, .step = 2}}},
    {"mul_mat, batches of one", batched, DERIVED, {{.prefix = "a", .axis = 2}}},
    {"bias, mirrored", bias, DERIVED, {{.prefix = "a", .axis = 1}}},
    {"bias, split", bias, DERIVED, {{.prefix = "a", .axis = 1}, {.prefix = "n", .axis = 0}}},
    {"norm across devices", norm_across, GATHERED, {{.prefix = "a", .axis = 1}}},
    {"soft_max across devices", soft_max_across, GATHERED, {{.prefix = "a", .axis = 1}}},
    {"partial result",
     partial_result,
     DERIVED,
     {{.prefix = "a", .axis = 0}, {.prefix = "b", .axis = 0}}},
    {"partial used twice",
     partial_used_twice,
     DERIVED,
     {{.prefix = "a", .axis = 0}, {.prefix = "b", .axis = 0}}},
    {"partial sums add",
     partial_sums_add,
     DERIVED,
     {{.prefix = "a", .axis = 0}, {.prefix = "b", .axis = 0}}},
    {"one partial, one not",
     partial_sums_add,
     DERIVED,
     {{.prefix = "a2", .axis = 1}, {.prefix = "a", .axis = 0}}},
    {"fused parts", fused_parts, DERIVED, {{.prefix = "a", .axis = 1, .n_segments = 3}}},
    {"fused parts, badly split", fused_parts, GATHERED, {{.prefix = "a", .axis = 1}}},
    {"glu, fused", glu_fused, DERIVED, {{.prefix = "a", .axis = 1, .n_segments = 2}}},
    {"glu, badly split", glu_fused, GATHERED, {{.prefix = "a", .axis = 1}}},
    {"view across devices", view_across, GATHERED, {{.prefix = "a", .axis = 1}}},
    {"heads", heads, DERIVED, {{.prefix = "a", .axis = 1, .step = 8}}},
    {"heads, cut through", heads, GATHERED, {{.prefix = "a", .axis = 1, .step = 1}}},
    {"sums", sums, DERIVED, {{.prefix = "a", .axis = 1}}},
    {"in place", in_place, GATHERED, {{.prefix = "a", .axis = 1}}},
    {"rows of a cache",
     rows_of_cache,
     DERIVED,
     {{.prefix = "a", .axis = 1}, {.prefix = "c", .axis = 0}}},
    {"rows of a cache, cut", rows_of_cache, DERIVED, {{.prefix = "c", .axis = 0}}},
    {"rows across devices",
     rows_across,
     GATHERED,
     {{.prefix = "a", .axis = 1}, {.prefix = "d", .axis = 1}}},
    {"copy into a view",
     copy_into_view,
     DERIVED,
     {{.prefix = "a", .axis = 1}, {.prefix = "c", .axis = 0}}},
    {"copy into a view, cut", copy_into_view, DERIVED, {{.prefix = "c", .axis = 0}}},
    {"copy into a view, gathered", copy_into_view, GATHERED, {{.prefix = "a", .axis = 1}}},
    {"copy into a view, across",
     copy_into_view,
     GATHERED,
     {{.prefix = "a", .axis = 1}, {.prefix = "c", .axis = 1}}},
    {"embeddings", embeddings, DERIVED, {{.prefix = "c", .axis = 0}}},
    {"embeddings by row", embeddings, GATHERED, {{.prefix = "c", .axis = 1}}},
    {"concatenated", concatenated, GATHERED, {{.prefix = "a", .axis = 1}}},
    {"experts",
     experts,
     DERIVED,
     {{.prefix = "a", .axis = 1},
      {.prefix = "c", .axis = 0},
      {.prefix = "e", .axis = 0},
      {.prefix = "p", .axis = GGML_BACKEND_SPLIT_AXIS_PARTIAL}}},
    {"experts, mirrored bias",
     experts,
     DERIVED,
     {{.prefix = "a", .axis = 1}, {.prefix = "c", .axis = 0}, {.prefix = "e", .axis = 0}}},
    {"experts, one per device",
     experts,
     GATHERED,
     {{.prefix = "a", .axis = 2}, {.prefix = "e", .axis = 2}}},
    {"attention",
     attention,
     DERIVED,
     {{.prefix = "q", .axis = 1, .step = 2},
      {.prefix = "k", .axis = 1},
      {.prefix = "v", .axis = 1}}},
    {"attention, badly split",
     attention,
     GATHERED,
     {{.prefix = "q", .axis = 1}, {.prefix = "k", .axis = 2}}},
    {"attention, masks by turns",
     attention_with_4_masks,
     GATHERED,
     {{.prefix = "q", .axis = 2}, {.prefix = "k", .axis = 2}, {.prefix = "v", .axis = 2}}},
    {"attention, a mask per head",
     attention_with_8_masks,
     DERIVED,
     {{.prefix = "q", .axis = 2}, {.prefix = "k", .axis = 2}, {.prefix = "v", .axis = 2}}},
    {"attention with slopes",
     attention_with_slopes,
     GATHERED,
     {{.prefix = "q", .axis = 1, .step = 2}, {.prefix = "k", .axis = 1}}},
    {"rotated", rotated, DERIVED, {{.prefix = "a", .axis = 1, .step = 8}}},
    {"rotated, cut through", rotated, GATHERED, {{.prefix = "a", .axis = 1}}},
    {"conv, kernels", conv_direct, DERIVED, {{.prefix = "kernel", .axis = 3}}},
    {"conv, channels",
     conv_direct,
     DERIVED,
     {{.prefix = "kernel", .axis = 2}, {.prefix = "x", .axis = 2}}},
    {"conv, images", conv_direct, DERIVED, {{.prefix = "x", .axis = 3}}},
    {"conv, across", conv_direct, GATHERED, {{.prefix = "x", .axis = 1}}},
    {"depthwise conv, channels",
     conv_depthwise,
     DERIVED,
     {{.prefix = "kernel", .axis = 3}, {.prefix = "x", .axis = 2}}},
    {"depthwise conv, kernels", conv_depthwise, DERIVED, {{.prefix = "kernel", .axis = 3}}},
    {"depthwise conv, images", conv_depthwise, DERIVED, {{.prefix = "x", .axis = 3}}},
    {"depthwise conv, across", conv_depthwise, GATHERED, {{.prefix = "x", .axis = 0}}},
    {"conv of patches, kernels", conv_patches, DERIVED, {{.prefix = "kernel", .axis = 3}}},
    {"patches, channels", patches_of_channels, DERIVED, {{.prefix = "x", .axis = 2}}},
    {"patches, images", patches_of_channels, DERIVED, {{.prefix = "x", .axis = 3}}},
    {"patches, across", patches_of_channels, GATHERED, {{.prefix = "x", .axis = 0}}},
    {"patches of a signal, channels", patches_of_signal, DERIVED, {{.prefix = "x", .axis = 1}}},
    {"patches of a signal, samples", patches_of_signal, DERIVED, {{.prefix = "x", .axis = 2}}},
    {"images", samples, DERIVED, {{.prefix = "x", .axis = 3}}},
    {"images, groups across", samples, GATHERED, {{.prefix = "x", .axis = 2}}},
    {"outer product, columns", outer, DERIVED, {{.prefix = "a", .axis = 0}}},
    {"outer product, rows", outer, DERIVED, {{.prefix = "b", .axis = 0}}},
    {"outer product, sum", outer, DERIVED, {{.prefix = "a", .axis = 1}}},
    {"training step, rows",
     training_step,
     DERIVED,
     {{.prefix = "w", .axis = 1}, {.prefix = "b", .axis = 0}}},
    {"training step, columns",
     training_step,
     DERIVED,
     {{.prefix = "w", .axis = 0}, {.prefix = "a", .axis = 0}}},
    {"training step, summed gradient",
     training_step,
     DERIVED,
     {{.prefix = "w", .axis = 1}, {.prefix = "a", .axis = 1}}},
    {"adam step",
     adam_step,
     DERIVED,
     {{.prefix = "w", .axis = 1}, {.prefix = "v", .axis = 1}, {.prefix = "m", .axis = 1}}},
    {"adam step, mirrored weight", adam_step, GATHERED, {{.prefix = "g", .axis = 1}}},
    {"adam moments",
     adam_moments,
     DERIVED,
     {{.prefix = "w", .axis = 1}, {.prefix = "v", .axis = 1}, {.prefix = "m", .axis = 1}}},
    {"adam moments, mirrored", adam_moments_alone, GATHERED, {{.prefix = "w", .axis = 1}}},
    {"adam moments, one mirrored",
     adam_moments_alone,
     GATHERED,
     {{.prefix = "w", .axis = 1}, {.prefix = "v", .axis = 1}}},
    {"adam moments, mirrored weight",
     adam_moments,
     GATHERED,
     {{.prefix = "v", .axis = 1}, {.prefix = "m", .axis = 0}}},
    {"partial halves",
     partial_halves,
     DERIVED,
     {{.prefix = "half", .axis = GGML_BACKEND_SPLIT_AXIS_PARTIAL}}},
    {"accumulated",
     accumulated,
     GATHERED,
     {{.prefix = "a", .axis = 0},
      {.prefix = "b", .axis = 0},
      {.prefix = "total", .axis = GGML_BACKEND_SPLIT_AXIS_PARTIAL}}},
    {"converted, rows", converted, DERIVED, {{.prefix = "a", .axis = 1}}},
    {"converted, columns", converted, DERIVED, {{.prefix = "b", .axis = 1}}},
    {"converted, a sum",
     converted,
     DERIVED,
     {{.prefix = "a", .axis = 0}, {.prefix = "b", .axis = 0}}},
    {"nothing split", nothing_split, DERIVED, {{0}}},
};

static const struct split_plan plans[] = {
    {.n_devices = 1, .weights = {1}},
    {.n_devices = 2, .weights = {1, 1}},
    {.n_devices = 3, .weights = {3, 1, 2}},
    {.n_devices = 4, .weights = {1, 0, 0, 0}},
    {.n_devices = 5, .weights = {1, 1, 0, 2, 1}},
    {.n_devices = 8, .weights = {1, 1, 1, 1, 1, 1, 1, 1}},
};
enum { N_PLANS = sizeof(plans) / sizeof(plans[0]), N_OPS = sizeof(op_cases) / sizeof(op_cases[0]) };

static int n_fallbacks;

static void count_fallbacks(enum ggml_log_level level, const char *text, void *user) {
    (void)level;
    (void)user;
    if (strstr(text, "gathered")) ++n_fallbacks;
}

static int failures_with(const struct op_case *op, struct split_plan *plan) {
    memcpy(plan->rules, op->rules, sizeof(op->rules));
    n_fallbacks = 0;
    const double error = meta_test_compare(&host, plan, op->build, NULL);
    const bool fell_back = n_fallbacks > 0;
    const bool expected = plan->n_devices != 3 || fell_back == (op->way == GATHERED);
    if (error < 2e-5 && expected) return 0;
    print_message("# %s on %zu devices: off by %g, %d fallbacks\n", op->name, plan->n_devices,
                  error, n_fallbacks);
    return 1;
}

static void test_all_ops(void **state) {
    static struct split_plan used[N_OPS][N_PLANS]; // meta devices live for the process
    int failures = 0;
    struct virtual_config config;
    host.default_config(&config);
    config.communicator = *state != NULL;
    assert_true(host.configure(-1, &config));
    for (int i = 0; i < N_OPS; ++i) {
        for (int k = 0; k < N_PLANS; ++k) {
            used[i][k] = plans[k];
            failures += failures_with(&op_cases[i], &used[i][k]);
        }
    }
    assert_int_equal(failures, 0);
}

// Devices that can't add: the host does.
static void test_sums_on_the_host(void **state) {
    (void)state;
    static struct split_plan plan = {.n_devices = 3, .weights = {1, 1, 1}};
    struct virtual_config config;
    host.default_config(&config);
    config.communicator = 0;
    config.refused_ops[GGML_OP_ADD / 64] = UINT64_C(1) << (GGML_OP_ADD % 64);
    assert_true(host.configure(-1, &config));
    plan.rules[0] = (struct split_rule){.prefix = "half", .axis = GGML_BACKEND_SPLIT_AXIS_PARTIAL};
    plan.rules[1] = (struct split_rule){.prefix = "a", .axis = 0};
    plan.rules[2] = (struct split_rule){.prefix = "b", .axis = 0};
    assert_true(meta_test_compare(&host, &plan, partial_halves, NULL) < 2e-5);
    assert_true(meta_test_compare(&host, &plan, partial_result, NULL) < 2e-5);
}

static int begin(void **state) {
    (void)state;
    ggml_log_set(count_fallbacks, NULL);
    virtual_open(&host, "devices=8");
    return 0;
}

static int end(void **state) {
    (void)state;
    return (int)virtual_close(&host);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_all_ops, &host),
        cmocka_unit_test_prestate(test_all_ops, NULL),
        cmocka_unit_test(test_sums_on_the_host),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
