// SPDX-License-Identifier: MIT
// Tensors of random numbers, and the comparison of a node's result at each instruction-set level
// with an oracle.
#define _POSIX_C_SOURCE 200809L
#include "cpu_test.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/level.h"
#include "support/setenv.h"

struct ggml_context *test_context(size_t megabytes) {
    struct ggml_context *ctx = ggml_init((struct ggml_init_params){.mem_size = megabytes << 20});
    assert_non_null(ctx);
    return ctx;
}

static uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void fill(struct ggml_tensor *t, uint32_t seed, float low, float high) {
    uint32_t state = seed * 2654435761u + 12345u;
    for (int64_t r = 0; r < ggml_nrows(t); ++r) {
        const int i1 = (int)(r % t->ne[1]), i2 = (int)(r / t->ne[1] % t->ne[2]);
        for (int64_t i0 = 0; i0 < t->ne[0]; ++i0) {
            const float unit = (float)next_random(&state) / 16777216.0f;
            ggml_set_f32_nd(t, (int)i0, i1, i2, (int)(r / t->ne[1] / t->ne[2]),
                            low + unit * (high - low));
        }
    }
}

struct ggml_tensor *test_tensor(struct ggml_context *ctx, enum ggml_type type,
                                struct extents extents, uint32_t seed, float low, float high) {
    struct ggml_tensor *t = ggml_new_tensor(ctx, type, 4, extents.ne);
    fill(t, seed, low, high);
    return t;
}

struct ggml_tensor *test_gapped(struct ggml_context *ctx, enum ggml_type type,
                                struct extents extents, uint32_t seed, float low, float high) {
    const int64_t *ne = extents.ne;
    struct ggml_tensor *wide = ggml_new_tensor_4d(ctx, type, ne[0] + 3, ne[1] + 1, ne[2], ne[3]);
    memset(wide->data, 0x7f, ggml_nbytes(wide));
    struct ggml_tensor *t = ggml_view_4d(ctx, wide, ne[0], ne[1], ne[2], ne[3], wide->nb[1],
                                         wide->nb[2], wide->nb[3], 2 * ggml_type_size(type));
    fill(t, seed, low, high);
    return t;
}

struct ggml_tensor *test_states(struct ggml_context *ctx, struct ggml_tensor *ids,
                                int64_t n_states) {
    enum { D_STATE = 4, HEAD_DIM = 4 };
    const int64_t n = ids->ne[0];
    return ggml_ssm_scan(ctx,
                         ggml_new_tensor_4d(ctx, GGML_TYPE_F32, D_STATE, HEAD_DIM, 1, n_states),
                         ggml_new_tensor_4d(ctx, GGML_TYPE_F32, HEAD_DIM, 1, 1, n),
                         ggml_new_tensor_3d(ctx, GGML_TYPE_F32, 1, 1, n),
                         ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 1, 1),
                         ggml_new_tensor_4d(ctx, GGML_TYPE_F32, D_STATE, 1, 1, n),
                         ggml_new_tensor_4d(ctx, GGML_TYPE_F32, D_STATE, 1, 1, n), ids, 1);
}

struct ggml_cgraph *test_graph(struct ggml_context *ctx, struct ggml_tensor *result) {
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    assert_non_null(graph);
    ggml_build_forward_expand(graph, result);
    return graph;
}

enum ggml_status test_compute(struct ggml_cgraph *graph, int n_threads) {
    ggml_backend_t stream = ggml_backend_cpu_init();
    assert_non_null(stream);
    ggml_backend_cpu_set_n_threads(stream, n_threads);
    const enum ggml_status status = ggml_backend_graph_compute(stream, graph);
    ggml_backend_free(stream);
    return status;
}

int test_level_count(void) {
    int count = 0, usable = 0;
    const struct cpu_level *levels = cpu_levels(&count);
    while (usable < count && (levels[usable].features & ~ggml_host_cpu_features()) == 0)
        ++usable;
    return usable;
}

const char *test_use_level(int i) {
    int count = 0;
    const char *name = cpu_levels(&count)[i].name;
    setenv("GGML_CPU_LEVEL", name, 1);
    cpu_level_reset();
    ggml_cpu_init();
    assert_string_equal(cpu_level()->name, name);
    return name;
}

void test_use_best_level(void) {
    unsetenv("GGML_CPU_LEVEL");
    cpu_level_reset();
}

double test_tolerance(enum ggml_type type) {
    return type == GGML_TYPE_F32 ? 2e-6 : type == GGML_TYPE_F16 ? 6e-4 : 5e-3;
}

double test_get(const struct ggml_tensor *t, int64_t i0, int64_t i1, int64_t i2, int64_t i3) {
    return (double)ggml_get_f32_nd(t, (int)i0, (int)i1, (int)i2, (int)i3);
}

static bool is_close(double got, double want, double tolerance) {
    if (isnan(want)) return isnan(got);
    if (fabs(want) > FLT_MAX) return isinf(got) && (got > 0) == (want > 0);
    return fabs(got - want) <= tolerance * (1.0 + fabs(want));
}

static void compare(const struct ggml_tensor *t, const double *want, const char *what) {
    int64_t at = 0;
    for (int64_t r = 0; r < ggml_nrows(t); ++r) {
        const int64_t i[3] = {r % t->ne[1], r / t->ne[1] % t->ne[2], r / t->ne[1] / t->ne[2]};
        for (int64_t i0 = 0; i0 < t->ne[0]; ++i0, ++at) {
            const double got = t->type == GGML_TYPE_I32
                                   ? ggml_get_i32_nd(t, (int)i0, (int)i[0], (int)i[1], (int)i[2])
                                   : test_get(t, i0, i[0], i[1], i[2]);
            if (is_close(got, want[at], test_tolerance(t->type))) continue;
            fail_msg("%s at [%lld %lld %lld %lld]: got %.9g, expected %.9g", what, (long long)i0,
                     (long long)i[0], (long long)i[1], (long long)i[2], got, want[at]);
        }
    }
}

static double *expected(const struct ggml_tensor *t, test_oracle oracle, const void *context) {
    double *want = malloc((size_t)ggml_nelements(t) * sizeof(*want));
    int64_t at = 0;
    for (int64_t r = 0; r < ggml_nrows(t); ++r) {
        int64_t i[4] = {0, r % t->ne[1], r / t->ne[1] % t->ne[2], r / t->ne[1] / t->ne[2]};
        for (; i[0] < t->ne[0]; ++i[0])
            want[at++] = oracle(t, i, context);
    }
    return want;
}

void test_against(struct ggml_context *ctx, struct ggml_tensor *result, test_oracle oracle,
                  const void *context, const char *what) {
    struct ggml_cgraph *graph = test_graph(ctx, result);
    double *want = expected(result, oracle, context);
    for (int level = 0; level < test_level_count(); ++level) {
        const char *name = test_use_level(level);
        for (int n_threads = 1; n_threads <= 3; ++n_threads) {
            char where[160];
            snprintf(where, sizeof(where), "%s, %s, %s, %d threads", what,
                     ggml_type_name(result->type), name, n_threads);
            if (test_compute(graph, n_threads) != GGML_STATUS_SUCCESS) {
                fail_msg("%s: %s", where, ggml_last_error());
            }
            compare(result, want, where);
        }
    }
    test_use_best_level();
    free(want);
}
