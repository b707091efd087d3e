// SPDX-License-Identifier: MIT
// A plugin's entry point: attaches the host, fills the plugin table. Several hosts (copies of the
// core) can be attached at once; services go to the one that attached last and is still there.
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/fork_lock.h"
#include "ggml-plugin.h"

enum { MAX_HOSTS = 16 };

// Held while the plugin's own start or shutdown runs, so that two hosts can't do both at once.
static pthread_mutex_t entry_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t hosts_lock = PTHREAD_MUTEX_INITIALIZER;
FORK_LOCK(hosts_lock);
static const struct ggml_host_table *hosts[MAX_HOSTS];
static int n_hosts;
static struct ggml_sdk_plugin *attached_plugin;

const struct ggml_host_table *ggml_sdk_host(void) {
    pthread_mutex_lock(&hosts_lock);
    const struct ggml_host_table *host = n_hosts > 0 ? hosts[n_hosts - 1] : NULL;
    pthread_mutex_unlock(&hosts_lock);
    return host;
}

enum ggml_host_status ggml_sdk_fail_v(enum ggml_host_status status, const char *format,
                                      va_list args) {
    char text[1024];
    const struct ggml_host_table *host = ggml_sdk_host();
    vsnprintf(text, sizeof(text), format, args);
    if (host) host->set_error(host, (int32_t)status, text);
    return status;
}

// Answers the number of hosts that are left, or -1 if this one was not attached.
static int detach(const struct ggml_host_table *host) {
    int left = -1;
    pthread_mutex_lock(&hosts_lock);
    for (int i = n_hosts - 1; i >= 0; --i) {
        if (hosts[i] != host) continue;
        memmove(&hosts[i], &hosts[i + 1], (size_t)(n_hosts - 1 - i) * sizeof(hosts[0]));
        left = --n_hosts;
        break;
    }
    pthread_mutex_unlock(&hosts_lock);
    return left;
}

static bool attach(const struct ggml_host_table *host) {
    pthread_mutex_lock(&hosts_lock);
    const bool room = n_hosts < MAX_HOSTS;
    if (room) hosts[n_hosts++] = host;
    pthread_mutex_unlock(&hosts_lock);
    return room;
}

// The plugin's own shutdown runs with the last host still attached.
static void shutdown_plugin(const struct ggml_host_table *host) {
    pthread_mutex_lock(&entry_lock);
    pthread_mutex_lock(&hosts_lock);
    const bool last = n_hosts == 1 && hosts[0] == host;
    pthread_mutex_unlock(&hosts_lock);
    if (last && attached_plugin->shutdown) attached_plugin->shutdown();
    detach(host);
    pthread_mutex_unlock(&entry_lock);
}

static void fill_table(struct ggml_plugin_table *table, ggml_backend_reg_t reg, int (*score)(void),
                       const void *(*get_extension)(const char *id, uint32_t min_revision)) {
    table->size = (uint32_t)sizeof(*table);
    table->contract_major = GGML_CONTRACT_MAJOR;
    table->contract_minor = GGML_CONTRACT_MINOR;
    table->reg = reg;
    table->score = score;
    table->shutdown = shutdown_plugin;
    table->get_extension = get_extension;
}

int32_t ggml_sdk_enter(const struct ggml_host_table *host, struct ggml_sdk_plugin *plugin,
                       ggml_backend_reg_t (*reg)(void), int (*score)(void), void (*shutdown)(void),
                       const void *(*get_extension)(const char *id, uint32_t min_revision),
                       const struct ggml_plugin_table **out_plugin) {
    int32_t status = GGML_HOST_OUT_OF_RANGE;
    *out_plugin = NULL;
    if (host->size < offsetof(struct ggml_host_table, reserved)) return GGML_HOST_WRONG_CONTRACT;
    pthread_mutex_lock(&entry_lock);
    if (attach(host)) {
        attached_plugin = plugin;
        plugin->shutdown = shutdown;
        const ggml_backend_reg_t started = reg();
        fill_table(&plugin->table, started, score, get_extension);
        status = started ? GGML_HOST_OK : GGML_HOST_INIT_FAILED;
        if (started) {
            *out_plugin = &plugin->table;
        } else {
            detach(host);
        }
    }
    pthread_mutex_unlock(&entry_lock);
    return status;
}
