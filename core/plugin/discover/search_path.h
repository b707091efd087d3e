// SPDX-License-Identifier: MIT
// Where plugins are looked for, and which files there count as one.
#ifndef GGML_PLUGIN_DISCOVER_SEARCH_PATH_H
#define GGML_PLUGIN_DISCOVER_SEARCH_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/data/arena.h"
#include "ggml-plugin.h"

// One directory of the search path.
struct search_dir {
    const char *path;
    const char *origin; // "caller", "GGML_PLUGIN_PATH", "configured", "library", "executable"
    enum ggml_host_status status; // INVALID_ARGUMENT: not absolute, listed for the report only
};

// The directories in order, without repeats; they need not exist. With a caller's directory it is
// the only one. All memory is the arena's. INVALID_ARGUMENT: caller_dir is relative or empty.
// [any-thread]
enum ggml_host_status search_path_build(const char *caller_dir, struct arena *arena,
                                        struct search_dir **out_dirs, size_t *out_count);

// Paths of the files in `dir` that are named like plugins, sorted by bytes. NOT_FOUND,
// PERMISSION_DENIED, INVALID_ARGUMENT (not a directory, too long), IO_ERROR, OUT_OF_MEMORY.
// [any-thread]
enum ggml_host_status search_dir_list(const char *dir, struct arena *arena, char ***out_paths,
                                      size_t *out_count);

// Splits [lib]ggml-NAME[-VARIANT].{so,dll,dylib} (no directory part). NAME and VARIANT are
// non-empty and consist of letters, digits, '_' and '.'. out_name and out_variant (each may be
// NULL) take `size` bytes; false if the name is none of a plugin or does not fit. [any-thread]
bool plugin_file_name_parse(const char *file_name, char *out_name, char *out_variant, size_t size);

// The last part of a path. [any-thread]
const char *search_path_file_name(const char *path);
// Whether it separates the parts of a path: '/' does on every system. [any-thread]
bool search_path_is_separator(char c);

// --- per platform

// What separates the directories of GGML_PLUGIN_PATH, and the parts of a path.
extern const char search_list_separator;
extern const char search_path_separator;
bool search_path_is_absolute(const char *path);
// Calls `visit` with each file name of a directory until it returns something but OK. Statuses
// as search_dir_list.
enum ggml_host_status search_dir_visit(const char *dir,
                                       enum ggml_host_status (*visit)(const char *file_name,
                                                                      void *context),
                                       void *context);
// For messages: of a long path the end.
const char *search_path_label(const char *path);

#endif
