// SPDX-License-Identifier: MIT
// What ggml_plugin_probe() returns.
#ifndef GGML_PLUGIN_PROBE_PROBE_REPORT_H
#define GGML_PLUGIN_PROBE_PROBE_REPORT_H

#include "base/data/arena.h"
#include "ggml-host.h"
#include "plugin/image/plugin_file.h"

struct ggml_probe_report {
    struct arena arena; // holds everything, this struct excepted
    size_t n_records;
    struct ggml_probe_record *records;
    struct plugin_file_id *files; // of each record; zero unless it is a file
    size_t n_devices;
    struct ggml_probe_device *devices;
    size_t n_directories;
    struct ggml_plugin_directory *directories;
    const char *not_isolated;
    const char *not_cached;
    const char *not_sandboxed;
};

#endif
