// SPDX-License-Identifier: MIT
// In which way a pool computes graphs. Where another program has a processor, a graph is held up at
// each barrier until the thread there has its turn. So where thread 0 waits for others during much
// of several graphs alike, other ways are tried, and the fastest is kept for as long as it is:
// all but thread 0 as guests, who come and go (team.h), or fewer threads, since single tokens of a
// model, which memory limits, may need no more.
#ifndef CPU_CROWD_H
#define CPU_CROWD_H

#include <stdbool.h>
#include <stdint.h>

// Zero-initialised: all threads, none of which goes before the end.
struct cpu_way {
    bool guests;
    int less; // threads that are left out
};

enum crowd_phase {
    CROWD_ALL,   // all threads take part
    CROWD_TRIAL, // another way, for a few graphs
    CROWD_KEPT,  // another way, since that was faster
    CROWD_PROBE, // another one than that, for a few graphs
};

// Zero-initialised is ready: all threads.
struct cpu_crowd {
    uint64_t kind; // of the graphs that are compared
    enum crowd_phase phase;
    struct cpu_way way; // of the next graph
    struct cpu_way kept;
    bool tries_fewer;   // threads
    int counted;        // graphs of what is measured now
    int64_t ns, waited; // of these
    int64_t best;       // ns of a graph before a trial or a probe
    int left;           // graphs until a trial or a probe
    int trial_pause;    // graphs after trials of which none was faster
    int probe_pause;    // and between probes
    int n_probes;       // since a way was kept
};

// How n threads compute the next graph; fewer than n are left out. A graph of another kind begins
// anew.
struct cpu_way cpu_crowd_way(struct cpu_crowd *crowd, uint64_t kind, int n);
// That graph, which n threads were for, took `ns`; thread 0 waited `waited` of it for others.
void cpu_crowd_note(struct cpu_crowd *crowd, int n, int64_t ns, int64_t waited);

#endif
