// SPDX-License-Identifier: MIT
// Pooling, resampling, padding, windows and relative positions.
#include "op/op_rules.h"

// --- pooling -------------------------------------------------------------------------------------

// Result extent; the padding may be fractional. Negative: impossible.
static int64_t pooled_extent(int64_t in, int kernel, int stride, double pad) {
    const double extent = ((double)in + 2.0 * pad - kernel) / stride + 1.0;
    return extent > -1.0 && extent < 0x1p53 ? (int64_t)extent : -1;
}

// The operation exists, and n windows and strides are positive; k and s are where they lie in
// the parameters.
static bool check_pool(struct op_call *call, int n, int k, int s) {
    if (!op_need_range(call, "op", call->params[0], 0, GGML_OP_POOL_COUNT - 1)) return false;
    for (int i = 0; i < n; ++i) {
        if (!op_need_range(call, "a window", call->params[k + i], 1, INT32_MAX)) return false;
        if (!op_need_range(call, "a stride", call->params[s + i], 1, INT32_MAX)) return false;
    }
    return true;
}

// Pools rows: [(ne0 + 2 p0 - k0) / s0 + 1, ne1, ne2, ne3]; remaining elements at the end are left
// out.
bool op_shape_pool_1d(struct op_call *call) {
    const int64_t *ne = call->src[0]->ne;
    const int32_t *p = call->params;
    if (!check_pool(call, 1, 1, 2)) return false;
    if (!op_need_range(call, "p0", p[3], 0, INT32_MAX)) return false;
    const int64_t out = pooled_extent(ne[0], p[1], p[2], p[3]);
    if (out < 0) return op_fail(call, "the window k0 = %d is larger than the padded source", p[1]);
    return op_set_ne(call, out, ne[1], ne[2], ne[3]);
}

struct ggml_tensor *ggml_pool_1d(struct ggml_context *ctx, struct ggml_tensor *a,
                                 enum ggml_op_pool op, int k0, int s0, int p0) {
    return op_build(
        &(struct op_call){OP(ctx, POOL_1D), .src = {a}, .params = {(int32_t)op, k0, s0, p0}});
}

// The fractional paddings come in nothing but the builder's arguments: it has put the extents into
// ne.
bool op_shape_pool_2d(struct op_call *call) {
    if (!check_pool(call, 2, 1, 3)) return false;
    if (call->ne[0] < 0 || call->ne[1] < 0) {
        return op_fail(call, "the window %d x %d does not fit into the padded source",
                       call->params[1], call->params[2]);
    }
    return true;
}

// Source 0 is the gradient of the pooled tensor and has its extents; the result has those of source
// 1, the tensor that was pooled.
bool op_shape_pool_2d_back(struct op_call *call) {
    return op_shape_pool_2d(call) &&
           op_need_shape(call, 0, call->ne[0], call->ne[1], call->ne[2], call->ne[3]) &&
           op_set_ne_as(call, call->src[1]);
}

// Sets the extents of the result where the parameters make any; otherwise the shape rule refuses
// the node with its message.
static struct ggml_tensor *build_pool_2d(struct op_call *call, const struct ggml_tensor *input,
                                         float p0, float p1) {
    const int32_t *p = call->params;
    const bool padded = p0 >= 0.0f && p1 >= 0.0f && p0 < 0x1p31f && p1 < 0x1p31f;
    op_set_ne(call, -1, -1, 1, 1);
    if (padded && input != NULL && p[3] > 0 && p[4] > 0) {
        call->params[5] = (int32_t)p0;
        call->params[6] = (int32_t)p1;
        op_set_ne(call, pooled_extent(input->ne[0], p[1], p[3], p0),
                  pooled_extent(input->ne[1], p[2], p[4], p1), input->ne[2], input->ne[3]);
    }
    return op_build(call);
}

struct ggml_tensor *ggml_pool_2d(struct ggml_context *ctx, struct ggml_tensor *a,
                                 enum ggml_op_pool op, int k0, int k1, int s0, int s1, float p0,
                                 float p1) {
    struct op_call call = {OP(ctx, POOL_2D), .src = {a}, .params = {(int32_t)op, k0, k1, s0, s1}};
    return build_pool_2d(&call, a, p0, p1);
}

struct ggml_tensor *ggml_pool_2d_back(struct ggml_context *ctx, struct ggml_tensor *a,
                                      struct ggml_tensor *af, enum ggml_op_pool op, int k0, int k1,
                                      int s0, int s1, float p0, float p1) {
    struct op_call call = {OP(ctx, POOL_2D_BACK), .src = {a, af},
                           .params = {(int32_t)op, k0, k1, s0, s1}};
    return build_pool_2d(&call, af, p0, p1);
}

// --- resampling ----------------------------------------------------------------------------------

// The mode exists, antialiasing is bilinear, and nothing isn't scaled to something.
bool op_shape_upscale(struct op_call *call) {
    const uint32_t bits = (uint32_t)call->params[0];
    const uint32_t flags = GGML_SCALE_FLAG_ALIGN_CORNERS | GGML_SCALE_FLAG_ANTIALIAS;
    const uint32_t mode = bits & ~flags;
    if (mode >= GGML_SCALE_MODE_COUNT) return op_fail(call, "there is no mode 0x%x", bits);
    if ((bits & GGML_SCALE_FLAG_ANTIALIAS) != 0 && mode != GGML_SCALE_MODE_BILINEAR) {
        return op_fail(call, "antialiasing needs the bilinear mode");
    }
    for (int i = 0; i < GGML_MAX_DIMS; ++i) {
        if (!op_need_range(call, "an extent", call->ne[i], 0, INT64_MAX)) return false;
        if (call->src[0]->ne[i] == 0 && !op_is_empty(call->ne))
            return op_fail(call, "src0 ne%d = 0, there is nothing to scale", i);
    }
    return true;
}

struct ggml_tensor *ggml_interpolate(struct ggml_context *ctx, struct ggml_tensor *a, int64_t ne0,
                                     int64_t ne1, int64_t ne2, int64_t ne3, uint32_t mode) {
    return op_build(&(struct op_call){OP(ctx, UPSCALE), .src = {a}, .ne = {ne0, ne1, ne2, ne3},
                                      .params = {(int32_t)mode}});
}

// The older builder with int extents and no flags.
struct ggml_tensor *ggml_upscale_ext(struct ggml_context *ctx, struct ggml_tensor *a, int ne0,
                                     int ne1, int ne2, int ne3, enum ggml_scale_mode mode) {
    return op_build(&(struct op_call){OP(ctx, UPSCALE), .src = {a}, .ne = {ne0, ne1, ne2, ne3},
                                      .params = {(int32_t)mode}});
}

// Scales both dimensions of images by a whole factor; no other form refuses a factor of 1.
struct ggml_tensor *ggml_upscale(struct ggml_context *ctx, struct ggml_tensor *a, int scale_factor,
                                 enum ggml_scale_mode mode) {
    struct op_call call = {OP(ctx, UPSCALE), .src = {a}, .params = {(int32_t)mode}};
    if (!op_need_range(&call, "scale_factor", scale_factor, 2, INT32_MAX)) return call.error;
    if (a != NULL) {
        op_set_ne(&call, op_mul(a->ne[0], scale_factor), op_mul(a->ne[1], scale_factor), a->ne[2],
                  a->ne[3]);
    }
    return op_build(&call);
}

// --- padding -------------------------------------------------------------------------------------

// A circular padding is at most the source's extent; negative ones cut off.
bool op_shape_pad(struct op_call *call) {
    const int64_t *ne = call->src[0]->ne;
    const int32_t *p = call->params;
    const bool circular = p[8] != 0;
    for (int i = 0; i < GGML_MAX_DIMS; ++i) {
        // What a circular form repeats is there once. A negative padding cuts off.
        const int64_t limit = circular ? ne[i] : INT32_MAX;
        if (!op_need_range(call, "a padding", p[2 * i], INT32_MIN, limit)) return false;
        if (!op_need_range(call, "a padding", p[2 * i + 1], INT32_MIN, limit)) return false;
        call->ne[i] = op_add(ne[i], (int64_t)p[2 * i] + p[2 * i + 1]);
        if (!op_need_range(call, "an extent", call->ne[i], 0, INT64_MAX)) return false;
    }
    return true;
}

struct ggml_tensor *ggml_pad(struct ggml_context *ctx, struct ggml_tensor *a, int p0, int p1,
                             int p2, int p3) {
    return op_build(
        &(struct op_call){OP(ctx, PAD), .src = {a}, .params = {0, p0, 0, p1, 0, p2, 0, p3, 0}});
}

struct ggml_tensor *ggml_pad_circular(struct ggml_context *ctx, struct ggml_tensor *a, int p0,
                                      int p1, int p2, int p3) {
    return op_build(
        &(struct op_call){OP(ctx, PAD), .src = {a}, .params = {0, p0, 0, p1, 0, p2, 0, p3, 1}});
}

struct ggml_tensor *ggml_pad_ext(struct ggml_context *ctx, struct ggml_tensor *a, int lp0, int rp0,
                                 int lp1, int rp1, int lp2, int rp2, int lp3, int rp3) {
    return op_build(&(struct op_call){OP(ctx, PAD), .src = {a},
                                      .params = {lp0, rp0, lp1, rp1, lp2, rp2, lp3, rp3, 0}});
}

struct ggml_tensor *ggml_pad_ext_circular(struct ggml_context *ctx, struct ggml_tensor *a, int lp0,
                                          int rp0, int lp1, int rp1, int lp2, int rp2, int lp3,
                                          int rp3) {
    return op_build(&(struct op_call){OP(ctx, PAD), .src = {a},
                                      .params = {lp0, rp0, lp1, rp1, lp2, rp2, lp3, rp3, 1}});
}

// Reflections don't repeat the border, so that each is shorter than the row.
bool op_shape_pad_reflect_1d(struct op_call *call) {
    const int64_t *ne = call->src[0]->ne;
    const int32_t *p = call->params;
    return op_need_range(call, "p0", p[0], 0, ne[0] - 1) &&
           op_need_range(call, "p1", p[1], 0, ne[0] - 1) && op_need_contiguous(call, 0) &&
           op_set_ne(call, op_add(ne[0], (int64_t)p[0] + p[1]), ne[1], ne[2], ne[3]);
}

struct ggml_tensor *ggml_pad_reflect_1d(struct ggml_context *ctx, struct ggml_tensor *a, int p0,
                                        int p1) {
    return op_build(&(struct op_call){OP(ctx, PAD_REFLECT_1D), .src = {a}, .params = {p0, p1}});
}

// --- windows -------------------------------------------------------------------------------------

// ceil(extent / w) without overflow.
static int64_t windows(int64_t extent, int64_t w) {
    return extent / w + (extent % w != 0);
}

// Windows of w x w cover dimensions 1 and 2, the last ones partly.
bool op_shape_win_part(struct op_call *call) {
    const int64_t *ne = call->src[0]->ne;
    const int32_t w = call->params[2];
    if (!op_need_range(call, "w", w, 1, INT32_MAX) || !op_need_dims(call, 0, 3)) return false;
    const int64_t npx = windows(ne[1], w);
    const int64_t npy = windows(ne[2], w);
    if (!op_need_range(call, "windows along ne1", npx, 0, INT32_MAX)) return false;
    if (!op_need_range(call, "windows along ne2", npy, 0, INT32_MAX)) return false;
    call->params[0] = (int32_t)npx;
    call->params[1] = (int32_t)npy;
    return op_set_ne(call, ne[0], w, w, op_mul(npx, npy));
}

// Splits images [C, W, H] into windows for local attention (as in Segment Anything): [C, w, w,
// windows], the last ones padded with zeros. Parameters 0 and 1, the windows along each dimension,
// are set by the shape rule.
struct ggml_tensor *ggml_win_part(struct ggml_context *ctx, struct ggml_tensor *a, int w) {
    return op_build(&(struct op_call){OP(ctx, WIN_PART), .src = {a}, .params = {0, 0, w}});
}

// The source has enough windows of w x w for the result's extents.
bool op_shape_win_unpart(struct op_call *call) {
    const int32_t w = call->params[0];
    const int64_t *ne = call->ne;
    if (!op_need_range(call, "w", w, 1, INT32_MAX)) return false;
    if (!op_need_range(call, "w0", ne[1], 0, INT32_MAX)) return false;
    if (!op_need_range(call, "h0", ne[2], 0, INT32_MAX)) return false;
    const int64_t *parts = call->src[0]->ne;
    const int64_t needed = op_mul(windows(ne[1], w), windows(ne[2], w));
    return op_need_shape(call, 0, parts[0], w, w, parts[3]) &&
           op_need_range(call, "src0 ne3, the windows", parts[3], needed, INT64_MAX) &&
           op_set_ne(call, parts[0], ne[1], ne[2], 1);
}

// The inverse of WIN_PART: windows beyond the extents are cut off.
struct ggml_tensor *ggml_win_unpart(struct ggml_context *ctx, struct ggml_tensor *a, int w0, int h0,
                                    int w) {
    return op_build(
        &(struct op_call){OP(ctx, WIN_UNPART), .src = {a}, .ne = {0, w0, h0, 1}, .params = {w}});
}

// The source has a row for each of the 2 k - 1 distances.
bool op_shape_get_rel_pos(struct op_call *call) {
    const int64_t n = call->ne[1];
    if (call->ne[2] != n) {
        return op_fail(call, "qh = %lld and kh = %lld must be equal", (long long)call->ne[2],
                       (long long)n);
    }
    return op_need_range(call, "kh", n, 1, INT32_MAX) &&
           op_need_ne(call, 0, 1, 2 * n - 1, "2 kh - 1 distances") &&
           op_set_ne(call, call->src[0]->ne[0], n, n, 1);
}

struct ggml_tensor *ggml_get_rel_pos(struct ggml_context *ctx, struct ggml_tensor *a, int qh,
                                     int kh) {
    return op_build(&(struct op_call){OP(ctx, GET_REL_POS), .src = {a}, .ne = {0, kh, qh, 1}});
}

// Scores [W H, queries, B] get a bias by column distance and one by row distance: pw and ph, [W, W,
// queries, B], are repeated over the other dimension (decomposed relative positions).
bool op_shape_add_rel_pos(struct op_call *call) {
    const int64_t *pw = call->src[1]->ne;
    return op_need_same_shape(call, 2, 1) && op_need_contiguous(call, 0) &&
           op_need_contiguous(call, 1) && op_need_contiguous(call, 2) &&
           op_need_shape(call, 0, op_mul(pw[0], pw[0]), op_mul(pw[1], pw[2]), pw[3], 1) &&
           op_set_ne_as(call, call->src[0]);
}

struct ggml_tensor *ggml_add_rel_pos(struct ggml_context *ctx, struct ggml_tensor *a,
                                     struct ggml_tensor *pw, struct ggml_tensor *ph) {
    return op_build(&(struct op_call){OP(ctx, ADD_REL_POS), .src = {a, pw, ph}});
}

struct ggml_tensor *ggml_add_rel_pos_inplace(struct ggml_context *ctx, struct ggml_tensor *a,
                                             struct ggml_tensor *pw, struct ggml_tensor *ph) {
    return op_build_inplace(
        &(struct op_call){OP(ctx, ADD_REL_POS), .src = {a, pw, ph}, .params = {1}});
}
