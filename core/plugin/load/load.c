// SPDX-License-Identifier: MIT
// A call to load is a batch: filter, policy and directories are read once, then candidates go
// through the same stages together, and each leaves a record.
#include "plugin/load/load.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "ggml-backend-impl.h"
#include "ggml-impl.h"
#include "plugin/discover/search_path.h"
#include "plugin/load/candidates.h"
#include "plugin/registry/announce.h"
#include "plugin/registry/registry.h"

static atomic_bool builtins_loaded;
static atomic_uint n_changes; // calls that loaded or noted something, for those that look meanwhile

// State of one call.
struct batch {
    struct arena arena;
    struct device_filter filter;
    struct load_policy policy;
    enum ggml_host_status policy_status; // anything but OK: no file may be loaded
    char policy_fault[512];
    struct candidates_dir *dirs;
    size_t n_dirs;
    unsigned n_changes_before; // n_changes when the batch began
    struct candidates set;
    size_t n_loaded;
    bool out_of_memory;
};

// --- candidates ----------------------------------------------------------------------------------

// Notes lack of memory in the batch, without ending it: what can be loaded is loaded, and the call
// fails at its end.
static enum ggml_host_status note_memory(struct batch *batch, enum ggml_host_status status) {
    if (status == GGML_HOST_OUT_OF_MEMORY) batch->out_of_memory = true;
    return status;
}

// Reads the policy; its error text is kept, since examining files replaces the thread's last error.
static void get_policy(struct batch *batch) {
    batch->policy_status = note_memory(batch, policy_get(&batch->arena, &batch->policy));
    if (batch->policy_status == GGML_HOST_OK) return;
    snprintf(batch->policy_fault, sizeof(batch->policy_fault), "%s", ggml_last_error());
}

// Records directories and files that have disappeared. A listing from before another call's change
// may be outdated, and is not used to declare files gone.
static void note_directories(struct batch *batch) {
    const bool is_current = atomic_load(&n_changes) == batch->n_changes_before;
    for (size_t i = 0; i < batch->n_dirs; ++i) {
        const struct candidates_dir *dir = &batch->dirs[i];
        const bool is_known = dir->status == GGML_HOST_OK || dir->status == GGML_HOST_NOT_FOUND;
        note_memory(batch, records_put_directory(dir->path, dir->origin, dir->status));
        if (is_known && is_current) records_note_gone(dir->path, dir->paths, dir->count);
    }
}

// Drops candidates that another call has loaded since they were listed.
static void drop_loaded(struct batch *batch) {
    size_t kept = 0;
    for (size_t i = 0; i < batch->set.count; ++i) {
        struct candidate *candidate = &batch->set.items[i];
        if (records_loaded(candidate->record->path)) {
            plugin_file_close(&candidate->file);
            ggml_mem_free(candidate->record);
        } else {
            batch->set.items[kept++] = *candidate;
        }
    }
    batch->set.count = kept;
}

// Whether a linked-in plugin of that name is in use; one of the name from a file doesn't count.
static bool runs_already(const struct builtin_plugin *builtin) {
    const struct host_plugin *same = registry_find_name(builtin->note->name);
    return same && strcmp(same->path, BUILTIN_PATH) == 0;
}

// Built-ins that run are no candidates.
static void add_builtins(struct batch *batch) {
    note_memory(batch, candidates_add_builtins(&batch->set, runs_already));
}

// Refuses a file that is loaded already, or is a candidate under another name, by a link or a
// second directory.
static void refuse_if_same(struct batch *batch, size_t index) {
    struct candidate *candidate = &batch->set.items[index];
    const struct host_plugin *loaded = registry_find_file(&candidate->file.id);
    const struct candidate *same = candidates_find_same(&batch->set, index);
    if (loaded && !candidate->builtin) {
        candidate->record->reg = NULL;
        candidate_refuse_duplicate(candidate, loaded->path);
    } else if (same) {
        candidate_refuse_duplicate(candidate, same->record->path);
    }
}

// Names of loaded plugins and candidates both matter.
static enum ggml_host_status prepare_filter(struct batch *batch) {
    return note_memory(batch, candidates_read_filter(&batch->set, &batch->arena, &batch->filter));
}

// Examines a candidate and adds the time to its record.
static void examine_timed(struct batch *batch, size_t index) {
    struct candidate *candidate = &batch->set.items[index];
    const int64_t start = ggml_time_us();
    note_memory(batch, candidate_examine(candidate, &batch->policy));
    candidate->record->microseconds += (double)(ggml_time_us() - start);
}

// Examines what has not been yet, which are the built-ins, and removes duplicates.
static void examine_rest(struct batch *batch) {
    for (size_t i = 0; i < batch->set.count; ++i) {
        if (batch->set.items[i].state == CANDIDATE_NEW) examine_timed(batch, i);
        if (batch->set.items[i].state == CANDIDATE_FIT) refuse_if_same(batch, i);
    }
}

// Loads one candidate and adds the time to its record.
static enum ggml_host_status load_timed(struct batch *batch, struct candidate *candidate) {
    const int64_t start = ggml_time_us();
    const enum ggml_host_status status =
        note_memory(batch, candidate_load(candidate, &batch->filter));
    candidate->record->microseconds += (double)(ggml_time_us() - start);
    if (status == GGML_HOST_OK) ++batch->n_loaded;
    return status;
}

// Files with the same plugin name are variants, for instruction sets or versions.
// --- variants ------------------------------------------------------------------------------------

// Every variant that fits ranks the same: which of those is better is candidate_is_better()'s.
static int rank_fit(const void *context, size_t index) {
    const struct candidates *set = context;
    return set->items[index].state == CANDIDATE_FIT;
}

// NULL if no fit one of that name is left.
static struct candidate *best_variant(struct batch *batch, const char *name) {
    const size_t best = candidates_best(&batch->set, name, rank_fit, &batch->set);
    return best < batch->set.count ? &batch->set.items[best] : NULL;
}

// Refuses a candidate in favour of the winner. If that is a built-in which is in use already, the
// message says what the program has to change.
static void supersede(struct candidate *candidate, const char *winner) {
    if (!candidate->builtin && strcmp(winner, BUILTIN_PATH) == 0) {
        candidate_refuse(
            candidate, GGML_PLUGIN_STAGE_NEGOTIATE, GGML_HOST_SUPERSEDED,
            "the built-in '%s' is already in use: load plugins before the first look at "
            "the devices",
            candidate->name);
    } else {
        candidate_supersede(candidate, winner, "is");
    }
}

// Loads the best variant of a name; if it can't be started, the next best.
static void load_variants(struct batch *batch, const char *name) {
    const struct host_plugin *loaded = registry_find_name(name);
    const char *winner = loaded ? loaded->path : NULL;
    struct candidate *best;
    while ((best = best_variant(batch, name)) != NULL) {
        if (winner) {
            supersede(best, winner);
        } else if (load_timed(batch, best) == GGML_HOST_OK) {
            winner = best->record->path;
        }
    }
}

// Everything that was not decided before memory ran out.
static void refuse_for_memory(struct candidate *candidate) {
    candidate_refuse(candidate, GGML_PLUGIN_STAGE_NEGOTIATE, GGML_HOST_OUT_OF_MEMORY,
                     "no memory to go on loading");
}

// Runs the stages for all candidates, with the lock held: all are examined, then the filter is
// applied to all, then the best of each name is started. A plugin's code runs only after every
// choice that needs none of it.
static void load_batch(struct batch *batch) {
    examine_rest(batch);
    if (prepare_filter(batch) == GGML_HOST_OK) {
        for (size_t i = 0; i < batch->set.count; ++i) {
            struct candidate *candidate = &batch->set.items[i];
            if (candidate->state == CANDIDATE_FIT) {
                candidate_apply_filter(candidate, &batch->filter);
            }
        }
        for (size_t i = 0; i < batch->set.count; ++i) {
            if (batch->set.items[i].state == CANDIDATE_FIT)
                load_variants(batch, batch->set.items[i].name);
        }
    }
    for (size_t i = 0; i < batch->set.count; ++i) {
        if (batch->set.items[i].state == CANDIDATE_FIT) refuse_for_memory(&batch->set.items[i]);
        candidate_finish(&batch->set.items[i]);
    }
}

// Records that were put into the list are not the set's any more.
static void free_batch(struct batch *batch) {
    candidates_free(&batch->set);
    arena_free(&batch->arena);
}

// --- one file ------------------------------------------------------------------------------------

// A policy that can't be read refuses all files: it might have forbidden them.
static void refuse_for_policy(const struct batch *batch, struct candidate *candidate) {
    candidate_refuse(candidate, GGML_PLUGIN_STAGE_FOUND, batch->policy_status,
                     "no plugin may be loaded: %s", batch->policy_fault);
}

// Filters and loads a single candidate, with the lock held.
static void filter_and_load(struct batch *batch, struct candidate *candidate) {
    if (prepare_filter(batch) != GGML_HOST_OK) {
        refuse_for_memory(candidate);
        return;
    }
    candidate_apply_filter(candidate, &batch->filter);
    if (candidate->state == CANDIDATE_FIT) load_timed(batch, candidate);
}

// Examines the only candidate of a call, without the lock because the file may lie on a slow disk.
static void prepare_file(struct batch *batch) {
    if (batch->policy_status == GGML_HOST_OK) {
        examine_timed(batch, 0);
    } else {
        refuse_for_policy(batch, &batch->set.items[0]);
    }
}

// Loads the examined file, with the lock held. A file that is loaded already is returned as
// DUPLICATE with its registration.
static enum ggml_host_status load_file(struct batch *batch, const char *path,
                                       ggml_backend_reg_t *out_reg) {
    struct candidate *candidate = &batch->set.items[0];
    if (candidate->state == CANDIDATE_FIT) refuse_if_same(batch, 0);
    if (candidate->state == CANDIDATE_FIT) filter_and_load(batch, candidate);
    const enum ggml_host_status status = candidate->record->status;
    const struct host_plugin *loaded = registry_find_file(&candidate->file.id);
    *out_reg = candidate->record->reg;
    if (status == GGML_HOST_DUPLICATE && loaded) *out_reg = loaded->reg;
    if (status != GGML_HOST_DUPLICATE || !records_loaded(path)) {
        candidate_finish(candidate);
    } else if (loaded && strcmp(loaded->path, path) == 0) {
        records_clear_file(path);
    }
    atomic_fetch_add(&n_changes, 1);
    return status;
}

// The thread's last error from before the call is restored on success: it belongs to the
// application.
enum ggml_host_status ggml_plugin_load(const char *path, ggml_backend_reg_t *out_reg) {
    struct batch batch = {0};
    struct ggml_saved_error saved;
    ggml_backend_reg_t reg = NULL;
    if (out_reg) *out_reg = NULL;
    if (!path || path[0] == '\0') {
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT, "ggml_plugin_load: no path given");
    }
    if (!search_path_is_absolute(path)) {
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                         "ggml_plugin_load: '%s' is relative, and the working directory may be "
                         "anybody's: give an absolute path",
                         search_path_label(path));
    }
    ggml_error_save(&saved);
    get_policy(&batch);
    enum ggml_host_status status = GGML_HOST_OUT_OF_MEMORY;
    if (candidates_add(&batch.set, path, NULL)) {
        prepare_file(&batch);
        if (!registry_lock("ggml_plugin_load")) {
            free_batch(&batch);
            return GGML_HOST_BUSY;
        }
        status = load_file(&batch, path, &reg);
        registry_unlock();
    }
    if (status == GGML_HOST_OK) ggml_error_restore(&saved);
    free_batch(&batch);
    if (out_reg) *out_reg = reg;
    return status;
}

// --- linked in -----------------------------------------------------------------------------------

// Loads a plugin that the program links in, with the lock held. Found again by its entry or its
// name, since two parts of a program may register it.
static enum ggml_host_status load_static(struct batch *batch, const struct builtin_plugin *plugin,
                                         ggml_backend_reg_t *out_reg) {
    const struct host_plugin *same = registry_find_entry(plugin->init);
    if (!same) same = registry_find_name(plugin->note->name);
    if (same && strcmp(same->path, BUILTIN_PATH) == 0) {
        *out_reg = same->reg;
        return ggml_fail(GGML_HOST_DUPLICATE,
                         "ggml_plugin_load_static: plugin '%s' is linked in and running already",
                         same->name);
    }
    struct candidate *candidate = candidates_add(&batch->set, BUILTIN_PATH, plugin);
    if (!candidate) return GGML_HOST_OUT_OF_MEMORY;
    examine_timed(batch, 0);
    if (candidate->state == CANDIDATE_FIT) filter_and_load(batch, candidate);
    const enum ggml_host_status status = candidate->record->status;
    *out_reg = candidate->record->reg;
    candidate_finish(candidate);
    return status;
}

enum ggml_host_status ggml_plugin_load_static(const struct ggml_plugin_note *note,
                                              ggml_plugin_init_t init,
                                              ggml_backend_reg_t *out_reg) {
    struct batch batch = {0};
    struct ggml_saved_error saved;
    ggml_backend_reg_t reg = NULL;
    if (out_reg) *out_reg = NULL;
    if (!note || !init) {
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                         "ggml_plugin_load_static: the note or the entry is NULL");
    }
    enum ggml_host_status status = plugin_note_check(note, "ggml_plugin_load_static");
    if (status != GGML_HOST_OK) return status;
    const struct builtin_plugin plugin = {note, init};
    ggml_error_save(&saved);
    if (!registry_lock("ggml_plugin_load_static")) return GGML_HOST_BUSY;
    status = load_static(&batch, &plugin, &reg);
    atomic_fetch_add(&n_changes, 1);
    registry_unlock();
    if (status == GGML_HOST_OK) ggml_error_restore(&saved);
    free_batch(&batch);
    if (out_reg) *out_reg = reg;
    return status;
}

// --- all -----------------------------------------------------------------------------------------

// Lists the directories and adds their files as candidates. A directory given by the caller must be
// readable; those of the search path need not exist.
static enum ggml_host_status discover(struct batch *batch, const char *dir) {
    batch->n_changes_before = atomic_load(&n_changes);
    get_policy(batch);
    if (batch->policy_status != GGML_HOST_OK) {
        return ggml_fail(batch->policy_status, "no plugin may be loaded: %s", batch->policy_fault);
    }
    const enum ggml_host_status status =
        note_memory(batch, candidates_discover(&batch->set, dir, &batch->policy, records_loaded,
                                               &batch->arena, &batch->dirs, &batch->n_dirs));
    if (dir && status == GGML_HOST_INVALID_ARGUMENT)
        note_memory(batch, records_put_directory(dir, "caller", status));
    return dir && batch->n_dirs == 1 ? batch->dirs[0].status : status;
}

// Examines the file that GGML_BACKEND_PATH names, in a batch of its own, without the lock.
static void prepare_extra(const struct batch *batch, struct batch *out_extra) {
    memset(out_extra, 0, sizeof(*out_extra));
    out_extra->policy = batch->policy;
    out_extra->policy_status = batch->policy_status;
    memcpy(out_extra->policy_fault, batch->policy_fault, sizeof(batch->policy_fault));
    note_memory(out_extra, candidates_add_named_file(&out_extra->set, records_loaded));
    if (out_extra->set.count > 0 && out_extra->set.items[0].state == CANDIDATE_NEW)
        prepare_file(out_extra);
}

// Loads the file of GGML_BACKEND_PATH last, as ggml does.
static void load_extra(struct batch *batch, struct batch *extra) {
    ggml_backend_reg_t reg;
    drop_loaded(extra);
    if (extra->set.count > 0) load_file(extra, extra->set.items[0].record->path, &reg);
    batch->n_loaded += extra->n_loaded;
    batch->out_of_memory |= extra->out_of_memory;
    free_batch(extra);
}

// Loads what discover() and prepare_extra() found, with the lock held.
static void load_found(struct batch *batch, struct batch *extra) {
    note_directories(batch);
    drop_loaded(batch);
    add_builtins(batch);
    load_batch(batch);
    atomic_fetch_add(&n_changes, 1);
    load_extra(batch, extra);
    announce_mark_all();
    if (!batch->out_of_memory) atomic_store(&builtins_loaded, true);
}

// The lock is taken twice: at first only to refuse calls from inside a plugin's start, then for
// selecting and starting. Files are examined in between without it, since they may lie on a slow
// disk.
enum ggml_host_status ggml_plugin_load_all(const char *dir, size_t *out_loaded) {
    struct batch batch = {0};
    struct batch extra;
    struct ggml_saved_error saved;
    if (out_loaded) *out_loaded = 0;
    if (!registry_lock("ggml_plugin_load_all")) return GGML_HOST_BUSY;
    registry_unlock();
    ggml_error_save(&saved);
    enum ggml_host_status status = discover(&batch, dir);
    char why[sizeof(saved.text)];
    memcpy(why, ggml_last_error(), strlen(ggml_last_error()) + 1);
    for (size_t i = 0; i < batch.set.count; ++i)
        if (batch.set.items[i].state == CANDIDATE_NEW) examine_timed(&batch, i);
    prepare_extra(&batch, &extra);
    if (!registry_lock("ggml_plugin_load_all")) {
        free_batch(&extra);
        free_batch(&batch);
        return GGML_HOST_BUSY;
    }
    load_found(&batch, &extra);
    if (out_loaded) *out_loaded = batch.n_loaded;
    if (batch.out_of_memory) {
        status =
            ggml_fail(GGML_HOST_OUT_OF_MEMORY, "ggml_plugin_load_all: not enough memory for every "
                                               "plugin: see the report");
    } else if (status != GGML_HOST_OK) {
        ggml_fail(status, "ggml_plugin_load_all: %s", why);
    } else {
        ggml_error_restore(&saved);
    }
    free_batch(&batch);
    registry_unlock();
    return status;
}

// Called by every query of the registry, so that an application that never loads anything has the
// built-ins. If memory runs out, the next query tries again.
void load_builtins_once(void) {
    struct batch batch = {0};
    struct ggml_saved_error saved;
    if (atomic_load_explicit(&builtins_loaded, memory_order_acquire)) return;
    ggml_error_save(&saved);
    if (registry_lock("load_builtins_once")) {
        if (!atomic_load(&builtins_loaded)) {
            add_builtins(&batch);
            load_batch(&batch);
            atomic_store(&builtins_loaded, !batch.out_of_memory);
        }
        free_batch(&batch);
        registry_unlock();
    }
    ggml_error_restore(&saved);
}

// Removes and frees a plugin under the lock, so that no plugin of the same name is loaded
// meanwhile.
enum ggml_host_status ggml_plugin_unload(ggml_backend_reg_t reg) {
    if (!reg)
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT, "ggml_plugin_unload: the backend is NULL");
    if (!registry_lock("ggml_plugin_unload")) return GGML_HOST_BUSY;
    struct host_plugin *plugin = registry_find_reg(reg);
    enum ggml_host_status status;
    if (plugin) {
        status = registry_remove(plugin);
    } else {
        status = ggml_fail(GGML_HOST_NOT_FOUND, "ggml_plugin_unload: this backend is not loaded");
    }
    if (status == GGML_HOST_OK) {
        records_forget(plugin->reg);
        plugin_free(plugin);
    }
    registry_unlock();
    return status;
}

// --- ggml's names --------------------------------------------------------------------------------

// ggml's function: logs failures and returns NULL; a plugin that runs already is returned again.
ggml_backend_reg_t ggml_backend_load(const char *path) {
    ggml_backend_reg_t reg = NULL;
    const enum ggml_host_status status = ggml_plugin_load(path, &reg);
    if (!reg) GGML_LOG_ERROR("ggml_backend_load: %s\n", ggml_last_error());
    return status == GGML_HOST_OK || status == GGML_HOST_DUPLICATE ? reg : NULL;
}

void ggml_backend_unload(ggml_backend_reg_t reg) {
    ggml_plugin_unload(reg);
}

void ggml_backend_load_all(void) {
    ggml_backend_load_all_from_path(NULL);
}

void ggml_backend_load_all_from_path(const char *dir_path) {
    const enum ggml_host_status status = ggml_plugin_load_all(dir_path, NULL);
    if (status != GGML_HOST_OK) GGML_LOG_WARN("%s\n", ggml_last_error());
}
