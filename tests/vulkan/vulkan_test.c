// SPDX-License-Identifier: MIT
#define _POSIX_C_SOURCE 200809L
#include "vulkan_test.h"

#include <stdatomic.h>

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
    return vk_reg_start();
}

void vulkan_stop(void) {
    vk_reg_stop();
}

ggml_backend_dev_t vulkan_device(ggml_backend_reg_t reg) {
    const size_t n = reg ? reg->iface.get_device_count(reg) : 0;
    return n ? reg->iface.get_device(reg, n - 1) : NULL;
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

#if defined(__SANITIZE_ADDRESS__)
// Drivers and layers stay mapped, so that what they leak is found to be theirs.
__attribute__((visibility("default"))) int dlclose(void *library);
int dlclose(void *library) {
    (void)library;
    return 0;
}
#endif
