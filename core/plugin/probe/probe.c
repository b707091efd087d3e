// SPDX-License-Identifier: MIT
// ggml_plugin_probe(): lists the candidates, uses the cache, and tries the others in helpers.
#include <string.h>
#include <time.h>

#include "base/env.h"
#include "base/mem.h"
#include "base/status.h"
#include "ggml-impl.h"
#include "plugin/discover/search_path.h"
#include "plugin/probe/cache/probe_cache.h"
#include "plugin/probe/probe_jobs.h"
#include "plugin/probe/probe_run.h"
#include "plugin/probe/process/probe_process.h"
#include "plugin/registry/plugin.h"
#include "plugin/registry/registry.h"

enum { DEFAULT_JOBS = 4, DEFAULT_DEADLINE_MS = 15000, MAX_DEADLINE_MS = 3600000 };

static enum ggml_host_status no_memory(void) {
    return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "ggml_plugin_probe: not enough memory");
}

// --- what is asked for ---------------------------------------------------------------------------

static bool is_absolute_or_null(const char *path) {
    return !path || search_path_is_absolute(path);
}

static bool is_switched_off(const char *value) {
    return value && strcmp(value, "0") == 0;
}

// Checks the options and fills in defaults. The memory limit is half of the machine's memory, but
// at least 2 GiB unless the caller asks for less: drivers need a lot to start.
static enum ggml_host_status take_options(const struct ggml_probe_options *given,
                                          struct ggml_probe_options *out_options) {
    const uint64_t least_memory = UINT64_C(2) << 30;
    memset(out_options, 0, sizeof(*out_options));
    if (given && given->size < sizeof(*given)) {
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT, "ggml_plugin_probe: options->size is not set");
    }
    if (given) *out_options = *given;
    if (is_switched_off(ggml_env(GGML_ENV_GGML_PROBE_SANDBOX)))
        out_options->flags |= GGML_PROBE_NO_SANDBOX;
    if (!is_absolute_or_null(out_options->helper) || !is_absolute_or_null(out_options->cache_dir)) {
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                         "ggml_plugin_probe: the paths of the helper and the cache are absolute");
    }
    if (out_options->jobs > PROBE_JOBS_MAX || out_options->deadline_ms > MAX_DEADLINE_MS) {
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                         "ggml_plugin_probe: at most %d jobs and a deadline of %d ms",
                         PROBE_JOBS_MAX, MAX_DEADLINE_MS);
    }
    if (out_options->jobs == 0) out_options->jobs = DEFAULT_JOBS;
    if (out_options->deadline_ms == 0) out_options->deadline_ms = DEFAULT_DEADLINE_MS;
    if (out_options->memory_limit == 0) out_options->memory_limit = probe_machine_memory() / 2;
    if (out_options->memory_limit < least_memory && !(given && given->memory_limit)) {
        out_options->memory_limit = least_memory;
    }
    return GGML_HOST_OK;
}

// --- candidates ----------------------------------------------------------------------------------

// The report has the directories even if none had a plugin.
static enum ggml_host_status report_directories(struct ggml_probe_report *report,
                                                const struct candidates_dir *dirs, size_t count) {
    report->directories = arena_alloc(&report->arena, count * sizeof(*report->directories) + 1);
    if (!report->directories) return no_memory();
    for (size_t i = 0; i < count; ++i) {
        struct ggml_plugin_directory *listed = &report->directories[report->n_directories++];
        listed->path = arena_strdup(&report->arena, dirs[i].path);
        listed->origin = dirs[i].origin;
        listed->status = dirs[i].status;
        if (!listed->path) return no_memory();
    }
    return GGML_HOST_OK;
}

// Finds the candidates that ggml_plugin_load_all() would look at, in the same order.
static enum ggml_host_status find_candidates(struct probe_run *run) {
    struct candidates_dir *dirs;
    size_t n_dirs;
    enum ggml_host_status status = candidates_discover(&run->set, run->options.dir, &run->policy,
                                                       NULL, &run->arena, &dirs, &n_dirs);
    if (status == GGML_HOST_OK && run->options.dir) status = dirs[0].status;
    if (status == GGML_HOST_OK) status = report_directories(run->report, dirs, n_dirs);
    if (status == GGML_HOST_OK) status = candidates_add_builtins(&run->set, NULL);
    if (status == GGML_HOST_OK) status = candidates_add_named_file(&run->set, NULL);
    if (status != GGML_HOST_OK) return status;
    run->outcomes = arena_alloc(&run->arena, run->set.count * sizeof(*run->outcomes) + 1);
    return run->outcomes ? GGML_HOST_OK : no_memory();
}

// --- what can be told without running anything ---------------------------------------------------

// The running plugin that the candidate is: a file by its identity, a built-in by its name. NULL if
// it isn't running.
static const struct host_plugin *find_loaded(const struct candidate *candidate) {
    if (!candidate->builtin) return registry_find_file(&candidate->file.id);
    const struct host_plugin *same = registry_find_name(candidate->name);
    return same && strcmp(same->path, BUILTIN_PATH) == 0 ? same : NULL;
}

// Describes a candidate that is running instead of trying it, with the registry lock held.
static enum ggml_host_status take_loaded(struct probe_run *run, size_t index) {
    struct candidate *candidate = &run->set.items[index];
    struct probe_outcome *outcome = &run->outcomes[index];
    const struct host_plugin *plugin = find_loaded(candidate);
    if (!plugin) return GGML_HOST_OK;
    candidate->record->stage = GGML_PLUGIN_STAGE_READY;
    outcome->known = outcome->loaded = true;
    outcome->source = GGML_PROBE_SOURCE_PROCESS;
    outcome->probed_at = (int64_t)time(NULL);
    return probe_result_take(&outcome->result, candidate->record, plugin);
}

// Examines all candidates without the lock, since files may lie on a slow disk.
static enum ggml_host_status examine_files(struct probe_run *run) {
    for (size_t i = 0; i < run->set.count; ++i) {
        struct candidate *candidate = &run->set.items[i];
        if (candidate->state != CANDIDATE_NEW) continue;
        const enum ggml_host_status status = candidate_examine(candidate, &run->policy);
        if (status == GGML_HOST_OUT_OF_MEMORY) return status;
        const struct candidate *same = candidates_find_same(&run->set, i);
        if (status == GGML_HOST_OK && same)
            candidate_refuse_duplicate(candidate, same->record->path);
    }
    return GGML_HOST_OK;
}

// Applies the filter, and describes what is running, with the registry lock held.
static enum ggml_host_status choose(struct probe_run *run) {
    enum ggml_host_status status = candidates_read_filter(&run->set, &run->arena, &run->filter);
    for (size_t i = 0; i < run->set.count && status == GGML_HOST_OK; ++i) {
        struct candidate *candidate = &run->set.items[i];
        if (candidate->state == CANDIDATE_FIT) candidate_apply_filter(candidate, &run->filter);
        if (candidate->state == CANDIDATE_FIT) status = take_loaded(run, i);
    }
    return status;
}

// Whether the candidate still has to be tried.
static bool is_open(const struct probe_run *run, size_t i) {
    return run->set.items[i].state == CANDIDATE_FIT && !run->outcomes[i].known;
}

// --- helper processes ----------------------------------------------------------------------------

// The callback runs in the calling thread.
static void tell_progress(struct probe_run *run, const char *path) {
    ++run->n_done;
    if (!run->options.progress) return;
    run->options.progress(run->options.user_data, run->n_done, run->n_total, path);
}

static void job_done(void *context, const struct probe_job *job) {
    tell_progress(context, job->path);
}

// Takes results from the cache. Built-ins are never cached: they change with the program.
static void look_into_cache(struct probe_run *run, const struct probe_cache *cache) {
    for (size_t i = 0; i < run->set.count; ++i) {
        const struct candidate *candidate = &run->set.items[i];
        struct probe_outcome *outcome = &run->outcomes[i];
        if (!is_open(run, i) || candidate->builtin) continue;
        outcome->known = probe_cache_find(cache, candidate->record->path, &candidate->file,
                                          &outcome->result, &outcome->probed_at);
        if (!outcome->known) continue;
        outcome->source = GGML_PROBE_SOURCE_CACHE;
        tell_progress(run, candidate->record->path);
    }
}

// Stores new results. Failures of the moment, such as lack of memory or processes, are not stored.
static void remember(const struct probe_run *run, const struct probe_cache *cache) {
    bool any = false;
    for (size_t i = 0; i < run->set.count; ++i) {
        const struct candidate *candidate = &run->set.items[i];
        struct probe_outcome *outcome = &run->outcomes[i];
        if (outcome->source != GGML_PROBE_SOURCE_HELPER || !outcome->lasting) continue;
        if (outcome->result.status == GGML_HOST_OUT_OF_MEMORY) continue;
        outcome->probed_at = cache->now; // as the entry says
        probe_cache_put(cache, candidate->record->path, &candidate->file, &outcome->result);
        any = true;
    }
    if (any) probe_cache_prune(cache);
}

// Moves a helper's result to its outcome, which frees it.
static void take_job(struct probe_outcome *outcome, const struct probe_job *job) {
    if (!job->isolated) return;
    outcome->known = true;
    outcome->lasting = job->lasting;
    outcome->source = GGML_PROBE_SOURCE_HELPER;
    outcome->probed_at = (int64_t)time(NULL);
    outcome->result = job->result;
}

// Keeps the reason why a helper was not confined. Helpers differ in it only if the machine changes
// meanwhile, so one reason is enough.
static bool take_confinement(struct ggml_probe_report *report, const struct probe_job *job) {
    if (job->not_confined[0] == '\0' || report->not_sandboxed[0] != '\0') return true;
    const char *copy = arena_strdup(&report->arena, job->not_confined);
    if (copy) report->not_sandboxed = copy;
    return copy != NULL;
}

// Tries every open file in a helper process, several at a time. UNSUPPORTED if helpers can't be
// started here at all.
static enum ggml_host_status run_helpers(struct probe_run *run, const char *helper) {
    struct probe_job *jobs = arena_alloc(&run->arena, run->set.count * sizeof(*jobs) + 1);
    size_t *owners = arena_alloc(&run->arena, run->set.count * sizeof(*owners) + 1);
    size_t n = 0;
    if (!jobs || !owners) return no_memory();
    for (size_t i = 0; i < run->set.count; ++i) {
        if (!is_open(run, i) || run->set.items[i].builtin) continue;
        owners[n] = i;
        jobs[n].file = run->set.items[i].file.id;
        jobs[n++].path = run->set.items[i].record->path;
    }
    const struct probe_jobs_options options = {
        .helper = helper,
        .n_parallel = run->options.jobs,
        .deadline_ms = run->options.deadline_ms,
        .memory_limit = run->options.memory_limit,
        .sandbox = (run->options.flags & GGML_PROBE_NO_SANDBOX) == 0,
        .progress = job_done,
        .context = run,
    };
    const enum ggml_host_status status = n ? probe_jobs_run(&options, jobs, n) : GGML_HOST_OK;
    for (size_t i = 0; i < n; ++i) {
        take_job(&run->outcomes[owners[i]], &jobs[i]);
        if (!take_confinement(run->report, &jobs[i])) return no_memory();
    }
    return status;
}

// Copies the last error into the report as a reason; the run goes on.
static enum ggml_host_status keep_reason(struct probe_run *run, const char **out_reason) {
    *out_reason = arena_strdup(&run->report->arena, ggml_last_error());
    if (*out_reason) return GGML_HOST_OK;
    *out_reason = "";
    return no_memory();
}

// Whether any file has to be tried; otherwise neither helper nor cache is needed.
static bool any_file_open(const struct probe_run *run) {
    for (size_t i = 0; i < run->set.count; ++i) {
        if (is_open(run, i) && !run->set.items[i].builtin) return true;
    }
    return false;
}

// Opens the cache. On failure the run goes on without one, and the report says why.
static enum ggml_host_status open_cache(struct probe_run *run, const char *helper,
                                        struct probe_cache *out_cache) {
    const uint32_t expiry = run->options.failure_expiry;
    out_cache->dir = -1;
    out_cache->now = (int64_t)time(NULL);
    if (run->options.flags & GGML_PROBE_NO_CACHE) return GGML_HOST_OK;
    const enum ggml_host_status status =
        probe_cache_open(run->options.cache_dir, helper, expiry ? (int64_t)expiry : -1, out_cache);
    // A driver that the sandbox disturbs works without.
    out_cache->system[0] ^= (run->options.flags & GGML_PROBE_NO_SANDBOX) != 0;
    return status == GGML_HOST_OK ? status : keep_reason(run, &run->report->not_cached);
}

// Tries files in helper processes, without the lock: it may take as long as the deadlines allow.
static enum ggml_host_status isolate(struct probe_run *run) {
    char helper[PROBE_PATH_MAX];
    struct probe_cache cache;
    if ((run->options.flags & GGML_PROBE_IN_PROCESS) || !any_file_open(run)) return GGML_HOST_OK;
    enum ggml_host_status status = probe_helper_find(run->options.helper, &run->policy, helper);
    if (status == GGML_HOST_UNSUPPORTED || status == GGML_HOST_IO_ERROR)
        return keep_reason(run, &run->report->not_isolated);
    if (status == GGML_HOST_OK) status = open_cache(run, helper, &cache);
    if (status != GGML_HOST_OK) return status;
    if (!(run->options.flags & GGML_PROBE_RESCAN)) look_into_cache(run, &cache);
    status = run_helpers(run, helper);
    if (status == GGML_HOST_UNSUPPORTED) status = keep_reason(run, &run->report->not_isolated);
    remember(run, &cache);
    probe_cache_close(&cache);
    return status;
}

// --- this process --------------------------------------------------------------------------------

// Tries a candidate in this process, where a crash is the application's.
static enum ggml_host_status probe_here(struct probe_run *run, size_t index) {
    struct candidate *candidate = &run->set.items[index];
    struct probe_outcome *outcome = &run->outcomes[index];
    struct host_plugin *plugin;
    const int64_t start = ggml_time_us();
    const enum ggml_host_status started = candidate_start(candidate, &plugin);
    if (started == GGML_HOST_OK) candidate->record->stage = GGML_PLUGIN_STAGE_READY;
    candidate->record->microseconds = (double)(ggml_time_us() - start);
    const enum ggml_host_status status =
        probe_result_take(&outcome->result, candidate->record, plugin);
    plugin_free(plugin);
    outcome->known = true;
    outcome->source = GGML_PROBE_SOURCE_PROCESS;
    outcome->probed_at = (int64_t)time(NULL);
    if (!candidate->builtin) tell_progress(run, candidate->record->path);
    return started == GGML_HOST_OUT_OF_MEMORY ? started : status;
}

// With GGML_PROBE_ISOLATED_ONLY a plugin is rather left out than tried in this process.
static void refuse_here(struct candidate *candidate, const char *why) {
    candidate_refuse(candidate, GGML_PLUGIN_STAGE_NEGOTIATE, GGML_HOST_UNSUPPORTED,
                     "not probed, because %s", why);
}

// Tries built-ins, and files for which no helper could be started, with the registry lock held.
// Another thread may have loaded one of them since, so each is looked up again.
static enum ggml_host_status probe_rest(struct probe_run *run) {
    const char *why = run->report->not_isolated;
    enum ggml_host_status status = GGML_HOST_OK;
    if (why[0] != '\0') GGML_LOG_WARN("plugins are not probed in a helper process: %s\n", why);
    for (size_t i = 0; i < run->set.count && status == GGML_HOST_OK; ++i) {
        struct candidate *candidate = &run->set.items[i];
        if (is_open(run, i)) status = take_loaded(run, i);
        if (status != GGML_HOST_OK || !is_open(run, i)) continue;
        if (!candidate->builtin && (run->options.flags & GGML_PROBE_ISOLATED_ONLY)) {
            refuse_here(candidate, why);
        } else {
            status = probe_here(run, i);
        }
    }
    return status;
}

// --- all of it -----------------------------------------------------------------------------------

// Outcomes own their results.
static void free_run(struct probe_run *run) {
    for (size_t i = 0; run->outcomes && i < run->set.count; ++i)
        probe_result_free(&run->outcomes[i].result);
    candidates_free(&run->set);
    arena_free(&run->arena);
}

// Runs a step under the registry lock; BUSY from inside a plugin's start.
static enum ggml_host_status locked(struct probe_run *run,
                                    enum ggml_host_status (*step)(struct probe_run *run)) {
    if (!registry_lock("ggml_plugin_probe")) return GGML_HOST_BUSY;
    const enum ggml_host_status status = step(run);
    registry_unlock();
    return status;
}

// The last step, with the lock held: everything that remains, then the choice among variants as
// loading would make it.
static enum ggml_host_status conclude(struct probe_run *run) {
    enum ggml_host_status status = probe_rest(run);
    if (status != GGML_HOST_OK) return status;
    // Again: the names that it holds may belong to plugins that have been unloaded since.
    status = candidates_read_filter(&run->set, &run->arena, &run->filter);
    return status == GGML_HOST_OK ? probe_run_conclude(run) : status;
}

// The pipeline: policy, candidates, files, what is loaded, helpers, the rest.
static enum ggml_host_status probe(struct probe_run *run) {
    enum ggml_host_status status = policy_get(&run->arena, &run->policy);
    if (status == GGML_HOST_OK) status = find_candidates(run);
    if (status == GGML_HOST_OK) status = examine_files(run);
    if (status == GGML_HOST_OK) status = locked(run, choose);
    for (size_t i = 0; i < run->set.count && status == GGML_HOST_OK; ++i)
        run->n_total += is_open(run, i) && !run->set.items[i].builtin;
    if (status == GGML_HOST_OK) status = isolate(run);
    return status == GGML_HOST_OK ? locked(run, conclude) : status;
}

// On success the calling thread's last error is as before: failures of single plugins are in the
// report.
enum ggml_host_status ggml_plugin_probe(const struct ggml_probe_options *options,
                                        ggml_probe_report_t *out_report) {
    struct probe_run run = {.set = {0}};
    struct ggml_saved_error saved;
    if (!out_report) {
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT, "ggml_plugin_probe: out_report is NULL");
    }
    *out_report = NULL;
    enum ggml_host_status status = take_options(options, &run.options);
    if (status != GGML_HOST_OK) return status;
    run.report = ggml_mem_calloc(1, sizeof(*run.report));
    if (!run.report) return no_memory();
    run.report->not_isolated = run.report->not_cached = run.report->not_sandboxed = "";
    ggml_error_save(&saved);
    status = probe(&run);
    free_run(&run);
    if (status != GGML_HOST_OK) {
        ggml_probe_report_free(run.report);
        return status;
    }
    ggml_error_restore(&saved);
    *out_report = run.report;
    return GGML_HOST_OK;
}
