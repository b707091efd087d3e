// SPDX-License-Identifier: MIT
#include "inventory.h"

#include <stdio.h>
#include <stdlib.h>

bool inventory_gather(struct inventory *out_inventory, const char *plugin_path) {
    *out_inventory = (struct inventory){.topology.size = sizeof(struct ggml_host_topology)};
    if (ggml_plugin_load_all(plugin_path, NULL) != GGML_HOST_OK) {
        fprintf(stderr, "ggml-devices: %s\n", ggml_last_error());
        return false;
    }
    if (ggml_host_get_topology(&out_inventory->topology) != GGML_HOST_OK) {
        fprintf(stderr, "ggml-devices: topology: %s\n", ggml_last_error());
    }
    const size_t count = ggml_backend_dev_count();
    out_inventory->report = ggml_plugin_report_new();
    out_inventory->devices = calloc(count + 1, sizeof(*out_inventory->devices));
    if (!out_inventory->report || !out_inventory->devices) {
        fputs("ggml-devices: out of memory\n", stderr);
        inventory_free(out_inventory);
        return false;
    }
    for (size_t i = 0; i < count; ++i) {
        struct device_entry *entry = &out_inventory->devices[out_inventory->n_devices++];
        entry->handle = ggml_backend_dev_get(i);
        entry->info.size = sizeof(entry->info);
        ggml_backend_dev_get_props(entry->handle, &entry->props);
        ggml_backend_dev_info(entry->handle, &entry->info);
    }
    return true;
}

void inventory_free(struct inventory *inventory) {
    free(inventory->devices);
    ggml_plugin_report_free(inventory->report);
    *inventory = (struct inventory){0};
}

const char *device_type_name(enum ggml_backend_dev_type type) {
    switch (type) {
    case GGML_BACKEND_DEVICE_TYPE_CPU: return "cpu";
    case GGML_BACKEND_DEVICE_TYPE_GPU: return "gpu";
    case GGML_BACKEND_DEVICE_TYPE_IGPU: return "igpu";
    case GGML_BACKEND_DEVICE_TYPE_ACCEL: return "accelerator";
    case GGML_BACKEND_DEVICE_TYPE_META: return "meta";
    }
    return "unknown";
}

const char *machine_name(enum ggml_machine machine) {
    switch (machine) {
    case GGML_MACHINE_NONE: return "unknown";
    case GGML_MACHINE_X86_64: return "x86-64";
    case GGML_MACHINE_AARCH64: return "aarch64";
    case GGML_MACHINE_X86: return "x86";
    case GGML_MACHINE_ARM: return "arm";
    case GGML_MACHINE_RISCV64: return "riscv64";
    case GGML_MACHINE_PPC64LE: return "ppc64le";
    case GGML_MACHINE_S390X: return "s390x";
    case GGML_MACHINE_LOONGARCH64: return "loongarch64";
    }
    return "unknown";
}

const char *memory_quality_name(enum ggml_memory_quality quality) {
    switch (quality) {
    case GGML_MEMORY_UNKNOWN: return "unknown";
    case GGML_MEMORY_ESTIMATED: return "estimated";
    case GGML_MEMORY_KNOWN: return "known";
    }
    return "unknown";
}

const char *thread_bound_name(enum ggml_thread_bound bound) {
    switch (bound) {
    case GGML_THREAD_BOUND_CORES: return "physical performance cores";
    case GGML_THREAD_BOUND_AFFINITY: return "CPU affinity";
    case GGML_THREAD_BOUND_QUOTA: return "cgroup CPU quota";
    case GGML_THREAD_BOUND_MINIMUM: return "the minimum of one";
    }
    return "unknown";
}

const char *status_identifier(enum ggml_host_status status) {
    static const struct {
        int number;
        const char *name;
    } rows[] = {
#define GGML_HOST_STATUS_ROW(number, name, text) {number, #name},
#include "status_list.inl"
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        if (rows[i].number == (int)status) return rows[i].name;
    }
    return "UNKNOWN";
}
