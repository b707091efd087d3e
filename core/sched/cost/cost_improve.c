// SPDX-License-Identifier: MIT
// Local search (hill climbing): moves runs of consecutive nodes to another stream as long as the
// predicted cost falls.
#include "sched/cost/cost.h"

enum {
    LONGEST_MOVE = 32,
    MOST_PASSES = 8,
    MOST_RISES = 4,       // a run ends after so many moves that each made it worse
    MOST_NEIGHBOURS = 16, // streams that are tried for a node
};

// The placement that is improved, with who reads what: that makes the change by one move O(streams
// that read) instead of O(graph).
struct search {
    const struct cost_model *model;
    int32_t *place;      // [value], of roots
    int32_t *uses;       // [value][stream]: how many nodes there read it
    uint64_t *used;      // [value]: set of streams where some do
    int32_t words;       // of such a set
    int32_t *first_view; // [value]: first value that views it, or -1
    int32_t *next_view;
};

// Seconds of all copies of a value: one for each stream that reads it and can't reach it.
static double item_copies(const struct search *s, int32_t value) {
    const int32_t from = s->place[s->model->graph->values[value].root];
    double seconds = 0;
    for (int32_t w = 0; w < s->words; ++w) {
        uint64_t set = s->used[(int64_t)value * s->words + w];
        for (; set; set &= set - 1) {
            const int32_t b = 64 * w + __builtin_ctzll(set);
            if (!cost_reaches(s->model, value, from, b)) {
                seconds += cost_of_copy(s->model, value, from, b);
            }
        }
    }
    return seconds;
}

// A stream is in the set as long as a node there reads the value.
static void add_use(struct search *s, int32_t value, int32_t b, int32_t change) {
    int32_t *uses = &s->uses[(int64_t)value * s->model->n_streams + b];
    uint64_t *set = &s->used[(int64_t)value * s->words + b / 64];
    const uint64_t bit = (uint64_t)1 << (b % 64);
    *uses += change;
    *set = *uses > 0 ? *set | bit : *set & ~bit;
}

// Copies of the node's sources, of its result and of views of that.
static double copies_around(const struct search *s, int32_t node) {
    const struct sched_graph *graph = s->model->graph;
    double seconds = item_copies(s, node);
    for (int32_t view = s->first_view[node]; view >= 0; view = s->next_view[view]) {
        seconds += item_copies(s, view);
    }
    for (int32_t e = graph->first_edge[node]; e < graph->first_edge[node + 1]; ++e) {
        if (cost_is_first_edge(graph, node, e)) seconds += item_copies(s, graph->edges[e].value);
    }
    return seconds;
}

// Moves the node; returns by how much the prediction grows.
static double move(struct search *s, int32_t node, int32_t b) {
    const struct sched_graph *graph = s->model->graph;
    const int32_t before = s->place[node];
    double change = cost_of_node(s->model, node, b) - cost_of_node(s->model, node, before);
    change -= copies_around(s, node);
    for (int32_t e = graph->first_edge[node]; e < graph->first_edge[node + 1]; ++e) {
        add_use(s, graph->edges[e].value, before, -1);
        add_use(s, graph->edges[e].value, b, 1);
    }
    s->place[node] = b;
    return change + copies_around(s, node);
}

// Nodes that others write into stay: moving them would move these too.
static bool is_movable(const struct search *s, int32_t node) {
    return s->model->kinds[node] == COST_FREE && !s->model->has_followers[node];
}

// Moves nodes from `first` on to b, as many as pay most; returns the (negative) change.
static double move_run(struct search *s, int32_t first, int32_t b) {
    int32_t moved[LONGEST_MOVE], before[LONGEST_MOVE];
    int32_t n = 0, kept = 0, rises = 0;
    double change = 0, best = 0;
    for (int32_t i = first; i < s->model->graph->n_nodes && n < LONGEST_MOVE && rises < MOST_RISES;
         ++i) {
        if (s->place[i] == b || !is_movable(s, i)) continue;
        if (cost_of_node(s->model, i, b) < 0) break;
        moved[n] = i;
        before[n++] = s->place[i];
        const double step = move(s, i, b);
        rises = step > 0 ? rises + 1 : 0;
        change += step;
        if (change < best - 1e-15) {
            best = change;
            kept = n;
        }
    }
    while (n > kept) {
        --n;
        move(s, moved[n], before[n]);
    }
    return best;
}

// Each stream once.
static void add_neighbour(int32_t *streams, int32_t *n, int32_t b) {
    for (int32_t i = 0; i < *n; ++i) {
        if (streams[i] == b) return;
    }
    if (*n < MOST_NEIGHBOURS) streams[(*n)++] = b;
}

// Where the node's sources are, and the nodes before and after it.
static int32_t list_neighbours(const struct search *s, int32_t node, int32_t *out_streams) {
    const struct sched_graph *graph = s->model->graph;
    int32_t n = 0;
    for (int32_t e = graph->first_edge[node]; e < graph->first_edge[node + 1]; ++e) {
        add_neighbour(out_streams, &n, s->place[graph->values[graph->edges[e].value].root]);
    }
    for (int32_t i = MAX(node - 1, 0); i <= node + 1 && i < graph->n_nodes; ++i) {
        if (is_movable(s, i)) add_neighbour(out_streams, &n, s->place[i]);
    }
    return n;
}

// Tries the streams of the node's neighbours. Returns the (negative) gain.
static double improve_node(struct search *s, int32_t node) {
    int32_t streams[MOST_NEIGHBOURS];
    double gained = 0;
    const int32_t n = list_neighbours(s, node, streams);
    for (int32_t i = 0; i < n; ++i) {
        if (streams[i] != s->place[node]) gained += move_run(s, node, streams[i]);
    }
    return gained;
}

// Passes over all nodes until one gains nothing: each is O(nodes * streams * LONGEST_MOVE).
static void improve(struct search *s) {
    double gained = -1;
    for (int pass = 0; pass < MOST_PASSES && gained < 0; ++pass) {
        gained = 0;
        for (int32_t i = 0; i < s->model->graph->n_nodes; ++i) {
            if (is_movable(s, i)) gained += improve_node(s, i);
        }
    }
}

static void set_up(struct search *s) {
    const struct cost_model *model = s->model;
    const struct sched_graph *graph = model->graph;
    for (int32_t i = 0; i < graph->n_values; ++i) {
        s->first_view[i] = s->next_view[i] = -1;
    }
    for (int32_t i = 0; i < graph->n_values; ++i) {
        const int32_t root = graph->values[i].root;
        if (root == i) continue;
        s->next_view[i] = s->first_view[root];
        s->first_view[root] = i;
    }
    for (int32_t i = 0; i < graph->n_nodes; ++i) {
        if (model->kinds[i] == COST_SKIPPED) continue;
        const int32_t b = model->kinds[i] == COST_FOLLOWS ? s->place[graph->values[i].root]
                          : model->kinds[i] == COST_FREE  ? s->place[i]
                                                          : model->usual[i];
        for (int32_t e = graph->first_edge[i]; e < graph->first_edge[i + 1]; ++e) {
            add_use(s, graph->edges[e].value, b, 1);
        }
    }
}

bool cost_improve(const struct cost_model *model, int32_t *place) {
    const size_t values = (size_t)model->graph->n_values + 1;
    struct cost_memory memory = {0};
    struct search s = {.model = model, .place = place, .words = (model->n_streams + 63) / 64};
    s.uses = cost_take(&memory, values, (size_t)model->n_streams * sizeof(s.uses[0]));
    s.used = cost_take(&memory, values, (size_t)s.words * sizeof(s.used[0]));
    s.first_view = cost_take(&memory, values, sizeof(s.first_view[0]));
    s.next_view = cost_take(&memory, values, sizeof(s.next_view[0]));
    if (!memory.failed) {
        set_up(&s);
        improve(&s);
    }
    arena_free(&memory.arena);
    return !memory.failed;
}
