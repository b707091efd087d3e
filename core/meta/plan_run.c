// SPDX-License-Identifier: MIT
// Runs a plan: graphs on all members, all-reduces, and fallbacks.
#include "base/mem.h"
#include "meta/plan.h"

// Queues one graph per device; the first failure ends the loop.
static enum ggml_status run_graphs(struct meta_stream *stream, const struct ggml_graph *graphs) {
    enum ggml_status status = GGML_STATUS_SUCCESS;
    for (size_t j = 0; j < stream->device->n && status == GGML_STATUS_SUCCESS; ++j) {
        status = stream_graph_compute("meta device", stream->streams[j], &graphs[j]);
    }
    return status;
}

// Reads the split tensor into host memory and writes it to every device.
static bool gather(struct meta_stream *stream, const struct meta_whole *whole) {
    const size_t bytes = ggml_nbytes(whole->root);
    void *data = ggml_mem_alloc(MAX(bytes, 1));
    if (!data) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "meta device: no memory to gather '%s'",
                  whole->root->name);
        return false;
    }
    bool done = meta_get(NULL, whole->root, data, 0, bytes);
    const unsigned long errors_before = ggml_fail_count();
    for (size_t j = 0; j < stream->device->n && done; ++j) {
        ggml_backend_tensor_set(&whole->copies[j], data, 0, bytes);
        done = ggml_fail_count() == errors_before;
    }
    ggml_mem_free(data);
    return done;
}

// Writes the result of device 0 back to the slices; all devices have computed the same.
static bool scatter(const struct meta_whole *whole) {
    const size_t bytes = ggml_nbytes(whole->root);
    void *data = ggml_mem_alloc(MAX(bytes, 1));
    if (!data) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "meta device: no memory to spread '%s'",
                  whole->root->name);
        return false;
    }
    const unsigned long errors_before = ggml_fail_count();
    ggml_backend_tensor_get(&whole->copies[0], data, 0, bytes);
    const bool done =
        ggml_fail_count() == errors_before && meta_set(NULL, whole->root, data, 0, bytes);
    ggml_mem_free(data);
    return done;
}

// Blocks, as host memory is used: fallbacks are for what is rare.
static enum ggml_status run_fallback(struct meta_stream *stream, const struct meta_step *step) {
    bool done = true;
    ggml_backend_synchronize(&stream->base);
    for (const struct meta_whole *whole = step->wholes; whole && done; whole = whole->next) {
        done = gather(stream, whole);
    }
    if (!done) return GGML_STATUS_FAILED;
    const enum ggml_status status = run_graphs(stream, step->graphs);
    if (status != GGML_STATUS_SUCCESS) return status;
    ggml_backend_synchronize(&stream->base);
    for (const struct meta_whole *whole = step->wholes; whole && done; whole = whole->next) {
        if (whole->is_written) done = scatter(whole);
    }
    return done ? GGML_STATUS_SUCCESS : GGML_STATUS_FAILED;
}

// Runs the steps in order; stops at the first failure.
enum ggml_status meta_plan_run(struct meta_stream *stream, struct meta_plan *plan) {
    enum ggml_status status = GGML_STATUS_SUCCESS;
    const unsigned long errors_before = ggml_fail_count();
    for (struct meta_step *step = plan->first; step && status == GGML_STATUS_SUCCESS;
         step = step->next) {
        switch (step->kind) {
        case META_STEP_RUN: status = run_graphs(stream, step->graphs); break;
        case META_STEP_REDUCE: status = meta_reduce(stream, &step->reduction); break;
        case META_STEP_FALLBACK: status = run_fallback(stream, step); break;
        }
    }
    // Transfers and waiting have no status, they only leave a message.
    return status == GGML_STATUS_SUCCESS && ggml_fail_count() != errors_before ? GGML_STATUS_FAILED
                                                                               : status;
}
