// SPDX-License-Identifier: MIT
// Asks hwloc once per boot and set of CPUs: its answer is one more entry of the probe cache.
#include "plugin/probe/probe_machine.h"

#include <string.h>

#include "base/env.h"
#include "base/status.h"
#include "ggml-impl.h"
#include "machine/topology/topology_system.h"
#include "plugin/probe/cache/probe_cache.h"
#include "plugin/probe/probe_jobs.h"
#include "plugin/probe/process/probe_process.h"

enum { DEADLINE_MS = 2000 };
#define MEMORY_LIMIT (UINT64_C(1) << 30)

// A helper's answer, or a failure that counts as one. False: it speaks of this moment only.
static bool ask_helper(const char *helper, struct probe_result *out_result) {
    const struct probe_jobs_options options = {.helper = helper,
                                               .n_parallel = 1,
                                               .deadline_ms = DEADLINE_MS,
                                               .memory_limit = MEMORY_LIMIT,
                                               .sandbox = true};
    struct probe_job job = {.path = PROBE_MACHINE};
    const enum ggml_host_status status = probe_jobs_run(&options, &job, 1);
    *out_result = job.result;
    if (job.isolated) return job.lasting;
    probe_result_fail(out_result, GGML_PLUGIN_STAGE_FOUND, status, "%s", ggml_last_error());
    return status == GGML_HOST_UNSUPPORTED; // a helper of another build, say
}

static bool take_table(const struct probe_result *result, struct topology_table *out_table) {
    if (result->status != GGML_HOST_OK || result->n_cpus == 0) return false;
    memcpy(out_table->cpus, result->cpus, result->n_cpus * sizeof(*result->cpus));
    out_table->n_cpus = (uint32_t)result->n_cpus;
    return true;
}

// That hwloc isn't there is no failure.
static void tell_failure(const struct probe_result *result) {
    static const char text[] = "the machine is read from /sys, not by hwloc: %s\n";
    if (result->status == GGML_HOST_UNSUPPORTED)
        GGML_LOG_DEBUG(text, result->message);
    else
        GGML_LOG_WARN(text, result->message);
}

static bool ask(struct topology_table *out_table) {
    char helper[PROBE_PATH_MAX];
    struct arena arena = {0};
    struct load_policy policy;
    struct probe_cache cache = {.dir = -1};
    struct probe_result result = {0};
    int64_t probed_at;
    bool known = false;
    if (policy_get(&arena, &policy) == GGML_HOST_OK &&
        probe_helper_find(NULL, &policy, helper) == GGML_HOST_OK &&
        probe_cache_open_machine(helper, &cache) == GGML_HOST_OK) {
        const bool remembered = probe_cache_find(&cache, PROBE_MACHINE, NULL, &result, &probed_at);
        if (!remembered && ask_helper(helper, &result))
            probe_cache_put(&cache, PROBE_MACHINE, NULL, &result);
        known = take_table(&result, out_table);
        if (!known && !remembered) tell_failure(&result);
        probe_result_free(&result);
    }
    probe_cache_close(&cache);
    arena_free(&arena);
    return known;
}

bool probe_machine_ask(struct topology_table *out_table) {
    struct ggml_saved_error saved;
    if (ggml_env_privileged()) return false;
    ggml_error_save(&saved);
    const bool known = ask(out_table);
    ggml_error_restore(&saved);
    return known;
}

__attribute__((constructor)) static void offer(void) {
    topology_set_asker(probe_machine_ask);
}
