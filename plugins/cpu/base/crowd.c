// SPDX-License-Identifier: MIT
// Trials and probes become rarer while they lead to nothing: a graph whose shares are uneven, or a
// program that stays, costs a few slow graphs in a thousand.
#include "base/crowd.h"

#include "base/util.h"

enum {
    GRAPHS = 4,       // whose time is compared,
    LONG = 300000000, // or fewer that take so many ns: a few turns of processors are enough
    LEAST_PAUSE = 32,
    MOST_PAUSE = 4096,
};

static const struct cpu_way all = {0};

// Thread 0 of two of equal speed waits half of the time where the other has half a processor and
// they have even shares; less where it takes most of what both share out.
static bool is_held_up(const struct cpu_crowd *crowd) {
    return crowd->waited > crowd->ns / 8;
}

// A thread that is left out can't save more than others waited for it.
static bool may_need_fewer(const struct cpu_crowd *crowd) {
    return crowd->waited > crowd->ns / 3;
}

// Times vary by a few percent.
static bool is_faster(int64_t ns, int64_t than) {
    return ns < than - than / 12;
}

static void keep(struct cpu_crowd *crowd, struct cpu_way way, int pause) {
    crowd->phase = way.guests || way.less > 0 ? CROWD_KEPT : CROWD_ALL;
    crowd->way = crowd->kept = way;
    crowd->left = pause;
}

static void keep_all(struct cpu_crowd *crowd, int pause) {
    crowd->probe_pause = LEAST_PAUSE;
    crowd->n_probes = 0;
    keep(crowd, all, pause);
}

// The way to try after this one, if there is one: guests, then fewer threads. Where several
// processors are taken, only leaving out as many threads helps: 1, 2, 4 and so on.
static bool next_way(struct cpu_crowd *crowd, int n) {
    const int less = crowd->way.guests ? 1 : 2 * crowd->way.less;
    crowd->way = (struct cpu_way){.less = less};
    return crowd->tries_fewer && less < n;
}

static void judge_trial(struct cpu_crowd *crowd, int64_t ns, int n) {
    if (is_faster(ns, crowd->best)) {
        keep(crowd, crowd->way, crowd->probe_pause);
    } else if (!next_way(crowd, n)) {
        keep_all(crowd, crowd->trial_pause);
        crowd->trial_pause = MIN(2 * crowd->trial_pause, MOST_PAUSE);
    }
}

// Guests and fewer threads are compared with all, and at times with each other.
static void begin_probe(struct cpu_crowd *crowd, int64_t ns) {
    crowd->best = ns;
    crowd->phase = CROWD_PROBE;
    crowd->way = all;
    if (crowd->n_probes++ % 4 != 0 || !crowd->tries_fewer) return;
    crowd->way.guests = !crowd->kept.guests;
    crowd->way.less = crowd->kept.guests ? 1 : 0;
}

// Where all threads are as fast as less were the other program has gone.
static void judge_probe(struct cpu_crowd *crowd, int64_t ns) {
    const bool is_all = crowd->way.less == 0 && !crowd->way.guests;
    if (is_all && !is_faster(crowd->best, ns)) {
        crowd->trial_pause = LEAST_PAUSE;
        keep_all(crowd, LEAST_PAUSE);
        return;
    }
    if (is_all) crowd->probe_pause = MIN(2 * crowd->probe_pause, MOST_PAUSE);
    keep(crowd, !is_all && is_faster(ns, crowd->best) ? crowd->way : crowd->kept,
         crowd->probe_pause);
}

struct cpu_way cpu_crowd_way(struct cpu_crowd *crowd, uint64_t kind, int n) {
    if (crowd->kind != kind || crowd->way.less >= n)
        *crowd = (struct cpu_crowd){
            .kind = kind, .trial_pause = LEAST_PAUSE, .probe_pause = LEAST_PAUSE};
    return crowd->way;
}

void cpu_crowd_note(struct cpu_crowd *crowd, int n, int64_t ns, int64_t waited) {
    crowd->ns += ns;
    crowd->waited += waited;
    if (++crowd->counted < GRAPHS && crowd->ns < LONG) return;
    const int64_t mean = crowd->ns / crowd->counted;
    crowd->left = MAX(0, crowd->left - crowd->counted);
    switch (crowd->phase) {
    case CROWD_ALL:
        if (crowd->left > 0 || n == 1 || !is_held_up(crowd)) break;
        crowd->best = mean;
        crowd->tries_fewer = may_need_fewer(crowd);
        crowd->phase = CROWD_TRIAL;
        crowd->way = (struct cpu_way){.guests = true};
        break;
    case CROWD_KEPT:
        if (crowd->left == 0) begin_probe(crowd, mean);
        break;
    case CROWD_TRIAL: judge_trial(crowd, mean, n); break;
    case CROWD_PROBE: judge_probe(crowd, mean); break;
    }
    crowd->counted = 0;
    crowd->ns = crowd->waited = 0;
}
