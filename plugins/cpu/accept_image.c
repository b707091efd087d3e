// SPDX-License-Identifier: MIT
// What kernels/pool.c, upscale.c, pad.c, window.c and sequence.c compute.
#include "kernel_list.h"
#include "kernels/pool.h"
#include "shape.h"

static int64_t scaled_cost(const struct ggml_tensor *t, double factor) {
    const double cost = (double)cpu_nelements(t) * factor;
    return cost < 1e18 ? (int64_t)cost : INT64_MAX;
}

static bool same_outer(const struct ggml_tensor *a, const struct ggml_tensor *b, int first) {
    for (int d = first; d < GGML_MAX_DIMS; ++d) {
        if (a->ne[d] != b->ne[d]) return false;
    }
    return true;
}

// --- pooling
// -----------------------------------------------------------------------------------------

// Windows that start inside the padded source; the padding may have been fractional.
static bool accepts_windows(int64_t out, int64_t in, int k, int s, int p) {
    return k > 0 && s > 0 && p >= 0 && out - 1 <= (in + 2 * ((int64_t)p + 1) - k) / s;
}

static bool accepts_pool(const struct ggml_tensor *out, const struct ggml_tensor *in,
                         const struct pool_2d *p) {
    return (p->op == GGML_OP_POOL_MAX || p->op == GGML_OP_POOL_AVG) && same_outer(out, in, 2) &&
           accepts_windows(out->ne[0], in->ne[0], p->k[0], p->s[0], p->p[0]) &&
           accepts_windows(out->ne[1], in->ne[1], p->k[1], p->s[1], p->p[1]);
}

bool cpu_accepts_pool_1d(const struct ggml_tensor *node) {
    const struct pool_1d p = pool_1d_params(node);
    const struct ggml_tensor *a = node->src[0];
    return (p.op == GGML_OP_POOL_MAX || p.op == GGML_OP_POOL_AVG) && cpu_rows_dense(node) &&
           same_outer(node, a, 1) && accepts_windows(node->ne[0], a->ne[0], p.k, p.s, p.p);
}

int64_t cpu_cost_pool_1d(const struct ggml_tensor *node) {
    return scaled_cost(node, (double)pool_1d_params(node).k);
}

bool cpu_accepts_pool_2d(const struct ggml_tensor *node) {
    const struct pool_2d p = pool_2d_params(node);
    return cpu_rows_dense(node) && accepts_pool(node, node->src[0], &p);
}

int64_t cpu_cost_pool_2d(const struct ggml_tensor *node) {
    const struct pool_2d p = pool_2d_params(node);
    return scaled_cost(node, (double)p.k[0] * p.k[1]);
}

bool cpu_accepts_pool_2d_back(const struct ggml_tensor *node) {
    const struct pool_2d p = pool_2d_params(node);
    return cpu_rows_dense(node) && cpu_same_shape(node, node->src[1]) &&
           accepts_pool(node->src[0], node, &p);
}

// --- resampling, padding
// -----------------------------------------------------------------------------

bool cpu_accepts_upscale(const struct ggml_tensor *node) {
    const uint32_t flags = GGML_SCALE_FLAG_ALIGN_CORNERS | GGML_SCALE_FLAG_ANTIALIAS;
    const uint32_t bits = (uint32_t)ggml_get_op_params_i32(node, 0);
    const uint32_t mode = bits & ~flags;
    if (bits & GGML_SCALE_FLAG_ANTIALIAS && mode != GGML_SCALE_MODE_BILINEAR) return false;
    return mode < GGML_SCALE_MODE_COUNT && node->type == node->src[0]->type &&
           cpu_rows_dense(node) && cpu_nelements(node->src[0]) > 0;
}

// A row per thread where it is converted afterwards.
size_t cpu_work_upscale(const struct ggml_tensor *node, int n_threads) {
    const size_t row = (size_t)node->ne[0] * sizeof(float);
    return node->type == GGML_TYPE_F32 ? 0 : row * (size_t)n_threads;
}

int64_t cpu_cost_upscale(const struct ggml_tensor *node) {
    return cpu_nelements(node->src[0]) + cpu_cost_dst_heavy(node);
}

bool cpu_accepts_pad(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const bool circular = ggml_get_op_params_i32(node, 8) != 0;
    for (uint32_t d = 0; d < GGML_MAX_DIMS; ++d) {
        const int64_t left = ggml_get_op_params_i32(node, 2 * d);
        const int64_t right = ggml_get_op_params_i32(node, 2 * d + 1);
        if (left < 0 || right < 0 || node->ne[d] != a->ne[d] + left + right) return false;
        if (circular && (left > a->ne[d] || right > a->ne[d])) return false;
    }
    return node->type == a->type && cpu_rows_dense(node);
}

bool cpu_accepts_pad_reflect_1d(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const int64_t left = ggml_get_op_params_i32(node, 0);
    const int64_t right = ggml_get_op_params_i32(node, 1);
    return left >= 0 && right >= 0 && left < a->ne[0] && right < a->ne[0] &&
           node->ne[0] == a->ne[0] + left + right && same_outer(node, a, 1) && cpu_rows_dense(node);
}

bool cpu_accepts_roll(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    for (uint32_t d = 0; d < GGML_MAX_DIMS; ++d) {
        const int64_t shift = ggml_get_op_params_i32(node, d);
        if (shift <= -a->ne[d] || shift >= a->ne[d]) return false;
    }
    return node->type == a->type && cpu_same_shape(node, a) && cpu_rows_dense(node);
}

// --- windows
// -----------------------------------------------------------------------------------------

static bool accepts_parts(const struct ggml_tensor *parts, const struct ggml_tensor *whole,
                          int64_t w) {
    if (w <= 0 || whole->ne[3] != 1 || parts->type != whole->type) return false;
    const int64_t npx = (whole->ne[1] + w - 1) / w;
    const int64_t npy = (whole->ne[2] + w - 1) / w;
    return parts->ne[0] == whole->ne[0] && parts->ne[1] == w && parts->ne[2] == w &&
           parts->ne[3] == npx * npy;
}

bool cpu_accepts_win_part(const struct ggml_tensor *node) {
    const int64_t w = ggml_get_op_params_i32(node, 2);
    const struct ggml_tensor *a = node->src[0];
    return accepts_parts(node, a, w) && cpu_rows_dense(node) &&
           ggml_get_op_params_i32(node, 0) == (a->ne[1] + w - 1) / w;
}

bool cpu_accepts_win_unpart(const struct ggml_tensor *node) {
    return accepts_parts(node->src[0], node, ggml_get_op_params_i32(node, 0)) &&
           cpu_rows_dense(node);
}

bool cpu_accepts_get_rel_pos(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const int64_t n = node->ne[1];
    return node->ne[2] == n && node->ne[3] == 1 && a->ne[0] == node->ne[0] &&
           a->ne[1] == 2 * n - 1 && cpu_rows_dense(node);
}

bool cpu_accepts_add_rel_pos(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *pw = node->src[1];
    const struct ggml_tensor *ph = node->src[2];
    return cpu_same_shape(pw, ph) && cpu_same_shape(node, a) && a->ne[0] == pw->ne[0] * pw->ne[0] &&
           a->ne[1] == pw->ne[1] * pw->ne[2] && a->ne[2] == pw->ne[3] && a->ne[3] == 1 &&
           cpu_contiguous(node) && cpu_contiguous(a) && cpu_contiguous(pw) && cpu_contiguous(ph);
}

// --- sequences
// ---------------------------------------------------------------------------------------

bool cpu_accepts_arange(const struct ggml_tensor *node) {
    return cpu_rows_dense(node) && cpu_nrows(node) == 1;
}

bool cpu_accepts_timestep_embedding(const struct ggml_tensor *node) {
    return cpu_rows_dense(node) && node->ne[1] == node->src[0]->ne[0] && node->ne[2] == 1 &&
           node->ne[3] == 1 && ggml_get_op_params_i32(node, 1) > 0;
}
