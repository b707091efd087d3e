// SPDX-License-Identifier: MIT
// The table of streams and of graph plans. A graph is computed before the call returns; the scratch
// memory is kept for the next one.
#include "runtime/stream.h"

#include "base/threadpool.h"
#include "base/util.h"
#include "runtime/plan.h"

struct cpu_stream {
    struct ggml_backend backend;
    int n_threads; // <= 0: the pool's or the host's default
    struct ggml_threadpool *pool;
    ggml_abort_callback abort_callback;
    void *abort_data;
    bool use_ref;
    struct cpu_plan plan; // of the graph computed last
    void *work;
    size_t work_size;
    struct cpu_profile profile;
};

// A plan made by the caller, with work memory of its own.
struct stream_plan {
    struct cpu_plan plan;
    void *work;
    size_t work_size;
};

// What was asked for, bounded by the pool; without either all that the pool has, or the host's
// default.
static int choose_threads(int n_threads, struct ggml_threadpool *pool) {
    const int most = pool ? cpu_threadpool_get_n_threads(pool) : GGML_MAX_N_THREADS;
    if (n_threads > 0) return MIN(n_threads, most);
    return pool ? most : cpu_default_threads();
}

// Grows only.
static enum ggml_status reserve_work(void **work, size_t *work_size, size_t size) {
    if (size <= *work_size) return GGML_STATUS_SUCCESS;
    void *memory = ggml_aligned_malloc(size);
    if (!memory) {
        return cpu_fail(GGML_STATUS_ALLOC_FAILED, GGML_HOST_OUT_OF_MEMORY,
                        "no memory for %zu bytes of work memory", size);
    }
    ggml_aligned_free(*work, *work_size);
    *work = memory;
    *work_size = size;
    return GGML_STATUS_SUCCESS;
}

static const char *stream_name(ggml_backend_t backend) {
    (void)backend;
    return "CPU";
}

// The pool is the application's.
static void stream_free(ggml_backend_t backend) {
    struct cpu_stream *stream = backend->context;
    cpu_plan_free(&stream->plan);
    cpu_profile_free(&stream->profile);
    ggml_aligned_free(stream->work, stream->work_size);
    ggml_aligned_free(stream, sizeof(*stream));
}

// Runs a plan with the stream's pool, callback and recording.
static enum ggml_status run_plan(struct cpu_stream *stream, const struct cpu_plan *plan,
                                 void *work) {
    const struct cpu_run run = {
        .pool = stream->pool,
        .work = work,
        .abort_callback = stream->abort_callback,
        .abort_data = stream->abort_data,
        .profile = stream->profile.slices ? &stream->profile : NULL,
    };
    return cpu_plan_run(plan, &run);
}

// The plan is kept in the stream and made again unless the graph has the number of the last one.
static enum ggml_status compute(struct cpu_stream *stream, const struct ggml_graph *graph) {
    const int n_threads = choose_threads(stream->n_threads, stream->pool);
    enum ggml_status status = cpu_plan_make(&stream->plan, graph, n_threads, stream->use_ref);
    if (status == GGML_STATUS_SUCCESS) {
        status = reserve_work(&stream->work, &stream->work_size, stream->plan.work_size);
    }
    return status == GGML_STATUS_SUCCESS ? run_plan(stream, &stream->plan, stream->work) : status;
}

static int32_t stream_compute(ggml_backend_t backend, const struct ggml_graph *graph) {
    return ggml_entry_status(compute(backend->context, graph));
}

// Nothing for NULL.
static void stream_plan_free(ggml_backend_t backend, ggml_backend_graph_plan_t handle) {
    struct stream_plan *plan = handle;
    (void)backend;
    if (!plan) return;
    cpu_plan_free(&plan->plan);
    ggml_aligned_free(plan->work, plan->work_size);
    ggml_aligned_free(plan, sizeof(*plan));
}

// A plan has scratch memory of its own: it may be computed while the stream has computed other
// graphs.
static int32_t stream_plan_create(ggml_backend_t backend, const struct ggml_graph *graph,
                                  ggml_backend_graph_plan_t *out_plan) {
    const struct cpu_stream *stream = backend->context;
    struct stream_plan *plan = ggml_aligned_malloc(sizeof(*plan));
    if (!plan) {
        return ggml_entry_status(cpu_fail(GGML_STATUS_ALLOC_FAILED, GGML_HOST_OUT_OF_MEMORY,
                                          "no memory for a plan of %d nodes", graph->n_nodes));
    }
    *plan = (struct stream_plan){0};
    const int n_threads = choose_threads(stream->n_threads, stream->pool);
    enum ggml_status status = cpu_plan_make(&plan->plan, graph, n_threads, stream->use_ref);
    if (status == GGML_STATUS_SUCCESS)
        status = reserve_work(&plan->work, &plan->work_size, plan->plan.work_size);
    if (status == GGML_STATUS_SUCCESS) {
        *out_plan = plan;
    } else {
        stream_plan_free(backend, plan);
    }
    return ggml_entry_status(status);
}

static int32_t stream_plan_compute(ggml_backend_t backend, ggml_backend_graph_plan_t handle) {
    const struct stream_plan *plan = handle;
    return ggml_entry_status(run_plan(backend->context, &plan->plan, plan->work));
}

static const struct ggml_stream_table stream_table = {
    .size = sizeof(struct ggml_stream_table),
    .guid = {0xaa, 0x67, 0xc7, 0x43, 0x96, 0xe6, 0xa3, 0x8a, 0xe3, 0xaf, 0xea, 0x92, 0x36, 0xbc,
             0xfc, 0x89},
    .get_name = stream_name,
    .free = stream_free,
    .graph_plan_create = stream_plan_create,
    .graph_plan_free = stream_plan_free,
    .graph_plan_compute = stream_plan_compute,
    .graph_compute = stream_compute,
};

// A stream is synchronous and holds only settings: the threads come from a pool when a graph is
// computed. NULL if memory runs out.
ggml_backend_t cpu_stream_new(ggml_backend_dev_t device) {
    struct cpu_stream *stream = ggml_aligned_malloc(sizeof(*stream));
    if (!stream) return NULL;
    *stream = (struct cpu_stream){
        .backend = {.table = &stream_table, .device = device, .context = stream},
    };
    return &stream->backend;
}

// Setters are found by name and called with any stream: those of other plugins are left alone.
static bool is_stream(ggml_backend_t backend) {
    return backend && backend->table == &stream_table;
}

struct cpu_profile *cpu_stream_profile(ggml_backend_t backend) {
    return is_stream(backend) ? &((struct cpu_stream *)backend->context)->profile : NULL;
}

void cpu_stream_set_n_threads(ggml_backend_t backend, int n_threads) {
    if (is_stream(backend)) ((struct cpu_stream *)backend->context)->n_threads = n_threads;
}

// The old pool is paused, not freed: it belongs to the application, which may use it elsewhere.
void cpu_stream_set_threadpool(ggml_backend_t backend, ggml_threadpool_t pool) {
    if (!is_stream(backend)) return;
    struct cpu_stream *stream = backend->context;
    if (stream->pool && stream->pool != pool) cpu_threadpool_pause(stream->pool);
    stream->pool = pool;
}

// Called between nodes while a graph is computed; true aborts it. Ignored for streams of other
// plugins.
void cpu_stream_set_abort_callback(ggml_backend_t backend, ggml_abort_callback callback,
                                   void *data) {
    if (!is_stream(backend)) return;
    struct cpu_stream *stream = backend->context;
    stream->abort_callback = callback;
    stream->abort_data = data;
}

void cpu_stream_set_use_ref(ggml_backend_t backend, bool use_ref) {
    if (is_stream(backend)) ((struct cpu_stream *)backend->context)->use_ref = use_ref;
}

// --- graphs without a stream -----------------------------------------------------------

enum { WORK_ALIGNMENT = 64 };

// Plans only to learn how much memory and how many threads are needed; the plan itself is
// dropped.
struct ggml_cplan cpu_graph_plan(const struct ggml_graph *graph, int n_threads,
                                 struct ggml_threadpool *pool) {
    struct ggml_cplan cplan = {0};
    struct cpu_plan plan = {0};
    if (cpu_plan_make(&plan, graph, choose_threads(n_threads, pool), false) ==
        GGML_STATUS_SUCCESS) {
        // Callers do not align their memory.
        cplan.work_size = plan.work_size > 0 ? plan.work_size + WORK_ALIGNMENT : 0;
        cplan.n_threads = plan.parallel ? plan.n_threads : 1;
        cplan.threadpool = pool;
    }
    cpu_plan_free(&plan);
    return cplan;
}

// The caller allocated work_data by itself, and may have kept it from another graph: it is checked
// against this graph's plan.
static enum ggml_status compute_with_plan(const struct cpu_plan *plan,
                                          const struct ggml_cplan *cplan) {
    const uintptr_t work =
        ((uintptr_t)cplan->work_data + WORK_ALIGNMENT - 1) & ~(uintptr_t)(WORK_ALIGNMENT - 1);
    const size_t lost = work - (uintptr_t)cplan->work_data;
    if (plan->work_size > 0 && (!cplan->work_data || cplan->work_size < plan->work_size + lost)) {
        return cpu_fail(
            GGML_STATUS_FAILED, GGML_HOST_INVALID_ARGUMENT,
            "ggml_graph_compute: the plan's work_data must hold %zu bytes, work_size says "
            "%zu; call ggml_graph_plan() for this graph",
            plan->work_size + lost, cplan->work_data ? cplan->work_size : 0);
    }
    const struct cpu_run run = {
        .pool = cplan->threadpool,
        .work = (void *)work,
        .abort_callback = cplan->abort_callback,
        .abort_data = cplan->abort_callback_data,
    };
    return cpu_plan_run(plan, &run);
}

// Plans once more: a ggml_cplan has no room for a plan, only for what the caller has to allocate.
enum ggml_status cpu_graph_compute(const struct ggml_graph *graph, const struct ggml_cplan *cplan) {
    struct cpu_plan plan = {0};
    if (cplan->n_threads < 1) {
        return cpu_fail(GGML_STATUS_FAILED, GGML_HOST_INVALID_ARGUMENT,
                        "ggml_graph_compute: the plan has %d threads; call ggml_graph_plan()",
                        cplan->n_threads);
    }
    const int n_threads = choose_threads(cplan->n_threads, cplan->threadpool);
    enum ggml_status status = cpu_plan_make(&plan, graph, n_threads, cplan->use_ref);
    if (status == GGML_STATUS_SUCCESS) status = compute_with_plan(&plan, cplan);
    cpu_plan_free(&plan);
    return status;
}
