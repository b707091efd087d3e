// SPDX-License-Identifier: MIT
// How the thread that calls MPI sleeps until there is something to do: for a while, until
// another thread wakes it, or until bytes arrive at a socket of this process.
//
// MPI has no call that sleeps until a message comes. Over TCP its sockets tell: they are found in
// /proc/self/fd and only watched, never read. Whether messages are announced by them is learned
// from those that come; over other transports they are not, and the thread looks again and again.
#ifndef GGML_MPI_LINK_DOZE_H
#define GGML_MPI_LINK_DOZE_H

#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { DOZE_SOCKETS = 1024 };

struct doze {
    int wake; // eventfd
    struct pollfd fds[DOZE_SOCKETS + 1];
    unsigned char vain[DOZE_SOCKETS + 1]; // times in a row that MPI left it readable
    int n;
    double scanned; // when sockets were looked for
    int score;      // rises with messages that a socket has announced, falls with others
    int fresh;      // looks that are still due after a socket was readable
    bool slept;     // the whole time, before the look that comes next
    atomic_bool sleeps;
};

// False: the system has no more files. doze_end() is due then too.
bool doze_init(struct doze *doze);
void doze_end(struct doze *doze);
// Whether messages are announced by sockets. [link]
bool doze_is_announced(const struct doze *doze);
// Around doze_sleep(): between them doze_wake() ends it. What wakes is noted before doze_wake() is
// called, and looked at after doze_begin(). [link]
void doze_begin(struct doze *doze);
void doze_finish(struct doze *doze);
// Sleeps for at most `seconds`, 0: only asks the sockets. Not at all while looks are due: MPI may
// take bytes in one call and tell of the message in the next. [link]
void doze_sleep(struct doze *doze, double now, double seconds);
// Learns from what a look found: messages or nothing. [link]
void doze_learn(struct doze *doze, bool came);
// Ends a sleep. [any-thread]
void doze_wake(struct doze *doze);

#endif
