// SPDX-License-Identifier: MIT
// Temporary directories, per system. What the process holds is counted there too: see plugin_dir.h.
#ifndef TESTS_SUPPORT_TEMP_DIR_H
#define TESTS_SUPPORT_TEMP_DIR_H

#include <stdbool.h>
#include <stddef.h>

extern const char temp_dir_separator;
// Makes an empty directory; out_path is absolute.
bool temp_dir_make(char *out_path, size_t size);
// Removes it with everything in it.
void temp_dir_remove(const char *path);

#endif
