#version 450
// SPDX-License-Identifier: MIT
// conv_2d and conv_3d without im2col. An invocation computes PIXELS pixels of FILTERS channels,
// so that each pixel and each weight it loads is used that often. All invocations of a group use
// the same weights and take the same branches: drivers that run on the CPU then load a weight
// once per group.
#include "shaders/common.glsl"
layout(constant_id = 3) const uint DST_TYPE = 0;
layout(constant_id = 4) const uint SRC_TYPE = 0;
#include "ops/conv/conv.glsl"
layout(constant_id = 6) const uint FILTER_TYPE = 0;
layout(constant_id = 7) const uint PIXELS = 1;
layout(constant_id = 8) const uint FILTERS = 8;
GVK_OPERAND(dst, 1)
GVK_OPERAND(filters, 2)
GVK_OPERAND(image, 3)
#include "ops/conv/conv_operands.glsl"

uvec3 windows[PIXELS];
uint planes[PIXELS]; // of the first channel
uint sources[PIXELS];
bool inside[PIXELS];
float sums[PIXELS * FILTERS];

uint window_at(const uint p) {
    return (gl_WorkGroupID.x * PIXELS + p) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
}

// Positions of this invocation's pixels; those beyond the last repeat it and are not stored.
void open_windows() {
    [[unroll]] for (uint p = 0; p < PIXELS; ++p) {
        const uint window = min(window_at(p), conv_windows() * conv_batch() - 1u);
        windows[p] = conv_window_at(window % conv_windows());
        planes[p] = conv_plane(window / conv_windows());
    }
    [[unroll]] for (uint i = 0; i < PIXELS * FILTERS; ++i) sums[i] = 0;
}

// The products with element `at` of all filters from one on, over the channels.
void add_channels(const uvec3 at, const uint first, const uint count) {
    [[unroll]] for (uint p = 0; p < PIXELS; ++p)
        inside[p] = conv_source(windows[p], at, planes[p], sources[p]);
    uint weight = conv_weight(first, at, 0);
    for (uint c = 0; c < conv_channels(); ++c) {
        float pixels[PIXELS];
        [[unroll]] for (uint p = 0; p < PIXELS; ++p) {
            const float pixel = image_load(SRC_TYPE, sources[p]);
            pixels[p] = inside[p] ? pixel : 0.0;
            sources[p] += conv_nb_channel();
        }
        [[unroll]] for (uint f = 0; f < FILTERS; ++f) {
            const float w = filters_load(FILTER_TYPE, weight + min(f, count) * filter_nb_out());
            [[unroll]] for (uint p = 0; p < PIXELS; ++p) sums[p * FILTERS + f] += pixels[p] * w;
        }
        weight += filter_nb_in();
    }
}

// An invocation computes PIXELS windows times FILTERS filters in registers: each loaded element is
// used several times.
void main() {
    const uint first = gl_WorkGroupID.y * FILTERS;
    // Filters beyond the last are computed as the last one and not stored.
    const uint last = min(FILTERS, conv_channels_out() - first) - 1u;
    open_windows();
    for (uint z = 0; z < conv_kernel(2); ++z) {
        for (uint y = 0; y < conv_kernel(1); ++y) {
            for (uint x = 0; x < conv_kernel(0); ++x) add_channels(uvec3(x, y, z), first, last);
        }
    }
    [[unroll]] for (uint p = 0; p < PIXELS; ++p) {
        const uint window = window_at(p);
        if (window >= conv_windows() * conv_batch()) break;
        [[unroll]] for (uint f = 0; f < FILTERS; ++f) {
            if (f <= last) store_pixel(window, first + f, sums[p * FILTERS + f]);
        }
    }
}
