// SPDX-License-Identifier: MIT
// Turns the results of probes into what an application would see after loading.
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "ggml-backend-impl.h"
#include "plugin/probe/probe_run.h"
#include "plugin/query/details.h"
#include "plugin/registry/plugin.h"
#include "plugin/registry/snapshot.h"

static enum ggml_host_status no_memory(void) {
    return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "ggml_plugin_probe: no memory for the report");
}

// --- records -------------------------------------------------------------------------------------

// The record shows the result of the probe as if the plugin had been loaded.
static void take_result(struct record *record, const struct probe_result *result) {
    record->stage = result->stage;
    record->status = result->status;
    record->microseconds = result->microseconds;
    snprintf(record->message, sizeof(record->message), "%s", result->message);
    snprintf(record->missing, sizeof(record->missing), "%s", result->missing);
}

// Whether the application's filter lets a device of a candidate through.
static bool is_shown(const struct probe_run *run, size_t index, size_t device) {
    const struct ggml_backend_dev_props *props = &run->outcomes[index].result.devices[device];
    return filter_allows_device(&run->filter, run->set.items[index].name, props->name,
                                props->device_id);
}

// Refuses a candidate of which no device passes the filter, as loading it would.
static void check_devices(struct probe_run *run, size_t index) {
    if (run->outcomes[index].result.n_devices == 0) return; // they come later
    for (size_t i = 0; i < run->outcomes[index].result.n_devices; ++i) {
        if (is_shown(run, index, i)) return;
    }
    candidate_refuse_filtered(&run->set.items[index]);
}

// Whether the probe has found that the candidate would load.
static bool is_good(const struct probe_run *run, size_t index) {
    return run->outcomes[index].known && run->set.items[index].record->status == GGML_HOST_OK;
}

// Rank of a candidate: one that is loaded already stays, otherwise the best one that works is
// chosen.
static int rank_good(const void *context, size_t index) {
    const struct probe_run *run = context;
    if (!is_good(run, index)) return 0;
    return run->outcomes[index].loaded ? 2 : 1;
}

// Of candidates of the same name only the best stays. Winners are found before any is marked, as
// marking changes statuses. O(candidates^2), which are few.
// Chosen by the code that loading uses, so that the report predicts what loading does.
static enum ggml_host_status choose(struct probe_run *run) {
    size_t *winners = arena_alloc(&run->arena, run->set.count * sizeof(*winners) + 1);
    if (!winners) return no_memory();
    for (size_t i = 0; i < run->set.count; ++i)
        winners[i] = is_good(run, i)
                         ? candidates_best(&run->set, run->set.items[i].name, rank_good, run)
                         : i;
    for (size_t i = 0; i < run->set.count; ++i) {
        struct candidate *candidate = &run->set.items[i];
        if (winners[i] == i) continue;
        candidate_supersede(candidate, run->set.items[winners[i]].record->path, "would be");
    }
    return GGML_HOST_OK;
}

static bool copy_record(struct arena *arena, const struct record *from,
                        struct ggml_probe_record *out_record) {
    struct ggml_plugin_record *copy = arena_alloc(arena, sizeof(*copy));
    out_record->plugin = copy;
    return copy && record_copy(arena, from, copy);
}

// Records in the order in which candidates were found, copied into the report.
static enum ggml_host_status report_records(struct probe_run *run) {
    struct ggml_probe_report *report = run->report;
    report->records = arena_alloc(&report->arena, run->set.count * sizeof(*report->records) + 1);
    report->files = arena_alloc(&report->arena, run->set.count * sizeof(*report->files) + 1);
    if (!report->records || !report->files) return no_memory();
    for (size_t i = 0; i < run->set.count; ++i) {
        struct ggml_probe_record *record = &report->records[i];
        record->source = run->outcomes[i].source;
        record->probed_at = run->outcomes[i].probed_at;
        report->files[i] = run->set.items[i].file.id;
        if (!copy_record(&report->arena, run->set.items[i].record, record)) return no_memory();
        ++report->n_records;
    }
    return GGML_HOST_OK;
}

// --- devices -------------------------------------------------------------------------------------

// Stand-ins for plugins and devices, from which the registry's own code makes the ordered list.
struct stand_in {
    struct host_plugin **plugins; // those with devices
    size_t n_plugins;
    struct ggml_backend_device *handles;
    size_t *owners; // candidate of each handle
    size_t n_handles;
};

// Room for all devices, as pointers to handles must stay valid. All of it is freed with the run.
static enum ggml_host_status reserve(struct probe_run *run, struct stand_in *out_set) {
    size_t n = 1;
    for (size_t i = 0; i < run->set.count; ++i)
        n += run->outcomes[i].result.n_devices;
    memset(out_set, 0, sizeof(*out_set));
    out_set->plugins = arena_alloc(&run->arena, (run->set.count + 1) * sizeof(*out_set->plugins));
    out_set->handles = arena_alloc(&run->arena, n * sizeof(*out_set->handles));
    out_set->owners = arena_alloc(&run->arena, n * sizeof(*out_set->owners));
    return out_set->plugins && out_set->handles && out_set->owners ? GGML_HOST_OK : no_memory();
}

// Makes a plugin that has just a list of devices; the handle's context is the probe's
// description.
static enum ggml_host_status stand_in_add(struct probe_run *run, size_t index,
                                          struct stand_in *set) {
    const struct probe_result *result = &run->outcomes[index].result;
    struct host_plugin *plugin = arena_alloc(&run->arena, sizeof(*plugin));
    struct device_list *list =
        arena_alloc(&run->arena, sizeof(*list) + result->n_devices * sizeof(list->items[0]));
    if (!plugin || !list) return no_memory();
    for (size_t i = 0; i < result->n_devices; ++i) {
        struct ggml_backend_device *handle = &set->handles[set->n_handles];
        handle->context = &result->devices[i];
        set->owners[set->n_handles++] = index;
        list->items[i] = (struct host_device){
            .device = handle,
            .name = result->devices[i].name,
            .device_id = result->devices[i].device_id,
            .type = result->devices[i].type,
            .hidden = !is_shown(run, index, i),
        };
    }
    list->count = result->n_devices;
    atomic_init(&plugin->devices, list);
    set->plugins[set->n_plugins++] = plugin;
    return GGML_HOST_OK;
}

// Adds stand-ins: first for what is loaded already, then for the others, as the registry would have
// them.
static enum ggml_host_status stand_in_fill(struct probe_run *run, struct stand_in *out_set) {
    enum ggml_host_status status = reserve(run, out_set);
    for (int pass = 0; pass < 2; ++pass) {
        for (size_t i = 0; i < run->set.count && status == GGML_HOST_OK; ++i) {
            const bool now = run->outcomes[i].loaded == (pass == 0);
            if (is_good(run, i) && now) status = stand_in_add(run, i, out_set);
        }
    }
    return status;
}

// Index of a device in the report; SIZE_MAX if it isn't in it.
static size_t place_of(const struct snapshot *snapshot, ggml_backend_dev_t device) {
    for (size_t i = 0; i < snapshot->n_devices && device; ++i) {
        if (snapshot->devices[i].device->device == device) return i;
    }
    return SIZE_MAX;
}

// How reliable a device's memory figures are: free memory from a cached result is an estimate.
static enum ggml_memory_quality quality(const struct ggml_backend_dev_props *props,
                                        enum ggml_probe_source source) {
    if (props->memory_total == 0) return GGML_MEMORY_UNKNOWN;
    const bool guess = props->memory_free == props->memory_total;
    return guess || source == GGML_PROBE_SOURCE_CACHE ? GGML_MEMORY_ESTIMATED : GGML_MEMORY_KNOWN;
}

// Copies one device into the report. False: no memory.
static bool report_device(struct probe_run *run, const struct stand_in *set,
                          const struct snapshot *snapshot, size_t index) {
    struct arena *arena = &run->report->arena;
    const struct snapshot_device *from = &snapshot->devices[index];
    const struct ggml_backend_dev_props *props = from->device->device->context;
    struct ggml_probe_device *device = &run->report->devices[index];
    device->record = set->owners[from->device->device - set->handles];
    device->props = *props;
    device->props.name = arena_strdup(arena, props->name);
    device->props.description = arena_strdup(arena, props->description);
    device->props.device_id = NULL;
    if (props->device_id[0] != '\0') {
        device->props.device_id = arena_strdup(arena, props->device_id);
        if (!device->props.device_id) return false;
    }
    device->memory = quality(props, run->outcomes[device->record].source);
    device->alias_of = place_of(snapshot, from->alias_of);
    const struct probe_result *result = &run->outcomes[device->record].result;
    const struct ggml_backend_feature *details =
        result->details ? result->details[props - result->devices] : NULL;
    return details_copy(arena, details, &device->details) && device->props.name &&
           device->props.description;
}

// Builds the report's devices. The registry's code orders the stand-ins and finds aliases, so that
// the order is the one that loading gives.
static enum ggml_host_status report_devices(struct probe_run *run) {
    struct ggml_probe_report *report = run->report;
    struct stand_in set;
    enum ggml_host_status status = stand_in_fill(run, &set);
    if (status != GGML_HOST_OK) return status;
    struct snapshot *snapshot = snapshot_new(set.plugins, set.n_plugins, NULL);
    if (!snapshot) return GGML_HOST_OUT_OF_MEMORY;
    const size_t size = snapshot->n_devices * sizeof(*report->devices);
    report->devices = arena_alloc(&report->arena, size + 1);
    if (!report->devices) status = no_memory();
    for (size_t i = 0; i < snapshot->n_devices && status == GGML_HOST_OK; ++i) {
        if (!report_device(run, &set, snapshot, i)) status = no_memory();
        ++report->n_devices;
    }
    ggml_mem_free(snapshot);
    return status;
}

// Takes over the results, applies the rules among plugins, and fills in the report.
enum ggml_host_status probe_run_conclude(struct probe_run *run) {
    for (size_t i = 0; i < run->set.count; ++i) {
        if (!run->outcomes[i].known) continue;
        take_result(run->set.items[i].record, &run->outcomes[i].result);
        if (is_good(run, i)) check_devices(run, i);
    }
    enum ggml_host_status status = choose(run);
    if (status == GGML_HOST_OK) status = report_records(run);
    return status == GGML_HOST_OK ? report_devices(run) : status;
}
