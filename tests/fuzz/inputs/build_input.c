// SPDX-License-Identifier: MIT
// Draws builders and their arguments from the input, builds a graph of them, and computes what
// was not refused.
#include "fuzz/inputs/build_input.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

#include "ggml-cpu.h"
#include "ggml-host.h"

enum { N_CALLS = 10, N_LEAVES = 5, POOL = N_LEAVES + N_CALLS, MOST_ELEMENTS = 4096 };

static void require(bool holds) {
    if (!holds) abort();
}

struct scene {
    struct ggml_context *ctx;
    struct ggml_cgraph *graph;
    struct ggml_tensor *pool[POOL];
    int n;
};

// --- the input -----------------------------------------------------------------------------------

static const unsigned char *input;
static size_t n_left;

// Two bytes at a time; 0 after the end.
static uint64_t below(uint64_t n) {
    uint64_t value = 0;
    for (int i = 0; i < 2 && n_left > 0; ++i, --n_left)
        value = value << 8 | *input++;
    return value % n;
}

// --- a graph -------------------------------------------------------------------------------------

// Mostly what makes sense.
static int any_int(void) {
    static const int odd[] = {0, -1, -2, 5, 64, INT_MAX, INT_MIN, INT_MAX / 2};
    return below(4) ? (int)below(4) : odd[below(sizeof(odd) / sizeof(odd[0]))];
}

static int64_t any_extent(void) {
    static const int64_t odd[] = {0, -1, 64, INT64_MAX, INT64_MIN, INT64_C(1) << 40};
    return below(6) ? 1 + (int64_t)below(6) : odd[below(sizeof(odd) / sizeof(odd[0]))];
}

// Aligned for every type, or far out: C does not define what reads other addresses, though most
// processors do it.
static size_t any_bytes(void) {
    static const size_t odd[] = {SIZE_MAX, SIZE_MAX / 2, (size_t)1 << 40};
    return below(6) ? 4 * below(16) : odd[below(sizeof(odd) / sizeof(odd[0]))];
}

static struct ggml_tensor *any(const struct scene *scene) {
    return scene->pool[below((uint64_t)scene->n)];
}

static void keep(struct scene *scene, struct ggml_tensor *tensor) {
    const bool refused = !tensor || ggml_last_status() != GGML_HOST_OK;
    ggml_clear_error();
    if (refused || scene->n == POOL) return;
    for (int64_t i = 0, n = 1; i < 4; ++i) {
        if (tensor->ne[i] > MOST_ELEMENTS || (n *= tensor->ne[i]) > MOST_ELEMENTS) return;
    }
    scene->pool[scene->n++] = tensor;
}

static void add_leaf(struct scene *scene) {
    static const enum ggml_type types[] = {GGML_TYPE_F32,  GGML_TYPE_F32, GGML_TYPE_F32,
                                           GGML_TYPE_F32,  GGML_TYPE_F16, GGML_TYPE_I32,
                                           GGML_TYPE_Q8_0, GGML_TYPE_BF16};
    const enum ggml_type type = types[below(sizeof(types) / sizeof(types[0]))];
    int64_t ne[4];
    for (int i = 0; i < 4; ++i)
        ne[i] = below(24) ? 1 + (int64_t)below(6) : 0;
    if (type == GGML_TYPE_Q8_0) ne[0] *= 32;
    struct ggml_tensor *leaf = ggml_new_tensor(scene->ctx, type, 4, ne);
    if (leaf && ggml_last_status() == GGML_HOST_OK) {
        unsigned char *bytes = leaf->data;
        uint64_t state = below(UINT16_MAX) + 1;
        for (size_t i = 0; i < ggml_nbytes(leaf); ++i) { // small numbers in every type
            state = state * 6364136223846793005u + 1442695040888963407u;
            const unsigned char any = (unsigned char)(state >> 58);
            bytes[i] = type != GGML_TYPE_I32 ? any : i % 4 == 0 ? any % 8 : 0;
        }
    }
    keep(scene, leaf);
}

// One call with whatever tensors there are.

static struct ggml_tensor *call(const struct scene *scene) {
    struct ggml_context *ctx = scene->ctx;
    struct ggml_tensor *a = any(scene), *b = any(scene), *c = any(scene);
    const int i = any_int(), j = any_int(), k = any_int(), l = any_int();
    switch (below(56)) {
    case 0: return ggml_add(ctx, a, b);
    case 1: return ggml_add_inplace(ctx, a, b);
    case 2: return ggml_mul(ctx, a, b);
    case 3: return ggml_div(ctx, a, b);
    case 4: return ggml_acc(ctx, a, b, any_bytes(), any_bytes(), any_bytes(), any_bytes());
    case 5: return ggml_set(ctx, a, b, any_bytes(), any_bytes(), any_bytes(), any_bytes());
    case 6: return ggml_set_2d_inplace(ctx, a, b, any_bytes(), any_bytes());
    case 7: return ggml_set_1d_inplace(ctx, a, b, any_bytes());
    case 8: return ggml_scale(ctx, a, (float)i);
    case 9: return ggml_scale_inplace(ctx, a, 2.0f);
    case 10: return ggml_unary(ctx, a, (enum ggml_unary_op)i);
    case 11: return ggml_unary_inplace(ctx, a, (enum ggml_unary_op)below(GGML_UNARY_OP_COUNT));
    case 12: return ggml_sum(ctx, a);
    case 13: return ggml_sum_rows(ctx, a);
    case 14: return ggml_mean(ctx, a);
    case 15: return ggml_argmax(ctx, a);
    case 16: return ggml_repeat(ctx, a, b);
    case 17: return ggml_repeat_back(ctx, a, b);
    case 18: return ggml_concat(ctx, a, b, i);
    case 19: return ggml_norm(ctx, a, 1e-5f);
    case 20: return ggml_rms_norm_inplace(ctx, a, 1e-5f);
    case 21: return ggml_group_norm(ctx, a, i, 1e-5f);
    case 22: return ggml_mul_mat(ctx, a, b);
    case 23: return ggml_out_prod(ctx, a, b);
    case 24: return ggml_cpy(ctx, a, b);
    case 25: return ggml_cont(ctx, a);
    case 26: return ggml_reshape_2d(ctx, a, any_extent(), any_extent());
    case 27: return ggml_view_1d(ctx, a, any_extent(), any_bytes());
    case 28: return ggml_view_2d(ctx, a, any_extent(), any_extent(), any_bytes(), any_bytes());
    case 29:
        return ggml_view_3d(ctx, a, any_extent(), any_extent(), any_extent(), any_bytes(),
                            any_bytes(), any_bytes());
    case 30: return ggml_permute(ctx, a, i, j, k, l);
    case 31: return ggml_transpose(ctx, a);
    case 32: return ggml_get_rows(ctx, a, b);
    case 33: return ggml_set_rows(ctx, a, b, c);
    case 34: return ggml_diag_mask_inf(ctx, a, i);
    case 35: return ggml_soft_max(ctx, a);
    case 36: return ggml_soft_max_ext(ctx, a, below(2) ? b : NULL, 0.5f, (float)below(2));
    case 37: return ggml_rope(ctx, a, b, i, j);
    case 38: return ggml_rope_ext(ctx, a, b, below(2) ? c : NULL, i, j, k, 1e4f, 1, 0, 1, 32, 1);
    case 39: return ggml_clamp(ctx, a, -1, 1);
    case 40:
        return ggml_im2col(ctx, a, b, i, j, k, l, any_int(), any_int(), below(2), GGML_TYPE_F32);
    case 41: return ggml_conv_transpose_1d(ctx, a, b, i, j, k);
    case 42: return ggml_pool_1d(ctx, a, (enum ggml_op_pool)below(3), i, j, k);
    case 43:
        return ggml_pool_2d(ctx, a, (enum ggml_op_pool)below(3), i, j, k, l, 0, (float)any_int());
    case 44: return ggml_upscale(ctx, a, i, (enum ggml_scale_mode)below(3));
    case 45: return ggml_pad(ctx, a, i, j, k, l);
    case 46: return ggml_pad_reflect_1d(ctx, a, i, j);
    case 47: return ggml_roll(ctx, a, i, j, k, l);
    case 48: return ggml_timestep_embedding(ctx, a, i, j);
    case 49: return ggml_argsort(ctx, a, (enum ggml_sort_order)below(3));
    case 50: return ggml_arange(ctx, (float)i, (float)j, (float)k);
    case 51: return ggml_win_part(ctx, a, i);
    case 52: return ggml_get_rel_pos(ctx, a, i, j);
    case 53: return ggml_diag(ctx, a);
    case 54: return ggml_conv_2d_dw(ctx, a, b, i, j, k, l, 1, 1);
    default: return ggml_mul_mat_id(ctx, a, b, c);
    }
}

static bool compute(struct scene *scene) {
    ggml_clear_error();
    const enum ggml_status status =
        ggml_graph_compute_with_ctx(scene->ctx, scene->graph, 1 + (int)below(2));
    require(status == GGML_STATUS_SUCCESS || ggml_last_error()[0] != '\0');
    return status == GGML_STATUS_SUCCESS;
}

bool run_build_input(const unsigned char *data, size_t size) {
    const struct ggml_init_params params = {4 << 20, NULL, false};
    struct scene scene = {.ctx = ggml_init(params)};
    require(scene.ctx != NULL);
    input = data;
    n_left = size;
    ggml_clear_error();
    scene.graph = ggml_new_graph(scene.ctx);
    for (int i = 0; i < N_LEAVES; ++i)
        add_leaf(&scene);
    const int n_leaves = scene.n;
    for (int i = 0; i < N_CALLS && n_leaves > 0; ++i)
        keep(&scene, call(&scene));
    for (int i = n_leaves; i < scene.n; ++i)
        ggml_build_forward_expand(scene.graph, scene.pool[i]);
    const bool computed = scene.n > n_leaves && compute(&scene);
    ggml_clear_error();
    ggml_free(scene.ctx);
    return computed;
}
