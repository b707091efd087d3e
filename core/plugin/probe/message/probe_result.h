// SPDX-License-Identifier: MIT
// Result of probing one candidate, or of asking hwloc about the machine.
#ifndef GGML_PLUGIN_PROBE_PROBE_RESULT_H
#define GGML_PLUGIN_PROBE_PROBE_RESULT_H

#include "base/data/arena.h"
#include "ggml-host.h"
#include "machine/topology/topology_table.h"
#include "plugin/image/plugin_file.h"
#include "plugin/load/record.h"
#include "plugin/probe/message/probe_bytes.h"
#include "plugin/registry/plugin.h"

// Room for as many devices with three texts of PROBE_TEXT_MAX each, and their details, and for the
// libraries' paths.
enum {
    PROBE_DEVICES_MAX = 1024,
    PROBE_LIBRARIES_MAX = 1024,
    PROBE_DETAILS_MAX = GGML_DEVICE_INFO_MAX_PAIRS * 2 * (GGML_DEVICE_INFO_MAX_TEXT + 8),
    PROBE_RESULT_MAX = (PROBE_DEVICES_MAX + 1) * (4 * PROBE_TEXT_MAX + PROBE_DETAILS_MAX) +
                       PROBE_LIBRARIES_MAX * (PROBE_TEXT_MAX + 64) + TOPOLOGY_CPUS_MAX * 32,
};

// A file that code of the helper was mapped from: what the plugin depends on, a driver for one.
struct probe_library {
    const char *path; // absolute, as the dynamic linker found it
    struct plugin_file_id file;
};

// Zero-initialised is an empty one. [stream]
struct probe_result {
    struct arena arena; // holds the texts and the devices
    enum ggml_plugin_stage stage;
    enum ggml_host_status status;
    const char *message;
    const char *missing;
    double microseconds;
    size_t n_devices;
    struct ggml_backend_dev_props *devices; // texts are never NULL; an id may be ""
    // Of each device up to a key that is NULL, or NULL; the array is NULL if none has any.
    const struct ggml_backend_feature **details;
    size_t n_libraries; // none where the system can't tell, or the helper ended early
    struct probe_library *libraries;
    size_t n_cpus; // none but of a machine; topology_table_valid() of those that were read
    struct topology_cpu *cpus;
};

// Takes over what the record says of a candidate and, if `plugin` is not NULL, what its devices say
// of themselves, which runs the plugin's code. OUT_OF_MEMORY. [init]
enum ggml_host_status probe_result_take(struct probe_result *out_result,
                                        const struct record *record,
                                        const struct host_plugin *plugin);
// A result without devices; the message is formatted. When memory runs out there is none. [stream]
void probe_result_fail(struct probe_result *out_result, enum ggml_plugin_stage stage,
                       enum ggml_host_status status, const char *format, ...)
    GGML_ATTRIBUTE_FORMAT(4, 5);
void probe_result_free(struct probe_result *result);

// Which file it is, in bytes. [stream]
void probe_file_id_write(const struct plugin_file_id *id, struct probe_writer *writer);
struct plugin_file_id probe_file_id_read(struct probe_reader *reader);

// Appends it. [stream]
void probe_result_write(const struct probe_result *result, struct probe_writer *writer);
// The reverse, for bytes that another process may have written; the result is empty on failure.
// DAMAGED_FILE: they are not one whole result. OUT_OF_MEMORY. [stream]
enum ggml_host_status probe_result_read(const void *bytes, size_t size,
                                        struct probe_result *out_result);

#endif
