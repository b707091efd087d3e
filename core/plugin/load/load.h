// SPDX-License-Identifier: MIT
// Loading and unloading; the public entries are in ggml-host.h.
#ifndef GGML_PLUGIN_LOAD_LOAD_H
#define GGML_PLUGIN_LOAD_LOAD_H

// Before the first look at the registry: a program that never loads anything still finds the
// built-in plugins. Does nothing afterwards, once load_all ran, or while this thread is loading.
// [any-thread]
void load_builtins_once(void);

#endif
