// SPDX-License-Identifier: MIT
// Nodes are added explicitly, from the plan, so that nothing is captured: the application's threads
// go on as they like, and no first run is needed. A graph that differs from an earlier one in
// addresses or extents alone, as each token's does, changes that one's nodes in place, which costs
// a fraction of making a graph anew. The driver applies a change to later launches only.
#include "queue/recording.h"

#include "device/loader.h"
#include "memory/buffer.h"

// --- the order -----------------------------------------------------------------------------------

enum { MAX_WRITTEN = 16 };

// Launches with work, in order; those without (an empty result) are left out. With times a launch
// waits for the one before it, as slices don't overlap.
struct draft {
    struct simt_work *works;
    int32_t *first_before, *before;
    int n, n_before, room;
    size_t bytes_works, bytes_first;
    const struct cuda_buffer *written[MAX_WRITTEN]; // that launches write to
    int n_written;                                  // MAX_WRITTEN: there may be more
};

// Linear: nodes of a graph lie in one buffer or in a few.
static bool is_written(const struct draft *d, const struct cuda_buffer *buffer) {
    int i = 0;
    while (i < d->n_written && d->written[i] != buffer)
        ++i;
    return i < d->n_written || d->n_written == MAX_WRITTEN;
}

static void note_written(struct draft *d, const struct cuda_buffer *buffer) {
    if (!is_written(d, buffer)) d->written[d->n_written++] = buffer;
}

// Kernels that read the host's memory would end the context, the application's own work on this
// device included: so each tensor is looked up when a plan is recorded.
static enum ggml_host_status touch(struct draft *d, const struct cuda_recipe *recipe,
                                   const struct simt_step *l, struct gpu_touch *touches) {
    for (int k = 0; k < l->n_tensors; ++k) {
        const struct ggml_tensor *t = l->tensors[k];
        const struct cuda_buffer *buffer = cuda_buffer_of(t);
        if (!buffer || buffer->context != recipe->context)
            return ggml_sdk_fail(
                GGML_HOST_INVALID_ARGUMENT,
                "cuda: '%.*s', which '%.*s' uses, does not lie in memory of this device",
                GGML_MAX_NAME, t->name, GGML_MAX_NAME, l->tensors[0]->name);
        const uintptr_t begin = (uintptr_t)t->data;
        touches[k] = (struct gpu_touch){begin, begin + ggml_nbytes(t), (l->writes >> k & 1) != 0};
        if (touches[k].writes) note_written(d, buffer);
    }
    return GGML_HOST_OK;
}

// Ends a draft in any state: what was not allocated is NULL.
static void draft_free(struct draft *d) {
    ggml_aligned_free(d->works, d->bytes_works);
    ggml_aligned_free(d->first_before, d->bytes_first);
    ggml_aligned_free(d->before, (size_t)d->room * sizeof(*d->before));
}

// Grows the list of edges to hold n, to twice that, so that adding is linear in all. False without
// memory; what is there stays.
static bool reserve_before(struct draft *d, int n) {
    if (n <= d->room) return true;
    const int room = 2 * n + 256;
    int32_t *more = ggml_aligned_malloc((size_t)room * sizeof(*more));
    if (!more) return false;
    if (d->before) memcpy(more, d->before, (size_t)d->n_before * sizeof(*more));
    ggml_aligned_free(d->before, (size_t)d->room * sizeof(*d->before));
    d->before = more;
    d->room = room;
    return true;
}

// Adds a launch with the launches that it waits for. Scratch memory is touched like a tensor, since
// launches share it.
static enum ggml_host_status draft_add(struct draft *d, const struct cuda_recipe *recipe,
                                       const struct simt_step *l) {
    struct gpu_touch touches[GPU_MAX_TOUCHES];
    const enum ggml_host_status status = touch(d, recipe, l, touches);
    int n_touches = l->n_tensors;
    if (status != GGML_HOST_OK || l->work.grid[0] == 0) return status;
    if (!reserve_before(d, d->n_before + GPU_OVERLAP_WINDOW)) return GGML_HOST_OUT_OF_MEMORY;
    if (l->work.scratch > 0)
        touches[n_touches++] =
            (struct gpu_touch){recipe->scratch, recipe->scratch + l->work.scratch, true};
    d->first_before[d->n] = d->n_before;
    if (recipe->has_times) {
        if (d->n > 0) d->before[d->n_before++] = d->n - 1;
    } else if (!recipe->one_by_one) {
        d->n_before +=
            gpu_overlap_add(recipe->overlap, touches, n_touches, &d->before[d->n_before]);
    }
    d->works[d->n] = l->work;
    if (l->work.scratch > 0)
        d->works[d->n].args.operands[GPU_MAX_OPERANDS - 1].data = recipe->scratch;
    d->n++;
    return GGML_HOST_OK;
}

// Weights in a buffer that no launch of the graph writes to are there from the beginning.
static void read_weights_early(struct draft *d, const struct gpu_plan *plan) {
    for (int i = 0, at = 0; i < plan->n_launches; ++i) {
        const struct simt_step *l = cuda_plan_at(plan, i);
        const struct ggml_tensor *weights = NULL;
        if (l->work.grid[0] == 0) continue;
        struct simt_work *work = &d->works[at++];
        for (int k = 0; k < l->n_tensors; ++k) {
            if ((uintptr_t)l->tensors[k]->data == work->args.operands[1].data)
                weights = l->tensors[k];
        }
        if (weights && !is_written(d, cuda_buffer_of(weights))) simt_read_weights_early(work);
    }
}

// draft_free() ends it in any case.
static enum ggml_host_status draft_make(struct draft *d, const struct cuda_recipe *recipe) {
    const size_t n = (size_t)recipe->plan->n_launches;
    *d = (struct draft){.bytes_works = n * sizeof(*d->works),
                        .bytes_first = (n + 1) * sizeof(*d->first_before)};
    d->works = ggml_aligned_malloc(d->bytes_works);
    d->first_before = ggml_aligned_malloc(d->bytes_first);
    if (!d->works || !d->first_before) return GGML_HOST_OUT_OF_MEMORY;
    recipe->overlap->first = recipe->overlap->n = 0;
    enum ggml_host_status status = GGML_HOST_OK;
    for (int i = 0; i < recipe->plan->n_launches && status == GGML_HOST_OK; ++i)
        status = draft_add(d, recipe, cuda_plan_at(recipe->plan, i));
    d->first_before[d->n] = d->n_before;
    if (status == GGML_HOST_OK) read_weights_early(d, recipe->plan);
    return status;
}

// --- graphs of the driver ------------------------------------------------------------------------

// `params` has room for one pointer and lives as long as the result, which points to it.
static CUDA_KERNEL_NODE_PARAMS params_of(const struct cuda_context *context,
                                         const struct simt_work *work, void **params) {
    params[0] = (void *)(uintptr_t)&work->args;
    return (CUDA_KERNEL_NODE_PARAMS){.func = context->functions[work->kernel],
                                     .gridDimX = work->grid[0],
                                     .gridDimY = work->grid[1],
                                     .gridDimZ = work->grid[2],
                                     .blockDimX = work->threads,
                                     .blockDimY = 1,
                                     .blockDimZ = 1,
                                     .sharedMemBytes = work->shared,
                                     .kernelParams = params};
}

// The launch begins when all blocks of the other have, and waits by itself until they have ended.
// Such an edge is only of one predecessor: with several the launch waits for all of them in full.
static CUresult add_early_node(struct cuda_recording *r, int i, const CUDA_KERNEL_NODE_PARAMS *p) {
    const struct cu_api *api = cuda_api();
    const CUgraphEdgeData edge = {.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                                  .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};
    const CUgraphNode from = r->nodes[r->before[r->first_before[i]]];
    const CUresult result = api->cuGraphAddKernelNode(&r->nodes[i], r->graph, NULL, 0, p);
    if (result != CUDA_SUCCESS) return result;
    return api->cuGraphAddDependencies(r->graph, &from, &r->nodes[i], &edge, 1);
}

// Adds launch i behind those that it waits for. `before` has room for them.
static CUresult add_node(struct cuda_recording *r, int i, CUgraphNode *before) {
    const int first = r->first_before[i], n = r->first_before[i + 1] - first;
    void *params[1];
    const CUDA_KERNEL_NODE_PARAMS p = params_of(r->context, &r->works[i], params);
    if (r->early && n == 1) return add_early_node(r, i, &p);
    for (int k = 0; k < n; ++k)
        before[k] = r->nodes[r->before[first + k]];
    // With times each launch waits for the one before it, and for its time to be taken.
    if (r->times && n > 0 && r->times->node) before[0] = r->times->node;
    return cuda_api()->cuGraphAddKernelNode(&r->nodes[i], r->graph, before, (size_t)n, &p);
}

// Makes the graph and what can be launched of it. After a failure the graph is there, or NULL.
static CUresult try_graph(struct cuda_recording *r) {
    const struct cu_api *api = cuda_api();
    CUgraphNode before[2 * GPU_OVERLAP_WINDOW];
    CUresult result = api->cuGraphCreate(&r->graph, 0);
    if (result != CUDA_SUCCESS) r->graph = NULL;
    for (int i = 0; i < r->n && result == CUDA_SUCCESS; ++i) {
        result = add_node(r, i, before);
        if (result == CUDA_SUCCESS && r->times)
            result = cuda_times_add_node(r->times, i, r->graph, r->nodes[i]);
    }
    if (result == CUDA_SUCCESS) result = api->cuGraphInstantiate(&r->exec, r->graph, 0);
    if (result != CUDA_SUCCESS) r->exec = NULL;
    return result;
}

// A driver that has the call, and takes no such edge on this device, is asked once.
static enum ggml_host_status make_graph(struct cuda_recording *r) {
    r->nodes = ggml_aligned_malloc((size_t)r->n * sizeof(*r->nodes));
    if (!r->nodes) return GGML_HOST_OUT_OF_MEMORY;
    CUresult result = try_graph(r);
    if (r->early && (result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_NOT_SUPPORTED)) {
        if (r->graph) cuda_api()->cuGraphDestroy(r->graph);
        r->graph = NULL;
        r->early = false;
        atomic_store(&r->context->begins_early, false);
        result = try_graph(r);
    }
    return cuda_context_check(r->context, result, "making a graph");
}

// --- recordings ----------------------------------------------------------------------------------

// A single launch is no graph: queueing it costs less.
enum ggml_host_status cuda_recording_new(const struct cuda_recipe *recipe,
                                         struct cuda_recording **out_recording) {
    struct cuda_recording *r = ggml_aligned_malloc(sizeof(*r));
    struct draft draft;
    *out_recording = NULL;
    if (!r) return GGML_HOST_OUT_OF_MEMORY;
    *r = (struct cuda_recording){.context = recipe->context};
    enum ggml_host_status status = draft_make(&draft, recipe);
    // What the draft allocated is the recording's from here on, after a failure too.
    r->works = draft.works;
    r->first_before = draft.first_before;
    r->before = draft.before;
    r->n = draft.n;
    r->room = draft.room;
    r->n_planned = recipe->plan->n_launches;
    r->shape = cuda_plan_shape(recipe->plan);
    r->early = !recipe->has_times && atomic_load(&recipe->context->begins_early);
    if (status == GGML_HOST_OK && !gpu_graph_key_copy(&r->key, recipe->key))
        status = GGML_HOST_OUT_OF_MEMORY;
    if (status == GGML_HOST_OK && recipe->has_times)
        status = cuda_times_new(recipe->context, recipe->plan, &r->times);
    if (status == GGML_HOST_OK && !recipe->one_by_one && r->n > (recipe->has_times ? 0 : 1))
        status = make_graph(r);
    if (status == GGML_HOST_OK)
        *out_recording = r;
    else
        cuda_recording_free(r);
    return status;
}

// Whether the same kernels wait for each other in the same way: then addresses, extents and grids
// are all that differs, and these the driver lets change in place.
static bool is_alike(const struct cuda_recording *r, const struct draft *d) {
    if (r->n != d->n || r->first_before[r->n] != d->n_before ||
        memcmp(r->first_before, d->first_before, (size_t)r->n * sizeof(*r->first_before)) != 0 ||
        (d->n_before > 0 &&
         memcmp(r->before, d->before, (size_t)d->n_before * sizeof(*r->before)) != 0))
        return false;
    int i = 0;
    while (i < r->n && r->works[i].kernel == d->works[i].kernel)
        ++i;
    return i == r->n;
}

// Nodes that are as they were are left alone: each change is a call of the driver.
static CUresult change_nodes(struct cuda_recording *r, const struct draft *d) {
    CUresult result = CUDA_SUCCESS;
    for (int i = 0; i < r->n && result == CUDA_SUCCESS; ++i) {
        void *params[1];
        if (memcmp(&r->works[i], &d->works[i], sizeof(r->works[i])) == 0) continue;
        memcpy(&r->works[i], &d->works[i], sizeof(r->works[i]));
        const CUDA_KERNEL_NODE_PARAMS p = params_of(r->context, &r->works[i], params);
        result = cuda_api()->cuGraphExecKernelNodeSetParams(r->exec, r->nodes[i], &p);
    }
    return result;
}

// A recording whose change failed half-way has no key, so that no graph finds it.
enum ggml_host_status cuda_recording_update(struct cuda_recording *recording,
                                            const struct cuda_recipe *recipe, bool *out_fits) {
    struct draft draft;
    enum ggml_host_status status = draft_make(&draft, recipe);
    *out_fits = status == GGML_HOST_OK && recording->exec && is_alike(recording, &draft);
    if (*out_fits) {
        recording->key.n = recording->places.n = 0;
        recording->uid = 0;
        status = cuda_context_check(recording->context, change_nodes(recording, &draft),
                                    "changing a graph");
    }
    if (*out_fits && status == GGML_HOST_OK && !gpu_graph_key_copy(&recording->key, recipe->key))
        status = GGML_HOST_OUT_OF_MEMORY;
    draft_free(&draft);
    return status;
}

// Launches without a graph of the driver: a single one, or all of them where graphs are switched
// off.
static CUresult queue_one(const struct cuda_recording *r, int i, CUstream stream) {
    const struct simt_work *w = &r->works[i];
    void *params[] = {(void *)(uintptr_t)&w->args};
    return cuda_api()->cuLaunchKernel(r->context->functions[w->kernel], w->grid[0], w->grid[1],
                                      w->grid[2], w->threads, 1, 1, w->shared, stream, params,
                                      NULL);
}

enum ggml_host_status cuda_recording_queue(struct cuda_recording *recording, CUstream stream) {
    CUresult result = CUDA_SUCCESS;
    if (recording->exec)
        return cuda_context_check(recording->context,
                                  cuda_api()->cuGraphLaunch(recording->exec, stream),
                                  "launching a graph");
    for (int i = 0; i < recording->n; ++i) {
        result = queue_one(recording, i, stream);
        if (result == CUDA_SUCCESS && recording->times)
            result = cuda_times_record(recording->times, i, stream);
        if (result != CUDA_SUCCESS)
            return cuda_context_check(recording->context, result,
                                      simt_kernel_names[recording->works[i].kernel]);
    }
    return GGML_HOST_OK;
}

void cuda_recording_free(struct cuda_recording *recording) {
    const struct cu_api *api = cuda_api();
    if (!recording) return;
    if (recording->exec) api->cuGraphExecDestroy(recording->exec);
    if (recording->graph) api->cuGraphDestroy(recording->graph);
    cuda_times_free(recording->times);
    const size_t n = (size_t)recording->n_planned;
    ggml_aligned_free(recording->nodes, (size_t)recording->n * sizeof(*recording->nodes));
    ggml_aligned_free(recording->works, n * sizeof(*recording->works));
    ggml_aligned_free(recording->first_before, (n + 1) * sizeof(*recording->first_before));
    ggml_aligned_free(recording->before, (size_t)recording->room * sizeof(*recording->before));
    gpu_graph_key_free(&recording->key);
    gpu_graph_key_free(&recording->places);
    ggml_aligned_free(recording, sizeof(*recording));
}
