// SPDX-License-Identifier: MIT
// The threads that a file's own code starts, as opposed to those of the libraries that it uses.
#ifndef PLUGIN_CHECK_THREADS_H
#define PLUGIN_CHECK_THREADS_H

#include <stdbool.h>
#include <sys/types.h>

enum { MAX_WATCHED_THREADS = 256 };

// From here on, remembers the threads that the file with this path starts through pthread_create.
// False if that can't be told here: the program is built with a sanitizer. [init]
bool threads_watch(const char *path);
// Fills in their ids, also of those that have ended, and returns how many. Waits until each of them
// has begun to run. [any-thread]
int threads_watched(pid_t out_ids[MAX_WATCHED_THREADS]);

#endif
