// SPDX-License-Identifier: MIT
// Which binaries are opened: what GGML_FOREIGN_PATH names, if nobody else could have changed it and
// a helper process survived it.
#ifndef FOREIGN_FILES_H
#define FOREIGN_FILES_H

#include "binary.h"

// Whether nobody else could have changed the file; it says by itself what is wrong. [any-thread]
bool foreign_is_trusted(const char *path, char out_message[FOREIGN_MESSAGE_SIZE]);

// Receives a binary that was opened, or NULL and why it was not.
typedef void (*foreign_file_fn)(const char *path, struct foreign_binary *binary,
                                const char *message, void *context);

// Opens the files and, of each folder, the best variant of every backend in it; `list` is separated
// by colons. Blocks for as long as the helpers take. [init]
void foreign_files_open(const char *list, foreign_file_fn report, void *context);

// One file; NULL with a message. Blocks for as long as the helper takes. [any-thread]
struct foreign_binary *foreign_file_open(const char *path, char out_message[FOREIGN_MESSAGE_SIZE]);

#endif
