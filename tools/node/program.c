// SPDX-License-Identifier: MIT
// Whether the program is still there, where the kernel tells: it may be stopped for as long as it
// likes, and is missed only when its process has ended.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "link/link_process.h"
#include "server.h"

// For a goodbye that it has sent before, and for MPI to be ended with it.
enum { GRACE_MS = 1000 };

// Whether the program ends before this node does.
static bool ends_first(const struct program *program) {
    struct pollfd both[2] = {{.fd = program->wake, .events = POLLIN},
                             {.fd = program->process, .events = POLLIN}};
    while (poll(both, 2, -1) < 0)
        if (errno != EINTR) return false;
    return both[0].revents == 0;
}

// Whether this node ends in that time.
static bool ends_soon(const struct program *program) {
    struct pollfd wake = {.fd = program->wake, .events = POLLIN};
    return poll(&wake, 1, GRACE_MS) != 0;
}

static void *watch(void *context) {
    struct server *server = context;
    const struct program *program = &server->program;
    if (ends_first(program) && !ends_soon(program)) server_end(server, "the program is gone");
    return NULL;
}

// Under the server's lock.
static bool start(struct server *server, const struct wire_program *said) {
    struct program *program = &server->program;
    program->process = link_process_open(said);
    if (program->process < 0) return false; // of another machine, or not to be seen
    program->wake = eventfd(0, EFD_CLOEXEC);
    if (program->wake >= 0 && pthread_create(&program->thread, NULL, watch, server) == 0)
        return true;
    if (program->wake >= 0) close(program->wake);
    close(program->process);
    return false;
}

void program_watch(struct server *server, const void *rest) {
    struct wire_program said;
    wire_read_program(rest, &said);
    pthread_mutex_lock(&server->lock);
    if (!server->ends && !server->program.is_watched)
        server->program.is_watched = start(server, &said);
    pthread_mutex_unlock(&server->lock);
}

void program_end(struct server *server) {
    struct program *program = &server->program;
    const uint64_t one = 1;
    if (!program->is_watched) return;
    if (write(program->wake, &one, sizeof(one)) == sizeof(one)) pthread_join(program->thread, NULL);
    close(program->wake);
    close(program->process);
}
