// SPDX-License-Identifier: MIT
// Sleeping until bytes arrive at one of this process's sockets.
#define _GNU_SOURCE
#include "link_doze.h"

#include <dirent.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

// A message that no socket announced weighs more than one that was: sleeping through messages costs
// more than looking in vain.
enum { ENOUGH = 16, MOST = 64, UNANNOUNCED = 4, MOST_VAIN = 64, LOOKS = 3 };
static const double SCAN_SECONDS = 1.0;

bool doze_init(struct doze *doze) {
    *doze = (struct doze){.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .scanned = -SCAN_SECONDS};
    return doze->wake >= 0;
}

void doze_end(struct doze *doze) {
    if (doze->wake >= 0) close(doze->wake);
    doze->wake = -1;
}

bool doze_is_announced(const struct doze *doze) {
    return doze->score >= ENOUGH;
}

// Whether it is a connection by TCP: only another host's bytes come by one.
static bool is_connection(int fd) {
    struct sockaddr_storage peer;
    socklen_t size = sizeof(peer);
    int type = 0;
    socklen_t type_size = sizeof(type);
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size) != 0 || type != SOCK_STREAM)
        return false;
    return getpeername(fd, (struct sockaddr *)&peer, &size) == 0 &&
           (peer.ss_family == AF_INET || peer.ss_family == AF_INET6);
}

// Connections are made when a peer is first sent to, so they are looked for again now and then.
static void scan(struct doze *doze) {
    DIR *folder = opendir("/proc/self/fd");
    doze->n = 0;
    memset(doze->vain, 0, sizeof(doze->vain));
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        const int fd = atoi(entry->d_name);
        if (entry->d_name[0] == '.' || doze->n == DOZE_SOCKETS || !is_connection(fd)) continue;
        doze->fds[doze->n++] = (struct pollfd){.fd = fd, .events = POLLIN};
    }
    if (folder) closedir(folder);
}

// poll() ignores negative numbers: a socket that MPI leaves readable is another library's, and is
// left out until the next scan.
static void note_vain(struct doze *doze) {
    for (int i = 0; i < doze->n; ++i) {
        const bool readable = doze->fds[i].fd >= 0 && doze->fds[i].revents != 0;
        doze->vain[i] = (unsigned char)(readable ? doze->vain[i] + 1 : 0);
        if (doze->vain[i] == MOST_VAIN) doze->fds[i].fd = -1;
    }
}

void doze_begin(struct doze *doze) {
    atomic_store(&doze->sleeps, true);
}

void doze_finish(struct doze *doze) {
    atomic_store(&doze->sleeps, false);
}

void doze_sleep(struct doze *doze, double now, double seconds) {
    uint64_t count;
    if (now - doze->scanned >= SCAN_SECONDS) {
        scan(doze);
        doze->scanned = now;
    }
    doze->fds[doze->n] = (struct pollfd){.fd = doze->wake, .events = POLLIN};
    const long ns = doze->fresh > 0 ? 0 : (long)(seconds * 1e9);
    const struct timespec most = {ns / 1000000000, ns % 1000000000};
    const int found = ppoll(doze->fds, (nfds_t)doze->n + 1, &most, NULL);
    const bool woken = found > 0 && doze->fds[doze->n].revents != 0;
    if (found > (int)woken) doze->fresh = LOOKS;
    doze->slept = ns > 0 && found == 0;
    if (woken && read(doze->wake, &count, sizeof(count)) < 0) return; // nothing to empty
}

// A message that comes after a sleep through which no socket was readable was not announced. One
// that comes between two looks tells nothing: it may be the look that has read it.
void doze_learn(struct doze *doze, bool came) {
    const bool announced = doze->fresh > 0, slept = doze->slept;
    doze->slept = false;
    if (announced && !came && --doze->fresh == 0) note_vain(doze);
    if (!came) return;
    memset(doze->vain, 0, sizeof(doze->vain));
    if (announced || slept) doze->score += announced ? 1 : -UNANNOUNCED;
    if (doze->score > MOST) doze->score = MOST;
    if (doze->score < -MOST) doze->score = -MOST;
}

void doze_wake(struct doze *doze) {
    const uint64_t one = 1;
    if (!atomic_load(&doze->sleeps)) return;
    if (write(doze->wake, &one, sizeof(one)) < 0) return; // full: it wakes in any case
}
