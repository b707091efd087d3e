// SPDX-License-Identifier: MIT
// Geometry of the convolutions over up to three dimensions; shared with the accept and work
// functions.
#ifndef CPU_CONV_H
#define CPU_CONV_H

#include "gemm/gemm_size.h"
#include "ggml-shape.h"

enum { CONV_DIMS = 3 };

struct conv {
    const struct ggml_tensor *image; // the second source, except for gradients
    int64_t kernel[CONV_DIMS], in[CONV_DIMS], out[CONV_DIMS]; // extents
    int32_t stride[CONV_DIMS], padding[CONV_DIMS], dilation[CONV_DIMS];
    size_t nb[CONV_DIMS]; // bytes between the pixels
    int64_t channels, batch;
    size_t nb_channel, nb_batch;
    int64_t channels_out; // direct convolutions
};

// Elements of a patch: a window over all channels.
static inline int64_t conv_patch(const struct conv *c) {
    return c->kernel[0] * c->kernel[1] * c->kernel[2] * c->channels;
}

// Windows per image.
static inline int64_t conv_pixels(const struct conv *c) {
    return c->out[0] * c->out[1] * c->out[2];
}

// Extents, strides and parameters along n dimensions; the others have extent 1.
static inline struct conv conv_of_dims(const struct ggml_tensor *node, int n, int first_out) {
    struct conv c = {.image = node->src[1],
                     .kernel = {1, 1, 1},
                     .in = {1, 1, 1},
                     .out = {1, 1, 1},
                     .stride = {1, 1, 1},
                     .dilation = {1, 1, 1}};
    const int params = n == 3 ? 3 : 2; // of each kind
    for (int d = 0; d < n; ++d) {
        c.kernel[d] = node->src[0]->ne[d];
        c.in[d] = c.image->ne[d];
        c.out[d] = node->ne[first_out + d];
        c.nb[d] = c.image->nb[d];
        c.stride[d] = node->op_params[d];
        c.padding[d] = node->op_params[params + d];
        c.dilation[d] = node->op_params[2 * params + d];
    }
    return c;
}

// Parameters of a two-dimensional convolution; n is the dimension of the image's channels,
// first_out that of the result's first extent.
static inline struct conv conv_of_2d(const struct ggml_tensor *node, int n, int first_out) {
    struct conv c = conv_of_dims(node, n, first_out);
    c.channels = c.image->ne[n];
    c.nb_channel = c.image->nb[n];
    c.batch = c.image->ne[n + 1];
    c.nb_batch = c.image->nb[n + 1];
    return c;
}

// Channels and batch share dim 3; `channels` > 0.
static inline struct conv conv_of_3d(const struct ggml_tensor *node, int64_t channels,
                                     int first_out) {
    struct conv c = conv_of_dims(node, 3, first_out);
    c.channels = channels;
    c.nb_channel = c.image->nb[3];
    c.batch = c.image->ne[3] / channels;
    c.nb_batch = c.image->nb[3] * (size_t)channels;
    return c;
}

// The result of im2col has the patches in rows: its extents begin at dimension 1.
static inline struct conv conv_of_im2col(const struct ggml_tensor *node) {
    if (node->op != GGML_OP_IM2COL_3D) return conv_of_2d(node, node->op_params[6] ? 2 : 1, 1);
    struct conv c = conv_of_3d(node, node->op_params[9], 1);
    c.out[2] = c.batch > 0 ? node->ne[3] / c.batch : 0;
    return c;
}

// The node is the image, src0 the gradient of its patches.
static inline struct conv conv_of_im2col_back(const struct ggml_tensor *node) {
    struct conv c = conv_of_2d(node, node->op_params[6] ? 2 : 1, 0);
    const int n = node->op_params[6] ? 2 : 1;
    for (int d = 0; d < n; ++d) {
        c.kernel[d] = node->src[1]->ne[d];
        c.in[d] = node->ne[d];
        c.out[d] = node->src[0]->ne[d + 1];
    }
    c.channels = node->ne[n];
    c.batch = node->ne[n + 1];
    return c;
}

// The result of a direct convolution is an image: its extents begin at dimension 0.
static inline struct conv conv_of_direct(const struct ggml_tensor *node) {
    struct conv c;
    if (node->op == GGML_OP_CONV_3D) {
        c = conv_of_3d(node, node->op_params[9], 0);
        c.channels_out = node->op_params[11];
    } else {
        c = conv_of_2d(node, 2, 0);
        c.channels_out = node->ne[2];
    }
    return c;
}

_Static_assert((int)GEMM_COLUMNS <= (int)PACKED_COLUMNS, "callers have room for either");

enum {
    CONV_PACKED_ROWS = 480,  // patches that pay for packing the filters
    CONV_LEAST_PIXELS = 12,  // fewer would fill too little of a panel
    CONV_MOST_PATCH = 65536, // elements: a panel of larger ones takes too much memory
};

// Whether patches and filters are packed for their product.
static inline bool conv_packs(const struct conv *c) {
    return conv_pixels(c) >= CONV_LEAST_PIXELS && conv_patch(c) <= CONV_MOST_PATCH;
}

// Filters that are multiplied together, at most.
static inline int64_t conv_width(const struct conv *c) {
    return MIN(c->channels_out, conv_packs(c) ? (int64_t)PACKED_COLUMNS : (int64_t)GEMM_COLUMNS);
}

// Patches that are multiplied together. Where they are packed, at most about 4 MiB of them, whole
// panels, as many in each block of an image; otherwise 1 MiB, so that they stay in the second-level
// cache, at least 4.
static inline int conv_block(const struct conv *c) {
    const int64_t patch = MAX(conv_patch(c), 1), pixels = conv_pixels(c);
    if (!conv_packs(c)) return (int)MIN(MAX(((int64_t)1 << 18) / patch, 4), GEMM_MAX_ROWS);
    const int64_t most = MIN(MAX(((int64_t)1 << 20) / patch, PACKED_PANEL), CONV_PACKED_ROWS);
    const int64_t blocks = (pixels + most - 1) / most, even = (pixels + blocks - 1) / blocks;
    return (int)((even + PACKED_PANEL - 1) / PACKED_PANEL * PACKED_PANEL);
}

// Work memory of a thread: a block of patches, what packs it, and its products where the result is
// not F32.
static inline size_t conv_thread_floats(const struct conv *c, enum ggml_type type) {
    const int64_t products = type == GGML_TYPE_F32 ? 0 : conv_width(c);
    const size_t packed = conv_packs(c) ? gemm_packed_floats(conv_width(c), conv_patch(c)) : 0;
    return (size_t)conv_block(c) * (size_t)(conv_patch(c) + products) + packed;
}

// To a cache line.
static inline size_t conv_pad(size_t size) {
    return (size + 63) / 64 * 64;
}

// Whether the product can read the filters in place instead of an F32 copy.
static inline bool conv_filters_direct(const struct ggml_tensor *kernel) {
    return kernel->type == GGML_TYPE_F32 && ggml_is_packed(kernel);
}

// Nothing where the product reads the filters in place.
static inline size_t conv_filters_size(const struct ggml_tensor *kernel) {
    return conv_filters_direct(kernel) ? 0
                                       : conv_pad((size_t)ggml_nelements(kernel) * sizeof(float));
}

// --- transposed ----------------------------------------------------------------------------------

enum { CONV_TRANSPOSED_FLOATS = GEMM_COLUMNS * GEMM_MAX_ROWS }; // products of a thread

// conv_transpose_1d is treated as conv_transpose_2d of height 1. Index 0 is width, 1 is height.
struct conv_transposed {
    const struct ggml_tensor *kernel, *image;
    int64_t size[2], in[2], out[2]; // kernel, image, result
    int64_t stride, channels, channels_out, batch;
    size_t kernel_nb[2], kernel_nb_in, kernel_nb_out;
    size_t image_nb[2], image_nb_channel, image_nb_batch;
    size_t out_nb[2], out_nb_channel, out_nb_batch;
};

// Layout of a transposed convolution, in one or two dimensions: a flat one has height 1 and its
// channels in dimension 1.
static inline struct conv_transposed conv_transposed_of(const struct ggml_tensor *node) {
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *b = node->src[1];
    const bool flat = node->op == GGML_OP_CONV_TRANSPOSE_1D;
    const int c = flat ? 1 : 2; // dim of the channels
    return (struct conv_transposed){
        .kernel = a,
        .image = b,
        .size = {a->ne[0], flat ? 1 : a->ne[1]},
        .in = {b->ne[0], flat ? 1 : b->ne[1]},
        .out = {node->ne[0], flat ? 1 : node->ne[1]},
        .stride = node->op_params[0],
        .channels = b->ne[c],
        .channels_out = node->ne[c],
        .batch = b->ne[c + 1],
        .kernel_nb = {a->nb[0], a->nb[1]},
        .kernel_nb_out = a->nb[c],
        .kernel_nb_in = a->nb[c + 1],
        .image_nb = {b->nb[0], b->nb[1]},
        .image_nb_channel = b->nb[c],
        .image_nb_batch = b->nb[c + 1],
        .out_nb = {node->nb[0], node->nb[1]},
        .out_nb_channel = node->nb[c],
        .out_nb_batch = node->nb[c + 1],
    };
}

#endif
