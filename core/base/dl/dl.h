// SPDX-License-Identifier: MIT
// The dynamic linker and the places that programs are found at, per platform.
#ifndef GGML_BASE_DL_H
#define GGML_BASE_DL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ggml-plugin.h"

struct dl_library; // opaque

// Maps a shared object with all symbols bound and none exported; NULL on failure, out_message (if
// not NULL) then receives the linker's text, truncated to size. Runs constructors. [any-thread]
struct dl_library *dl_open(const char *path, char *out_message, size_t size);
// Whether the linker can be given an open file (a descriptor) instead of its path: needs Linux, and
// /proc for this process. [any-thread]
bool dl_can_open_file(intptr_t file, const char *path);
// As dl_open of the file that is open, whatever lies at `path` by now; the library is known by that
// path afterwards. Its $ORIGIN leads nowhere. [any-thread]
struct dl_library *dl_open_file(intptr_t file, const char *path, char *out_message, size_t size);
// Whether the linker takes a path as it is, without replacing words in it. [any-thread]
bool dl_takes_path(const char *path);
// DAMAGED_FILE if the library is not a mapping of this open file, IO_ERROR if that can't be found
// out; OK where the system does not tell. [any-thread]
enum ggml_host_status dl_check_mapping(struct dl_library *library, intptr_t file, const char *path);
void *dl_symbol(struct dl_library *library, const char *name);
void dl_close(struct dl_library *library);

// Absolute directory of the running executable, or of the module (library or executable) that holds
// `address`; false when unknown. [any-thread]
bool dl_executable_dir(char *out_path, size_t size);
bool dl_module_dir(const void *address, char *out_path, size_t size);

#endif
