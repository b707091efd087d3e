// SPDX-License-Identifier: MIT
// One thread per element of the result: functions of one and of two operands, gated units.
#include "encode_large.h"
#include "glu.h"
#include "tensor.h"

// --- one operand ---------------------------------------------------------------------------------

// (x + 3) / 6 within [0, 1].
GPU_FN float hard_sigmoid(float x) {
    const float y = (x + 3.0f) / 6.0f;
    return y > 0.0f ? (y < 1.0f ? y : 1.0f) : 0.0f;
}
GPU_FN float xielu(GPU_ARGS gpu_args &p, float x) {
    const float alpha_n = gpu_param(p, 1), alpha_p = gpu_param(p, 2), beta = gpu_param(p, 3),
                eps = gpu_param(p, 4);
    if (x > 0.0f) return alpha_p * x * x + beta * x;
    return (gpu_expm1(x < eps ? x : eps) - x) * alpha_n + beta * x;
}
// From 2^23 on every float is whole.
GPU_FN float round_half_away(float x) {
    const float a = gpu_abs(x), whole = gpu_floor(a), y = a - whole >= 0.5f ? whole + 1.0f : whole;
    return gpu_is_nan(x) || a >= 8388608.0f ? x : x < 0.0f ? -y : y;
}
GPU_FN float truncated(float x) {
    return x < 0.0f ? -gpu_floor(-x) : gpu_floor(x);
}
GPU_FN float clamped(GPU_ARGS gpu_args &p, float x) {
    const float high = x < gpu_param(p, 1) ? x : gpu_param(p, 1); // NaN: the upper limit
    return high > gpu_param(p, 0) ? high : gpu_param(p, 0);
}

// By GGML_UNARY_OP_x, and from 32 on by enum gpu_function of base/nodes.h.
GPU_FN float unary(GPU_ARGS gpu_args &p, int op, float x) {
    switch (op) {
    case 0: return gpu_abs(x);
    case 1: return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : 0.0f;
    case 2: return -x;
    case 3: return x > 0.0f ? 1.0f : 0.0f;
    case 4: return gpu_tanh(x);
    case 5: return x > 0.0f ? x : gpu_expm1(x);
    case 6: return x > 0.0f ? x : 0.0f;
    case 7: return gpu_sigmoid(x);
    case 8: return gpu_gelu(x);
    case 9: return gpu_gelu_quick(x);
    case 10: return gpu_silu(x);
    case 11: return x * hard_sigmoid(x);
    case 12: return hard_sigmoid(x);
    case 13: return gpu_exp(x);
    case 14: return gpu_expm1(x);
    case 15: return x > 20.0f ? x : gpu_log1p(gpu_exp(x));
    case 16: return gpu_gelu_erf(x);
    case 17: return xielu(p, x);
    case 18: return gpu_floor(x);
    case 19: return -gpu_floor(-x);
    case 20: return round_half_away(x);
    case 21: return truncated(x);
    case 32: return x * x;
    case 33: return gpu_sqrt(x);
    case 34: return gpu_log(x);
    case 35: return gpu_cos_sin(x).sine;
    case 36: return gpu_cos_sin(x).cosine;
    case 37: return x > 0.0f ? x : gpu_param(p, 0) * x;
    case 38: return x * gpu_param(p, 0) + gpu_param(p, 1);
    case 39: return clamped(p, x);
    default: return gpu_param(p, 0);
    }
}

// numbers[0]: which function.
GPU_KERNEL(kernel_unary, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    const gpu_at at = gpu_element_at(y, i);
    gpu_store(y.type, gpu_address(y, at),
              unary(p, (int)p.numbers[0], gpu_load(x.type, gpu_address(x, at))));
}

// --- two operands --------------------------------------------------------------------------------

// numbers[0]: 0 add, 1 subtract, 2 multiply, 3 divide. The second one is repeated.
GPU_KERNEL(kernel_binary, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &a = p.operands[1], &b = p.operands[2];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    const gpu_at at = gpu_element_at(y, i);
    const float u = gpu_load(a.type, gpu_address(a, at)),
                v = gpu_load(b.type, gpu_address_repeated(b, at));
    const float sum = p.numbers[0] == 0   ? u + v
                      : p.numbers[0] == 1 ? u - v
                      : p.numbers[0] == 2 ? u * v
                                          : u / v;
    gpu_store(y.type, gpu_address(y, at), sum);
}

// a of a type with blocks plus b, which is repeated: to floats, a thread per element, or to blocks,
// a thread per block.
GPU_FN float coded_sum(GPU_ARGS gpu_operand &a, GPU_ARGS gpu_operand &b, gpu_at at) {
    return gpu_element_far(a, gpu_row(a, at.y, at.z, at.w), at.x) +
           gpu_load(b.type, gpu_address_repeated(b, at));
}
GPU_FN void coded_sums(GPU_ARGS gpu_operand &a, GPU_ARGS gpu_operand &b, gpu_at at, u32 n,
                       GPU_PRIVATE float *sums) {
    for (u32 i = 0; i < n; ++i) {
        const gpu_at from = {at.x * n + i, at.y, at.z, at.w};
        sums[i] = coded_sum(a, b, from);
    }
}
GPU_KERNEL(kernel_add_coded, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    const gpu_at at = gpu_element_at(y, i);
    gpu_store(y.type, gpu_address(y, at), coded_sum(p.operands[1], p.operands[2], at));
}
GPU_KERNEL(kernel_add_encoded, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y) / 32) return;
    const gpu_at at = gpu_at_of(y, (u64)y.ne[0] / 32, i);
    float sums[32];
    coded_sums(p.operands[1], p.operands[2], at, 32, sums);
    gpu_encode_block(y.type, sums, gpu_row(y, at.y, at.z, at.w) + at.x * gpu_block_bytes(y.type));
}
GPU_KERNEL(kernel_add_encoded_large, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0];
    const u32 n = gpu_block_elements(y.type);
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y) / n) return;
    const gpu_at at = gpu_at_of(y, (u64)y.ne[0] / n, i);
    float sums[LARGE_BLOCK];
    coded_sums(p.operands[1], p.operands[2], at, n, sums);
    gpu_encode_large_block(y.type, sums,
                           gpu_row(y, at.y, at.z, at.w) + at.x * gpu_block_bytes(y.type));
}

// y[:, u, t] = a[:, u, t] + b[:, ids[u, t]]; an index that b does not have adds NaN.
GPU_KERNEL(kernel_add_id, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &a = p.operands[1], &b = p.operands[2],
                         &ids = p.operands[3];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    const gpu_at at = gpu_element_at(y, i), id_at = {at.y, at.z, 0, 0};
    const i32 id = *(GPU_GLOBAL const i32 *)gpu_address(ids, id_at);
    float value = GPU_NAN;
    if (id >= 0 && id < b.ne[1]) {
        const gpu_at from = {at.x, (u64)id, 0, 0};
        value = *(GPU_GLOBAL const float *)gpu_address(a, at) +
                *(GPU_GLOBAL const float *)gpu_address(b, from);
    }
    *(GPU_GLOBAL float *)gpu_address(y, at) = value;
}

// --- gated units ---------------------------------------------------------------------------------

GPU_KERNEL(kernel_glu, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &a = p.operands[1], &b = p.operands[2];
    const u64 i = gpu_index(g);
    if (i >= gpu_count(y)) return;
    const gpu_at at = gpu_element_at(y, i);
    gpu_at x_at = at, g_at = at;
    const bool split = b.data != 0;
    // In one operand both halves of a row lie side by side: the function's argument is the first,
    // or the second where params[1] is set.
    if (!split) (p.params[1] ? x_at : g_at).x += (u64)y.ne[0];
    GPU_ARGS gpu_operand &gate = split ? b : a;
    const float x = gpu_load(a.type, gpu_address(a, x_at)),
                factor = gpu_load(gate.type, gpu_address(gate, g_at));
    gpu_store(y.type, gpu_address(y, at), gpu_glu(p, x, factor));
}
