// SPDX-License-Identifier: MIT
// The files below cache_file.h, per system. Paths are UTF-8. [any-thread]
#ifndef GVK_CACHE_DISK_H
#define GVK_CACHE_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

bool gvk_disk_is_absolute(const char *path);
// The user's directory for caches of this library; "" if there is none.
void gvk_disk_default_dir(char *out_path, size_t size);
// Whether files may be kept in the directory, which is made with `makes`: nobody but the user and
// the system's administrator decides where it lies.
bool gvk_disk_enter(const char *dir, bool makes);
// For reading; NULL if there is none, or if it is another user's, or no regular file.
FILE *gvk_disk_open_own(const char *path);
// A new file beside `target`, for the user only; NULL on failure. Its path is put out.
FILE *gvk_disk_create_beside(const char *target, char *out_path, size_t size);
// Gives a file another's name, in the place of what had it.
bool gvk_disk_rename(const char *path, const char *target);
void gvk_disk_remove(const char *path);

#endif
