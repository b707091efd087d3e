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
struct cpu_team {
    int n;
    bool may_move; // off processors that several of the first TEAM_PLACES threads run on
    struct cpu_signal generation; // changes when all have arrived
    _Atomic int arrived;
    _Atomic int64_t taken;           // items since the last barrier
    int64_t waited;                  // nanoseconds that thread 0 waited for others
    _Atomic int places[TEAM_PLACES]; // processors, from 1, when threads began, or last had to wait
};

// Each thread calls it before its share. [stream]
void cpu_team_join(struct cpu_team *team, int ith);

#endif
