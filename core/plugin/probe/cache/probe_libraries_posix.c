// SPDX-License-Identifier: MIT
// The dynamic linker lists what is mapped under the names by which it was found. A link that leads
// elsewhere later is noticed too, which the paths in /proc/self/maps would not show.
#ifndef _WIN32
#define _GNU_SOURCE
#include "plugin/probe/cache/probe_libraries.h"

#include <string.h>
#include <time.h>

#ifdef __linux__
#include <link.h>
#endif

#include "base/status.h"

// Times of files are those of the kernel's last tick, which may be this much earlier.
#define TICK_NS INT64_C(20000000)

int64_t probe_libraries_now(void) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0) return 0;
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#ifdef __linux__
struct list {
    struct probe_result *result;
    const struct plugin_file_id *plugin;
    int64_t since;
    bool no_memory;
};

// Whether the path names the same file next time. Descriptors' paths, by which the plugin itself
// was mapped, do not; the program and the kernel's own mapping have none.
static bool is_lasting(const char *path) {
    return path && path[0] == '/' && strncmp(path, "/proc/", 6) != 0 &&
           strlen(path) < PROBE_TEXT_MAX;
}

// Callback of dl_iterate_phdr(), under the dynamic linker's lock: must call nothing that could load
// code.
static int note_library(struct dl_phdr_info *info, size_t size, void *context) {
    struct list *list = context;
    struct probe_result *result = list->result;
    struct probe_library library = {.path = info->dlpi_name};
    (void)size;
    if (!is_lasting(library.path)) return 0;
    const bool known = plugin_file_identify(library.path, &library.file);
    if (known && plugin_file_is_same(&library.file, list->plugin)) return 0;
    if (!known || library.file.ctime_ns >= list->since - TICK_NS)
        memset(&library.file, 0, sizeof(library.file));
    if (result->n_libraries == PROBE_LIBRARIES_MAX) return 1;
    library.path = arena_strdup(&result->arena, library.path);
    list->no_memory = !library.path;
    if (list->no_memory) return 1;
    result->libraries[result->n_libraries++] = library;
    return 0;
}

// Records the libraries that are mapped now, with the plugin: the result is only valid for these
// files.
enum ggml_host_status probe_libraries_take(struct probe_result *result,
                                           const struct plugin_file_id *plugin, int64_t since) {
    struct list list = {.result = result, .plugin = plugin, .since = since};
    result->libraries =
        arena_alloc(&result->arena, PROBE_LIBRARIES_MAX * sizeof(*result->libraries));
    list.no_memory = !result->libraries;
    if (!list.no_memory) dl_iterate_phdr(note_library, &list);
    if (!list.no_memory) return GGML_HOST_OK;
    result->n_libraries = 0;
    return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for the names of libraries");
}
#else
enum ggml_host_status probe_libraries_take(struct probe_result *result,
                                           const struct plugin_file_id *plugin, int64_t since) {
    (void)plugin;
    (void)since;
    result->n_libraries = 0;
    return GGML_HOST_OK;
}
#endif

// Whether all libraries are still the files that the plugin ran with.
bool probe_libraries_hold(const struct probe_result *result) {
    struct plugin_file_id now;
    for (size_t i = 0; i < result->n_libraries; ++i) {
        const struct probe_library *library = &result->libraries[i];
        if (!plugin_file_identify(library->path, &now)) return false;
        if (!plugin_file_is_same(&library->file, &now)) return false;
    }
    return true;
}
#endif
