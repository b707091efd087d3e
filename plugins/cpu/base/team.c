// SPDX-License-Identifier: MIT
// The usual wait is shorter than what a system call takes. A long one is for a thread that the
// system does not run. Letting others run helps if that one wants the same processor; if a program
// of someone else does, a thread that yields gives it a whole time slice of some milliseconds. So
// where a yield took that long, waits are sleeps for a while: the system knows then that the thread
// is owed time, and runs it soon after it was woken. So are long waits: a real-time thread would
// keep the one that it waits for from running.
#include "base/team.h"

#include <sched.h>

#include "base/kernel.h"
#include "base/platform.h"
#include "base/util.h"

enum {
    SPINS_BEFORE_YIELD = 256,
    SPINS_BEFORE_SLEEP = 1024,
    LONG_YIELD = 500000, // ns: more than another thread of the graph mostly computes at a time
    LEAST_ASLEEP = 16,   // waits that are sleeps after a long yield, twice as many after another
    MOST_ASLEEP = 1024,
    MOVE_INTERVAL = 5000000, // ns
};

static _Thread_local int waits_asleep;    // from now on
static _Thread_local int next_asleep;     // after the next long yield
static _Thread_local uint64_t moved_last; // clock

static void sleep_on(struct cpu_signal *signal, uint32_t value) {
    atomic_fetch_add(&signal->sleepers, 1);
    cpu_thread_sleep(&signal->word, value);
    atomic_fetch_sub(&signal->sleepers, 1);
}

// Lets others run; the clock afterwards.
static uint64_t yield(uint64_t now) {
    sched_yield();
    const uint64_t then = cpu_clock_ns();
    if (then - now <= LONG_YIELD) return then;
    waits_asleep = MAX(next_asleep, LEAST_ASLEEP);
    next_asleep = MIN(2 * waits_asleep, MOST_ASLEEP);
    return then;
}

static bool is_over(struct cpu_signal *signal, uint32_t value) {
    return atomic_load_explicit(&signal->word, memory_order_acquire) != value;
}

int64_t cpu_signal_wait(struct cpu_signal *signal, uint32_t value) {
    for (int i = 0; i < SPINS_BEFORE_YIELD; ++i) {
        if (is_over(signal, value)) return 0;
        cpu_thread_pause();
    }
    const uint64_t start = cpu_clock_ns();
    uint64_t now = start;
    const bool yields = waits_asleep == 0;
    for (int spins = SPINS_BEFORE_YIELD; !is_over(signal, value); ++spins) {
        if (yields && waits_asleep == 0 && spins < SPINS_BEFORE_SLEEP)
            now = yield(now);
        else
            sleep_on(signal, value);
    }
    if (!yields)
        --waits_asleep;
    else if (waits_asleep == 0)
        next_asleep = 0;
    return (int64_t)(cpu_clock_ns() - start) + 1;
}

// The load may come before the store that changed the word: who is about to sleep then is missed,
// and wakes by itself. To order them would cost each barrier a tenth of a microsecond.
void cpu_signal_tell(struct cpu_signal *signal) {
    if (atomic_load_explicit(&signal->sleepers, memory_order_relaxed) > 0)
        cpu_thread_wake(&signal->word);
}

// --- places --------------------------------------------------------------------------------------

void cpu_team_join(struct cpu_team *team, int ith) {
    if (!team->may_move || ith >= TEAM_PLACES) return;
    atomic_store_explicit(&team->places[ith], cpu_thread_processor() + 1, memory_order_relaxed);
}

// Systems leave two threads of a graph on one processor where a program of someone else has the
// other to itself: to them that is even. A thread that waited moves off all that others of the team
// are on, if there are more, and may run everywhere again. Thread 0 is the application's and stays.
static void move_apart(struct cpu_team *team, int ith) {
    int others[TEAM_PLACES], n = 0;
    bool is_shared = false;
    cpu_team_join(team, ith);
    if (!team->may_move || ith == 0 || ith >= TEAM_PLACES) return;
    const int mine = atomic_load_explicit(&team->places[ith], memory_order_relaxed) - 1;
    for (int i = 0; i < MIN(team->n, TEAM_PLACES); ++i) {
        const int place = atomic_load_explicit(&team->places[i], memory_order_relaxed) - 1;
        if (i == ith || place < 0) continue;
        is_shared |= place == mine;
        others[n++] = place;
    }
    const uint64_t now = cpu_clock_ns();
    if (!is_shared || now - moved_last < MOVE_INTERVAL) return;
    moved_last = now;
    cpu_thread_move_off(others, n);
}

// A central barrier: the last to arrive resets the count before it lets the others go, so it can be
// used again at once. The count's acquire and release order all that was written before the barrier
// before all that is read after it.
void cpu_team_barrier(struct cpu_team *team, int ith) {
    if (team->n <= 1) return;
    const uint32_t generation = atomic_load_explicit(&team->generation.word, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&team->arrived, 1, memory_order_acq_rel) == team->n - 1) {
        atomic_store_explicit(&team->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&team->taken, 0, memory_order_relaxed);
        atomic_store_explicit(&team->generation.word, generation + 1, memory_order_release);
        cpu_signal_tell(&team->generation);
        return;
    }
    const int64_t waited = cpu_signal_wait(&team->generation, generation);
    if (waited == 0) return;
    if (ith == 0) team->waited += waited;
    move_apart(team, ith);
}

// --- shares --------------------------------------------------------------------------------------

// What is left of n items, of which `begin` are taken: even parts of the first three quarters, then
// smaller and smaller pieces.
static int64_t next_size(int64_t n, int64_t begin, int64_t least, int nth) {
    const int64_t even = n * 3 / 4 / nth;
    const int64_t size = begin < even * nth ? even : (n - begin) / (2 * nth);
    return MIN(n - begin, MAX(least, size));
}

// What is taken orders nothing: barriers do.
bool cpu_task_take(const struct cpu_task *task, int64_t n, int64_t least, struct cpu_range *range) {
    int64_t begin = range->end, size = n - begin;
    if (task->nth > 1) {
        _Atomic int64_t *taken = &task->team->taken;
        least = MAX(1, MIN(least, (n + task->nth - 1) / task->nth));
        begin = atomic_load_explicit(taken, memory_order_relaxed);
        do
            size = next_size(n, begin, least, task->nth);
        while (size > 0 &&
               !atomic_compare_exchange_weak_explicit(taken, &begin, begin + size,
                                                      memory_order_relaxed, memory_order_relaxed));
    }
    *range = (struct cpu_range){begin, begin + size};
    return size > 0;
}
