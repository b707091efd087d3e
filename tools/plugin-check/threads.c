// SPDX-License-Identifier: MIT
// This program's pthread_create stands before that of the C library for everything that it maps.
#define _GNU_SOURCE
#include "threads.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_int n_started;
// By the order of their start; 0 until the thread runs, -1 if it could not be started.
static _Atomic pid_t ids[MAX_WATCHED_THREADS];

// Ids of the threads that the plugin has started; waits until each has told its own.
int threads_watched(pid_t out_ids[MAX_WATCHED_THREADS]) {
    int n = 0, n_slots = atomic_load(&n_started);
    if (n_slots > MAX_WATCHED_THREADS) n_slots = MAX_WATCHED_THREADS;
    for (int i = 0; i < n_slots; ++i) {
        pid_t id;
        // On a busy machine a thread that was started may not have run yet.
        while ((id = atomic_load(&ids[i])) == 0)
            usleep(100);
        if (id > 0) out_ids[n++] = id;
    }
    return n;
}

#ifdef KIT_WATCHES_THREADS
static const char *watched_path;

bool threads_watch(const char *path) {
    watched_path = path;
    return true;
}

typedef void *(*start_routine)(void *argument);
typedef int (*create_function)(pthread_t *thread, const pthread_attr_t *attributes,
                               start_routine routine, void *argument);

struct start {
    start_routine routine;
    void *argument;
    int slot;
};

static void note_id(int slot, pid_t id) {
    if (slot < MAX_WATCHED_THREADS) atomic_store(&ids[slot], id);
}

static void *remember_and_run(void *argument) {
    const struct start start = *(struct start *)argument;
    free(argument);
    note_id(start.slot, gettid());
    return start.routine(start.argument);
}

static bool is_watched(const void *address) {
    Dl_info info;
    return watched_path && dladdr(address, &info) != 0 && info.dli_fname &&
           strcmp(info.dli_fname, watched_path) == 0;
}

// Calls the C library's; for callers in the plugin's file it has the thread note its id first.
__attribute__((visibility("default"))) int pthread_create(pthread_t *thread,
                                                          const pthread_attr_t *attributes,
                                                          start_routine routine, void *argument) {
    create_function create;
    *(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
    struct start *start = is_watched(__builtin_return_address(0)) ? malloc(sizeof(*start)) : NULL;
    if (!start) return create(thread, attributes, routine, argument);
    const int slot = atomic_fetch_add(&n_started, 1);
    *start = (struct start){routine, argument, slot};
    const int failure = create(thread, attributes, remember_and_run, start);
    if (failure) {
        note_id(slot, -1);
        free(start);
    }
    return failure;
}
#else
bool threads_watch(const char *path) {
    (void)path;
    return false;
}
#endif
