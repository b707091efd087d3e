// SPDX-License-Identifier: MIT
// Threads that take turns at an object.
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/object_turn.h"

#ifdef __linux__
#include <sys/wait.h>
#include <unistd.h>
#endif

enum { N_THREADS = 4, N_ROUNDS = 20000 };

static int objects[2];
static long count[2]; // changed within turns alone

static void *add(void *argument) {
    const int which = (int)(intptr_t)argument;
    for (int i = 0; i < N_ROUNDS; ++i) {
        struct object_turn outer, inner;
        object_turn_begin(&outer, &objects[which]);
        object_turn_begin(&inner, &objects[which]);
        ++count[which];
        object_turn_end(&inner);
        object_turn_end(&outer);
    }
    return NULL;
}

static void test_one_thread_at_a_time(void **state) {
    (void)state;
    pthread_t threads[N_THREADS];
    for (int i = 0; i < N_THREADS; ++i)
        assert_int_equal(pthread_create(&threads[i], NULL, add, (void *)(intptr_t)(i % 2)), 0);
    for (int i = 0; i < N_THREADS; ++i)
        pthread_join(threads[i], NULL);
    assert_int_equal(count[0], N_THREADS / 2 * N_ROUNDS);
    assert_int_equal(count[1], N_THREADS / 2 * N_ROUNDS);
}

static void test_objects_are_independent(void **state) {
    (void)state;
    struct object_turn turn;
    pthread_t thread;
    count[1] = 0;
    object_turn_begin(&turn, &objects[0]);
    assert_int_equal(pthread_create(&thread, NULL, add, (void *)(intptr_t)1), 0);
    pthread_join(thread, NULL); // ends, though this thread's turn at the other object doesn't
    object_turn_end(&turn);
    assert_int_equal(count[1], N_ROUNDS);
}

#ifdef __linux__
static atomic_bool is_inside, may_leave;

static void *stay(void *argument) {
    struct object_turn turn;
    object_turn_begin(&turn, argument);
    atomic_store(&is_inside, true);
    while (!atomic_load(&may_leave))
        sched_yield();
    object_turn_end(&turn);
    return NULL;
}

static void test_a_child_does_not_wait_for_threads_of_its_parent(void **state) {
    (void)state;
    struct object_turn mine;
    pthread_t thread;
    int status = -1;
    assert_int_equal(pthread_create(&thread, NULL, stay, &objects[0]), 0);
    while (!atomic_load(&is_inside))
        sched_yield();
    object_turn_begin(&mine, &objects[1]);
    const pid_t child = fork();
    if (child == 0) {
        struct object_turn turn;
        alarm(20);
        object_turn_begin(&turn, &objects[0]);
        object_turn_end(&turn);
        object_turn_end(&mine);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    object_turn_end(&mine);
    atomic_store(&may_leave, true);
    pthread_join(thread, NULL);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_thread_at_a_time),
        cmocka_unit_test(test_objects_are_independent),
#ifdef __linux__
        cmocka_unit_test(test_a_child_does_not_wait_for_threads_of_its_parent),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
