// SPDX-License-Identifier: MIT
// The inventory as JSON, with jansson.
#include <jansson.h>
#include <string.h>

#include "print.h"

enum { TEXT_SIZE = 8192 };

// A text of a plugin, with control characters replaced and valid UTF-8, as jansson refuses
// others.
static json_t *text_or_null(const char *text) {
    char clean[TEXT_SIZE];
    if (!text) return json_null();
    sanitise(text, clean, sizeof(clean));
    return json_string(clean);
}

// A size as a JSON integer, which jansson holds in 63 bits.
static json_t *size_value(uint64_t value) {
    return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

// The library: version, contract and the processor's features.
static json_t *host_object(void) {
    json_t *features = json_array();
    const uint64_t bits = ggml_host_cpu_features();
    for (unsigned bit = 0; bit < 64; ++bit) {
        const char *name = ggml_host_cpu_feature_name(bit);
        if (name && (bits >> bit & 1)) json_array_append_new(features, json_string(name));
    }
    return json_pack("{s:s, s:s, s:[i,i], s:s, s:o}", "version", ggml_version(), "commit",
                     ggml_commit(), "contract", GGML_CONTRACT_MAJOR, GGML_CONTRACT_MINOR, "machine",
                     machine_name(GGML_MACHINE_HERE), "cpu_features", features);
}

// Processors, caches and the default number of threads.
static json_t *topology_object(const struct ggml_host_topology *topology) {
    json_t *threads =
        json_pack("{s:i, s:s}", "default", (int)topology->default_threads, "bound_by",
                  thread_bound_name((enum ggml_thread_bound)topology->default_threads_bound));
    json_t *caches =
        json_pack("{s:o, s:o, s:o}", "l1d", size_value(topology->l1d_bytes), "l2",
                  size_value(topology->l2_bytes), "l3", size_value(topology->l3_bytes));
    return json_pack("{s:i, s:i, s:i, s:i, s:i, s:o, s:o}", "packages", (int)topology->n_packages,
                     "cores", (int)topology->n_cores, "performance_cores",
                     (int)topology->n_performance_cores, "logical_cpus", (int)topology->n_pus,
                     "numa_nodes", (int)topology->n_numa_nodes, "cache_bytes", caches, "threads",
                     threads);
}

// Libraries of a directory that are not named like plugins.
static json_t *ignored_array(const struct inventory *inventory, size_t directory) {
    json_t *array = json_array();
    for (size_t i = 0; i < inventory->n_ignored; ++i) {
        if (inventory->ignored[i].directory != directory) continue;
        json_array_append_new(array, text_or_null(inventory->ignored[i].name));
    }
    return array;
}

static json_t *gpus_array(const struct inventory *inventory) {
    json_t *array = json_array();
    for (size_t i = 0; i < inventory->n_gpus; ++i) {
        const struct unserved_gpu *entry = &inventory->gpus[i];
        const struct gpu *gpu = &entry->gpu;
        json_array_append_new(
            array,
            json_pack("{s:s, s:[i,i], s:o, s:o, s:o, s:b, s:o, s:o, s:s}", "address", gpu->address,
                      "pci_id", (int)gpu->vendor, (int)gpu->device, "vendor",
                      text_or_null(gpu->vendor_name), "model", text_or_null(gpu->model), "driver",
                      text_or_null(gpu->driver[0] ? gpu->driver : NULL), "display_only",
                      gpu->display_only, "plugin", text_or_null(entry->plugin), "perhaps",
                      text_or_null(entry->perhaps), "advice", entry->advice));
    }
    return array;
}

// The directories in the order of search.
static json_t *search_array(const struct inventory *inventory) {
    const struct ggml_plugin_directory *directory;
    json_t *array = json_array();
    for (size_t i = 0; (directory = inventory_directory(inventory, i)) != NULL; ++i) {
        json_array_append_new(array,
                              json_pack("{s:o, s:s, s:s, s:o}", "path",
                                        text_or_null(directory->path), "origin", directory->origin,
                                        "status", status_identifier(directory->status), "ignored",
                                        ignored_array(inventory, i)));
    }
    return array;
}

// What became of a plugin. Statuses are identifiers, not texts, as programs compare them.
static json_t *plugin_object(const struct plugin_entry *plugin) {
    const struct ggml_plugin_record *record = plugin->record;
    json_t *contract = record->contract_major < 0
                           ? json_null()
                           : json_pack("[i,i]", record->contract_major, record->contract_minor);
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:s, s:s, s:s, s:o, s:o, s:b, s:s, s:o, s:f}",
                     "path", text_or_null(record->path), "name", text_or_null(record->name),
                     "variant", text_or_null(record->variant), "version",
                     text_or_null(record->version), "contract", contract, "machine",
                     machine_name(record->machine), "status", status_identifier(record->status),
                     "stage", ggml_plugin_stage_text(record->stage), "message",
                     text_or_null(record->message), "missing", text_or_null(record->missing),
                     "loaded", plugin->usable, "source", plugin->source, "probed_at",
                     plugin->probed_at ? json_integer(plugin->probed_at) : json_null(),
                     "microseconds", record->microseconds);
}

static json_t *plugins_array(const struct inventory *inventory) {
    json_t *array = json_array();
    for (size_t i = 0; i < inventory->n_plugins; ++i)
        json_array_append_new(array, plugin_object(&inventory->plugins[i]));
    return array;
}

// Whether plugins ran in helpers, and why not.
static json_t *probing_object(const struct inventory *inventory) {
    const char *why = inventory_not_isolated(inventory);
    return json_pack("{s:b, s:o, s:o, s:o}", "isolated", inventory->probe && why[0] == '\0',
                     "not_isolated", text_or_null(why), "not_cached",
                     text_or_null(inventory_not_cached(inventory)), "not_sandboxed",
                     text_or_null(inventory_not_sandboxed(inventory)));
}

// Results of a device's workloads; numbers only for those that passed.
static json_t *selftest_array(const struct selftest_result *results) {
    static const char *const verdicts[] = {"passed", "failed", "unsupported", "not_run"};
    json_t *array = json_array();
    for (int i = 0; i < SELFTEST_WORKLOADS; ++i) {
        const struct selftest_result *result = &results[i];
        json_t *object =
            json_pack("{s:s, s:s, s:o}", "workload", result->workload, "verdict",
                      verdicts[result->verdict], "message", text_or_null(result->message));
        if (result->verdict == SELFTEST_PASSED) {
            json_object_set_new(object, "milliseconds", json_real(result->milliseconds));
            json_object_set_new(object, "error", json_real(result->error));
            json_object_set_new(object, "bound", json_real(result->bound));
        }
        json_array_append_new(array, object);
    }
    return array;
}

// Keys and values of the device-info extension. A key that comes twice keeps its last value.
static json_t *details_object(const struct ggml_backend_feature *details) {
    char key[2 * GGML_DEVICE_INFO_MAX_TEXT * 4];
    json_t *object = json_object();
    for (; details && details->name; ++details) {
        sanitise(details->name, key, sizeof(key));
        json_object_set_new(object, key, text_or_null(details->value));
    }
    return object;
}

// All that is known of a device.
static json_t *device_object(const struct device_entry *device) {
    const struct ggml_backend_dev_props *props = &device->props;
    const struct ggml_backend_dev_caps *caps = &props->caps;
    json_t *memory =
        json_pack("{s:s, s:o, s:o, s:o}", "quality", memory_quality_name(device->memory), "free",
                  size_value(props->memory_free), "total", size_value(props->memory_total),
                  "age_seconds", json_integer(device->memory_age));
    json_t *caps_object =
        json_pack("{s:b, s:b, s:b, s:b, s:b}", "async", caps->async, "host_buffer",
                  caps->host_buffer, "buffer_from_host_ptr", caps->buffer_from_host_ptr, "events",
                  caps->events, "mmap_support", caps->mmap_support);
    json_t *process = device->process > 0 ? json_integer(device->process) : json_null();
    return json_pack("{s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name",
                     text_or_null(props->name), "plugin", text_or_null(device->plugin_name),
                     "plugin_path", text_or_null(device->plugin_path), "type",
                     device_type_name(props->type), "description", text_or_null(props->description),
                     "id", text_or_null(props->device_id), "memory", memory, "caps", caps_object,
                     "alias_of", text_or_null(device->alias_of), "process", process, "details",
                     details_object(device->details));
}

static json_t *nodes_array(const struct inventory *inventory) {
    json_t *array = json_array();
    for (size_t i = 0; i < inventory->n_nodes; ++i) {
        const struct node_entry *node = &inventory->nodes[i];
        json_array_append_new(array, json_pack("{s:o, s:o}", "name", text_or_null(node->name),
                                               "host", text_or_null(node->host)));
    }
    return array;
}

// An end that is null is the program.
static json_t *links_array(const struct inventory *inventory) {
    json_t *array = json_array();
    for (size_t i = 0; i < inventory->n_links; ++i) {
        const struct link_entry *link = &inventory->links[i];
        const char *from = link->from > 0 ? inventory->nodes[link->from - 1].name : NULL;
        json_array_append_new(
            array, json_pack("{s:o, s:o, s:f, s:f}", "from", text_or_null(from), "to",
                             text_or_null(inventory->nodes[link->to - 1].name), "seconds",
                             link->seconds, "bytes_per_second", link->bytes_per_second));
    }
    return array;
}

// Keys stand in the order of the schema. json_pack() takes the references of its parts and
// returns NULL if one of them is NULL, so that running out of memory is seen once, at the end.
bool print_json(const struct inventory *inventory, const struct selftest_result *results,
                FILE *stream) {
    json_t *devices = json_array();
    for (size_t i = 0; i < inventory->n_devices; ++i) {
        json_t *object = device_object(&inventory->devices[i]);
        if (results) {
            json_object_set_new(object, "self_test",
                                selftest_array(results + i * SELFTEST_WORKLOADS));
        }
        json_array_append_new(devices, object);
    }
    json_t *root = json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "schema", "ggml-devices/1", "host",
        host_object(), "topology", topology_object(&inventory->topology), "probing",
        probing_object(inventory), "search", search_array(inventory), "plugins",
        plugins_array(inventory), "devices", devices, "gpus_without_device", gpus_array(inventory),
        "nodes", nodes_array(inventory), "links", links_array(inventory));
    const bool written = root &&
                         json_dumpf(root, stream, JSON_INDENT(2) | JSON_PRESERVE_ORDER) == 0 &&
                         fputc('\n', stream) != EOF;
    json_decref(root);
    return written;
}
