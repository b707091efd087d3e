// SPDX-License-Identifier: MIT
// How many threads a pool computes with where other programs want the processors: on machines that
// are told, so that times are the same in every run.
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include "base/crowd.h"

enum { WORK = 16000, KIND = 7 };

// Graphs of which arithmetic limits so much of WORK; the rest is reading memory, which two threads
// do as fast as all. The last `held` of the processors run another program half of the time.
struct machine {
    int processors, held;
    int64_t arithmetic;
};

// Threads without a processor of their own hold up all others for as long as they compute.
static void graph(const struct machine *m, int n, int64_t *ns, int64_t *waited) {
    const int64_t reading = (WORK - m->arithmetic) / (n < 2 ? 1 : 2);
    const int64_t alone = m->arithmetic / n + reading;
    const int free = m->processors - m->held;
    *waited = n > free && n > 1 ? alone : 0;
    *ns = alone + *waited;
}

// Of n_graphs those that some threads were left out of, and the time of all.
static int run(struct cpu_crowd *crowd, const struct machine *m, uint64_t kind, int n_graphs,
               int64_t *total) {
    int fewer = 0;
    *total = 0;
    for (int i = 0; i < n_graphs; ++i) {
        int64_t ns, waited;
        const int n = cpu_crowd_threads(crowd, kind, m->processors);
        assert_in_range(n, 1, m->processors);
        graph(m, n, &ns, &waited);
        cpu_crowd_note(crowd, m->processors, ns, waited);
        fewer += n < m->processors;
        *total += ns;
    }
    return fewer;
}

static int64_t time_of(const struct machine *m, int n) {
    int64_t ns, waited;
    graph(m, n, &ns, &waited);
    return ns;
}

static void test_nobody_else(void **state) {
    struct cpu_crowd crowd = {0};
    const struct machine m = {.processors = 8, .arithmetic = WORK};
    int64_t total;
    (void)state;
    assert_int_equal(run(&crowd, &m, KIND, 1000, &total), 0);
}

// Within a few percent of the best number of threads, or of the best that leaves out a power of
// two.
static void test_busy_processor(void **state) {
    const struct machine machines[] = {
        {.processors = 8, .held = 1, .arithmetic = WORK},
        {.processors = 8, .held = 4, .arithmetic = WORK / 2},
        {.processors = 9, .held = 1, .arithmetic = WORK / 2},
        {.processors = 2, .held = 1, .arithmetic = WORK / 8},
        {.processors = 4, .held = 4, .arithmetic = 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); ++i) {
        const struct machine *m = &machines[i];
        struct cpu_crowd crowd = {0};
        int64_t total, best = time_of(m, 1);
        for (int n = 2; n <= m->processors; ++n)
            best = time_of(m, n) < best ? time_of(m, n) : best;
        run(&crowd, m, KIND, 64, &total); // finds out
        run(&crowd, m, KIND, 2000, &total);
        assert_in_range(total, 2000 * best, 2000 * best * 21 / 20);
    }
}

// When the other program ends, all threads compute again, soon after a short time beside it.
static void test_program_ends(void **state) {
    struct cpu_crowd crowd = {0};
    struct machine m = {.processors = 8, .held = 1, .arithmetic = WORK};
    int64_t total;
    (void)state;
    assert_in_range(run(&crowd, &m, KIND, 64, &total), 32, 64);
    m.held = 0;
    assert_in_range(run(&crowd, &m, KIND, 64, &total), 0, 48);
    assert_int_equal(run(&crowd, &m, KIND, 1000, &total), 0);
}

// A graph with arithmetic alone on two processors is not faster on one: less than one graph in a
// hundred is a trial later on.
static void test_trials_become_rare(void **state) {
    struct cpu_crowd crowd = {0};
    const struct machine m = {.processors = 2, .held = 1, .arithmetic = WORK};
    int64_t total;
    (void)state;
    run(&crowd, &m, KIND, 4000, &total);
    assert_in_range(run(&crowd, &m, KIND, 4000, &total), 4, 40);
}

// What was found out for tokens is not used for prompts.
static void test_other_kind(void **state) {
    struct cpu_crowd crowd = {0};
    const struct machine m = {.processors = 8, .held = 1, .arithmetic = WORK};
    int64_t total;
    (void)state;
    run(&crowd, &m, KIND, 64, &total);
    assert_int_equal(cpu_crowd_threads(&crowd, KIND, 8), 7);
    assert_int_equal(cpu_crowd_threads(&crowd, KIND + 1, 8), 8);
}

// A later graph may ask for fewer threads than are left out.
static void test_fewer_threads(void **state) {
    struct cpu_crowd crowd = {0};
    const struct machine m = {.processors = 8, .held = 7, .arithmetic = 0};
    int64_t total;
    (void)state;
    run(&crowd, &m, KIND, 64, &total);
    for (int n = 8; n >= 1; --n)
        assert_in_range(cpu_crowd_threads(&crowd, KIND, n), 1, n);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_else),  cmocka_unit_test(test_busy_processor),
        cmocka_unit_test(test_program_ends), cmocka_unit_test(test_trials_become_rare),
        cmocka_unit_test(test_other_kind),   cmocka_unit_test(test_fewer_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
