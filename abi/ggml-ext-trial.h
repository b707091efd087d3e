// SPDX-License-Identifier: MIT
// ggml-ext-trial.h: extension "ggml.trial", which the host offers to a plugin that is only tried.
//
// A part of ggml-plugin.h; how extensions are offered and found is in ggml-plugin-extensions.h.
#ifndef GGML_EXT_TRIAL_H
#define GGML_EXT_TRIAL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Extension "ggml.trial", revision 1: offered where a plugin is started only to see what becomes of
// it, in a process that soon ends. A plugin that could disturb others by that (by taking part in a
// job, by holding what only one process can) leaves it out and shows the devices that it knows
// without, or none if its note has GGML_PLUGIN_FLAG_DYNAMIC_DEVICES.
#define GGML_EXTENSION_TRIAL "ggml.trial"
#define GGML_EXTENSION_TRIAL_REVISION 1
struct ggml_extension_trial {
    uint32_t size;
    uint32_t revision;
};

#ifdef __cplusplus
}
#endif

#endif
