// SPDX-License-Identifier: MIT
// Errors, settings and the names of threads.
#ifndef GPU_UTIL_H
#define GPU_UTIL_H

#include "ggml-impl.h"
#include "ggml-plugin.h"

// ggml_sdk_fail() for functions that return the status of a graph: ALLOC_FAILED for
// GGML_HOST_OUT_OF_MEMORY, FAILED for everything else. [any-thread]
enum ggml_status gpu_fail_graph(enum ggml_host_status status, const char *format, ...)
    GGML_ATTRIBUTE_FORMAT(2, 3);
// Value of a variable of the host's environment table, "" when it is not set. [any-thread]
const char *gpu_config(const char *name);
// Whether such a variable is set to anything but 0. [any-thread]
bool gpu_is_set(const char *name);
// Whether a comma-separated list holds the word. [any-thread]
bool gpu_has_word(const char *list, const char *word);
// Names the calling thread for debuggers, where the system can. [any-thread]
void gpu_name_thread(const char *name);

#endif
