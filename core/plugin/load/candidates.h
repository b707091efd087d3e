// SPDX-License-Identifier: MIT
// The pipeline that ggml_plugin_load_all(), ggml_plugin_load() and ggml_plugin_probe() share, up to
// where a plugin is started:
//
//   discover   candidates_discover(), candidates_add_builtins(), candidates_add_named_file()
//   examine    candidate_examine() for each, candidates_find_same()
//   select     candidates_read_filter(), candidate_apply_filter(), candidates_best()
//   start      candidate_load() here, or a helper process and probe_run_conclude()
//
// Discovering and examining need no lock: files may lie on a disk that takes its time. Selecting
// needs the registry's, since it compares with what is loaded.
#ifndef GGML_PLUGIN_LOAD_CANDIDATES_H
#define GGML_PLUGIN_LOAD_CANDIDATES_H

#include "plugin/load/candidate.h"

// In the order in which they were found.
struct candidates {
    struct candidate *items;
    size_t count;
    int32_t capacity;
};

// What was seen of one directory. Strings are the arena's that candidates_discover() was given.
struct candidates_dir {
    const char *path;
    const char *origin;           // as in struct search_dir
    enum ggml_host_status status; // of listing it; UNTRUSTED: others could change it
    char **paths;                 // the files that are named like plugins
    size_t count;
};

// Adds one file, or one built-in plugin with the path BUILTIN_PATH. Returns it, valid until the
// next addition, or NULL and OUT_OF_MEMORY as the thread's last status. [init]
struct candidate *candidates_add(struct candidates *set, const char *path,
                                 const struct builtin_plugin *builtin);
// Adds the files of the search path, or of `dir` if it isn't NULL, save those for which `skip` (may
// be NULL) returns true. A directory that the policy refuses becomes a candidate that is refused
// already. Goes on after every failure. Returns OUT_OF_MEMORY if anything is missing for lack of
// memory, INVALID_ARGUMENT if `dir` is no absolute path (no directory is returned then), else OK;
// each directory has its own status, and the thread's last error is that of the last one that
// failed. [init]
enum ggml_host_status candidates_discover(struct candidates *set, const char *dir,
                                          const struct load_policy *policy,
                                          bool (*skip)(const char *path), struct arena *arena,
                                          struct candidates_dir **out_dirs, size_t *out_count);
// Adds the plugins that are linked in, save those for which `skip` (may be NULL) returns true.
// OUT_OF_MEMORY. [init]
enum ggml_host_status candidates_add_builtins(struct candidates *set,
                                              bool (*skip)(const struct builtin_plugin *builtin));
// Adds the file that GGML_BACKEND_PATH names, whatever its name is; a relative path is refused at
// once. Does nothing where the variable is not set or `skip` (may be NULL) returns true.
// OUT_OF_MEMORY. [init]
enum ggml_host_status candidates_add_named_file(struct candidates *set,
                                                bool (*skip)(const char *path));
// An earlier fit candidate that is the same file (device and inode) as that at `index`, or NULL.
// [any-thread]
const struct candidate *candidates_find_same(const struct candidates *set, size_t index);
// The index of the best candidate with this plugin name, or `count` if there is none. `rank`
// returns 0 for a candidate that is out of the question; a higher rank wins, and between equal ones
// candidate_is_better() decides. [any-thread]
size_t candidates_best(const struct candidates *set, const char *name,
                       int (*rank)(const void *context, size_t index), const void *context);
// Reads GGML_DEVICES with the registry lock held; the names of all plugins in sight, those of the
// registry too, tell what its entries mean. OUT_OF_MEMORY. [stream]
enum ggml_host_status candidates_read_filter(const struct candidates *set, struct arena *arena,
                                             struct device_filter *out_filter);
// Closes what is open and frees everything, records that were not handed over included.
void candidates_free(struct candidates *set);

#endif
