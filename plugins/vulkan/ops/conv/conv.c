// SPDX-License-Identifier: MIT
// Convolutions and their patches.
#include "gpu/base/shape.h"
#include "ops/tile.h"
#include "plan/kernel.h"

enum {
    GROUP = 64,
    MAX_DIMS = 3,
};

// Geometry over up to three dimensions; index 0 is the width, unused ones have extent 1.
struct conv {
    int n_dims;
    int64_t kernel[MAX_DIMS], in[MAX_DIMS], out[MAX_DIMS];
    int32_t stride[MAX_DIMS], padding[MAX_DIMS], dilation[MAX_DIMS];
    int64_t channels, batch, channels_out;
    size_t nb_channel, nb_batch; // of the image
};

// Extents and parameters along n dimensions; in_first, out_first: dims of the image, of the
// windows.
static struct conv conv_of_dims(const struct ggml_tensor *node, int n,
                                const struct ggml_tensor *kernel, const struct ggml_tensor *image,
                                const struct ggml_tensor *windows, int first_out) {
    struct conv c = {.n_dims = n,
                     .kernel = {1, 1, 1},
                     .in = {1, 1, 1},
                     .out = {1, 1, 1},
                     .stride = {1, 1, 1},
                     .dilation = {1, 1, 1}};
    const int params = n == 3 ? 3 : 2;
    for (int d = 0; d < n; ++d) {
        c.kernel[d] = kernel->ne[d];
        c.in[d] = image->ne[d];
        c.out[d] = windows->ne[first_out + d];
        c.stride[d] = node->op_params[d];
        c.padding[d] = node->op_params[params + d];
        c.dilation[d] = node->op_params[2 * params + d];
    }
    c.channels = image->ne[n];
    c.nb_channel = image->nb[n];
    if (n < 3) {
        c.batch = image->ne[n + 1];
        c.nb_batch = image->nb[n + 1];
    }
    return c;
}

// Channels and batch share dim 3; `channels` > 0.
static struct conv conv_of_3d(const struct ggml_tensor *node, int64_t channels, int first_out) {
    const struct ggml_tensor *image = node->src[1];
    struct conv c = conv_of_dims(node, 3, node->src[0], image, node, first_out);
    c.channels = channels;
    c.nb_channel = image->nb[3];
    c.batch = image->ne[3] / channels;
    c.nb_batch = image->nb[3] * (size_t)channels;
    return c;
}

// Elements of a window over all channels: the length of a row of im2col.
static int64_t patch_size(const struct conv *c) {
    return c->kernel[0] * c->kernel[1] * c->kernel[2] * c->channels;
}

// Windows per image.
static int64_t pixels(const struct conv *c) {
    return c->out[0] * c->out[1] * c->out[2];
}

// Windows may reach beyond the padded image, or the padding cut the image off: what lies outside is
// 0. Windows without elements yield 0.
static bool has_windows(const struct conv *c) {
    for (int d = 0; d < MAX_DIMS; ++d) {
        if (c->stride[d] < 1 || c->dilation[d] < 0 || c->kernel[d] < 0 || c->kernel[d] > INT32_MAX)
            return false;
        const int64_t reach = c->dilation[d] * (c->kernel[d] - 1) + 1;
        const int64_t room = c->in[d] + 2 * (int64_t)c->padding[d] - reach;
        if (reach > INT32_MAX || room > INT32_MAX || c->out[d] != room / c->stride[d] + 1)
            return false;
    }
    return true;
}

// Puts the geometry into numbers, in the order in which conv.glsl reads them.
static void add_geometry(struct gvk_dispatch *d, const struct conv *c) {
    for (int i = 0; i < MAX_DIMS; ++i) {
        d->numbers[i] = (uint32_t)c->kernel[i];
        d->numbers[3 + i] = (uint32_t)c->in[i];
        d->numbers[6 + i] = (uint32_t)c->out[i];
    }
    d->numbers[9] = (uint32_t)c->channels;
    d->numbers[10] = (uint32_t)c->batch;
    d->numbers[11] = (uint32_t)c->channels_out;
    d->numbers[12] = (uint32_t)c->nb_channel;
    d->numbers[13] = (uint32_t)c->nb_batch;
}

// A dispatch whose shader includes conv.glsl, with an invocation per element of the result.
static struct gvk_dispatch *conv_dispatch(struct gvk_plan *plan, enum gvk_shader shader,
                                          const struct ggml_tensor *node, const struct conv *c) {
    struct gvk_dispatch *d = gvk_dispatch_new(plan, shader, node, 2, GROUP);
    if (!d) return NULL;
    gvk_dispatch_spec(d, node->type);
    gvk_dispatch_spec(d, node->src[1]->type);
    gvk_dispatch_spec(d, (uint32_t)c->n_dims);
    gvk_dispatch_spec(d, node->src[0]->type);
    add_geometry(d, c);
    gvk_dispatch_groups(plan, d, gpu_groups_of(gpu_nelements(node), GROUP));
    return d;
}

// --- patches -------------------------------------------------------------------------------------

// The geometry of im2col over one, two or three dimensions; windows are dimensions 1 to n of the
// result.
static struct conv conv_of_im2col(const struct ggml_tensor *node) {
    if (node->op == GGML_OP_IM2COL) {
        const int n = node->op_params[6] ? 2 : 1;
        return conv_of_dims(node, n, node->src[0], node->src[1], node, 1);
    }
    struct conv c = conv_of_3d(node, node->op_params[9], 1);
    c.out[2] = c.batch > 0 ? node->ne[3] / c.batch : 0;
    return c;
}

// Whether the result has a row for each window and as many columns as a window has elements.
static bool accepts_patches(const struct ggml_tensor *node) {
    const struct conv c = conv_of_im2col(node);
    return has_windows(&c) && node->ne[0] == patch_size(&c) &&
           (int64_t)gpu_nrows(node) == pixels(&c) * c.batch;
}

// src0 gives the kernel's extents alone; its elements are not read.
bool gvk_accepts_im2col(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    const int channel = node->op_params[6] ? 2 : 1;
    const struct ggml_tensor *image = node->src[1];
    return node->src[0]->ne[channel] == image->ne[channel] && (channel == 2 || image->ne[3] == 1) &&
           accepts_patches(node);
}

// Channels are a parameter here, as dimension 3 holds channels and batch.
bool gvk_accepts_im2col_3d(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    const int64_t channels = node->op_params[9];
    return channels >= 1 && accepts_patches(node);
}

void gvk_encode_im2col(struct gvk_plan *plan, const struct ggml_tensor *node) {
    const struct conv c = conv_of_im2col(node);
    struct gvk_dispatch *d = conv_dispatch(plan, GVK_SHADER_im2col, node, &c);
    if (d) d->operands[1].tensor = node->src[1]; // the filters are not read
}

// The node is the image, src0 the gradient of its patches.
static struct conv conv_of_im2col_back(const struct ggml_tensor *node) {
    const int n = node->op_params[6] ? 2 : 1;
    return conv_of_dims(node, n, node->src[1], node, node->src[0], 1);
}

// The gradient of im2col has the shape that its forward node had as a result.
bool gvk_accepts_im2col_back(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    const int channel = node->op_params[6] ? 2 : 1;
    const struct ggml_tensor *grad = node->src[0];
    const struct conv c = conv_of_im2col_back(node);
    return has_windows(&c) && node->src[1]->ne[channel] == node->ne[channel] &&
           (channel == 2 || (node->ne[3] == 1 && grad->ne[3] == 1)) &&
           grad->ne[0] == patch_size(&c) && grad->ne[channel + 1] == c.batch;
}

void gvk_encode_im2col_back(struct gvk_plan *plan, const struct ggml_tensor *node) {
    const struct conv c = conv_of_im2col_back(node);
    struct gvk_dispatch *d = conv_dispatch(plan, GVK_SHADER_im2col_back, node, &c);
    if (d) d->n_operands = 2; // the filters are not read
}

// All parameters have to agree with the extents, since the shader computes indices from them.
bool gvk_accepts_col2im_1d(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    const struct ggml_tensor *a = node->src[0];
    const int64_t channels = node->op_params[1];
    return node->op_params[0] > 0 && channels > 0 && node->op_params[2] >= 0 &&
           node->type == a->type && node->ne[1] == channels && a->ne[0] % channels == 0 &&
           a->ne[2] == 1 && a->ne[3] == 1 && node->ne[2] == 1 && node->ne[3] == 1;
}

// One invocation per element of the result.
void gvk_encode_col2im_1d(struct gvk_plan *plan, const struct ggml_tensor *node) {
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_col2im_1d, node, 1, GROUP);
    if (!d) return;
    gvk_dispatch_spec(d, node->type);
    gvk_dispatch_groups(plan, d, gpu_groups_of(gpu_nelements(node), GROUP));
}

// --- direct --------------------------------------------------------------------------------------

// The geometry of conv_2d and conv_3d; windows begin at dimension 0 of the result.
static struct conv conv_of_direct(const struct ggml_tensor *node) {
    if (node->op == GGML_OP_CONV_3D) {
        struct conv c = conv_of_3d(node, node->op_params[9], 0);
        c.channels_out = node->op_params[11];
        return c;
    }
    struct conv c = conv_of_dims(node, 2, node->src[0], node->src[1], node, 0);
    c.channels_out = node->ne[2];
    return c;
}

// What an invocation of conv_direct.comp computes: drivers on the CPU have room for many sums and
// slow loads.
struct tile {
    uint32_t pixels, filters;
};

static struct tile choose_tile(const struct gvk_features *features, const struct conv *c) {
    const uint64_t windows = (uint64_t)(pixels(c) * c->batch);
    if (!features->cpu || windows < 4 * GROUP) return (struct tile){1, 8};
    return (struct tile){windows < 16 * GROUP ? 4 : 8, c->channels_out > 8 ? 16 : 8};
}

static uint64_t direct_groups(const struct conv *c, struct tile tile) {
    return gpu_groups_of((uint64_t)(pixels(c) * c->batch), (uint64_t)GROUP * tile.pixels);
}

static bool accepts_direct(const struct gvk_features *features, const struct conv *c) {
    const struct tile tile = choose_tile(features, c);
    return has_windows(c) && direct_groups(c, tile) <= features->max_groups[0] &&
           gpu_groups_of((uint64_t)c->channels_out, tile.filters) <= features->max_groups[1];
}

// Filters have to match the channels; padding, stride and dilation are general.
bool gvk_accepts_conv_2d(const struct gvk_features *features, const struct ggml_tensor *node) {
    const struct conv c = conv_of_direct(node);
    const struct ggml_tensor *kernel = node->src[0];
    return accepts_direct(features, &c) && kernel->ne[2] == c.channels &&
           kernel->ne[3] == c.channels_out && node->ne[3] == c.batch &&
           node->type == node->src[1]->type;
}

// A 3-D image has channels and batch in one dimension: the parameters say how many channels there
// are.
bool gvk_accepts_conv_3d(const struct gvk_features *features, const struct ggml_tensor *node) {
    const int64_t channels = node->op_params[9];
    if (channels < 1 || node->op_params[11] < 1 || node->src[1]->ne[3] % channels != 0)
        return false;
    const struct conv c = conv_of_direct(node);
    return accepts_direct(features, &c) && node->src[0]->ne[3] == channels * c.channels_out &&
           node->ne[3] == c.channels_out * c.batch;
}

// Whether conv_tile.comp pays: with shared memory, and rows, columns and steps that fill its tiles.
static bool suits_tile(const struct gvk_features *features, const struct conv *c) {
    return gvk_has_tiles(features) && c->channels_out >= 16 && patch_size(c) >= 16 &&
           pixels(c) * c->batch >= 16;
}

// As a matrix product of filters and windows, whose patches are never stored: each tile computes
// the addresses of its elements.
static void encode_tile(struct gvk_plan *plan, const struct ggml_tensor *node,
                        const struct conv *c) {
    const uint64_t windows = (uint64_t)(pixels(c) * c->batch);
    const uint64_t filters = (uint64_t)c->channels_out;
    const struct gvk_tile tile = gvk_tile_for(filters, windows, 1);
    struct gvk_dispatch *d = conv_dispatch(plan, GVK_SHADER_conv_tile, node, c);
    if (!d) return;
    d->specs[0] = tile.group;
    gvk_dispatch_spec(d, tile.span);
    gvk_dispatch_groups(plan, d,
                        gpu_groups_of(windows, tile.columns) * gpu_groups_of(filters, tile.rows));
}

// Tiled as a matrix product where there are enough windows and filters to fill tiles, otherwise a
// few pixels and filters per invocation.
void gvk_encode_conv_direct(struct gvk_plan *plan, const struct ggml_tensor *node) {
    const struct conv c = conv_of_direct(node);
    if (suits_tile(gvk_plan_features(plan), &c)) {
        encode_tile(plan, node, &c);
        return;
    }
    const struct tile tile = choose_tile(gvk_plan_features(plan), &c);
    struct gvk_dispatch *d = conv_dispatch(plan, GVK_SHADER_conv_direct, node, &c);
    if (!d) return;
    gvk_dispatch_spec(d, tile.pixels);
    gvk_dispatch_spec(d, tile.filters);
    d->groups[0] = (uint32_t)direct_groups(&c, tile);
    d->groups[1] = (uint32_t)gpu_groups_of((uint64_t)c.channels_out, tile.filters);
    d->groups[2] = 1;
}

// One filter per channel.
bool gvk_accepts_conv_2d_dw(const struct gvk_features *features, const struct ggml_tensor *node) {
    (void)features;
    const struct conv c = conv_of_direct(node);
    const struct ggml_tensor *kernel = node->src[0];
    return has_windows(&c) && kernel->ne[2] == 1 && kernel->ne[3] == c.channels &&
           node->ne[2] == c.channels && node->ne[3] == c.batch;
}

void gvk_encode_conv_2d_dw(struct gvk_plan *plan, const struct ggml_tensor *node) {
    const struct conv c = conv_of_direct(node);
    conv_dispatch(plan, GVK_SHADER_conv_2d_dw, node, &c);
}

// --- transposed ----------------------------------------------------------------------------------

// Along d the result has the extent that the stride and the kernel give.
static bool fits_transposed(const struct ggml_tensor *node, int d) {
    const int64_t in = node->src[1]->ne[d];
    const int64_t size = node->src[0]->ne[d];
    return size >= 1 &&
           ((in == 0 && node->ne[d] == 0) || node->ne[d] == (in - 1) * node->op_params[0] + size);
}

// dims: 1 or 2; the dims of channels and batch follow.
static bool accepts_transposed(const struct ggml_tensor *node, int dims) {
    const struct ggml_tensor *kernel = node->src[0];
    const struct ggml_tensor *image = node->src[1];
    for (int d = 0; d < dims; ++d) {
        if (node->op_params[0] < 1 || !fits_transposed(node, d)) return false;
    }
    return kernel->ne[dims] == node->ne[dims] && kernel->ne[dims + 1] == image->ne[dims] &&
           node->ne[dims + 1] == image->ne[dims + 1];
}

// Padding 0 and dilation 1, which is what ggml defines.
bool gvk_accepts_conv_transpose_1d(const struct gvk_features *features,
                                   const struct ggml_tensor *node) {
    (void)features;
    return node->op_params[1] == 0 && node->op_params[2] == 1 && node->src[0]->ne[3] == 1 &&
           node->src[1]->ne[3] == 1 && node->ne[3] == 1 && accepts_transposed(node, 1);
}

bool gvk_accepts_conv_transpose_2d(const struct gvk_features *features,
                                   const struct ggml_tensor *node) {
    (void)features;
    return accepts_transposed(node, 2);
}

// One invocation per element of the result.
void gvk_encode_conv_transpose(struct gvk_plan *plan, const struct ggml_tensor *node) {
    struct gvk_dispatch *d = gvk_dispatch_new(plan, GVK_SHADER_conv_transpose, node, 2, GROUP);
    if (!d) return;
    gvk_dispatch_spec(d, node->src[0]->type);
    gvk_dispatch_spec(d, node->src[1]->type);
    gvk_dispatch_spec(d, node->op == GGML_OP_CONV_TRANSPOSE_1D ? 1 : 2);
    gvk_dispatch_groups(plan, d, gpu_groups_of(gpu_nelements(node), GROUP));
}
