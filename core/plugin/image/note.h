// SPDX-License-Identifier: MIT
// Reads a plugin's note from its file without mapping it, so that nothing of an unfit plugin ever
// runs.
#ifndef GGML_PLUGIN_IMAGE_NOTE_H
#define GGML_PLUGIN_IMAGE_NOTE_H

#include "ggml-plugin.h"
#include "plugin/image/plugin_file.h"

// Reads and validates the note of the file at `path`. *out_note is zeroed on failure, except that
// WRONG_MACHINE sets its machine (if that has a number); *out_id (may be NULL) is set as soon as
// the file could be opened. Never blocks on a FIFO or device and never runs or maps the file.
//   NOT_FOUND, PERMISSION_DENIED, IO_ERROR, INVALID_ARGUMENT (path), OUT_OF_MEMORY
//   NOT_A_PLUGIN   not a regular file, not a shared library, or one without a note
//   DAMAGED_FILE   truncated, or its tables or note contradict themselves
//   WRONG_MACHINE  a library of another processor or operating system
//   WRONG_CONTRACT a note that only another major version can read
// [any-thread]
enum ggml_host_status plugin_note_read(const char *path, struct ggml_plugin_note *out_note,
                                       struct plugin_file_id *out_id);

// The same from a file that is open. [any-thread]
enum ggml_host_status plugin_note_read_file(const struct plugin_file *file, const char *path,
                                            struct ggml_plugin_note *out_note);

// The same for an image that is not a file; accepts libraries of every operating system.
// [any-thread]
enum ggml_host_status plugin_note_parse(const struct image_source *source,
                                        struct ggml_plugin_note *out_note);

// Validates a note in memory; `label` begins the message. DAMAGED_FILE. [any-thread]
enum ggml_host_status plugin_note_check(const struct ggml_plugin_note *note, const char *label);

#endif
