// SPDX-License-Identifier: MIT
// Temporary directories full of plugins.
#ifndef TESTS_SUPPORT_PLUGIN_DIR_H
#define TESTS_SUPPORT_PLUGIN_DIR_H

#include <stdbool.h>
#include <stddef.h>

#include "ggml-host.h"

struct plugin_dir {
    char path[256];
    char marker[300]; // every plugin of tests/plugins that is mapped adds its name to this file
    char joined[600]; // what plugin_dir_path() returned last
};

// Makes an empty directory and points the marker's environment variable into it.
void plugin_dir_open(struct plugin_dir *dir);
// Removes it with everything in it.
void plugin_dir_close(struct plugin_dir *dir);
// Full path of a file in it; valid until the next call.
const char *plugin_dir_path(struct plugin_dir *dir, const char *file_name);
// Copies a built plugin into it under another name.
void plugin_dir_add(struct plugin_dir *dir, const char *built_path, const char *file_name);
// The same with the fixture of that name in a folder of built ones.
void plugin_dir_add_from(struct plugin_dir *dir, const char *folder, const char *fixture,
                         const char *file_name);
// Loads it, checks the status and, of a failure, that its message has this word; unloads what was
// loaded.
void plugin_dir_expect(struct plugin_dir *dir, const char *file_name, enum ggml_host_status status,
                       const char *word);
// Writes bytes over the note of a plugin in it.
void plugin_dir_patch(struct plugin_dir *dir, const char *file_name, size_t note_offset,
                      const void *bytes, size_t size);
// Replaces every occurrence of a text in it by another of the same length.
void plugin_dir_replace(struct plugin_dir *dir, const char *file_name, const char *text,
                        const char *replacement);
// Whether a plugin of that name (in its note when it was built) was mapped since plugin_dir_open.
bool plugin_dir_was_mapped(const struct plugin_dir *dir, const char *plugin_name);

// The record of a file in it, path "" if there is none; valid until the next call.
const struct ggml_plugin_record *plugin_dir_record(struct plugin_dir *dir, const char *file_name);
const struct ggml_plugin_record *find_record(const char *path);

// Whether a file of that name is mapped into this process.
bool is_mapped(const char *file_name);
size_t count_mappings(void);
size_t count_open_files(void);
size_t count_threads(void);
// Unloads every plugin.
void unload_everything(void);

#endif
