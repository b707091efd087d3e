// SPDX-License-Identifier: MIT
// Functions of one operand: sqr, sqrt, log, sin, cos and the family of GGML_OP_UNARY.
#include "simd/map.h"
#include "simd/vmath.h"

// Each CPU_MAP() is a loop over a row, vectorised by the compiler: x is an element, p the
// operation's parameters as floats. Functions of cpu_*f() are polynomials of simd/vmath.h, with
// the errors given there; others are libm's or a few comparisons.

// Operations of their own.
CPU_MAP(map_sqr, x *x)
CPU_MAP(map_sqrt, sqrtf(x))
CPU_MAP(map_log, logf(x))
CPU_MAP(map_sin, sinf(x))
CPU_MAP(map_cos, cosf(x))

// Those of GGML_OP_UNARY. A NaN stays one only where the formula keeps it: sgn, step and relu give
// 0.
CPU_MAP(map_abs, fabsf(x))
CPU_MAP(map_sgn, x > 0.0f ? 1.0f : (x < 0.0f ? -1.0f : 0.0f))
CPU_MAP(map_neg, -x)
CPU_MAP(map_step, x > 0.0f ? 1.0f : 0.0f)
CPU_MAP(map_tanh, cpu_tanhf(x))
CPU_MAP(map_elu, x > 0.0f ? x : cpu_expm1f(x))
CPU_MAP(map_relu, x > 0.0f ? x : 0.0f)
CPU_MAP(map_sigmoid, cpu_sigmoidf(x))
CPU_MAP(map_gelu, cpu_geluf(x))
CPU_MAP(map_gelu_quick, cpu_gelu_quickf(x))
CPU_MAP(map_silu, cpu_siluf(x))
CPU_MAP(map_hardswish, x *fminf(1.0f, fmaxf(0.0f, (x + 3.0f) / 6.0f)))
CPU_MAP(map_hardsigmoid, fminf(1.0f, fmaxf(0.0f, (x + 3.0f) / 6.0f)))
CPU_MAP(map_exp, cpu_expf(x))
CPU_MAP(map_expm1, cpu_expm1f(x))
CPU_MAP(map_softplus, cpu_softplusf(x))
CPU_MAP(map_gelu_erf, cpu_gelu_erff(x))
// p[1] alpha_n, p[2] alpha_p, p[3] beta, p[4] eps
CPU_MAP(map_xielu, x > 0.0f ? p[2] * x * x + p[3] * x
                            : (cpu_expm1f(x < p[4] ? x : p[4]) - x) * p[1] + p[3] * x)
CPU_MAP(map_floor, floorf(x))
CPU_MAP(map_ceil, ceilf(x))
CPU_MAP(map_round, roundf(x))
CPU_MAP(map_trunc, truncf(x))

// By the operation's first parameter, which the host has checked to be below the count.
static const cpu_map_fn unary_maps[GGML_UNARY_OP_COUNT] = {
    [GGML_UNARY_OP_ABS] = map_abs,
    [GGML_UNARY_OP_SGN] = map_sgn,
    [GGML_UNARY_OP_NEG] = map_neg,
    [GGML_UNARY_OP_STEP] = map_step,
    [GGML_UNARY_OP_TANH] = map_tanh,
    [GGML_UNARY_OP_ELU] = map_elu,
    [GGML_UNARY_OP_RELU] = map_relu,
    [GGML_UNARY_OP_SIGMOID] = map_sigmoid,
    [GGML_UNARY_OP_GELU] = map_gelu,
    [GGML_UNARY_OP_GELU_QUICK] = map_gelu_quick,
    [GGML_UNARY_OP_SILU] = map_silu,
    [GGML_UNARY_OP_HARDSWISH] = map_hardswish,
    [GGML_UNARY_OP_HARDSIGMOID] = map_hardsigmoid,
    [GGML_UNARY_OP_EXP] = map_exp,
    [GGML_UNARY_OP_EXPM1] = map_expm1,
    [GGML_UNARY_OP_SOFTPLUS] = map_softplus,
    [GGML_UNARY_OP_GELU_ERF] = map_gelu_erf,
    [GGML_UNARY_OP_XIELU] = map_xielu,
    [GGML_UNARY_OP_FLOOR] = map_floor,
    [GGML_UNARY_OP_CEIL] = map_ceil,
    [GGML_UNARY_OP_ROUND] = map_round,
    [GGML_UNARY_OP_TRUNC] = map_trunc,
};

enum ggml_status CPU_FN(cpu_unary)(const struct cpu_task *task) {
    return cpu_map(task, unary_maps[ggml_get_op_params_i32(task->dst, 0)]);
}

enum ggml_status CPU_FN(cpu_sqr)(const struct cpu_task *task) {
    return cpu_map(task, map_sqr);
}

enum ggml_status CPU_FN(cpu_sqrt)(const struct cpu_task *task) {
    return cpu_map(task, map_sqrt);
}

enum ggml_status CPU_FN(cpu_log)(const struct cpu_task *task) {
    return cpu_map(task, map_log);
}

enum ggml_status CPU_FN(cpu_sin)(const struct cpu_task *task) {
    return cpu_map(task, map_sin);
}

enum ggml_status CPU_FN(cpu_cos)(const struct cpu_task *task) {
    return cpu_map(task, map_cos);
}
