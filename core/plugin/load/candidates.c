// SPDX-License-Identifier: MIT
// The set of candidates of one call; the header describes the pipeline that it goes through.
#include "plugin/load/candidates.h"

#include <string.h>

#include "base/array.h"
#include "base/env.h"
#include "base/mem.h"
#include "base/status.h"
#include "plugin/discover/search_path.h"
#include "plugin/registry/registry.h"

// Returns NULL, for the callers below.
static struct candidate *fail_without_memory(const char *path) {
    ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for plugin '%s'", path);
    return NULL;
}

// --- discover ------------------------------------------------------------------------------------

struct candidate *candidates_add(struct candidates *set, const char *path,
                                 const struct builtin_plugin *builtin) {
    if (!array_grow(&set->items, &set->capacity, (int64_t)set->count + 1, sizeof(set->items[0])))
        return fail_without_memory(path);
    struct candidate *added = &set->items[set->count];
    if (candidate_init(added, path, builtin) != GGML_HOST_OK) return fail_without_memory(path);
    ++set->count;
    return added;
}

// A directory that others can write to is listed as a refused candidate, so that the report
// explains why nothing came from it.
static enum ggml_host_status add_directory(struct candidates *set, struct candidates_dir *dir,
                                           const struct load_policy *policy,
                                           bool (*skip)(const char *path), struct arena *arena) {
    bool complete = true;
    if (dir->status == GGML_HOST_OK) dir->status = policy_check_dir(policy, dir->path);
    if (dir->status == GGML_HOST_UNTRUSTED) {
        struct candidate *refused = candidates_add(set, dir->path, NULL);
        if (!refused) return GGML_HOST_OUT_OF_MEMORY;
        candidate_refuse_directory(refused);
    }
    if (dir->status == GGML_HOST_OK)
        dir->status = search_dir_list(dir->path, arena, &dir->paths, &dir->count);
    for (size_t i = 0; i < dir->count; ++i) {
        if (skip && skip(dir->paths[i])) continue;
        complete &= candidates_add(set, dir->paths[i], NULL) != NULL;
    }
    return complete && dir->status != GGML_HOST_OUT_OF_MEMORY ? GGML_HOST_OK
                                                              : GGML_HOST_OUT_OF_MEMORY;
}

// Failures of single directories are recorded and do not end the search.
enum ggml_host_status candidates_discover(struct candidates *set, const char *dir,
                                          const struct load_policy *policy,
                                          bool (*skip)(const char *path), struct arena *arena,
                                          struct candidates_dir **out_dirs, size_t *out_count) {
    struct search_dir *path = NULL;
    size_t count = 0;
    *out_dirs = NULL;
    *out_count = 0;
    enum ggml_host_status status = search_path_build(dir, arena, &path, &count);
    if (status != GGML_HOST_OK) return status;
    struct candidates_dir *dirs = arena_alloc(arena, count * sizeof(*dirs) + 1);
    if (!dirs) return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for directories");
    for (size_t i = 0; i < count; ++i) {
        dirs[i] = (struct candidates_dir){
            .path = path[i].path, .origin = path[i].origin, .status = path[i].status};
        if (add_directory(set, &dirs[i], policy, skip, arena) != GGML_HOST_OK)
            status = GGML_HOST_OUT_OF_MEMORY;
    }
    *out_dirs = dirs;
    *out_count = count;
    return status;
}

// Built-ins are candidates like files, with a path that is no path.
enum ggml_host_status candidates_add_builtins(struct candidates *set,
                                              bool (*skip)(const struct builtin_plugin *builtin)) {
    size_t count;
    enum ggml_host_status status = GGML_HOST_OK;
    const struct builtin_plugin *builtins = builtin_plugins(&count);
    for (size_t i = 0; i < count; ++i) {
        if (skip && skip(&builtins[i])) continue;
        if (!candidates_add(set, BUILTIN_PATH, &builtins[i])) status = GGML_HOST_OUT_OF_MEMORY;
    }
    return status;
}

// GGML_BACKEND_PATH, which ggml reads as well: one file, whatever its name.
enum ggml_host_status candidates_add_named_file(struct candidates *set,
                                                bool (*skip)(const char *path)) {
    const char *path = ggml_env(GGML_ENV_GGML_BACKEND_PATH);
    if (!path || (skip && skip(path))) return GGML_HOST_OK;
    struct candidate *candidate = candidates_add(set, path, NULL);
    if (!candidate) return GGML_HOST_OUT_OF_MEMORY;
    if (!search_path_is_absolute(path)) {
        candidate_refuse(candidate, GGML_PLUGIN_STAGE_FOUND, GGML_HOST_INVALID_ARGUMENT,
                         "GGML_BACKEND_PATH: '%s' is not an absolute path",
                         search_path_label(path));
    }
    return GGML_HOST_OK;
}

// --- select --------------------------------------------------------------------------------------

// Only earlier candidates count, so that the first one found stays. O(n).
const struct candidate *candidates_find_same(const struct candidates *set, size_t index) {
    for (size_t i = 0; i < index; ++i) {
        if (candidate_is_same_file(&set->items[i], &set->items[index])) return &set->items[i];
    }
    return NULL;
}

// A stable maximum: of equals the first one found wins.
size_t candidates_best(const struct candidates *set, const char *name,
                       int (*rank)(const void *context, size_t index), const void *context) {
    size_t best = set->count;
    int best_rank = 0;
    for (size_t i = 0; i < set->count; ++i) {
        const int own_rank = strcmp(set->items[i].name, name) == 0 ? rank(context, i) : 0;
        if (own_rank == 0 || own_rank < best_rank) continue;
        if (own_rank == best_rank && !candidate_is_better(&set->items[i], &set->items[best]))
            continue;
        best = i;
        best_rank = own_rank;
    }
    return best;
}

// Names of all fit candidates, by which the filter tells plugin names from device names.
enum ggml_host_status candidates_read_filter(const struct candidates *set, struct arena *arena,
                                             struct device_filter *out_filter) {
    const enum ggml_host_status status = registry_read_filter(set->count, arena, out_filter);
    for (size_t i = 0; status == GGML_HOST_OK && i < set->count; ++i) {
        if (set->items[i].state == CANDIDATE_FIT)
            filter_add_plugin_name(out_filter, set->items[i].name);
    }
    return status;
}

// Records that were not handed over to the list belong to the set.
void candidates_free(struct candidates *set) {
    for (size_t i = 0; i < set->count; ++i) {
        plugin_file_close(&set->items[i].file);
        ggml_mem_free(set->items[i].record);
    }
    ggml_mem_free(set->items);
    memset(set, 0, sizeof(*set));
}
