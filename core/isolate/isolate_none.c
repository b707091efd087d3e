// SPDX-License-Identifier: MIT
// Systems where devices can't be isolated: all functions return UNSUPPORTED, or treat every device
// as not isolated.
#include "base/status.h"
#include "device/check.h"
#include "isolate/isolate.h"

enum ggml_host_status ggml_host_isolate(ggml_backend_dev_t device,
                                        const struct ggml_isolate_options *options,
                                        ggml_backend_dev_t *out_device) {
    (void)device;
    (void)options;
    if (out_device) *out_device = NULL;
    return ggml_fail(GGML_HOST_UNSUPPORTED, "%s: devices are isolated on Linux only", __func__);
}

enum ggml_host_status ggml_host_isolated_free(ggml_backend_dev_t device) {
    if (!device) return GGML_HOST_OK;
    return ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: %s is not an isolated device", __func__,
                     device_label(device));
}

enum ggml_host_status isolated_device_new(const struct host_plugin *plugin, size_t number,
                                          const struct host_device *device,
                                          ggml_backend_dev_t *out_device) {
    (void)plugin;
    (void)number;
    (void)device;
    *out_device = NULL;
    return ggml_fail(GGML_HOST_UNSUPPORTED, "devices are isolated on Linux only");
}

void isolated_device_free(ggml_backend_dev_t device) {
    (void)device;
}

const char *ggml_host_isolated_lost(ggml_backend_dev_t device) {
    (void)device;
    return NULL;
}

int64_t ggml_host_isolated_process(ggml_backend_dev_t device) {
    (void)device;
    return 0;
}

void ggml_host_isolated_time(ggml_backend_dev_t device, int64_t *out_total_ns,
                             int64_t *out_device_ns) {
    (void)device;
    if (out_total_ns) *out_total_ns = 0;
    if (out_device_ns) *out_device_ns = 0;
}
