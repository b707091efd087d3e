// SPDX-License-Identifier: MIT
// A node that joins a program of another job: the name of the MPI port at which it waits goes into
// a file, where the program looks, and a signal makes it say goodbye.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server.h"

enum { RETRY_US = 200000, NODE_PATH = 4096 };
enum { GOODBYE_SECONDS = 5 };

static struct {
    const char *path;
    struct server *server;
    pthread_mutex_t lock;
    bool is_joined;
    struct stat written; // the file while nobody has taken it
    sigset_t signals;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

// Removes the file if it is still this node's.
static void withdraw(void) {
    struct stat now;
    if (state.written.st_ino != 0 && lstat(state.path, &now) == 0 &&
        now.st_ino == state.written.st_ino && now.st_dev == state.written.st_dev)
        unlink(state.path);
}

// Until it has joined there is nobody to tell. Of a program that was killed MPI may say nothing:
// one that takes no goodbye is gone; the message stays, for MPI.
static void *leave(void *context) {
    static struct wire_message bye = {.magic = WIRE_MAGIC, .kind = WIRE_BYE};
    int number;
    (void)context;
    sigwait(&state.signals, &number);
    pthread_mutex_lock(&state.lock);
    const bool is_joined = state.is_joined;
    if (!is_joined) withdraw();
    pthread_mutex_unlock(&state.lock);
    if (!is_joined) _exit(128 + number);
    const bool told = link_tell(state.server->link, 0, &bye, sizeof(bye), GOODBYE_SECONDS);
    server_end(state.server, told ? NULL : "the program does not take the goodbye");
    return NULL;
}

bool join_begin(struct server *server, const char *path) {
    pthread_t thread;
    state.path = path;
    state.server = server;
    sigemptyset(&state.signals);
    sigaddset(&state.signals, SIGTERM);
    sigaddset(&state.signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &state.signals, NULL);
    const bool good = pthread_create(&thread, NULL, leave, NULL) == 0;
    if (good) pthread_detach(thread);
    if (!good) fprintf(stderr, "ggml-node: no thread that waits for signals\n");
    return good;
}

// A file beside `path` with the name of the port, that this user alone may read.
static bool write_beside(const char *path, const char *port, char out_name[NODE_PATH]) {
    const int length = snprintf(out_name, NODE_PATH, "%s.%ld", path, (long)getpid());
    const int fd = length < NODE_PATH
                       ? open(out_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)
                       : -1;
    if (fd < 0) return false;
    const bool good = dprintf(fd, "%s\n", port) > 0;
    return close(fd) == 0 && good;
}

// link() takes no name that is there, so that nodes which join at once wait for each other.
bool join_publish(void *context, const char *port) {
    char name[NODE_PATH];
    bool good = write_beside(state.path, port, name);
    (void)context;
    while (good && link(name, state.path) != 0) {
        good = errno == EEXIST;
        if (good) usleep(RETRY_US);
    }
    pthread_mutex_lock(&state.lock);
    if (good && lstat(name, &state.written) != 0) good = false;
    pthread_mutex_unlock(&state.lock);
    if (!good)
        fprintf(stderr, "ggml-node: '%s' can't be written: %s\n", state.path, strerror(errno));
    unlink(name);
    return good;
}

void join_done(struct server *server) {
    (void)server;
    pthread_mutex_lock(&state.lock);
    state.is_joined = true;
    pthread_mutex_unlock(&state.lock);
}
