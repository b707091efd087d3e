// SPDX-License-Identifier: MIT
// Trials and probes become rarer while they lead to nothing: a graph whose shares are uneven, or a
// program that stays, costs a few slow graphs in a thousand.
#include "base/crowd.h"

#include "base/util.h"

enum {
    GRAPHS = 4, // whose time is compared
    LEAST_PAUSE = 32,
    MOST_PAUSE = 4096,
};

// Thread 0 of two of equal speed waits half of the time where the other has half a processor.
static bool is_held_up(const struct cpu_crowd *crowd) {
    return crowd->waited > crowd->ns / 3;
}

// Times vary by a few percent.
static bool is_faster(int64_t ns, int64_t than) {
    return ns < than - than / 10;
}

static void enter(struct cpu_crowd *crowd, enum crowd_phase phase, int less) {
    crowd->phase = phase;
    crowd->less = less;
}

// Where several processors are taken, only leaving out as many threads helps: 1, 2, 4 and so on are
// tried.
static void judge_trial(struct cpu_crowd *crowd, int n) {
    if (is_faster(crowd->ns, crowd->best)) {
        crowd->left = crowd->probe_pause;
        enter(crowd, CROWD_LESS, crowd->less);
    } else if (2 * crowd->less < n) {
        enter(crowd, CROWD_TRIAL, 2 * crowd->less);
    } else {
        crowd->left = crowd->trial_pause;
        crowd->trial_pause = MIN(2 * crowd->trial_pause, MOST_PAUSE);
        enter(crowd, CROWD_ALL, 0);
    }
}

// All threads are as fast as less were: the other program has gone.
static void judge_probe(struct cpu_crowd *crowd) {
    if (is_faster(crowd->best, crowd->ns)) {
        crowd->probe_pause = MIN(2 * crowd->probe_pause, MOST_PAUSE);
        crowd->left = crowd->probe_pause;
        enter(crowd, CROWD_LESS, crowd->less);
        return;
    }
    crowd->trial_pause = crowd->probe_pause = LEAST_PAUSE;
    enter(crowd, CROWD_ALL, 0);
}

int cpu_crowd_threads(struct cpu_crowd *crowd, uint64_t kind, int n) {
    if (crowd->kind != kind || crowd->less >= n)
        *crowd = (struct cpu_crowd){
            .kind = kind, .trial_pause = LEAST_PAUSE, .probe_pause = LEAST_PAUSE};
    return crowd->phase == CROWD_PROBE ? n : n - crowd->less;
}

void cpu_crowd_note(struct cpu_crowd *crowd, int n, int64_t ns, int64_t waited) {
    crowd->ns += ns;
    crowd->waited += waited;
    if (++crowd->counted < GRAPHS) return;
    crowd->left = MAX(0, crowd->left - GRAPHS);
    switch (crowd->phase) {
    case CROWD_ALL:
        if (crowd->left > 0 || n == 1 || !is_held_up(crowd)) break;
        crowd->best = crowd->ns;
        enter(crowd, CROWD_TRIAL, 1);
        break;
    case CROWD_LESS:
        if (crowd->left > 0) break;
        crowd->best = crowd->ns;
        enter(crowd, CROWD_PROBE, crowd->less);
        break;
    case CROWD_TRIAL: judge_trial(crowd, n); break;
    case CROWD_PROBE: judge_probe(crowd); break;
    }
    crowd->counted = 0;
    crowd->ns = crowd->waited = 0;
}
