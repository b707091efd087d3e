// SPDX-License-Identifier: MIT
// What a plugin claims of one operation, against an oracle in double precision: the cases of
// ggml-conformance.
#include <stdio.h>
#include <string.h>

#include "conformance.h"
#include "subject.h"

enum { SAMPLE = 8 };

static void tell(void *data, const char *name) {
    check_step(data, name);
}

// The first case that failed, and how many did.
static void fail_with(const struct check_run *run, ggml_backend_dev_t device,
                      const struct conformance_report *report) {
    const struct conformance_failure *first = report->n_failures > 0 ? report->failures : NULL;
    check_fail(run, "%s: %lld of %lld cases, first %.100s: %.160s%s%.80s", label(device),
               (long long)report->n_failed, (long long)(report->n_failed + report->n_passed),
               first ? first->name : "", first ? first->message : "no memory for the message",
               host_counters.last_error[0] ? "; the plugin said: " : "", host_counters.last_error);
}

// Opened by the first check of this process.
static const struct devices *devices_of(const struct check_run *run) {
    static struct devices devices;
    if (!devices.subject.library) devices_open(run, &devices);
    return &devices;
}

// The operation is the last part of the check's id.
void op_conformance(struct check_run *run) {
    struct conformance_options options = {.seed = run->seed,
                                          .op = strrchr(run->check->id, '.') + 1,
                                          .claims = run->all_cases,
                                          .sample = run->all_cases ? 0 : SAMPLE,
                                          .progress = tell,
                                          .progress_data = run};
    const struct devices *devices = devices_of(run);
    bool any = false;
    for (int i = 0; i < devices->n; ++i) {
        struct conformance_report report;
        // False: the device makes no stream, which stream.create is about.
        if (!conformance_run(devices->items[i], &options, &report)) continue;
        if (report.n_failed > 0) fail_with(run, devices->items[i], &report);
        any = any || report.n_passed > 0;
        conformance_report_free(&report);
    }
    if (!any) check_skip(run, "no device claims any of its cases");
}
