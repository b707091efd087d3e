// SPDX-License-Identifier: MIT
// State of one call of ggml_plugin_probe().
#ifndef GGML_PLUGIN_PROBE_PROBE_RUN_H
#define GGML_PLUGIN_PROBE_PROBE_RUN_H

#include "plugin/load/candidates.h"
#include "plugin/probe/message/probe_result.h"
#include "plugin/probe/probe_report.h"

// Outcome of the candidate of the same index.
struct probe_outcome {
    bool known;   // the result is there
    bool loaded;  // this process uses it already
    bool lasting; // worth remembering
    enum ggml_probe_source source;
    int64_t probed_at;
    struct probe_result result;
};

struct probe_run {
    struct ggml_probe_options options; // with defaults filled in
    struct arena arena;
    struct device_filter filter;
    struct load_policy policy;
    struct candidates set;
    struct probe_outcome *outcomes; // one for each candidate
    struct ggml_probe_report *report;
    size_t n_done; // for the caller's progress
    size_t n_total;
};

// Decides among variants, hides what GGML_DEVICES excludes, and puts records and devices into the
// report. With the registry lock held. OUT_OF_MEMORY. [stream]
enum ggml_host_status probe_run_conclude(struct probe_run *run);

#endif
