// SPDX-License-Identifier: MIT
// Which devices GGML_ISOLATE means, while a plugin's devices are listed. Making them before the
// list is published means that no application ever gets the device itself.
#include "plugin/registry/isolation.h"

#include <stdio.h>

#include "base/env.h"
#include "base/status.h"
#include "ggml-impl.h"
#include "plugin/discover/filter.h"

// A CPU device in the host's memory is what applications fall back on: they give it threads, and
// functions of their own to call. A list of nothing but commas means nothing, unlike one of
// exclusions alone.
static bool is_meant(const struct device_filter *filter, const struct host_plugin *plugin,
                     const struct host_device *device) {
    const bool is_empty = filter->n_wanted == 0 && filter->n_excluded == 0;
    if (device->hidden || device->isolated || is_empty ||
        !filter_allows_device(filter, plugin->name, device->name, device->device_id)) {
        return false;
    }
    if (device->host_memory && filter->n_wanted > 0)
        GGML_LOG_WARN("GGML_ISOLATE: %s computes in the application's memory and stays in its "
                      "process\n",
                      device->name);
    return !device->host_memory;
}

static enum ggml_host_status isolate(const struct host_plugin *plugin, size_t number,
                                     struct host_device *device) {
    const enum ggml_host_status status =
        isolation_maker()->make(plugin, number, device, &device->isolated);
    if (status == GGML_HOST_OK) return GGML_HOST_OK;
    device->hidden = true;
    char why[512];
    snprintf(why, sizeof(why), "%s", ggml_last_error());
    ggml_fail(status, "GGML_ISOLATE: %s can't be computed by another process and is left out: %s",
              device->name, why);
    GGML_LOG_ERROR("%s\n", ggml_last_error());
    return status;
}

enum ggml_host_status isolation_apply(const struct host_plugin *plugin, struct device_list *list,
                                      size_t first) {
    const char *value = ggml_env(GGML_ENV_GGML_ISOLATE);
    enum ggml_host_status status = GGML_HOST_OK;
    struct arena arena = {0};
    struct device_filter filter;
    if (!value) return GGML_HOST_OK;
    const bool known = filter_parse(&filter, value, &arena);
    if (!known) status = ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for GGML_ISOLATE");
    for (size_t i = first; i < list->count; ++i) {
        struct host_device *device = &list->items[i];
        if (!known) {
            device->hidden = true;
        } else if (is_meant(&filter, plugin, device)) {
            const enum ggml_host_status isolated = isolate(plugin, i, device);
            if (isolated != GGML_HOST_OK) status = isolated;
        }
    }
    arena_free(&arena);
    return status;
}
