// SPDX-License-Identifier: MIT
// Work that threads take as they come, from all items or from their own part of them first: each
// item once, and none left to a thread that is held up.
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "base/kernel.h"
#include "base/threadpool.h"

enum { N_THREADS = 4, MOST = 1000, ROUNDS = 10 };

// What all threads of a test share.
struct shared {
    struct cpu_team team;
    int64_t n, least;
    _Atomic int times[MOST]; // that each item was taken
    _Atomic int64_t n_taken;
    _Atomic int64_t smallest; // piece but the last one
    bool first_is_held;       // thread 0 takes nothing before all is taken
    bool near;                // from parts
    _Atomic int strange;      // pieces that are not where they should be
};

struct thread {
    struct shared *shared;
    int ith;
};

// Items of a part are taken in order, or from its end.
static bool take(struct shared *s, const struct cpu_task *task, struct cpu_piece *piece) {
    const struct cpu_piece before = *piece;
    if (!s->near) return cpu_task_take(task, s->n, s->least, &piece->items);
    if (!cpu_task_take_near(task, s->n, s->least, piece)) return false;
    const bool is_inside =
        piece->part.begin <= piece->items.begin && piece->items.end <= piece->part.end;
    const bool is_own = piece->part.begin == s->n * task->ith / task->nth;
    const bool follows =
        piece->items.begin == piece->part.begin || before.items.end == piece->items.begin;
    if (!is_inside || (is_own && !follows)) atomic_fetch_add(&s->strange, 1);
    return true;
}

static void take_all(struct shared *s, int ith) {
    const struct cpu_task task = {.ith = ith, .nth = s->team.n, .team = &s->team};
    struct cpu_piece piece = {0};
    const struct cpu_range *range = &piece.items;
    while (s->first_is_held && ith == 0 && atomic_load(&s->n_taken) < s->n)
        sched_yield();
    while (take(s, &task, &piece)) {
        const int64_t size = range->end - range->begin;
        int64_t smallest = atomic_load(&s->smallest);
        while (range->end < s->n && size < smallest &&
               !atomic_compare_exchange_weak(&s->smallest, &smallest, size)) {
        }
        for (int64_t i = range->begin; i < range->end; ++i)
            atomic_fetch_add(&s->times[i], 1);
        atomic_fetch_add(&s->n_taken, size);
    }
}

// Rounds follow each other as nodes of a graph do: a barrier between them.
static void *run_thread(void *argument) {
    const struct thread *thread = argument;
    for (int round = 0; round < ROUNDS; ++round) {
        take_all(thread->shared, thread->ith);
        cpu_team_barrier(&thread->shared->team, thread->ith);
        if (thread->ith == 0) atomic_store(&thread->shared->n_taken, 0);
        cpu_team_barrier(&thread->shared->team, thread->ith);
    }
    return NULL;
}

static void run(struct shared *s, bool near, int n_threads, int64_t n, int64_t least,
                bool first_is_held) {
    struct thread threads[N_THREADS];
    pthread_t handles[N_THREADS];
    memset(s, 0, sizeof(*s));
    s->team.n = n_threads;
    s->n = n;
    s->least = least;
    s->first_is_held = first_is_held;
    s->near = near;
    atomic_store(&s->smallest, n);
    for (int i = 0; i < n_threads; ++i) {
        threads[i] = (struct thread){s, i};
        assert_int_equal(pthread_create(&handles[i], NULL, run_thread, &threads[i]), 0);
    }
    for (int i = 0; i < n_threads; ++i)
        pthread_join(handles[i], NULL);
    for (int64_t i = 0; i < n; ++i)
        assert_int_equal(atomic_load(&s->times[i]), ROUNDS);
    assert_int_equal(atomic_load(&s->strange), 0);
    // Few items are left for every thread, so pieces may have less; so may the last of each part.
    if (!near && n >= least * n_threads) assert_true(atomic_load(&s->smallest) >= least);
}

static void test_each_item_once(void **state) {
    static struct shared shared;
    (void)state;
    for (int n_threads = 1; n_threads <= N_THREADS; ++n_threads) {
        for (int64_t n = 0; n <= MOST; n = 3 * n + 1) {
            for (int near = 0; near < 2; ++near) {
                run(&shared, near, n_threads, n, 0, false);
                run(&shared, near, n_threads, n, 1, false);
                run(&shared, near, n_threads, n, 7, false);
                run(&shared, near, n_threads, n, 100, false);
            }
        }
    }
}

// With shares that are fixed it would wait for itself: the test's time runs out.
static void test_a_thread_that_is_held_up_leaves_nothing(void **state) {
    static struct shared shared;
    (void)state;
    for (int near = 0; near < 2; ++near) {
        run(&shared, near, N_THREADS, MOST, 1, true);
        run(&shared, near, 2, MOST, 16, true);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_item_once),
        cmocka_unit_test(test_a_thread_that_is_held_up_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
