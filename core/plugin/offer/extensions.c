// SPDX-License-Identifier: MIT
// One constant table per extension of the host; those of the application are added at run time.
#include "plugin/offer/extensions.h"

#include <stdatomic.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "ggml-host.h"
#include "plugin/registry/announce.h"
#include "plugin/registry/snapshot.h"

// --- the host's own ------------------------------------------------------------------------------

// Entries of the extensions. Plugins pass the host table so that the host can tell them apart.
static ggml_backend_buffer_type_t memory_type(const struct ggml_host_table *host) {
    (void)host;
    return ggml_backend_cpu_buffer_type();
}

static int32_t memory_from_ptr(const struct ggml_host_table *host, void *ptr, size_t size,
                               ggml_backend_buffer_t *out_buffer) {
    (void)host;
    if (!out_buffer) return GGML_HOST_INVALID_ARGUMENT;
    *out_buffer = ggml_backend_cpu_buffer_from_ptr(ptr, size);
    return (int32_t)(*out_buffer ? GGML_HOST_OK : ggml_last_status());
}

static const struct ggml_extension_host_memory host_memory = {
    .size = (uint32_t)sizeof(host_memory),
    .revision = GGML_EXTENSION_HOST_MEMORY_REVISION,
    .buffer_type = memory_type,
    .buffer_from_ptr = memory_from_ptr,
};

static uint64_t features_here(const struct ggml_host_table *host) {
    (void)host;
    return ggml_host_cpu_features();
}

static const struct ggml_extension_cpu_features cpu_features = {
    .size = (uint32_t)sizeof(cpu_features),
    .revision = GGML_EXTENSION_CPU_FEATURES_REVISION,
    .features = features_here,
};

// The registry extension: a plugin announces that its list of devices has changed.
static int32_t devices_changed(const struct ggml_host_table *host) {
    if (!host) return GGML_HOST_INVALID_ARGUMENT;
    return (int32_t)announce_devices(plugin_of_table(host));
}

static const struct ggml_extension_registry registry = {
    .size = (uint32_t)sizeof(registry),
    .revision = GGML_EXTENSION_REGISTRY_REVISION,
    .devices_changed = devices_changed,
};

// Where the plugin's file lies, for those that ship data with it.
static const char *plugin_file(const struct ggml_host_table *host) {
    return plugin_of_table(host)->path;
}

static const char *plugin_folder(const struct ggml_host_table *host) {
    return plugin_of_table(host)->folder;
}

static const struct ggml_extension_plugin_path plugin_path = {
    .size = (uint32_t)sizeof(plugin_path),
    .revision = GGML_EXTENSION_PLUGIN_PATH_REVISION,
    .file = plugin_file,
    .folder = plugin_folder,
};

// Has no entries: that it is offered tells a plugin that it is only tried out.
static const struct ggml_extension_trial trial = {
    .size = (uint32_t)sizeof(trial),
    .revision = GGML_EXTENSION_TRIAL_REVISION,
};
static atomic_bool is_trial;

void extensions_set_trial(void) {
    atomic_store(&is_trial, true);
}

// --- the application's ---------------------------------------------------------------------------

// An extension of the application. Never removed: a plugin may keep the table that it was given.
struct offered {
    struct offered *older;
    const void *table;
    uint32_t revision;
    char id[];
};
static _Atomic(struct offered *) newest;

// Lock-free: the list only grows at its front, and nothing is freed.
static const struct offered *find_offered(const char *id) {
    const struct offered *item = atomic_load(&newest);
    while (item && strcmp(item->id, id) != 0)
        item = item->older;
    return item;
}

// Lock-free append. The new id is compared with all others again after each lost race.
enum ggml_host_status ggml_host_offer_extension(const char *id, uint32_t revision,
                                                const void *table) {
    if (!id || id[0] == '\0' || !table || strncmp(id, "ggml.", strlen("ggml.")) == 0) {
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                         "ggml_host_offer_extension: needs a table, and an id that begins with a "
                         "domain of yours (org.example.name); 'ggml.' is the contract's own");
    }
    struct offered *item = ggml_mem_alloc(sizeof(*item) + strlen(id) + 1);
    if (!item) {
        return ggml_fail(GGML_HOST_OUT_OF_MEMORY,
                         "ggml_host_offer_extension: no memory for extension '%s'", id);
    }
    item->table = table;
    item->revision = revision;
    memcpy(item->id, id, strlen(id) + 1);
    item->older = atomic_load(&newest);
    do {
        if (!find_offered(id)) continue;
        ggml_mem_free(item);
        return ggml_fail(GGML_HOST_DUPLICATE, "ggml_host_offer_extension: '%s' is offered already",
                         id);
    } while (!atomic_compare_exchange_weak(&newest, &item->older, item));
    return GGML_HOST_OK;
}

// --- both ----------------------------------------------------------------------------------------

// The application's extensions are looked up first; ids of the host's own can't be taken, as
// `ggml.` is refused.
const void *extension_find(const struct host_plugin *plugin, const char *id,
                           uint32_t min_revision) {
    const struct offered *offered = find_offered(id);
    if (offered) return min_revision <= offered->revision ? offered->table : NULL;
    const struct own {
        const char *id;
        uint32_t revision;
        const void *table;
    } own[] = {
        {GGML_EXTENSION_HOST_MEMORY, host_memory.revision, &host_memory},
        {GGML_EXTENSION_CPU_FEATURES, cpu_features.revision, &cpu_features},
        {GGML_EXTENSION_REGISTRY, registry.revision, &registry},
        {GGML_EXTENSION_PLUGIN_PATH, plugin_path.revision, plugin->folder ? &plugin_path : NULL},
        {GGML_EXTENSION_TRIAL, trial.revision, atomic_load(&is_trial) ? &trial : NULL},
    };
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); ++i) {
        if (strcmp(own[i].id, id) == 0)
            return min_revision <= own[i].revision ? own[i].table : NULL;
    }
    return NULL;
}

// Keeps the plugin alive during the call by its use count, without a lock.
const void *ggml_backend_reg_get_extension(ggml_backend_reg_t reg, const char *id,
                                           uint32_t min_revision) {
    unsigned section;
    struct host_plugin *plugin = NULL;
    const void *found = NULL;
    if (!reg || !id) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "ggml_backend_reg_get_extension: the backend or the id is NULL");
        return NULL;
    }
    const struct snapshot *snapshot = snapshot_enter(&section);
    for (size_t i = 0; i < snapshot->n_plugins && !plugin; ++i) {
        if (snapshot->plugins[i]->reg == reg) plugin = snapshot->plugins[i];
    }
    if (plugin) atomic_fetch_add(&plugin->live, 1); // it stays while it is asked
    snapshot_leave(section);
    if (!plugin) return NULL;
    const struct ggml_plugin_table *table = plugin->table;
    if (table && table->get_extension) found = table->get_extension(table, id, min_revision);
    atomic_fetch_sub(&plugin->live, 1);
    return found;
}
