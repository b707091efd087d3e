// SPDX-License-Identifier: MIT
// A plugin's entry point: attaches the host and fills the plugin table. Several hosts (copies of
// the core) can be attached at once, and several plugins of one image to each. Services are taken
// from the host that attached last and is still attached; failures are reported to all.
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/fork_lock.h"
#include "ggml-plugin.h"

enum { MAX_ATTACHED = 64 };

struct attachment {
    const struct ggml_host_table *host;
    const struct ggml_sdk_plugin *plugin;
};

// Held while a plugin's own start or shutdown runs, so that two hosts can't run both at once.
static pthread_mutex_t entry_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t attached_lock = PTHREAD_MUTEX_INITIALIZER;
FORK_LOCK(attached_lock);
static struct attachment attached[MAX_ATTACHED];
static int n_attached;

const struct ggml_host_table *ggml_sdk_host(void) {
    pthread_mutex_lock(&attached_lock);
    const struct ggml_host_table *host = n_attached > 0 ? attached[n_attached - 1].host : NULL;
    pthread_mutex_unlock(&attached_lock);
    return host;
}

static const struct ggml_host_table *host_at(int index) {
    pthread_mutex_lock(&attached_lock);
    const struct ggml_host_table *host = index < n_attached ? attached[index].host : NULL;
    pthread_mutex_unlock(&attached_lock);
    return host;
}

// Each host is called without the lock, since it may call back. The host whose call is in progress
// can't detach meanwhile.
enum ggml_host_status ggml_sdk_fail_v(enum ggml_host_status status, const char *format,
                                      va_list args) {
    char text[1024];
    const struct ggml_host_table *host;
    vsnprintf(text, sizeof(text), format, args);
    for (int i = 0; (host = host_at(i)) != NULL; ++i)
        host->set_error(host, (int32_t)status, text);
    return status;
}

static void detach(const struct ggml_host_table *host, struct ggml_sdk_plugin *plugin) {
    pthread_mutex_lock(&attached_lock);
    for (int i = n_attached - 1; i >= 0; --i) {
        if (attached[i].host != host || attached[i].plugin != plugin) continue;
        // In order, so that the last row stays the host that attached last.
        memmove(&attached[i], &attached[i + 1], (size_t)(n_attached - 1 - i) * sizeof(attached[0]));
        --n_attached;
        --plugin->n_hosts;
        break;
    }
    pthread_mutex_unlock(&attached_lock);
}

// false if the table is full.
static bool attach(const struct ggml_host_table *host, struct ggml_sdk_plugin *plugin) {
    pthread_mutex_lock(&attached_lock);
    const bool has_room = n_attached < MAX_ATTACHED;
    if (has_room) {
        attached[n_attached++] = (struct attachment){host, plugin};
        ++plugin->n_hosts;
    }
    pthread_mutex_unlock(&attached_lock);
    return has_room;
}

static bool is_attached(const struct ggml_host_table *host, const struct ggml_sdk_plugin *plugin) {
    bool found = false;
    pthread_mutex_lock(&attached_lock);
    for (int i = 0; i < n_attached; ++i)
        found |= attached[i].host == host && attached[i].plugin == plugin;
    pthread_mutex_unlock(&attached_lock);
    return found;
}

// The table is a member of ggml_sdk_plugin, so that the host's pointer leads back to it.
static struct ggml_sdk_plugin *plugin_of(const struct ggml_plugin_table *table) {
    return (struct ggml_sdk_plugin *)((char *)(uintptr_t)table -
                                      offsetof(struct ggml_sdk_plugin, table));
}

static int table_score(const struct ggml_plugin_table *self) {
    const struct ggml_sdk_plugin *plugin = plugin_of(self);
    return plugin->score ? plugin->score() : 1;
}

// The plugin's own shutdown runs while the last host is still attached: it frees memory and logs
// through it.
static void table_shutdown(const struct ggml_plugin_table *self,
                           const struct ggml_host_table *host) {
    struct ggml_sdk_plugin *plugin = plugin_of(self);
    pthread_mutex_lock(&entry_lock);
    if (is_attached(host, plugin)) {
        if (plugin->n_hosts == 1 && plugin->shutdown) plugin->shutdown();
        detach(host, plugin);
    }
    pthread_mutex_unlock(&entry_lock);
}

static const void *table_get_extension(const struct ggml_plugin_table *self, const char *id,
                                       uint32_t min_revision) {
    const struct ggml_sdk_plugin *plugin = plugin_of(self);
    return plugin->get_extension ? plugin->get_extension(id, min_revision) : NULL;
}

static void fill_table(struct ggml_sdk_plugin *plugin, ggml_backend_reg_t reg) {
    struct ggml_plugin_table *table = &plugin->table;
    table->size = (uint32_t)sizeof(*table);
    table->contract_major = GGML_CONTRACT_MAJOR;
    table->contract_minor = GGML_CONTRACT_MINOR;
    table->reg = reg;
    table->score = plugin->score ? table_score : NULL;
    table->shutdown = table_shutdown;
    table->get_extension = plugin->get_extension ? table_get_extension : NULL;
    table->note = plugin->note;
}

// With another host attached already the table is in use and keeps its contents.
static int32_t start(struct ggml_sdk_plugin *plugin) {
    const ggml_backend_reg_t reg = plugin->start();
    if (!reg) return GGML_HOST_INIT_FAILED;
    if (plugin->n_hosts == 1) fill_table(plugin, reg);
    return GGML_HOST_OK;
}

// Attaches before start(): a plugin allocates and logs while it starts. `size` tells which members
// the host's table has; an older host without the mandatory ones is refused.
int32_t ggml_sdk_enter(struct ggml_sdk_plugin *plugin, const struct ggml_host_table *host,
                       const struct ggml_plugin_table **out_plugin) {
    int32_t status = GGML_HOST_OUT_OF_RANGE;
    *out_plugin = NULL;
    if (host->size < offsetof(struct ggml_host_table, reserved)) return GGML_HOST_WRONG_CONTRACT;
    pthread_mutex_lock(&entry_lock);
    if (attach(host, plugin)) {
        status = start(plugin);
        if (status == GGML_HOST_OK) {
            *out_plugin = &plugin->table;
        } else {
            detach(host, plugin);
        }
    }
    pthread_mutex_unlock(&entry_lock);
    return status;
}
