// SPDX-License-Identifier: MIT
// Streams of the CPU device, and their settings.
#include <stdint.h>

#include "base/status.h"
#include "cpu_api/find.h"
#include "ggml-backend-impl.h"

// GUID of ggml's CPU backend, which programs compare with.
static ggml_guid cpu_guid = {0xaa, 0x67, 0xc7, 0x43, 0x96, 0xe6, 0xa3, 0x8a,
                             0xe3, 0xaf, 0xea, 0x92, 0x36, 0xbc, 0xfc, 0x89};

void ggml_cpu_init(void) {
    cpu_api_device(__func__);
}

ggml_backend_reg_t ggml_backend_cpu_reg(void) {
    const ggml_backend_dev_t device = cpu_api_device(__func__);
    return device ? ggml_backend_dev_backend_reg(device) : NULL;
}

ggml_backend_t ggml_backend_cpu_init(void) {
    const ggml_backend_dev_t device = cpu_api_device(__func__);
    return device ? ggml_backend_dev_init(device, NULL) : NULL;
}

bool ggml_backend_is_cpu(ggml_backend_t backend) {
    return backend && ggml_guid_matches(ggml_backend_guid(backend), &cpu_guid);
}

// A function of the stream's own backend, or NULL after recording why `function` fails.
static void *stream_function(ggml_backend_t backend, const char *function, const char *name) {
    if (!ggml_backend_is_cpu(backend)) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: the stream is %s; ggml_backend_is_cpu() tells",
                  function, backend ? "not of the CPU" : "NULL");
        return NULL;
    }
    const ggml_backend_reg_t reg = ggml_backend_dev_backend_reg(ggml_backend_get_device(backend));
    void *address = reg ? ggml_backend_reg_get_proc_address(reg, name) : NULL;
    if (!address) ggml_fail(GGML_HOST_UNSUPPORTED, "%s: this CPU plugin has no %s", function, name);
    return address;
}

void ggml_backend_cpu_set_n_threads(ggml_backend_t backend_cpu, int n_threads) {
    void *address = stream_function(backend_cpu, __func__, "ggml_backend_set_n_threads");
    // By way of an integer: ISO C has no conversion between data and function pointers.
    if (address) ((void (*)(ggml_backend_t, int))(uintptr_t)address)(backend_cpu, n_threads);
}

void ggml_backend_cpu_set_threadpool(ggml_backend_t backend_cpu, ggml_threadpool_t threadpool) {
    void *address = stream_function(backend_cpu, __func__, "ggml_backend_cpu_set_threadpool");
    if (!address) return;
    const struct ggml_threadpool_head *head = (const void *)threadpool;
    // Workers of a pool run code of the plugin that made it; that plugin may differ from the
    // stream's when two are loaded.
    if (head && head->api != cpu_api_of(ggml_backend_get_device(backend_cpu))) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "%s: the pool was made by another CPU plugin than the stream", __func__);
        return;
    }
    ((void (*)(ggml_backend_t, ggml_threadpool_t))(uintptr_t)address)(backend_cpu, threadpool);
}

void ggml_backend_cpu_set_abort_callback(ggml_backend_t backend_cpu,
                                         ggml_abort_callback abort_callback,
                                         void *abort_callback_data) {
    typedef void (*setter)(ggml_backend_t, ggml_abort_callback, void *);
    void *address = stream_function(backend_cpu, __func__, "ggml_backend_set_abort_callback");
    if (address) ((setter)(uintptr_t)address)(backend_cpu, abort_callback, abort_callback_data);
}

void ggml_backend_cpu_set_use_ref(ggml_backend_t backend_cpu, bool use_ref) {
    void *address = stream_function(backend_cpu, __func__, "ggml_backend_cpu_set_use_ref");
    if (address) ((void (*)(ggml_backend_t, bool))(uintptr_t)address)(backend_cpu, use_ref);
}

void ggml_numa_init(enum ggml_numa_strategy numa) {
    const ggml_backend_reg_t reg = ggml_backend_cpu_reg();
    void *address =
        reg ? ggml_backend_reg_get_proc_address(reg, "ggml_backend_cpu_numa_init") : NULL;
    if (address) ((void (*)(enum ggml_numa_strategy))(uintptr_t)address)(numa);
}

bool ggml_is_numa(void) {
    struct ggml_host_topology topology = {.size = sizeof(topology)};
    return ggml_host_get_topology(&topology) == GGML_HOST_OK && topology.n_numa_nodes > 1;
}
