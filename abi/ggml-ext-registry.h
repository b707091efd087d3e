// SPDX-License-Identifier: MIT
// ggml-ext-registry.h: extension "ggml.registry", which the host offers: devices that become
// more while a plugin is in use.
//
// A part of ggml-plugin.h; how extensions are offered and found is in ggml-plugin-extensions.h.
#ifndef GGML_EXT_REGISTRY_H
#define GGML_EXT_REGISTRY_H

#include <stdint.h>

#include "ggml-plugin-host.h"

#ifdef __cplusplus
extern "C" {
#endif

// Extension "ggml.registry", revision 1: for plugins whose devices become more while they are in
// use, which their notes say with GGML_PLUGIN_FLAG_DYNAMIC_DEVICES.
#define GGML_EXTENSION_REGISTRY "ggml.registry"
#define GGML_EXTENSION_REGISTRY_REVISION 1
struct ggml_extension_registry {
    uint32_t size;
    uint32_t revision;
    // get_device_count returns more than before: the host asks again, and shows the new devices to
    // the application, before this returns or when the thread that loads or unloads is done. An
    // enum ggml_host_status; UNSUPPORTED without the flag. Never blocks. [any-thread & attached]
    int32_t (*devices_changed)(const struct ggml_host_table *host);
};

#ifdef __cplusplus
}
#endif

#endif
