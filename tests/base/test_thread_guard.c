// SPDX-License-Identifier: MIT
// Finding objects that two threads use at once.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"
#include "base/thread_guard.h"

static int objects[2];

static void *enter_first(void *out_entered) {
    struct thread_guard guard;
    bool *entered = out_entered;
    ggml_clear_error();
    entered[0] = thread_guard_enter(&guard, &objects[0], "second_call");
    thread_guard_leave(&guard);
    entered[1] = ggml_last_status() == GGML_HOST_BUSY && strstr(ggml_last_error(), "second_call") &&
                 strstr(ggml_last_error(), "first_call");
    entered[2] = thread_guard_check(&objects[1], "other_object");
    return NULL;
}

static void run_elsewhere(bool entered[3]) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, enter_first, entered), 0);
    pthread_join(thread, NULL);
}

static void test_a_second_thread_is_refused_while_the_first_is_inside(void **state) {
    (void)state;
    struct thread_guard outer, inner;
    bool entered[3];
    assert_true(thread_guard_enter(&outer, &objects[0], "first_call"));
    assert_true(thread_guard_enter(&inner, &objects[0], "nested_call"));
    thread_guard_leave(&inner);
    run_elsewhere(entered);
    assert_false(entered[0]);
    assert_true(entered[1]); // the message names both
    assert_true(entered[2]);
    thread_guard_leave(&outer);
    run_elsewhere(entered);
    assert_true(entered[0]);
    assert_true(thread_guard_check(NULL, "no_object"));
}

enum { N_THREADS = 8, N_ROUNDS = 2000 };
static atomic_int n_inside, n_entered, n_overlaps;

static void *hammer(void *argument) {
    (void)argument;
    for (int i = 0; i < N_ROUNDS; ++i) {
        struct thread_guard guard;
        if (!thread_guard_enter(&guard, &objects[0], "hammer")) continue;
        if (atomic_fetch_add(&n_inside, 1) != 0) atomic_fetch_add(&n_overlaps, 1);
        atomic_fetch_add(&n_entered, 1);
        atomic_fetch_sub(&n_inside, 1);
        thread_guard_leave(&guard);
    }
    return NULL;
}

static void test_never_two_inside(void **state) {
    (void)state;
    pthread_t threads[N_THREADS];
    for (int i = 0; i < N_THREADS; ++i)
        assert_int_equal(pthread_create(&threads[i], NULL, hammer, NULL), 0);
    for (int i = 0; i < N_THREADS; ++i)
        pthread_join(threads[i], NULL);
    assert_true(atomic_load(&n_entered) > 0);
    assert_int_equal(atomic_load(&n_overlaps), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_second_thread_is_refused_while_the_first_is_inside),
        cmocka_unit_test(test_never_two_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
