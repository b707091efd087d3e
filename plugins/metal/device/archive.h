// SPDX-License-Identifier: MIT
// Compiled pipelines in a file of the user's, so that the next program does not compile them again.
// Nothing of this can fail a computation: without an archive kernels are compiled.
#ifndef METAL_DEVICE_ARCHIVE_H
#define METAL_DEVICE_ARCHIVE_H

#include <stdbool.h>

#include "base/objc.h"

enum { METAL_ARCHIVE_PATH = 512 };

struct metal_archive {
    mtl_id handle; // NULL: there is none
    char path[METAL_ARCHIVE_PATH];
    bool is_changed; // since it was read or written
};

// Opens the archive of a device for this source of kernels: what is in the file, or an empty one. A
// pool is open. [any-thread]
void metal_archive_open(struct metal_archive *archive, mtl_id device, const char *source);
// Replaces the file, if anything was added; one that can't be written stays as it is. A pool is
// open. The archive is for one thread at a time.
void metal_archive_write(struct metal_archive *archive);
// A pipeline of the function, from the archive or compiled and added to it. NULL: *out_error may
// say why. A pool is open.
mtl_id metal_archive_pipeline(struct metal_archive *archive, mtl_id device, mtl_id function,
                              mtl_id *out_error);

#endif
