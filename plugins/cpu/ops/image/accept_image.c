// SPDX-License-Identifier: MIT
// What pool.c, upscale.c, pad.c, window.c and sequence.c compute.
#include "ggml-shape.h"
#include "ops/image/pool.h"
#include "runtime/kernel_list.h"

// Cost in elements, limited: products of extents from an application can exceed an int64_t.
static int64_t scaled_cost(const struct ggml_tensor *t, double factor) {
    const double cost = (double)ggml_nelements(t) * factor;
    return cost < 1e18 ? (int64_t)cost : INT64_MAX;
}

// --- pooling -------------------------------------------------------------------------------------

// Whether the result's extent is what window, stride and padding give.
bool cpu_accepts_pool_1d(const struct ggml_tensor *node) {
    return ggml_rows_dense(node) && ggml_fits_pool(node, node->src[0], node->op_params, 1);
}

// Each element of the result reads a whole window.
int64_t cpu_cost_pool_1d(const struct ggml_tensor *node) {
    return scaled_cost(node, (double)pool_1d_params(node).k);
}

bool cpu_accepts_pool_2d(const struct ggml_tensor *node) {
    return ggml_rows_dense(node) && ggml_fits_pool(node, node->src[0], node->op_params, 2);
}

int64_t cpu_cost_pool_2d(const struct ggml_tensor *node) {
    const struct pool_2d p = pool_2d_params(node);
    return scaled_cost(node, (double)p.k[0] * p.k[1]);
}

// The gradient's shape is that of the forward node's result, the result's that of its input.
bool cpu_accepts_pool_2d_back(const struct ggml_tensor *node) {
    return ggml_rows_dense(node) && ggml_are_same_shape(node, node->src[1]) &&
           ggml_fits_pool(node->src[0], node, node->op_params, 2);
}

// --- resampling, padding -------------------------------------------------------------------------

bool cpu_accepts_upscale(const struct ggml_tensor *node) {
    return ggml_fits_upscale(node) && ggml_rows_dense(node);
}

// A row per thread where it is converted afterwards.
size_t cpu_work_upscale(const struct ggml_tensor *node, int n_threads) {
    const size_t row = (size_t)node->ne[0] * sizeof(float);
    return node->type == GGML_TYPE_F32 ? 0 : row * (size_t)n_threads;
}

// Every source element is read, and an element of the result costs several operations.
int64_t cpu_cost_upscale(const struct ggml_tensor *node) {
    return ggml_nelements(node->src[0]) + cpu_cost_dst_heavy(node);
}

bool cpu_accepts_pad(const struct ggml_tensor *node) {
    return ggml_fits_pad(node) && ggml_rows_dense(node);
}

bool cpu_accepts_pad_reflect_1d(const struct ggml_tensor *node) {
    return ggml_fits_pad_reflect_1d(node) && ggml_rows_dense(node);
}

bool cpu_accepts_roll(const struct ggml_tensor *node) {
    return ggml_fits_roll(node) && ggml_rows_dense(node);
}

// --- windows -------------------------------------------------------------------------------------

// The copied units are elements of any size: only the result's rows have to be dense.
bool cpu_accepts_win_part(const struct ggml_tensor *node) {
    return ggml_fits_win_part(node) && ggml_rows_dense(node);
}

bool cpu_accepts_win_unpart(const struct ggml_tensor *node) {
    return ggml_fits_win_unpart(node) && ggml_rows_dense(node);
}

bool cpu_accepts_get_rel_pos(const struct ggml_tensor *node) {
    return ggml_fits_get_rel_pos(node) && ggml_rows_dense(node);
}

bool cpu_accepts_add_rel_pos(const struct ggml_tensor *node) {
    return ggml_fits_add_rel_pos(node);
}

// --- sequences -----------------------------------------------------------------------------------

// The result is one row.
bool cpu_accepts_arange(const struct ggml_tensor *node) {
    return ggml_rows_dense(node) && ggml_nrows(node) == 1;
}

// An embedding per timestep; the rows are the result's dimension 1.
bool cpu_accepts_timestep_embedding(const struct ggml_tensor *node) {
    const struct ggml_tensor *timesteps = node->src[0];
    return ggml_rows_dense(node) && node->ne[1] == timesteps->ne[0] && node->ne[2] == 1 &&
           node->ne[3] == 1 && (ggml_nelements(timesteps) > 0 || node->ne[1] == 0);
}
