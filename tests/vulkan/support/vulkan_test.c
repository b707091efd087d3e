// SPDX-License-Identifier: MIT
// Starts and stops the plugin, counts its messages, and computes small graphs on its device.
#define _POSIX_C_SOURCE 200809L
#include "vulkan_test.h"

#include <stdatomic.h>

#include "base/sanitizer.h"

static atomic_int n_messages, n_recorded, n_dispatches, n_barriers;

static void log_line(enum ggml_log_level level, const char *text, void *user) {
    (void)level;
    (void)user;
    if (strstr(text, "vulkan: validation:")) {
        atomic_fetch_add(&n_messages, 1);
        printf("# %s", text);
    }
    int nodes, dispatches, barriers;
    if (sscanf(text, "vulkan: recorded %d nodes as %d dispatches with %d", &nodes, &dispatches,
               &barriers) == 3) {
        atomic_fetch_add(&n_recorded, 1);
        atomic_fetch_add(&n_dispatches, dispatches);
        atomic_fetch_add(&n_barriers, barriers);
    }
}

ggml_backend_reg_t vulkan_start(const char *debug, const char *devices) {
    setenv("GGML_VULKAN_CACHE", "0", 0);
    setenv("GGML_VULKAN_DEBUG", debug, 1);
    setenv("GGML_VULKAN_DEVICES", devices, 1);
    atomic_store(&n_messages, 0);
    atomic_store(&n_recorded, 0);
    atomic_store(&n_dispatches, 0);
    atomic_store(&n_barriers, 0);
    ggml_log_set(log_line, NULL);
    ggml_backend_dev_count(); // attaches the host to what is built in
    return gvk_reg_start();
}

void vulkan_stop(void) {
    gvk_reg_stop();
}

ggml_backend_dev_t vulkan_device(ggml_backend_reg_t reg) {
    const size_t n = reg ? reg->table->get_device_count(reg) : 0;
    return n ? reg->table->get_device(reg, n - 1) : NULL;
}

int vulkan_n_messages(void) {
    return atomic_load(&n_messages);
}

int vulkan_n_recorded(void) {
    return atomic_load(&n_recorded);
}

int vulkan_n_dispatches(void) {
    return atomic_load(&n_dispatches);
}

int vulkan_n_barriers(void) {
    return atomic_load(&n_barriers);
}

bool vulkan_graph_new(ggml_backend_buffer_type_t buft, int64_t n, int n_steps,
                      struct vulkan_graph *out_graph) {
    const struct ggml_init_params params = {
        .mem_size = (size_t)(n_steps + 4) * ggml_tensor_overhead() + ggml_graph_overhead(),
        .no_alloc = true};
    memset(out_graph, 0, sizeof(*out_graph));
    out_graph->ctx = ggml_init(params);
    if (!out_graph->ctx) return false;
    out_graph->x = ggml_new_tensor_1d(out_graph->ctx, GGML_TYPE_F32, n);
    out_graph->y = out_graph->x;
    for (int i = 0; i < n_steps; ++i) {
        out_graph->y = i % 2 == 0 ? ggml_neg(out_graph->ctx, out_graph->y)
                                  : ggml_abs(out_graph->ctx, out_graph->y);
    }
    out_graph->graph = ggml_new_graph(out_graph->ctx);
    ggml_build_forward_expand(out_graph->graph, out_graph->y);
    out_graph->buffer = ggml_backend_alloc_ctx_tensors_from_buft(out_graph->ctx, buft);
    return out_graph->buffer != NULL;
}

void vulkan_graph_free(struct vulkan_graph *graph) {
    ggml_backend_buffer_free(graph->buffer);
    ggml_free(graph->ctx);
}

#if GGML_ADDRESS_SANITIZER
// Drivers and layers stay mapped, so that what they leak is found to be theirs.
__attribute__((visibility("default"))) int dlclose(void *library);
int dlclose(void *library) {
    (void)library;
    return 0;
}
#endif

void vulkan_set(struct ggml_tensor *t, const float *numbers) {
    char *data = malloc(ggml_nbytes(t));
    assert_non_null(data);
    if (t->type == GGML_TYPE_F32)
        memcpy(data, numbers, ggml_nbytes(t));
    else
        ggml_quantize_chunk(t->type, numbers, data, 0, ggml_nrows(t), t->ne[0], NULL);
    ggml_backend_tensor_set(t, data, 0, ggml_nbytes(t));
    free(data);
}

float vulkan_number(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return (float)(*seed >> 20) / 2048 - 1;
}

void vulkan_fill(struct ggml_tensor *t, uint32_t seed) {
    const int64_t n = ggml_nelements(t);
    float *numbers = malloc((size_t)n * sizeof(float));
    assert_non_null(numbers);
    for (int64_t i = 0; i < n; ++i)
        numbers[i] = vulkan_number(&seed);
    vulkan_set(t, numbers);
    free(numbers);
}

void *vulkan_compute(ggml_backend_dev_t device, struct ggml_context *ctx, struct ggml_tensor *y,
                     void (*fill)(struct ggml_tensor *y)) {
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, y);
    ggml_backend_t stream = ggml_backend_dev_init(device, NULL);
    assert_non_null(stream);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(ctx, stream);
    assert_non_null(buffer);
    fill(y);
    assert_int_equal(ggml_backend_graph_compute(stream, graph), GGML_STATUS_SUCCESS);
    void *bytes = malloc(ggml_nbytes(y));
    ggml_backend_tensor_get(y, bytes, 0, ggml_nbytes(y));
    ggml_backend_free(stream);
    ggml_backend_buffer_free(buffer);
    ggml_free(ctx);
    return bytes;
}

double vulkan_error(const float *got, const float *wanted, int64_t n) {
    double error = 0, power = 0;
    for (int64_t i = 0; i < n; ++i) {
        const double difference = (double)got[i] - (double)wanted[i];
        error += difference * difference;
        power += (double)wanted[i] * (double)wanted[i];
    }
    return error / power;
}
