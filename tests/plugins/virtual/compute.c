// SPDX-License-Identifier: MIT
// Graphs: each node is copied with its operands, the copies point to where the bytes really are,
// and the CPU plugin's code computes them.
#include <stdio.h>

#include "internal.h"

enum { NODE_TENSORS = 1 + GGML_MAX_SRC };

struct shadow {
    struct ggml_tensor *tensors; // NODE_TENSORS per node, the node first
    struct hazard_range *ranges; // as many
    size_t n_nodes, n_ranges;
};

static void shadow_free(struct shadow *shadow) {
    if (!shadow) return;
    ggml_aligned_free(shadow->tensors, 0);
    ggml_aligned_free(shadow->ranges, 0);
    ggml_aligned_free(shadow, sizeof(*shadow));
}

static bool computes(const struct ggml_tensor *node) {
    return !ggml_op_is_empty(node->op) && (node->flags & GGML_TENSOR_FLAG_COMPUTE) &&
           !ggml_is_empty(node);
}

static struct shadow *shadow_new(const struct ggml_graph *graph) {
    struct shadow *shadow = ggml_aligned_malloc(sizeof(*shadow));
    if (!shadow) return NULL;
    *shadow = (struct shadow){0};
    size_t n = 0;
    for (int i = 0; i < graph->n_nodes; ++i)
        n += computes(graph->nodes[i]);
    if (n == 0) return shadow;
    shadow->tensors = ggml_aligned_malloc(n * NODE_TENSORS * sizeof(*shadow->tensors));
    shadow->ranges = ggml_aligned_malloc(n * NODE_TENSORS * sizeof(*shadow->ranges));
    if (shadow->tensors && shadow->ranges) return shadow;
    shadow_free(shadow);
    return NULL;
}

static bool place(struct shadow *shadow, struct stream *stream, const struct ggml_tensor *tensor,
                  struct ggml_tensor *out_copy, bool writes) {
    *out_copy = *tensor;
    out_copy->buffer = NULL;
    out_copy->view_src = NULL;
    if (ggml_is_empty(tensor)) return true;
    const size_t bytes = ggml_nbytes(tensor);
    char *data = memory_resolve(stream->device, tensor, 0, bytes);
    out_copy->data = data;
    if (data)
        shadow->ranges[shadow->n_ranges++] = (struct hazard_range){data, data + bytes, writes};
    return data != NULL;
}

static bool add_node(struct shadow *shadow, struct stream *stream, const struct ggml_tensor *node) {
    struct ggml_tensor *copy = &shadow->tensors[NODE_TENSORS * shadow->n_nodes++];
    if (!device_computes(stream->device, node)) {
        log_violation(stream->device->index, "node '%s' (op %d) is not supported", node->name,
                      (int)node->op);
        return false;
    }
    if (!place(shadow, stream, node, copy, true)) return false;
    for (int i = 0; i < GGML_MAX_SRC; ++i) {
        if (!node->src[i]) continue;
        if (!place(shadow, stream, node->src[i], &copy[1 + i], false)) return false;
        copy->src[i] = &copy[1 + i];
    }
    return true;
}

static size_t touched_bytes(const struct ggml_tensor *node) {
    size_t bytes = ggml_nbytes(node);
    for (int i = 0; i < GGML_MAX_SRC; ++i) {
        if (node->src[i]) bytes += ggml_nbytes(node->src[i]);
    }
    return bytes;
}

// Products count two per factor, everything else one per element.
static double operations(const struct ggml_tensor *node) {
    const double n = (double)ggml_nelements(node);
    const bool product = node->op == GGML_OP_MUL_MAT || node->op == GGML_OP_MUL_MAT_ID;
    return product ? 2 * n * (double)node->src[0]->ne[0] : n;
}

static int64_t node_ns(struct stream *stream, const struct ggml_tensor *node) {
    const struct virtual_config config = device_config(stream->device);
    const bool quantised = node->src[0] && ggml_is_quantized(node->src[0]->type);
    const int64_t per_mflop = quantised && config.quant_ns_per_mflop ? config.quant_ns_per_mflop
                                                                     : config.node_ns_per_mflop;
    const int64_t compute = (int64_t)((double)per_mflop * operations(node) / 1e6);
    const int64_t memory = config.node_ns_per_kib * (int64_t)(touched_bytes(node) / 1024);
    int64_t ns = config.node_delay_us * 1000 + MAX(compute, memory);
    if (config.node_ns) ns += config.node_ns(config.user, stream->device->index, node);
    return ns;
}

static enum ggml_status run_node(struct stream *stream, struct ggml_tensor *node) {
    static const int32_t not_known = 0;
    const struct ggml_graph graph = {
        .size = sizeof(graph), .n_nodes = 1, .nodes = &node, .use_counts = &not_known};
    struct virtual_record record = {.call = VIRTUAL_CALL_NODE,
                                    .device = stream->device->index,
                                    .peer = -1,
                                    .stream = stream->number,
                                    .op = (int32_t)node->op,
                                    .bytes = ggml_nbytes(node)};
    snprintf(record.text, sizeof(record.text), "%s", node->name);
    const uint64_t ticket = log_add(record);
    log_begin(ticket);
    sleep_ns(node_ns(stream, node));
    const int32_t answer = stream->cpu->table->graph_compute(stream->cpu, &graph);
    const enum ggml_status status = answer == GGML_HOST_OK              ? GGML_STATUS_SUCCESS
                                    : answer == GGML_HOST_OUT_OF_MEMORY ? GGML_STATUS_ALLOC_FAILED
                                                                        : GGML_STATUS_FAILED;
    log_end(ticket, status);
    return status;
}

static enum ggml_status run_graph(struct stream *stream, struct job *job) {
    const struct shadow *shadow = job->of.shadow;
    enum ggml_status status = GGML_STATUS_SUCCESS;
    sleep_ns(device_config(stream->device).graph_delay_us * 1000);
    for (size_t i = 0; i < shadow->n_nodes && status == GGML_STATUS_SUCCESS; ++i) {
        status = run_node(stream, &shadow->tensors[NODE_TENSORS * i]);
    }
    return status;
}

static void release_graph(struct job *job) {
    shadow_free(job->of.shadow);
}

static enum ggml_status queue_graph(struct stream *stream, struct shadow *shadow, struct job *job,
                                    uint64_t bytes) {
    const enum ggml_status status = stream_gate(stream, GATE_COMPUTE, job);
    job->ticket = log_add((struct virtual_record){.call = VIRTUAL_CALL_GRAPH,
                                                  .device = stream->device->index,
                                                  .peer = -1,
                                                  .stream = stream->number,
                                                  .n_nodes = (int32_t)shadow->n_nodes,
                                                  .bytes = bytes});
    if (status != GGML_STATUS_SUCCESS) {
        log_end(job->ticket, status);
        return status;
    }
    job->run = run_graph;
    job->release = release_graph;
    job->of.shadow = shadow;
    job->hazard.ranges = shadow->ranges;
    job->hazard.n_ranges = shadow->n_ranges;
    snprintf(job->hazard.name, sizeof(job->hazard.name), "graph on %s", stream->name);
    stream_queue(stream, job);
    return status;
}

// A failure of earlier work, which is then forgotten.
static enum ggml_status take_status(struct stream *stream) {
    pthread_mutex_lock(&stream->mutex);
    const enum ggml_status status = stream->status;
    stream->status = GGML_STATUS_SUCCESS;
    pthread_mutex_unlock(&stream->mutex);
    if (status != GGML_STATUS_SUCCESS) {
        stream_fail_late(stream);
    }
    return status;
}

static enum ggml_status compute(struct stream *stream, const struct ggml_graph *graph) {
    enum ggml_status status = take_status(stream);
    if (status != GGML_STATUS_SUCCESS) return status;
    struct shadow *shadow = shadow_new(graph);
    struct job *job = shadow ? job_new() : NULL;
    uint64_t bytes = 0;
    status = job ? GGML_STATUS_SUCCESS : GGML_STATUS_ALLOC_FAILED;
    for (int i = 0; i < graph->n_nodes && status == GGML_STATUS_SUCCESS; ++i) {
        if (!computes(graph->nodes[i])) continue;
        if (!add_node(shadow, stream, graph->nodes[i])) status = GGML_STATUS_FAILED;
        bytes += ggml_nbytes(graph->nodes[i]);
    }
    if (status == GGML_STATUS_SUCCESS) status = queue_graph(stream, shadow, job, bytes);
    if (status == GGML_STATUS_SUCCESS) {
        return stream->base.table->synchronize ? status : take_status(stream);
    }
    shadow_free(shadow);
    ggml_aligned_free(job, sizeof(*job));
    return status;
}

int32_t stream_graph_compute(ggml_backend_t backend, const struct ggml_graph *graph) {
    return ggml_entry_status(compute(backend->context, graph));
}
