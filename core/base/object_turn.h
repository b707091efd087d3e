// SPDX-License-Identifier: MIT
// Threads take turns at an object that has no lock of its own.
#ifndef GGML_BASE_OBJECT_TURN_H
#define GGML_BASE_OBJECT_TURN_H

#include <pthread.h>

// A turn in progress; lives on the stack of the thread that has it.
struct object_turn {
    struct object_turn *next;
    const void *object;
    pthread_t thread;
};

// Waits while another thread has a turn at the object; the same thread may have several. A child
// made by fork() has none but its own. [any-thread]
void object_turn_begin(struct object_turn *out_turn, const void *object);
// Ends it. [any-thread]
void object_turn_end(struct object_turn *turn);

#endif
