// SPDX-License-Identifier: MIT
// Libraries that a plugin ran with, so that a cached result ends when one of them is replaced.
#ifndef GGML_PLUGIN_PROBE_PROBE_LIBRARIES_H
#define GGML_PLUGIN_PROBE_PROBE_LIBRARIES_H

#include "plugin/probe/message/probe_result.h"

// The clock of probe_libraries_take(), in nanoseconds since 1970. [any-thread]
int64_t probe_libraries_now(void);
// Notes the libraries that are mapped in this process, up to PROBE_LIBRARIES_MAX, in the result's
// arena; the plugin itself and those that lie at no lasting path are left out. One that was changed
// after `since` may not be what was mapped: it is noted as a file that can't be. OUT_OF_MEMORY.
// [stream]
enum ggml_host_status probe_libraries_take(struct probe_result *result,
                                           const struct plugin_file_id *plugin, int64_t since);
// Whether each is still the file that it was: one system call per library, of which a large driver
// has some dozens. [any-thread]
bool probe_libraries_hold(const struct probe_result *result);

#endif
