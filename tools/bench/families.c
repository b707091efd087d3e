// SPDX-License-Identifier: MIT
#include "families.h"

#include <stdint.h>
#include <stdlib.h>

#include "ggml-impl.h"

enum { MAX_TENSORS = 20000, HEAD = 32 };

struct builder {
    struct ggml_context *ctx;
    struct ggml_cgraph *graph;
    ggml_backend_buffer_t weights;
};

static struct ggml_tensor *weight(struct builder *b, int64_t n0, int64_t n1, int64_t n2,
                                  int64_t n3) {
    struct ggml_tensor *tensor = ggml_new_tensor_4d(b->ctx, GGML_TYPE_F32, n0, n1, n2, n3);
    ggml_backend_tensor_alloc(b->weights, tensor, ggml_backend_buffer_get_base(b->weights));
    return tensor;
}

static struct ggml_tensor *input(struct builder *b, enum ggml_type type, int64_t n0, int64_t n1) {
    struct ggml_tensor *tensor = ggml_new_tensor_2d(b->ctx, type, n0, n1);
    ggml_set_input(tensor);
    return tensor;
}

static struct ggml_tensor *linear(struct builder *b, struct ggml_tensor *x, int64_t n_out) {
    return ggml_mul_mat(b->ctx, weight(b, x->ne[0], n_out, 1, 1), x);
}

static struct ggml_tensor *norm(struct builder *b, struct ggml_tensor *x) {
    return ggml_mul(b->ctx, ggml_rms_norm(b->ctx, x, 1e-5f), weight(b, x->ne[0], 1, 1, 1));
}

// --- transformers

struct inputs {
    struct ggml_tensor *positions, *mask;
    int64_t context;
};

static struct ggml_tensor *heads(struct builder *b, struct ggml_tensor *x,
                                 struct ggml_tensor *positions) {
    struct ggml_tensor *y = ggml_reshape_3d(b->ctx, x, HEAD, x->ne[0] / HEAD, x->ne[1]);
    return positions ? ggml_rope(b->ctx, y, positions, HEAD, 0) : y;
}

// Writes this step's keys or values into the cache; the graph is to do so before it reads them.
static void store(struct builder *b, struct ggml_tensor *cache, struct ggml_tensor *x) {
    struct ggml_tensor *place = ggml_view_2d(b->ctx, cache, HEAD * x->ne[1], x->ne[2],
                                             (size_t)(HEAD * x->ne[1]) * sizeof(float), 0);
    struct ggml_tensor *flat = ggml_reshape_2d(b->ctx, x, HEAD * x->ne[1], x->ne[2]);
    ggml_build_forward_expand(b->graph, ggml_cpy(b->ctx, flat, place));
}

static struct ggml_tensor *attention(struct builder *b, struct ggml_tensor *x,
                                     const struct inputs *in, bool flash) {
    const int64_t n = x->ne[0], n_kv = n / 4;
    struct ggml_tensor *q = heads(b, linear(b, x, n), in->positions);
    struct ggml_tensor *k = heads(b, linear(b, x, n_kv), in->positions);
    struct ggml_tensor *v = heads(b, linear(b, x, n_kv), NULL);
    struct ggml_tensor *k_cache = weight(b, HEAD, in->context, n_kv / HEAD, 1);
    struct ggml_tensor *v_cache = weight(b, HEAD, in->context, n_kv / HEAD, 1);
    store(b, k_cache, k);
    store(b, v_cache, v);
    q = ggml_permute(b->ctx, q, 0, 2, 1, 3);
    if (flash) {
        struct ggml_tensor *y =
            ggml_flash_attn_ext(b->ctx, q, k_cache, v_cache, in->mask, 0.2f, 0, 0);
        return linear(b, ggml_reshape_2d(b->ctx, y, n, x->ne[1]), n);
    }
    struct ggml_tensor *scores = ggml_mul_mat(b->ctx, k_cache, q);
    scores = ggml_soft_max_ext(b->ctx, scores, in->mask, 0.2f, 0);
    v_cache = weight(b, in->context, HEAD, n_kv / HEAD, 1);
    struct ggml_tensor *y = ggml_mul_mat(b->ctx, v_cache, scores);
    y = ggml_cont_2d(b->ctx, ggml_permute(b->ctx, y, 0, 2, 1, 3), n, x->ne[1]);
    return linear(b, y, n);
}

static struct ggml_tensor *feed_forward(struct builder *b, struct ggml_tensor *x) {
    struct ggml_tensor *gate = linear(b, x, 3 * x->ne[0]);
    struct ggml_tensor *up = linear(b, x, 3 * x->ne[0]);
    return linear(b, ggml_swiglu_split(b->ctx, gate, up), x->ne[0]);
}

// Two of eight experts for each token.
static struct ggml_tensor *experts(struct builder *b, struct ggml_tensor *x) {
    enum { EXPERTS = 8, USED = 2 };
    const int64_t n = x->ne[0], t = x->ne[1], wide = 2 * n;
    struct ggml_tensor *odds = ggml_soft_max(b->ctx, linear(b, x, EXPERTS));
    struct ggml_tensor *ids = ggml_argsort_top_k(b->ctx, odds, USED);
    struct ggml_tensor *share =
        ggml_get_rows(b->ctx, ggml_reshape_3d(b->ctx, odds, 1, EXPERTS, t), ids);
    struct ggml_tensor *rows = ggml_reshape_3d(b->ctx, x, n, 1, t);
    struct ggml_tensor *gate = ggml_mul_mat_id(b->ctx, weight(b, n, wide, EXPERTS, 1), rows, ids);
    struct ggml_tensor *up = ggml_mul_mat_id(b->ctx, weight(b, n, wide, EXPERTS, 1), rows, ids);
    struct ggml_tensor *y = ggml_swiglu_split(b->ctx, gate, up);
    y = ggml_mul_mat_id(b->ctx, weight(b, wide, n, EXPERTS, 1), y, ids);
    y = ggml_mul(b->ctx, y, share);
    struct ggml_tensor *first = ggml_view_2d(b->ctx, y, n, t, y->nb[2], 0);
    return ggml_add(b->ctx, first, ggml_view_2d(b->ctx, y, n, t, y->nb[2], y->nb[1]));
}

static struct ggml_tensor *transformer(struct builder *b, int n_layers, enum family family) {
    enum { WIDTH = 256, TOKENS = 32, CONTEXT = 128 };
    const bool flash = family == FAMILY_FLASH;
    const struct inputs in = {
        .positions = input(b, GGML_TYPE_I32, TOKENS, 1),
        .mask = input(b, flash ? GGML_TYPE_F16 : GGML_TYPE_F32, CONTEXT, TOKENS),
        .context = CONTEXT,
    };
    struct ggml_tensor *tokens = input(b, GGML_TYPE_I32, TOKENS, 1);
    struct ggml_tensor *x = ggml_get_rows(b->ctx, weight(b, WIDTH, 1000, 1, 1), tokens);
    for (int i = 0; i < n_layers; ++i) {
        x = ggml_add(b->ctx, x, attention(b, norm(b, x), &in, flash));
        struct ggml_tensor *h = norm(b, x);
        h = family == FAMILY_MOE ? experts(b, h) : feed_forward(b, h);
        x = ggml_add(b->ctx, x, h);
    }
    return linear(b, norm(b, x), 1000);
}

// --- images

static struct ggml_tensor *convolve(struct builder *b, struct ggml_tensor *x, int64_t n_out,
                                    int stride) {
    struct ggml_tensor *kernel = weight(b, 3, 3, x->ne[2], n_out);
    struct ggml_tensor *y = ggml_conv_2d(b->ctx, kernel, x, stride, stride, 1, 1, 1, 1);
    return ggml_add(b->ctx, y, weight(b, 1, 1, n_out, 1));
}

static struct ggml_tensor *active(struct builder *b, struct ggml_tensor *x) {
    return ggml_silu(b->ctx, ggml_group_norm(b->ctx, x, 8, 1e-5f));
}

static struct ggml_tensor *residual(struct builder *b, struct ggml_tensor *x, int64_t n_out) {
    struct ggml_tensor *y = convolve(b, active(b, x), n_out, 1);
    y = convolve(b, active(b, y), n_out, 1);
    if (x->ne[2] != n_out) x = convolve(b, x, n_out, 1);
    return ggml_add(b->ctx, x, y);
}

static struct ggml_tensor *unet(struct builder *b, int depth) {
    enum { CHANNELS = 16, SIDE = 64, BLOCKS = 2, DEEPEST = 8 };
    struct ggml_tensor *skips[DEEPEST * BLOCKS];
    int n_skips = 0;
    int64_t channels = CHANNELS;
    struct ggml_tensor *x = ggml_new_tensor_3d(b->ctx, GGML_TYPE_F32, SIDE, SIDE, 4);
    ggml_set_input(x);
    x = convolve(b, x, channels, 1);
    for (int level = 0; level < depth && level < DEEPEST; ++level) {
        for (int i = 0; i < BLOCKS; ++i) {
            skips[n_skips++] = x = residual(b, x, channels);
        }
        channels *= 2;
        x = convolve(b, x, channels, 2);
    }
    x = residual(b, x, channels);
    while (n_skips > 0) {
        struct ggml_tensor *skip = skips[--n_skips];
        if (skip->ne[0] > x->ne[0]) x = ggml_upscale(b->ctx, x, 2, GGML_SCALE_MODE_NEAREST);
        x = residual(b, ggml_concat(b->ctx, x, skip, 2), skip->ne[2]);
    }
    return convolve(b, active(b, x), 4, 1);
}

// --- many branches at once

static struct ggml_tensor *wide(struct builder *b, int n_branches) {
    enum { WIDTH = 128, ROWS = 16, STAGES = 4, MOST = 512 };
    struct ggml_tensor *x = input(b, GGML_TYPE_F32, WIDTH, ROWS);
    for (int stage = 0; stage < STAGES; ++stage) {
        struct ggml_tensor *branches[MOST] = {x};
        for (int i = 0; i < n_branches && i < MOST; ++i) {
            struct ggml_tensor *y = ggml_silu(b->ctx, linear(b, x, WIDTH * (1 + i % 3)));
            branches[i] = linear(b, y, WIDTH);
            ggml_build_forward_expand(b->graph, branches[i]);
        }
        x = branches[0];
        for (int i = 1; i < n_branches && i < MOST; ++i) {
            x = ggml_add(b->ctx, x, branches[i]);
        }
    }
    return x;
}

// --- all

static const struct {
    const char *name, *unit;
    int sizes[6];
} families[FAMILY_COUNT] = {
    [FAMILY_TRANSFORMER] = {"transformer", "layers", {2, 8, 32, 80}},
    [FAMILY_FLASH] = {"flash transformer", "layers", {2, 8, 32, 80}},
    [FAMILY_MOE] = {"mixture of experts", "layers", {2, 8, 32, 80}},
    [FAMILY_UNET] = {"U-Net", "levels", {1, 2, 3, 4}},
    [FAMILY_WIDE] = {"wide", "branches", {4, 16, 64, 256}},
};

const char *family_name(enum family family) {
    return families[family].name;
}

const char *family_unit(enum family family) {
    return families[family].unit;
}

const int *family_sizes(enum family family) {
    return families[family].sizes;
}

struct ggml_context *family_context(void) {
    const size_t size =
        MAX_TENSORS * ggml_tensor_overhead() + ggml_graph_overhead_custom(MAX_TENSORS, false);
    return ggml_init((struct ggml_init_params){size, NULL, true});
}

struct ggml_cgraph *family_build(struct ggml_context *ctx, enum family family, int size,
                                 ggml_backend_buffer_t weights) {
    struct builder b = {
        .ctx = ctx,
        .graph = ggml_new_graph_custom(ctx, MAX_TENSORS, false),
        .weights = weights,
    };
    struct ggml_tensor *result;
    switch (family) {
    case FAMILY_UNET: result = unet(&b, size); break;
    case FAMILY_WIDE: result = wide(&b, size); break;
    default: result = transformer(&b, size, family); break;
    }
    ggml_set_output(result);
    ggml_build_forward_expand(b.graph, result);
    return b.graph;
}

// --- the bound

struct place {
    const struct ggml_tensor *root;
    int first, last; // steps; node i is computed at step i + 1
};

static struct ggml_tensor *root_of(struct ggml_tensor *tensor) {
    return tensor->view_src ? tensor->view_src : tensor;
}

static struct place *find(struct place *places, int *n, struct ggml_tensor *tensor, int step) {
    struct ggml_tensor *root = root_of(tensor);
    for (int i = *n - 1; i >= 0; --i) {
        if (places[i].root == root) return &places[i];
    }
    places[*n] = (struct place){root, step, -1};
    return &places[(*n)++];
}

static bool is_planned(struct ggml_tensor *tensor) {
    const struct ggml_tensor *root = root_of(tensor);
    return root->buffer &&
           ggml_backend_buffer_get_usage(root->buffer) == GGML_BACKEND_BUFFER_USAGE_COMPUTE;
}

static int collect(struct ggml_cgraph *graph, struct place *places) {
    int n = 0;
    for (int i = 0; i < graph->n_leafs; ++i) {
        if (is_planned(graph->leafs[i])) find(places, &n, graph->leafs[i], 0);
    }
    for (int i = 0; i < graph->n_nodes; ++i) {
        struct ggml_tensor *node = graph->nodes[i];
        if (is_planned(node)) {
            struct place *place = find(places, &n, node, i + 1);
            place->last = i + 1;
            if (node->flags & GGML_TENSOR_FLAG_OUTPUT) place->last = graph->n_nodes + 1;
        }
        for (int k = 0; k < GGML_MAX_SRC; ++k) {
            if (!node->src[k] || node->src[k] == node || !is_planned(node->src[k])) continue;
            struct place *place = find(places, &n, node->src[k], 0);
            if (place->last < i + 1) place->last = i + 1;
        }
    }
    return n;
}

// A node that overwrites a source lies where that did, which ends where it begins.
static bool overwrites(const struct place *places, int n, const struct place *place) {
    for (int i = 0; i < n; ++i) {
        const struct place *other = &places[i];
        if (other != place && other->last == place->first && other->first < place->first &&
            other->root->data == place->root->data && other->root->buffer == place->root->buffer) {
            return true;
        }
    }
    return false;
}

size_t family_bound(struct ggml_cgraph *graph, size_t alignment) {
    const size_t capacity = 4 * ((size_t)graph->n_nodes + (size_t)graph->n_leafs) + 1;
    struct place *places = calloc(capacity, sizeof(places[0]));
    size_t *sums = calloc((size_t)graph->n_nodes + 2, sizeof(sums[0]));
    const int n = places && sums ? collect(graph, places) : 0;
    size_t most = 0;
    for (int i = 0; i < n; ++i) {
        const size_t size = (ggml_nbytes(places[i].root) + alignment - 1) / alignment * alignment;
        const int begin = places[i].first + overwrites(places, n, &places[i]);
        const int end = places[i].last < 0 ? graph->n_nodes + 1 : places[i].last;
        for (int step = begin; step <= end; ++step) {
            sums[step] += size;
            if (sums[step] > most) most = sums[step];
        }
    }
    free(places);
    free(sums);
    return most;
}
