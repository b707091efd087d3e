// SPDX-License-Identifier: MIT
// Probes plugins or loads them, as the options say, and brings what either found into the same
// entries, so that printing does not depend on it.
#define _POSIX_C_SOURCE 200809L
#include "inventory.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "progress.h"

// Prints an error; returns false for the caller to return.
static bool complain(const char *text) {
    fprintf(stderr, "ggml-devices: %s\n", text);
    return false;
}

// --- progress ------------------------------------------------------------------------------------

// Called by the library after each plugin.
static void show_progress(void *user_data, size_t done, size_t total, const char *path) {
    char text[160];
    (void)user_data;
    (void)path;
    snprintf(text, sizeof(text), "%zu of %zu plugins tried", done, total);
    progress_set(text);
}

// --- what was probed -----------------------------------------------------------------------------

// Why helpers are not sandboxed although they could be, or NULL. The library reports only what
// it could not do, not what it was asked to leave out.
static const char *not_confined(const struct inventory_options *options) {
    const char *wanted = getenv("GGML_PROBE_SANDBOX");
    if (options->no_sandbox) return "left out, as --no-sandbox says";
    return wanted && strcmp(wanted, "0") == 0 ? "left out, as GGML_PROBE_SANDBOX says" : NULL;
}

// Tries all plugins in helper processes, or takes the results from the cache.
static bool probe(struct inventory *inventory, const struct inventory_options *options) {
    struct ggml_probe_options wanted = {
        .size = sizeof(wanted),
        .dir = options->plugin_path,
        .jobs = options->jobs,
        .deadline_ms = (uint32_t)(options->timeout * 1000.0),
        .progress = show_progress,
    };
    if (options->no_cache) wanted.flags |= GGML_PROBE_NO_CACHE;
    if (options->no_sandbox) wanted.flags |= GGML_PROBE_NO_SANDBOX;
    if (options->rescan) wanted.flags |= GGML_PROBE_RESCAN;
    inventory->not_confined = not_confined(options);
    progress_begin("trying plugins");
    const enum ggml_host_status status = ggml_plugin_probe(&wanted, &inventory->probe);
    progress_end();
    return status == GGML_HOST_OK || complain(ggml_last_error());
}

// Number of the device among those of its plugin, which follow each other in the report.
// O(devices).
static size_t index_in_plugin(const struct inventory *inventory, const char *plugin_path) {
    size_t index = 0;
    for (size_t i = 0; i < inventory->n_devices; ++i)
        index += strcmp(inventory->devices[i].plugin_path, plugin_path) == 0;
    return index;
}

// Seconds since the memory was asked for; 0 if that was just now. A clock that was set back
// counts as just now.
static int64_t memory_age(const struct ggml_probe_record *record) {
    const int64_t now = (int64_t)time(NULL);
    if (record->source != GGML_PROBE_SOURCE_CACHE || record->probed_at <= 0) return 0;
    return now > record->probed_at ? now - record->probed_at : 0;
}

// Texts belong to the report, which the inventory keeps.
static void take_probed_device(struct inventory *inventory, size_t i) {
    const struct ggml_probe_device *from = ggml_probe_report_device_get(inventory->probe, i);
    const struct ggml_probe_record *record = ggml_probe_report_get(inventory->probe, from->record);
    const struct ggml_plugin_record *plugin = record->plugin;
    const struct ggml_probe_device *original =
        ggml_probe_report_device_get(inventory->probe, from->alias_of);
    inventory->devices[inventory->n_devices] = (struct device_entry){
        .props = from->props,
        .memory = from->memory,
        .memory_age = memory_age(record),
        .index = index_in_plugin(inventory, plugin->path),
        .plugin_path = plugin->path,
        .plugin_name = plugin->name,
        .alias_of = original ? original->props.name : NULL,
        .details = from->details,
    };
    ++inventory->n_devices;
}

// Copies the probe's report into entries. Texts stay in the report, which lives as long as the
// inventory.
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

// Texts belong to the registry, which lives as long as the process.
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
    entry->process = ggml_host_isolated_process(entry->handle);
    entry->alias_of = info.alias_of ? ggml_backend_dev_name(info.alias_of) : NULL;
}

// The same for plugins in this process; here an entry has its handle too.
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

// --- what is not used ----------------------------------------------------------------------------

// Whether the device's id begins with this PCI address; a plugin may append more.
static bool is_at(const struct device_entry *device, const char *address) {
    const char *id = device->props.device_id;
    return id && strncasecmp(id, address, strlen(address)) == 0;
}

// A GPU device whose plugin doesn't tell its address: it may be the GPU that seems unserved.
static const char *device_without_address(const struct inventory *inventory) {
    for (size_t i = 0; i < inventory->n_devices; ++i) {
        const struct ggml_backend_dev_props *props = &inventory->devices[i].props;
        const bool is_gpu = props->type == GGML_BACKEND_DEVICE_TYPE_GPU ||
                            props->type == GGML_BACKEND_DEVICE_TYPE_IGPU;
        if (is_gpu && (!props->device_id || !strchr(props->device_id, ':'))) return props->name;
    }
    return NULL;
}

// What became of a plugin: used, refused or missing. One used variant is enough.
static enum gpu_plugin state_of(const struct inventory *inventory, const char *plugin) {
    enum gpu_plugin state = GPU_PLUGIN_MISSING;
    for (size_t i = 0; plugin && i < inventory->n_plugins; ++i) {
        if (strcmp(inventory->plugins[i].record->name, plugin) != 0) continue;
        if (inventory->plugins[i].usable) return GPU_PLUGIN_USED;
        state = GPU_PLUGIN_REFUSED;
    }
    return state;
}

// Lists the GPUs on the bus whose address no device has, with advice for each.
static void take_gpus(struct inventory *inventory, const char *sysfs) {
    struct gpu *gpus;
    const size_t count = gpus_find(sysfs ? sysfs : "", &gpus);
    inventory->gpus = calloc(count + 1, sizeof(*inventory->gpus));
    for (size_t i = 0; inventory->gpus && i < count; ++i) {
        bool served = false;
        for (size_t j = 0; j < inventory->n_devices; ++j)
            served |= is_at(&inventory->devices[j], gpus[i].address);
        if (served) continue;
        struct unserved_gpu *added = &inventory->gpus[inventory->n_gpus++];
        added->gpu = gpus[i];
        added->plugin = gpu_plugin_name(&gpus[i]);
        if (!gpus[i].display_only) added->perhaps = device_without_address(inventory);
        gpu_advise(&gpus[i], state_of(inventory, added->plugin), added->advice,
                   sizeof(added->advice));
    }
    free(gpus);
}

// Whether a file is named like a shared library of this system.
static bool is_library_name(const char *name) {
#if defined(_WIN32)
    static const char suffix[] = ".dll";
#elif defined(__APPLE__)
    static const char suffix[] = ".dylib";
#else
    static const char suffix[] = ".so";
#endif
    const size_t length = strlen(name), n = strlen(suffix);
    return length > n && strcmp(name + length - n, suffix) == 0;
}

// Files with the name of a plugin have a record.
static bool has_record(const struct inventory *inventory, const char *directory, const char *name) {
    const size_t length = strlen(directory);
    for (size_t i = 0; i < inventory->n_plugins; ++i) {
        const char *path = inventory->plugins[i].record->path;
        if (strncmp(path, directory, length) != 0) continue;
        path += length;
        if (strcmp(path + strspn(path, "/\\"), name) == 0) return true;
    }
    return false;
}

// Lists libraries in a searched directory that are no plugins by their name: a file that was
// misnamed is otherwise invisible.
static void take_ignored(struct inventory *inventory, size_t index,
                         const struct ggml_plugin_directory *directory) {
    DIR *folder = directory->status == GGML_HOST_OK ? opendir(directory->path) : NULL;
    const struct dirent *entry;
    while (folder && (entry = readdir(folder)) != NULL) {
        if (!is_library_name(entry->d_name)) continue;
        if (has_record(inventory, directory->path, entry->d_name)) continue;
        struct ignored_file *grown =
            realloc(inventory->ignored, (inventory->n_ignored + 1) * sizeof(*grown));
        if (!grown) break;
        inventory->ignored = grown;
        char *name = malloc(strlen(entry->d_name) + 1);
        if (!name) break;
        strcpy(name, entry->d_name);
        grown[inventory->n_ignored++] = (struct ignored_file){index, name};
    }
    if (folder) closedir(folder);
}

// GPUs without a plugin, and files in directories of plugins that are none.
static void take_unused(struct inventory *inventory, const struct inventory_options *options) {
    const struct ggml_plugin_directory *directory;
    take_gpus(inventory, options->sysfs);
    for (size_t i = 0; (directory = inventory_directory(inventory, i)) != NULL; ++i)
        take_ignored(inventory, i, directory);
}

// --- all of it -----------------------------------------------------------------------------------

// Probes, loads, or both, as the options say; false after the error was printed.
static bool find_plugins(struct inventory *inventory, const struct inventory_options *options) {
    if (options->in_process) {
        return ggml_plugin_load_all(options->plugin_path, NULL) == GGML_HOST_OK ||
               complain(ggml_last_error());
    }
    if (!probe(inventory, options)) return false;
    return !options->load || ggml_plugin_load_probed(inventory->probe, NULL) == GGML_HOST_OK ||
           complain(ggml_last_error());
}

// Fills the inventory; what was taken before a failure is freed by the caller.
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
    if (!inventory_take_hosts(inventory)) return complain("out of memory");
    take_unused(inventory, options);
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
    free(inventory->nodes);
    free(inventory->links);
    free(inventory->gpus);
    for (size_t i = 0; i < inventory->n_ignored; ++i)
        free(inventory->ignored[i].name);
    free(inventory->ignored);
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
    const bool ran_here = !inventory->probe || inventory_not_isolated(inventory)[0] != '\0';
    if (ran_here) return "plugins ran in this process, which is not confined";
    if (inventory->not_confined) return inventory->not_confined;
    return ggml_probe_report_not_sandboxed(inventory->probe);
}

// --- GGML_ISOLATE --------------------------------------------------------------------------------

static bool is_same(const char *entry, size_t length, const char *name, size_t name_length) {
    return length == name_length && strncasecmp(entry, name, length) == 0;
}

// Whether the entry is a device's name or id, without its part, or a plugin's name.
static bool is_here(const struct inventory *inventory, const char *entry, size_t length) {
    for (size_t i = 0; i < inventory->n_devices; ++i) {
        const struct ggml_backend_dev_props *props = &inventory->devices[i].props;
        const char *id = props->device_id ? props->device_id : "";
        if (is_same(entry, length, props->name, strlen(props->name)) ||
            is_same(entry, length, id, strlen(id)) || is_same(entry, length, id, strcspn(id, "#")))
            return true;
    }
    for (size_t i = 0; i < inventory->n_plugins; ++i) {
        const char *name = inventory->plugins[i].record->name;
        if (name && is_same(entry, length, name, strlen(name))) return true;
    }
    return false;
}

void inventory_not_found(const struct inventory *inventory, char *out_text, size_t size) {
    static const char separators[] = ", \t";
    const char *devices = getenv("GGML_DEVICES");
    size_t used = 0;
    out_text[0] = '\0';
    if (devices && devices[0] != '\0') return;
    for (size_t i = 0; i < inventory->n_plugins; ++i) {
        const char *message = inventory->plugins[i].record->message;
        if (message && strncmp(message, "GGML_ISOLATE", strlen("GGML_ISOLATE")) == 0) return;
    }
    const char *rest = getenv("GGML_ISOLATE");
    for (; rest && *rest != '\0' && used < size; rest += strcspn(rest, ",")) {
        rest += strspn(rest, separators);
        const char *entry = *rest == '-' ? rest + 1 + strspn(rest + 1, " \t") : rest;
        size_t length = strcspn(entry, ",");
        while (length > 0 && strchr(" \t", entry[length - 1]))
            --length;
        if (length == 0 || is_here(inventory, entry, length)) continue;
        const int n = snprintf(out_text + used, size - used, "%s%.*s", used > 0 ? ", " : "",
                               (int)length, entry);
        used += n > 0 ? (size_t)n : 0;
    }
}

// --- names ---------------------------------------------------------------------------------------

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
