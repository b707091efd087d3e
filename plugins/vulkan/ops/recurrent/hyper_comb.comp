#version 450
// SPDX-License-Identifier: MIT
// dsv4_hc_comb: a 4 x 4 matrix per token, made nearly doubly stochastic by Sinkhorn's iteration.
// An invocation per token.
#include "shaders/common.glsl"
#include "shaders/math.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(mixes, 2)
GVK_OPERAND(scales, 3)
GVK_OPERAND(base, 4)

const uint COPIES = 4;

// Logit of one pair of copies: 8 numbers of other mixes come first.
float mix_at(const uint source, const uint destination, const uint token) {
    const uint i = 2 * COPIES + destination + COPIES * source;
    const float scale = scales_f32[(SRC1.at.x + 2 * SRC1.nb.x) >> 2];
    return mixes_f32[address(SRC0, uvec4(i, token, 0, 0)) >> 2] * scale +
           base_f32[(SRC2.at.x + i * SRC2.nb.x) >> 2];
}

// Makes a 4 x 4 matrix doubly stochastic: softmax of the rows, then rows and columns are normalised
// in turn (Sinkhorn). One invocation per token.
void main() {
    const uint token = invocation_linear();
    if (token >= DST.ne.z) return;
    const float eps = op_param_f32(0);
    vec4 rows[COPIES]; // by source, a component per destination
    for (uint s = 0; s < COPIES; ++s) {
        vec4 x = vec4(mix_at(s, 0, token), mix_at(s, 1, token), mix_at(s, 2, token),
                      mix_at(s, 3, token));
        const float largest = max(max(x.x, x.y), max(x.z, x.w));
        x = vec4(exp_accurate(x.x - largest), exp_accurate(x.y - largest),
                 exp_accurate(x.z - largest), exp_accurate(x.w - largest));
        rows[s] = x / (x.x + x.y + x.z + x.w) + eps;
    }
    for (int i = 0; i < max(op_param(1), 1); ++i) {
        if (i > 0) {
            for (uint s = 0; s < COPIES; ++s)
                rows[s] /= rows[s].x + rows[s].y + rows[s].z + rows[s].w + eps;
        }
        const vec4 sums = rows[0] + rows[1] + rows[2] + rows[3] + eps;
        for (uint s = 0; s < COPIES; ++s) rows[s] /= sums;
    }
    for (uint s = 0; s < COPIES; ++s) {
        for (uint d = 0; d < COPIES; ++d)
            dst_f32[address(DST, uvec4(d, s, token, 0)) >> 2] = rows[s][d];
    }
}
