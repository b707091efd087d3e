// SPDX-License-Identifier: MIT
// States of results. An operand that is mirrored can be cut: each device then uses its part of the
// copy that it has, which costs nothing.
#include "meta/meta.h"

// A call of a rule: the node with its operands, which the rule may cut, and the number of devices.
struct rule_call {
    const struct ggml_tensor *node;
    struct meta_operand *src;
    size_t n;
};

// Whether every device has all of the operand; absent ones count as such.
static bool is_mirrored(const struct meta_operand *operand) {
    return !operand->tensor || operand->state.axis == GGML_BACKEND_SPLIT_AXIS_MIRRORED;
}

// Whether the operand is split along the axis.
static bool is_on(const struct meta_operand *operand, int axis) {
    return operand->tensor && (int)operand->state.axis == axis;
}

// Relabels the split axis of a tensor that one device has whole: such a state can be expressed
// along any axis, and the rule needs this one.
static void relabel(const struct rule_call *call, int k, int axis) {
    struct meta_operand *operand = &call->src[k];
    if (!operand->tensor || !meta_is_axis(&operand->state) || is_on(operand, axis)) return;
    int64_t shares[META_MAX_DEVICES] = {0};
    size_t owners = 0;
    for (size_t j = 0; j < call->n; ++j) {
        if (meta_share(&operand->state, call->n, j) == 0) continue;
        shares[j] = operand->tensor->ne[axis];
        ++owners;
    }
    if (owners == 1) operand->state = meta_state_axis(axis, shares, call->n);
}

// Requires operand k to be split along `axis` like `like`, with each share scaled by up / down. A
// mirrored operand is cut to fit, which costs no transfer. False if the shares are not whole, or
// the operand is split otherwise.
static bool match(const struct rule_call *call, int k, int axis, const meta_state *like, int64_t up,
                  int64_t down) {
    struct meta_operand *operand = &call->src[k];
    meta_state wanted = *like;
    wanted.axis = (enum ggml_backend_meta_split_axis)axis;
    for (size_t i = 0; i < wanted.n_segments * call->n; ++i) {
        if (wanted.ne[i] * up % down != 0) return false;
        wanted.ne[i] = wanted.ne[i] * up / down;
    }
    if (!meta_state_fits(&wanted, operand->tensor, call->n)) return false;
    relabel(call, k, axis);
    if (meta_is_axis(&operand->state)) return meta_state_equal(&operand->state, &wanted, call->n);
    if (!is_mirrored(operand) || !meta_is_plain_cut(&wanted)) return false;
    operand->cut_axis = axis;
    operand->cut = wanted;
    return true;
}

// With only mirrored operands every device computes the whole result.
static bool all_mirrored(const struct rule_call *call) {
    for (int k = 0; k < GGML_MAX_SRC; ++k) {
        if (!is_mirrored(&call->src[k])) return false;
    }
    return true;
}

// The rules are only called with at least one split operand.
static const meta_state *first_split(const struct rule_call *call) {
    for (int k = 0; k < GGML_MAX_SRC; ++k) {
        if (call->src[k].tensor && meta_is_axis(&call->src[k].state)) return &call->src[k].state;
    }
    return NULL;
}

// Matches operands k >= first for an operation that broadcasts: each has the result's extent along
// the axis, or 1 and is used whole.
static bool match_broadcast(const struct rule_call *call, int first, const meta_state *state) {
    const int axis = (int)state->axis;
    for (int k = first; k < GGML_MAX_SRC; ++k) {
        const struct meta_operand *operand = &call->src[k];
        if (!operand->tensor || (operand->tensor->ne[axis] == 1 && is_mirrored(operand))) continue;
        if (operand->tensor->ne[axis] != call->node->ne[axis]) return false;
        if (!match(call, k, axis, state, 1, 1)) return false;
    }
    return true;
}

// Element-wise operations: the result is split as the operands are.
static bool rule_broadcast(struct rule_call *call, meta_state *out) {
    *out = *first_split(call);
    return match_broadcast(call, 0, out);
}

// The order of elements stays, the extents may not. A copy into a split destination takes its
// split; from a split source, the result is split as a view of those extents would be.
static bool rule_copy(struct rule_call *call, meta_state *out) {
    const struct meta_operand *src = &call->src[0];
    const bool same = ggml_are_same_shape(src->tensor, call->node);
    if (!meta_is_axis(&src->state)) {
        *out = call->src[1].state;
        return same && meta_is_axis(out) && match(call, 0, (int)out->axis, out, 1, 1);
    }
    // Strides in elements of one byte stand for any type.
    const struct meta_layout from = meta_layout_packed(GGML_TYPE_I8, src->tensor->ne);
    const struct meta_layout to = meta_layout_packed(GGML_TYPE_I8, call->node->ne);
    if (same)
        *out = src->state;
    else if (!meta_view_state(&from, &src->state, &to, call->n, out))
        return false;
    if (!call->src[1].tensor || call->node->op != GGML_OP_CPY) return true;
    return match(call, 1, (int)out->axis, out, 1, 1);
}

// Operations that treat the dimensions from lowest_axis on as independent: splitting is possible
// along these.
static bool rows_from(struct rule_call *call, int lowest_axis, meta_state *out) {
    *out = *first_split(call);
    const int axis = (int)out->axis;
    if (axis < lowest_axis || !is_on(&call->src[0], axis)) return false;
    if (call->node->ne[axis] != call->src[0].tensor->ne[axis]) return false;
    return match_broadcast(call, 1, out);
}

// Row-wise operations (norms, softmax rows, repetitions). The sum of a split row is a partial sum
// per device.
static bool rule_rows(struct rule_call *call, meta_state *out) {
    if (is_on(&call->src[0], 0) && call->node->op == GGML_OP_SUM_ROWS &&
        call->node->type == GGML_TYPE_F32) {
        *out = meta_state_plain(GGML_BACKEND_SPLIT_AXIS_PARTIAL);
        return true;
    }
    const bool repeats = call->node->op == GGML_OP_REPEAT || call->node->op == GGML_OP_REPEAT_BACK;
    const int lowest = repeats ? 0 : 1;
    return rows_from(call, lowest, out);
}

// Independent matrices (axis 2 and 3).
static bool rule_batches(struct rule_call *call, meta_state *out) {
    return rows_from(call, 2, out);
}

// Independent samples (axis 3).
static bool rule_samples(struct rule_call *call, meta_state *out) {
    return rows_from(call, 3, out);
}

// A sum over everything: each device sums its part.
static bool rule_sum(struct rule_call *call, meta_state *out) {
    *out = meta_state_plain(GGML_BACKEND_SPLIT_AXIS_PARTIAL);
    return call->node->type == GGML_TYPE_F32 && meta_is_axis(&call->src[0].state);
}

// The bias rows of experts are split with the features; ids are the same everywhere.
static bool rule_add_id(struct rule_call *call, meta_state *out) {
    *out = *first_split(call);
    if ((int)out->axis != 0 || !is_mirrored(&call->src[2])) return false;
    return match(call, 0, 0, out, 1, 1) && match(call, 1, 0, out, 1, 1);
}

// A GLU whose operand holds gate and value side by side: possible if each half is split alike, as
// two segments.
static bool glu_halves(struct rule_call *call, meta_state *out) {
    const meta_state *state = &call->src[0].state;
    if (state->n_segments != 2 || state->nr[0] != 1 || state->nr[1] != 1) return false;
    for (size_t j = 0; j < call->n; ++j) {
        if (state->ne[j] != state->ne[call->n + j]) return false;
    }
    *out = meta_state_axis(0, state->ne, call->n);
    return true;
}

// Two operands are split alike. With one operand, its halves are x and the gate: split along
// dimension 0, each half has to be split.
static bool rule_glu(struct rule_call *call, meta_state *out) {
    if (call->src[1].tensor) return rule_broadcast(call, out);
    return is_on(&call->src[0], 0) ? glu_halves(call, out) : rows_from(call, 1, out);
}

// Whether heads can be computed apart from each other without knowing their number: slopes of ALiBi
// depend on it.
static bool heads_are_alike(const struct ggml_tensor *node) {
    return ggml_get_op_params_f32(node, 1) == 0.0f;
}

// Rows are independent, so any axis but the first; the sinks, one per head, follow a split over
// heads.
static bool rule_soft_max(struct rule_call *call, meta_state *out) {
    struct meta_operand sinks = call->src[2];
    *out = call->src[0].state;
    const int axis = (int)out->axis;
    if (!meta_is_axis(out) || axis < 1 || (axis == 2 && !heads_are_alike(call->node))) return false;
    call->src[2].tensor = NULL;
    const bool rest = match_broadcast(call, 1, out);
    call->src[2] = sinks;
    if (!rest) return false;
    if (sinks.tensor && axis == 2) return match(call, 2, 0, out, 1, 1);
    return is_mirrored(&call->src[2]);
}

// A rotation pairs elements within a row and depends on the token (axis 2): heads and batches may
// be split.
static bool rule_rope(struct rule_call *call, meta_state *out) {
    *out = call->src[0].state;
    const bool split_well = is_on(&call->src[0], 1) || is_on(&call->src[0], 3);
    return split_well && is_mirrored(&call->src[1]) && is_mirrored(&call->src[2]);
}

// Any axis but that of the concatenation.
static bool rule_concat(struct rule_call *call, meta_state *out) {
    *out = *first_split(call);
    if ((int)out->axis == ggml_get_op_params_i32(call->node, 0)) return false;
    return match_broadcast(call, 0, out);
}

// Any axis that is not padded.
static bool rule_pad(struct rule_call *call, meta_state *out) {
    *out = call->src[0].state;
    const int axis = (int)out->axis;
    return meta_is_axis(out) && call->node->ne[axis] == call->src[0].tensor->ne[axis];
}

// Columns may be split; rows are looked up by number in all of them.
static bool rule_get_rows(struct rule_call *call, meta_state *out) {
    *out = call->src[0].state;
    return is_on(&call->src[0], 0) && is_mirrored(&call->src[1]);
}

// src0: rows, src1: row numbers, src2: what they are written into.
static bool rule_set_rows(struct rule_call *call, meta_state *out) {
    *out = *first_split(call);
    const int axis = (int)out->axis;
    if (axis == 1 || !is_mirrored(&call->src[1])) return false;
    if (axis >= 2 && call->src[1].tensor->ne[axis - 1] != 1) return false;
    return match(call, 0, axis, out, 1, 1) && match(call, 2, axis, out, 1, 1);
}

// The operation sums over `axis`, along which both operands are split: every device gets a partial
// sum, F32 so that adding these loses no precision.
static bool contraction(struct rule_call *call, int axis, meta_state *out) {
    const meta_state state = *first_split(call);
    *out = meta_state_plain(GGML_BACKEND_SPLIT_AXIS_PARTIAL);
    return call->node->type == GGML_TYPE_F32 && match(call, 0, axis, &state, 1, 1) &&
           match(call, 1, axis, &state, 1, 1);
}

// Column parallelism: src0 is split along its rows, which are the columns of the result; every
// device needs all of src1.
static bool output_rows(struct rule_call *call, meta_state *out) {
    *out = call->src[0].state;
    out->axis = GGML_BACKEND_SPLIT_AXIS_0;
    return is_mirrored(&call->src[1]);
}

// Split along batches: one matrix of src0 serves ne1 / ne0 matrices of src1.
static bool batch(struct rule_call *call, int axis, meta_state *out) {
    const int64_t ne0 = call->src[0].tensor->ne[axis];
    const int64_t ne1 = call->src[1].tensor->ne[axis];
    if (is_on(&call->src[1], axis)) {
        *out = call->src[1].state;
        if (ne0 == 1 && is_mirrored(&call->src[0])) return true;
        return ne0 > 0 && ne1 > 0 && match(call, 0, axis, out, ne0, ne1);
    }
    const meta_state state = call->src[0].state;
    if (ne0 < 1 || !match(call, 1, axis, &state, ne1, ne0)) return false;
    *out = call->src[1].cut_axis >= 0 ? call->src[1].cut : call->src[1].state;
    return true;
}

// Tried in the order: batches, the summed dimension (row parallelism), the rows of src0 (column
// parallelism), the columns of src1. See Shoeybi et al. 2019 (Megatron-LM) for the two ways of
// splitting weights.
static bool rule_mul_mat(struct rule_call *call, meta_state *out) {
    for (int axis = 2; axis < 4; ++axis) {
        if (is_on(&call->src[0], axis)) relabel(call, 1, axis);
        if (is_on(&call->src[1], axis)) relabel(call, 0, axis);
        if (is_on(&call->src[0], axis) || is_on(&call->src[1], axis)) return batch(call, axis, out);
    }
    if (is_on(&call->src[0], 0) || is_on(&call->src[1], 0)) return contraction(call, 0, out);
    if (is_on(&call->src[0], 1)) return output_rows(call, out);
    *out = call->src[1].state;
    return is_mirrored(&call->src[0]);
}

// Experts are split inside of each matrix, never across: which ones are used is data.
static bool rule_mul_mat_id(struct rule_call *call, meta_state *out) {
    if (!is_mirrored(&call->src[2])) return false;
    if (is_on(&call->src[0], 0) || is_on(&call->src[1], 0)) return contraction(call, 0, out);
    return is_on(&call->src[0], 1) && output_rows(call, out);
}

// src: q, k, v, mask, sinks. Heads of q come in groups that share one of k and v, but take turns
// with masks: only a single one or one per head goes with a split.
static bool rule_flash_attn(struct rule_call *call, meta_state *out) {
    relabel(call, 0, 2);
    relabel(call, 1, 2);
    relabel(call, 2, 2);
    const struct ggml_tensor *mask = call->src[3].tensor;
    const meta_state q = call->src[0].state;
    const int64_t n_heads = call->src[0].tensor->ne[2];
    if ((int)q.axis != 2 || !heads_are_alike(call->node) || n_heads < 1) return false;
    for (int k = 1; k < 3; ++k) {
        const int64_t n_shared = call->src[k].tensor->ne[2];
        if (n_shared == 1 && is_mirrored(&call->src[k])) continue;
        if (!match(call, k, 2, &q, n_shared, n_heads)) return false;
    }
    if (mask && mask->ne[2] == n_heads && !match(call, 3, 2, &q, 1, 1)) return false;
    if (mask && mask->ne[2] != n_heads && (mask->ne[2] != 1 || !is_mirrored(&call->src[3])))
        return false;
    if (call->src[4].tensor && !match(call, 4, 0, &q, 1, 1)) return false;
    *out = q;
    out->axis = GGML_BACKEND_SPLIT_AXIS_1;
    return true;
}

// Channels are independent; they are rows of both operands and columns of the result.
static bool rule_ssm_conv(struct rule_call *call, meta_state *out) {
    *out = *first_split(call);
    if ((int)out->axis != 1 || !match(call, 0, 1, out, 1, 1) || !match(call, 1, 1, out, 1, 1)) {
        return false;
    }
    out->axis = GGML_BACKEND_SPLIT_AXIS_0;
    return true;
}

// The operation multiplies columns of both operands and sums over rows: a split of rows gives
// partial sums, a split of either operand's columns splits the result.
static bool rule_out_prod(struct rule_call *call, meta_state *out) {
    for (int axis = 2; axis < 4; ++axis) {
        if (is_on(&call->src[0], axis) || is_on(&call->src[1], axis)) return batch(call, axis, out);
    }
    if (is_on(&call->src[0], 1) || is_on(&call->src[1], 1)) return contraction(call, 1, out);
    const int k = is_on(&call->src[0], 0) ? 0 : 1;
    *out = call->src[k].state;
    out->axis = (enum ggml_backend_meta_split_axis)k;
    return is_mirrored(&call->src[1 - k]);
}

// Whether every device has a share, so that each has at least one element to work on.
static bool has_all(const struct rule_call *call, const struct meta_operand *operand) {
    for (size_t j = 0; j < call->n; ++j) {
        if (meta_share(&operand->state, call->n, j) == 0) return false;
    }
    return true;
}

// src0: a kernel, of which only the extents matter; src1: the image. Each channel gives as many
// columns as the kernel has elements.
static bool rule_im2col(struct rule_call *call, meta_state *out) {
    const bool is_2d = ggml_get_op_params_i32(call->node, 6) != 0;
    const int channels = is_2d ? 2 : 1;
    const int64_t *kernel = call->src[0].tensor->ne;
    if (is_mirrored(&call->src[1]) && is_on(&call->src[0], channels + 1)) {
        return has_all(call, &call->src[0]); // mirrored as the image is
    }
    *out = *first_split(call);
    if ((int)out->axis > channels) return is_mirrored(&call->src[0]);
    if ((int)out->axis != channels || !match(call, 0, channels, out, 1, 1) ||
        !match(call, 1, channels, out, 1, 1)) {
        return false;
    }
    for (size_t i = 0; i < out->n_segments * call->n; ++i) {
        out->ne[i] *= is_2d ? kernel[0] * kernel[1] : kernel[0];
    }
    out->axis = GGML_BACKEND_SPLIT_AXIS_0;
    return true;
}

// Kernels [w, h, in, out], images [w, h, in, n].
static bool rule_conv_2d(struct rule_call *call, meta_state *out) {
    if (is_on(&call->src[0], 2) || is_on(&call->src[1], 2)) return contraction(call, 2, out);
    if (is_on(&call->src[0], 3)) {
        *out = call->src[0].state;
        out->axis = GGML_BACKEND_SPLIT_AXIS_2;
        return is_mirrored(&call->src[1]);
    }
    *out = call->src[1].state;
    return (int)out->axis == 3 && is_mirrored(&call->src[0]);
}

// A plane [w, h, 1, channel] for each channel of the image.
static bool rule_conv_2d_dw(struct rule_call *call, meta_state *out) {
    if (is_on(&call->src[1], 3) && is_mirrored(&call->src[0])) {
        *out = call->src[1].state;
        return true;
    }
    if (!is_on(&call->src[0], 3) && !is_on(&call->src[1], 2)) return false;
    if (!ggml_is_contiguous(call->src[1].tensor)) return false;
    *out = *first_split(call);
    out->axis = GGML_BACKEND_SPLIT_AXIS_2;
    return match(call, 0, 3, out, 1, 1) && match(call, 1, 2, out, 1, 1);
}

// Weight, gradient and moments element by element; the last operand holds the parameters. Moments
// are written: a device that cut its part out of a whole one would leave the rest as it was.
static bool rule_opt_step(struct rule_call *call, meta_state *out) {
    const int parameters = call->node->op == GGML_OP_OPT_STEP_ADAMW ? 4 : 2;
    *out = call->src[0].state;
    if (!meta_is_axis(out) || !is_mirrored(&call->src[parameters])) return false;
    for (int k = 1; k < parameters; ++k) {
        if (k > 1 && is_mirrored(&call->src[k])) return false;
        if (!match(call, k, (int)out->axis, out, 1, 1)) return false;
    }
    return true;
}

// Rules by operation, from rule_list.inl; operations without a row are always a fallback.
typedef bool (*rule_fn)(struct rule_call *call, meta_state *out);

// NULL for operations without a rule, which are computed by the fallback.
static rule_fn find_rule(enum ggml_op op) {
    static const rule_fn rules[GGML_OP_COUNT] = {
#define META_RULE(op, rule) [GGML_OP_##op] = rule_##rule,
#include "meta/rule_list.inl"
    };
    return (int)op >= 0 && op < GGML_OP_COUNT ? rules[op] : NULL;
}

// Partial operands must have been reduced before. O(operands x segments x devices).
bool meta_derive(const struct ggml_tensor *node, struct meta_operand *operands, size_t n,
                 meta_state *out_state) {
    struct rule_call call = {node, operands, n};
    const rule_fn rule = find_rule(node->op);
    *out_state = meta_state_plain(GGML_BACKEND_SPLIT_AXIS_MIRRORED);
    for (int k = 0; k < GGML_MAX_SRC; ++k)
        operands[k].cut_axis = -1;
    if (all_mirrored(&call)) return true;
    for (int k = 0; k < GGML_MAX_SRC; ++k) {
        if (!is_mirrored(&operands[k]) && !meta_is_axis(&operands[k].state)) return false;
    }
    return rule && rule(&call, out_state) &&
           (!meta_is_axis(out_state) || meta_state_fits(out_state, node, n));
}

// Linear operations commute with the sum over devices, so that the all-reduce can be put off, and
// often merged with another one.
bool meta_is_linear(const struct ggml_tensor *node, unsigned partial) {
    switch ((int)node->op) {
    case GGML_OP_NONE:
    case GGML_OP_VIEW:
    case GGML_OP_RESHAPE:
    case GGML_OP_PERMUTE:
    case GGML_OP_TRANSPOSE:
    case GGML_OP_CONT: return true;
    case GGML_OP_MUL:
    case GGML_OP_DIV: return partial == 1;
    case GGML_OP_SCALE: return ggml_get_op_params_f32(node, 1) == 0.0f;
    case GGML_OP_ADD:
    case GGML_OP_SUB:
    case GGML_OP_ADD_ID: return partial == 3;
    default: return false;
    }
}
