#version 450
// SPDX-License-Identifier: MIT
// lightning_indexer: for each token and key the sum over heads of weight * max(<q, k>, 0), plus
// the mask. An invocation per pair of token and key.
#include "shaders/common.glsl"
layout(constant_id = 3) const uint KEY_TYPE = 0;
GVK_OPERAND(dst, 1)
GVK_OPERAND(q, 2)
GVK_OPERAND(k, 3)
GVK_OPERAND(weights, 4)
GVK_OPERAND(mask, 5)
#define UNPACK_FROM k
#include "shaders/unpack.glsl"

// Score of a key for a query token: the sum over heads of weight times the positive part of the dot
// product, plus the mask.
void main() {
    const uint unit = invocation_linear();
    if (unit >= DST.ne.x * DST.ne.y * DST.ne.w) return;
    const uint key = unit % DST.ne.x, token = unit / DST.ne.x % DST.ne.y;
    const uint seq = unit / DST.ne.x / DST.ne.y;
    const uint k_row = address(SRC1, uvec4(0, 0, key, seq));
    float sum =
        mask_load(TYPE_F16, address(tensors[4], uvec4(key, token, 0, seq % tensors[4].ne.w)));
    for (uint head = 0; head < SRC0.ne.y; ++head) {
        const uint q_row = address(SRC0, uvec4(0, head, token, seq)) >> 2;
        float product = 0;
        for (uint i = 0; i < SRC0.ne.x; ++i)
            product += q_f32[q_row + i] * k_unpack(KEY_TYPE, k_row, i);
        const float weight = weights_f32[address(SRC2, uvec4(head, token, 0, seq)) >> 2];
        sum += max(product, 0) * weight;
    }
    dst_f32[address(DST, uvec4(key, token, 0, seq)) >> 2] = sum;
}
