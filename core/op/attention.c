// SPDX-License-Identifier: MIT
// Fused attention.
#include "base/status.h"
#include "op/op_rules.h"

// A sink is a logit per head that takes part in the denominator of softmax and has no value: it
// lets a head attend to nothing. They can be set once, and cleared with NULL.
void op_set_sinks(const char *setter, struct ggml_tensor *node, int slot, struct ggml_tensor *sinks,
                  int64_t n_head) {
    if (sinks == NULL) {
        node->src[slot] = NULL;
    } else if (node->src[slot] != NULL) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: the node has sinks already", setter);
    } else if (op_is_error(sinks)) {
        node->src[slot] = sinks; // has graphs of the node refused
    } else if (sinks->type != GGML_TYPE_F32 || sinks->ne[0] != n_head) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "%s: sinks are %s with ne0 = %lld, they must be f32, one per head (%lld)", setter,
                  ggml_type_name(sinks->type), (long long)sinks->ne[0], (long long)n_head);
        node->flags |= GGML_TENSOR_FLAG_ERROR;
        node->extra = "its sinks are not f32, one per head";
    } else {
        node->src[slot] = sinks;
    }
}

// F32 results whatever Q, K and V are; a mask is F16, which is what kernels add without converting.
bool op_type_flash_attn(struct op_call *call) {
    call->type = GGML_TYPE_F32;
    return call->src[3] == NULL || op_need_type(call, 3, GGML_TYPE_F16);
}

// The mask is added to the scores K^T Q, so it has a column per key and a row per query; it may
// have more of both, and repeats over heads and batches. ALiBi (max_bias > 0) is a slope of the
// mask and needs one.
static bool check_mask(struct op_call *call) {
    const struct ggml_tensor *mask = call->src[3];
    if (mask == NULL) {
        return !(op_float(call, 1) > 0.0f) ||
               op_fail(call, "max_bias = %g needs a mask", (double)op_float(call, 1));
    }
    return op_need_contiguous(call, 3) &&
           op_need_range(call, "src3 ne0", mask->ne[0], call->src[1]->ne[1], INT64_MAX) &&
           op_need_range(call, "src3 ne1", mask->ne[1], call->src[0]->ne[1], INT64_MAX) &&
           op_need_multiple(call, 0, 2, 3, 2) && op_need_multiple(call, 0, 3, 3, 3);
}

// Q [D, queries, heads, batch], K [D, keys, KV heads, batch], V [DV, keys or more, KV heads,
// batch]. Groups of query heads share a KV head (grouped-query attention). The result is [DV,
// heads, queries, batch]: with heads before queries, a token's heads lie side by side for the
// projection behind.
bool op_shape_flash_attn(struct op_call *call) {
    const int64_t *q = call->src[0]->ne;
    const int64_t *k = call->src[1]->ne;
    const int64_t *v = call->src[2]->ne;
    return op_need_ne(call, 1, 0, q[0], "ne0 of src0, the head size") &&
           op_need_multiple(call, 0, 2, 1, 2) && op_need_multiple(call, 0, 2, 2, 2) &&
           op_need_range(call, "src2 ne1, the cache length", v[1], k[1], INT64_MAX) &&
           op_need_ne(call, 1, 3, q[3], "ne3 of src0, the batch") &&
           op_need_ne(call, 2, 3, q[3], "ne3 of src0, the batch") && check_mask(call) &&
           op_set_ne(call, v[0], q[2], q[1], q[3]);
}

struct ggml_tensor *ggml_flash_attn_ext(struct ggml_context *ctx, struct ggml_tensor *q,
                                        struct ggml_tensor *k, struct ggml_tensor *v,
                                        struct ggml_tensor *mask, float scale, float max_bias,
                                        float logit_softcap) {
    return op_build(
        &(struct op_call){OP(ctx, FLASH_ATTN_EXT), .src = {q, k, v, mask},
                          .params = {op_bits(scale), op_bits(max_bias), op_bits(logit_softcap)}});
}

// An upper bound on the keys that any query sees, for kernels that split the cache; 0 means that it
// is not known.
void ggml_flash_attn_ext_set_n_kv_max(struct ggml_tensor *a, int32_t n_kv_max) {
    if (!op_may_set(__func__, a, GGML_OP_FLASH_ATTN_EXT)) return;
    if (n_kv_max < 0) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: n_kv_max = %d is negative", __func__, n_kv_max);
        return;
    }
    a->op_params[4] = n_kv_max;
}

void ggml_flash_attn_ext_add_sinks(struct ggml_tensor *a, struct ggml_tensor *sinks) {
    if (!op_may_set(__func__, a, GGML_OP_FLASH_ATTN_EXT)) return;
    op_set_sinks(__func__, a, 4, sinks, a->src[0]->ne[2]);
}

bool op_type_unsupported(struct op_call *call) {
    return op_fail(call, "unsupported; build the gradient from simpler operations");
}

// Kept for programs that link to it: op_type_unsupported() refuses every call.
struct ggml_tensor *ggml_flash_attn_back(struct ggml_context *ctx, struct ggml_tensor *q,
                                         struct ggml_tensor *k, struct ggml_tensor *v,
                                         struct ggml_tensor *d, bool masked) {
    (void)masked;
    return op_build(&(struct op_call){OP(ctx, FLASH_ATTN_BACK), .src = {q, k, v, d}});
}

bool op_type_lightning_indexer(struct op_call *call) {
    call->type = GGML_TYPE_F32;
    return op_need_type(call, 0, GGML_TYPE_F32) && op_need_type(call, 2, GGML_TYPE_F32) &&
           op_need_type(call, 3, GGML_TYPE_F16);
}

// Scores of queries against a compressed key cache, one per query and key: the weighted sum over
// heads of relu(q . k), plus the mask. Q [D, H, T, batch], K [D, 1, n, batch], weights [H, T, 1,
// batch], mask [n, T, 1, any]; the result is [n, T, 1, batch].
bool op_shape_lightning_indexer(struct op_call *call) {
    const int64_t *q = call->src[0]->ne;
    const int64_t *k = call->src[1]->ne;
    return op_need_shape(call, 1, q[0], 1, k[2], q[3]) &&
           op_need_shape(call, 2, q[1], q[2], 1, q[3]) &&
           op_need_shape(call, 3, k[2], q[2], 1, call->src[3]->ne[3]) &&
           op_need_multiple(call, 0, 3, 3, 3) && op_set_ne(call, k[2], q[2], 1, q[3]);
}

struct ggml_tensor *ggml_lightning_indexer(struct ggml_context *ctx, struct ggml_tensor *q,
                                           struct ggml_tensor *k, struct ggml_tensor *weights,
                                           struct ggml_tensor *mask) {
    return op_build(&(struct op_call){OP(ctx, LIGHTNING_INDEXER), .src = {q, k, weights, mask}});
}
