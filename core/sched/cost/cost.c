// SPDX-License-Identifier: MIT
// Cost-aware placement: compares what beam search, local search and the placement rules predict,
// and keeps the cheapest. The figures are the caller's (ggml_backend_dev_figures).
#include "sched/cost/cost.h"

#include "base/status.h"

// The best placement so far, and the one that is tried.
struct choice {
    const struct cost_model *model;
    int32_t *tried, *best; // [value]: stream, of roots
    struct cost_result result;
};

// Whether `a` is to be preferred: one that fits to any that does not. The margin keeps rounding
// from choosing between equals.
static bool is_better(const struct cost_result *a, const struct cost_result *b) {
    if (a->fits != b->fits) return a->fits;
    return a->seconds < b->seconds - 1e-15;
}

// O(values), which is little beside what found the result.
static void keep_if_better(struct choice *choice, const struct cost_result *result) {
    if (!is_better(result, &choice->result)) return;
    choice->result = *result;
    memcpy(choice->best, choice->tried,
           (size_t)choice->model->graph->n_values * sizeof(choice->best[0]));
}

// Improves `tried` and keeps the result if it is the best.
static bool improve_and_keep(struct choice *choice) {
    struct cost_result result;
    if (!cost_improve(choice->model, choice->tried)) return false;
    if (!cost_walk(choice->model, choice->tried, &result)) return false;
    keep_if_better(choice, &result);
    return true;
}

// The usual placement is the first that is known, so that the result is never worse. Local search
// starts from beam search and from the usual one: each gets out of other dead ends. false when
// memory runs out.
static bool search(struct choice *choice) {
    const struct cost_model *model = choice->model;
    const size_t bytes = (size_t)model->graph->n_values * sizeof(choice->best[0]);
    struct cost_result result;
    memcpy(choice->best, model->usual, bytes);
    if (!cost_walk(model, choice->best, &choice->result)) return false;
    if (!cost_beam(model, choice->tried, &result)) return false;
    if (result.fits) keep_if_better(choice, &result);
    if (!improve_and_keep(choice)) return false;
    memcpy(choice->tried, model->usual, bytes);
    return improve_and_keep(choice);
}

// Writes the choice into the placement: nodes that were free, then views, which follow their roots.
static void apply(const struct choice *choice) {
    const struct cost_model *model = choice->model;
    const struct sched_graph *graph = model->graph;
    struct sched_placement *placement = model->placement;
    for (int32_t i = 0; i < graph->n_nodes; ++i) {
        const int32_t backend = choice->best[graph->values[i].root];
        const bool free = model->kinds[i] == COST_FREE || model->kinds[i] == COST_FOLLOWS;
        if (!free || backend == placement->placed[i].backend) continue;
        sched_assign(placement, i, backend, SCHED_REASON_COST);
    }
    for (int32_t i = 0; i < graph->n_values; ++i) {
        struct sched_placed *placed = &placement->placed[i];
        if (placed->reason != SCHED_REASON_VIEW) continue;
        placed->backend = placement->placed[graph->values[i].root].backend;
    }
    placement->seconds = choice->result.seconds;
    if (!choice->result.fits) {
        GGML_LOG_WARN("%s: no placement was found that fits the limits of memory\n",
                      model->setup->function);
    }
}

bool sched_place_by_cost(const struct sched_setup *setup, const struct sched_graph *graph,
                         struct sched_placement *placement) {
    const size_t values = (size_t)graph->n_values + 1;
    struct cost_model model;
    struct choice choice = {.model = &model};
    bool done = cost_model_init(&model, setup, graph, placement);
    choice.tried = cost_take(&model.memory, values, sizeof(choice.tried[0]));
    choice.best = cost_take(&model.memory, values, sizeof(choice.best[0]));
    done = done && !model.memory.failed && search(&choice);
    if (done) {
        apply(&choice);
    } else {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory to predict the cost of %d nodes",
                  setup->function, (int)graph->n_nodes);
    }
    arena_free(&model.memory.arena);
    return done;
}
