// SPDX-License-Identifier: MIT
// Decides from a note alone whether a plugin may be loaded.
#ifndef GGML_PLUGIN_LOAD_NEGOTIATE_H
#define GGML_PLUGIN_LOAD_NEGOTIATE_H

#include "ggml-plugin.h"

// Compares a note with this host and the usable CPU features; the first that does not fit decides:
// WRONG_CONTRACT, WRONG_MACHINE, MISSING_CPU_FEATURE (the message names them), LAYOUT_MISMATCH.
// Applies to built-in plugins too. [any-thread]
enum ggml_host_status plugin_negotiate(const struct ggml_plugin_note *note, uint64_t cpu_features);

#endif
