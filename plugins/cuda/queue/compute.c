// SPDX-License-Identifier: MIT
// Graphs: a kernel per node, in order.
#include "device/loader.h"
#include "memory/buffer.h"
#include "queue/stream.h"

// Kernels that read the host's memory would end the context.
// Checked for each launch: a wrong address is an error that ends the context for the whole process,
// the application's own work on this device included.
static bool operands_are_here(const struct cuda_stream *stream, const struct ggml_tensor *node) {
    const struct cuda_buffer *buffer = cuda_buffer_of(node);
    if (!buffer || buffer->context != stream->context) return false;
    for (int i = 0; i < GGML_MAX_SRC; ++i) {
        if (!node->src[i]) continue;
        buffer = cuda_buffer_of(node->src[i]);
        if (!buffer || buffer->context != stream->context) return false;
    }
    return true;
}

static enum ggml_host_status launch(struct cuda_stream *stream, const struct ggml_tensor *node) {
    struct simt_work launch;
    void *params[] = {&launch.args};
    if (!simt_kernel_prepare(&launch, node))
        return gpu_fail(GGML_HOST_UNSUPPORTED, "cuda: '%.*s' can't be computed: %s", GGML_MAX_NAME,
                        node->name, ggml_op_name(node->op));
    if (launch.grid[0] == 0) return GGML_HOST_OK;
    if (!operands_are_here(stream, node))
        return gpu_fail(GGML_HOST_INVALID_ARGUMENT,
                        "cuda: '%.*s' or a source of it does not lie in memory of this device",
                        GGML_MAX_NAME, node->name);
    // Arguments are copied by the call, so that they may lie on the stack; it returns before the
    // kernel runs.
    const CUresult result = cuda_api()->cuLaunchKernel(
        stream->context->functions[launch.kernel], launch.grid[0], launch.grid[1], launch.grid[2],
        launch.threads, 1, 1, 0, stream->handle, params, NULL);
    return cuda_context_check(stream->context, result, simt_kernel_names[launch.kernel]);
}

// One launch per node, in the order of the graph: the stream keeps it, so that no dependence has to
// be known. Fusions and the order of plugins/gpu are not used yet. After a failure what was queued
// before goes on; the core synchronises before it frees anything.
int32_t cuda_stream_compute(ggml_backend_t backend, const struct ggml_graph *graph) {
    struct cuda_stream *stream = backend->context;
    enum ggml_host_status status = cuda_context_enter(stream->context);
    if (status != GGML_HOST_OK) return status;
    for (int i = 0; i < graph->n_nodes && status == GGML_HOST_OK; ++i) {
        const struct ggml_tensor *node = graph->nodes[i];
        if (ggml_op_is_empty(node->op) || !(node->flags & GGML_TENSOR_FLAG_COMPUTE)) continue;
        status = launch(stream, node);
    }
    cuda_context_leave();
    return status;
}
