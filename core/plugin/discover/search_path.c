// SPDX-License-Identifier: MIT
// Directories in order of precedence, each once; the files of each sorted by name, so that what
// is chosen does not depend on the file system.
#include "plugin/discover/search_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/dl/dl.h"
#include "base/env.h"
#include "base/mem.h"
#include "base/status.h"
#include "ggml-version.h"

#define PLUGIN_FOLDER "ggml-plugins"

enum { MAX_PATH_BYTES = 8192, LABEL_SIZE = 200 };

// The end of a path tells more than its beginning.
const char *search_path_label(const char *path) {
    const size_t length = strlen(path);
    return length > LABEL_SIZE ? path + length - LABEL_SIZE : path;
}

static enum ggml_host_status no_memory(void) {
    return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "search_path: no memory for the list of directories");
}

// --- directories

// Collects directories without repeats.
struct path_builder {
    struct arena *arena;
    struct search_dir *dirs; // as many as could ever be added
    size_t count;
    bool out_of_memory;
};

// Adds a directory unless it is empty or present. A relative one is kept with its status, so that a
// report tells why it was left out. O(directories): there are a handful.
static void add_dir(struct path_builder *builder, const char *path, size_t length,
                    const char *origin) {
    if (length == 0) return;
    for (size_t i = 0; i < builder->count; ++i) {
        const char *known = builder->dirs[i].path;
        if (strlen(known) == length && memcmp(known, path, length) == 0) return;
    }
    char *copy = arena_alloc(builder->arena, length + 1);
    if (!copy) {
        builder->out_of_memory = true;
        return;
    }
    memcpy(copy, path, length);
    const enum ggml_host_status status =
        search_path_is_absolute(copy) ? GGML_HOST_OK : GGML_HOST_INVALID_ARGUMENT;
    builder->dirs[builder->count++] = (struct search_dir){copy, origin, status};
}

// Splits a list as in PATH.
static void add_list(struct path_builder *builder, const char *list, const char *origin) {
    while (list) {
        const char *end = strchr(list, search_list_separator);
        add_dir(builder, list, end ? (size_t)(end - list) : strlen(list), origin);
        list = end ? end + 1 : NULL;
    }
}

// The plugin folder inside `dir`; a path that is too long is left out, since no file could be
// opened there.
static void add_folder_in(struct path_builder *builder, const char *dir, const char *origin) {
    char path[MAX_PATH_BYTES + sizeof(PLUGIN_FOLDER) + 1];
    const int n = snprintf(path, sizeof(path), "%s%c%s", dir, search_path_separator, PLUGIN_FOLDER);
    if (n > 0 && (size_t)n < sizeof(path)) add_dir(builder, path, (size_t)n, origin);
}

// An upper bound: empty entries count too.
static size_t count_entries(const char *list) {
    size_t count = list ? 1 : 0;
    for (; list && *list; ++list)
        count += *list == search_list_separator;
    return count;
}

// Whether a program or library there belongs to the installation that was configured.
static bool is_in_prefix(const char *dir) {
    const size_t length = strlen(GGML_HOST_PREFIX);
    return strncmp(dir, GGML_HOST_PREFIX, length) == 0 &&
           (dir[length] == '\0' || dir[length] == search_path_separator);
}

// Order of precedence: GGML_PLUGIN_PATH, what was shipped beside this program or library, the
// configured directory. A program or library that belongs to the installation does not come before
// its directory.
static void add_default_dirs(struct path_builder *builder, const char *list) {
    static const char anchor; // an address within this library
    char executable[MAX_PATH_BYTES], library[MAX_PATH_BYTES];
    const bool has_executable = dl_executable_dir(executable, sizeof(executable));
    const bool has_library = dl_module_dir(&anchor, library, sizeof(library));
    add_list(builder, list, "GGML_PLUGIN_PATH");
    if (has_executable && !is_in_prefix(executable))
        add_folder_in(builder, executable, "executable");
    if (has_library && !is_in_prefix(library)) add_folder_in(builder, library, "library");
    add_dir(builder, GGML_HOST_PLUGIN_DIR, strlen(GGML_HOST_PLUGIN_DIR), "configured");
    if (has_library) add_folder_in(builder, library, "library");
    if (has_executable) add_folder_in(builder, executable, "executable");
}

// A directory given by the caller replaces the whole search path.
enum ggml_host_status search_path_build(const char *caller_dir, struct arena *arena,
                                        struct search_dir **out_dirs, size_t *out_count) {
    *out_dirs = NULL;
    *out_count = 0;
    if (caller_dir && !search_path_is_absolute(caller_dir)) {
        return ggml_fail(
            GGML_HOST_INVALID_ARGUMENT,
            "search_path_build: plugin directory '%s' is not absolute; plugins are never "
            "looked for relative to the working directory",
            search_path_label(caller_dir));
    }
    enum { N_FIXED = 3 };
    const char *list = caller_dir ? NULL : ggml_env(GGML_ENV_GGML_PLUGIN_PATH);
    struct path_builder builder = {.arena = arena};
    builder.dirs = arena_alloc(arena, (count_entries(list) + N_FIXED) * sizeof(*builder.dirs));
    if (!builder.dirs) return no_memory();
    if (caller_dir) {
        add_dir(&builder, caller_dir, strlen(caller_dir), "caller");
    } else {
        add_default_dirs(&builder, list);
    }
    if (builder.out_of_memory) return no_memory();
    *out_dirs = builder.dirs;
    *out_count = builder.count;
    return GGML_HOST_OK;
}

// --- files

struct file_list {
    const char *dir;
    struct arena *arena;
    char **paths;
    size_t count;
    int32_t capacity;
};

// Keeps files whose name is one of a plugin; all others in the directory are ignored without a
// record.
static enum ggml_host_status add_file(const char *file_name, void *context) {
    struct file_list *list = context;
    if (!plugin_file_name_parse(file_name, NULL, NULL, 0)) return GGML_HOST_OK;
    const size_t dir_length = strlen(list->dir);
    const size_t size = dir_length + strlen(file_name) + 2;
    const bool grown =
        array_grow(&list->paths, &list->capacity, (int64_t)list->count + 1, sizeof(list->paths[0]));
    char *path = grown ? arena_alloc(list->arena, size) : NULL;
    if (!path) return no_memory();
    if (search_path_is_separator(list->dir[dir_length - 1])) {
        snprintf(path, size, "%s%s", list->dir, file_name);
    } else {
        snprintf(path, size, "%s%c%s", list->dir, search_path_separator, file_name);
    }
    list->paths[list->count++] = path;
    return GGML_HOST_OK;
}

// By bytes, so that the order is the same on every system.
static int compare_paths(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

// Collected on the heap, sorted, then copied into the arena: lists of unknown length would waste
// arena memory while they grow.
enum ggml_host_status search_dir_list(const char *dir, struct arena *arena, char ***out_paths,
                                      size_t *out_count) {
    struct file_list list = {.dir = dir, .arena = arena};
    *out_paths = NULL;
    *out_count = 0;
    if (!dir || !search_path_is_absolute(dir)) {
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                         "search_dir_list: '%s' is not an absolute path",
                         dir ? search_path_label(dir) : "");
    }
    enum ggml_host_status status = search_dir_visit(dir, add_file, &list);
    if (status != GGML_HOST_OK || list.count == 0) goto fail;
    qsort(list.paths, list.count, sizeof(*list.paths), compare_paths);
    char **paths = arena_alloc(arena, list.count * sizeof(*paths));
    if (!paths) {
        status = no_memory();
        goto fail;
    }
    memcpy(paths, list.paths, list.count * sizeof(*paths));
    *out_paths = paths;
    *out_count = list.count;
fail:
    ggml_mem_free(list.paths);
    return status;
}

// --- names

// Both separators count on Windows, where the system accepts both.
bool search_path_is_separator(char c) {
    return c == '/' || c == search_path_separator;
}

const char *search_path_file_name(const char *path) {
    const char *name = path;
    for (; *path; ++path) {
        if (search_path_is_separator(*path)) name = path + 1;
    }
    return name;
}

// Bytes that a name may have; the dash separates its parts.
static bool is_name_byte(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
}

// Length of the text before one of the endings of a library, or 0.
static size_t stem_length(const char *text) {
    static const char *const endings[] = {".so", ".dll", ".dylib"};
    const size_t length = strlen(text);
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); ++i) {
        const size_t n = strlen(endings[i]);
        if (length > n && strcmp(text + length - n, endings[i]) == 0) return length - n;
    }
    return 0;
}

// Checks the bytes of a name and copies it; false if a byte isn't permitted or it does not fit.
static bool take_part(const char *text, size_t length, char *out_part, size_t size) {
    for (size_t i = 0; i < length; ++i) {
        if (!is_name_byte(text[i])) return false;
    }
    if (!out_part) return true;
    if (length >= size) return false;
    memcpy(out_part, text, length);
    out_part[length] = '\0';
    return true;
}

// The first dash ends the name; the variant may contain dots but no dash.
bool plugin_file_name_parse(const char *file_name, char *out_name, char *out_variant, size_t size) {
    if (out_name && size > 0) out_name[0] = '\0';
    if (out_variant && size > 0) out_variant[0] = '\0';
    if (strncmp(file_name, "lib", 3) == 0) file_name += 3;
    if (strncmp(file_name, "ggml-", 5) != 0) return false;
    const char *name = file_name + 5;
    const size_t length = stem_length(name);
    const char *dash = memchr(name, '-', length);
    const size_t name_length = dash ? (size_t)(dash - name) : length;
    if (name_length == 0 || !take_part(name, name_length, out_name, size)) return false;
    if (!dash) return true;
    const size_t variant_length = length - name_length - 1;
    return variant_length > 0 && take_part(dash + 1, variant_length, out_variant, size);
}
