// SPDX-License-Identifier: MIT
// Builders of graphs, one for each family, and the sizes at which each is measured.
#include "families.h"

#include <stdint.h>
#include <stdlib.h>

#include "ggml-impl.h"

enum { HEAD = 32 };

// Where a family's tensors go. All weights share one small buffer: they are never read, as
// graphs are only planned.
struct builder {
    struct ggml_context *ctx;
    struct ggml_cgraph *graph;
    ggml_backend_buffer_t weights;
};

// A weight that has memory, so that the planner leaves it alone.
static struct ggml_tensor *weight(struct builder *b, int64_t n0, int64_t n1, int64_t n2,
                                  int64_t n3) {
    struct ggml_tensor *tensor = ggml_new_tensor_4d(b->ctx, GGML_TYPE_F32, n0, n1, n2, n3);
    ggml_backend_tensor_alloc(b->weights, tensor, ggml_backend_buffer_get_base(b->weights));
    return tensor;
}

// A graph input: stays in memory until it is read last.
static struct ggml_tensor *input(struct builder *b, enum ggml_type type, int64_t n0, int64_t n1) {
    struct ggml_tensor *tensor = ggml_new_tensor_2d(b->ctx, type, n0, n1);
    ggml_set_input(tensor);
    return tensor;
}

// x times a weight matrix.
static struct ggml_tensor *linear(struct builder *b, struct ggml_tensor *x, int64_t n_out) {
    return ggml_mul_mat(b->ctx, weight(b, x->ne[0], n_out, 1, 1), x);
}

// RMS norm with a weight.
static struct ggml_tensor *norm(struct builder *b, struct ggml_tensor *x) {
    return ggml_mul(b->ctx, ggml_rms_norm(b->ctx, x, 1e-5f), weight(b, x->ne[0], 1, 1, 1));
}

// --- transformers

struct inputs {
    struct ggml_tensor *positions, *mask;
    int64_t context;
};

// Splits rows into heads, and turns them if there are positions.
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

// Grouped-query attention over a cache of `context` tokens, fused (flash) or as products and
// soft_max.
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

// SwiGLU of three times the width.
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

// A decoder of n_layers, dense or with experts, for 32 tokens.
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

// A convolution of 3 x 3 with bias, by im2col.
static struct ggml_tensor *convolve(struct builder *b, struct ggml_tensor *x, int64_t n_out,
                                    int stride) {
    struct ggml_tensor *kernel = weight(b, 3, 3, x->ne[2], n_out);
    struct ggml_tensor *y = ggml_conv_2d(b->ctx, kernel, x, stride, stride, 1, 1, 1, 1);
    return ggml_add(b->ctx, y, weight(b, 1, 1, n_out, 1));
}

static struct ggml_tensor *active(struct builder *b, struct ggml_tensor *x) {
    return ggml_silu(b->ctx, ggml_group_norm(b->ctx, x, 8, 1e-5f));
}

// A residual block of two convolutions, with a third one where the number of channels changes.
static struct ggml_tensor *residual(struct builder *b, struct ggml_tensor *x, int64_t n_out) {
    struct ggml_tensor *y = convolve(b, active(b, x), n_out, 1);
    y = convolve(b, active(b, y), n_out, 1);
    if (x->ne[2] != n_out) x = convolve(b, x, n_out, 1);
    return ggml_add(b->ctx, x, y);
}

enum { CHANNELS = 16, SIDE = 64, BLOCKS = 2, DEEPEST = 8 };

static struct ggml_tensor *picture(struct builder *b) {
    struct ggml_tensor *x = ggml_new_tensor_3d(b->ctx, GGML_TYPE_F32, SIDE, SIDE, 4);
    ggml_set_input(x);
    return x;
}

// Results of the way down that the way up reads again, last one first: they live long, and
// cross.
struct skips {
    struct ggml_tensor *all[DEEPEST * BLOCKS];
    int n;
};

// A level down: BLOCKS blocks, then half the side and twice the channels.
static struct ggml_tensor *descend(struct builder *b, struct ggml_tensor *x, struct skips *skips) {
    const int64_t channels = x->ne[2];
    for (int i = 0; i < BLOCKS; ++i) {
        skips->all[skips->n++] = x = residual(b, x, channels);
    }
    return convolve(b, x, 2 * channels, 2);
}

// A level up, with the results of the level down beside.
static struct ggml_tensor *ascend(struct builder *b, struct ggml_tensor *x, struct skips *skips) {
    for (int i = 0; i < BLOCKS; ++i) {
        struct ggml_tensor *skip = skips->all[--skips->n];
        if (skip->ne[0] > x->ne[0]) x = ggml_upscale(b->ctx, x, 2, GGML_SCALE_MODE_NEAREST);
        x = residual(b, ggml_concat(b->ctx, x, skip, 2), skip->ne[2]);
    }
    return x;
}

// A U-Net of `depth` levels.
static struct ggml_tensor *unet(struct builder *b, struct ggml_tensor *x, int depth) {
    struct skips skips = {.n = 0};
    if (depth > DEEPEST) depth = DEEPEST;
    x = convolve(b, x, CHANNELS, 1);
    for (int level = 0; level < depth; ++level) {
        x = descend(b, x, &skips);
    }
    x = residual(b, x, x->ne[2]);
    for (int level = 0; level < depth; ++level) {
        x = ascend(b, x, &skips);
    }
    return convolve(b, active(b, x), 4, 1);
}

// A sampler whose steps are one graph: each takes from the picture what the network sees in it,
// guided: with and without a prompt.
static struct ggml_tensor *sampler(struct builder *b, int steps, bool guided) {
    struct ggml_tensor *x = picture(b);
    for (int i = 0; i < steps; ++i) {
        struct ggml_tensor *noise = unet(b, x, 3);
        if (guided) {
            struct ggml_tensor *prompted = unet(b, x, 3);
            noise = ggml_add(b->ctx, noise, ggml_sub(b->ctx, prompted, noise));
        }
        x = ggml_sub(b->ctx, x, ggml_scale(b->ctx, noise, 0.1f));
    }
    return x;
}

// Two networks, computed level by level in turn.
static struct ggml_tensor *two_unets(struct builder *b, int depth) {
    struct skips skips[2] = {{.n = 0}, {.n = 0}};
    struct ggml_tensor *x[2];
    for (int i = 0; i < 2; ++i) {
        x[i] = convolve(b, picture(b), CHANNELS, 1);
    }
    for (int level = 0; level < 2 * depth; ++level) {
        for (int i = 0; i < 2; ++i) {
            x[i] = level < depth ? descend(b, x[i], &skips[i]) : ascend(b, x[i], &skips[i]);
            ggml_build_forward_expand(b->graph, x[i]);
        }
    }
    return convolve(b, active(b, ggml_concat(b->ctx, x[0], x[1], 2)), 4, 1);
}

// To a small picture of many channels and back: each level halves or doubles the bytes.
static struct ggml_tensor *autoencoder(struct builder *b, int depth) {
    struct ggml_tensor *x = convolve(b, picture(b), CHANNELS, 1);
    for (int level = 0; level < depth; ++level) {
        for (int i = 0; i < BLOCKS; ++i) {
            x = residual(b, x, x->ne[2]);
        }
        x = convolve(b, x, 2 * x->ne[2], 2);
    }
    x = convolve(b, active(b, x), 4, 1);
    x = convolve(b, x, CHANNELS << depth, 1);
    for (int level = 0; level < depth; ++level) {
        x = ggml_upscale(b->ctx, residual(b, x, x->ne[2]), 2, GGML_SCALE_MODE_NEAREST);
        x = convolve(b, x, x->ne[2] / 2, 1);
        x = residual(b, x, x->ne[2]);
    }
    return convolve(b, active(b, x), 3, 1);
}

// --- speech

// Self-attention, or attention to what was `seen`.
static struct ggml_tensor *attend(struct builder *b, struct ggml_tensor *x,
                                  struct ggml_tensor *seen) {
    const int64_t n = x->ne[0], n_heads = n / HEAD;
    struct ggml_tensor *h = norm(b, x);
    struct ggml_tensor *q = heads(b, linear(b, h, n), NULL);
    struct ggml_tensor *k = heads(b, linear(b, seen ? seen : h, n), NULL);
    struct ggml_tensor *v = heads(b, linear(b, seen ? seen : h, n), NULL);
    k = ggml_permute(b->ctx, k, 0, 2, 1, 3);
    v = ggml_cont_3d(b->ctx, ggml_permute(b->ctx, v, 1, 2, 0, 3), v->ne[2], HEAD, n_heads);
    q = ggml_mul_mat(b->ctx, k, ggml_permute(b->ctx, q, 0, 2, 1, 3));
    q = ggml_mul_mat(b->ctx, v, ggml_soft_max_ext(b->ctx, q, NULL, 0.2f, 0));
    q = ggml_cont_2d(b->ctx, ggml_permute(b->ctx, q, 0, 2, 1, 3), n, x->ne[1]);
    return ggml_add(b->ctx, x, linear(b, q, n));
}

// A feed-forward layer with GELU.
static struct ggml_tensor *think(struct builder *b, struct ggml_tensor *x) {
    struct ggml_tensor *h = ggml_gelu(b->ctx, linear(b, norm(b, x), 4 * x->ne[0]));
    return ggml_add(b->ctx, x, linear(b, h, x->ne[0]));
}

// Each layer of the decoder sees a mixture of what all layers of the encoder computed.
static struct ggml_tensor *encoder_decoder(struct builder *b, int n_layers) {
    enum { WIDTH = 128, FRAMES = 48, TOKENS = 16, MOST = 64 };
    struct ggml_tensor *seen[MOST];
    struct ggml_tensor *x = linear(b, input(b, GGML_TYPE_F32, 80, FRAMES), WIDTH);
    if (n_layers > MOST) n_layers = MOST;
    for (int i = 0; i < n_layers; ++i) {
        seen[i] = x = think(b, attend(b, x, NULL));
    }
    struct ggml_tensor *y = linear(b, input(b, GGML_TYPE_F32, 64, TOKENS), WIDTH);
    for (int i = 0; i < n_layers; ++i) {
        struct ggml_tensor *mixture = ggml_mul(b->ctx, seen[0], weight(b, 1, 1, 1, 1));
        for (int k = 1; k < n_layers; ++k) {
            struct ggml_tensor *share = ggml_mul(b->ctx, seen[k], weight(b, 1, 1, 1, 1));
            mixture = ggml_add(b->ctx, mixture, share);
        }
        y = think(b, attend(b, attend(b, y, NULL), mixture));
    }
    return linear(b, norm(b, y), 1000);
}

// --- many branches at once

// Stages of branches that all read one tensor and are added up: as many results live at once.
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

// --- no structure at all

// A number below the limit, from a linear congruential generator (Numerical Recipes).
static uint32_t next_random(uint32_t *state, uint32_t limit) {
    *state = *state * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)*state * limit) >> 32);
}

// Sizes over eight powers of two. Most results are used soon, some much later.
static struct ggml_tensor *random_graph(struct builder *b, int n_nodes) {
    enum { RECENT = 256, ROWS = 4 };
    struct ggml_tensor *recent[RECENT];
    uint32_t state = (uint32_t)n_nodes;
    for (int i = 0; i < RECENT; ++i) {
        recent[i] = NULL;
    }
    recent[0] = input(b, GGML_TYPE_F32, 32, ROWS);
    for (int i = 1; i < n_nodes / 2; ++i) {
        const int64_t width = (int64_t)32 << next_random(&state, 8);
        const uint32_t reach = 1u << next_random(&state, 9);
        const int other = i - 1 - (int)next_random(&state, reach);
        struct ggml_tensor *x = linear(b, recent[(i - 1) % RECENT], width);
        struct ggml_tensor *y = recent[(other < 0 ? 0 : other) % RECENT];
        recent[i % RECENT] = ggml_add(b->ctx, x, y->ne[0] == width ? y : linear(b, y, width));
    }
    return recent[(n_nodes / 2 - 1) % RECENT];
}

// --- all

static const struct {
    const char *name, *unit;
    int tensors; // at most, per unit
    int sizes[6];
} families[FAMILY_COUNT] = {
    [FAMILY_TRANSFORMER] = {"transformer", "layers", 64, {2, 8, 32, 80}},
    [FAMILY_FLASH] = {"flash transformer", "layers", 64, {2, 8, 32, 80}},
    [FAMILY_MOE] = {"mixture of experts", "layers", 80, {2, 8, 32, 80}},
    [FAMILY_UNET] = {"U-Net", "levels", 400, {1, 2, 3, 4}},
    [FAMILY_SAMPLER] = {"sampler of a U-Net", "steps", 800, {1, 2, 4, 8, 27}},
    [FAMILY_GUIDED] = {"guided sampler", "steps", 1600, {1, 2, 4, 13}},
    [FAMILY_TWO_UNETS] = {"two U-Nets", "levels", 800, {1, 2, 3, 4}},
    [FAMILY_AUTOENCODER] = {"autoencoder", "levels", 400, {1, 2, 3, 4, 5}},
    [FAMILY_ENCODER_DECODER] = {"encoder-decoder", "layers", 400, {2, 4, 12, 32}},
    [FAMILY_WIDE] = {"wide", "branches", 64, {4, 16, 64, 256}},
    [FAMILY_RANDOM] = {"random", "nodes", 4, {100, 300, 1000, 3000, 10000}},
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

static size_t most_tensors(enum family family, int size) {
    return 1000 + (size_t)families[family].tensors * (size_t)size;
}

struct ggml_context *family_context(enum family family, int size) {
    const size_t n = most_tensors(family, size);
    const size_t bytes = n * ggml_tensor_overhead() + ggml_graph_overhead_custom(n, false);
    return ggml_init((struct ggml_init_params){bytes, NULL, true});
}

struct ggml_cgraph *family_build(struct ggml_context *ctx, enum family family, int size,
                                 ggml_backend_buffer_t weights) {
    struct builder b = {
        .ctx = ctx,
        .graph = ggml_new_graph_custom(ctx, most_tensors(family, size), false),
        .weights = weights,
    };
    struct ggml_tensor *result;
    switch (family) {
    case FAMILY_UNET: result = unet(&b, picture(&b), size); break;
    case FAMILY_SAMPLER: result = sampler(&b, size, false); break;
    case FAMILY_GUIDED: result = sampler(&b, size, true); break;
    case FAMILY_TWO_UNETS: result = two_unets(&b, size); break;
    case FAMILY_AUTOENCODER: result = autoencoder(&b, size); break;
    case FAMILY_ENCODER_DECODER: result = encoder_decoder(&b, size); break;
    case FAMILY_WIDE: result = wide(&b, size); break;
    case FAMILY_RANDOM: result = random_graph(&b, size); break;
    default: result = transformer(&b, size, family); break;
    }
    ggml_set_output(result);
    ggml_build_forward_expand(b.graph, result);
    return b.graph;
}
