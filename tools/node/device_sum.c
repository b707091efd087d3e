// SPDX-License-Identifier: MIT
// Sums in memory of a device that MPI is given: what other ranks send comes into another buffer of
// the device, which adds it.
#include "server.h"

// Small buffers may share an allocation, which MPI is not given.
enum { LEAST_BYTES = 8 << 20 };

static bool has_room(struct queue *queue, size_t size) {
    return queue->device_scratch && ggml_backend_buffer_get_size(queue->device_scratch) >= size;
}

// Makes the other buffer, or keeps the one of the last sum.
static bool make_room(struct queue *queue, ggml_backend_dev_t device, size_t size) {
    if (has_room(queue, size)) return true;
    const size_t bytes = size > LEAST_BYTES ? size : LEAST_BYTES;
    device_sum_end(queue);
    ggml_backend_buffer_t buffer =
        ggml_backend_buft_alloc_buffer(ggml_backend_dev_buffer_type(device), bytes);
    const bool good = buffer && device_memory_is_for_mpi(queue->server, device, buffer, bytes);
    if (good) queue->device_scratch = buffer;
    if (!good) ggml_backend_buffer_free(buffer);
    return good;
}

void device_sum_end(struct queue *queue) {
    ggml_backend_buffer_free(queue->device_scratch);
    queue->device_scratch = NULL;
}

char *device_sum_begin(struct queue *queue, const struct held_buffer *held, size_t size) {
    if (held->is_host || !held->is_for_mpi || !queue->backend) return NULL;
    ggml_backend_dev_t device = queue->server->devices[queue->device];
    if (ggml_backend_buffer_get_type(held->buffer) != ggml_backend_dev_buffer_type(device) ||
        !make_room(queue, device, size)) {
        forget_failure(); // the host adds then
        return NULL;
    }
    return ggml_backend_buffer_get_base(queue->device_scratch);
}

// n numbers in a buffer, as a view: they begin at any of them.
static struct ggml_tensor *part_of(struct ggml_context *ctx, ggml_backend_buffer_t buffer,
                                   const char *at, size_t n) {
    char *base = ggml_backend_buffer_get_base(buffer);
    const size_t all = ggml_backend_buffer_get_size(buffer) / sizeof(float);
    struct ggml_tensor *whole = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, (int64_t)all);
    if (ggml_backend_tensor_alloc(buffer, whole, base) != GGML_STATUS_SUCCESS) return NULL;
    return ggml_view_1d(ctx, whole, (int64_t)n, (size_t)(at - base));
}

static enum ggml_host_status add(struct ggml_context *ctx, struct queue *queue,
                                 ggml_backend_buffer_t buffer, char *mine, const char *other,
                                 size_t n, bool adds) {
    struct ggml_tensor *to = part_of(ctx, buffer, mine, n);
    struct ggml_tensor *from = part_of(ctx, queue->device_scratch, other, n);
    if (!to || !from) return last_status();
    if (ggml_backend_view_init(to) != GGML_STATUS_SUCCESS ||
        ggml_backend_view_init(from) != GGML_STATUS_SUCCESS) {
        return last_status();
    }
    if (!adds) {
        ggml_backend_tensor_copy(from, to);
        return last_status();
    }
    struct ggml_cgraph *graph = ggml_new_graph_custom(ctx, 4, false);
    struct ggml_tensor *sum = ggml_add_inplace(ctx, to, from);
    if (ggml_backend_view_init(sum) != GGML_STATUS_SUCCESS) return last_status();
    ggml_build_forward_expand(graph, sum);
    if (ggml_backend_graph_compute(queue->backend, graph) == GGML_STATUS_SUCCESS)
        return GGML_HOST_OK;
    const enum ggml_host_status status = last_status();
    return status != GGML_HOST_OK ? status : GGML_HOST_FAILED;
}

enum ggml_host_status device_sum_add(struct queue *queue, const struct held_buffer *held,
                                     char *mine, const char *other, size_t n, bool adds) {
    const struct ggml_init_params params = {.mem_size = 8 * ggml_tensor_overhead() +
                                                        ggml_graph_overhead_custom(4, false),
                                            .no_alloc = true};
    struct ggml_context *ctx = ggml_init(params);
    if (!ctx) return fail(GGML_HOST_OUT_OF_MEMORY, "no memory for a sum");
    const enum ggml_host_status status = add(ctx, queue, held->buffer, mine, other, n, adds);
    ggml_free(ctx);
    return status;
}
