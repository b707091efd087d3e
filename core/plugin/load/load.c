// SPDX-License-Identifier: MIT
#include "plugin/load/load.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/mem.h"
#include "base/status.h"
#include "ggml-backend-impl.h"
#include "ggml-impl.h"
#include "plugin/discover/search_path.h"
#include "plugin/load/candidate.h"
#include "plugin/registry/announce.h"
#include "plugin/registry/registry.h"

static atomic_bool builtins_seen;
static atomic_uint n_changes; // calls that loaded or noted something, for those that look meanwhile

// What was seen of one directory.
struct listing {
    const struct search_dir *dir;
    enum ggml_host_status status;
    char **paths;
    size_t count;
};

// Everything that one call looks at.
struct batch {
    struct arena arena;
    struct device_filter filter;
    struct load_policy policy;
    enum ggml_host_status policy_status; // anything but OK: no file may be loaded
    char policy_fault[512];
    struct listing *listings;
    size_t n_listings;
    unsigned seen; // n_changes before anything was looked at
    struct candidate *items;
    size_t count;
    size_t capacity;
    size_t n_loaded;
    bool out_of_memory;
};

// --- candidates ----------------------------------------------------------------------------------

static enum ggml_host_status note_memory(struct batch *batch, enum ggml_host_status status) {
    if (status == GGML_HOST_OUT_OF_MEMORY) batch->out_of_memory = true;
    return status;
}

static void get_policy(struct batch *batch) {
    batch->policy_status = note_memory(batch, policy_get(&batch->arena, &batch->policy));
    if (batch->policy_status == GGML_HOST_OK) return;
    snprintf(batch->policy_fault, sizeof(batch->policy_fault), "%s", ggml_last_error());
}

static struct candidate *add_candidate(struct batch *batch, const char *path,
                                       const struct builtin_plugin *builtin) {
    enum { FIRST_CAPACITY = 16 };
    if (batch->count == batch->capacity) {
        const size_t capacity = batch->capacity ? 2 * batch->capacity : FIRST_CAPACITY;
        struct candidate *items = ggml_mem_realloc(batch->items, capacity * sizeof(*items));
        if (!items) goto fail;
        batch->items = items;
        batch->capacity = capacity;
    }
    struct candidate *added = &batch->items[batch->count];
    if (candidate_init(added, path, builtin) != GGML_HOST_OK) goto fail;
    ++batch->count;
    return added;
fail:
    note_memory(batch, ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for plugin '%s'", path));
    return NULL;
}

static enum ggml_host_status add_directory(struct batch *batch, const struct search_dir *dir) {
    struct listing *listing = &batch->listings[batch->n_listings++];
    *listing = (struct listing){.dir = dir, .status = dir->status};
    if (dir->status == GGML_HOST_OK) listing->status = policy_check_dir(&batch->policy, dir->path);
    if (listing->status == GGML_HOST_UNTRUSTED) {
        struct candidate *refused = add_candidate(batch, dir->path, NULL);
        if (refused) candidate_refuse_directory(refused);
    }
    if (listing->status == GGML_HOST_OK) {
        listing->status =
            search_dir_list(dir->path, &batch->arena, &listing->paths, &listing->count);
    }
    for (size_t i = 0; i < listing->count; ++i) {
        if (!records_loaded(listing->paths[i])) add_candidate(batch, listing->paths[i], NULL);
    }
    return note_memory(batch, listing->status);
}

// A list from before another call's change may lack what is there now: it tells of nothing gone.
static void note_directories(struct batch *batch) {
    const bool is_current = atomic_load(&n_changes) == batch->seen;
    for (size_t i = 0; i < batch->n_listings; ++i) {
        const struct listing *listing = &batch->listings[i];
        const char *path = listing->dir->path;
        const bool is_known =
            listing->status == GGML_HOST_OK || listing->status == GGML_HOST_NOT_FOUND;
        note_memory(batch, records_put_directory(path, listing->dir->origin, listing->status));
        if (is_known && is_current) records_note_gone(path, listing->paths, listing->count);
    }
}

// Those that another call has loaded since.
static void drop_loaded(struct batch *batch) {
    size_t kept = 0;
    for (size_t i = 0; i < batch->count; ++i) {
        struct candidate *candidate = &batch->items[i];
        if (records_loaded(candidate->record->path)) {
            plugin_file_close(&candidate->file);
            ggml_mem_free(candidate->record);
        } else {
            batch->items[kept++] = *candidate;
        }
    }
    batch->count = kept;
}

static void add_builtins(struct batch *batch) {
    size_t count;
    const struct builtin_plugin *builtins = builtin_plugins(&count);
    for (size_t i = 0; i < count; ++i) {
        const struct host_plugin *same = registry_find_name(builtins[i].note->name);
        if (same && strcmp(same->path, BUILTIN_PATH) == 0) continue;
        add_candidate(batch, BUILTIN_PATH, &builtins[i]);
    }
}

static void set_duplicate(struct candidate *candidate, const char *other_path) {
    candidate_refuse(candidate, GGML_PLUGIN_STAGE_NOTE, GGML_HOST_DUPLICATE,
                     "'%s' is the same file as '%s'", candidate->record->path, other_path);
}

static void find_duplicate(struct batch *batch, size_t index) {
    struct candidate *candidate = &batch->items[index];
    const struct host_plugin *loaded = registry_find_file(&candidate->file.id);
    if (loaded && !candidate->builtin) {
        candidate->record->reg = NULL;
        set_duplicate(candidate, loaded->path);
        return;
    }
    for (size_t i = 0; i < index; ++i) {
        if (!candidate_is_same_file(&batch->items[i], candidate)) continue;
        set_duplicate(candidate, batch->items[i].record->path);
        return;
    }
}

static enum ggml_host_status prepare_filter(struct batch *batch) {
    return note_memory(
        batch, candidates_read_filter(batch->items, batch->count, &batch->arena, &batch->filter));
}

static void examine_timed(struct batch *batch, size_t index) {
    struct candidate *candidate = &batch->items[index];
    const int64_t start = ggml_time_us();
    note_memory(batch, candidate_examine(candidate, &batch->policy));
    candidate->record->microseconds += (double)(ggml_time_us() - start);
}

// Files have been looked at without the lock, what is built in has not.
static void examine_rest(struct batch *batch) {
    for (size_t i = 0; i < batch->count; ++i) {
        if (batch->items[i].state == CANDIDATE_NEW) examine_timed(batch, i);
        if (batch->items[i].state == CANDIDATE_FIT) find_duplicate(batch, i);
    }
}

static enum ggml_host_status load_timed(struct batch *batch, struct candidate *candidate) {
    const int64_t start = ggml_time_us();
    const enum ggml_host_status status =
        note_memory(batch, candidate_load(candidate, &batch->filter));
    candidate->record->microseconds += (double)(ggml_time_us() - start);
    if (status == GGML_HOST_OK) ++batch->n_loaded;
    return status;
}

// --- variants ------------------------------------------------------------------------------------

static bool is_variant(const struct candidate *candidate, const char *name) {
    return candidate->state == CANDIDATE_FIT && strcmp(candidate->name, name) == 0;
}

static struct candidate *best_variant(struct batch *batch, const char *name) {
    struct candidate *best = NULL;
    for (size_t i = 0; i < batch->count; ++i) {
        struct candidate *candidate = &batch->items[i];
        if (is_variant(candidate, name) && (!best || candidate_is_better(candidate, best)))
            best = candidate;
    }
    return best;
}

static void supersede(struct candidate *candidate, const char *winner) {
    if (!candidate->builtin && strcmp(winner, BUILTIN_PATH) == 0) {
        candidate_refuse(
            candidate, GGML_PLUGIN_STAGE_NEGOTIATE, GGML_HOST_SUPERSEDED,
            "the built-in '%s' is already in use: load plugins before the first look at "
            "the devices",
            candidate->name);
    } else {
        candidate_refuse(candidate, GGML_PLUGIN_STAGE_NEGOTIATE, GGML_HOST_SUPERSEDED,
                         "of the files with the plugin name '%s', '%s' is loaded", candidate->name,
                         winner);
    }
}

// Loads the best of one name; the next one when it can't be started.
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

static void refuse_for_memory(struct candidate *candidate) {
    candidate_refuse(candidate, GGML_PLUGIN_STAGE_NEGOTIATE, GGML_HOST_OUT_OF_MEMORY,
                     "no memory to go on loading");
}

static void load_batch(struct batch *batch) {
    examine_rest(batch);
    if (prepare_filter(batch) == GGML_HOST_OK) {
        for (size_t i = 0; i < batch->count; ++i) {
            struct candidate *candidate = &batch->items[i];
            if (candidate->state == CANDIDATE_FIT) {
                candidate_apply_filter(candidate, &batch->filter);
            }
        }
        for (size_t i = 0; i < batch->count; ++i) {
            if (batch->items[i].state == CANDIDATE_FIT) load_variants(batch, batch->items[i].name);
        }
    }
    for (size_t i = 0; i < batch->count; ++i) {
        if (batch->items[i].state == CANDIDATE_FIT) refuse_for_memory(&batch->items[i]);
        candidate_finish(&batch->items[i]);
    }
}

static void free_batch(struct batch *batch) {
    ggml_mem_free(batch->items);
    arena_free(&batch->arena);
}

// --- one file ------------------------------------------------------------------------------------

static void refuse_for_policy(const struct batch *batch, struct candidate *candidate) {
    candidate_refuse(candidate, GGML_PLUGIN_STAGE_FOUND, batch->policy_status,
                     "no plugin may be loaded: %s", batch->policy_fault);
}

static void filter_and_load(struct batch *batch, struct candidate *candidate) {
    if (prepare_filter(batch) != GGML_HOST_OK) {
        refuse_for_memory(candidate);
        return;
    }
    candidate_apply_filter(candidate, &batch->filter);
    if (candidate->state == CANDIDATE_FIT) load_timed(batch, candidate);
}

// Looks at the file; NULL without memory. Without the lock, because the file may lie on a disk that
// takes its time.
static struct candidate *prepare_file(struct batch *batch, const char *path) {
    struct candidate *candidate = add_candidate(batch, path, NULL);
    if (!candidate) return NULL;
    const int64_t start = ggml_time_us();
    if (batch->policy_status == GGML_HOST_OK) {
        note_memory(batch, candidate_examine(candidate, &batch->policy));
    } else {
        refuse_for_policy(batch, candidate);
    }
    candidate->record->microseconds = (double)(ggml_time_us() - start);
    return candidate;
}

// As ggml_plugin_load of the file that was prepared, with the lock held.
static enum ggml_host_status load_file(struct batch *batch, const char *path,
                                       ggml_backend_reg_t *out_reg) {
    struct candidate *candidate = &batch->items[0];
    if (candidate->state == CANDIDATE_FIT) find_duplicate(batch, 0);
    if (candidate->state == CANDIDATE_FIT) filter_and_load(batch, candidate);
    const enum ggml_host_status status = candidate->record->status;
    const struct host_plugin *loaded = registry_find_file(&candidate->file.id);
    *out_reg = candidate->record->reg;
    if (status == GGML_HOST_DUPLICATE && loaded) *out_reg = loaded->reg;
    if (status != GGML_HOST_DUPLICATE || !records_loaded(path)) candidate_finish(candidate);
    ggml_mem_free(candidate->record);
    atomic_fetch_add(&n_changes, 1);
    return status;
}

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
    if (prepare_file(&batch, path)) {
        if (!registry_lock("ggml_plugin_load")) {
            plugin_file_close(&batch.items[0].file);
            ggml_mem_free(batch.items[0].record);
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
    struct candidate *candidate = add_candidate(batch, BUILTIN_PATH, plugin);
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

// The caller's own directory has to be readable; those of the search path need not exist.
static enum ggml_host_status add_found(struct batch *batch, const char *dir) {
    struct search_dir *dirs = NULL;
    size_t count = 0;
    batch->seen = atomic_load(&n_changes);
    get_policy(batch);
    if (batch->policy_status != GGML_HOST_OK) {
        return ggml_fail(batch->policy_status, "no plugin may be loaded: %s", batch->policy_fault);
    }
    enum ggml_host_status status = search_path_build(dir, &batch->arena, &dirs, &count);
    note_memory(batch, status);
    if (dir && status == GGML_HOST_INVALID_ARGUMENT) {
        note_memory(batch, records_put_directory(dir, "caller", status));
    }
    batch->listings = arena_alloc(&batch->arena, count * sizeof(*batch->listings) + 1);
    if (!batch->listings) {
        return note_memory(batch, ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for directories"));
    }
    for (size_t i = 0; i < count; ++i) {
        const enum ggml_host_status listed = add_directory(batch, &dirs[i]);
        if (dir) status = listed;
    }
    return status;
}

// The file that GGML_BACKEND_PATH names, whatever its name. Without the lock, as all files.
static void prepare_extra(const struct batch *batch, struct batch *out_extra) {
    const char *path = ggml_env(GGML_ENV_GGML_BACKEND_PATH);
    memset(out_extra, 0, sizeof(*out_extra));
    if (!path || records_loaded(path)) return;
    out_extra->policy = batch->policy;
    out_extra->policy_status = batch->policy_status;
    memcpy(out_extra->policy_fault, batch->policy_fault, sizeof(batch->policy_fault));
    if (search_path_is_absolute(path)) {
        prepare_file(out_extra, path);
    } else if (add_candidate(out_extra, path, NULL)) {
        candidate_refuse(&out_extra->items[0], GGML_PLUGIN_STAGE_FOUND, GGML_HOST_INVALID_ARGUMENT,
                         "GGML_BACKEND_PATH: '%s' is not an absolute path",
                         search_path_label(path));
    }
}

static void load_extra(struct batch *batch, struct batch *extra) {
    ggml_backend_reg_t reg;
    drop_loaded(extra);
    if (extra->count > 0) load_file(extra, extra->items[0].record->path, &reg);
    batch->n_loaded += extra->n_loaded;
    batch->out_of_memory |= extra->out_of_memory;
    free_batch(extra);
}

// What was found, with the lock held.
static void load_found(struct batch *batch, struct batch *extra) {
    note_directories(batch);
    drop_loaded(batch);
    add_builtins(batch);
    load_batch(batch);
    atomic_fetch_add(&n_changes, 1);
    load_extra(batch, extra);
    announce_mark_all();
    if (!batch->out_of_memory) atomic_store(&builtins_seen, true);
}

static void drop_all(struct batch *batch) {
    for (size_t i = 0; i < batch->count; ++i) {
        plugin_file_close(&batch->items[i].file);
        ggml_mem_free(batch->items[i].record);
    }
    free_batch(batch);
}

// Looks at files without the lock: they may lie on a disk that takes its time.
enum ggml_host_status ggml_plugin_load_all(const char *dir, size_t *out_loaded) {
    struct batch batch = {0};
    struct batch extra;
    struct ggml_saved_error saved;
    if (out_loaded) *out_loaded = 0;
    if (!registry_lock("ggml_plugin_load_all")) return GGML_HOST_BUSY;
    registry_unlock();
    ggml_error_save(&saved);
    enum ggml_host_status status = add_found(&batch, dir);
    char why[sizeof(saved.text)];
    memcpy(why, ggml_last_error(), strlen(ggml_last_error()) + 1);
    for (size_t i = 0; i < batch.count; ++i)
        if (batch.items[i].state == CANDIDATE_NEW) examine_timed(&batch, i);
    prepare_extra(&batch, &extra);
    if (!registry_lock("ggml_plugin_load_all")) {
        drop_all(&extra);
        drop_all(&batch);
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

void load_builtins_once(void) {
    struct batch batch = {0};
    struct ggml_saved_error saved;
    if (atomic_load_explicit(&builtins_seen, memory_order_acquire)) return;
    ggml_error_save(&saved);
    if (registry_lock("load_builtins_once")) {
        if (!atomic_load(&builtins_seen)) {
            add_builtins(&batch);
            load_batch(&batch);
            atomic_store(&builtins_seen, !batch.out_of_memory);
        }
        free_batch(&batch);
        registry_unlock();
    }
    ggml_error_restore(&saved);
}

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
        records_forget(reg);
        plugin_free(plugin);
    }
    registry_unlock();
    return status;
}

// --- ggml's names --------------------------------------------------------------------------------

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
