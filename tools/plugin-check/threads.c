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

static atomic_int n_ids;
static _Atomic pid_t ids[MAX_WATCHED_THREADS];

int threads_watched(pid_t out_ids[MAX_WATCHED_THREADS]) {
    int n = atomic_load(&n_ids);
    if (n > MAX_WATCHED_THREADS) n = MAX_WATCHED_THREADS;
    for (int i = 0; i < n; ++i)
        out_ids[i] = atomic_load(&ids[i]);
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
};

static void *remember_and_run(void *argument) {
    const struct start start = *(struct start *)argument;
    const int i = atomic_fetch_add(&n_ids, 1);
    free(argument);
    if (i < MAX_WATCHED_THREADS) atomic_store(&ids[i], gettid());
    return start.routine(start.argument);
}

static bool is_watched(const void *address) {
    Dl_info info;
    return watched_path && dladdr(address, &info) != 0 && info.dli_fname &&
           strcmp(info.dli_fname, watched_path) == 0;
}

__attribute__((visibility("default"))) int pthread_create(pthread_t *thread,
                                                          const pthread_attr_t *attributes,
                                                          start_routine routine, void *argument) {
    create_function create;
    *(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
    struct start *start = is_watched(__builtin_return_address(0)) ? malloc(sizeof(*start)) : NULL;
    if (!start) return create(thread, attributes, routine, argument);
    *start = (struct start){routine, argument};
    const int failure = create(thread, attributes, remember_and_run, start);
    if (failure) free(start);
    return failure;
}
#else
bool threads_watch(const char *path) {
    (void)path;
    return false;
}
#endif
