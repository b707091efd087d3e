// SPDX-License-Identifier: MIT
// Gated linear units: dst = act(x) * g.
#include "ggml-shape.h"
#include "simd/vmath.h"

typedef void (*glu_fn)(float *y, const float *x, const float *g, int64_t n, const float *params);

// From an expression in x, g and p (the parameters).
#define GLU(name, expression)                                                                      \
    static void name(float *y, const float *xs, const float *gs, int64_t n, const float *p) {      \
        (void)p;                                                                                   \
        CPU_INDEPENDENT                                                                            \
        for (int64_t i = 0; i < n; ++i) {                                                          \
            const float x = xs[i], g = gs[i];                                                      \
            y[i] = (expression);                                                                   \
        }                                                                                          \
    }

// No more than a limit, and no less than its negative. NaN stays NaN: it compares as false.
static inline float at_most(float x, float limit) {
    return x > limit ? limit : x;
}

static inline float within(float x, float limit) {
    return at_most(x < -limit ? -limit : x, limit);
}

// SwiGLU of OpenAI's gpt-oss: both inputs are limited. p[2] alpha, p[3] limit.
static inline float swiglu_oai(float x, float g, const float *p) {
    const float limited_x = at_most(x, p[3]), limited_g = within(g, p[3]);
    return limited_x / (1.0f + cpu_expf(-p[2] * limited_x)) * (limited_g + 1.0f);
}

// SwiGLU with limits: of x from above, of the gate on both sides. p[3] limit.
static inline float swiglu_clamp(float x, float g, const float *p) {
    return cpu_siluf(at_most(x, p[3])) * within(g, p[3]);
}

GLU(reglu, x > 0.0f ? x * g : 0.0f) // whatever the gate is
GLU(geglu, cpu_geluf(x) * g)
GLU(swiglu, cpu_siluf(x) * g)
GLU(swiglu_oai_row, swiglu_oai(x, g, p))
GLU(geglu_erf, cpu_gelu_erff(x) * g)
GLU(geglu_quick, cpu_gelu_quickf(x) * g)
GLU(swiglu_clamp_row, swiglu_clamp(x, g, p))

static const glu_fn glus[GGML_GLU_OP_COUNT] = {
    [GGML_GLU_OP_REGLU] = reglu,
    [GGML_GLU_OP_GEGLU] = geglu,
    [GGML_GLU_OP_SWIGLU] = swiglu,
    [GGML_GLU_OP_SWIGLU_OAI] = swiglu_oai_row,
    [GGML_GLU_OP_GEGLU_ERF] = geglu_erf,
    [GGML_GLU_OP_GEGLU_QUICK] = geglu_quick,
    [GGML_GLU_OP_SWIGLU_CLAMP] = swiglu_clamp_row,
};

struct glu {
    const struct ggml_tensor *x, *g;
    int64_t x_offset, g_offset; // elements into their rows
    glu_fn fn;
    float params[4];
};

// Addresses x and the gate: two operands, or the halves of each row of one, in either order.
static struct glu prepare(const struct ggml_tensor *dst) {
    const bool split = dst->src[1] != NULL;
    const bool swapped = ggml_get_op_params_i32(dst, 1) != 0;
    struct glu glu = {
        .x = dst->src[0],
        .g = split ? dst->src[1] : dst->src[0],
        .x_offset = !split && swapped ? dst->ne[0] : 0,
        .g_offset = !split && !swapped ? dst->ne[0] : 0,
        .fn = glus[ggml_get_op_params_i32(dst, 0)],
    };
    memcpy(glu.params, dst->op_params, sizeof(glu.params));
    return glu;
}

// Elements [i0, i0 + n) of a row.
static void compute_chunk(const struct ggml_tensor *dst, struct ggml_row at, int64_t i0, int64_t n,
                          const void *argument) {
    const struct glu *glu = argument;
    float buffers[3][CPU_CHUNK];
    const enum ggml_type type = dst->type;
    char *row = ggml_row_data(dst, at);
    const float *x = cpu_load(buffers[0], ggml_row_data(glu->x, at), type, glu->x_offset + i0, n);
    const float *g = cpu_load(buffers[1], ggml_row_data(glu->g, at), type, glu->g_offset + i0, n);
    float *y = cpu_target(buffers[2], row, type, i0);
    glu->fn(y, x, g, n, glu->params);
    cpu_store(row, type, i0, y, n);
}

enum ggml_status CPU_FN(cpu_glu)(const struct cpu_task *task) {
    const struct glu glu = prepare(task->dst);
    return cpu_each_chunk(task, compute_chunk, &glu);
}
