// SPDX-License-Identifier: MIT
// What the application sets: callbacks, pins, streams that are allowed, figures of devices.
#include <math.h>

#include "base/array.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/thread_guard.h"
#include "device/check.h"
#include "sched/sched.h"

// --- callbacks; NULL takes one back

void ggml_backend_sched_set_copy_callback(ggml_backend_sched_t sched,
                                          ggml_backend_sched_copy_callback callback,
                                          void *user_data) {
    THREAD_GUARD_VOID(sched);
    if (!device_require_arg(sched, __func__, "scheduler")) return;
    sched->callbacks.copy = callback;
    sched->callbacks.copy_data = user_data;
}

void ggml_backend_sched_set_realloc_callback(ggml_backend_sched_t sched,
                                             ggml_backend_sched_realloc_callback callback,
                                             void *user_data) {
    THREAD_GUARD_VOID(sched);
    if (!device_require_arg(sched, __func__, "scheduler")) return;
    sched->realloc_callback = callback;
    sched->realloc_callback_data = user_data;
}

void ggml_backend_sched_set_eval_callback(ggml_backend_sched_t sched,
                                          ggml_backend_sched_eval_callback callback,
                                          void *user_data) {
    THREAD_GUARD_VOID(sched);
    if (!device_require_arg(sched, __func__, "scheduler")) return;
    sched->callbacks.eval = callback;
    sched->callbacks.eval_data = user_data;
}

// --- pins

// Replaces an earlier pin of the node. False: no memory; nothing has changed then.
static bool store_pin(struct ggml_backend_sched *sched, struct ggml_tensor *node, int32_t b) {
    const int32_t known = sched_find_pin(&sched->setup, node);
    if (known >= 0) {
        sched->setup.pins[known].backend = b;
        return true;
    }
    const struct tensor_list list = {sched->setup.pins, sizeof(sched->setup.pins[0])};
    if (!tensor_index_grow(&sched->setup.pin_ids, list) ||
        !ARRAY_GROW(&sched->setup, pins, (int64_t)sched->setup.n_pins + 1)) {
        return false;
    }
    sched->setup.pins[sched->setup.n_pins] = (struct sched_pin){node, b};
    const struct tensor_list grown = {sched->setup.pins, sizeof(sched->setup.pins[0])};
    tensor_index_add(&sched->setup.pin_ids, grown, node, sched->setup.n_pins++);
    return true;
}

// The pin holds until the next reset, for whichever graph has the node.
void ggml_backend_sched_set_tensor_backend(ggml_backend_sched_t sched, struct ggml_tensor *node,
                                           ggml_backend_t backend) {
    THREAD_GUARD_VOID(sched);
    const int32_t b = sched_known_stream(sched, backend, __func__);
    if (b < 0 || !device_require_arg(node, __func__, "node")) return;
    if (!store_pin(sched, node, b)) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory to pin '%s'", __func__, node->name);
    }
}

// --- streams that nodes may be placed on

// No stream at all means that all are allowed. The last graph may not be repeated under other
// rules.
enum ggml_host_status ggml_sched_set_allowed(ggml_backend_sched_t sched,
                                             const ggml_backend_t *allowed, size_t n_allowed) {
    THREAD_GUARD(sched, GGML_HOST_BUSY);
    if (!sched || (!allowed && n_allowed > 0)) {
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: the scheduler or the list is NULL",
                         __func__);
    }
    for (size_t i = 0; i < n_allowed; ++i) {
        if (allowed[i] && sched_find_stream(sched, allowed[i]) >= 0) continue;
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: stream %zu is not the scheduler's",
                         __func__, i);
    }
    for (int b = 0; b < sched->setup.n_streams; ++b) {
        sched->setup.streams[b].allowed = n_allowed == 0;
    }
    for (size_t i = 0; i < n_allowed; ++i) {
        sched->setup.streams[sched_find_stream(sched, allowed[i])].allowed = true;
    }
    sched->setup.restricted = n_allowed > 0;
    sched->rules_changed = true;
    sched->cache.valid = false;
    return GGML_HOST_OK;
}

// --- figures of devices

// Rates must be positive, times and rates by type not negative, and all of them finite.
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

// The caller's figures, as far as its version of the struct has them, or those of the device.
static enum ggml_host_status take_figures(const struct ggml_backend_sched *sched, size_t b,
                                          const struct ggml_device_figures *given,
                                          struct ggml_device_figures *out_figures) {
    *out_figures = (struct ggml_device_figures){.size = sizeof(*out_figures)};
    if (!given) {
        const enum ggml_host_status status =
            ggml_backend_dev_figures(sched->setup.streams[b].device, out_figures);
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

// What plugins declare of direct copies between streams, for which figures are no better guess.
static enum ggml_host_status take_links(const struct ggml_backend_sched *sched, size_t n,
                                        struct ggml_device_link *out_links) {
    for (size_t i = 0; i < n * n; ++i) {
        ggml_backend_dev_t from = sched->setup.streams[i / n].device;
        ggml_backend_dev_t to = sched->setup.streams[i % n].device;
        out_links[i].size = sizeof(out_links[i]);
        if (from == to) continue;
        const enum ggml_host_status status = ggml_backend_dev_link(from, to, &out_links[i]);
        if (status == GGML_HOST_BAD_PLUGIN || status == GGML_HOST_OUT_OF_MEMORY) return status;
    }
    return GGML_HOST_OK;
}

// Figures and links of all streams; the caller frees both in any case.
static enum ggml_host_status take_costs(const struct ggml_backend_sched *sched, size_t n,
                                        const struct ggml_device_figures *const *given,
                                        struct ggml_device_figures *out_figures,
                                        struct ggml_device_link *out_links) {
    if (!out_figures || !out_links) {
        return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "ggml_sched_set_costs: no memory for %zu streams",
                         n);
    }
    for (size_t b = 0; b < n; ++b) {
        const enum ggml_host_status status = take_figures(sched, b, given[b], &out_figures[b]);
        if (status != GGML_HOST_OK) return status;
    }
    return take_links(sched, n, out_links);
}

// All or nothing: the figures change when those of all streams are sane.
enum ggml_host_status ggml_sched_set_costs(ggml_backend_sched_t sched,
                                           const struct ggml_device_figures *const *figures) {
    THREAD_GUARD(sched, GGML_HOST_BUSY);
    if (!device_require_arg(sched, __func__, "scheduler")) return GGML_HOST_INVALID_ARGUMENT;
    const size_t n = (size_t)sched->setup.n_streams;
    struct ggml_device_figures *copy = figures ? ggml_mem_calloc(n, sizeof(copy[0])) : NULL;
    struct ggml_device_link *links = figures ? ggml_mem_calloc(n * n, sizeof(links[0])) : NULL;
    const enum ggml_host_status status =
        figures ? take_costs(sched, n, figures, copy, links) : GGML_HOST_OK;
    if (status != GGML_HOST_OK) {
        ggml_mem_free(copy);
        ggml_mem_free(links);
        return status;
    }
    ggml_mem_free(sched->setup.links);
    sched->setup.links = links;
    ggml_mem_free(sched->setup.figures);
    sched->setup.figures = copy;
    sched->placement.seconds = 0;
    sched->rules_changed = true;
    sched->cache.valid = false;
    return GGML_HOST_OK;
}
