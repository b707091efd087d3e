// SPDX-License-Identifier: MIT
// Each entry checks what a plugin passes, since a plugin's mistake must be a message and not a
// crash of the host.
#include "plugin/offer/host_table.h"

#include <string.h>

#include "base/env.h"
#include "base/mem.h"
#include "base/status.h"
#include "ggml-impl.h"
#include "machine/topology/numa.h"
#include "machine/topology/topology.h"
#include "plugin/offer/extensions.h"
#include "plugin/registry/plugin.h"

// Log and error entries take any number as level or status: the wrapped functions bound them.
static void table_log(const struct ggml_host_table *host, int32_t level, const char *text) {
    (void)host;
    if (text) ggml_log_internal((enum ggml_log_level)level, "%s", text);
}

static void table_set_error(const struct ggml_host_table *host, int32_t status, const char *text) {
    (void)host;
    ggml_fail((enum ggml_host_status)status, "%s", text ? text : "");
}

// The contract requires a size and a power of two; everything else is a mistake of the plugin with
// a message.
static void *table_alloc(const struct ggml_host_table *host, size_t size, size_t alignment) {
    (void)host;
    const bool valid = size > 0 && alignment > 0 && (alignment & (alignment - 1)) == 0;
    void *memory = valid ? ggml_mem_aligned_alloc(alignment, size) : NULL;
    if (!valid) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "host alloc: %zu bytes aligned to %zu: the size must "
                  "not be 0 and the alignment a power of two",
                  size, alignment);
    } else if (!memory) {
        // A note, not an error: the plugin decides whether lack of memory fails its call.
        ggml_fail_note(GGML_HOST_OUT_OF_MEMORY, "host alloc: no memory for %zu bytes", size);
    } else {
        ggml_numa_spread(memory, size);
    }
    return memory;
}

static void table_free(const struct ggml_host_table *host, void *memory) {
    (void)host;
    ggml_mem_aligned_free(memory);
}

static int32_t table_get_topology(const struct ggml_host_table *host,
                                  struct ggml_host_topology *out_topology) {
    (void)host;
    return (int32_t)topology_get(out_topology);
}

static int32_t table_bind_thread(const struct ggml_host_table *host, uint32_t index,
                                 uint32_t count) {
    (void)host;
    return (int32_t)topology_bind_thread(index, count);
}

static int32_t table_bind_thread_mask(const struct ggml_host_table *host, const uint64_t *mask,
                                      size_t n_words) {
    (void)host;
    return (int32_t)topology_bind_mask(mask, n_words);
}

// Letters of an environment variable for a plugin's name: capitals, digits and underscores.
static char variable_letter(char c) {
    if (c >= 'a' && c <= 'z') return (char)(c - 'a' + 'A');
    const bool plain = (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return plain ? c : '_';
}

// Whether the variable is one of the plugin's own, GGML_<NAME>_ANYTHING. A plugin can't read others
// through the host.
static bool is_own_variable(const char *plugin_name, const char *variable) {
    static const char prefix[] = "GGML_";
    if (plugin_name[0] == '\0' || strncmp(variable, prefix, strlen(prefix)) != 0) return false;
    const char *p = variable + strlen(prefix);
    for (; *plugin_name; ++plugin_name, ++p) {
        if (*p != variable_letter(*plugin_name)) return false;
    }
    return p[0] == '_' && p[1] != '\0';
}

// The host's variables by the table in env_list.inl; a plugin's own ones are read from the
// environment.
static const char *table_get_config(const struct ggml_host_table *host, const char *name) {
    if (!host || !name) return NULL;
    const char *value = ggml_env_by_name(name);
    if (value || !is_own_variable(plugin_of_table(host)->name, name)) return value;
    return ggml_env_of_plugin(name);
}

static const void *table_get_extension(const struct ggml_host_table *host, const char *id,
                                       uint32_t min_revision) {
    return id ? extension_find(plugin_of_table(host), id, min_revision) : NULL;
}

// Entries that are not set are reserved and zero.
void host_table_init(struct ggml_host_table *out_table) {
    *out_table = (struct ggml_host_table){
        .size = (uint32_t)sizeof(*out_table),
        .contract_major = GGML_CONTRACT_MAJOR,
        .contract_minor = GGML_CONTRACT_MINOR,
        .host_version = ggml_version(),
        .log = table_log,
        .set_error = table_set_error,
        .alloc = table_alloc,
        .free = table_free,
        .get_topology = table_get_topology,
        .bind_thread = table_bind_thread,
        .bind_thread_mask = table_bind_thread_mask,
        .get_config = table_get_config,
        .get_extension = table_get_extension,
    };
}
