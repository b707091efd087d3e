// SPDX-License-Identifier: MIT
// The CPU plugin publishes its functions as a table under the name GGML_CPU_API_PROC. The first CPU
// device that returns it is used, whether its plugin is built in or loaded.
#include "cpu_api/find.h"

#include "base/status.h"

const struct ggml_cpu_api *cpu_api_of(ggml_backend_dev_t device) {
    const ggml_backend_reg_t reg = ggml_backend_dev_backend_reg(device);
    return reg ? ggml_backend_reg_get_proc_address(reg, GGML_CPU_API_PROC) : NULL;
}

// First CPU device with this table of functions; NULL: with any.
static ggml_backend_dev_t find_device(const struct ggml_cpu_api *api) {
    const size_t count = ggml_backend_dev_count();
    for (size_t i = 0; i < count; ++i) {
        const ggml_backend_dev_t device = ggml_backend_dev_get(i);
        if (!device || ggml_backend_dev_type(device) != GGML_BACKEND_DEVICE_TYPE_CPU) continue;
        const struct ggml_cpu_api *found = cpu_api_of(device);
        if (found && (!api || found == api)) return device;
    }
    return NULL;
}

ggml_backend_dev_t cpu_api_device_of(const struct ggml_cpu_api *api) {
    return find_device(api);
}

ggml_backend_dev_t cpu_api_device(const char *function) {
    ggml_backend_dev_t device = find_device(NULL);
    // Programs that never load plugins expect the CPU to be there, as in ggml.
    if (device) return device;
    size_t loaded = 0;
    ggml_plugin_load_all(NULL, &loaded);
    device = find_device(NULL);
    if (!device) {
        ggml_fail(GGML_HOST_NO_DEVICE,
                  "%s: there is no CPU device; put ggml-cpu where plugins are "
                  "looked for (GGML_PLUGIN_PATH) or build it in",
                  function);
    }
    return device;
}

const struct ggml_cpu_api *cpu_api_find(const char *function) {
    const ggml_backend_dev_t device = cpu_api_device(function);
    return device ? cpu_api_of(device) : NULL;
}
