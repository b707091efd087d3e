// SPDX-License-Identifier: MIT
// ggml-plugin-extensions.h: the extensions of the contract, one header for each: tables of
// functions that the host or a plugin may offer beyond what every one of them has.
//
// A part of ggml-plugin.h. Each is found by its id with get_extension of the host table or of the
// plugin table, and may be missing. `size` and `revision` stand first in each: a revision adds at
// the end and changes nothing that is there. Ids that begin with "ggml." are of this contract; what
// others begin with stands at get_extension in ggml-plugin-host.h.
//
// How a plugin asks the host, in its entry or later:
//
//     const struct ggml_extension_plugin_path *paths =
//         host->get_extension(host, GGML_EXTENSION_PLUGIN_PATH, 1);
//     if (paths) load_kernels(paths->folder(host));
//
// How a plugin offers one, by the function that it names in GGML_PLUGIN_ENTRY(), and how a program
// asks:
//
//     static const void *extension(const char *id, uint32_t min_revision) {
//         static const struct ggml_extension_device_info info = {sizeof(info), 1, device_info};
//         if (strcmp(id, GGML_EXTENSION_DEVICE_INFO) == 0 && min_revision <= info.revision)
//             return &info;
//         return NULL;
//     }
//
//     const struct ggml_extension_device_info *info =
//         ggml_backend_reg_get_extension(reg, GGML_EXTENSION_DEVICE_INFO, 1); // ggml-host.h
//
// `size` of a table is for those who read a later revision's entries; an entry of the revision that
// was asked for is always there. Thread tags are defined in ggml.h.
#ifndef GGML_PLUGIN_EXTENSIONS_H
#define GGML_PLUGIN_EXTENSIONS_H

// Offered by the host.
#include "ggml-ext-cpu-features.h"
#include "ggml-ext-host-memory.h"
#include "ggml-ext-plugin-path.h"
#include "ggml-ext-registry.h"
#include "ggml-ext-trial.h"

// Offered by plugins.
#include "ggml-ext-comm.h"
#include "ggml-ext-device-figures.h"
#include "ggml-ext-device-info.h"
#include "ggml-ext-external-memory.h"
#include "ggml-ext-profile.h"

#endif
