// SPDX-License-Identifier: MIT
// Creation and end of a scheduler, and its getters.
#include "base/mem.h"
#include "base/status.h"
#include "base/thread_guard.h"
#include "device/check.h"
#include "plugin/registry/live.h"
#include "sched/record/record.h"
#include "sched/sched.h"

// Applications free streams in any order. A scheduler over one that is gone can only be freed:
// each public call that would use the stream asks this first and fails.
bool sched_stream_is_live(const struct ggml_backend_sched *sched, int32_t backend,
                          const char *function) {
    if (!atomic_load_explicit(&sched->runs.queues[backend].watch.ended, memory_order_acquire))
        return true;
    ggml_fail(GGML_HOST_INVALID_ARGUMENT,
              "%s: stream %d of the scheduler (%s) has been freed; free the scheduler too",
              function, (int)backend, sched_stream_label(&sched->setup, backend));
    return false;
}

// -1 if the stream is not one of the scheduler's. Linear: schedulers have a handful of streams,
// and only calls of the application ask.
int32_t sched_find_stream(const struct ggml_backend_sched *sched, ggml_backend_t backend) {
    for (int b = 0; b < sched->setup.n_streams; ++b) {
        if (sched->setup.streams[b].backend == backend) return b;
    }
    return -1;
}

// --- creation

// ggml asks for the same order: the last stream takes what no other one can compute, and a CPU
// device alone computes every operation.
static bool check_streams(ggml_backend_t *backends, int n_backends) {
    const char *function = "ggml_backend_sched_new";
    if (!backends || n_backends <= 0) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: there are no streams", function);
        return false;
    }
    for (int b = 0; b < n_backends; ++b) {
        if (backends[b] && backends[b]->device) continue;
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: stream %d is NULL or has no device", function,
                  b);
        return false;
    }
    ggml_backend_dev_t last = backends[n_backends - 1]->device;
    if (ggml_backend_dev_type(last) == GGML_BACKEND_DEVICE_TYPE_CPU) return true;
    ggml_fail(
        GGML_HOST_INVALID_ARGUMENT,
        "%s: the last stream is on %s; it must be on a CPU device, which computes what no other "
        "device does",
        function, ggml_backend_dev_name(last));
    return false;
}

// False after telling why: no memory, or `buft` (NULL: the default one of the device) is none
// that the stream's device can use.
static bool set_memory(struct sched_stream *stream, ggml_backend_buffer_type_t buft) {
    stream->buft = buft ? buft : ggml_backend_get_default_buffer_type(stream->backend);
    if (!stream->buft) return false;
    if (ggml_backend_dev_supports_buft(stream->device, stream->buft)) return true;
    ggml_fail(GGML_HOST_INVALID_ARGUMENT,
              "ggml_backend_sched_new: %s can't use the %s memory chosen for it",
              ggml_backend_dev_name(stream->device), ggml_backend_buft_name(stream->buft));
    return false;
}

// What the device says of itself. Devices without events are waited for on the host.
static bool ask_device(const struct sched_setup *setup, struct sched_stream *stream) {
    struct ggml_backend_dev_props props;
    ggml_backend_dev_get_props(stream->device, &props);
    stream->queues = props.caps.async;
    const struct ggml_stream_table *table = stream->backend->table;
    const bool offered =
        setup->pipeline_depth > 1 && props.caps.events && table->event_record && table->event_wait;
    for (int c = 0; c < setup->pipeline_depth && offered; ++c) {
        stream->events[c] = ggml_backend_event_new(stream->device);
        if (!stream->events[c]) return false;
    }
    return true;
}

// Everything that may fail about a new scheduler. What it made is freed by
// ggml_backend_sched_free(), which takes a scheduler that is half made.
static bool prepare(struct ggml_backend_sched *sched, ggml_backend_t *backends,
                    ggml_backend_buffer_type_t *bufts, size_t graph_size) {
    struct sched_setup *setup = &sched->setup;
    const size_t n = (size_t)setup->n_streams;
    setup->streams = ggml_mem_calloc(n, sizeof(setup->streams[0]));
    sched->runs.queues = ggml_mem_calloc(n, sizeof(sched->runs.queues[0]));
    sched->runs.uses = ggml_mem_calloc(n * n, sizeof(sched->runs.uses[0]));
    if (!setup->streams || !sched->runs.queues || !sched->runs.uses) return false;
    for (size_t b = 0; b < n; ++b) {
        setup->streams[b].backend = backends[b];
        setup->streams[b].device = backends[b]->device;
        setup->streams[b].allowed = true;
        stream_watch_start(&sched->runs.queues[b].watch, backends[b]);
    }
    for (size_t b = 0; b < n; ++b) {
        struct sched_stream *stream = &setup->streams[b];
        if (!set_memory(stream, bufts ? bufts[b] : NULL) || !ask_device(setup, stream))
            return false;
    }
    // A hint only, which comes from the application: a huge one must not cost memory.
    const size_t hint = graph_size < (1u << 24) ? graph_size : (1u << 24);
    return sched_pools_make(setup) && sched_graph_begin(setup, hint, &sched->graph) &&
           sched_plan_begin(setup, &sched->plan);
}

ggml_backend_sched_t ggml_backend_sched_new(ggml_backend_t *backends,
                                            ggml_backend_buffer_type_t *bufts, int n_backends,
                                            size_t graph_size, bool parallel, bool op_offload) {
    if (!check_streams(backends, n_backends)) return NULL;
    const unsigned long failures_before = ggml_fail_count();
    struct ggml_backend_sched *sched = ggml_mem_calloc(1, sizeof(*sched));
    if (!sched) goto fail;
    sched->setup.function = __func__;
    sched->setup.n_streams = n_backends;
    sched->setup.pipeline_depth = parallel ? SCHED_PIPELINE_COPIES : 1;
    sched->setup.op_offload = op_offload;
    sched->setup.own_tensors = sched->runs.pools;
    sched_cache_begin(&sched->cache);
    if (prepare(sched, backends, bufts, graph_size)) return sched;
fail:
    ggml_backend_sched_free(sched);
    // Nobody has told why: then it was memory.
    if (ggml_fail_count() == failures_before) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory for a scheduler of %d streams", __func__,
                  n_backends);
    }
    return NULL;
}

// --- end

// Stops watching first: a stream that ends later must not find the scheduler.
static void free_streams(struct ggml_backend_sched *sched) {
    for (int b = 0; sched->runs.queues && b < sched->setup.n_streams; ++b) {
        stream_watch_stop(&sched->runs.queues[b].watch);
    }
    for (int b = 0; sched->setup.streams && b < sched->setup.n_streams; ++b) {
        for (int c = 0; c < SCHED_PIPELINE_COPIES; ++c) {
            ggml_backend_event_free(sched->setup.streams[b].events[c]);
        }
    }
    ggml_mem_free(sched->runs.queues);
    ggml_mem_free(sched->runs.uses);
    ggml_mem_free(sched->setup.streams);
    ggml_mem_free(sched->setup.figures);
    ggml_mem_free(sched->setup.links);
    ggml_mem_free(sched->setup.pins);
    tensor_index_free(&sched->setup.pin_ids);
}

// Frees the results of the passes, which are kept from one graph to the next and only grow.
static void free_results(struct ggml_backend_sched *sched) {
    sched_cache_free(&sched->cache);
    sched_buffer_plan_free(&sched->buffer_plan);
    sched_plan_free(&sched->setup, &sched->plan);
    sched_liveness_free(&sched->live);
    sched_subgraphs_free(&sched->subgraphs);
    ggml_mem_free(sched->copies.tensors);
    sched_partition_free(&sched->partition);
    sched_placement_free(&sched->placement);
    sched_graph_free(&sched->graph);
    for (int i = 0; i < SCHED_FRAMES; ++i) {
        tensor_pool_free(&sched->runs.pools[i]);
        ggml_mem_free(sched->runs.frames[i].parts.graphs);
    }
}

void ggml_backend_sched_free(ggml_backend_sched_t sched) {
    THREAD_GUARD_END(sched);
    if (!sched) return;
    // Queued work reads and writes the buffers that are freed below. Without pools nothing was ever
    // queued.
    if (sched->setup.pools) sched_wait_all(&sched->setup, &sched->runs);
    ggml_sched_profile_free(sched_profile_stop(&sched->setup, &sched->runs));
    free_results(sched);
    sched_pools_free(&sched->setup);
    free_streams(sched);
    ggml_mem_free(sched);
}

// --- questions

int ggml_backend_sched_get_n_backends(ggml_backend_sched_t sched) {
    return device_require_arg(sched, __func__, "scheduler") ? sched->setup.n_streams : 0;
}

ggml_backend_t ggml_backend_sched_get_backend(ggml_backend_sched_t sched, int i) {
    if (!device_require_arg(sched, __func__, "scheduler")) return NULL;
    if (i >= 0 && i < sched->setup.n_streams) {
        return sched_stream_is_live(sched, i, __func__) ? sched->setup.streams[i].backend : NULL;
    }
    ggml_fail(GGML_HOST_OUT_OF_RANGE, "%s: stream %d of %d", __func__, i, sched->setup.n_streams);
    return NULL;
}

int ggml_backend_sched_get_n_splits(ggml_backend_sched_t sched) {
    THREAD_GUARD(sched, 0);
    return device_require_arg(sched, __func__, "scheduler") ? sched->partition.n_splits : 0;
}

// ggml's name for what is called the depth of the pipeline here.
int ggml_backend_sched_get_n_copies(ggml_backend_sched_t sched) {
    return device_require_arg(sched, __func__, "scheduler") ? sched->setup.pipeline_depth : 0;
}

// -1 after telling why, also for NULL.
int32_t sched_known_stream(ggml_backend_sched_t sched, ggml_backend_t backend,
                           const char *function) {
    if (!device_require_arg(sched, function, "scheduler") ||
        !device_require_arg(backend, function, "stream"))
        return -1;
    const int32_t b = sched_find_stream(sched, backend);
    if (b < 0) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: the stream is not one of the scheduler's",
                  function);
    }
    return b;
}

ggml_backend_buffer_type_t ggml_backend_sched_get_buffer_type(ggml_backend_sched_t sched,
                                                              ggml_backend_t backend) {
    const int32_t b = sched_known_stream(sched, backend, __func__);
    return b >= 0 ? sched->setup.streams[b].buft : NULL;
}

size_t ggml_backend_sched_get_buffer_size(ggml_backend_sched_t sched, ggml_backend_t backend) {
    THREAD_GUARD(sched, 0);
    const int32_t b = sched_known_stream(sched, backend, __func__);
    return b >= 0 ? sched_pools_size(&sched->setup, b) : 0;
}

// Where the last graph placed the node; where it was pinned, if no graph is split or it is not
// in it.
ggml_backend_t ggml_backend_sched_get_tensor_backend(ggml_backend_sched_t sched,
                                                     struct ggml_tensor *node) {
    THREAD_GUARD(sched, NULL);
    if (!device_require_arg(sched, __func__, "scheduler") ||
        !device_require_arg(node, __func__, "node"))
        return NULL;
    int32_t b = -1;
    const int32_t value = sched->state != SCHED_RESET ? sched_find_value(sched, node) : -1;
    if (value >= sched->graph.n_values) {
        b = sched->partition.copies[value - sched->graph.n_values].backend;
    } else if (value >= 0) {
        b = sched->placement.placed[value].backend;
    }
    const int32_t pin = sched_find_pin(&sched->setup, node);
    if (b < 0 && pin >= 0) b = sched->setup.pins[pin].backend;
    return b >= 0 ? sched->setup.streams[b].backend : NULL;
}
