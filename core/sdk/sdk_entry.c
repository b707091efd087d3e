// SPDX-License-Identifier: MIT
// A plugin's entry point: attaches the host and fills the plugin table. Several hosts (copies of
// the core) can be attached at once, and several plugins of one image to each. Services are taken
// from the host that attached last and is still attached; failures are reported to all. A host
// whose service is in use is held: its shutdown waits until that has ended.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fork_lock.h"
#include "ggml-plugin.h"

enum { MAX_ATTACHED = 64 };

struct attachment {
    const struct ggml_host_table *host;
    const struct ggml_sdk_plugin *plugin;
    unsigned n_held; // calls in progress
    bool leaves;     // nobody holds it anew
    pid_t process;   // that attached: holders stay behind when a process forks
};

// Held while a plugin's own start or shutdown runs, so that two hosts can't run both at once.
static pthread_mutex_t entry_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t attached_lock = PTHREAD_MUTEX_INITIALIZER;
FORK_LOCK(attached_lock);
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static struct attachment attached[MAX_ATTACHED];
static int n_attached;

// The last that doesn't leave, or NULL. With the lock.
static struct attachment *last_attached(void) {
    for (int i = n_attached - 1; i >= 0; --i)
        if (!attached[i].leaves) return &attached[i];
    return NULL;
}

const struct ggml_host_table *ggml_sdk_host(void) {
    pthread_mutex_lock(&attached_lock);
    const struct attachment *last = last_attached();
    const struct ggml_host_table *host = last ? last->host : NULL;
    pthread_mutex_unlock(&attached_lock);
    return host;
}

const struct ggml_host_table *ggml_sdk_host_hold(void) {
    pthread_mutex_lock(&attached_lock);
    struct attachment *last = last_attached();
    const struct ggml_host_table *host = last ? last->host : NULL;
    if (last) ++last->n_held;
    pthread_mutex_unlock(&attached_lock);
    return host;
}

void ggml_sdk_host_release(const struct ggml_host_table *host) {
    if (!host) return;
    pthread_mutex_lock(&attached_lock);
    for (int i = n_attached - 1; i >= 0; --i) {
        if (attached[i].host != host || attached[i].n_held == 0) continue;
        if (--attached[i].n_held == 0 && attached[i].leaves) pthread_cond_broadcast(&released);
        break;
    }
    pthread_mutex_unlock(&attached_lock);
}

// Each host is called without the lock, since it may call back.
enum ggml_host_status ggml_sdk_fail_v(enum ggml_host_status status, const char *format,
                                      va_list args) {
    char text[1024];
    const struct ggml_host_table *hosts[MAX_ATTACHED];
    int n = 0;
    vsnprintf(text, sizeof(text), format, args);
    pthread_mutex_lock(&attached_lock);
    for (int i = 0; i < n_attached; ++i) {
        if (attached[i].leaves) continue;
        ++attached[i].n_held;
        hosts[n++] = attached[i].host;
    }
    pthread_mutex_unlock(&attached_lock);
    for (int i = 0; i < n; ++i) {
        hosts[i]->set_error(hosts[i], (int32_t)status, text);
        ggml_sdk_host_release(hosts[i]);
    }
    return status;
}

enum ggml_host_status ggml_sdk_fail(enum ggml_host_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    ggml_sdk_fail_v(status, format, args);
    va_end(args);
    return status;
}

// The row of a host, which moves when one before it is removed; n_attached without one. With the
// lock.
static int find_row(const struct ggml_host_table *host, const struct ggml_sdk_plugin *plugin,
                    bool leaves) {
    int i = 0;
    while (i < n_attached && (attached[i].host != host || attached[i].plugin != plugin ||
                              attached[i].leaves != leaves))
        ++i;
    return i;
}

// From now on nobody holds the host anew. With the entry's lock.
static void leave(const struct ggml_host_table *host, struct ggml_sdk_plugin *plugin) {
    pthread_mutex_lock(&attached_lock);
    const int i = find_row(host, plugin, false);
    if (i < n_attached) {
        attached[i].leaves = true;
        --plugin->n_hosts;
    }
    pthread_mutex_unlock(&attached_lock);
}

// Waits until nobody uses the host. Without the entry's lock, since who holds it may need that.
static void detach(const struct ggml_host_table *host, const struct ggml_sdk_plugin *plugin) {
    pthread_mutex_lock(&attached_lock);
    int i;
    while ((i = find_row(host, plugin, true)) < n_attached && attached[i].n_held > 0 &&
           attached[i].process == getpid())
        pthread_cond_wait(&released, &attached_lock);
    if (i < n_attached) {
        // In order, so that the last row stays the host that attached last.
        memmove(&attached[i], &attached[i + 1], (size_t)(n_attached - 1 - i) * sizeof(attached[0]));
        --n_attached;
    }
    pthread_mutex_unlock(&attached_lock);
}

// false if the table is full.
static bool attach(const struct ggml_host_table *host, struct ggml_sdk_plugin *plugin) {
    pthread_mutex_lock(&attached_lock);
    const bool has_room = n_attached < MAX_ATTACHED;
    if (has_room) {
        attached[n_attached++] =
            (struct attachment){.host = host, .plugin = plugin, .process = getpid()};
        ++plugin->n_hosts;
    }
    pthread_mutex_unlock(&attached_lock);
    return has_room;
}

static bool is_attached(const struct ggml_host_table *host, const struct ggml_sdk_plugin *plugin) {
    pthread_mutex_lock(&attached_lock);
    const bool found = find_row(host, plugin, false) < n_attached;
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
    const bool leaves = is_attached(host, plugin);
    if (leaves) {
        if (plugin->n_hosts == 1 && plugin->shutdown) plugin->shutdown();
        leave(host, plugin);
    }
    pthread_mutex_unlock(&entry_lock);
    if (leaves) detach(host, plugin);
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
            leave(host, plugin);
        }
    }
    pthread_mutex_unlock(&entry_lock);
    if (status != GGML_HOST_OK) detach(host, plugin);
    return status;
}
