// SPDX-License-Identifier: MIT
// What there is to know about the device beyond its properties (extension "ggml.device-info").
#include "entry/details.h"

#include <pthread.h>
#include <stdio.h>

#include "ggml-plugin.h"
#include "runtime/level.h"

enum { N_DETAILS = 3 };

static struct ggml_backend_feature details[N_DETAILS + 1];

// Facts that don't change while the process runs; filled once.
static void fill(void) {
    static char nodes[16];
    struct ggml_host_topology topology = {.size = sizeof(topology)};
    int n = 0;
    details[n++] = (struct ggml_backend_feature){"unified-memory", "yes"};
    details[n++] = (struct ggml_backend_feature){"cpu-level", cpu_level()->name};
    if (ggml_sdk_topology(&topology)) {
        snprintf(nodes, sizeof(nodes), "%u", topology.n_numa_nodes);
        details[n++] = (struct ggml_backend_feature){"cpu-numa-nodes", nodes};
    }
}

// Valid as long as the plugin is loaded, as the extension demands.
static const struct ggml_backend_feature *device_info(ggml_backend_dev_t device) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)device;
    pthread_once(&once, fill);
    return details;
}

const struct ggml_extension_device_info cpu_device_info = {
    .size = sizeof(cpu_device_info),
    .revision = GGML_EXTENSION_DEVICE_INFO_REVISION,
    .info = device_info,
};
