// SPDX-License-Identifier: MIT
// Patches of an image as rows of floats: im2col and the direct convolutions.
#ifndef CPU_PATCHES_H
#define CPU_PATCHES_H

#include "ops/conv/conv.h"
#include "simd/strided.h"

// Kernel elements [begin, end) of a window, along one dim, that are inside the image.
struct conv_span {
    int64_t begin, end;
};

// ceil(a / b) for b > 0.
static inline int64_t conv_ceil_div(int64_t a, int64_t b) {
    return a > 0 ? (a - 1) / b + 1 : -(-a / b);
}

// Kernel elements [begin, end) along dim d that fall inside the image, where `first` is the
// position of the first one. Outside is padding.
static inline struct conv_span conv_inside(const struct conv *c, int d, int64_t first) {
    if (c->dilation[d] == 0) { // all elements at one place
        return (struct conv_span){0, first >= 0 && first < c->in[d] ? c->kernel[d] : 0};
    }
    const int64_t begin = MAX(conv_ceil_div(-first, c->dilation[d]), 0);
    const int64_t end = MIN(conv_ceil_div(c->in[d] - first, c->dilation[d]), c->kernel[d]);
    return (struct conv_span){MIN(begin, c->kernel[d]), MAX(end, MIN(begin, c->kernel[d]))};
}

static inline struct conv_span conv_span(const struct conv *c, int64_t first) {
    return conv_inside(c, 0, first);
}

// Position of a window's first element along dim d.
static inline int64_t conv_first(const struct conv *c, int d, int64_t out) {
    return out * c->stride[d] - c->padding[d];
}

// Copies a line of a window, padded with zeros; row is NULL outside of the image.
static inline void conv_line(const struct conv *c, const char *row, int64_t first,
                             struct conv_span span, float *y) {
    const int64_t begin = row ? span.begin : c->kernel[0], end = row ? span.end : c->kernel[0];
    const size_t step = c->nb[0] * (size_t)c->dilation[0];
    for (int64_t k = 0; k < begin; ++k)
        y[k] = 0.0f;
    for (int64_t k = end; k < c->kernel[0]; ++k)
        y[k] = 0.0f;
    if (begin == end) return;
    const char *x = row + (size_t)(first + begin * c->dilation[0]) * c->nb[0];
    if (c->image->type != GGML_TYPE_F32) {
        cpu_gather_floats(y + begin, x, step, c->image->type, end - begin);
        return;
    }
    for (int64_t k = begin; k < end; ++k, x += step) // a few, for which a call takes longer
        memcpy(&y[k], x, sizeof(float));
}

// The lines of a window of a channel: a plane of them after the other.
static inline void conv_channel(const struct conv *c, const char *channel, const int64_t *first,
                                struct conv_span span, float *y) {
    for (int64_t kz = 0; kz < c->kernel[2]; ++kz) {
        const int64_t iz = first[2] + kz * c->dilation[2];
        for (int64_t ky = 0; ky < c->kernel[1]; ++ky, y += c->kernel[0]) {
            const int64_t iy = first[1] + ky * c->dilation[1];
            const bool inside = iy >= 0 && iy < c->in[1] && iz >= 0 && iz < c->in[2];
            conv_line(c, inside ? channel + (size_t)iy * c->nb[1] + (size_t)iz * c->nb[2] : NULL,
                      first[0], span, y);
        }
    }
}

// Patch `index` of the node, out[0] fastest and the batch slowest: conv_patch(c) floats, kernel
// columns fastest and channels slowest.
static inline void conv_patch_at(const struct conv *c, int64_t index, float *y) {
    const int64_t above = index / c->out[0];
    const int64_t first[CONV_DIMS] = {
        conv_first(c, 0, index % c->out[0]),
        conv_first(c, 1, above % c->out[1]),
        conv_first(c, 2, above / c->out[1] % c->out[2]),
    };
    const char *image =
        (const char *)c->image->data + (size_t)(above / c->out[1] / c->out[2]) * c->nb_batch;
    const struct conv_span span = conv_span(c, first[0]);
    const int64_t size = c->kernel[0] * c->kernel[1] * c->kernel[2];
    for (int64_t i = 0; i < c->channels; ++i, y += size)
        conv_channel(c, image + (size_t)i * c->nb_channel, first, span, y);
}

#endif
