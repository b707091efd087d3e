// SPDX-License-Identifier: MIT
// Folders in which plugins keep what they compiled, on POSIX systems.
#ifndef GPU_FOLDER_H
#define GPU_FOLDER_H

#include <stdbool.h>

// Whether this absolute path leads to a folder by folders and links of root and the effective user
// alone, so that nobody else decides where files go: root may have another user's HOME. With
// `makes`, folders that are missing are made in those of the effective user. [any-thread]
bool gpu_folder_is_trusted(const char *path, bool makes);

#endif
