// SPDX-License-Identifier: MIT
// Which devices split tensors among them, and which layers each such island gets.
//
// Agglomerative clustering: every device begins as an island of its own, and the two whose union
// shortens the predicted time of a token most become one, until none does; O(n^3) predictions for n
// devices. It is greedy: exact search is exponential, and islands are small. Layers go to the
// fastest islands first, as far as their memory goes: one token passes all layers one after the
// other, so slower ones are taken only for what does not fit.
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "ggml-backend-impl.h"
#include "ggml-host.h"
#include "ggml-impl.h"

enum {
    SUMS_PER_LAYER = 2, // of attention and of the part after it
    MOST_DEVICES = 64,
};

struct member {
    ggml_backend_dev_t device;
    struct ggml_device_figures figures;
    uint64_t memory;
};

struct island {
    size_t n;
    uint32_t members[GGML_BACKEND_META_MAX_DEVICES];
    double layer_seconds;
    uint32_t capacity, n_layers; // layers that fit, and that it gets
};

struct planner {
    const struct ggml_split_model *model;
    size_t n_members;
    struct member *members;
    struct ggml_device_link *links; // [from][to]
    struct island *islands, *tried, *best;
    size_t n;
};

// What divisions are compared by: a token's time, then that of a layer on the fastest island that
// has none but room: three devices may gain nothing over two, as they add no faster than four.
struct cost {
    double seconds, idle_seconds;
};

// --- what a token takes --------------------------------------------------------------------------

static const struct ggml_device_link *link_of(const struct planner *planner, uint32_t a,
                                              uint32_t b) {
    return &planner->links[a * planner->n_members + b];
}

static double copy_seconds(const struct planner *planner, uint32_t a, uint32_t b) {
    const struct ggml_device_link *link = link_of(planner, a, b);
    return link->seconds + (double)planner->model->value_bytes / link->bytes_per_second;
}

// log2(n) exchanges, each as slow as the slowest link within the island.
static double sum_seconds(const struct planner *planner, const struct island *island) {
    double slowest = 0, exchanges = 0;
    for (size_t i = 0; i < island->n; ++i)
        for (size_t k = 0; k < island->n; ++k)
            if (i != k)
                slowest =
                    MAX(slowest, copy_seconds(planner, island->members[i], island->members[k]));
    for (size_t n = 1; n < island->n; n *= 2)
        ++exchanges;
    return exchanges * slowest;
}

// Devices get equal parts of each layer, so the slowest and the smallest one count.
static void rate(const struct planner *planner, struct island *island) {
    const double part = (double)planner->model->layer_bytes / (double)island->n;
    uint64_t least = UINT64_MAX;
    island->layer_seconds = 0;
    for (size_t i = 0; i < island->n; ++i) {
        const struct member *member = &planner->members[island->members[i]];
        island->layer_seconds = MAX(island->layer_seconds, part / member->figures.bytes_per_second);
        least = MIN(least, member->memory);
    }
    if (island->n > 1) island->layer_seconds += SUMS_PER_LAYER * sum_seconds(planner, island);
    const double fit = (double)least / part;
    island->capacity = fit < planner->model->n_layers ? (uint32_t)fit : planner->model->n_layers;
}

static void sort_by_speed(struct island *islands, size_t n) {
    for (size_t i = 1; i < n; ++i) {
        const struct island island = islands[i];
        size_t at = i;
        for (; at > 0 && islands[at - 1].layer_seconds > island.layer_seconds; --at)
            islands[at] = islands[at - 1];
        islands[at] = island;
    }
}

// From one island to the next: every device of that one needs the value.
static double handover_seconds(const struct planner *planner, const struct island *from,
                               const struct island *to) {
    double seconds = 0;
    for (size_t i = 0; i < to->n; ++i)
        seconds += copy_seconds(planner, from->members[0], to->members[i]);
    return seconds;
}

// Gives layers to rated islands, the fastest first. What does not fit anywhere counts as if a layer
// took an hour.
static struct cost share_layers(const struct planner *planner, struct island *islands, size_t n) {
    uint32_t left = planner->model->n_layers;
    const struct island *before = NULL;
    struct cost cost = {.idle_seconds = HUGE_VAL};
    sort_by_speed(islands, n);
    for (size_t i = 0; i < n; ++i) {
        struct island *island = &islands[i];
        island->n_layers = MIN(left, island->capacity);
        left -= island->n_layers;
        if (island->n_layers == 0 && island->capacity > 0)
            cost.idle_seconds = MIN(cost.idle_seconds, island->layer_seconds);
        if (island->n_layers == 0) continue;
        cost.seconds += island->n_layers * island->layer_seconds;
        if (before) cost.seconds += handover_seconds(planner, before, island);
        before = island;
    }
    cost.seconds += 3600.0 * left;
    return cost;
}

static bool is_less(const struct cost *a, const struct cost *b) {
    return a->seconds < b->seconds ||
           (a->seconds == b->seconds && a->idle_seconds < b->idle_seconds);
}

// --- islands -------------------------------------------------------------------------------------

// The islands with b's devices in a, in planner->tried; false if they are too many for one.
static bool try_union(struct planner *planner, size_t a, size_t b) {
    const struct island *islands = planner->islands;
    if (islands[a].n + islands[b].n > GGML_BACKEND_META_MAX_DEVICES) return false;
    size_t n = 0;
    for (size_t i = 0; i < planner->n; ++i)
        if (i != b) planner->tried[n++] = islands[i];
    struct island *united = &planner->tried[a < b ? a : a - 1];
    memcpy(united->members + united->n, islands[b].members, islands[b].n * sizeof(uint32_t));
    united->n += islands[b].n;
    rate(planner, united);
    return true;
}

// Unites the two that gain most; false if none do.
static bool unite(struct planner *planner, struct cost *cost) {
    bool any = false;
    for (size_t a = 0; a < planner->n; ++a) {
        for (size_t b = a + 1; b < planner->n; ++b) {
            if (!try_union(planner, a, b)) continue;
            const struct cost tried = share_layers(planner, planner->tried, planner->n - 1);
            if (!is_less(&tried, cost)) continue;
            *cost = tried;
            memcpy(planner->best, planner->tried, (planner->n - 1) * sizeof(*planner->best));
            any = true;
        }
    }
    if (!any) return false;
    struct island *last = planner->islands;
    planner->islands = planner->best;
    planner->best = last;
    --planner->n;
    return true;
}

// --- devices -------------------------------------------------------------------------------------

// As direct copies are declared; else by way of the host, over both links.
static enum ggml_host_status link_between(const struct member *a, const struct member *b,
                                          struct ggml_device_link *out_link) {
    struct ggml_device_link link = {.size = sizeof(link)};
    const enum ggml_host_status status = ggml_backend_dev_link(a->device, b->device, &link);
    *out_link = link;
    if (status != GGML_HOST_UNSUPPORTED) return status;
    const double x = a->figures.link_bytes_per_second, y = b->figures.link_bytes_per_second;
    const bool direct = a->device->reg == b->device->reg && (a->figures.flags & b->figures.flags &
                                                             GGML_DEVICE_FIGURES_DIRECT_COPY) != 0;
    const double per_byte_x = x > 0 ? 1 / x : 0, per_byte_y = y > 0 ? 1 / y : 0;
    const double latency_x = a->figures.link_seconds, latency_y = b->figures.link_seconds;
    const double per_byte = direct ? MAX(per_byte_x, per_byte_y) : per_byte_x + per_byte_y;
    out_link->seconds = direct ? MAX(latency_x, latency_y) : latency_x + latency_y;
    out_link->bytes_per_second = per_byte > 0 ? 1 / per_byte : 1e30; // memory that both have
    return GGML_HOST_OK;
}

// Those that are given, or declared by the plugin.
static enum ggml_host_status take_figures(ggml_backend_dev_t device,
                                          const struct ggml_device_figures *given,
                                          struct ggml_device_figures *out_figures) {
    *out_figures = (struct ggml_device_figures){.size = sizeof(*out_figures)};
    if (!given) {
        const enum ggml_host_status status = ggml_backend_dev_figures(device, out_figures);
        if (status != GGML_HOST_OK) return status;
    } else if (given->size >= offsetof(struct ggml_device_figures, flops_of)) {
        memcpy(out_figures, given, MIN((size_t)given->size, sizeof(*out_figures)));
    }
    const bool is_sane = isfinite(out_figures->bytes_per_second) &&
                         out_figures->bytes_per_second > 0 && out_figures->link_seconds >= 0 &&
                         out_figures->link_bytes_per_second >= 0;
    if (is_sane) return GGML_HOST_OK;
    return ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                     "islands: figures of '%s': size must be set, the rate be positive and times "
                     "not negative",
                     ggml_backend_dev_name(device));
}

static enum ggml_host_status ask_devices(struct planner *planner,
                                         const ggml_backend_dev_t *devices) {
    const size_t n = planner->n_members;
    enum ggml_host_status status = GGML_HOST_OK;
    for (size_t i = 0; i < n && status == GGML_HOST_OK; ++i) {
        struct member *member = &planner->members[i];
        const struct ggml_device_figures *const *given = planner->model->figures;
        size_t free_bytes = 0, total = 0;
        member->device = devices[i];
        status = take_figures(devices[i], given ? given[i] : NULL, &member->figures);
        if (status == GGML_HOST_OK) ggml_backend_dev_memory(devices[i], &free_bytes, &total);
        member->memory = free_bytes;
    }
    for (size_t i = 0; i < n * n && status == GGML_HOST_OK; ++i)
        if (i / n != i % n)
            status = link_between(&planner->members[i / n], &planner->members[i % n],
                                  &planner->links[i]);
    return status;
}

// --- the entry -----------------------------------------------------------------------------------

static void write_out(const struct planner *planner, struct ggml_island *out_islands) {
    uint32_t first_layer = 0;
    for (size_t i = 0; i < planner->n; ++i) {
        const struct island *island = &planner->islands[i];
        out_islands[i] = (struct ggml_island){.n_devices = (uint32_t)island->n,
                                              .first_layer = first_layer,
                                              .n_layers = island->n_layers,
                                              .layer_seconds = island->layer_seconds};
        for (size_t k = 0; k < island->n; ++k)
            out_islands[i].devices[k] = planner->members[island->members[k]].device;
        first_layer += island->n_layers;
    }
}

static enum ggml_host_status plan(struct planner *planner, const ggml_backend_dev_t *devices,
                                  struct ggml_island *out_islands, size_t *out_n) {
    const enum ggml_host_status status = ask_devices(planner, devices);
    if (status != GGML_HOST_OK) return status;
    for (size_t i = 0; i < planner->n; ++i) {
        planner->islands[i] = (struct island){.n = 1, .members = {(uint32_t)i}};
        rate(planner, &planner->islands[i]);
    }
    struct cost cost = share_layers(planner, planner->islands, planner->n);
    while (unite(planner, &cost)) {
    }
    uint32_t n_layers = 0;
    for (size_t i = 0; i < planner->n; ++i)
        n_layers += planner->islands[i].n_layers;
    if (n_layers < planner->model->n_layers)
        return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "islands: %u of %u layers fit", n_layers,
                         planner->model->n_layers);
    write_out(planner, out_islands);
    *out_n = planner->n;
    return GGML_HOST_OK;
}

// Devices that exist, each once.
static bool are_devices(const ggml_backend_dev_t *devices, size_t n) {
    for (size_t i = 0; i < n; ++i) {
        if (!devices[i]) return false;
        for (size_t k = 0; k < i; ++k)
            if (devices[k] == devices[i]) return false;
    }
    return true;
}

static bool is_model(const struct ggml_split_model *model) {
    return model && model->size >= sizeof(*model) && model->layer_bytes > 0 && model->n_layers > 0;
}

enum ggml_host_status ggml_host_plan_islands(const ggml_backend_dev_t *devices, size_t n_devices,
                                             const struct ggml_split_model *model,
                                             struct ggml_island *out_islands, size_t *out_n) {
    const bool is_sound = devices && n_devices > 0 && n_devices <= MOST_DEVICES && out_islands;
    if (out_n) *out_n = 0;
    if (!is_sound || !out_n || !is_model(model) || !are_devices(devices, n_devices)) {
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                         "%s: 1 to %d different devices, and a model with layers", __func__,
                         MOST_DEVICES);
    }
    struct planner planner = {.model = model, .n_members = n_devices, .n = n_devices};
    struct island *islands = ggml_mem_calloc(3 * n_devices, sizeof(*islands));
    enum ggml_host_status status = GGML_HOST_OUT_OF_MEMORY;
    planner.members = ggml_mem_calloc(n_devices, sizeof(*planner.members));
    planner.links = ggml_mem_calloc(n_devices * n_devices, sizeof(*planner.links));
    if (planner.members && planner.links && islands) {
        planner.islands = islands;
        planner.tried = islands + n_devices;
        planner.best = islands + 2 * n_devices;
        status = plan(&planner, devices, out_islands, out_n);
    } else {
        ggml_fail(status, "%s: no memory for %zu devices", __func__, n_devices);
    }
    ggml_mem_free(planner.members);
    ggml_mem_free(planner.links);
    ggml_mem_free(islands);
    return status;
}
