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
#include "base/turn.h"
#include "base/util.h"

enum {
    SPINS_BEFORE_YIELD = 256,
    SPINS_BEFORE_SLEEP = 1024,
    LONG_YIELD = 500000, // ns: more than another thread of the graph mostly computes at a time
    LEAST_ASLEEP = 16,   // waits that are sleeps after a long yield, twice as many after another
    MOST_ASLEEP = 1024,
    MOVE_INTERVAL = 5000000, // ns
    PIECE_BITS = 40,         // of the items taken, below the number of barriers
    PART_BITS = 32,          // of the items taken from the end of a part
    SPINS_PER_LOOK = 256,
    LONG_WAIT = 2000000, // ns that a guest waits for thread 0, then leaves it the processor
    GUESTS_LEAST = 2,    // part of the usual least number of items
    NEAR_LEAST = 16,     // the same, of pieces that follow what the thread computed before
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

// --- guests --------------------------------------------------------------------------------------

// Of the calling thread in the graph that it is a guest of.
static _Thread_local struct {
    uint32_t barriers; // passed
    bool is_busy;
    bool leaves;
    bool gives_way; // since its turn is over
    struct cpu_turn turn;
} guest;

static bool turn_is_over(void) {
    return cpu_turn_is_over(&guest.turn, cpu_clock_ns(), cpu_thread_time_ns());
}

bool cpu_guest_enter(struct cpu_team *team, int *out_place) {
    *out_place = atomic_load_explicit(&team->places[0], memory_order_relaxed) - 1;
    guest.barriers = 0;
    guest.is_busy = guest.leaves = false;
    const uint64_t now = cpu_clock_ns();
    if (!team->may_move || *out_place < 0 || *out_place != cpu_thread_processor() ||
        now - moved_last < MOVE_INTERVAL)
        return true;
    moved_last = now;
    return false;
}

void cpu_guest_begin(uint32_t barriers) {
    guest.barriers = barriers;
}

bool cpu_guest_leaves(const struct cpu_team *team, int ith) {
    return team->guests && ith > 0 && guest.leaves;
}

// To sleep leaves the processor to another program for a whole turn of that; to yield would give
// away what is left of this thread's own.
void cpu_guest_rest(void) {
    if (!guest.gives_way) {
        cpu_turn_resume(&guest.turn, cpu_clock_ns(), cpu_thread_time_ns());
        return;
    }
    guest.gives_way = false;
    cpu_thread_rest();
    cpu_turn_begin(&guest.turn, cpu_clock_ns(), cpu_thread_time_ns());
}

// The last one lets thread 0 go on.
static void stop_being_busy(struct cpu_team *team) {
    if (!guest.is_busy) return;
    guest.is_busy = false;
    if (atomic_fetch_sub(&team->busy.word, 1) == 1) cpu_signal_tell(&team->busy);
}

static uint64_t mark_of(uint32_t barriers) {
    return (uint64_t)barriers << PIECE_BITS;
}

// After the exchange nobody takes items of before; who did is counted as busy.
static void lead(struct cpu_team *team) {
    const uint32_t barriers = atomic_load_explicit(&team->generation.word, memory_order_relaxed);
    uint32_t busy;
    atomic_exchange(&team->pieces, mark_of(barriers + 1));
    while ((busy = atomic_load(&team->busy.word)) > 0)
        team->waited += cpu_signal_wait(&team->busy, busy);
    atomic_store_explicit(&team->generation.word, barriers + 1, memory_order_release);
    cpu_team_join(team, 0);
}

// A guest that is late passes at once. Thread 0 may be waiting for this guest's processor.
static void follow(struct cpu_team *team) {
    const uint32_t barrier = ++guest.barriers;
    uint64_t start = 0;
    stop_being_busy(team);
    for (int i = 0; !guest.leaves; i = (i + 1) % SPINS_PER_LOOK) {
        if (atomic_load_explicit(&team->generation.word, memory_order_acquire) >= barrier) return;
        cpu_thread_pause();
        if (i < SPINS_PER_LOOK - 1) continue;
        if (start == 0) start = cpu_clock_ns();
        guest.gives_way = turn_is_over() || guest.turn.seen - start > LONG_WAIT;
        guest.leaves = guest.gives_way || atomic_load(&team->is_over);
    }
}

void cpu_team_end(struct cpu_team *team) {
    if (!team->guests) return;
    atomic_store(&team->is_over, true);
    lead(team);
}

// --- barrier -------------------------------------------------------------------------------------

// A central barrier: the last to arrive resets the count before it lets the others go, so it can be
// used again at once. The count's acquire and release order all that was written before the barrier
// before all that is read after it.
void cpu_team_barrier(struct cpu_team *team, int ith) {
    if (team->n <= 1) return;
    if (team->guests) {
        if (ith == 0)
            lead(team);
        else
            follow(team);
        return;
    }
    const uint32_t generation = atomic_load_explicit(&team->generation.word, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&team->arrived, 1, memory_order_acq_rel) == team->n - 1) {
        atomic_store_explicit(&team->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&team->taken, 0, memory_order_relaxed);
        for (int i = 0; i < MIN(team->n, TEAM_PLACES); ++i)
            atomic_store_explicit(&team->parts[i], 0, memory_order_relaxed);
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

// Pieces become smaller and smaller: a guest leaves after one. False if other barriers were passed,
// or nothing is left.
static bool take_piece(struct cpu_team *team, uint32_t barriers, int64_t n, int64_t least,
                       struct cpu_range *range) {
    uint64_t taken = atomic_load(&team->pieces);
    int64_t begin, size;
    do {
        if (taken >> PIECE_BITS != mark_of(barriers) >> PIECE_BITS) return false;
        begin = (int64_t)(taken - mark_of(barriers));
        size = MIN(n - begin, MAX(least, (n - begin) / (4 * (int64_t)team->n)));
        if (size <= 0) return false;
    } while (!atomic_compare_exchange_weak(&team->pieces, &taken, taken + (uint64_t)size));
    *range = (struct cpu_range){begin, begin + size};
    return true;
}

// A guest is busy before it takes anything, so that whoever sees a piece taken sees that too. One
// that is late does without the clocks, which take longer than the way to the next barrier.
static bool take_as_guest(struct cpu_team *team, int64_t n, int64_t least,
                          struct cpu_range *range) {
    const bool is_late = atomic_load(&team->generation.word) != guest.barriers;
    if (!guest.leaves && !is_late) guest.leaves = guest.gives_way = turn_is_over();
    if (!guest.leaves && !is_late) {
        if (!guest.is_busy) atomic_fetch_add(&team->busy.word, 1);
        guest.is_busy = true;
        if (take_piece(team, guest.barriers, n, least, range)) return true;
    }
    stop_being_busy(team);
    return false;
}

static bool take_with_guests(const struct cpu_task *task, int64_t n, int64_t least,
                             struct cpu_range *range) {
    struct cpu_team *team = task->team;
    least = MAX(1, least / GUESTS_LEAST);
    range->begin = range->end;
    if (task->ith > 0) return take_as_guest(team, n, least, range);
    return take_piece(team, atomic_load_explicit(&team->generation.word, memory_order_relaxed), n,
                      least, range);
}

// What is taken orders nothing: barriers do.
bool cpu_task_take(const struct cpu_task *task, int64_t n, int64_t least, struct cpu_range *range) {
    int64_t begin = range->end, size = n - begin;
    if (task->guests) return take_with_guests(task, n, least, range);
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

// Takes some of the n items of a part: the thread whose part it is from the beginning, three
// quarters and then half of what is left, others half of it from the end. They never meet.
static bool take_of_part(_Atomic uint64_t *taken, int64_t n, int64_t least, bool is_own,
                         struct cpu_range *out) {
    uint64_t before = atomic_load_explicit(taken, memory_order_relaxed), size;
    int64_t first, last, left;
    do {
        first = (int64_t)(before >> PART_BITS);
        last = (int64_t)(before & (((uint64_t)1 << PART_BITS) - 1));
        left = n - first - last;
        if (left <= 0) return false;
        size = (uint64_t)MIN(left, MAX(least, is_own && first == 0 ? n * 3 / 4 : left / 2));
    } while (!atomic_compare_exchange_weak_explicit(taken, &before,
                                                    before + (is_own ? size << PART_BITS : size),
                                                    memory_order_relaxed, memory_order_relaxed));
    out->begin = is_own ? first : n - last - (int64_t)size;
    out->end = out->begin + (int64_t)size;
    return true;
}

bool cpu_task_take_near(const struct cpu_task *task, int64_t n, int64_t least,
                        struct cpu_piece *piece) {
    if (task->guests || task->nth == 1) {
        const bool taken = cpu_task_take(task, n, least, &piece->items);
        piece->part = piece->items;
        return taken;
    }
    const int n_parts = MIN(task->nth, TEAM_PLACES);
    for (int i = 0; i < n_parts; ++i) {
        const int at = (task->ith + i) % n_parts;
        const struct cpu_range part = {n * at / n_parts, n * (at + 1) / n_parts};
        if (!take_of_part(&task->team->parts[at], part.end - part.begin, MAX(1, least / NEAR_LEAST),
                          at == task->ith, &piece->items))
            continue;
        piece->part = part;
        piece->items.begin += part.begin;
        piece->items.end += part.begin;
        return true;
    }
    return false;
}
