// SPDX-License-Identifier: MIT
// How many of its threads a pool computes with. Where another program has a processor, a graph is
// held up at each barrier until the thread there has its turn, which may cost more than the thread
// gives: single tokens of a model, which memory limits, take half the time without it. So where
// thread 0 waits for others during much of several graphs alike, fewer threads are tried, and kept
// for as long as that is faster.
#ifndef CPU_CROWD_H
#define CPU_CROWD_H

#include <stdint.h>

enum crowd_phase {
    CROWD_ALL,   // all threads take part
    CROWD_TRIAL, // some less, for a few graphs
    CROWD_LESS,  // some less, since that was faster
    CROWD_PROBE, // all again, for a few graphs
};

// Zero-initialised is ready: all threads.
struct cpu_crowd {
    uint64_t kind; // of the graphs that are compared
    enum crowd_phase phase;
    int less;           // threads that are left out, but for probes
    int counted;        // graphs of what is measured now
    int64_t ns, waited; // of these
    int64_t best;       // ns of as many graphs before a trial or a probe
    int left;           // graphs until a trial or a probe
    int trial_pause;    // graphs after a trial that was not faster
    int probe_pause;    // and between probes
};

// How many of n threads compute the next graph. A graph of another kind begins anew.
int cpu_crowd_threads(struct cpu_crowd *crowd, uint64_t kind, int n);
// That graph, which n threads were for, took `ns`; thread 0 waited `waited` of it for others.
void cpu_crowd_note(struct cpu_crowd *crowd, int n, int64_t ns, int64_t waited);

#endif
