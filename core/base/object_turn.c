// SPDX-License-Identifier: MIT
// A list of the turns in progress, under one lock that is held for moments only. O(turns in
// progress).
#include "base/object_turn.h"

#include <stdbool.h>

static pthread_mutex_t turns_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static struct object_turn *turns; // in progress, of all threads
static int n_waiting;

static bool is_taken(const struct object_turn *wanted) {
    for (const struct object_turn *turn = turns; turn; turn = turn->next) {
        if (turn->object == wanted->object && !pthread_equal(turn->thread, wanted->thread))
            return true;
    }
    return false;
}

void object_turn_begin(struct object_turn *out_turn, const void *object) {
    *out_turn = (struct object_turn){.object = object, .thread = pthread_self()};
    pthread_mutex_lock(&turns_lock);
    while (is_taken(out_turn)) {
        ++n_waiting;
        pthread_cond_wait(&ended, &turns_lock);
        --n_waiting;
    }
    out_turn->next = turns;
    turns = out_turn;
    pthread_mutex_unlock(&turns_lock);
}

void object_turn_end(struct object_turn *turn) {
    pthread_mutex_lock(&turns_lock);
    struct object_turn **link = &turns;
    while (*link && *link != turn)
        link = &(*link)->next;
    if (*link) *link = turn->next;
    if (n_waiting > 0) pthread_cond_broadcast(&ended);
    pthread_mutex_unlock(&turns_lock);
}

#ifdef __linux__
static void hold(void) {
    pthread_mutex_lock(&turns_lock);
}

static void release(void) {
    pthread_mutex_unlock(&turns_lock);
}

// Turns of threads that only the parent has would never end.
static void release_in_child(void) {
    struct object_turn **link = &turns;
    while (*link) {
        if (pthread_equal((*link)->thread, pthread_self()))
            link = &(*link)->next;
        else
            *link = (*link)->next;
    }
    ended = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    n_waiting = 0;
    pthread_mutex_unlock(&turns_lock);
}

__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(hold, release, release_in_child);
}
#endif
