#version 450
// SPDX-License-Identifier: MIT
// im2col and im2col_3d: a row per window of the convolution, with its pixels over all channels,
// kernel columns fastest; 0 outside of the image. An invocation per element of the result.
#include "shaders/common.glsl"
layout(constant_id = 3) const uint DST_TYPE = 0;
layout(constant_id = 4) const uint SRC_TYPE = 0;
#include "ops/conv/conv.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(image, 3)

void main() {
    const uint i = invocation_linear();
    const uint patch_size = DST.ne.x;
    if (i >= patch_size * DST.ne.y * DST.ne.z * DST.ne.w) return;
    uint e = i % patch_size;
    uint window = i / patch_size;
    uvec4 at = row_at(DST.ne, window);
    at.x = e;
    uvec3 x;
    bool inside = true;
    uint source = SRC1.at.x;
    [[unroll]] for (uint d = 0; d < 3; ++d) {
        if (d < DIMS) {
            inside = conv_position(d, window % conv_out(d), e % conv_kernel(d), x[d]) && inside;
            source += x[d] * SRC1.nb[d];
        }
        e /= conv_kernel(d);
        window /= conv_out(d);
    }
    source += e * conv_nb_channel() + window * conv_nb_batch();
    float value = 0;
    if (inside) value = image_load(SRC_TYPE, source);
    dst_store(DST_TYPE, address(DST, at), value);
}
