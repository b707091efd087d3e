// SPDX-License-Identifier: MIT
// What a plugin claims of one operation, against an oracle in double precision: the cases of
// ggml-conformance.
#include <stdio.h>
#include <string.h>

#include "conformance.h"
#include "subject.h"

enum { SAMPLE = 48 };

static void tell(void *data, const char *name) {
    check_step(data, name);
}

// Some cases of the row, evenly spread; which ones follows from the seed.
static void take_sample(const struct check_run *run, ggml_backend_dev_t device,
                        struct conformance_options *options) {
    struct conformance_report report;
    struct numbers numbers = {run->seed};
    options->count = true;
    if (conformance_run(device, options, &report) && report.n_cases > SAMPLE) {
        options->every = (int)((report.n_cases + SAMPLE - 1) / SAMPLE);
        options->offset = (int)(numbers_next(&numbers) % (uint64_t)options->every);
    }
    conformance_report_free(&report);
    options->count = false;
}

static void fail_with(const struct check_run *run, ggml_backend_dev_t device,
                      const struct conformance_report *report) {
    const struct conformance_failure *first = report->n_failures > 0 ? report->failures : NULL;
    check_fail(run, "%s: %lld of %lld cases, first %.100s: %.160s%s%.80s", label(device),
               (long long)report->n_failed, (long long)(report->n_failed + report->n_passed),
               first ? first->name : "", first ? first->message : "no memory for the message",
               host_counters.last_error[0] ? "; the plugin said: " : "", host_counters.last_error);
}

// The operation is the last part of the check's id.
void op_conformance(struct check_run *run) {
    struct conformance_options options = {.seed = run->seed,
                                          .op = strrchr(run->check->id, '.') + 1,
                                          .claims = run->all_cases,
                                          .progress = tell,
                                          .progress_data = run};
    struct devices devices;
    bool any = false;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        struct conformance_report report;
        if (!run->all_cases && i == 0) take_sample(run, devices.items[i], &options);
        CHECK_THAT(run, conformance_run(devices.items[i], &options, &report), "%s: %s",
                   label(devices.items[i]), ggml_last_error());
        if (report.n_failed > 0) fail_with(run, devices.items[i], &report);
        any = any || report.n_passed > 0;
        conformance_report_free(&report);
    }
    if (!any) check_skip(run, "no device claims any of its cases");
}
