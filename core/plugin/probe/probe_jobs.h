// SPDX-License-Identifier: MIT
// Probes of several plugins at a time, each in a process of its own.
#ifndef GGML_PLUGIN_PROBE_PROBE_JOBS_H
#define GGML_PLUGIN_PROBE_PROBE_JOBS_H

#include "plugin/image/plugin_file.h"
#include "plugin/probe/message/probe_protocol.h"
#include "plugin/probe/message/probe_result.h"

enum { PROBE_JOBS_MAX = 64 };

struct probe_job {
    const char *path;
    struct plugin_file_id file;            // expected at the path
    bool isolated;                         // set once a helper process had it
    bool lasting;                          // the result speaks of the plugin and not of this moment
    char not_confined[PROBE_SANDBOX_TEXT]; // what the system could not refuse it
    struct probe_result result;            // if isolated
};

struct probe_jobs_options {
    const char *helper;
    unsigned n_parallel; // 1 to PROBE_JOBS_MAX
    unsigned deadline_ms;
    uint64_t memory_limit;
    bool sandbox;
    // (opt) Called whenever one is done. [stream]
    void (*progress)(void *context, const struct probe_job *job);
    void *context;
};

// Probes all, and returns within count * deadline / n_parallel and a moment. Ended processes are
// collected and everything that they started in their group is killed. UNSUPPORTED: from some point
// on no helper could be used, the message says why; the jobs from there on are not isolated. OK
// otherwise: what went wrong stands in the results. [any-thread]
enum ggml_host_status probe_jobs_run(const struct probe_jobs_options *options,
                                     struct probe_job *jobs, size_t count);

#endif
