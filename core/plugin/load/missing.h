// SPDX-License-Identifier: MIT
// Finding the missing library where the linker's message does not name it.
#ifndef GGML_PLUGIN_LOAD_MISSING_H
#define GGML_PLUGIN_LOAD_MISSING_H

#include "plugin/image/plugin_file.h"

// The name of the first library that the file asks for and that can't be found; false, and "", if
// that can't be told. Runs none of their code. [any-thread]
bool missing_import(const struct plugin_file *file, const char *path, char *out_name, size_t size);

#endif
