// SPDX-License-Identifier: MIT
// The plugin and the fake runtime, for several tests.
#define _GNU_SOURCE
#include "metal_test.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>

struct metal_runtime metal;

static void find(void *library, const char *name, void *out_function) {
    *(void **)out_function = dlsym(library, name);
    if (!*(void **)out_function) fail_msg("%s", dlerror());
}

void metal_find_runtime(void) {
    void *library = dlopen("libfakemetal.so", RTLD_NOW);
    if (!library) fail_msg("%s", dlerror());
    find(library, "fake_metal_fail", &metal.fail_after);
    find(library, "fake_metal_failed", &metal.failed);
    find(library, "fake_metal_live", &metal.live);
    find(library, "fake_metal_faults", &metal.faults);
    find(library, "fake_metal_calls", &metal.calls);
    find(library, "fake_metal_compiled", &metal.compiled);
    find(library, "fake_metal_threads", &metal.threads);
    find(library, "fake_metal_drop", &metal.drop);
    find(library, "fake_metal_dropped", &metal.dropped);
}

ggml_backend_reg_t metal_load(void) {
    ggml_backend_reg_t reg = NULL;
    return ggml_plugin_load(METAL_PLUGIN, &reg) == GGML_HOST_OK ? reg : NULL;
}

ggml_backend_dev_t metal_device(ggml_backend_reg_t reg, size_t i) {
    if (!reg) fail_msg("%s", ggml_last_error());
    return ggml_backend_reg_dev_get(reg, i);
}

void metal_unload(ggml_backend_reg_t reg) {
    if (reg) assert_int_equal(ggml_plugin_unload(reg), GGML_HOST_OK);
    assert_int_equal(metal.faults(), 0);
}

struct ggml_context *metal_context(void) {
    struct ggml_context *context = ggml_init((struct ggml_init_params){1 << 22, NULL, true});
    assert_non_null(context);
    return context;
}

struct ggml_tensor *metal_matrix(struct ggml_context *context, int64_t n, int64_t m) {
    return ggml_new_tensor_2d(context, GGML_TYPE_F32, n, m);
}

void metal_fill(struct ggml_tensor *tensor, uint32_t seed) {
    const size_t n = (size_t)ggml_nelements(tensor);
    float *values = malloc(n * sizeof(*values));
    assert_non_null(values);
    for (size_t i = 0; i < n; ++i) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = (float)(seed >> 8) / 8388608.0f - 1.0f;
    }
    ggml_backend_tensor_set(tensor, values, 0, n * sizeof(*values));
    free(values);
}

double metal_worst(const struct ggml_tensor *result, const float *expected) {
    const size_t n = (size_t)ggml_nelements(result);
    float *values = malloc(n * sizeof(*values));
    double worst = 0.0;
    assert_non_null(values);
    ggml_backend_tensor_get(result, values, 0, n * sizeof(*values));
    for (size_t i = 0; i < n; ++i) {
        const double off = fabs((double)values[i] - (double)expected[i]);
        if (!(off <= worst)) worst = isnan(off) ? INFINITY : off;
    }
    free(values);
    return worst;
}
