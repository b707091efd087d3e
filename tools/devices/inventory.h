// SPDX-License-Identifier: MIT
// Everything that ggml-devices shows, gathered once.
#ifndef DEVICES_INVENTORY_H
#define DEVICES_INVENTORY_H

#include "ggml-host.h"

struct device_entry {
    ggml_backend_dev_t handle;
    struct ggml_backend_dev_props props;
    struct ggml_device_info info;
};

struct inventory {
    ggml_plugin_report_t report;
    struct ggml_host_topology topology;
    struct device_entry *devices;
    size_t n_devices;
};

// Loads the plugins (from `plugin_path` only, if it is not NULL) and gathers. False after a message
// on stderr when that is impossible. inventory_free() ends it.
bool inventory_gather(struct inventory *out_inventory, const char *plugin_path);
void inventory_free(struct inventory *inventory);

const char *device_type_name(enum ggml_backend_dev_type type);
const char *machine_name(enum ggml_machine machine);
const char *memory_quality_name(enum ggml_memory_quality quality);
const char *thread_bound_name(enum ggml_thread_bound bound);
// Identifier of a status or stage for programs: "WRONG_CONTRACT", "negotiate".
const char *status_identifier(enum ggml_host_status status);

#endif
