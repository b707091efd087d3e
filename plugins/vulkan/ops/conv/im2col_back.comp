#version 450
// SPDX-License-Identifier: MIT
// im2col_back: the gradient of the image from src0, the gradient of its F32 patches. An
// invocation per pixel adds up that pixel's elements in all patches that hold it.
#include "shaders/common.glsl"
layout(constant_id = 3) const uint DST_TYPE = 0;
layout(constant_id = 4) const uint SRC_TYPE = 0;
#include "ops/conv/conv.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(patches, 2)

void main() {
    const uint i = invocation_linear();
    if (i >= DST.ne.x * DST.ne.y * DST.ne.z * DST.ne.w) return;
    const uvec4 at = element_at(DST.ne, i);
    const uint y = DIMS == 2 ? at.y : 0;
    const uint channel = DIMS == 2 ? at.z : at.y;
    const uint base = SRC0.at.x + (DIMS == 2 ? at.w * SRC0.nb.w : at.z * SRC0.nb.z);
    float sum = 0;
    for (uint ky = 0; ky < conv_kernel(1); ++ky) {
        uint oy = 0;
        if (DIMS == 2 && !conv_window(1, y, ky, oy)) continue;
        for (uint kx = 0; kx < conv_kernel(0); ++kx) {
            uint ox;
            if (!conv_window(0, at.x, kx, ox)) continue;
            const uint e = (channel * conv_kernel(1) + ky) * conv_kernel(0) + kx;
            sum += patches_load(TYPE_F32, base + ox * SRC0.nb.y + (DIMS == 2 ? oy * SRC0.nb.z : 0) +
                                              e * SRC0.nb.x);
        }
    }
    dst_store(TYPE_F32, address(DST, at), sum);
}
