// SPDX-License-Identifier: MIT
// Cost-aware placement: predicts what a placement takes and improves it. The prediction adds up the
// nodes, each on its stream, and the copies; nothing overlaps in it.
#include "base/mem.h"
#include "base/status.h"
#include "op/op_table.h"
#include "sched/sched.h"

enum { LONGEST_MOVE = 32, MOST_PASSES = 8 };

struct search {
    struct ggml_backend_sched *sched;
    const struct ggml_sched_cost *costs;
    double *seconds;     // [node][stream], negative: not possible
    int32_t *uses;       // [item][stream]: how many nodes there read it
    int32_t *place;      // [item]: stream, of roots
    int32_t *best;       // the best placement so far
    double *bytes_of;    // [item]
    double *held;        // [stream]: bytes of results and copies
    int32_t *first_view; // [item]: first item that views it, or -1
    int32_t *next_view;
};

static double node_seconds(const struct search *s, int32_t node, int32_t b) {
    const struct ggml_sched_cost *cost = &s->costs[b];
    const struct ggml_op_cost work = ggml_op_cost(s->sched->items[node].tensor);
    const double compute = work.flops / cost->flops;
    const double memory = (work.bytes_read + work.bytes_written) / cost->bytes_per_second;
    return cost->launch_seconds + MAX(compute, memory);
}

static bool is_movable(const struct ggml_backend_sched *sched, int32_t node) {
    const struct sched_item *item = &sched->items[node];
    return !(item->traits & (SCHED_VIEW_OP | SCHED_NO_OP | SCHED_HAS_MEMORY)) &&
           item->root == node && item->reason != SCHED_REASON_PINNED &&
           item->reason != SCHED_REASON_INPUT;
}

static bool is_readable(const struct search *s, int32_t item, int32_t b) {
    const struct ggml_backend_sched *sched = s->sched;
    const int32_t root = sched->items[item].root;
    const int32_t buft = sched->items[root].buft;
    const int32_t memory = buft >= 0 ? buft : sched->streams[s->place[root]].buft;
    return s->place[root] == b || sched_reads(sched, memory, b);
}

static double copy_seconds(const struct search *s, int32_t item, int32_t b) {
    return s->costs[b].link_seconds + s->bytes_of[item] / s->costs[b].link_bytes_per_second;
}

// All copies of one item; `sign` adds them to what streams hold, or takes them away.
static double item_copies(struct search *s, int32_t item, double sign) {
    const int n = s->sched->n_backends;
    double seconds = 0;
    for (int32_t b = 0; b < n; ++b) {
        if (s->uses[(int64_t)item * n + b] == 0 || is_readable(s, item, b)) continue;
        seconds += copy_seconds(s, item, b);
        s->held[b] += sign * s->bytes_of[item];
    }
    return seconds;
}

// Copies of the node's sources, of its result and of views of that.
static double copies_around(struct search *s, int32_t node, double sign) {
    const struct ggml_backend_sched *sched = s->sched;
    double seconds = item_copies(s, node, sign);
    for (int32_t view = s->first_view[node]; view >= 0; view = s->next_view[view]) {
        seconds += item_copies(s, view, sign);
    }
    for (int32_t e = sched->first_edge[node]; e < sched->first_edge[node + 1]; ++e) {
        bool again = false; // the same source twice counts once
        for (int32_t k = sched->first_edge[node]; k < e; ++k) {
            again |= sched->edges[k].item == sched->edges[e].item;
        }
        if (!again) seconds += item_copies(s, sched->edges[e].item, sign);
    }
    return seconds;
}

static void put(struct search *s, int32_t node, int32_t b) {
    const struct ggml_backend_sched *sched = s->sched;
    const int n = sched->n_backends;
    for (int32_t e = sched->first_edge[node]; e < sched->first_edge[node + 1]; ++e) {
        int32_t *uses = &s->uses[(int64_t)sched->edges[e].item * n];
        uses[s->place[node]]--;
        uses[b]++;
    }
    s->held[s->place[node]] -= s->bytes_of[node];
    s->held[b] += s->bytes_of[node];
    s->place[node] = b;
}

// Moves the node; answers by how much the prediction grows.
static double move(struct search *s, int32_t node, int32_t b) {
    const double *seconds = &s->seconds[(int64_t)node * s->sched->n_backends];
    double change = seconds[b] - seconds[s->place[node]] - copies_around(s, node, -1);
    put(s, node, b);
    return change + copies_around(s, node, 1);
}

static bool fits(const struct search *s) {
    for (int32_t b = 0; b < s->sched->n_backends; ++b) {
        const double limit = (double)s->costs[b].memory_bytes;
        if (limit > 0 && s->held[b] > limit) return false;
    }
    return true;
}

static bool can_move(const struct search *s, int32_t node, int32_t b) {
    return s->seconds[(int64_t)node * s->sched->n_backends + b] >= 0;
}

// Moves nodes from `first` on to b, as many as pay most; answers the (negative) change.
static double move_run(struct search *s, int32_t first, int32_t b) {
    int32_t moved[LONGEST_MOVE], before[LONGEST_MOVE];
    int32_t n = 0, kept = 0;
    double change = 0, best = 0;
    for (int32_t i = first; i < s->sched->n_nodes && n < LONGEST_MOVE; ++i) {
        if (s->place[i] == b || !is_movable(s->sched, i)) continue;
        if (!can_move(s, i, b)) break;
        moved[n] = i;
        before[n++] = s->place[i];
        change += move(s, i, b);
        if (change < best - 1e-15 && fits(s)) {
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

static void improve(struct search *s) {
    double gained = -1;
    for (int pass = 0; pass < MOST_PASSES && gained < 0; ++pass) {
        gained = 0;
        for (int32_t i = 0; i < s->sched->n_nodes; ++i) {
            if (!is_movable(s->sched, i)) continue;
            for (int32_t b = 0; b < s->sched->n_backends; ++b) {
                if (b != s->place[i]) gained += move_run(s, i, b);
            }
        }
    }
}

static double total(struct search *s) {
    const struct ggml_backend_sched *sched = s->sched;
    double seconds = 0;
    for (int32_t i = 0; i < sched->n_nodes; ++i) {
        const double own = s->seconds[(int64_t)i * sched->n_backends + s->place[i]];
        if (own > 0) seconds += own;
    }
    for (int32_t i = 0; i < sched->n_items; ++i) {
        seconds += item_copies(s, i, 0);
    }
    return seconds;
}

// --- setting up

static void free_search(struct search *s) {
    void *const arrays[] = {s->seconds,  s->uses, s->place,      s->best,
                            s->bytes_of, s->held, s->first_view, s->next_view};
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); ++i) {
        ggml_mem_free(arrays[i]);
    }
}

static bool make_arrays(struct search *s) {
    const size_t n = (size_t)s->sched->n_backends;
    const size_t items = (size_t)s->sched->n_items + 1;
    if (items > SIZE_MAX / 16 / n) return false;
    s->seconds = ggml_mem_calloc(items * n, sizeof(s->seconds[0]));
    s->uses = ggml_mem_calloc(items * n, sizeof(s->uses[0]));
    s->place = ggml_mem_calloc(items, sizeof(s->place[0]));
    s->best = ggml_mem_calloc(items, sizeof(s->best[0]));
    s->bytes_of = ggml_mem_calloc(items, sizeof(s->bytes_of[0]));
    s->held = ggml_mem_calloc(n, sizeof(s->held[0]));
    s->first_view = ggml_mem_alloc(items * sizeof(s->first_view[0]));
    s->next_view = ggml_mem_alloc(items * sizeof(s->next_view[0]));
    return s->seconds && s->uses && s->place && s->best && s->bytes_of && s->held &&
           s->first_view && s->next_view;
}

static void set_up_item(struct search *s, int32_t i) {
    const struct sched_item *item = &s->sched->items[i];
    s->place[i] = s->sched->items[item->root].backend;
    s->bytes_of[i] = (double)ggml_nbytes(item->tensor);
    if (item->root == i) return;
    s->next_view[i] = s->first_view[item->root];
    s->first_view[item->root] = i;
}

static void set_up_node(struct search *s, int32_t i) {
    struct ggml_backend_sched *sched = s->sched;
    double *seconds = &s->seconds[(int64_t)i * sched->n_backends];
    const struct sched_item *item = &sched->items[i];
    if (item->traits & (SCHED_VIEW_OP | SCHED_NO_OP)) return;
    s->place[i] = item->backend;
    for (int32_t b = 0; b < sched->n_backends; ++b) {
        const bool possible = sched_supports(sched, i, b) && sched->streams[b].allowed;
        seconds[b] = possible || b == item->backend ? node_seconds(s, i, b) : -1;
    }
    if (item->root == i && !(item->traits & SCHED_HAS_MEMORY)) {
        s->held[item->backend] += s->bytes_of[i];
    }
    for (int32_t e = sched->first_edge[i]; e < sched->first_edge[i + 1]; ++e) {
        s->uses[(int64_t)sched->edges[e].item * sched->n_backends + item->backend]++;
    }
}

static void set_up(struct search *s) {
    for (int32_t i = 0; i < s->sched->n_items; ++i) {
        s->first_view[i] = s->next_view[i] = -1;
    }
    for (int32_t i = 0; i < s->sched->n_items; ++i) {
        set_up_item(s, i);
    }
    for (int32_t i = 0; i < s->sched->n_nodes; ++i) {
        set_up_node(s, i);
    }
    for (int32_t i = 0; i < s->sched->n_items; ++i) {
        item_copies(s, i, 1);
    }
}

// --- searching

// Everything that can on stream b; with b < 0 every node where it alone is fastest.
static void start_from(struct search *s, int32_t b) {
    for (int32_t i = 0; i < s->sched->n_nodes; ++i) {
        if (!is_movable(s->sched, i)) continue;
        const double *seconds = &s->seconds[(int64_t)i * s->sched->n_backends];
        int32_t to = b >= 0 && seconds[b] >= 0 ? b : s->place[i];
        for (int32_t k = 0; k < s->sched->n_backends && b < 0; ++k) {
            if (seconds[k] >= 0 && seconds[k] < seconds[to]) to = k;
        }
        if (to != s->place[i]) move(s, i, to);
    }
}

static void keep_if_better(struct search *s, double *best) {
    const double seconds = total(s);
    if (!(seconds < *best - 1e-15) || !fits(s)) return;
    *best = seconds;
    memcpy(s->best, s->place, (size_t)s->sched->n_items * sizeof(s->best[0]));
}

static void search_all(struct search *s) {
    double best = total(s);
    memcpy(s->best, s->place, (size_t)s->sched->n_items * sizeof(s->best[0]));
    improve(s);
    keep_if_better(s, &best);
    for (int32_t b = -1; b < s->sched->n_backends; ++b) {
        start_from(s, b);
        improve(s);
        keep_if_better(s, &best);
    }
    s->sched->predicted_seconds = best;
}

static void apply(struct search *s) {
    struct ggml_backend_sched *sched = s->sched;
    for (int32_t i = 0; i < sched->n_nodes; ++i) {
        struct sched_item *item = &sched->items[i];
        if (!is_movable(sched, i) || s->best[i] == item->backend) continue;
        item->backend = s->best[i];
        item->reason = SCHED_REASON_COST;
    }
    for (int32_t i = 0; i < sched->n_items; ++i) {
        struct sched_item *item = &sched->items[i];
        if (item->reason == SCHED_REASON_VIEW) item->backend = sched->items[item->root].backend;
    }
}

bool sched_place_by_cost(struct ggml_backend_sched *sched) {
    struct search s = {.sched = sched, .costs = sched->costs};
    const bool done = make_arrays(&s);
    if (done) {
        set_up(&s);
        search_all(&s);
        apply(&s);
    } else {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory to predict the cost of %d nodes",
                  sched->function, (int)sched->n_nodes);
    }
    free_search(&s);
    return done;
}

// --- the caller's figures

static bool is_sane(const struct ggml_sched_cost *cost) {
    return cost->flops > 0 && cost->bytes_per_second > 0 && cost->link_bytes_per_second > 0 &&
           cost->launch_seconds >= 0 && cost->link_seconds >= 0;
}

enum ggml_host_status ggml_sched_set_costs(ggml_backend_sched_t sched,
                                           const struct ggml_sched_cost *costs) {
    if (!sched) {
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: the scheduler is NULL", __func__);
    }
    const size_t n = (size_t)sched->n_backends;
    for (size_t b = 0; costs && b < n; ++b) {
        if (is_sane(&costs[b])) continue;
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                         "%s: stream %zu: rates must be positive, times not negative", __func__, b);
    }
    struct ggml_sched_cost *copy = costs ? ggml_mem_alloc(n * sizeof(copy[0])) : NULL;
    if (costs && !copy) {
        return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory for %zu streams", __func__, n);
    }
    if (copy) memcpy(copy, costs, n * sizeof(copy[0]));
    ggml_mem_free(sched->costs);
    sched->costs = copy;
    sched->predicted_seconds = 0;
    sched->known.repeatable = false;
    return GGML_HOST_OK;
}
