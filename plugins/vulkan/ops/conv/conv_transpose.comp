#version 450
// SPDX-License-Identifier: MIT
// conv_transpose_1d (DIMS 1) and conv_transpose_2d (DIMS 2): an invocation per element of the
// F32 result gathers the pixels whose kernel reaches it.
#include "shaders/common.glsl"
layout(constant_id = 3) const uint FILTER_TYPE = 0;
layout(constant_id = 4) const uint SRC_TYPE = 0;
layout(constant_id = 5) const uint DIMS = 2;
GVK_OPERAND(dst, 1)
GVK_OPERAND(filters, 2)
GVK_OPERAND(image, 3)

// The pixels of dimension d from which element o of the result has contributions.
void sources(const uint d, const uint o, out uint first, out uint end) {
    const uint stride = uint(op_param(0));
    const uint size = SRC0.ne[d];
    first = o + 1 > size ? (o + stride - size) / stride : 0;
    end = min(o / stride + 1, SRC1.ne[d]);
}

// Gathers, as col2im_1d.comp: one invocation per element of the result sums what reaches it, in a
// fixed order.
void main() {
    const uint i = invocation_linear();
    if (i >= DST.ne.x * DST.ne.y * DST.ne.z * DST.ne.w) return;
    const uvec4 at = element_at(DST.ne, i);
    const uint stride = uint(op_param(0));
    const uint channel = at[DIMS];
    const uint image0 = SRC1.at.x + at[DIMS + 1] * SRC1.nb[DIMS + 1];
    const uint filter0 = SRC0.at.x + channel * SRC0.nb[DIMS];
    uint x0, x1, y0 = 0, y1 = 1;
    sources(0, at.x, x0, x1);
    if (DIMS == 2) sources(1, at.y, y0, y1);
    float sum = 0;
    for (uint y = y0; y < y1; ++y) {
        for (uint x = x0; x < x1; ++x) {
            uint weight = filter0 + (at.x - x * stride) * SRC0.nb.x;
            uint source = image0 + x * SRC1.nb.x;
            if (DIMS == 2) {
                weight += (at.y - y * stride) * SRC0.nb.y;
                source += y * SRC1.nb.y;
            }
            for (uint c = 0; c < SRC1.ne[DIMS]; ++c) {
                sum += filters_load(FILTER_TYPE, weight) * image_load(SRC_TYPE, source);
                weight += SRC0.nb[DIMS + 1];
                source += SRC1.nb[DIMS];
            }
        }
    }
    dst_store(TYPE_F32, address(DST, at), sum);
}
