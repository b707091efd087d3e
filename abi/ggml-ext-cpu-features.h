// SPDX-License-Identifier: MIT
// ggml-ext-cpu-features.h: extension "ggml.cpu-features", which the host offers: what the processor
// can do.
//
// A part of ggml-plugin.h; how extensions are offered and found is in ggml-plugin-extensions.h.
#ifndef GGML_EXT_CPU_FEATURES_H
#define GGML_EXT_CPU_FEATURES_H

#include <stdint.h>

#include "ggml-plugin-host.h"

#ifdef __cplusplus
extern "C" {
#endif

// Extension "ggml.cpu-features", revision 1: what the topology's cpu_features[0] says, without the
// cost of discovering the rest of the machine.
#define GGML_EXTENSION_CPU_FEATURES "ggml.cpu-features"
#define GGML_EXTENSION_CPU_FEATURES_REVISION 1
struct ggml_extension_cpu_features {
    uint32_t size;
    uint32_t revision;
    // As ggml_host_cpu_features(). [any-thread]
    uint64_t (*features)(const struct ggml_host_table *host);
};

#ifdef __cplusplus
}
#endif

#endif
