// SPDX-License-Identifier: MIT
// How a pool computes where other programs want the processors: on machines that are told, so that
// times are the same in every run.
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include "base/crowd.h"
#include "base/util.h"

enum { WORK = 16000, KIND = 7 };

// Graphs of which arithmetic limits so much of WORK; the rest is reading memory, which two threads
// do as fast as all. The last `held` of the processors run another program half of the time.
struct machine {
    int processors, held;
    int64_t arithmetic;
    int64_t of_all; // arithmetic that only all threads share out, and none to guests
};

// Threads without a processor of their own hold up all others for as long as they compute. Guests
// give four tenths of a processor, if thread 0 has one of its own.
static void graph(const struct machine *m, struct cpu_way way, int64_t *ns, int64_t *waited) {
    const int n = m->processors - way.less, free = m->processors - m->held;
    const int64_t reading = (WORK - m->arithmetic) / (n < 2 ? 1 : 2);
    const int64_t alone = m->arithmetic / n + reading;
    *waited = n > free && n > 1 ? alone : 0;
    *ns = alone + *waited;
    if (!way.guests || free == 0) return;
    const int64_t shared = m->arithmetic - m->of_all;
    *ns = m->of_all + shared * 10 / (10 * MIN(n, free) + 4 * MAX(0, n - free)) + reading;
    *waited = 0;
}

// Of n_graphs those that were not computed by all threads, and the time of all graphs.
static int run(struct cpu_crowd *crowd, const struct machine *m, uint64_t kind, int n_graphs,
               int64_t *total) {
    int fewer = 0;
    *total = 0;
    for (int i = 0; i < n_graphs; ++i) {
        int64_t ns, waited;
        const struct cpu_way way = cpu_crowd_way(crowd, kind, m->processors);
        assert_in_range(way.less, 0, m->processors - 1);
        graph(m, way, &ns, &waited);
        cpu_crowd_note(crowd, m->processors, ns, waited);
        fewer += way.guests || way.less > 0;
        *total += ns;
    }
    return fewer;
}

static int64_t time_of(const struct machine *m, struct cpu_way way) {
    int64_t ns, waited;
    graph(m, way, &ns, &waited);
    return ns;
}

// Of the best way.
static int64_t best_time(const struct machine *m) {
    int64_t best = time_of(m, (struct cpu_way){.guests = true});
    for (int less = 0; less < m->processors; ++less)
        best = MIN(best, time_of(m, (struct cpu_way){.less = less}));
    return best;
}

static void test_nobody_else(void **state) {
    struct cpu_crowd crowd = {0};
    const struct machine m = {.processors = 8, .arithmetic = WORK};
    int64_t total;
    (void)state;
    assert_int_equal(run(&crowd, &m, KIND, 1000, &total), 0);
}

// Within a few percent of the best way, or of the best that leaves out a power of two.
static void test_busy_processor(void **state) {
    const struct machine machines[] = {
        {.processors = 8, .held = 1, .arithmetic = WORK},
        {.processors = 8, .held = 1, .arithmetic = WORK, .of_all = WORK / 16},
        {.processors = 8, .held = 1, .arithmetic = WORK, .of_all = WORK / 4},
        {.processors = 2, .held = 1, .arithmetic = WORK},
        {.processors = 2, .held = 1, .arithmetic = WORK, .of_all = WORK / 8},
        {.processors = 8, .held = 4, .arithmetic = WORK / 2},
        {.processors = 9, .held = 1, .arithmetic = WORK / 2},
        {.processors = 2, .held = 1, .arithmetic = WORK / 8},
        {.processors = 4, .held = 4, .arithmetic = 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); ++i) {
        const struct machine *m = &machines[i];
        struct cpu_crowd crowd = {0};
        const int64_t best = best_time(m);
        int64_t total;
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

// Where no other way is faster than two threads, less than one graph in a hundred is a trial later
// on.
static void test_trials_become_rare(void **state) {
    struct cpu_crowd crowd = {0};
    const struct machine m = {.processors = 2, .held = 1, .arithmetic = WORK, .of_all = WORK};
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
    assert_true(cpu_crowd_way(&crowd, KIND, 8).guests);
    assert_false(cpu_crowd_way(&crowd, KIND + 1, 8).guests);
}

// A later graph may ask for fewer threads than are left out.
static void test_fewer_threads(void **state) {
    struct cpu_crowd crowd = {0};
    const struct machine m = {
        .processors = 8, .held = 4, .arithmetic = WORK / 2, .of_all = WORK / 2};
    int64_t total;
    (void)state;
    run(&crowd, &m, KIND, 64, &total);
    assert_int_equal(cpu_crowd_way(&crowd, KIND, 8).less, 4);
    for (int n = 8; n >= 1; --n)
        assert_in_range(cpu_crowd_way(&crowd, KIND, n).less, 0, n - 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_else),  cmocka_unit_test(test_busy_processor),
        cmocka_unit_test(test_program_ends), cmocka_unit_test(test_trials_become_rare),
        cmocka_unit_test(test_other_kind),   cmocka_unit_test(test_fewer_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
