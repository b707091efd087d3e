// SPDX-License-Identifier: MIT
// Nodes of other jobs that join while the program runs: a thread looks for the file in which a node
// writes where it waits, connects to it, and tells the host of its devices.
//
// The node waits, not the program: MPI_Comm_accept() can't be given up, and the program's exit must
// not depend on a node that may never come.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client.h"

enum { PORT_BYTES = 4096 };
static const double LOOK_SECONDS = 0.2;

struct joiner {
    struct client *client;
    char *path;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stops, is_busy; // inside of MPI, which may never return
};

// A file of this user's, or root's, that nobody else can write to.
static bool is_trusted(const struct stat *about) {
    return S_ISREG(about->st_mode) && (about->st_uid == geteuid() || about->st_uid == 0) &&
           (about->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// The first line of the file, which is removed, so that the next node can write one. False: there
// is none, or none that can be trusted.
static bool take_port(const char *path, char out_port[PORT_BYTES]) {
    struct stat about;
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return false;
    const bool trusted = fstat(fd, &about) == 0 && is_trusted(&about);
    const ssize_t n = trusted ? read(fd, out_port, PORT_BYTES - 1) : -1;
    close(fd);
    out_port[n > 0 ? n : 0] = '\0';
    out_port[strcspn(out_port, "\n")] = '\0';
    if (!trusted)
        GGML_LOG_WARN("GGML_MPI_JOIN: '%s' is no file that this user alone writes to\n", path);
    return unlink(path) == 0 && out_port[0] != '\0';
}

static void let_join(struct joiner *joiner, const char *port) {
    struct client *client = joiner->client;
    char why[LINK_TEXT];
    if (!link_join(client->link, port, why)) {
        GGML_LOG_WARN("a node can't join: %s\n", why);
        return;
    }
    const struct node *node = client_add(client);
    if (!node) return;
    GGML_LOG_INFO("MPI%d on %s has joined\n", node->peer, node->about.host);
    const struct ggml_host_table *host = ggml_sdk_host_hold();
    const struct ggml_extension_registry *registry =
        host->get_extension(host, GGML_EXTENSION_REGISTRY, GGML_EXTENSION_REGISTRY_REVISION);
    if (registry) registry->devices_changed(host);
    ggml_sdk_host_release(host);
}

// Whether to end, after a while. Under the lock.
static bool is_over(struct joiner *joiner) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(LOOK_SECONDS * 1e9);
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (!joiner->stops) pthread_cond_timedwait(&joiner->wake, &joiner->lock, &until);
    return joiner->stops;
}

static void *run(void *context) {
    struct joiner *joiner = context;
    char port[PORT_BYTES];
    pthread_mutex_lock(&joiner->lock);
    while (!is_over(joiner)) {
        if (!take_port(joiner->path, port)) continue;
        joiner->is_busy = true;
        pthread_mutex_unlock(&joiner->lock);
        let_join(joiner, port);
        pthread_mutex_lock(&joiner->lock);
        joiner->is_busy = false;
    }
    pthread_mutex_unlock(&joiner->lock);
    return NULL;
}

static void joiner_free(struct joiner *joiner) {
    pthread_mutex_destroy(&joiner->lock);
    pthread_cond_destroy(&joiner->wake);
    free(joiner->path);
    free(joiner);
}

struct joiner *joiner_start(struct client *client, const char *path) {
    struct joiner *joiner = calloc(1, sizeof(*joiner));
    if (!joiner) return NULL;
    joiner->client = client;
    joiner->path = strdup(path);
    pthread_mutex_init(&joiner->lock, NULL);
    link_cond_init(&joiner->wake);
    if (joiner->path && pthread_create(&joiner->thread, NULL, run, joiner) == 0) return joiner;
    joiner_free(joiner);
    ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "no thread that waits for nodes to join");
    return NULL;
}

bool joiner_end(struct joiner *joiner) {
    if (!joiner) return true;
    pthread_mutex_lock(&joiner->lock);
    joiner->stops = true;
    const bool is_busy = joiner->is_busy;
    pthread_cond_broadcast(&joiner->wake);
    pthread_mutex_unlock(&joiner->lock);
    if (is_busy) {
        pthread_detach(joiner->thread);
        return false;
    }
    pthread_join(joiner->thread, NULL);
    joiner_free(joiner);
    return true;
}
