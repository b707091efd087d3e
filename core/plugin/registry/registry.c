// SPDX-License-Identifier: MIT
// The registry's lock for changes. It is not recursive: a call from inside a plugin's start-up
// fails with BUSY, by a thread-local flag, instead of a deadlock.
#include "plugin/registry/registry.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/data/text.h"
#include "base/env.h"
#include "base/mem.h"
#include "base/status.h"
#include "plugin/registry/announce.h"
#include "plugin/registry/builtin.h"
#include "plugin/registry/snapshot.h"

static pthread_mutex_t change_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool changing;
static atomic_bool look_again;

#ifndef _WIN32
// Resets locks in the child of a fork, which has only the calling thread: other threads that were
// changing or reading don't exist there. Half-finished changes are not visible, as they were not
// published.
static void forked(void) {
    pthread_mutex_init(&change_lock, NULL);
    if (changing) pthread_mutex_lock(&change_lock); // a plugin's start-up forked
    snapshot_forked();
}

__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(NULL, NULL, forked);
}
#endif

bool registry_lock(const char *function) {
    if (changing) {
        ggml_fail(GGML_HOST_BUSY,
                  "%s: called from inside a plugin's start-up or shutdown: call it "
                  "when that has returned",
                  function);
        return false;
    }
    pthread_mutex_lock(&change_lock);
    changing = true;
    return true;
}

static bool registry_try_lock(void) {
    if (changing || pthread_mutex_trylock(&change_lock) != 0) return false;
    changing = true;
    return true;
}

// Releases the lock and lists announced devices. A thread that finds the lock held leaves a request
// and goes on, so that the request is looked for again after releasing. Bounded, because a plugin
// that announces on every listing without having a device would keep this loop running.
void registry_unlock(void) {
    enum { MAX_IN_VAIN = 100 };
    unsigned in_vain = 0;
    do {
        if (atomic_exchange(&look_again, false)) in_vain = announce_new_devices() ? 0 : in_vain + 1;
        changing = false;
        pthread_mutex_unlock(&change_lock);
    } while (in_vain < MAX_IN_VAIN && atomic_load(&look_again) && registry_try_lock());
}

void registry_look_again(void) {
    atomic_store(&look_again, true);
    if (registry_try_lock()) registry_unlock();
}

// With the lock held, the current snapshot can't change.
struct host_plugin *registry_plugin(size_t i) {
    const struct snapshot *snapshot = snapshot_current();
    return snapshot && i < snapshot->n_plugins ? snapshot->plugins[i] : NULL;
}

// A snapshot of the current plugins with one more or one less, in load order.
static struct snapshot *changed(struct host_plugin *added, const struct host_plugin *removed) {
    const struct snapshot *now = snapshot_current();
    const size_t n_now = now ? now->n_plugins : 0;
    struct host_plugin **plugins = ggml_mem_calloc(n_now + 1, sizeof(*plugins));
    if (!plugins) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for the list of %zu plugins", n_now + 1);
        return NULL;
    }
    size_t count = 0;
    for (size_t i = 0; i < n_now; ++i) {
        if (now->plugins[i] != removed) plugins[count++] = now->plugins[i];
    }
    if (added) plugins[count++] = added;
    struct snapshot *next = snapshot_new(plugins, count, NULL);
    ggml_mem_free(plugins);
    return next;
}

enum ggml_host_status registry_refresh(void) {
    return registry_add(NULL);
}

enum ggml_host_status registry_add(struct host_plugin *plugin) {
    struct snapshot *next = changed(plugin, NULL);
    if (!next) return GGML_HOST_OUT_OF_MEMORY;
    ggml_mem_free(snapshot_publish(next));
    return GGML_HOST_OK;
}

static enum ggml_host_status fail_busy(const struct host_plugin *plugin) {
    return ggml_fail(GGML_HOST_BUSY,
                     "ggml_plugin_unload: %zu streams, buffers or events of '%s' are "
                     "still alive: free them first",
                     atomic_load(&plugin->live), plugin->reg_name);
}

// Removes a plugin in three steps: hidden from new readers, then checked for uses that began
// before, then gone. Readers that have it keep it alive by its count.
enum ggml_host_status registry_remove(struct host_plugin *plugin) {
    if (atomic_load(&plugin->live) != 0) return fail_busy(plugin);
    struct snapshot *now = snapshot_current();
    struct snapshot *hidden = snapshot_new(now->plugins, now->n_plugins, plugin);
    struct snapshot *without = hidden ? changed(NULL, plugin) : NULL;
    if (!without) {
        ggml_mem_free(hidden);
        return GGML_HOST_OUT_OF_MEMORY;
    }
    snapshot_publish(hidden);
    if (atomic_load(&plugin->live) != 0) { // a reader found it before it was hidden
        snapshot_publish(now);
        ggml_mem_free(hidden);
        ggml_mem_free(without);
        return fail_busy(plugin);
    }
    snapshot_publish(without);
    ggml_mem_free(hidden);
    ggml_mem_free(now);
    return GGML_HOST_OK;
}

// Whether it is the backend of one of the plugin's isolated devices.
static bool is_isolated_reg(const struct host_plugin *plugin, ggml_backend_reg_t reg) {
    const struct device_list *list = plugin_devices(plugin);
    for (size_t i = 0; i < list->count; ++i) {
        if (list->items[i].isolated && list->items[i].isolated->reg == reg) return true;
    }
    return false;
}

struct host_plugin *registry_find_reg(ggml_backend_reg_t reg) {
    struct host_plugin *plugin = NULL;
    for (size_t i = 0; reg && (plugin = registry_plugin(i)) != NULL; ++i) {
        if (plugin->reg == reg || is_isolated_reg(plugin, reg)) return plugin;
    }
    return NULL;
}

struct host_plugin *registry_find_device(ggml_backend_dev_t device) {
    struct host_plugin *plugin;
    for (size_t i = 0; (plugin = registry_plugin(i)) != NULL; ++i) {
        const struct device_list *list = plugin_devices(plugin);
        for (size_t j = 0; j < list->count; ++j) {
            if (host_device_is(&list->items[j], device)) return plugin;
        }
    }
    return NULL;
}

struct host_plugin *registry_find_file(const struct plugin_file_id *id) {
    struct host_plugin *plugin;
    for (size_t i = 0; (plugin = registry_plugin(i)) != NULL; ++i) {
        const bool same = plugin->id.device == id->device && plugin->id.inode == id->inode;
        if (plugin->library && same) return plugin;
    }
    return NULL;
}

struct host_plugin *registry_find_entry(ggml_plugin_init_t entry) {
    struct host_plugin *plugin;
    for (size_t i = 0; (plugin = registry_plugin(i)) != NULL; ++i) {
        if (plugin->entry == entry) return plugin;
    }
    return NULL;
}

struct host_plugin *registry_find_name(const char *plugin_name) {
    struct host_plugin *plugin;
    for (size_t i = 0; (plugin = registry_plugin(i)) != NULL; ++i) {
        if (plugin->name[0] != '\0' && ascii_equal(plugin->name, plugin_name)) return plugin;
    }
    return NULL;
}

enum ggml_host_status registry_read_filter(size_t n_more, struct arena *arena,
                                           struct device_filter *out_filter) {
    size_t n_builtins;
    size_t n_loaded = 0;
    const struct builtin_plugin *builtins = builtin_plugins(&n_builtins);
    while (registry_plugin(n_loaded))
        ++n_loaded;
    const size_t capacity = n_more + n_builtins + n_loaded + 1;
    const char **names = arena_alloc(arena, capacity * sizeof(*names));
    if (!names || !filter_parse(out_filter, ggml_env(GGML_ENV_GGML_DEVICES), arena)) {
        return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for GGML_DEVICES");
    }
    out_filter->plugin_names = names;
    for (size_t i = 0; i < n_builtins; ++i)
        filter_add_plugin_name(out_filter, builtins[i].note->name);
    for (size_t i = 0; i < n_loaded; ++i)
        filter_add_plugin_name(out_filter, registry_plugin(i)->name);
    return GGML_HOST_OK;
}
