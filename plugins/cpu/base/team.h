// SPDX-License-Identifier: MIT
// The threads of one graph: how they wait for each other and share work out, also where other
// programs want the same processors.
#ifndef CPU_TEAM_H
#define CPU_TEAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

// A word that threads wait for, and how many of them sleep until it changes.
struct cpu_signal {
    _Atomic uint32_t word;
    _Atomic int sleepers;
};

// Waits while the word is `value`: spins, then lets others run, then sleeps. Returns the
// nanoseconds that it took; 0 for a moment. [any-thread]
int64_t cpu_signal_wait(struct cpu_signal *signal, uint32_t value);
// Wakes all that sleep, after the word was changed. [any-thread]
void cpu_signal_tell(struct cpu_signal *signal);

enum { TEAM_PLACES = 64 };

// Zero-initialised but for n is ready.
//
// Where `guests` is set, thread 0 waits at a barrier only for threads that compute a piece which
// they took; the others are guests, who come and go. A guest goes through the same barriers, behind
// thread 0 or at most up to it, takes what is left, and leaves before the system takes its
// processor away. What it reads outside of pieces must not change while the graph is computed.
struct cpu_team {
    int n;
    bool may_move; // off processors that several of the first TEAM_PLACES threads run on
    bool guests;
    struct cpu_signal generation; // changes when all have arrived
    _Atomic int arrived;
    _Atomic int64_t taken; // items since the last barrier
    // Of a thread's own items since the last barrier: taken from the beginning, and below those
    // (PART_BITS) taken from the end.
    _Atomic uint64_t parts[TEAM_PLACES];
    _Atomic uint64_t pieces;         // with guests: barriers until now, and items since the last
    struct cpu_signal busy;          // guests that compute a piece
    _Atomic bool is_over;            // guests leave
    int64_t waited;                  // nanoseconds that thread 0 waited for others
    _Atomic int places[TEAM_PLACES]; // processors, from 1, when threads began, or last had to wait
};

// Each thread calls it before its share. [stream]
void cpu_team_join(struct cpu_team *team, int ith);

// --- guests --------------------------------------------------------------------------------------

// A guest enters. False: it is on the processor of thread 0, *out_place, which it moves off first.
// [stream]
bool cpu_guest_enter(struct cpu_team *team, int *out_place);
// It begins where so many barriers were passed, as team->generation says: 0 unless this is called.
// [stream]
void cpu_guest_begin(uint32_t barriers);
// Whether the calling thread, if it is a guest, has to leave: it takes nothing more and waits at no
// barrier. [stream]
bool cpu_guest_leaves(const struct cpu_team *team, int ith);
// Outside of a graph: if the thread's turn of its processor is over, lets others run. [stream]
void cpu_guest_rest(void);
// Thread 0 ends the graph: no guest computes anything afterwards. [stream]
void cpu_team_end(struct cpu_team *team);

#endif
