#version 450
// SPDX-License-Identifier: MIT
// ssm_scan, the selective scan of Mamba. An invocation keeps a row of a head's state in the
// result, behind the outputs: slot 0 is the newest state, slot s the one s tokens earlier. A
// launch takes the tokens [number(0), number(1)).
#include "shaders/common.glsl"
#include "shaders/math.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(initial, 2)
GVK_OPERAND(x, 3)
GVK_OPERAND(dt, 4)
GVK_OPERAND(a, 5)
GVK_OPERAND(b, 6)
GVK_OPERAND(c, 7)
GVK_OPERAND(ids, 8)
layout(constant_id = 3) const uint SHARED_RATE = 0; // one decay per head, not per element

float softplus(const float value) {
    return value > 20 ? value : log1p_accurate(exp_accurate(value));
}

// Selective scan (Mamba-2): h = h exp(delta a) + delta b x, y = <h, c>. An invocation has one row
// of the state, which it updates in the result.
void main() {
    const uint n = SRC0.ne.x, rows = SRC0.ne.y, heads = SRC0.ne.z;
    const uint tokens = SRC1.ne.z, sequences = SRC1.ne.w;
    const uint unit = invocation_linear();
    if (unit >= rows * heads * sequences) return;
    const uint p = unit % rows, head = unit / rows % heads, seq = unit / rows / heads;
    const uint group = head / (heads / tensors[5].ne.y);
    const uint states = (DST.at.x >> 2) + rows * heads * tokens * sequences;
    const uint slot_size = n * rows * heads * sequences;
    const uint state = states + unit * n;
    // The initial state is one row of many, chosen by sequence; an invalid index gives NaN.
    const uint id = ids_u32[(tensors[7].at.x + seq * tensors[7].nb.x) >> 2];
    const uint from = (SRC0.at.x >> 2) + ((id * heads + head) * rows + p) * n;
    for (uint i = 0; i < n && number(0) == 0; ++i)
        dst_f32[state + i] = id < SRC0.ne.w ? initial_f32[from + i] : uintBitsToFloat(0x7fc00000u);
    for (uint t = number(0); t < number(1); ++t) {
        const float delta = softplus(dt_f32[address(tensors[3], uvec4(head, t, seq, 0)) >> 2]);
        const float x_value = x_f32[address(SRC1, uvec4(p, head, t, seq)) >> 2] * delta;
        const uint a0 = address(tensors[4], uvec4(0, head, 0, 0)) >> 2;
        const uint b0 = address(tensors[5], uvec4(0, group, t, seq)) >> 2;
        const uint c0 = address(tensors[6], uvec4(0, group, t, seq)) >> 2;
        float decay = SHARED_RATE != 0 ? exp_accurate(delta * a_f32[a0]) : 0;
        const uint slot = tokens - 1 - t;
        // The states after the last tokens are kept as well, for a rollback.
        const bool keep = slot > 0 && slot < uint(op_param(0));
        float sum = 0;
        for (uint i = 0; i < n; ++i) {
            if (SHARED_RATE == 0) decay = exp_accurate(delta * a_f32[a0 + i]);
            const float value = dst_f32[state + i] * decay + b_f32[b0 + i] * x_value;
            dst_f32[state + i] = value;
            if (keep) dst_f32[state + slot * slot_size + i] = value;
            sum += value * c_f32[c0 + i];
        }
        dst_f32[(DST.at.x >> 2) + ((seq * tokens + t) * heads + head) * rows + p] = sum;
    }
}
