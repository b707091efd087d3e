// SPDX-License-Identifier: MIT
#include "inventory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool complain(const char *text) {
    fprintf(stderr, "ggml-devices: %s\n", text);
    return false;
}

// --- progress ------------------------------------------------------------------------------------

struct progress {
    int64_t started;
    bool shown;
};

static void show_progress(void *user_data, size_t done, size_t total, const char *path) {
    enum { PATIENCE_MS = 500 };
    struct progress *progress = user_data;
    const char *slash = strrchr(path, '/');
    if (ggml_time_ms() - progress->started < PATIENCE_MS) return;
    fprintf(stderr, "\rprobed %zu of %zu plugins, %.40s\033[K", done, total,
            slash ? slash + 1 : path);
    progress->shown = true;
}

// --- what was probed -----------------------------------------------------------------------------

static bool probe(struct inventory *inventory, const struct inventory_options *options) {
    struct progress progress = {.started = ggml_time_ms()};
    struct ggml_probe_options wanted = {
        .size = sizeof(wanted),
        .dir = options->plugin_path,
        .jobs = options->jobs,
        .deadline_ms = (uint32_t)(options->timeout * 1000.0),
        .progress = options->show_progress ? show_progress : NULL,
        .user_data = &progress,
    };
    if (options->no_cache) wanted.flags |= GGML_PROBE_NO_CACHE;
    if (options->no_sandbox) wanted.flags |= GGML_PROBE_NO_SANDBOX;
    if (options->rescan) wanted.flags |= GGML_PROBE_RESCAN;
    const enum ggml_host_status status = ggml_plugin_probe(&wanted, &inventory->probe);
    if (progress.shown) fputs("\r\033[K", stderr);
    return status == GGML_HOST_OK || complain(ggml_last_error());
}

static void take_probed_device(struct inventory *inventory, size_t i) {
    const struct ggml_probe_device *from = ggml_probe_report_device_get(inventory->probe, i);
    const struct ggml_plugin_record *plugin =
        ggml_probe_report_get(inventory->probe, from->record)->plugin;
    const struct ggml_probe_device *original =
        ggml_probe_report_device_get(inventory->probe, from->alias_of);
    inventory->devices[inventory->n_devices++] = (struct device_entry){
        .props = from->props,
        .memory = from->memory,
        .plugin_path = plugin->path,
        .plugin_name = plugin->name,
        .alias_of = original ? original->props.name : NULL,
        .details = from->details,
    };
}

static void take_probed(struct inventory *inventory) {
    static const char *const sources[] = {"file", "helper", "cache", "process"};
    for (size_t i = 0; i < ggml_probe_report_device_count(inventory->probe); ++i)
        take_probed_device(inventory, i);
    for (size_t i = 0; i < ggml_probe_report_count(inventory->probe); ++i) {
        const struct ggml_probe_record *from = ggml_probe_report_get(inventory->probe, i);
        inventory->plugins[inventory->n_plugins++] = (struct plugin_entry){
            .record = from->plugin,
            .usable = from->plugin->status == GGML_HOST_OK,
            .source = sources[from->source],
            .probed_at = from->probed_at,
        };
    }
}

// --- what was loaded -----------------------------------------------------------------------------

static void take_loaded_device(struct inventory *inventory, size_t i) {
    struct device_entry *entry = &inventory->devices[inventory->n_devices++];
    struct ggml_device_info info = {.size = sizeof(info)};
    entry->handle = ggml_backend_dev_get(i);
    ggml_backend_dev_get_props(entry->handle, &entry->props);
    ggml_backend_dev_info(entry->handle, &info);
    entry->memory = info.memory;
    entry->plugin_path = info.plugin_path;
    entry->plugin_name = info.plugin_name;
    entry->details = ggml_backend_dev_details(entry->handle);
    entry->alias_of = info.alias_of ? ggml_backend_dev_name(info.alias_of) : NULL;
}

static void take_loaded(struct inventory *inventory, size_t n_devices) {
    for (size_t i = 0; i < n_devices; ++i)
        take_loaded_device(inventory, i);
    for (size_t i = 0; i < ggml_plugin_report_count(inventory->report); ++i) {
        const struct ggml_plugin_record *record = ggml_plugin_report_get(inventory->report, i);
        const bool ran = record->stage >= GGML_PLUGIN_STAGE_SELECT;
        inventory->plugins[inventory->n_plugins++] = (struct plugin_entry){
            .record = record,
            .usable = record->reg != NULL,
            .source = ran ? "process" : "file",
        };
    }
}

// --- all of it -----------------------------------------------------------------------------------

static bool find_plugins(struct inventory *inventory, const struct inventory_options *options) {
    if (options->in_process) {
        return ggml_plugin_load_all(options->plugin_path, NULL) == GGML_HOST_OK ||
               complain(ggml_last_error());
    }
    if (!probe(inventory, options)) return false;
    return !options->load || ggml_plugin_load_probed(inventory->probe, NULL) == GGML_HOST_OK ||
           complain(ggml_last_error());
}

static bool gather(struct inventory *inventory, const struct inventory_options *options) {
    const bool loaded = options->in_process || options->load;
    if (!find_plugins(inventory, options)) return false;
    if (ggml_host_get_topology(&inventory->topology) != GGML_HOST_OK) complain(ggml_last_error());
    if (loaded) inventory->report = ggml_plugin_report_new();
    if (loaded && !inventory->report) return complain(ggml_last_error());
    const size_t n_devices =
        loaded ? ggml_backend_dev_count() : ggml_probe_report_device_count(inventory->probe);
    const size_t n_plugins = loaded ? ggml_plugin_report_count(inventory->report)
                                    : ggml_probe_report_count(inventory->probe);
    inventory->devices = calloc(n_devices + 1, sizeof(*inventory->devices));
    inventory->plugins = calloc(n_plugins + 1, sizeof(*inventory->plugins));
    if (!inventory->devices || !inventory->plugins) return complain("out of memory");
    if (loaded) {
        take_loaded(inventory, n_devices);
    } else {
        take_probed(inventory);
    }
    return true;
}

bool inventory_gather(struct inventory *out_inventory, const struct inventory_options *options) {
    *out_inventory = (struct inventory){.topology.size = sizeof(struct ggml_host_topology)};
    if (gather(out_inventory, options)) return true;
    inventory_free(out_inventory);
    return false;
}

void inventory_free(struct inventory *inventory) {
    free(inventory->devices);
    free(inventory->plugins);
    ggml_plugin_report_free(inventory->report);
    ggml_probe_report_free(inventory->probe);
    *inventory = (struct inventory){0};
}

const struct ggml_plugin_directory *inventory_directory(const struct inventory *inventory,
                                                        size_t i) {
    return inventory->probe ? ggml_probe_report_directory_get(inventory->probe, i)
                            : ggml_plugin_report_directory_get(inventory->report, i);
}

const char *inventory_not_isolated(const struct inventory *inventory) {
    return ggml_probe_report_not_isolated(inventory->probe);
}

const char *inventory_not_cached(const struct inventory *inventory) {
    return ggml_probe_report_not_cached(inventory->probe);
}

const char *inventory_not_sandboxed(const struct inventory *inventory) {
    return ggml_probe_report_not_sandboxed(inventory->probe);
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
