#version 450
// SPDX-License-Identifier: MIT
// cross_entropy_loss: -sum(target * log softmax(logits)) of each row, to scratch memory, which
// mean_of.comp averages. BACK, cross_entropy_loss_back: the gradient of that mean by the logits.
// A row per group.
#include "shaders/common.glsl"
#include "shaders/math.glsl"
#include "shaders/reduce.glsl"
layout(constant_id = 3) const uint BACK = 0;
GVK_OPERAND(dst, 1)
GVK_OPERAND(s0, 2)
GVK_OPERAND(s1, 3)
GVK_OPERAND(s2, 4)

// The gradient's first source is the scalar that the loss's is multiplied by.
const uint LOGITS = BACK != 0 ? 2 : 1, TARGETS = LOGITS + 1;

float logit(const uvec4 at) {
    const uint i = address(tensors[LOGITS], at) >> 2;
    return BACK != 0 ? s1_f32[i] : s0_f32[i];
}
float target(const uvec4 at) {
    const uint i = address(tensors[TARGETS], at) >> 2;
    return BACK != 0 ? s2_f32[i] : s1_f32[i];
}

// A group per row. Forward: -sum of target times log softmax; backward: softmax minus target, times
// the gradient.
void main() {
    const uvec4 ne = tensors[LOGITS].ne;
    const uint row = group_linear();
    if (row >= ne.y * ne.z * ne.w) return;
    uvec4 at = row_at(ne, row);
    const uint first = gl_LocalInvocationID.x, stride = gl_WorkGroupSize.x;
    float largest = -FLT_INFINITY;
    for (at.x = first; at.x < ne.x; at.x += stride) largest = max(largest, logit(at));
    largest = group_max(largest);
    float sum = 0;
    for (at.x = first; at.x < ne.x; at.x += stride) sum += exp_accurate(logit(at) - largest);
    sum = group_sum(sum);
    // The mean over rows is part of the scale.
    if (BACK != 0) {
        const float scale = s0_f32[SRC0.at.x >> 2] / float(ne.y * ne.z * ne.w);
        for (at.x = first; at.x < ne.x; at.x += stride) {
            const float p = exp_accurate(logit(at) - largest) / sum;
            dst_f32[address(DST, at) >> 2] = (p - target(at)) * scale;
        }
        return;
    }
    const float log_sum = log_accurate(sum);
    float loss = 0;
    for (at.x = first; at.x < ne.x; at.x += stride)
        loss -= target(at) * (logit(at) - largest - log_sum);
    loss = group_sum(loss);
    if (first == 0) dst_f32[(DST.at.x >> 2) + row] = loss;
}
