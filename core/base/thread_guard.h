// SPDX-License-Identifier: MIT
// Finds objects that two threads use at once although their functions are tagged [stream]. Costs
// nothing unless the library is built with -Dthread_checks=true.
#ifndef GGML_BASE_THREAD_GUARD_H
#define GGML_BASE_THREAD_GUARD_H

#include <pthread.h>
#include <stdbool.h>

// A call in progress; lives on the stack of the function that is called.
struct thread_guard {
    struct thread_guard *next;
    const void *object; // NULL: guards nothing
    const char *function;
    pthread_t thread;
};

// Begins a call of `function` on the object (NULL: of none). false, with GGML_HOST_BUSY and a
// message that names both functions, while another thread is inside a call on the same object;
// calls within calls of the same thread are fine. [any-thread]
bool thread_guard_enter(struct thread_guard *out_guard, const void *object, const char *function);
// Ends it; nothing if it did not begin. [any-thread]
void thread_guard_leave(struct thread_guard *guard);

// Both at once. [any-thread]
bool thread_guard_check(const void *object, const char *function);

// First statement of a function: guards the object until the function returns, or makes it return
// `failure` at once. THREAD_GUARD_VOID is for those that return nothing, THREAD_GUARD_END for those
// that end the object, whose address may be another's before they return.
#ifdef GGML_THREAD_CHECKS
#define THREAD_GUARD_NAME2(line) thread_guard_##line
#define THREAD_GUARD_NAME(line) THREAD_GUARD_NAME2(line)
#define THREAD_GUARD_AS(object, function, leave)                                                   \
    __attribute__((cleanup(thread_guard_leave))) struct thread_guard THREAD_GUARD_NAME(__LINE__);  \
    if (!thread_guard_enter(&THREAD_GUARD_NAME(__LINE__), object, function)) leave
#define THREAD_GUARD_END(object)                                                                   \
    if (!thread_guard_check(object, __func__)) return
#else
#define THREAD_GUARD_AS(object, function, leave) (void)0
#define THREAD_GUARD_END(object) (void)0
#endif
#define THREAD_GUARD(object, failure) THREAD_GUARD_AS(object, __func__, return failure)
#define THREAD_GUARD_VOID(object) THREAD_GUARD_AS(object, __func__, return )

#endif
