// SPDX-License-Identifier: MIT
// Layers of Mamba 2 (Dao and Gu, 2024) and RWKV 7 (Peng et al., 2025), node by node as llama.cpp
// builds them, for one sequence.
#include "bench/tokens/recurrent.h"

enum {
    CONV = 4,     // tokens that a filter of Mamba 2 sees
    RANK = 64,    // of RWKV's small matrices
    MIXTURES = 6, // of a token with the one before: r, w, k, v, a, g
};

// --- Mamba 2 ------------------------------------------------------------------------------------

// Channels that are filtered: the input of the scan, and what writes and reads the state.
static int filtered(const struct llama_shape *s) {
    return s->hidden + 2 * s->state;
}

static void define_mamba2(struct llama *llama, enum ggml_type type, struct mamba2 *out) {
    const struct llama_shape *s = &llama->shape;
    struct ggml_context *ctx = llama->ctx;
    const int n = filtered(s);
    *out = (struct mamba2){
        .norm = llama_vector(llama, s->width),
        .in = llama_matrix(llama, type, s->width, s->hidden + n + s->heads),
        .filter = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, CONV, n),
        .filter_bias = llama_vector(llama, n),
        .step_bias = llama_vector(llama, s->heads),
        .rate = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 1, s->heads),
        .skip = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 1, s->heads),
        .gate_norm = llama_vector(llama, s->hidden),
        .out = llama_matrix(llama, type, s->hidden, s->width),
        .inputs = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, CONV - 1, n),
        .state = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, s->state, s->hidden / s->heads, s->heads),
    };
}

// Columns of a matrix from `first` on.
static struct ggml_tensor *part(struct ggml_context *ctx, struct ggml_tensor *x, int64_t first,
                                int64_t n) {
    return ggml_view_2d(ctx, x, n, x->ne[1], x->nb[1], (size_t)first * x->nb[0]);
}

// The same, divided into heads.
static struct ggml_tensor *part_heads(struct ggml_context *ctx, struct ggml_tensor *x,
                                      int64_t first, int64_t head, int64_t n_heads) {
    return ggml_view_4d(ctx, x, head, n_heads, x->ne[1], 1, (size_t)head * x->nb[0], x->nb[1],
                        x->nb[2], (size_t)first * x->nb[0]);
}

// Copies what the next token needs to where it is found.
static void keep(const struct llama_build *b, struct ggml_tensor *x, struct ggml_tensor *state) {
    ggml_build_forward_expand(b->graph->graph, ggml_cpy(b->ctx, x, state));
}

// The filtered channels; the last inputs are kept.
static struct ggml_tensor *filter(const struct llama_build *b, const struct mamba2 *layer,
                                  struct ggml_tensor *x) {
    struct ggml_context *ctx = b->ctx;
    x = ggml_concat(ctx, layer->inputs, ggml_transpose(ctx, x), 0);
    const size_t last = (size_t)b->graph->n_tokens * x->nb[0];
    keep(b, ggml_view_2d(ctx, x, CONV - 1, x->ne[1], x->nb[1], last), layer->inputs);
    x = ggml_ssm_conv(ctx, x, layer->filter);
    return ggml_silu(ctx, ggml_add(ctx, x, layer->filter_bias));
}

static struct ggml_tensor *add_mamba2(const struct llama_build *b, const struct mamba2 *layer,
                                      struct ggml_tensor *x) {
    const struct llama_shape *s = &b->llama->shape;
    struct ggml_context *ctx = b->ctx;
    const int64_t n = b->graph->n_tokens, head = s->hidden / s->heads;
    struct ggml_tensor *all = ggml_mul_mat(ctx, layer->in, llama_normed(ctx, x, layer->norm));
    struct ggml_tensor *gate = part(ctx, all, 0, s->hidden);
    struct ggml_tensor *steps = part(ctx, all, s->hidden + filtered(s), s->heads);
    struct ggml_tensor *u = filter(b, layer, part(ctx, all, s->hidden, filtered(s)));
    struct ggml_tensor *input = part_heads(ctx, u, 0, head, s->heads);
    struct ggml_tensor *scan =
        ggml_ssm_scan(ctx, layer->state, input, ggml_add(ctx, steps, layer->step_bias), layer->rate,
                      part_heads(ctx, u, s->hidden, s->state, 1),
                      part_heads(ctx, u, s->hidden + s->state, s->state, 1), b->llama->sequence, 1);
    const size_t outputs = (size_t)(s->hidden * n) * sizeof(float);
    keep(b, ggml_view_1d(ctx, scan, ggml_nelements(layer->state), outputs), layer->state);
    struct ggml_tensor *y = ggml_view_3d(ctx, scan, head, s->heads, n, (size_t)head * sizeof(float),
                                         (size_t)s->hidden * sizeof(float), 0);
    y = ggml_add(ctx, y, ggml_mul(ctx, input, layer->skip));
    y = ggml_swiglu_split(ctx, gate, ggml_reshape_2d(ctx, y, s->hidden, n));
    return ggml_add(ctx, x, ggml_mul_mat(ctx, layer->out, llama_normed(ctx, y, layer->gate_norm)));
}

// --- RWKV 7 -------------------------------------------------------------------------------------

static struct low_rank define_low_rank(struct llama *llama) {
    const int n = llama->shape.width;
    return (struct low_rank){llama_matrix(llama, GGML_TYPE_F32, n, RANK),
                             llama_matrix(llama, GGML_TYPE_F32, RANK, n), llama_vector(llama, n)};
}

static void define_rwkv7(struct llama *llama, enum ggml_type type, struct rwkv7 *out) {
    const struct llama_shape *s = &llama->shape;
    struct ggml_context *ctx = llama->ctx;
    const int n = s->width;
    *out = (struct rwkv7){
        .norm1 = llama_vector(llama, n),
        .mix = ggml_new_tensor_4d(ctx, GGML_TYPE_F32, n, 1, 1, MIXTURES),
        .r = llama_matrix(llama, type, n, n),
        .k = llama_matrix(llama, type, n, n),
        .v = llama_matrix(llama, type, n, n),
        .out = llama_matrix(llama, type, n, n),
        .decay = define_low_rank(llama),
        .rate = define_low_rank(llama),
        .value = define_low_rank(llama),
        .gate = define_low_rank(llama),
        .k_length = llama_vector(llama, n),
        .k_rate = llama_vector(llama, n),
        .bonus = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, n / s->heads, s->heads),
        .heads_norm = llama_vector(llama, n),
        .heads_bias = llama_vector(llama, n),
        .norm2 = llama_vector(llama, n),
        .mix2 = llama_vector(llama, n),
        .up = llama_matrix(llama, type, n, s->hidden),
        .down = llama_matrix(llama, type, s->hidden, n),
        .before1 = llama_vector(llama, n),
        .before2 = llama_vector(llama, n),
        .state = llama_vector(llama, n / s->heads * n),
    };
}

// What the token before each differs by; the last token is kept.
static struct ggml_tensor *differences(const struct llama_build *b, struct ggml_tensor *x,
                                       struct ggml_tensor *before) {
    struct ggml_context *ctx = b->ctx;
    const int64_t n = b->graph->n_tokens;
    struct ggml_tensor *shifted = before;
    if (n > 1) {
        struct ggml_tensor *others = ggml_view_2d(ctx, x, x->ne[0], n - 1, x->nb[1], 0);
        shifted = ggml_concat(ctx, before, others, 1);
    }
    shifted = ggml_sub(ctx, shifted, x);
    ggml_build_forward_expand(b->graph->graph, shifted); // reads it before the new one is kept
    keep(b, ggml_view_1d(ctx, x, x->ne[0], (size_t)(n - 1) * x->nb[1]), before);
    return shifted;
}

static struct ggml_tensor *add_low_rank(struct ggml_context *ctx, const struct low_rank *w,
                                        struct ggml_tensor *inner) {
    return ggml_add(ctx, ggml_mul_mat(ctx, w->up, inner), w->bias);
}

// A layer's values, drawn to those of the first one.
static struct ggml_tensor *mix_values(struct llama_build *b, const struct low_rank *w,
                                      struct ggml_tensor *v, struct ggml_tensor *x) {
    struct ggml_context *ctx = b->ctx;
    if (!b->values) return b->values = v;
    struct ggml_tensor *share =
        ggml_sigmoid(ctx, add_low_rank(ctx, w, ggml_mul_mat(ctx, w->down, x)));
    return ggml_add(ctx, v, ggml_mul(ctx, ggml_sub(ctx, b->values, v), share));
}

// Heads of the outputs at length one, and what the token itself adds to them.
static struct ggml_tensor *finish_heads(const struct llama_build *b, const struct rwkv7 *layer,
                                        struct ggml_tensor *y, struct ggml_tensor *r,
                                        struct ggml_tensor *k, struct ggml_tensor *v) {
    struct ggml_context *ctx = b->ctx;
    const int64_t width = b->llama->shape.width, n = b->graph->n_tokens;
    y = ggml_norm(ctx, ggml_reshape_3d(ctx, y, b->head, width / b->head, n), 64e-5f);
    y = ggml_reshape_2d(ctx, y, width, n);
    y = ggml_add(ctx, ggml_mul(ctx, y, layer->heads_norm), layer->heads_bias);
    struct ggml_tensor *share =
        ggml_sum_rows(ctx, ggml_mul(ctx, ggml_mul(ctx, k, r), layer->bonus));
    return ggml_add(ctx, y, ggml_reshape_2d(ctx, ggml_mul(ctx, v, share), width, n));
}

// Linear attention of one layer.
static struct ggml_tensor *mix_time(struct llama_build *b, const struct rwkv7 *layer,
                                    struct ggml_tensor *x) {
    struct ggml_context *ctx = b->ctx;
    const int64_t width = b->llama->shape.width, n = b->graph->n_tokens, heads = width / b->head;
    struct ggml_tensor *all = differences(b, x, layer->before1), *m[MIXTURES];
    all = ggml_repeat_4d(ctx, all, width, n, 1, MIXTURES);
    all = ggml_add(ctx, ggml_mul(ctx, all, layer->mix), x);
    for (size_t i = 0; i < MIXTURES; ++i)
        m[i] = ggml_view_2d(ctx, all, width, n, all->nb[1], i * all->nb[3]);
    struct ggml_tensor *r = ggml_mul_mat(ctx, layer->r, m[0]);
    struct ggml_tensor *w = ggml_tanh(ctx, ggml_mul_mat(ctx, layer->decay.down, m[1]));
    w = ggml_sigmoid(ctx, add_low_rank(ctx, &layer->decay, w));
    w = ggml_exp(ctx, ggml_scale(ctx, w, -0.606531f));
    struct ggml_tensor *k = ggml_mul_mat(ctx, layer->k, m[2]);
    struct ggml_tensor *v = mix_values(b, &layer->value, ggml_mul_mat(ctx, layer->v, m[3]), m[3]);
    struct ggml_tensor *a = ggml_mul_mat(ctx, layer->rate.down, m[4]);
    a = ggml_sigmoid(ctx, add_low_rank(ctx, &layer->rate, a));
    struct ggml_tensor *gate = ggml_sigmoid(ctx, ggml_mul_mat(ctx, layer->gate.down, m[5]));
    gate = ggml_mul_mat(ctx, layer->gate.up, gate);
    struct ggml_tensor *kk =
        ggml_reshape_3d(ctx, ggml_mul(ctx, k, layer->k_length), b->head, heads, n);
    kk = ggml_l2_norm(ctx, kk, 1e-12f);
    struct ggml_tensor *ka = ggml_mul(ctx, k, layer->k_rate);
    k = ggml_add(ctx, k, ggml_sub(ctx, ggml_mul(ctx, a, ka), ka));
    struct ggml_tensor **by_head[] = {&r, &w, &k, &v, &a};
    for (size_t i = 0; i < sizeof(by_head) / sizeof(by_head[0]); ++i)
        *by_head[i] = ggml_reshape_3d(ctx, *by_head[i], b->head, heads, n);
    struct ggml_tensor *y =
        ggml_rwkv_wkv7(ctx, r, w, k, v, ggml_neg(ctx, kk), ggml_mul(ctx, kk, a), layer->state);
    const size_t outputs = (size_t)(width * n) * sizeof(float);
    keep(b, ggml_view_1d(ctx, y, ggml_nelements(layer->state), outputs), layer->state);
    y = finish_heads(b, layer, ggml_view_1d(ctx, y, width * n, 0), r, k, v);
    return ggml_mul_mat(ctx, layer->out, ggml_mul(ctx, y, gate));
}

static struct ggml_tensor *add_rwkv7(struct llama_build *b, const struct rwkv7 *layer,
                                     struct ggml_tensor *x) {
    struct ggml_context *ctx = b->ctx;
    x = ggml_add(ctx, x, mix_time(b, layer, llama_normed(ctx, x, layer->norm1)));
    struct ggml_tensor *h = llama_normed(ctx, x, layer->norm2);
    struct ggml_tensor *d = differences(b, h, layer->before2);
    h = ggml_add(ctx, ggml_mul(ctx, d, layer->mix2), h);
    h = ggml_sqr(ctx, ggml_relu(ctx, ggml_mul_mat(ctx, layer->up, h)));
    return ggml_add(ctx, x, ggml_mul_mat(ctx, layer->down, h));
}

// --- either -------------------------------------------------------------------------------------

void llama_define_recurrent(struct llama *llama, enum ggml_type type,
                            struct llama_recurrent *out_layer) {
    *out_layer = (struct llama_recurrent){.kind = llama->shape.kind};
    if (out_layer->kind == LLAMA_MAMBA2)
        define_mamba2(llama, type, &out_layer->mamba2);
    else
        define_rwkv7(llama, type, &out_layer->rwkv7);
}

// States begin at 0, and those of Mamba 2 fade: the rate is negative.
void llama_fill_recurrent(const struct llama_recurrent *layer) {
    enum { NEGATIVE = 0xbc };
    struct ggml_tensor *states[] = {layer->mamba2.inputs, layer->mamba2.state, layer->rwkv7.before1,
                                    layer->rwkv7.before2, layer->rwkv7.state};
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); ++i) {
        if (states[i]) ggml_backend_tensor_memset(states[i], 0, 0, ggml_nbytes(states[i]));
    }
    struct ggml_tensor *rate = layer->mamba2.rate;
    if (rate) ggml_backend_tensor_memset(rate, NEGATIVE, 0, ggml_nbytes(rate));
}

struct ggml_tensor *llama_add_recurrent(struct llama_build *b, const struct llama_recurrent *layer,
                                        struct ggml_tensor *x) {
    return layer->kind == LLAMA_MAMBA2 ? add_mamba2(b, &layer->mamba2, x)
                                       : add_rwkv7(b, &layer->rwkv7, x);
}
