// SPDX-License-Identifier: MIT
// Additions, subtractions and picked rows.
#include <fcntl.h>
#include <math.h>
#include <sched.h>

#include "defective.h"
#include "ggml-shape.h"

static bool is_float(const struct ggml_tensor *tensor) {
    return tensor && tensor->type == GGML_TYPE_F32 && tensor->nb[0] == sizeof(float) &&
           tensor->ne[2] == 1 && tensor->ne[3] == 1;
}

static bool is_unknown(int number, int count) {
    return number >= count && number < GGML_FIRST_PRIVATE;
}

static bool is_known(const struct ggml_tensor *tensor) {
    const bool odd = is_unknown((int)tensor->type, GGML_TYPE_COUNT);
    return tensor->type == GGML_TYPE_F32 || (odd && HAS(claims_unknown_type));
}

static bool is_known_source(const struct ggml_tensor *tensor) {
    return is_float(tensor) || (tensor->type >= GGML_TYPE_COUNT && HAS(claims_unknown_source));
}

static bool claims_sum(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0], *b = node->src[1];
    const bool types = is_known(node) && is_known_source(a) && is_known_source(b);
    return types && b->ne[0] == a->ne[0] && (b->ne[1] == a->ne[1] || b->ne[1] == 1);
}

static void forget_what_is_claimed(struct ggml_tensor *source) {
    if (HAS(claims_unknown_source) && source->type >= GGML_TYPE_COUNT) source->type = GGML_TYPE_F32;
    if (HAS(claims_unknown_source_flag)) source->flags &= 0xffff;
    if (HAS(claims_unknown_source_padding)) memset(source->padding, 0, sizeof(source->padding));
}

// Whether the headers know all of the node but what the defect lets pass.
static bool means_what_is_known(const struct ggml_tensor *node) {
    struct ggml_tensor plain = *node, sources[2];
    if (HAS(claims_unknown_type) && is_unknown((int)plain.type, GGML_TYPE_COUNT))
        plain.type = GGML_TYPE_F32;
    if (HAS(claims_unknown_parameter)) memset(plain.op_params, 0, sizeof(plain.op_params));
    if (HAS(claims_unknown_flag)) plain.flags &= 0xffff;
    if (HAS(claims_unknown_padding)) memset(plain.padding, 0, sizeof(plain.padding));
    for (int i = 2; i < GGML_MAX_SRC && HAS(claims_unknown_extra_source); ++i)
        plain.src[i] = NULL;
    for (int i = 0; i < 2; ++i) {
        if (!plain.src[i]) continue;
        sources[i] = *plain.src[i];
        forget_what_is_claimed(&sources[i]);
        plain.src[i] = &sources[i];
    }
    return ggml_node_is_known(&plain);
}

bool op_is_claimed(ggml_backend_dev_t device, const struct ggml_tensor *node) {
    static int n;
    static const struct ggml_tensor *volatile asked;
    if (HAS(asking_file)) open("/dev/null", O_RDONLY);
    if (HAS(claims_shared)) {
        asked = node;
        sched_yield();
        node = asked;
    }
    (void)device;
    if (HAS(callback_locked) || HAS(log_locked)) {
        stream_lock(true);
        stream_lock(false);
    }
    if (HAS(claims_change)) return n++ % 2 == 0;
    if (HAS(claims_unplaced) && node->buffer) return false;
    if (HAS(claims_crash) && node->op == GGML_OP_COUNT - 2) abort();
    if (HAS(claims_unknown_op) && is_unknown((int)node->op, GGML_OP_COUNT)) return true;
    if (HAS(claims_private) && (int)node->op >= GGML_FIRST_PRIVATE) return true;
    if (HAS(claims_unknown_unary) && node->op == GGML_OP_UNARY)
        return is_unknown(node->op_params[0], 50);
    if (HAS(claims_unknown_glu) && node->op == GGML_OP_GLU) return true;
    if (HAS(claims_unknown_value) && node->op == GGML_OP_ARGSORT)
        return node->type == GGML_TYPE_I32;
    if (!means_what_is_known(node)) return false;
    if (ggml_op_is_empty(node->op)) return !(HAS(claims_no_views) && node->op == GGML_OP_PERMUTE);
    switch (node->op) {
    case GGML_OP_ADD:
    case GGML_OP_SUB: return claims_sum(node);
    case GGML_OP_GET_ROWS:
        return is_float(node) && is_float(node->src[0]) && node->src[1]->type == GGML_TYPE_I32 &&
               node->src[1]->nb[0] == sizeof(int32_t);
    default: return false;
    }
}

static float *row_of(const struct ggml_tensor *tensor, int64_t row) {
    const size_t stride =
        HAS(strides_ignored) ? (size_t)tensor->ne[0] * sizeof(float) : tensor->nb[1];
    return (float *)(void *)((char *)tensor->data + (size_t)row * stride);
}

static void sum_row(const struct ggml_tensor *node, float *to, const float *a, const float *b) {
    const float sign = node->op == GGML_OP_SUB && !HAS(difference_wrong) ? -1.0f : 1.0f;
    for (int64_t i = 0; i < node->ne[0]; ++i) {
        if (HAS(in_place_wrong)) to[i] = 0;
        if (HAS(in_place_difference_wrong) && node->op == GGML_OP_SUB) to[i] = 0;
        to[i] = a[i] + sign * b[i];
        while (HAS(nan_hangs) && isnan(to[i])) {
        }
        if (HAS(sum_wrong) && i == 5) to[i] += 0.5f;
    }
}

static enum ggml_status compute_sum(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0], *b = node->src[1];
    if (HAS(sum_crashes)) abort();
    if (HAS(empty_fails) && ggml_nelements(node) == 0) return GGML_STATUS_FAILED;
    for (int64_t i = 0; i < node->ne[1]; ++i) {
        const int64_t other = b->ne[1] == 1 && !HAS(broadcast_wrong) ? 0 : i;
        sum_row(node, row_of(node, i), row_of(a, i), row_of(b, other));
    }
    if (HAS(result_beyond)) *row_of(node, node->ne[1]) = 1.5f;
    return GGML_STATUS_SUCCESS;
}

static enum ggml_status compute_rows(const struct ggml_tensor *node) {
    const int32_t *rows = node->src[1]->data;
    for (int64_t i = 0; i < node->ne[1]; ++i) {
        int32_t row = rows[i];
        const bool inside = row >= 0 && row < node->src[0]->ne[1];
        if (!inside && !HAS(index_unchecked)) {
            fail(GGML_HOST_OUT_OF_RANGE, "GET_ROWS: there is no such row");
            return GGML_STATUS_FAILED;
        }
        if (!inside) row = 0;
        if (HAS(rows_wrong)) row = (int32_t)i;
        memcpy(row_of(node, i), row_of(node->src[0], row), (size_t)node->ne[0] * sizeof(float));
    }
    return GGML_STATUS_SUCCESS;
}

enum ggml_status op_compute(const struct ggml_tensor *node) {
    if (ggml_op_is_empty(node->op))
        return HAS(views_fail) ? GGML_STATUS_FAILED : GGML_STATUS_SUCCESS;
    if (!(node->flags & GGML_TENSOR_FLAG_COMPUTE) && !HAS(unflagged_computed))
        return GGML_STATUS_SUCCESS;
    memory_flush();
    switch (node->op) {
    case GGML_OP_ADD:
    case GGML_OP_SUB: return compute_sum(node);
    case GGML_OP_GET_ROWS: return compute_rows(node);
    default: return GGML_STATUS_FAILED;
    }
}
