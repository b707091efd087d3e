// SPDX-License-Identifier: MIT
// Cost-aware placement: compares what beam search, local search and the placement rules predict,
// and keeps the cheapest. The figures are the caller's (ggml_backend_dev_figures).
#include "sched/cost.h"

#include <math.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/thread_guard.h"

struct choice {
    const struct cost_model *model;
    int32_t *tried, *best; // [value]: stream, of roots
    struct cost_result result;
};

// Whether `a` is to be preferred.
static bool is_better(const struct cost_result *a, const struct cost_result *b) {
    if (a->fits != b->fits) return a->fits;
    return a->seconds < b->seconds - 1e-15;
}

static void keep_if_better(struct choice *choice, const struct cost_result *result) {
    if (!is_better(result, &choice->result)) return;
    choice->result = *result;
    memcpy(choice->best, choice->tried,
           (size_t)choice->model->sched->n_values * sizeof(choice->best[0]));
}

// Improves `tried` and keeps the result if it is the best.
static bool improve_and_keep(struct choice *choice) {
    struct cost_result result;
    if (!cost_improve(choice->model, choice->tried)) return false;
    if (!cost_walk(choice->model, choice->tried, &result)) return false;
    keep_if_better(choice, &result);
    return true;
}

static bool search(struct choice *choice) {
    const struct cost_model *model = choice->model;
    const size_t bytes = (size_t)model->sched->n_values * sizeof(choice->best[0]);
    struct cost_result result;
    memcpy(choice->best, model->usual, bytes);
    if (!cost_walk(model, choice->best, &choice->result)) return false;
    if (!cost_beam(model, choice->tried, &result)) return false;
    if (result.fits) keep_if_better(choice, &result);
    if (!improve_and_keep(choice)) return false;
    memcpy(choice->tried, model->usual, bytes);
    return improve_and_keep(choice);
}

static void apply(const struct choice *choice) {
    const struct cost_model *model = choice->model;
    struct ggml_backend_sched *sched = model->sched;
    for (int32_t i = 0; i < sched->n_nodes; ++i) {
        const int32_t backend = choice->best[sched->values[i].root];
        const bool free = model->kinds[i] == COST_FREE || model->kinds[i] == COST_FOLLOWS;
        if (!free || backend == sched->placed[i].backend) continue;
        sched_assign(sched, i, backend, SCHED_REASON_COST);
    }
    for (int32_t i = 0; i < sched->n_values; ++i) {
        struct sched_placed *placed = &sched->placed[i];
        if (placed->reason != SCHED_REASON_VIEW) continue;
        placed->backend = sched->placed[sched->values[i].root].backend;
    }
    sched->predicted_seconds = choice->result.seconds;
    if (!choice->result.fits) {
        GGML_LOG_WARN("%s: no placement was found that fits the limits of memory\n",
                      sched->function);
    }
}

bool sched_place_by_cost(struct ggml_backend_sched *sched) {
    const size_t values = (size_t)sched->n_values + 1;
    struct cost_model model;
    struct choice choice = {.model = &model};
    bool done = cost_model_init(&model, sched);
    choice.tried = ggml_mem_calloc(values, sizeof(choice.tried[0]));
    choice.best = ggml_mem_calloc(values, sizeof(choice.best[0]));
    done = done && choice.tried && choice.best && search(&choice);
    if (done) {
        apply(&choice);
    } else {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory to predict the cost of %d nodes",
                  sched->function, (int)sched->n_nodes);
    }
    ggml_mem_free(choice.tried);
    ggml_mem_free(choice.best);
    cost_model_free(&model);
    return done;
}

// --- figures

static bool is_sane(const struct ggml_device_figures *figures) {
    const double rates[] = {figures->flops, figures->bytes_per_second};
    const double others[] = {figures->launch_seconds, figures->link_bytes_per_second,
                             figures->link_seconds};
    bool sane = true;
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); ++i) {
        sane = sane && isfinite(rates[i]) && rates[i] > 0;
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); ++i) {
        sane = sane && isfinite(others[i]) && others[i] >= 0;
    }
    for (size_t i = 0; i < GGML_DEVICE_FIGURES_TYPES; ++i) {
        sane = sane && isfinite(figures->flops_of[i]) && figures->flops_of[i] >= 0;
    }
    return sane;
}

static enum ggml_host_status take_figures(const struct ggml_backend_sched *sched, size_t b,
                                          const struct ggml_device_figures *given,
                                          struct ggml_device_figures *out_figures) {
    *out_figures = (struct ggml_device_figures){.size = sizeof(*out_figures)};
    if (!given) {
        const enum ggml_host_status status =
            ggml_backend_dev_figures(sched->streams[b].device, out_figures);
        if (status != GGML_HOST_OK || is_sane(out_figures)) return status;
    } else if (given->size >= offsetof(struct ggml_device_figures, flops_of)) {
        memcpy(out_figures, given, MIN((size_t)given->size, sizeof(*out_figures)));
        if (is_sane(out_figures)) return GGML_HOST_OK;
    }
    return ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                     "ggml_sched_set_costs: stream %zu: size must be set, rates be positive and "
                     "times not negative",
                     b);
}

enum ggml_host_status ggml_sched_set_costs(ggml_backend_sched_t sched,
                                           const struct ggml_device_figures *const *figures) {
    THREAD_GUARD(sched, GGML_HOST_BUSY);
    if (!sched) {
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: the scheduler is NULL", __func__);
    }
    const size_t n = (size_t)sched->n_backends;
    struct ggml_device_figures *copy = figures ? ggml_mem_calloc(n, sizeof(copy[0])) : NULL;
    if (figures && !copy) {
        return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory for %zu streams", __func__, n);
    }
    for (size_t b = 0; figures && b < n; ++b) {
        const enum ggml_host_status status = take_figures(sched, b, figures[b], &copy[b]);
        if (status == GGML_HOST_OK) continue;
        ggml_mem_free(copy);
        return status;
    }
    ggml_mem_free(sched->figures);
    sched->figures = copy;
    sched->predicted_seconds = 0;
    sched->caches.graph.repeatable = false;
    return GGML_HOST_OK;
}
