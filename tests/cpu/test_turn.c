// SPDX-License-Identifier: MIT
// When the system takes the processor away from a thread, told by a machine that gives it to the
// thread and to another program in turns.
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <stdbool.h>

#include "base/turn.h"

enum { MS = 1000000, PIECE = 100000, REST = 50000 };

// The thread runs for `turn`, then the other program for as long, and so on; 0: nobody else is
// there.
struct machine {
    uint64_t now, ran; // clocks
    uint64_t turn, left;
};

struct counts {
    int pieces, cut, rests;
};

// Whether the processor was taken away meanwhile.
static bool work(struct machine *m, uint64_t ns) {
    m->now += ns;
    m->ran += ns;
    if (m->turn == 0) return false;
    if (ns < m->left) {
        m->left -= ns;
        return false;
    }
    m->now += m->turn;
    m->left = m->turn - (ns - m->left);
    return true;
}

// The other program has a whole turn then.
static void rest(struct machine *m) {
    m->now += m->turn > 0 ? m->turn : REST;
    m->left = m->turn;
}

static struct counts run(struct cpu_turn *turn, struct machine *m, int n_pieces) {
    struct counts counts = {0};
    while (counts.pieces < n_pieces) {
        if (cpu_turn_is_over(turn, m->now, m->ran)) {
            rest(m);
            cpu_turn_begin(turn, m->now, m->ran);
            ++counts.rests;
            continue;
        }
        counts.cut += work(m, PIECE);
        ++counts.pieces;
    }
    return counts;
}

static struct machine start(struct cpu_turn *turn, uint64_t length) {
    *turn = (struct cpu_turn){0};
    const struct machine m = {.now = 5 * MS, .ran = MS, .turn = length, .left = length};
    cpu_turn_resume(turn, m.now, m.ran);
    return m;
}

static void test_nobody_else(void **state) {
    struct cpu_turn turn;
    struct machine m = start(&turn, 0);
    (void)state;
    const struct counts counts = run(&turn, &m, 10000);
    assert_int_equal(counts.rests, 0);
}

// Few turns are cut short in the midst of a piece, and most of each is used.
static void test_turns_are_learnt(void **state) {
    (void)state;
    for (uint64_t length = 2 * MS; length <= 8 * MS; length += MS / 2) {
        struct cpu_turn turn;
        struct machine m = start(&turn, length);
        run(&turn, &m, 1000);
        const uint64_t before = m.now;
        const struct counts counts = run(&turn, &m, 20000);
        const uint64_t used = (uint64_t)counts.pieces * PIECE * 2; // of both programs' time
        assert_in_range(counts.cut, 0, (counts.rests + counts.cut) / 8);
        assert_in_range(used, (m.now - before) * 17 / 20, m.now - before);
    }
}

// Longer and shorter turns are learnt as well, and what was learnt costs nearly nothing when the
// other program has gone.
static void test_turns_change(void **state) {
    static const uint64_t lengths[] = {4 * MS, 2 * MS, 3 * MS, 8 * MS, 4 * MS};
    struct cpu_turn turn;
    struct machine m = start(&turn, lengths[0]);
    (void)state;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); ++i) {
        m.turn = m.left = lengths[i];
        run(&turn, &m, 20000);
        const struct counts counts = run(&turn, &m, 10000);
        assert_in_range(counts.cut, 0, (counts.rests + counts.cut) / 8);
    }
    m.turn = 0;
    const uint64_t before = m.now;
    const struct counts counts = run(&turn, &m, 10000);
    assert_in_range(m.now - before, 0, (uint64_t)counts.pieces * PIECE * 51 / 50);
}

// Something short takes the processor soon after a turn began: turns are not thought short for
// long.
static void test_short_interruption(void **state) {
    struct cpu_turn turn;
    struct machine m = start(&turn, 4 * MS);
    (void)state;
    run(&turn, &m, 5000);
    m.now += MS;
    run(&turn, &m, 500);
    const uint64_t before = m.now;
    const struct counts counts = run(&turn, &m, 5000);
    assert_in_range((uint64_t)counts.pieces * PIECE * 2, (m.now - before) * 17 / 20,
                    m.now - before);
}

// A thread that waits for work in the midst of its turn has less of it left; one that slept has a
// whole one.
static void test_waiting(void **state) {
    struct cpu_turn turn;
    struct machine m = start(&turn, 4 * MS);
    (void)state;
    run(&turn, &m, 5000);
    rest(&m);
    cpu_turn_begin(&turn, m.now, m.ran);
    const uint64_t began = turn.began;
    m.now += MS;
    m.ran += MS;
    cpu_turn_resume(&turn, m.now, m.ran);
    assert_true(turn.began == began);
    const uint64_t length = turn.length;
    m.now += 50 * (uint64_t)MS;
    cpu_turn_resume(&turn, m.now, m.ran);
    assert_true(turn.began == m.ran);
    assert_true(turn.length == length);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_else),  cmocka_unit_test(test_turns_are_learnt),
        cmocka_unit_test(test_turns_change), cmocka_unit_test(test_short_interruption),
        cmocka_unit_test(test_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
