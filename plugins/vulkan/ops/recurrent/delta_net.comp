#version 450
// SPDX-License-Identifier: MIT
// gated_delta_net, F32. An invocation keeps a row of a head's state in the result, behind the
// outputs: slot 0 is the newest state, slot s the one s tokens earlier. A launch takes the
// tokens [number(0), number(1)): long sequences take several, within the driver's limit on
// iterations.
#include "shaders/common.glsl"
#include "shaders/math.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(q, 2)
GVK_OPERAND(k, 3)
GVK_OPERAND(v, 4)
GVK_OPERAND(gate, 5)
GVK_OPERAND(beta, 6)
GVK_OPERAND(initial, 7)

// Heads and sequences of q and k are shared by a whole number of those of v.
uint shared_row(const Tensor t, const uint head, const uint token, const uint seq, const uint n) {
    return address(t, uvec4(0, head % t.ne.y, token, seq / (n / t.ne.w))) >> 2;
}

// Gated delta rule: decay the state, subtract what it recalls for the key from the value, add the
// difference along the key, and read it out by the query. An invocation has one column of a head's
// state.
void main() {
    const Tensor value = tensors[3], gates = tensors[4];
    const uint n = value.ne.x, heads = value.ne.y, tokens = value.ne.z, sequences = value.ne.w;
    const uint unit = invocation_linear();
    if (unit >= n * heads * sequences) return;
    const uint j = unit % n, head = unit / n % heads, seq = unit / n / heads;
    const uint slot_size = n * n * heads * sequences;
    const uint out0 = DST.at.x >> 2;
    const uint state = out0 + n * heads * tokens * sequences + unit * n;
    const uint from = (tensors[6].at.x >> 2) + unit * n;
    const float scale = 1 / sqrt(float(n));
    for (uint i = 0; i < n && number(0) == 0; ++i) dst_f32[state + i] = initial_f32[from + i];
    for (uint t = number(0); t < number(1); ++t) {
        const uint q0 = shared_row(SRC0, head, t, seq, sequences);
        const uint k0 = shared_row(SRC1, head, t, seq, sequences);
        const uint g0 = address(gates, uvec4(0, head, t, seq)) >> 2;
        float decay = gates.ne.x == 1 ? exp_accurate(gate_f32[g0]) : 0;
        // What the state recalls for the key, after the decay.
        float along = 0;
        for (uint i = 0; i < n; ++i) {
            if (gates.ne.x != 1) decay = exp_accurate(gate_f32[g0 + i]);
            const float x = dst_f32[state + i] * decay;
            dst_f32[state + i] = x;
            along += x * k_f32[k0 + i];
        }
        const float target = v_f32[address(value, uvec4(j, head, t, seq)) >> 2];
        const float delta =
            (target - along) * beta_f32[address(tensors[5], uvec4(0, head, t, seq)) >> 2];
        const uint slot = tokens - 1 - t;
        // The states after the last tokens are kept as well, for a rollback.
        const bool keep = slot > 0 && slot < uint(op_param(0));
        float sum = 0;
        for (uint i = 0; i < n; ++i) {
            const float x = dst_f32[state + i] + k_f32[k0 + i] * delta;
            dst_f32[state + i] = x;
            if (keep) dst_f32[state + slot * slot_size + i] = x;
            sum += x * q_f32[q0 + i];
        }
        dst_f32[out0 + ((seq * tokens + t) * heads + head) * n + j] = sum * scale;
    }
}
