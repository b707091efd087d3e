// SPDX-License-Identifier: MIT
// Accessors of the public report. NULL reports and indices out of range read as empty.
#include "plugin/probe/probe_report.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "plugin/load/load.h"
#include "plugin/load/record.h"

void ggml_probe_report_free(ggml_probe_report_t report) {
    if (!report) return;
    arena_free(&report->arena);
    ggml_mem_free(report);
}

const char *ggml_probe_report_not_isolated(ggml_probe_report_t report) {
    return report ? report->not_isolated : "";
}

const char *ggml_probe_report_not_cached(ggml_probe_report_t report) {
    return report ? report->not_cached : "";
}

const char *ggml_probe_report_not_sandboxed(ggml_probe_report_t report) {
    return report ? report->not_sandboxed : "";
}

size_t ggml_probe_report_count(ggml_probe_report_t report) {
    return report ? report->n_records : 0;
}

const struct ggml_probe_record *ggml_probe_report_get(ggml_probe_report_t report, size_t i) {
    return report && i < report->n_records ? &report->records[i] : NULL;
}

size_t ggml_probe_report_device_count(ggml_probe_report_t report) {
    return report ? report->n_devices : 0;
}

const struct ggml_probe_device *ggml_probe_report_device_get(ggml_probe_report_t report, size_t i) {
    return report && i < report->n_devices ? &report->devices[i] : NULL;
}

size_t ggml_probe_report_directory_count(ggml_probe_report_t report) {
    return report ? report->n_directories : 0;
}

const struct ggml_plugin_directory *ggml_probe_report_directory_get(ggml_probe_report_t report,
                                                                    size_t i) {
    return report && i < report->n_directories ? &report->directories[i] : NULL;
}

// --- loading -------------------------------------------------------------------------------------

// Copies a refused candidate into the list of records, as if loading had refused it.
static enum ggml_host_status keep_record(const struct ggml_plugin_record *from) {
    if (records_loaded(from->path)) return GGML_HOST_OK;
    struct record *record = record_new(from->path);
    if (!record) return GGML_HOST_OUT_OF_MEMORY;
    snprintf(record->name, sizeof(record->name), "%s", from->name);
    snprintf(record->variant, sizeof(record->variant), "%s", from->variant);
    snprintf(record->version, sizeof(record->version), "%s", from->version);
    snprintf(record->message, sizeof(record->message), "%s", from->message);
    snprintf(record->missing, sizeof(record->missing), "%s", from->missing);
    record->contract_major = from->contract_major;
    record->contract_minor = from->contract_minor;
    record->machine = from->machine;
    record->stage = from->stage;
    record->status = from->status;
    record->microseconds = from->microseconds;
    records_put(record);
    return GGML_HOST_OK;
}

// Loading a file that is not the one which was probed would defeat the probe.
static enum ggml_host_status keep_changed(const struct ggml_plugin_record *from) {
    struct ggml_plugin_record changed = *from;
    changed.status = GGML_HOST_DAMAGED_FILE;
    changed.stage = GGML_PLUGIN_STAGE_NEGOTIATE;
    changed.message = "the file changed since it was probed: probe again";
    return keep_record(&changed);
}

// The record is of the file that was probed, not of one that replaced it since.
static bool is_unchanged(const char *path, const struct plugin_file_id *id) {
    struct plugin_file now;
    const bool same =
        plugin_file_open(path, &now) == GGML_HOST_OK && plugin_file_is_same(&now.id, id);
    plugin_file_close(&now);
    return same;
}

// Refused ones leave their record; only lack of memory or a locked registry end the whole call.
static enum ggml_host_status load_one(const struct ggml_probe_report *report, size_t i,
                                      size_t *out_loaded) {
    const struct ggml_plugin_record *record = report->records[i].plugin;
    ggml_backend_reg_t reg;
    if (strcmp(record->path, BUILTIN_PATH) == 0) return GGML_HOST_OK;
    if (record->status != GGML_HOST_OK) return keep_record(record);
    if (!is_unchanged(record->path, &report->files[i])) return keep_changed(record);
    const enum ggml_host_status status = ggml_plugin_load(record->path, &reg);
    *out_loaded += status == GGML_HOST_OK;
    return status == GGML_HOST_OUT_OF_MEMORY || status == GGML_HOST_BUSY ? status : GGML_HOST_OK;
}

// Built-ins are not loaded by path: they come with the first query.
enum ggml_host_status ggml_plugin_load_probed(ggml_probe_report_t report, size_t *out_loaded) {
    struct ggml_saved_error saved;
    size_t n_loaded = 0;
    enum ggml_host_status status = GGML_HOST_OK;
    if (out_loaded) *out_loaded = 0;
    if (!report) {
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT, "ggml_plugin_load_probed: no report given");
    }
    ggml_error_save(&saved);
    for (size_t i = 0; i < report->n_records && status == GGML_HOST_OK; ++i)
        status = load_one(report, i, &n_loaded);
    if (status == GGML_HOST_OK) {
        load_builtins_once();
        ggml_error_restore(&saved);
    }
    if (out_loaded) *out_loaded = n_loaded;
    return status;
}
