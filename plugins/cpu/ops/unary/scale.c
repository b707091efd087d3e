// SPDX-License-Identifier: MIT
// Functions of one operand with parameters: scale, clamp, leaky_relu; and fill.
#include "simd/map.h"

CPU_MAP(map_scale, x *p[0] + p[1])
// NaN becomes the upper limit.
CPU_MAP(map_clamp_low, x > p[0] ? x : p[0])
CPU_MAP(map_clamp_high, x < p[1] ? x : p[1])
CPU_MAP(map_leaky_relu, x > 0.0f ? x : p[0] * x)

// Two passes, since each map is a vector loop of its own. The lower limit comes last and wins if
// the limits are exchanged.
static void map_clamp(float *y, const float *x, int64_t n, const float *p) {
    map_clamp_high(y, x, n, p);
    map_clamp_low(y, y, n, p);
}

// The operand only has the shape.
static void map_fill(float *y, const float *x, int64_t n, const float *p) {
    (void)x;
    for (int64_t i = 0; i < n; ++i)
        y[i] = p[0];
}

enum ggml_status CPU_FN(cpu_scale)(const struct cpu_task *task) {
    return cpu_map(task, map_scale);
}

enum ggml_status CPU_FN(cpu_clamp)(const struct cpu_task *task) {
    return cpu_map(task, map_clamp);
}

enum ggml_status CPU_FN(cpu_leaky_relu)(const struct cpu_task *task) {
    return cpu_map(task, map_leaky_relu);
}

enum ggml_status CPU_FN(cpu_fill)(const struct cpu_task *task) {
    return cpu_map(task, map_fill);
}
