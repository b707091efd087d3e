// SPDX-License-Identifier: MIT
// Creation and end of a scheduler, and its getters.
#include "base/mem.h"
#include "base/status.h"
#include "base/thread_guard.h"
#include "plugin/registry/live.h"
#include "sched/profile.h"
#include "sched/sched.h"

const char *sched_reason_text(enum sched_reason reason) {
    static const char *const texts[] = {
#define SCHED_REASON_ROW(name, text) text,
#include "sched/reason_list.inl"
    };
    return texts[reason];
}

const char *sched_stream_label(const struct ggml_backend_sched *sched, int32_t backend) {
    return ggml_backend_dev_name(sched->streams[backend].device);
}

// Applications free streams in any order. A scheduler over one that is gone can only be freed:
// each public call that would use the stream asks this first and fails.
bool sched_stream_is_live(const struct ggml_backend_sched *sched, int32_t backend,
                          const char *function) {
    if (!atomic_load_explicit(&sched->streams[backend].watch.ended, memory_order_acquire))
        return true;
    ggml_fail(GGML_HOST_INVALID_ARGUMENT,
              "%s: stream %d of the scheduler (%s) has been freed; free the scheduler too",
              function, (int)backend, sched_stream_label(sched, backend));
    return false;
}

// -1 if the stream is not one of the scheduler's. Linear: schedulers have a handful of streams,
// and only calls of the application ask.
int32_t sched_find_stream(const struct ggml_backend_sched *sched, ggml_backend_t backend) {
    for (int b = 0; b < sched->n_backends; ++b) {
        if (sched->streams[b].backend == backend) return b;
    }
    return -1;
}

static bool is_given(const void *object, const char *function, const char *what) {
    if (!object) ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: the %s is NULL", function, what);
    return object != NULL;
}

// --- creation

// Tells which one by its index: there is no name yet.
static bool check_stream(ggml_backend_t *backends, int b) {
    const char *function = "ggml_backend_sched_new";
    if (!backends[b] || !backends[b]->device) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: stream %d is NULL or has no device", function,
                  b);
        return false;
    }
    return true;
}

// ggml asks for the same order: the last stream takes what no other one can compute, and a CPU
// device alone computes every operation.
static bool check_streams(ggml_backend_t *backends, int n_backends) {
    const char *function = "ggml_backend_sched_new";
    if (!backends || n_backends <= 0) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: there are no streams", function);
        return false;
    }
    for (int b = 0; b < n_backends; ++b) {
        if (!check_stream(backends, b)) return false;
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

// The first stream with the same memory, perhaps b itself. Streams that share memory share a
// pool of the allocator, so that one does not hold what another could use.
static int32_t find_pool(const struct ggml_backend_sched *sched, int b) {
    for (int other = 0; other < b; ++other) {
        if (sched->streams[other].buft == sched->streams[b].buft) return other;
    }
    return b;
}

// False after telling why: no memory, or `buft` (NULL: the default one of the device) is none
// that the stream's device can use.
static bool set_memory(struct ggml_backend_sched *sched, int b, ggml_backend_buffer_type_t buft) {
    struct sched_stream *stream = &sched->streams[b];
    if (!buft) buft = ggml_backend_get_default_buffer_type(stream->backend);
    if (!buft) return false;
    stream->buft = sched_buft_id(sched, buft);
    if (stream->buft < 0) return false;
    stream->pool_stream = find_pool(sched, b);
    if (sched_reads(sched, stream->buft, b)) return true;
    ggml_fail(GGML_HOST_INVALID_ARGUMENT,
              "ggml_backend_sched_new: %s can't use the %s memory chosen for it",
              sched_stream_label(sched, b), ggml_backend_buft_name(buft));
    return false;
}

// Devices without events are waited for on the host.
static bool add_events(struct ggml_backend_sched *sched, int b) {
    struct sched_stream *stream = &sched->streams[b];
    struct ggml_backend_dev_props props;
    if (sched->pipeline_depth == 1) return true;
    ggml_backend_dev_get_props(stream->device, &props);
    const struct ggml_stream_table *table = stream->backend->table;
    const bool offered = props.caps.events && table->event_record && table->event_wait;
    for (int c = 0; c < sched->pipeline_depth && offered; ++c) {
        stream->events[c] = ggml_backend_event_new(stream->device);
        if (!stream->events[c]) return false;
    }
    return true;
}

// Two of them: results live in `galloc`, planned for each graph; inputs of a pipelined graph, of
// which there is one copy per slot, in `slot_galloc`, so that a new plan of results leaves them
// alone.
static bool make_allocators(struct ggml_backend_sched *sched) {
    const size_t n = (size_t)sched->n_backends;
    ggml_backend_buffer_type_t *bufts = ggml_mem_calloc(n, sizeof(bufts[0]));
    if (!bufts) return false;
    for (size_t b = 0; b < n; ++b) {
        bufts[b] = sched->bufts[sched->streams[b].buft].buft;
    }
    sched->galloc = ggml_gallocr_new_n(bufts, sched->n_backends);
    if (sched->pipeline_depth > 1)
        sched->slot_galloc = ggml_gallocr_new_n(bufts, sched->n_backends);
    ggml_mem_free(bufts);
    if (!sched->galloc || (!sched->slot_galloc && sched->pipeline_depth > 1)) return false;
    const size_t n_pools = (size_t)sched->galloc->n_pools;
    sched->shares_pools = n_pools < n;
    sched->pool_plans = ggml_mem_calloc(n_pools, sizeof(sched->pool_plans[0]));
    sched->bases = ggml_mem_calloc(n_pools, sizeof(sched->bases[0]));
    // What planning asks of a stream's memory, read once: it is needed for each node.
    for (size_t b = 0; b < n; ++b) {
        struct sched_stream *stream = &sched->streams[b];
        stream->pool = sched->galloc->pool_of[b];
        const struct gallocr_pool *pool = &sched->galloc->pools[stream->pool];
        stream->asks_size = pool->buft->table->get_alloc_size != NULL;
        stream->alignment = pool->alignment;
    }
    return sched->pool_plans && sched->bases &&
           sched_caches_begin(&sched->caches, sched->galloc->n_pools);
}

// Everything that may fail about a new scheduler. What it made is freed by
// ggml_backend_sched_free(), which takes a scheduler that is half made.
static bool prepare(struct ggml_backend_sched *sched, ggml_backend_t *backends,
                    ggml_backend_buffer_type_t *bufts, size_t graph_size) {
    const size_t n = (size_t)sched->n_backends;
    sched->streams = ggml_mem_calloc(n, sizeof(sched->streams[0]));
    if (!sched->streams) return false;
    for (int b = 0; b < sched->n_backends; ++b) {
        sched->streams[b].backend = backends[b];
        sched->streams[b].device = backends[b]->device;
        sched->streams[b].allowed = true;
        sched->streams[b].contract_minor = host_device_minor(backends[b]->device);
        stream_watch_start(&sched->streams[b].watch, backends[b]);
    }
    for (int b = 0; b < sched->n_backends; ++b) {
        if (!set_memory(sched, b, bufts ? bufts[b] : NULL) || !add_events(sched, b)) return false;
    }
    sched->n_own_bufts = sched->n_bufts;
    sched_learn_kinds(sched);
    // A hint only, which comes from the application: a huge one must not cost memory.
    const size_t hint = graph_size < (1u << 24) ? graph_size : (1u << 24);
    return make_allocators(sched) && tensor_index_clear(&sched->value_ids, hint);
}

ggml_backend_sched_t ggml_backend_sched_new(ggml_backend_t *backends,
                                            ggml_backend_buffer_type_t *bufts, int n_backends,
                                            size_t graph_size, bool parallel, bool op_offload) {
    if (!check_streams(backends, n_backends)) return NULL;
    const unsigned long told = ggml_fail_count();
    struct ggml_backend_sched *sched = ggml_mem_calloc(1, sizeof(*sched));
    if (!sched) goto fail;
    sched->function = __func__;
    sched->n_backends = n_backends;
    sched->pipeline_depth = parallel ? SCHED_PIPELINE_COPIES : 1;
    sched->op_offload = op_offload;
    sched->mask_words = (n_backends + 63) / 64;
    sched->n_planned_slots = -1;
    if (prepare(sched, backends, bufts, graph_size)) return sched;
fail:
    ggml_backend_sched_free(sched);
    // Nobody has told why: then it was memory.
    if (ggml_fail_count() == told) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory for a scheduler of %d streams", __func__,
                  n_backends);
    }
    return NULL;
}

// --- end

// Stops watching first: a stream that ends later must not find the scheduler.
static void free_streams(struct ggml_backend_sched *sched) {
    for (int b = 0; sched->streams && b < sched->n_backends; ++b) {
        stream_watch_stop(&sched->streams[b].watch);
        for (int c = 0; c < SCHED_PIPELINE_COPIES; ++c) {
            ggml_backend_event_free(sched->streams[b].events[c]);
        }
    }
    for (int32_t i = 0; i < sched->n_bufts; ++i) {
        ggml_mem_free(sched->bufts[i].readers);
    }
    ggml_mem_free(sched->bufts);
    ggml_mem_free(sched->streams);
}

// Frees all that is made per graph; most of it is kept from one graph to the next and only
// grows.
static void free_graph(struct ggml_backend_sched *sched) {
    sched_caches_free(&sched->caches);
    sched_partition_free(&sched->partition);
    sched_liveness_free(&sched->live);
    tensor_index_free(&sched->value_ids);
    tensor_index_free(&sched->pin_ids);
    for (int i = 0; i < SCHED_FRAMES; ++i) {
        tensor_pool_free(&sched->frames[i].pool);
        ggml_mem_free(sched->frames[i].graphs);
    }
    for (int i = 0; sched->pool_plans && sched->galloc && i < sched->galloc->n_pools; ++i) {
        memory_chunks_free(&sched->pool_plans[i].chunks);
    }
    void *const arrays[] = {
        sched->pins,       sched->values,      sched->first_edge,   sched->edges,
        sched->placed,     sched->answers,     sched->pool_plans,   sched->bases,
        sched->order_room, sched->slots.leafs, sched->slot_ids,     sched->results,
        sched->used,       sched->use_counts,  sched->copy_tensors,
    };
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); ++i) {
        ggml_mem_free(arrays[i]);
    }
}

void ggml_backend_sched_free(ggml_backend_sched_t sched) {
    THREAD_GUARD_END(sched);
    if (!sched) return;
    // Queued work reads and writes the buffers that are freed below. Without an allocator
    // nothing was ever queued.
    if (sched->galloc) sched_wait_all(sched);
    sched_profile_drop(sched);
    free_streams(sched);
    free_graph(sched);
    ggml_gallocr_free(sched->galloc);
    ggml_gallocr_free(sched->slot_galloc);
    ggml_mem_free(sched->figures);
    ggml_mem_free(sched);
}

// --- questions

int ggml_backend_sched_get_n_backends(ggml_backend_sched_t sched) {
    return is_given(sched, __func__, "scheduler") ? sched->n_backends : 0;
}

ggml_backend_t ggml_backend_sched_get_backend(ggml_backend_sched_t sched, int i) {
    if (!is_given(sched, __func__, "scheduler")) return NULL;
    if (i >= 0 && i < sched->n_backends) {
        return sched_stream_is_live(sched, i, __func__) ? sched->streams[i].backend : NULL;
    }
    ggml_fail(GGML_HOST_OUT_OF_RANGE, "%s: stream %d of %d", __func__, i, sched->n_backends);
    return NULL;
}

int ggml_backend_sched_get_n_splits(ggml_backend_sched_t sched) {
    THREAD_GUARD(sched, 0);
    return is_given(sched, __func__, "scheduler") ? sched->partition.n_splits : 0;
}

// ggml's name for what is called the depth of the pipeline here.
int ggml_backend_sched_get_n_copies(ggml_backend_sched_t sched) {
    return is_given(sched, __func__, "scheduler") ? sched->pipeline_depth : 0;
}

// -1 after telling why, also for NULL.
static int32_t known_stream(ggml_backend_sched_t sched, ggml_backend_t backend,
                            const char *function) {
    if (!is_given(sched, function, "scheduler") || !is_given(backend, function, "stream"))
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
    const int32_t b = known_stream(sched, backend, __func__);
    return b >= 0 ? sched->bufts[sched->streams[b].buft].buft : NULL;
}

// What streams share is counted for the first of them, so that a sum over all is what is used.
size_t ggml_backend_sched_get_buffer_size(ggml_backend_sched_t sched, ggml_backend_t backend) {
    THREAD_GUARD(sched, 0);
    const int32_t b = known_stream(sched, backend, __func__);
    if (b < 0) return 0;
    size_t size = ggml_gallocr_get_buffer_size(sched->galloc, b);
    if (sched->slot_galloc) size += ggml_gallocr_get_buffer_size(sched->slot_galloc, b);
    return size;
}

void ggml_backend_sched_set_copy_callback(ggml_backend_sched_t sched,
                                          ggml_backend_sched_copy_callback callback,
                                          void *user_data) {
    THREAD_GUARD_VOID(sched);
    if (!is_given(sched, __func__, "scheduler")) return;
    sched->copy_callback = callback;
    sched->copy_callback_data = user_data;
}

void ggml_backend_sched_set_realloc_callback(ggml_backend_sched_t sched,
                                             ggml_backend_sched_realloc_callback callback,
                                             void *user_data) {
    THREAD_GUARD_VOID(sched);
    if (!is_given(sched, __func__, "scheduler")) return;
    sched->realloc_callback = callback;
    sched->realloc_callback_data = user_data;
}

void ggml_backend_sched_set_eval_callback(ggml_backend_sched_t sched,
                                          ggml_backend_sched_eval_callback callback,
                                          void *user_data) {
    THREAD_GUARD_VOID(sched);
    if (!is_given(sched, __func__, "scheduler")) return;
    sched->callback = callback;
    sched->callback_data = user_data;
}

// --- pins

// Replaces an earlier pin of the node. False: no memory; nothing has changed then.
static bool store_pin(struct ggml_backend_sched *sched, struct ggml_tensor *node, int32_t b) {
    const int32_t known = sched_find_pin(sched, node);
    if (known >= 0) {
        sched->pins[known].backend = b;
        return true;
    }
    const struct tensor_list list = {sched->pins, sizeof(sched->pins[0])};
    if (!tensor_index_grow(&sched->pin_ids, list) ||
        !sched_grow(&sched->pins, &sched->pins_capacity, (int64_t)sched->n_pins + 1,
                    sizeof(sched->pins[0]))) {
        return false;
    }
    sched->pins[sched->n_pins] = (struct sched_pin){node, b};
    const struct tensor_list grown = {sched->pins, sizeof(sched->pins[0])};
    tensor_index_add(&sched->pin_ids, grown, node, sched->n_pins++);
    return true;
}

void ggml_backend_sched_set_tensor_backend(ggml_backend_sched_t sched, struct ggml_tensor *node,
                                           ggml_backend_t backend) {
    THREAD_GUARD_VOID(sched);
    const int32_t b = known_stream(sched, backend, __func__);
    if (b < 0 || !is_given(node, __func__, "node")) return;
    if (!store_pin(sched, node, b)) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory to pin '%s'", __func__, node->name);
    }
}

// Where the last graph placed the node; where it was pinned, if no graph is split or it is not
// in it.
ggml_backend_t ggml_backend_sched_get_tensor_backend(ggml_backend_sched_t sched,
                                                     struct ggml_tensor *node) {
    THREAD_GUARD(sched, NULL);
    if (!is_given(sched, __func__, "scheduler") || !is_given(node, __func__, "node")) return NULL;
    int32_t b = -1;
    const int32_t value = sched->state != SCHED_RESET ? sched_find_value(sched, node) : -1;
    if (value >= sched->n_values) {
        b = sched->partition.copies[value - sched->n_values].backend;
    } else if (value >= 0) {
        b = sched->placed[value].backend;
    }
    const int32_t pin = sched_find_pin(sched, node);
    if (b < 0 && pin >= 0) b = sched->pins[pin].backend;
    return b >= 0 ? sched->streams[b].backend : NULL;
}
