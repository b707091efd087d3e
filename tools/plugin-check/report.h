// SPDX-License-Identifier: MIT
// The outcome as text. False if writing fails.
#ifndef PLUGIN_CHECK_REPORT_H
#define PLUGIN_CHECK_REPORT_H

#include <stdio.h>

#include "runner.h"

bool report_tap(const struct runner_options *options, const struct check_result *results,
                FILE *out);
bool report_junit(const struct runner_options *options, const struct check_result *results,
                  FILE *out);
// The schema is docs/schemas/ggml-plugin-check.schema.json.
bool report_json(const struct runner_options *options, const struct check_result *results,
                 FILE *out);

#endif
