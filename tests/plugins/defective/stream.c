// SPDX-License-Identifier: MIT
// Streams: queues that are worked off when somebody waits for them.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "defective.h"

enum { MAX_QUEUE = 64 };

enum item_kind { ITEM_SET, ITEM_GET, ITEM_COPY, ITEM_GRAPH, ITEM_WAIT };

// A graph that is computed later than it is passed: a copy.
struct kept_graph {
    struct ggml_graph graph;
    const void *original;        // list of nodes
    uint64_t tag;                // of its times
    struct ggml_tensor *nodes[]; // and the use counts
};

struct item {
    enum item_kind kind;
    const struct ggml_tensor *tensor;
    void *data;
    size_t offset, size;
    const struct ggml_tensor *src;
    struct kept_graph *graph;
    struct stream *other;
};

struct stream {
    pid_t user;                     // the thread that computed first
    const struct ggml_tensor *kept; // of the last graph
    struct item queue[MAX_QUEUE];
    int n;
    enum ggml_status status; // of what was worked off since it was asked for
    ggml_abort_callback abort;
    void *abort_data;
    const void *last; // list of nodes that was computed last
    struct profile *profile;
    pthread_t thread;
    bool has_thread;
    atomic_bool has_begun, ends;
};

struct event {
    struct stream *stream; // NULL: never recorded
    int n_waits;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static pthread_mutex_t extra_lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_lost[N_DEVICES];

void stream_lock(bool locked) {
    if (locked) {
        pthread_mutex_lock(&extra_lock);
    } else {
        pthread_mutex_unlock(&extra_lock);
    }
}

bool stream_is_lost(ggml_backend_dev_t device) {
    return is_lost[device - defective_devices];
}

bool stream_lose(ggml_backend_dev_t device) {
    is_lost[device - defective_devices] = true;
    return true;
}

static bool is_aborted(const struct stream *stream) {
    if (!stream->abort) return false;
    if (HAS(callback_locked)) stream_lock(true);
    const bool aborted = stream->abort(stream->abort_data);
    if (HAS(callback_locked)) stream_lock(false);
    return aborted;
}

static size_t kept_bytes(const struct ggml_graph *graph) {
    return sizeof(struct kept_graph) +
           (size_t)graph->n_nodes * (sizeof(graph->nodes[0]) + sizeof(graph->use_counts[0]));
}

static struct kept_graph *keep_graph(const struct ggml_graph *graph) {
    struct kept_graph *kept = ggml_aligned_malloc(kept_bytes(graph));
    if (!kept) abort();
    kept->graph = *graph;
    kept->graph.nodes = kept->nodes;
    kept->graph.use_counts = (const int32_t *)memcpy(
        kept->nodes + graph->n_nodes, graph->use_counts, (size_t)graph->n_nodes * sizeof(int32_t));
    kept->original = graph->nodes;
    for (int i = 0; i < graph->n_nodes; ++i)
        kept->nodes[i] = graph->nodes[i];
    return kept;
}

static void free_kept(struct kept_graph *kept) {
    if (kept) ggml_aligned_free(kept, kept_bytes(&kept->graph));
}

// A node whose result is kept in registers until the next node has read it, if that one alone does.
static bool is_fused(const struct ggml_graph *graph, int i) {
    const struct ggml_tensor *node = graph->nodes[i];
    int n_uses = 0;
    if (!HAS(use_counts_ignored) || node->flags & GGML_TENSOR_FLAG_OUTPUT) return false;
    for (int k = 0; k < graph->n_nodes; ++k) {
        for (int s = 0; s < GGML_MAX_SRC; ++s)
            n_uses += graph->nodes[k]->src[s] == node;
    }
    return n_uses == 1 && i + 1 < graph->n_nodes && graph->nodes[i + 1]->src[0] == node &&
           graph->nodes[i + 1]->op == GGML_OP_ADD && graph->nodes[i + 1]->data != node->data;
}

static void forget_node(struct ggml_tensor *node) {
    memset(node->data, 0, ggml_nbytes(node));
}

static enum ggml_status run_graph(struct stream *stream, const struct kept_graph *kept) {
    enum ggml_status status = GGML_STATUS_SUCCESS;
    const struct ggml_graph *graph = &kept->graph;
    if (HAS(graph_remembered) && stream->last == kept->original) return status;
    stream->last = kept->original;
    if (HAS(uid_of_other_stream) || HAS(uid_computed_once)) {
        static struct kept_graph *known;
        const bool same = known && graph->uid != 0 && known->graph.uid == graph->uid;
        if (same && HAS(uid_computed_once)) return status;
        if (!same) {
            free_kept(known);
            known = graph->uid ? keep_graph(graph) : NULL;
        }
        if (same) graph = &known->graph;
    }
    if (HAS(structure_addresses_kept) && graph->structure != 0) {
        static struct kept_graph *known;
        if (!known || known->graph.structure != graph->structure) {
            free_kept(known);
            known = keep_graph(graph);
        }
        graph = &known->graph;
    }
    if (HAS(empty_graph_fails) && graph->n_nodes == 0) return GGML_STATUS_FAILED;
    const bool reversed = HAS(chain_reversed) && graph->n_nodes > 6;
    for (int i = 0; i < graph->n_nodes && status == GGML_STATUS_SUCCESS; ++i) {
        if (is_aborted(stream) && !HAS(abort_denied)) return GGML_STATUS_ABORTED;
        const int node = reversed ? graph->n_nodes - 1 - i : i;
        const uint64_t begin_ns = profile_begin(stream->profile);
        status = op_compute(graph->nodes[node]);
        profile_node(stream->profile, graph, node, kept->tag, begin_ns);
        if (i > 0 && is_fused(graph, i - 1)) forget_node(graph->nodes[i - 1]);
    }
    return status;
}

static void drain(struct stream *stream);

static void run_item(struct stream *stream, const struct item *item) {
    switch (item->kind) {
    case ITEM_SET:
        if (!HAS(async_set_lost))
            memcpy((char *)item->tensor->data + item->offset, item->data, item->size);
        break;
    case ITEM_GET:
        if (!HAS(async_get_lost))
            memcpy(item->data, (char *)item->tensor->data + item->offset, item->size);
        break;
    case ITEM_COPY:
        if (!HAS(copy_async_lost))
            memcpy(item->tensor->data, item->src->data, ggml_nbytes(item->src));
        break;
    case ITEM_GRAPH: {
        const enum ggml_status status = run_graph(stream, item->graph);
        if (status != GGML_STATUS_SUCCESS) stream->status = status;
        free_kept(item->graph);
        break;
    }
    case ITEM_WAIT:
        if (!HAS(event_wait_ignored)) drain(item->other);
        break;
    }
}

// The lock is held.
static void drain(struct stream *stream) {
    const int n = stream->n;
    stream->n = 0;
    for (int i = 0; i < n; ++i)
        run_item(stream, &stream->queue[HAS(order_reversed) ? n - 1 - i : i]);
}

static void enqueue(struct stream *stream, struct item item) {
    pthread_mutex_lock(&lock);
    if (stream->n == MAX_QUEUE) drain(stream);
    stream->queue[stream->n++] = item;
    pthread_mutex_unlock(&lock);
}

// --- entries -------------------------------------------------------------------------------------

static const char *stream_name(ggml_backend_t backend) {
    (void)backend;
    return HAS(stream_name_null) ? NULL : "DEFECT";
}

struct profile **stream_profile(ggml_backend_t backend) {
    return &((struct stream *)backend->context)->profile;
}

void stream_drain(ggml_backend_t backend) {
    pthread_mutex_lock(&lock);
    drain(backend->context);
    pthread_mutex_unlock(&lock);
}

static int32_t stream_synchronize(ggml_backend_t backend) {
    const struct stream *stream = backend->context;
    if (HAS(idle_hangs) && stream->n == 0) hang();
    stream_drain(backend);
    return GGML_HOST_OK;
}

static void stream_free(ggml_backend_t backend) {
    struct stream *stream = backend->context;
    pthread_mutex_lock(&lock);
    if (!HAS(free_drops)) drain(stream);
    pthread_mutex_unlock(&lock);
    atomic_store(&stream->ends, true);
    if (stream->has_thread) pthread_join(stream->thread, NULL);
    profile_free(stream->profile);
    if (!HAS(stream_leak)) ggml_aligned_free(stream, sizeof(*stream));
    ggml_aligned_free(backend, sizeof(*backend));
}

static int32_t stream_set_async(ggml_backend_t backend, struct ggml_tensor *tensor,
                                const void *data, size_t offset, size_t size) {
    enqueue(backend->context, (struct item){.kind = ITEM_SET,
                                            .tensor = tensor,
                                            .data = (void *)(uintptr_t)data,
                                            .offset = offset,
                                            .size = size});
    return GGML_HOST_OK;
}

static int32_t stream_get_async(ggml_backend_t backend, const struct ggml_tensor *tensor,
                                void *data, size_t offset, size_t size) {
    enqueue(backend->context,
            (struct item){
                .kind = ITEM_GET, .tensor = tensor, .data = data, .offset = offset, .size = size});
    return GGML_HOST_OK;
}

static struct ggml_stream_table stream_table;

static int32_t stream_copy(ggml_backend_t from, ggml_backend_t to, const struct ggml_tensor *src,
                           struct ggml_tensor *dst) {
    const bool mine = from->table == &stream_table && to->table == &stream_table;
    if (!mine) return HAS(copy_foreign) ? GGML_HOST_OK : GGML_HOST_UNSUPPORTED;
    stream_drain(from);
    enqueue(to->context, (struct item){.kind = ITEM_COPY, .tensor = dst, .src = src});
    return GGML_HOST_OK;
}

// What failed before is told by the next graph. An empty queue is worked off at once, so that a
// graph alone tells its own status.
static int32_t stream_compute(ggml_backend_t backend, const struct ggml_graph *graph) {
    static const struct ggml_graph *volatile shared;
    struct stream *stream = backend->context;
    if (stream->user == 0) stream->user = gettid();
    if (HAS(thread_of_first_use) && stream->user != gettid()) return GGML_HOST_FAILED;
    if (HAS(graph_shared)) {
        shared = graph;
        usleep(500);
        graph = shared;
    }
    if (HAS(graph_kept)) {
        if (stream->kept && stream->kept->op == GGML_OP_COUNT) return GGML_HOST_FAILED;
        stream->kept = graph->n_nodes > 0 ? graph->nodes[0] : NULL;
    }
    if (is_lost[backend->device - defective_devices] && !HAS(lost_silent)) {
        if (HAS(lost_hangs)) hang();
        return fail(GGML_HOST_DEVICE_LOST, "the device is lost");
    }
    const bool alone = stream->n == 0 && (graph->n_nodes != 1 || stream->abort ||
                                          graph->nodes[0]->op == GGML_OP_GET_ROWS ||
                                          ggml_nelements(graph->nodes[0]) == 0);
    struct kept_graph *kept = keep_graph(graph);
    kept->tag = profile_tag(stream->profile);
    enqueue(stream, (struct item){.kind = ITEM_GRAPH, .graph = kept});
    pthread_mutex_lock(&lock);
    if (alone) drain(stream);
    const enum ggml_status status = stream->status;
    stream->status = GGML_STATUS_SUCCESS;
    pthread_mutex_unlock(&lock);
    return ggml_entry_status(status);
}

static int32_t stream_record(ggml_backend_t backend, ggml_backend_event_t event) {
    ((struct event *)event->context)->stream = backend->context;
    return GGML_HOST_OK;
}

static int32_t event_synchronize(ggml_backend_event_t event);

static int32_t stream_wait(ggml_backend_t backend, ggml_backend_event_t event) {
    struct event *mark = event->context;
    if (HAS(event_of_other_refused) && event->device != backend->device) abort();
    if (HAS(event_unrecorded_hangs) && !mark->stream) hang();
    if (HAS(event_wait_blocks) && mark->stream) return event_synchronize(event);
    if (mark->stream && mark->stream != backend->context)
        enqueue(backend->context, (struct item){.kind = ITEM_WAIT, .other = mark->stream});
    return GGML_HOST_OK;
}

static int32_t stream_optimize(ggml_backend_t backend, struct ggml_graph *graph) {
    (void)backend;
    if (HAS(optimize_drops)) --graph->n_nodes;
    return GGML_HOST_OK;
}

struct plan {
    struct kept_graph *graph;
    int n;
};

static int32_t plan_create(ggml_backend_t backend, const struct ggml_graph *graph,
                           ggml_backend_graph_plan_t *out_plan) {
    struct plan *plan = ggml_aligned_malloc(sizeof(*plan));
    (void)backend;
    if (!plan) return GGML_HOST_OUT_OF_MEMORY;
    *plan = (struct plan){keep_graph(graph), 0};
    *out_plan = plan;
    return GGML_HOST_OK;
}

static void plan_free(ggml_backend_t backend, ggml_backend_graph_plan_t plan) {
    (void)backend;
    free_kept(((struct plan *)plan)->graph);
    ggml_aligned_free(plan, sizeof(struct plan));
}

static int32_t plan_compute(ggml_backend_t backend, ggml_backend_graph_plan_t handle) {
    struct plan *plan = handle;
    if (HAS(plan_once) && plan->n++ > 0) return GGML_HOST_OK;
    return stream_compute(backend, &plan->graph->graph);
}

static struct ggml_stream_table stream_table = {
    .size = sizeof(struct ggml_stream_table),
    .guid = {'d', 'e', 'f', 'e', 'c', 't'},
    .get_name = stream_name,
    .free = stream_free,
    .set_tensor_async = stream_set_async,
    .get_tensor_async = stream_get_async,
    .cpy_tensor_async = stream_copy,
    .synchronize = stream_synchronize,
    .graph_plan_create = plan_create,
    .graph_plan_free = plan_free,
    .graph_plan_compute = plan_compute,
    .graph_compute = stream_compute,
    .event_record = stream_record,
    .event_wait = stream_wait,
    .graph_optimize = stream_optimize,
};

static void apply_defects(struct ggml_backend *backend) {
    if (HAS(stream_entry_missing)) stream_table.free = NULL;
    if (HAS(caps_async)) stream_table.synchronize = NULL;
    if (HAS(plan_entry_missing)) stream_table.graph_plan_free = NULL;
    if (HAS(event_record_missing)) stream_table.event_record = NULL;
    if (HAS(identity_null)) memset(stream_table.guid, 0, sizeof(stream_table.guid));
    if (HAS(stream_table_missing)) backend->table = NULL;
    if (HAS(stream_table_short)) stream_table.size = 64;
    if (HAS(stream_table_reserved)) stream_table.reserved[7] = (void (*)(void))stream_free;
    if (HAS(stream_device)) backend->device = &defective_devices[0];
    if (HAS(stream_reserved)) backend->reserved[0] = backend;
}

static void *wait_for_end(void *argument) {
    struct stream *stream = argument;
    if (HAS(thread_rebound)) {
        cpu_set_t set;
        const bool known = sched_getaffinity(0, sizeof(set), &set) == 0;
        ggml_sdk_host()->bind_thread(ggml_sdk_host(), 0, 2);
        if (known) sched_setaffinity(0, sizeof(set), &set);
    }
    atomic_store(&stream->has_begun, true);
    while (!atomic_load(&stream->ends))
        usleep(1000);
    return NULL;
}

static void begin_thread(struct stream *stream) {
    cpu_set_t set;
    if (!HAS(thread_unnamed) && !HAS(thread_bound) && !HAS(thread_rebound)) return;
    stream->has_thread = pthread_create(&stream->thread, NULL, wait_for_end, stream) == 0;
    if (!stream->has_thread || HAS(thread_unnamed)) return;
    pthread_setname_np(stream->thread, "defect");
    while (HAS(thread_rebound) && !atomic_load(&stream->has_begun))
        sched_yield();
    if (HAS(thread_rebound)) return;
    sched_getaffinity(0, sizeof(set), &set);
    for (int i = 0; i < CPU_SETSIZE; ++i) {
        if (!CPU_ISSET(i, &set)) continue;
        CPU_CLR(i, &set);
        break;
    }
    pthread_setaffinity_np(stream->thread, sizeof(set), &set);
}

ggml_backend_t stream_new(ggml_backend_dev_t device, const char *params) {
    if (HAS(stream_refused)) return NULL;
    if (HAS(host_of_newest) && !is_attached()) return NULL;
    if (HAS(fork_hangs) && is_forked()) hang();
    process_use();
    if (HAS(parameters_crash) && params && !strchr(params, '=')) abort();
    struct ggml_backend *backend = ggml_aligned_malloc(sizeof(*backend));
    struct stream *stream = ggml_aligned_malloc(sizeof(*stream));
    if (!backend || !stream) {
        ggml_aligned_free(stream, sizeof(*stream));
        if (!HAS(stream_half_made)) ggml_aligned_free(backend, sizeof(*backend));
        return NULL;
    }
    memset(stream, 0, sizeof(*stream));
    *backend = (struct ggml_backend){.table = &stream_table, .device = device, .context = stream};
    apply_defects(backend);
    begin_thread(stream);
    if (HAS(log_locked)) stream_lock(true);
    ggml_sdk_host()->log(ggml_sdk_host(), GGML_LOG_LEVEL_DEBUG, "a stream\n");
    if (HAS(log_locked)) stream_lock(false);
    return backend;
}

void stream_set_abort(ggml_backend_t backend, ggml_abort_callback callback, void *data) {
    struct stream *stream = backend->context;
    stream->abort = callback;
    stream->abort_data = data;
}

// --- events --------------------------------------------------------------------------------------

static void event_free(ggml_backend_event_t event) {
    ggml_aligned_free(event->context, sizeof(struct event));
    ggml_aligned_free(event, sizeof(*event));
}

static int32_t event_synchronize(ggml_backend_event_t event) {
    struct event *mark = event->context;
    if (!mark->stream || HAS(event_ignored)) return GGML_HOST_OK;
    if (HAS(event_once) && mark->n_waits++ > 0) return GGML_HOST_OK;
    pthread_mutex_lock(&lock);
    drain(mark->stream);
    pthread_mutex_unlock(&lock);
    return GGML_HOST_OK;
}

static struct ggml_event_table event_table = {
    .size = sizeof(struct ggml_event_table),
    .free = event_free,
    .synchronize = event_synchronize,
};

ggml_backend_event_t event_new(ggml_backend_dev_t device) {
    if (HAS(caps_events)) return NULL;
    struct ggml_backend_event *event = ggml_aligned_malloc(sizeof(*event));
    struct event *mark = ggml_aligned_malloc(sizeof(*mark));
    if (!event || !mark) {
        ggml_aligned_free(mark, sizeof(*mark));
        ggml_aligned_free(event, sizeof(*event));
        return NULL;
    }
    *mark = (struct event){NULL, 0};
    if (HAS(event_entry_missing)) event_table.synchronize = NULL;
    *event = (struct ggml_backend_event){.table = &event_table, .device = device, .context = mark};
    return event;
}
