// SPDX-License-Identifier: MIT
// The tables of the fake device: every entry counts its call and does what the switches say;
// streams run their queue when they are synchronised.
#include "fake_device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/status.h"
#include "ggml-impl.h"

// Not a canonical address: touching it on the host is a fault.
static const uintptr_t BIAS = (uintptr_t)1 << (sizeof(uintptr_t) * 8 - 4);

enum { WORK_SET = 1, WORK_GET, WORK_COMPUTE };

struct fake_plan {
    struct ggml_graph graph;
    struct ggml_tensor *nodes[16];
};

static void *device_address(void *memory) {
    return (void *)((uintptr_t)memory + BIAS);
}

void *fake_memory(const void *address) {
    const uintptr_t value = (uintptr_t)address;
    return (void *)(value >= BIAS ? value - BIAS : value);
}

static struct fake_device *fake_of(ggml_backend_dev_t device) {
    return device->context;
}

static void *object(struct fake_device *fake, size_t size) {
    void *memory = fake->fails ? NULL : ggml_mem_calloc(1, size);
    if (!memory && fake->reason) ggml_fail(GGML_HOST_DEVICE_LOST, "%s", fake->reason);
    fake->last = memory;
    return memory;
}

// --- buffers

static struct fake_device *buffer_fake(ggml_backend_buffer_t buffer) {
    return fake_of(buffer->buft->device);
}

static void buffer_free(ggml_backend_buffer_t buffer) {
    struct fake_device *fake = buffer_fake(buffer);
    fake->calls.free_buffer++;
    fake->n_buffers--;
    ggml_aligned_free(buffer->context, buffer->size);
    ggml_sdk_buffer_free(buffer);
}

static void *buffer_base(ggml_backend_buffer_t buffer) {
    struct fake_device *fake = buffer_fake(buffer);
    if (fake->no_base) return NULL;
    const bool on_host = buffer->buft == &fake->host_buft;
    return on_host ? buffer->context : device_address(buffer->context);
}

static int32_t buffer_init_tensor(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor) {
    (void)tensor;
    buffer_fake(buffer)->calls.init_tensor++;
    return buffer_fake(buffer)->init_answer;
}

static int32_t buffer_memset(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                             uint8_t value, size_t offset, size_t size) {
    buffer_fake(buffer)->calls.memset_tensor++;
    memset((char *)fake_memory(tensor->data) + offset, value, size);
    return GGML_HOST_OK;
}

static int32_t buffer_set(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                          const void *data, size_t offset, size_t size) {
    buffer_fake(buffer)->calls.set_tensor++;
    memcpy((char *)fake_memory(tensor->data) + offset, data, size);
    return GGML_HOST_OK;
}

static int32_t buffer_get(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor,
                          void *data, size_t offset, size_t size) {
    buffer_fake(buffer)->calls.get_tensor++;
    memcpy(data, (const char *)fake_memory(tensor->data) + offset, size);
    return GGML_HOST_OK;
}

static int32_t buffer_set_2d(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                             const void *data, size_t offset, size_t size, size_t n_copies,
                             size_t stride_tensor, size_t stride_data) {
    buffer_fake(buffer)->calls.set_tensor_2d++;
    for (size_t i = 0; i < n_copies; ++i) {
        memcpy((char *)fake_memory(tensor->data) + offset + i * stride_tensor,
               (const char *)data + i * stride_data, size);
    }
    return GGML_HOST_OK;
}

static int32_t buffer_get_2d(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor,
                             void *data, size_t offset, size_t size, size_t n_copies,
                             size_t stride_tensor, size_t stride_data) {
    buffer_fake(buffer)->calls.get_tensor_2d++;
    for (size_t i = 0; i < n_copies; ++i) {
        memcpy((char *)data + i * stride_data,
               (const char *)fake_memory(tensor->data) + offset + i * stride_tensor, size);
    }
    return GGML_HOST_OK;
}

static int32_t buffer_copy(ggml_backend_buffer_t buffer, const struct ggml_tensor *src,
                           struct ggml_tensor *dst) {
    struct fake_device *fake = buffer_fake(buffer);
    fake->calls.cpy_tensor++;
    if (fake->refuses_copy) return GGML_HOST_UNSUPPORTED;
    memcpy(fake_memory(dst->data), fake_memory(src->data), ggml_nbytes(src));
    return GGML_HOST_OK;
}

static int32_t buffer_clear(ggml_backend_buffer_t buffer, uint8_t value) {
    buffer_fake(buffer)->calls.clear++;
    memset(buffer->context, value, buffer->size);
    return GGML_HOST_OK;
}

static int32_t buffer_reset(ggml_backend_buffer_t buffer) {
    buffer_fake(buffer)->calls.reset++;
    return GGML_HOST_OK;
}

static ggml_backend_buffer_t wrap(struct fake_device *fake, ggml_backend_buffer_type_t buft,
                                  void *memory, size_t size) {
    ggml_backend_buffer_t buffer = ggml_sdk_buffer_new(buft, &fake->buffer_table, memory, size);
    if (buffer) {
        fake->n_buffers++;
    } else {
        ggml_aligned_free(memory, size);
    }
    return buffer;
}

// --- buffer types

static const char *buft_name(ggml_backend_buffer_type_t buft) {
    return fake_of(buft->device)->name;
}

static void *zeroed(size_t size) {
    void *memory = ggml_aligned_malloc(size);
    return memory ? memset(memory, 0, size) : NULL;
}

static int32_t buft_alloc(ggml_backend_buffer_type_t buft, size_t size,
                          ggml_backend_buffer_t *out_buffer) {
    struct fake_device *fake = fake_of(buft->device);
    fake->calls.alloc_buffer++;
    void *mark = object(fake, 1);
    ggml_mem_free(mark);
    void *memory = mark ? zeroed(size) : NULL;
    *out_buffer = memory ? wrap(fake, buft, memory, size - fake->short_by) : NULL;
    return *out_buffer || fake->lies ? GGML_HOST_OK : GGML_HOST_OUT_OF_MEMORY;
}

static size_t buft_alignment(ggml_backend_buffer_type_t buft) {
    return fake_of(buft->device)->alignment;
}

static size_t buft_max_size(ggml_backend_buffer_type_t buft) {
    return fake_of(buft->device)->max_size;
}

static size_t buft_alloc_size(ggml_backend_buffer_type_t buft, const struct ggml_tensor *tensor) {
    return ggml_nbytes(tensor) + fake_of(buft->device)->padding;
}

static bool buft_is_host(ggml_backend_buffer_type_t buft) {
    return buft == &fake_of(buft->device)->host_buft;
}

// --- streams

static struct fake_device *stream_fake(ggml_backend_t stream) {
    return stream->context;
}

static const char *stream_name(ggml_backend_t stream) {
    return stream_fake(stream)->name;
}

static void add_elements(const struct fake_device *fake, struct ggml_tensor *node) {
    float *out = fake_memory(node->data);
    const float *a = fake_memory(node->src[0]->data);
    const float *b = fake_memory(node->src[1]->data);
    const size_t n = ggml_nbytes(node) / sizeof(float);
    for (size_t i = 0; i < n; ++i)
        out[i] = a[i] + b[i] + fake->error;
}

static void run(const struct fake_work *work) {
    char *memory = fake_memory(work->tensor->data);
    if (work->kind == WORK_SET) {
        memcpy(memory + work->offset, work->data, work->size);
    } else if (work->kind == WORK_GET) {
        memcpy(work->data, memory + work->offset, work->size);
    } else {
        add_elements(stream_fake(work->stream), work->tensor);
    }
}

static void run_queued(struct fake_device *fake, ggml_backend_t stream) {
    int left = 0;
    for (int i = 0; i < fake->n_queued; ++i) {
        if (fake->queue[i].stream == stream) {
            run(&fake->queue[i]);
        } else {
            fake->queue[left++] = fake->queue[i];
        }
    }
    fake->n_queued = left;
}

static void enqueue(ggml_backend_t stream, struct fake_work work) {
    struct fake_device *fake = stream_fake(stream);
    work.stream = stream;
    assert_in_range(fake->n_queued, 0, FAKE_QUEUE - 1);
    fake->queue[fake->n_queued++] = work;
}

static void stream_free(ggml_backend_t stream) {
    struct fake_device *fake = stream_fake(stream);
    fake->calls.free++;
    fake->n_streams--;
    run_queued(fake, stream);
    ggml_mem_free(stream);
}

static int32_t stream_set(ggml_backend_t stream, struct ggml_tensor *tensor, const void *data,
                          size_t offset, size_t size) {
    stream_fake(stream)->calls.set_async++;
    enqueue(stream,
            (struct fake_work){WORK_SET, NULL, tensor, (void *)(uintptr_t)data, offset, size});
    return GGML_HOST_OK;
}

static int32_t stream_get(ggml_backend_t stream, const struct ggml_tensor *tensor, void *data,
                          size_t offset, size_t size) {
    struct ggml_tensor *source = (struct ggml_tensor *)(uintptr_t)tensor;
    stream_fake(stream)->calls.get_async++;
    enqueue(stream, (struct fake_work){WORK_GET, NULL, source, data, offset, size});
    return GGML_HOST_OK;
}

static int32_t stream_set_2d(ggml_backend_t stream, struct ggml_tensor *tensor, const void *data,
                             size_t offset, size_t size, size_t n_copies, size_t stride_tensor,
                             size_t stride_data) {
    stream_fake(stream)->calls.set_2d_async++;
    for (size_t i = 0; i < n_copies; ++i) {
        stream_set(stream, tensor, (const char *)data + i * stride_data, offset + i * stride_tensor,
                   size);
    }
    stream_fake(stream)->calls.set_async -= (int)n_copies;
    return GGML_HOST_OK;
}

static int32_t stream_get_2d(ggml_backend_t stream, const struct ggml_tensor *tensor, void *data,
                             size_t offset, size_t size, size_t n_copies, size_t stride_tensor,
                             size_t stride_data) {
    stream_fake(stream)->calls.get_2d_async++;
    for (size_t i = 0; i < n_copies; ++i) {
        stream_get(stream, tensor, (char *)data + i * stride_data, offset + i * stride_tensor,
                   size);
    }
    stream_fake(stream)->calls.get_async -= (int)n_copies;
    return GGML_HOST_OK;
}

static int32_t stream_copy(ggml_backend_t from, ggml_backend_t to, const struct ggml_tensor *src,
                           struct ggml_tensor *dst) {
    struct fake_device *fake = stream_fake(to);
    fake->calls.cpy_async++;
    if (fake->refuses_copy || from != to) return GGML_HOST_UNSUPPORTED;
    enqueue(to,
            (struct fake_work){WORK_SET, NULL, dst, fake_memory(src->data), 0, ggml_nbytes(src)});
    return GGML_HOST_OK;
}

static int32_t stream_synchronize(ggml_backend_t stream) {
    stream_fake(stream)->calls.synchronize++;
    run_queued(stream_fake(stream), stream);
    return GGML_HOST_OK;
}

static int32_t stream_compute(ggml_backend_t stream, const struct ggml_graph *graph) {
    struct fake_device *fake = stream_fake(stream);
    fake->calls.graph_compute++;
    if (fake->answer != GGML_HOST_OK) return fake->answer;
    for (int i = 0; i < graph->n_nodes; ++i) {
        struct ggml_tensor *node = graph->nodes[i];
        if (!(node->flags & GGML_TENSOR_FLAG_COMPUTE) || ggml_op_is_empty(node->op)) continue;
        if (node->op != GGML_OP_ADD) return GGML_HOST_UNSUPPORTED;
        enqueue(stream, (struct fake_work){WORK_COMPUTE, NULL, node, NULL, 0, 0});
    }
    return GGML_HOST_OK;
}

static int32_t plan_create(ggml_backend_t stream, const struct ggml_graph *graph,
                           ggml_backend_graph_plan_t *out_plan) {
    struct fake_device *fake = stream_fake(stream);
    fake->calls.plan_create++;
    struct fake_plan *plan = object(fake, sizeof(*plan));
    if (!plan) return GGML_HOST_FAILED;
    if (graph->n_nodes > (int32_t)(sizeof(plan->nodes) / sizeof(plan->nodes[0]))) abort();
    plan->graph = *graph;
    plan->graph.nodes = plan->nodes;
    plan->graph.use_counts = NULL;
    for (int i = 0; i < graph->n_nodes; ++i)
        plan->nodes[i] = graph->nodes[i];
    fake->n_plans++;
    *out_plan = plan;
    return GGML_HOST_OK;
}

static void plan_free(ggml_backend_t stream, ggml_backend_graph_plan_t plan) {
    stream_fake(stream)->calls.plan_free++;
    stream_fake(stream)->n_plans--;
    ggml_mem_free(plan);
}

static int32_t plan_compute(ggml_backend_t stream, ggml_backend_graph_plan_t plan) {
    stream_fake(stream)->calls.plan_compute++;
    return stream_compute(stream, &((struct fake_plan *)plan)->graph);
}

static int32_t event_record(ggml_backend_t stream, ggml_backend_event_t event) {
    (void)event;
    stream_fake(stream)->calls.event_record++;
    return GGML_HOST_OK;
}

static int32_t event_wait(ggml_backend_t stream, ggml_backend_event_t event) {
    (void)event;
    stream_fake(stream)->calls.event_wait++;
    return GGML_HOST_OK;
}

static int32_t graph_optimize(ggml_backend_t stream, struct ggml_graph *graph) {
    (void)graph;
    stream_fake(stream)->calls.graph_optimize++;
    return GGML_HOST_OK;
}

// --- device

static const char *device_name(ggml_backend_dev_t device) {
    return fake_of(device)->name;
}

static void device_memory(ggml_backend_dev_t device, size_t *free_bytes, size_t *total) {
    *free_bytes = fake_of(device)->memory_free;
    *total = fake_of(device)->memory_total;
}

static enum ggml_backend_dev_type device_type(ggml_backend_dev_t device) {
    return (enum ggml_backend_dev_type)fake_of(device)->type;
}

static void device_props(ggml_backend_dev_t device, struct ggml_backend_dev_props *props) {
    props->name = fake_of(device)->name;
    props->description = fake_of(device)->name;
    props->type = device_type(device);
    device_memory(device, &props->memory_free, &props->memory_total);
}

static int32_t device_stream(ggml_backend_dev_t device, const char *params,
                             ggml_backend_t *out_stream) {
    (void)params;
    struct fake_device *fake = fake_of(device);
    fake->calls.init_backend++;
    ggml_backend_t stream = object(fake, sizeof(*stream));
    if (!stream) return fake->lies ? GGML_HOST_OK : GGML_HOST_FAILED;
    stream->table = &fake->stream_table;
    stream->device = fake->forgets_device ? NULL : device;
    stream->context = fake;
    fake->n_streams++;
    *out_stream = stream;
    return GGML_HOST_OK;
}

static ggml_backend_buffer_type_t device_buft(ggml_backend_dev_t device) {
    return fake_of(device)->fails ? NULL : &fake_of(device)->buft;
}

static ggml_backend_buffer_type_t device_host_buft(ggml_backend_dev_t device) {
    return &fake_of(device)->host_buft;
}

// The memory is copied: what is tested is the wrapper.
static int32_t device_from_ptr(ggml_backend_dev_t device, void *ptr, size_t size,
                               size_t max_tensor_size, ggml_backend_buffer_t *out_buffer) {
    (void)max_tensor_size;
    struct fake_device *fake = fake_of(device);
    fake->calls.buffer_from_host_ptr++;
    if (fake->fails) return GGML_HOST_FAILED;
    void *memory = malloc(size);
    *out_buffer = memory ? wrap(fake, &fake->buft, memcpy(memory, ptr, size), size) : NULL;
    return *out_buffer ? GGML_HOST_OK : GGML_HOST_OUT_OF_MEMORY;
}

static bool device_supports_op(ggml_backend_dev_t device, const struct ggml_tensor *op) {
    fake_of(device)->calls.supports_op++;
    return op->op == GGML_OP_ADD;
}

static bool device_supports_buft(ggml_backend_dev_t device, ggml_backend_buffer_type_t buft) {
    fake_of(device)->calls.supports_buft++;
    return buft->device == device;
}

static bool device_offload_op(ggml_backend_dev_t device, const struct ggml_tensor *op) {
    (void)op;
    fake_of(device)->calls.offload_op++;
    return true;
}

static int32_t event_new(ggml_backend_dev_t device, ggml_backend_event_t *out_event) {
    struct fake_device *fake = fake_of(device);
    fake->calls.event_new++;
    ggml_backend_event_t event = object(fake, sizeof(*event));
    if (!event) return fake->lies ? GGML_HOST_OK : GGML_HOST_FAILED;
    event->table = &fake->event_table;
    event->context = fake;
    event->device = fake->forgets_device ? NULL : device;
    fake->n_events++;
    *out_event = event;
    return GGML_HOST_OK;
}

static void event_free(ggml_backend_event_t event) {
    struct fake_device *fake = event->context;
    fake->calls.event_free++;
    fake->n_events--;
    ggml_mem_free(event);
}

static int32_t event_synchronize(ggml_backend_event_t event) {
    ((struct fake_device *)event->context)->calls.event_synchronize++;
    return GGML_HOST_OK;
}

// --- templates

static const struct ggml_buffer_table buffer_template = {
    .size = sizeof(buffer_template),
    .free = buffer_free,
    .get_base = buffer_base,
    .init_tensor = buffer_init_tensor,
    .memset_tensor = buffer_memset,
    .set_tensor = buffer_set,
    .get_tensor = buffer_get,
    .set_tensor_2d = buffer_set_2d,
    .get_tensor_2d = buffer_get_2d,
    .cpy_tensor = buffer_copy,
    .clear = buffer_clear,
    .reset = buffer_reset,
};

static const struct ggml_buffer_type_table buft_template = {
    .size = sizeof(buft_template),
    .get_name = buft_name,
    .alloc_buffer = buft_alloc,
    .get_alignment = buft_alignment,
    .get_max_size = buft_max_size,
    .get_alloc_size = buft_alloc_size,
    .is_host = buft_is_host,
};

static const struct ggml_stream_table stream_template = {
    .size = sizeof(struct ggml_stream_table),
    .get_name = stream_name,
    .free = stream_free,
    .set_tensor_async = stream_set,
    .get_tensor_async = stream_get,
    .set_tensor_2d_async = stream_set_2d,
    .get_tensor_2d_async = stream_get_2d,
    .cpy_tensor_async = stream_copy,
    .synchronize = stream_synchronize,
    .graph_plan_create = plan_create,
    .graph_plan_free = plan_free,
    .graph_plan_compute = plan_compute,
    .graph_compute = stream_compute,
    .event_record = event_record,
    .event_wait = event_wait,
    .graph_optimize = graph_optimize,
};

static const struct ggml_event_table event_template = {
    .size = sizeof(struct ggml_event_table),
    .free = event_free,
    .synchronize = event_synchronize,
};

static const struct ggml_device_table device_template = {
    .size = sizeof(device_template),
    .get_name = device_name,
    .get_description = device_name,
    .get_memory = device_memory,
    .get_type = device_type,
    .get_props = device_props,
    .init_backend = device_stream,
    .get_buffer_type = device_buft,
    .get_host_buffer_type = device_host_buft,
    .buffer_from_host_ptr = device_from_ptr,
    .supports_op = device_supports_op,
    .supports_buft = device_supports_buft,
    .offload_op = device_offload_op,
    .event_new = event_new,
};

void fake_device_init(struct fake_device *fake, const char *name) {
    memset(fake, 0, sizeof(*fake));
    fake->device_table = device_template;
    fake->device.table = &fake->device_table;
    fake->device.reg = &fake->reg;
    fake->device.context = fake;
    fake->reg_table = (struct ggml_backend_table){.size = sizeof(fake->reg_table)};
    fake->reg.table = &fake->reg_table;
    fake->buft_table = buft_template;
    fake->buft.table = &fake->buft_table;
    fake->buft.device = &fake->device;
    fake->host_buft = fake->buft;
    fake->buffer_table = buffer_template;
    fake->stream_table = stream_template;
    fake->event_table = event_template;
    fake->name = name;
    fake->alignment = 64;
    fake->max_size = SIZE_MAX;
    fake->memory_free = 10;
    fake->memory_total = 20;
    fake->type = GGML_BACKEND_DEVICE_TYPE_GPU;
}

int fake_device_alive(const struct fake_device *fake) {
    return fake->n_buffers + fake->n_streams + fake->n_events + fake->n_plans;
}

// --- tensors

struct ggml_tensor fake_tensor(const char *name, int64_t ne0, int64_t ne1) {
    struct ggml_tensor tensor = {.type = GGML_TYPE_F32, .ne = {ne0, ne1, 1, 1}};
    tensor.nb[0] = sizeof(float);
    tensor.nb[1] = (size_t)ne0 * tensor.nb[0];
    tensor.nb[2] = tensor.nb[3] = (size_t)ne1 * tensor.nb[1];
    snprintf(tensor.name, sizeof(tensor.name), "%s", name);
    return tensor;
}

struct ggml_tensor fake_view(struct ggml_tensor *owner, int64_t ne0, size_t offset) {
    struct ggml_tensor tensor = fake_tensor("view", ne0, 1);
    tensor.op = GGML_OP_VIEW;
    tensor.src[0] = owner;
    tensor.view_src = owner;
    tensor.view_offs = offset;
    return tensor;
}

struct ggml_tensor fake_add(struct ggml_tensor *a, struct ggml_tensor *b) {
    struct ggml_tensor tensor = fake_tensor("sum", a->ne[0], a->ne[1]);
    tensor.op = GGML_OP_ADD;
    tensor.flags = GGML_TENSOR_FLAG_COMPUTE;
    tensor.src[0] = a;
    tensor.src[1] = b;
    return tensor;
}

void fake_place(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, size_t offset) {
    char *base = ggml_backend_buffer_get_base(buffer);
    assert_int_equal(ggml_backend_tensor_alloc(buffer, tensor, base + offset), GGML_STATUS_SUCCESS);
}
