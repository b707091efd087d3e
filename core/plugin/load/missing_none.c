// SPDX-License-Identifier: MIT
// Platforms whose linkers name what is missing need nothing here.
#include "plugin/load/missing.h"

bool missing_import(const struct plugin_file *file, const char *path, char *out_name, size_t size) {
    (void)file;
    (void)path;
    if (size > 0) out_name[0] = '\0';
    return false;
}
