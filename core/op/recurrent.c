// SPDX-License-Identifier: MIT
// State-space models, linear attention and hyper-connections.
#include "op/op_rules.h"

// --- state-space models --------------------------------------------------------------------------

// sx has the last d - 1 columns of the sequence so far before the new ones, so that t = ne0 - d + 1
// results are whole.
bool op_shape_ssm_conv(struct op_call *call) {
    const int64_t *sx = call->src[0]->ne;
    const int64_t *c = call->src[1]->ne;
    return op_need_dims(call, 0, 3) && op_need_dims(call, 1, 2) &&
           op_need_ne(call, 1, 1, sx[1], "ne1 of src0, the channels") &&
           op_need_range(call, "src1 ne0", c[0], 1, sx[0]) &&
           op_set_ne(call, sx[1], sx[0] - c[0] + 1, sx[2], 1);
}

// A causal convolution of each channel over the tokens (Mamba): the state's columns come first, so
// that no padding is needed. sx [d - 1 + t, channels, sequences], c [d, channels].
struct ggml_tensor *ggml_ssm_conv(struct ggml_context *ctx, struct ggml_tensor *sx,
                                  struct ggml_tensor *c) {
    return op_build(&(struct op_call){OP(ctx, SSM_CONV), .src = {sx, c}});
}

// K, kept in 32 bits.
static bool check_snapshots(struct op_call *call) {
    return op_need_range(call, "K", call->params[0], 1, INT32_MAX);
}

// What does not fit becomes 0, which check_snapshots() refuses with a message.
static int32_t snapshots(int64_t K) {
    return K >= 1 && K <= INT32_MAX ? (int32_t)K : 0;
}

// All F32 but the ids, which are I32.
bool op_type_ssm_scan(struct op_call *call) {
    call->type = GGML_TYPE_F32;
    for (int i = 0; i < 6; ++i) {
        if (!op_need_type(call, i, GGML_TYPE_F32)) return false;
    }
    return op_need_type(call, 6, GGML_TYPE_I32);
}

// Kernels walk over both dimensions of a matrix with one pointer; matrices may lie apart.
static bool need_packed_matrices(struct op_call *call, int src) {
    const struct ggml_tensor *t = call->src[src];
    if (t->nb[0] == sizeof(float) && t->nb[1] == (size_t)t->ne[0] * sizeof(float)) return true;
    return op_fail(call, "src%d must be contiguous in its first two dimensions", src);
}

// Sources: state [N, P, H, n], x [P, H, T, S], dt [H, T, S], A [1 or N, H], B and C [N, G, T, S],
// ids [S].
bool op_shape_ssm_scan(struct op_call *call) {
    const int64_t *s = call->src[0]->ne;
    const int64_t *x = call->src[1]->ne;
    const int64_t *a = call->src[3]->ne;
    const int64_t *b = call->src[4]->ne;
    const int64_t n = s[0], p = s[1], h = s[2], t = x[2], seqs = x[3];
    if (!check_snapshots(call)) return false;
    if (!op_need_shape(call, 1, p, h, t, seqs) || !op_need_shape(call, 2, h, t, seqs, 1) ||
        !op_need_shape(call, 4, n, b[1], t, seqs) || !op_need_same_shape(call, 5, 4) ||
        !op_need_shape(call, 6, seqs, 1, 1, 1)) {
        return false;
    }
    if (!op_need_ne(call, 3, 1, h, "the heads") || !op_need_dims(call, 3, 2)) return false;
    if (a[0] != 1 && !op_need_ne(call, 3, 0, n, "the state, or 1")) return false;
    if (a[0] != 1 && call->params[0] != 1) return op_fail(call, "a decay per state needs K = 1");
    if (!op_need_multiple(call, 1, 1, 4, 1)) return false;
    if (!op_need_contiguous(call, 0) || !op_need_contiguous(call, 2) ||
        !op_need_contiguous(call, 3)) {
        return false;
    }
    if (!need_packed_matrices(call, 1) || !need_packed_matrices(call, 4) ||
        !need_packed_matrices(call, 5)) {
        return false;
    }
    const int64_t state = op_mul(op_mul(n, p), op_mul(h, seqs));
    return op_set_ne(call, op_add(ggml_nelements(call->src[1]), op_mul(call->params[0], state)), 1,
                     1, 1);
}

// The result has y [P, H, T, S] and behind it K snapshots of the state: the last one for going on,
// the others for speculative decoding, which may have to go back. One tensor, since a node has one
// result.
struct ggml_tensor *ggml_ssm_scan(struct ggml_context *ctx, struct ggml_tensor *s,
                                  struct ggml_tensor *x, struct ggml_tensor *dt,
                                  struct ggml_tensor *A, struct ggml_tensor *B,
                                  struct ggml_tensor *C, struct ggml_tensor *ids, int64_t K) {
    return op_build(&(struct op_call){OP(ctx, SSM_SCAN), .src = {s, x, dt, A, B, C, ids},
                                      .params = {snapshots(K)}});
}

// --- linear attention ----------------------------------------------------------------------------

// Sources first .. last have the shape [S, H, T] of source `first`; the state holds S x S x H per
// sequence along its ne1. The result is [S H, T + S n_seqs].
static bool linear_attention(struct op_call *call, int last, int state) {
    const int64_t *k = call->src[0]->ne;
    const int64_t seqs = call->src[state]->ne[1];
    if (!op_need_dims(call, 0, 3)) return false;
    for (int i = 0; i <= last; ++i) {
        if (!op_need_contiguous(call, i) || !op_need_same_shape(call, i, 0)) return false;
    }
    const int64_t expected = op_mul(op_mul(k[0], k[0]), op_mul(k[1], seqs));
    if (!op_need_contiguous(call, state)) return false;
    if (ggml_nelements(call->src[state]) != expected) {
        return op_fail(call, "src%d has %lld elements, the state of %lld sequences has %lld", state,
                       (long long)ggml_nelements(call->src[state]), (long long)seqs,
                       (long long)expected);
    }
    if (seqs < 1 || k[2] % seqs != 0) {
        return op_fail(call, "%lld tokens can't be divided among %lld sequences", (long long)k[2],
                       (long long)seqs);
    }
    return op_set_ne(call, op_mul(k[0], k[1]), op_add(k[2], op_mul(k[0], seqs)), 1, 1);
}

// Sources: k, v, r, the bonus tf [S, H], td, state.
bool op_shape_rwkv_wkv6(struct op_call *call) {
    const int64_t *k = call->src[0]->ne;
    if (!op_need_contiguous(call, 3) || !op_need_contiguous(call, 4)) return false;
    if (ggml_nelements(call->src[3]) != op_mul(k[0], k[1])) {
        return op_fail(call, "src3 has %lld elements, it must have one per channel (%lld)",
                       (long long)ggml_nelements(call->src[3]), (long long)op_mul(k[0], k[1]));
    }
    return op_need_same_shape(call, 4, 0) && linear_attention(call, 2, 5);
}

struct ggml_tensor *ggml_rwkv_wkv6(struct ggml_context *ctx, struct ggml_tensor *k,
                                   struct ggml_tensor *v, struct ggml_tensor *r,
                                   struct ggml_tensor *tf, struct ggml_tensor *td,
                                   struct ggml_tensor *state) {
    return op_build(&(struct op_call){OP(ctx, RWKV_WKV6), .src = {k, v, r, tf, td, state}});
}

// Sources: k, v, q, the gate g, state.
bool op_shape_gated_linear_attn(struct op_call *call) {
    return linear_attention(call, 3, 4);
}

struct ggml_tensor *ggml_gated_linear_attn(struct ggml_context *ctx, struct ggml_tensor *k,
                                           struct ggml_tensor *v, struct ggml_tensor *q,
                                           struct ggml_tensor *g, struct ggml_tensor *state,
                                           float scale) {
    return op_build(&(struct op_call){OP(ctx, GATED_LINEAR_ATTN), .src = {k, v, q, g, state},
                                      .params = {op_bits(scale)}});
}

// Sources: r, w, k, v, a, b, state.
bool op_shape_rwkv_wkv7(struct op_call *call) {
    return linear_attention(call, 5, 6);
}

struct ggml_tensor *ggml_rwkv_wkv7(struct ggml_context *ctx, struct ggml_tensor *r,
                                   struct ggml_tensor *w, struct ggml_tensor *k,
                                   struct ggml_tensor *v, struct ggml_tensor *a,
                                   struct ggml_tensor *b, struct ggml_tensor *state) {
    return op_build(&(struct op_call){OP(ctx, RWKV_WKV7), .src = {r, w, k, v, a, b, state}});
}

// Sources: q, k, v, g, beta, state. Heads and sequences of q and k may be shared by several of v.
bool op_shape_gated_delta_net(struct op_call *call) {
    const int64_t *v = call->src[2]->ne;
    const int64_t s = v[0], h = v[1], t = v[2], seqs = v[3];
    if (!check_snapshots(call)) return false;
    for (int i = 0; i < 2; ++i) {
        const int64_t *qk = call->src[i]->ne;
        if (!op_need_shape(call, i, s, qk[1], t, qk[3]) || !op_need_multiple(call, 2, 1, i, 1) ||
            !op_need_multiple(call, 2, 3, i, 3) || !op_need_contiguous_rows(call, i)) {
            return false;
        }
    }
    if (!op_need_contiguous_rows(call, 2) || !op_need_contiguous_rows(call, 3)) return false;
    if (!op_need_shape(call, 3, call->src[3]->ne[0] == 1 ? 1 : s, h, t, seqs)) return false;
    if (!op_need_shape(call, 4, 1, h, t, seqs) || !op_need_contiguous(call, 5)) return false;
    const int64_t state = op_mul(op_mul(s, s), op_mul(h, seqs));
    if (ggml_nelements(call->src[5]) != state) {
        return op_fail(call, "src5 has %lld elements, the state has %lld",
                       (long long)ggml_nelements(call->src[5]), (long long)state);
    }
    const int64_t state_rows = op_mul(call->params[0], op_mul(s, seqs));
    return op_set_ne(call, op_mul(s, h), op_add(op_mul(t, seqs), state_rows), 1, 1);
}

struct ggml_tensor *ggml_gated_delta_net(struct ggml_context *ctx, struct ggml_tensor *q,
                                         struct ggml_tensor *k, struct ggml_tensor *v,
                                         struct ggml_tensor *g, struct ggml_tensor *beta,
                                         struct ggml_tensor *state, int64_t K) {
    return op_build(&(struct op_call){OP(ctx, GATED_DELTA_NET), .src = {q, k, v, g, beta, state},
                                      .params = {snapshots(K)}});
}

// --- triangular systems --------------------------------------------------------------------------

// A X = B: A is square and its lower triangle is read; X has the extents of B.
bool op_shape_solve_tri(struct op_call *call) {
    const int64_t *a = call->src[0]->ne;
    const int64_t *b = call->src[1]->ne;
    return op_need_ne(call, 0, 1, a[0], "ne0, a square matrix") &&
           op_need_shape(call, 1, b[0], a[1], a[2], a[3]) && op_need_contiguous(call, 0) &&
           op_need_contiguous(call, 1) && op_set_ne_as(call, call->src[1]);
}

struct ggml_tensor *ggml_solve_tri(struct ggml_context *ctx, struct ggml_tensor *a,
                                   struct ggml_tensor *b, bool left, bool lower, bool uni) {
    struct op_call call = {OP(ctx, SOLVE_TRI), .src = {a, b}};
    if (!left || !lower || uni) {
        op_fail(&call, "only A X = B with a lower triangle and its diagonal is supported");
        return call.error;
    }
    return op_build(&call);
}

// --- hyper-connections ---------------------------------------------------------------------------

// Per token 4 weights before, 4 after and a 4 x 4 matrix between the streams: 24 mixes, of which
// the matrix is the result.
bool op_shape_dsv4_hc_comb(struct op_call *call) {
    return op_need_range(call, "n_iter", call->params[1], 1, INT32_MAX) &&
           op_need_ne(call, 0, 0, 24, "(2 + 4) x 4 mixes") && op_need_dims(call, 0, 2) &&
           op_need_range(call, "src1 ne0", call->src[1]->ne[0], 3, INT64_MAX) &&
           op_need_ne(call, 2, 0, 24, "(2 + 4) x 4 mixes") &&
           op_set_ne(call, 4, 4, call->src[0]->ne[1], 1);
}

struct ggml_tensor *ggml_dsv4_hc_comb(struct ggml_context *ctx, struct ggml_tensor *mixes,
                                      struct ggml_tensor *scale, struct ggml_tensor *base,
                                      float eps, int32_t n_iter) {
    return op_build(&(struct op_call){OP(ctx, DSV4_HC_COMB), .src = {mixes, scale, base},
                                      .params = {op_bits(eps), n_iter}});
}

// x [E, HC, T]: the weighted sum over its HC streams. Weights are one per stream, or with a gate
// one per element.
bool op_shape_dsv4_hc_pre(struct op_call *call) {
    const int64_t *x = call->src[0]->ne;
    const bool gated = call->params[1] != 0;
    return op_need_dims(call, 0, 3) &&
           (gated ? op_need_same_shape(call, 1, 0) : op_need_shape(call, 1, x[1], x[2], 1, 1)) &&
           op_set_ne(call, x[0], x[2], 1, 1);
}

struct ggml_tensor *ggml_dsv4_hc_pre(struct ggml_context *ctx, struct ggml_tensor *x,
                                     struct ggml_tensor *weights) {
    return op_build(&(struct op_call){OP(ctx, DSV4_HC_PRE), .src = {x, weights},
                                      .params = {op_bits(1.0f), false}});
}

struct ggml_tensor *ggml_dsv4_hc_pre_gated(struct ggml_context *ctx, struct ggml_tensor *x,
                                           struct ggml_tensor *gate, float scale) {
    return op_build(&(struct op_call){OP(ctx, DSV4_HC_PRE), .src = {x, gate},
                                      .params = {op_bits(scale), true}});
}

// x [E, T] is added to each of the residual's HC streams by its weight, after comb, if there is
// one, has mixed these.
bool op_shape_dsv4_hc_post(struct op_call *call) {
    const int64_t *residual = call->src[1]->ne;
    const int64_t e = residual[0], hc = residual[1], t = residual[2];
    return op_need_dims(call, 1, 3) && op_need_shape(call, 0, e, t, 1, 1) &&
           op_need_shape(call, 2, hc, t, 1, 1) &&
           (call->src[3] == NULL || op_need_shape(call, 3, hc, hc, t, 1)) &&
           op_set_ne_as(call, call->src[1]);
}

struct ggml_tensor *ggml_dsv4_hc_post(struct ggml_context *ctx, struct ggml_tensor *x,
                                      struct ggml_tensor *residual, struct ggml_tensor *post,
                                      struct ggml_tensor *comb) {
    return op_build(&(struct op_call){OP(ctx, DSV4_HC_POST), .src = {x, residual, post, comb}});
}
