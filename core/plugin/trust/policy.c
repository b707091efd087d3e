// SPDX-License-Identifier: MIT
// The loading policy: what the application chose and what the environment adds, behind one lock. A
// refused choice leaves the old one.
#include "plugin/trust/policy.h"

#include <pthread.h>
#include <string.h>

#include "base/env.h"
#include "base/fork_lock.h"
#include "base/mem.h"
#include "base/status.h"
#include "plugin/discover/search_path.h"
#include "plugin/trust/trust.h"

// The application's last choice.
static struct {
    pthread_mutex_t lock;
    bool allow_unsafe;
    bool has_sums;
    uint8_t (*sums)[GGML_SHA256_SIZE];
    size_t n_sums;
} chosen = {.lock = PTHREAD_MUTEX_INITIALIZER};
FORK_LOCK(chosen.lock);

// --- set

// Hexadecimal sums to bytes. One that is malformed refuses all: half a list would permit too little
// without anyone noticing.
static enum ggml_host_status parse_sums(const struct ggml_plugin_policy *policy,
                                        uint8_t (**out_sums)[GGML_SHA256_SIZE]) {
    uint8_t(*sums)[GGML_SHA256_SIZE] = ggml_mem_calloc(policy->n_sha256 + 1, sizeof(*sums));
    *out_sums = sums;
    if (!sums) {
        return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "ggml_plugin_set_policy: no memory for %zu sums",
                         policy->n_sha256);
    }
    for (size_t i = 0; i < policy->n_sha256; ++i) {
        const char *text = policy->sha256[i];
        if (text && sum_parse(text, strlen(text), sums[i])) continue;
        ggml_mem_free(sums);
        *out_sums = NULL;
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                         "ggml_plugin_set_policy: sum %zu does not have 64 hexadecimal digits", i);
    }
    return GGML_HOST_OK;
}

// NULL restores the default.
enum ggml_host_status ggml_plugin_set_policy(const struct ggml_plugin_policy *policy) {
    static const struct ggml_plugin_policy none = {.size = sizeof(none)};
    uint8_t(*sums)[GGML_SHA256_SIZE] = NULL;
    if (!policy) policy = &none;
    if (policy->size < sizeof(none)) {
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                         "ggml_plugin_set_policy: its size is %zu, set it to sizeof", policy->size);
    }
    if (policy->sha256) {
        const enum ggml_host_status status = parse_sums(policy, &sums);
        if (status != GGML_HOST_OK) return status;
    }
    pthread_mutex_lock(&chosen.lock);
    void *old = chosen.sums;
    chosen.allow_unsafe = policy->allow_unsafe;
    chosen.has_sums = policy->sha256 != NULL;
    chosen.sums = sums;
    chosen.n_sums = sums ? policy->n_sha256 : 0;
    pthread_mutex_unlock(&chosen.lock);
    ggml_mem_free(old);
    return GGML_HOST_OK;
}

// --- get

// A copy, since another thread may set a new policy while files are checked.
static bool copy_chosen(struct arena *arena, struct load_policy *out_policy) {
    bool copied = true;
    pthread_mutex_lock(&chosen.lock);
    out_policy->allow_unsafe = chosen.allow_unsafe;
    out_policy->has_set_sums = chosen.has_sums;
    if (chosen.n_sums > 0) {
        const size_t size = chosen.n_sums * sizeof(*chosen.sums);
        out_policy->set_sums.sums = arena_alloc(arena, size);
        copied = out_policy->set_sums.sums != NULL;
        if (copied) memcpy(out_policy->set_sums.sums, chosen.sums, size);
        out_policy->set_sums.count = copied ? chosen.n_sums : 0;
    }
    pthread_mutex_unlock(&chosen.lock);
    return copied;
}

// The list itself must be a file that others can't change.
static enum ggml_host_status read_list(const struct load_policy *policy, const char *path,
                                       struct arena *arena, struct sum_list *out_list) {
    struct plugin_file file;
    if (!search_path_is_absolute(path)) {
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                         "GGML_PLUGIN_SHA256: '%s' is not an absolute path",
                         search_path_label(path));
    }
    enum ggml_host_status status = plugin_file_open(path, &file);
    if (status != GGML_HOST_OK) return status;
    const struct image_source source = plugin_file_source(&file, path);
    char *text = NULL;
    status = policy_check_file(policy, path, &file);
    if (status != GGML_HOST_OK) goto fail;
    if (source.size > SUM_LIST_MAX_BYTES) {
        status = ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: larger than a list of sums may be",
                           source.label);
        goto fail;
    }
    text = ggml_mem_alloc((size_t)source.size + 1);
    status = text ? source.read(source.context, 0, text, (size_t)source.size)
                  : ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory to read it", source.label);
    if (status == GGML_HOST_OK) {
        status = sum_list_parse(text, (size_t)source.size, source.label, arena, out_list);
    }
fail:
    ggml_mem_free(text);
    plugin_file_close(&file);
    return status;
}

// The environment can only add permission for unsafe locations, or restrict files further by its
// own list.
enum ggml_host_status policy_get(struct arena *arena, struct load_policy *out_policy) {
    memset(out_policy, 0, sizeof(*out_policy));
    const char *unsafe = ggml_env(GGML_ENV_GGML_ALLOW_UNSAFE_PLUGINS);
    const char *list = ggml_env(GGML_ENV_GGML_PLUGIN_SHA256);
    if (!copy_chosen(arena, out_policy)) {
        return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for the list of allowed plugins");
    }
    if (unsafe && strcmp(unsafe, "0") != 0) out_policy->allow_unsafe = true;
    if (!list) return GGML_HOST_OK;
    out_policy->has_env_sums = true;
    return read_list(out_policy, list, arena, &out_policy->env_sums);
}

// --- check

enum ggml_host_status policy_check_dir(const struct load_policy *policy, const char *path) {
    return policy->allow_unsafe ? GGML_HOST_OK : trust_check_dir(path);
}

enum ggml_host_status policy_check_file(const struct load_policy *policy, const char *path,
                                        const struct plugin_file *file) {
    return policy->allow_unsafe ? GGML_HOST_OK : trust_check_file(path, file);
}

// A file must be on each list that exists.
enum ggml_host_status policy_check_sum(const struct load_policy *policy, const char *path,
                                       const struct plugin_file *file) {
    uint8_t sum[GGML_SHA256_SIZE];
    if (!policy->has_set_sums && !policy->has_env_sums) return GGML_HOST_OK;
    const enum ggml_host_status status = plugin_file_sha256(file, path, sum);
    if (status != GGML_HOST_OK) return status;
    const bool allowed = (!policy->has_set_sums || sum_list_has(&policy->set_sums, sum)) &&
                         (!policy->has_env_sums || sum_list_has(&policy->env_sums, sum));
    if (allowed) return GGML_HOST_OK;
    return ggml_fail(
        GGML_HOST_UNTRUSTED,
        "'%s' is not loaded: its SHA-256 sum is not on the list of what may be: add it "
        "if the file is what it should be",
        search_path_label(path));
}
