// SPDX-License-Identifier: MIT
// ggml_graph_plan() and ggml_graph_compute(), which call the CPU plugin's functions.
#include "base/mem.h"
#include "base/status.h"
#include "cpu_api/find.h"
#include "device/check.h"
#include "device/stream_view.h"

// Functions of the pool's plugin: a pool is only valid for the plugin that made it. Without a pool
// those of the first CPU device.
static const struct ggml_cpu_api *api_for(struct ggml_threadpool *pool, const char *function) {
    if (pool) return ((const struct ggml_threadpool_head *)(const void *)pool)->api;
    return cpu_api_find(function);
}

// Returns a plan with n_threads == 0 on failure, which ggml_graph_compute_with_ctx() tests.
struct ggml_cplan ggml_graph_plan(const struct ggml_cgraph *cgraph, int n_threads,
                                  struct ggml_threadpool *threadpool) {
    const struct ggml_cplan nothing = {0};
    if (!cgraph) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "ggml_graph_plan: the graph is NULL");
        return nothing;
    }
    const struct ggml_cpu_api *api = api_for(threadpool, __func__);
    struct stream_view view;
    // The view replaces tensors of streams by plain ones that the plugin can read.
    if (!api || !device_graph_whole(__func__, cgraph) || !stream_view_make(&view, cgraph, NULL))
        return nothing;
    const struct ggml_cplan cplan = api->graph_plan(&view.graph, n_threads, threadpool);
    stream_view_end(&view);
    return cplan;
}

enum ggml_status ggml_graph_compute(struct ggml_cgraph *cgraph, struct ggml_cplan *cplan) {
    if (!cgraph || !cplan) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "ggml_graph_compute: the %s is NULL",
                  cgraph ? "plan" : "graph");
        return GGML_STATUS_FAILED;
    }
    // The plan was made for the same graph: the view is made again, because it isn't part of the
    // public ggml_cplan.
    struct stream_view view;
    if (!device_graph_whole(__func__, cgraph)) return GGML_STATUS_FAILED;
    if (!stream_view_make(&view, cgraph, NULL)) return GGML_STATUS_ALLOC_FAILED;
    const bool usable = device_graph_usable(__func__, "the CPU", false, &view.graph);
    const struct ggml_cpu_api *api = usable ? api_for(cplan->threadpool, __func__) : NULL;
    const enum ggml_status status =
        api ? api->graph_compute(&view.graph, cplan) : GGML_STATUS_FAILED;
    stream_view_end(&view);
    return status;
}

enum ggml_status ggml_graph_compute_with_ctx(struct ggml_context *ctx, struct ggml_cgraph *cgraph,
                                             int n_threads) {
    struct ggml_cplan cplan = ggml_graph_plan(cgraph, n_threads, NULL);
    if (!ctx) ggml_fail(GGML_HOST_INVALID_ARGUMENT, "%s: the context is NULL", __func__);
    if (!ctx || cplan.n_threads == 0) return GGML_STATUS_FAILED;
    // The work memory doesn't come from the context: programs size their contexts for what ggml's
    // own kernels need.
    void *work = cplan.work_size > 0 ? ggml_mem_alloc(cplan.work_size) : NULL;
    if (!work && cplan.work_size > 0) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory for %zu bytes of work", __func__,
                  cplan.work_size);
        return GGML_STATUS_ALLOC_FAILED;
    }
    cplan.work_data = work;
    const enum ggml_status status = ggml_graph_compute(cgraph, &cplan);
    ggml_mem_free(work);
    return status;
}
