// SPDX-License-Identifier: MIT
// Graphs: a dispatch per node. The dispatches of an encoder run at the same time, but for those
// that a barrier separates: one is encoded where a node touches bytes that an earlier one since the
// last barrier writes, or writes bytes that one reads.
#include "gpu/graph/tracker.h"
#include "memory/buffer.h"
#include "queue/stream.h"

enum {
    NODES_PER_COMMIT = 128, // so that the device begins before the whole graph is encoded
    MAX_USED = 64,
};

// A command buffer that is being filled.
struct encoding {
    struct metal_stream *stream;
    mtl_id commands, encoder;
    int n_nodes, n_used;
    mtl_id used[MAX_USED]; // that the encoder was told of
};

// A command buffer with one encoder whose dispatches may overlap; the tracker begins empty, as
// buffers of one queue run in order.
static enum ggml_host_status begin(struct encoding *e) {
    e->n_nodes = e->n_used = 0;
    gpu_tracker_clear(&e->stream->tracker);
    e->commands = metal_stream_begin(e->stream);
    if (!e->commands) return GGML_HOST_OUT_OF_MEMORY;
    e->encoder = mtl_compute_encoder(e->commands, MTL_DISPATCH_CONCURRENT);
    if (e->encoder) return GGML_HOST_OK;
    mtl_release(e->commands);
    e->commands = NULL;
    return metal_fail(GGML_HOST_OUT_OF_MEMORY, "metal: no command encoder");
}

// What is not committed is never run.
static void end(struct encoding *e, bool commit) {
    if (!e->commands) return;
    mtl_end_encoding(e->encoder);
    if (commit) metal_stream_commit(e->stream, e->commands);
    mtl_release(e->commands);
    e->commands = NULL;
}

// Kernels get addresses, so Metal is told which buffers they lie in.
static void use(struct encoding *e, mtl_id buffer) {
    for (int i = 0; i < e->n_used; ++i) {
        if (e->used[i] == buffer) return;
    }
    mtl_use_resource(e->encoder, buffer, MTL_USAGE_READ | MTL_USAGE_WRITE);
    if (e->n_used < MAX_USED) e->used[e->n_used++] = buffer;
}

// Puts in the device's address of an operand, and adds the bytes that it touches. These are counted
// by the host's addresses, under which also two buffers over the same memory are the same.
static bool place_operand(struct encoding *e, const struct ggml_tensor *tensor, bool writes,
                          struct gpu_operand *operand, struct gpu_tracker_touch *out_touch) {
    struct metal_place place;
    if (!metal_place_of(tensor, &place) || place.context != e->stream->context) return false;
    use(e, place.handle);
    operand->data = place.address;
    const uint64_t first = (uintptr_t)place.contents;
    *out_touch = (struct gpu_tracker_touch){0, first, first + ggml_nbytes(tensor), writes};
    return true;
}

// Operand 0 is the result. Returns their number, or 0 if one is not in memory of this device.
static int place_operands(struct encoding *e, const struct ggml_tensor *node,
                          struct gpu_operand *operands, struct gpu_tracker_touch *touches) {
    int n = 0;
    bool here = place_operand(e, node, true, &operands[0], &touches[n++]);
    for (int i = 1; i < GPU_MAX_OPERANDS && here; ++i) {
        if (node->src[i - 1])
            here = place_operand(e, node->src[i - 1], false, &operands[i], &touches[n++]);
    }
    return here ? n : 0;
}

// Encodes a barrier before the node where one is needed. It orders all that came before, so that
// the tracker begins anew.
static void order(struct encoding *e, const struct gpu_tracker_touch *touches, int n) {
    struct gpu_tracker *tracker = &e->stream->tracker;
    if (gpu_tracker_conflicts(tracker, touches, n)) {
        mtl_memory_barrier(e->encoder, MTL_SCOPE_BUFFERS);
        gpu_tracker_clear(tracker);
    }
    gpu_tracker_add(tracker, touches, n);
}

// Prepares the node's kernel, checks what the device allows, and encodes its dispatch, in a new
// command buffer if there is none.
static enum ggml_host_status encode(struct encoding *e, const struct ggml_tensor *node) {
    struct gpu_tracker_touch touches[GPU_MAX_OPERANDS];
    struct simt_work work;
    if (!simt_kernel_prepare(&work, node))
        return metal_fail(GGML_HOST_UNSUPPORTED, "metal: '%.*s' can't be computed: %s",
                          GGML_MAX_NAME, node->name, ggml_op_name(node->op));
    if (work.grid[0] == 0) return GGML_HOST_OK;
    const enum ggml_host_status status = e->commands ? GGML_HOST_OK : begin(e);
    if (status != GGML_HOST_OK) return status;
    const int n = place_operands(e, node, work.args.operands, touches);
    if (n == 0)
        return metal_fail(GGML_HOST_INVALID_ARGUMENT,
                          "metal: '%.*s' or a source of it does not lie in memory of this device",
                          GGML_MAX_NAME, node->name);
    const mtl_id pipeline = e->stream->context->pipelines[work.kernel];
    if (work.threads > mtl_max_threads(pipeline))
        return metal_fail(GGML_HOST_UNSUPPORTED, "metal: %s can't have %u threads",
                          simt_kernel_names[work.kernel], work.threads);
    order(e, touches, n);
    mtl_set_pipeline(e->encoder, pipeline);
    mtl_set_bytes(e->encoder, &work.args, sizeof(work.args), 0);
    mtl_dispatch(e->encoder, (struct mtl_size){work.grid[0], work.grid[1], work.grid[2]},
                 (struct mtl_size){work.threads, 1, 1});
    if (++e->n_nodes == NODES_PER_COMMIT) end(e, true);
    return GGML_HOST_OK;
}

int32_t metal_stream_compute(ggml_backend_t backend, const struct ggml_graph *graph) {
    struct encoding e = {.stream = backend->context};
    enum ggml_host_status status = metal_context_check(e.stream->context);
    if (status != GGML_HOST_OK) return status;
    void *pool = mtl_api.pool_push();
    for (int i = 0; i < graph->n_nodes && status == GGML_HOST_OK; ++i) {
        const struct ggml_tensor *node = graph->nodes[i];
        if (ggml_op_is_empty(node->op) || !(node->flags & GGML_TENSOR_FLAG_COMPUTE)) continue;
        status = encode(&e, node);
    }
    end(&e, status == GGML_HOST_OK);
    mtl_api.pool_pop(pool);
    return status;
}
