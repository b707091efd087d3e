// SPDX-License-Identifier: MIT
// Threads take turns at an object that has no lock of its own.
#ifndef GGML_BASE_TURN_H
#define GGML_BASE_TURN_H

#include <pthread.h>

// A turn in progress; lives on the stack of the thread that has it.
struct turn {
    struct turn *next;
    const void *object;
    pthread_t thread;
};

// Waits while another thread has a turn at the object; the same thread may have several. A child
// made by fork() has none but its own. [any-thread]
void turn_begin(struct turn *out_turn, const void *object);
// Ends it. [any-thread]
void turn_end(struct turn *turn);

#endif
