// SPDX-License-Identifier: MIT
// Which plugin files may be loaded, by their location and content.
#ifndef GGML_PLUGIN_TRUST_POLICY_H
#define GGML_PLUGIN_TRUST_POLICY_H

#include "base/data/arena.h"
#include "plugin/image/plugin_file.h"
#include "plugin/trust/sum_list.h"

// The policy in force, for the length of one call.
struct load_policy {
    bool allow_unsafe;
    bool has_set_sums; // by the application
    bool has_env_sums; // by GGML_PLUGIN_SHA256
    struct sum_list set_sums;
    struct sum_list env_sums;
};

// The policy of this moment; memory is the arena's. A list that can't be used is a failure: nothing
// may be loaded then. [any-thread]
enum ggml_host_status policy_get(struct arena *arena, struct load_policy *out_policy);
// UNTRUSTED if a directory, or the file that is open, is not to be loaded from. [any-thread]
enum ggml_host_status policy_check_dir(const struct load_policy *policy, const char *path);
enum ggml_host_status policy_check_file(const struct load_policy *policy, const char *path,
                                        const struct plugin_file *file);
// UNTRUSTED if there are lists and its sum is not on each of them. [any-thread]
enum ggml_host_status policy_check_sum(const struct load_policy *policy, const char *path,
                                       const struct plugin_file *file);

#endif
