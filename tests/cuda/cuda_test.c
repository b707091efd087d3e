// SPDX-License-Identifier: MIT
// The plugin as a program loads it, on the fake driver.
#define _GNU_SOURCE
#include "cuda_test.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct cuda_driver driver;
static ggml_backend_reg_t registry;

void cuda_find_driver(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) fail_msg("%s", dlerror());
    *(void **)&driver.fail_after = dlsym(library, "fake_cuda_fail");
    *(void **)&driver.failed = dlsym(library, "fake_cuda_failed");
    *(void **)&driver.live = dlsym(library, "fake_cuda_live");
    *(void **)&driver.calls = dlsym(library, "fake_cuda_calls");
    *(void **)&driver.launches = dlsym(library, "fake_cuda_launches");
    *(void **)&driver.set_seed = dlsym(library, "fake_cuda_set_seed");
    *(void **)&driver.drop_edge = dlsym(library, "fake_cuda_drop_edge");
    *(void **)&driver.dropped = dlsym(library, "fake_cuda_dropped");
    assert_non_null(driver.dropped);
}

ggml_backend_reg_t cuda_load(void) {
    ggml_backend_reg_t reg = NULL;
    return ggml_plugin_load(CUDA_PLUGIN, &reg) == GGML_HOST_OK ? reg : NULL;
}

ggml_backend_dev_t cuda_device(size_t i) {
    if (!registry) registry = cuda_load();
    if (!registry) fail_msg("%s", ggml_last_error());
    return ggml_backend_reg_dev_get(registry, i);
}

void cuda_unload(void) {
    if (!registry) return;
    assert_int_equal(ggml_plugin_unload(registry), GGML_HOST_OK);
    registry = NULL;
    assert_int_equal(driver.live(), 0);
}

struct ggml_context *cuda_context(void) {
    struct ggml_context *ctx =
        ggml_init((struct ggml_init_params){.mem_size = 1 << 20, .no_alloc = true});
    assert_non_null(ctx);
    return ctx;
}

void cuda_fill(struct ggml_tensor *tensor, uint32_t seed) {
    const size_t n = (size_t)ggml_nelements(tensor);
    float *values = malloc(n * sizeof(*values));
    void *data = malloc(ggml_nbytes(tensor));
    assert_true(values && data);
    for (size_t i = 0; i < n; ++i) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = (float)(int32_t)seed / 2147483648.0f;
        if (tensor->type == GGML_TYPE_I32) ((int32_t *)data)[i] = (int32_t)(seed >> 30);
        if (tensor->type == GGML_TYPE_I64) ((int64_t *)data)[i] = (int64_t)(i % 4);
    }
    if (tensor->type == GGML_TYPE_F32)
        memcpy(data, values, n * sizeof(*values));
    else if (tensor->type != GGML_TYPE_I32 && tensor->type != GGML_TYPE_I64)
        ggml_quantize_chunk(tensor->type, values, data, 0, ggml_nrows(tensor), tensor->ne[0], NULL);
    ggml_backend_tensor_set(tensor, data, 0, ggml_nbytes(tensor));
    free(data);
    free(values);
}

void cuda_read(const struct ggml_tensor *result, float *out) {
    ggml_backend_tensor_get(result, out, 0, ggml_nbytes(result));
}

double cuda_worst(const struct ggml_tensor *result, const float *expected) {
    const size_t n = (size_t)ggml_nelements(result);
    float *values = malloc(n * sizeof(*values));
    double worst = 0.0;
    assert_non_null(values);
    cuda_read(result, values);
    for (size_t i = 0; i < n; ++i) {
        const double difference = fabs((double)values[i] - (double)expected[i]);
        worst = difference > worst || isnan(difference) ? difference : worst;
        if (isnan(worst)) break;
    }
    free(values);
    return worst;
}
