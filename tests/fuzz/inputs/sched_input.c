// SPDX-License-Identifier: MIT
// Devices whose answers come from the input (addresses, sizes, statuses), under a scheduler that
// computes small graphs on them.
#include "fuzz/inputs/sched_input.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "ggml-alloc.h"
#include "ggml-backend-impl.h"
#include "ggml-host.h"
#include "ggml-impl.h"

enum { MOST_DEVICES = 3, MOST_TENSORS = 24, MOST_BYTES = 1 << 20, ROUNDS = 3 };

static void require(bool holds) {
    if (!holds) abort();
}

// --- the input -----------------------------------------------------------------------------------

static const unsigned char *input;
static size_t n_left;

// 0 after the end: what a device returns that behaves.
static unsigned byte(void) {
    if (n_left == 0) return 0;
    --n_left;
    return *input++;
}

static unsigned below(unsigned n) {
    return byte() % n;
}

// Seven of eight times what is asked for.
static bool odd(void) {
    return byte() > 223;
}

static int32_t status(void) {
    static const int32_t failures[] = {
        GGML_HOST_FAILED,  GGML_HOST_OUT_OF_MEMORY, GGML_HOST_UNSUPPORTED,
        GGML_HOST_ABORTED, GGML_HOST_DEVICE_LOST,   77,
        INT32_MIN};
    return odd() ? failures[below(7)] : GGML_HOST_OK;
}

// --- memory --------------------------------------------------------------------------------------

struct fake {
    struct ggml_backend_device device;
    struct ggml_backend_buffer_type type;
    enum ggml_backend_dev_type kind;
    char name[16];
    unsigned character; // what does not change
};

static struct fake fakes[MOST_DEVICES];

static struct fake *fake_of(ggml_backend_dev_t device) {
    return device->context;
}

struct memory {
    char *data;
    bool nowhere;
};

static void buffer_free(ggml_backend_buffer_t buffer) {
    struct memory *memory = buffer->context;
    ggml_aligned_free(memory->data, buffer->size);
    free(memory);
    ggml_sdk_buffer_free(buffer);
}

static void *buffer_base(ggml_backend_buffer_t buffer) {
    const struct memory *memory = buffer->context;
    return memory->nowhere ? NULL : memory->data;
}

static int32_t buffer_init_tensor(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor) {
    (void)buffer;
    (void)tensor;
    return status();
}

static int32_t buffer_memset(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                             uint8_t value, size_t offset, size_t size) {
    (void)buffer;
    memset((char *)tensor->data + offset, value, size);
    return status();
}

static int32_t buffer_set(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                          const void *data, size_t offset, size_t size) {
    (void)buffer;
    memcpy((char *)tensor->data + offset, data, size);
    return status();
}

static int32_t buffer_get(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor,
                          void *data, size_t offset, size_t size) {
    (void)buffer;
    memcpy(data, (const char *)tensor->data + offset, size);
    return status();
}

static int32_t buffer_copy(ggml_backend_buffer_t buffer, const struct ggml_tensor *src,
                           struct ggml_tensor *dst) {
    (void)buffer;
    const int32_t answer = status();
    if (answer == GGML_HOST_OK) memmove(dst->data, src->data, ggml_nbytes(src));
    return answer;
}

static int32_t buffer_clear(ggml_backend_buffer_t buffer, uint8_t value) {
    memset(((struct memory *)buffer->context)->data, value, buffer->size);
    return status();
}

static int32_t buffer_set_usage(ggml_backend_buffer_t buffer,
                                enum ggml_backend_buffer_usage usage) {
    (void)buffer;
    (void)usage;
    return status();
}

static const struct ggml_buffer_table buffer_table = {
    .size = sizeof(buffer_table),
    .free = buffer_free,
    .get_base = buffer_base,
    .init_tensor = buffer_init_tensor,
    .memset_tensor = buffer_memset,
    .set_tensor = buffer_set,
    .get_tensor = buffer_get,
    .cpy_tensor = buffer_copy,
    .clear = buffer_clear,
    .set_usage = buffer_set_usage,
};

static int32_t type_alloc(ggml_backend_buffer_type_t type, size_t size,
                          ggml_backend_buffer_t *out_buffer) {
    const int32_t answer = size > MOST_BYTES ? GGML_HOST_OUT_OF_MEMORY : status();
    if (answer != GGML_HOST_OK || odd()) return answer; // perhaps OK and no buffer
    struct memory *memory = calloc(1, sizeof(*memory));
    require(memory != NULL);
    memory->data = ggml_aligned_malloc(size + 1);
    require(memory->data != NULL);
    memset(memory->data, 0, size);
    memory->nowhere = byte() > 250;
    *out_buffer = ggml_sdk_buffer_new(type, &buffer_table, memory, size);
    require(*out_buffer != NULL);
    return GGML_HOST_OK;
}

static const char *type_name(ggml_backend_buffer_type_t type) {
    return fake_of(type->device)->name;
}

static size_t type_alignment(ggml_backend_buffer_type_t type) {
    static const size_t sizes[] = {32, 0, 3, 1, 4096, SIZE_MAX, (size_t)1 << 63, 64};
    (void)type;
    return odd() ? sizes[below(8)] : 32;
}

static size_t type_max_size(ggml_backend_buffer_type_t type) {
    static const size_t sizes[] = {SIZE_MAX, 0, 1, 512, 4096, 65536, 31, 1 << 20};
    return sizes[fake_of(type->device)->character >> 4 & 7];
}

static size_t type_alloc_size(ggml_backend_buffer_type_t type, const struct ggml_tensor *tensor) {
    const size_t size = ggml_nbytes(tensor);
    const size_t sizes[] = {size + 8, size * 2,     0,           size - 1,
                            SIZE_MAX, SIZE_MAX / 2, size + 4096, 1};
    (void)type;
    return odd() ? sizes[below(8)] : size;
}

static bool type_is_host(ggml_backend_buffer_type_t type) {
    return fake_of(type->device)->character & 1;
}

static const struct ggml_buffer_type_table type_table = {
    .size = sizeof(type_table),
    .get_name = type_name,
    .alloc_buffer = type_alloc,
    .get_alignment = type_alignment,
    .get_max_size = type_max_size,
    .get_alloc_size = type_alloc_size,
    .is_host = type_is_host,
};

// --- events --------------------------------------------------------------------------------------

static void event_free(ggml_backend_event_t event) {
    free(event);
}

static int32_t event_synchronize(ggml_backend_event_t event) {
    (void)event;
    return status();
}

static const struct ggml_event_table event_table = {
    .size = sizeof(event_table), .free = event_free, .synchronize = event_synchronize};

static int32_t device_event_new(ggml_backend_dev_t device, ggml_backend_event_t *out_event) {
    const int32_t answer = status();
    if (answer != GGML_HOST_OK || odd()) return answer; // perhaps OK and no event
    ggml_backend_event_t event = calloc(1, sizeof(*event));
    require(event != NULL);
    event->table = &event_table;
    event->device = device;
    *out_event = event;
    return GGML_HOST_OK;
}

// --- streams -------------------------------------------------------------------------------------

static const char *stream_name(ggml_backend_t stream) {
    return fake_of(stream->device)->name;
}

static void stream_free(ggml_backend_t stream) {
    free(stream);
}

static int32_t stream_set(ggml_backend_t stream, struct ggml_tensor *tensor, const void *data,
                          size_t offset, size_t size) {
    (void)stream;
    const int32_t answer = status();
    if (answer == GGML_HOST_OK) memcpy((char *)tensor->data + offset, data, size);
    return answer;
}

static int32_t stream_get(ggml_backend_t stream, const struct ggml_tensor *tensor, void *data,
                          size_t offset, size_t size) {
    (void)stream;
    const int32_t answer = status();
    if (answer == GGML_HOST_OK) memcpy(data, (const char *)tensor->data + offset, size);
    return answer;
}

static int32_t stream_copy(ggml_backend_t from, ggml_backend_t to, const struct ggml_tensor *src,
                           struct ggml_tensor *dst) {
    (void)from;
    (void)to;
    const int32_t answer = status();
    if (answer == GGML_HOST_OK) memmove(dst->data, src->data, ggml_nbytes(src));
    return answer;
}

static int32_t stream_synchronize(ggml_backend_t stream) {
    (void)stream;
    return status();
}

static volatile unsigned sink;

static const struct ggml_tensor *computed[2 * MOST_TENSORS]; // since the graph began
static int n_computed;

static bool was_computed(const struct ggml_tensor *node) {
    for (int i = 0; i < n_computed; ++i)
        if (computed[i] == node) return true;
    return false;
}

// Reads all of the operands and writes all of the result, so that a sanitizer sees memory that the
// scheduler did not give.
static int32_t stream_compute(ggml_backend_t stream, const struct ggml_graph *graph) {
    (void)stream;
    for (int i = 0; i < graph->n_nodes; ++i) {
        struct ggml_tensor *node = graph->nodes[i];
        require(!was_computed(node) && n_computed < 2 * MOST_TENSORS);
        computed[n_computed++] = node;
        if (ggml_is_empty(node)) continue;
        for (int k = 0; k < GGML_MAX_SRC; ++k) {
            const struct ggml_tensor *src = node->src[k];
            for (size_t b = 0; src && b < ggml_nbytes(src); ++b)
                sink += ((const unsigned char *)src->data)[b];
        }
        if (!ggml_is_view(node)) memset(node->data, 1, ggml_nbytes(node));
    }
    return status();
}

static int32_t stream_event(ggml_backend_t stream, ggml_backend_event_t event) {
    (void)stream;
    (void)event;
    return status();
}

static int32_t stream_optimize(ggml_backend_t stream, struct ggml_graph *graph) {
    (void)stream;
    if (graph->n_nodes <= 0) return status();
    const unsigned n = (unsigned)graph->n_nodes;
    struct ggml_tensor **a = &graph->nodes[below(n)], **b = &graph->nodes[below(n)];
    struct ggml_tensor *first = *a;
    switch (below(16)) {
    case 8:
    case 9:
    case 10:
        *a = *b;
        *b = first;
        break;
    case 11: *a = *b; break;
    case 12: *a = NULL; break;
    case 13: --graph->n_nodes; break;
    case 14: graph->use_counts = NULL; break;
    case 15: *a = first && first->src[0] ? first->src[0] : first; break;
    default: break;
    }
    return status();
}

static const struct ggml_stream_table stream_tables[] = {
    {.size = sizeof(stream_tables[0]),
     .get_name = stream_name,
     .free = stream_free,
     .set_tensor_async = stream_set,
     .get_tensor_async = stream_get,
     .cpy_tensor_async = stream_copy,
     .synchronize = stream_synchronize,
     .graph_compute = stream_compute,
     .event_record = stream_event,
     .event_wait = stream_event,
     .graph_optimize = stream_optimize},
    {.size = sizeof(stream_tables[0]),
     .get_name = stream_name,
     .free = stream_free,
     .synchronize = stream_synchronize,
     .graph_compute = stream_compute},
};

// --- devices -------------------------------------------------------------------------------------

static const char *device_name(ggml_backend_dev_t device) {
    return fake_of(device)->name;
}

static void device_memory(ggml_backend_dev_t device, size_t *out_free, size_t *out_total) {
    static const size_t sizes[] = {0, 1, 4096, SIZE_MAX, (size_t)1 << 40};
    (void)device;
    *out_free = sizes[below(5)];
    *out_total = sizes[below(5)];
}

static enum ggml_backend_dev_type device_type(ggml_backend_dev_t device) {
    return fake_of(device)->kind;
}

static void device_props(ggml_backend_dev_t device, struct ggml_backend_dev_props *props) {
    const unsigned character = fake_of(device)->character;
    props->name = props->description = fake_of(device)->name;
    props->type = fake_of(device)->kind;
    props->caps.async = character >> 1 & 1;
    props->caps.events = character >> 2 & 1;
}

static int32_t device_init(ggml_backend_dev_t device, const char *params,
                           ggml_backend_t *out_stream) {
    (void)params;
    ggml_backend_t stream = calloc(1, sizeof(*stream));
    require(stream != NULL);
    stream->table = &stream_tables[fake_of(device)->character >> 3 & 1];
    stream->device = device;
    *out_stream = stream;
    return GGML_HOST_OK;
}

static ggml_backend_buffer_type_t device_buffer_type(ggml_backend_dev_t device) {
    return &fake_of(device)->type;
}

static bool device_supports_op(ggml_backend_dev_t device, const struct ggml_tensor *op) {
    (void)device;
    (void)op;
    return !odd();
}

static bool device_supports_buft(ggml_backend_dev_t device, ggml_backend_buffer_type_t type) {
    return (type == &fake_of(device)->type) != odd();
}

static bool device_offload_op(ggml_backend_dev_t device, const struct ggml_tensor *op) {
    (void)device;
    (void)op;
    return odd();
}

static const struct ggml_device_table device_table = {
    .size = sizeof(device_table),
    .get_name = device_name,
    .get_description = device_name,
    .get_memory = device_memory,
    .get_type = device_type,
    .get_props = device_props,
    .init_backend = device_init,
    .get_buffer_type = device_buffer_type,
    .supports_op = device_supports_op,
    .supports_buft = device_supports_buft,
    .offload_op = device_offload_op,
    .event_new = device_event_new,
};

static void fake_init(struct fake *fake, int i, bool is_last) {
    *fake =
        (struct fake){.device = {.table = &device_table, .context = fake},
                      .type = {.table = &type_table, .device = &fake->device},
                      .kind = is_last ? GGML_BACKEND_DEVICE_TYPE_CPU : GGML_BACKEND_DEVICE_TYPE_GPU,
                      .character = byte()};
    snprintf(fake->name, sizeof(fake->name), "FAKE%d", i);
}

// --- graphs --------------------------------------------------------------------------------------

struct scene {
    ggml_backend_t streams[MOST_DEVICES];
    int n_streams;
    struct ggml_context *weights, *ctx;
    ggml_backend_buffer_t buffer; // of the weights
    struct ggml_tensor *tensors[MOST_TENSORS];
    int n;
    struct ggml_cgraph *graph;
};

static void keep(struct scene *scene, struct ggml_tensor *tensor) {
    if (tensor && ggml_last_status() == GGML_HOST_OK && scene->n < MOST_TENSORS)
        scene->tensors[scene->n++] = tensor;
    ggml_clear_error();
}

static struct ggml_tensor *any(const struct scene *scene) {
    return scene->tensors[below((unsigned)scene->n)];
}

static struct ggml_tensor *call(const struct scene *scene) {
    struct ggml_context *ctx = scene->ctx;
    struct ggml_tensor *a = any(scene), *b = any(scene);
    switch (below(12)) {
    case 0: return ggml_add(ctx, a, b);
    case 1: return ggml_mul(ctx, a, b);
    case 2: return ggml_mul_mat(ctx, a, b);
    case 3: return ggml_relu(ctx, a);
    case 4: return ggml_view_1d(ctx, a, 1 + below(8), 4 * below(8));
    case 5: return ggml_cpy(ctx, a, b);
    case 6: return ggml_add_inplace(ctx, a, b);
    case 7: return ggml_cont(ctx, ggml_transpose(ctx, a));
    case 8: return ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 1 + below(8), 1 + below(8));
    case 9: return ggml_soft_max(ctx, a);
    case 10: return ggml_sum_rows(ctx, a);
    default: return ggml_reshape_1d(ctx, a, ggml_nelements(a));
    }
}

static void build(struct scene *scene) {
    const struct ggml_init_params params = {.mem_size = 2 * MOST_TENSORS * ggml_tensor_overhead() +
                                                        ggml_graph_overhead(),
                                            .no_alloc = true};
    scene->ctx = ggml_init(params);
    require(scene->ctx != NULL);
    scene->graph = ggml_new_graph(scene->ctx);
    const int first = scene->n;
    for (unsigned i = 0, n = below(MOST_TENSORS); i < n; ++i) {
        keep(scene, call(scene));
        if (byte() > 240) ggml_set_input(scene->tensors[scene->n - 1]);
        if (byte() > 240) ggml_set_output(scene->tensors[scene->n - 1]);
    }
    for (int i = first; i < scene->n; ++i)
        ggml_build_forward_expand(scene->graph, scene->tensors[i]);
    ggml_clear_error();
}

// false: the device gave no memory.
static bool add_weights(struct scene *scene) {
    const struct ggml_init_params params = {.mem_size = 4 * ggml_tensor_overhead(),
                                            .no_alloc = true};
    scene->weights = ggml_init(params);
    require(scene->weights != NULL);
    keep(scene, ggml_new_tensor_2d(scene->weights, GGML_TYPE_F32, 4, 4));
    keep(scene, ggml_new_tensor_1d(scene->weights, GGML_TYPE_F32, 1 + below(64)));
    struct fake *fake = &fakes[below((unsigned)scene->n_streams)];
    scene->buffer = ggml_backend_alloc_ctx_tensors_from_buft(scene->weights, &fake->type);
    require(scene->buffer || ggml_last_error()[0] != '\0');
    if (!scene->buffer) return false;
    ggml_backend_buffer_set_usage(scene->buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    return true;
}

// --- the scheduler -------------------------------------------------------------------------------

static void set_costs(const struct scene *scene, ggml_backend_sched_t sched) {
    static const double rates[] = {1e9, 0, -1, 1e-300, 1e300, 4e12, 1e-6, 1e18};
    struct ggml_device_figures figures[MOST_DEVICES];
    const struct ggml_device_figures *pointers[MOST_DEVICES];
    for (int i = 0; i < scene->n_streams; ++i) {
        figures[i] = (struct ggml_device_figures){.size = sizeof(figures[i]),
                                                  .flags = byte(),
                                                  .flops = rates[below(8)],
                                                  .bytes_per_second = rates[below(8)],
                                                  .launch_seconds = rates[below(8)],
                                                  .link_bytes_per_second = rates[below(8)],
                                                  .link_seconds = rates[below(8)],
                                                  .memory_bytes = byte() > 128 ? byte() : 0};
        pointers[i] = &figures[i];
    }
    ggml_sched_set_costs(sched, pointers);
}

// A failure says why.
static bool told(bool good) {
    require(good || ggml_last_error()[0] != '\0');
    ggml_clear_error();
    return good;
}

static void report(ggml_backend_sched_t sched, struct ggml_cgraph *graph) {
    ggml_sched_report_t placement = ggml_sched_report_new(sched, graph);
    if (told(placement != NULL)) require(ggml_sched_report_json(placement) != NULL);
    ggml_sched_report_free(placement);
}

static void compute(const struct scene *scene, ggml_backend_sched_t sched) {
    n_computed = 0;
    const enum ggml_status answer =
        byte() % 2 ? ggml_backend_sched_graph_compute(sched, scene->graph)
                   : ggml_backend_sched_graph_compute_async(sched, scene->graph);
    require(answer == GGML_STATUS_SUCCESS || answer == GGML_STATUS_FAILED ||
            answer == GGML_STATUS_ALLOC_FAILED || answer == GGML_STATUS_ABORTED);
    if (told(answer == GGML_STATUS_SUCCESS)) {
        for (int i = 0; i < scene->graph->n_nodes; ++i)
            require(was_computed(scene->graph->nodes[i]));
    }
    ggml_backend_sched_synchronize(sched);
    ggml_clear_error();
}

static void use_result(const struct scene *scene) {
    unsigned char bytes[64] = {0};
    struct ggml_tensor *tensor = any(scene);
    const size_t size = MIN(ggml_nbytes(tensor), sizeof(bytes));
    if (tensor->data || tensor->buffer) ggml_backend_tensor_get(tensor, bytes, 0, size);
    if (tensor->data || tensor->buffer) ggml_backend_tensor_set(tensor, bytes, 0, size);
    ggml_clear_error();
}

static void round_of(struct scene *scene, ggml_backend_sched_t sched) {
    const int n = scene->n;
    build(scene);
    const unsigned what = byte();
    if (what & 1) told(ggml_backend_sched_reserve(sched, scene->graph));
    for (unsigned i = what >> 1 & 3; i > 0; --i) {
        ggml_backend_sched_set_tensor_backend(sched, any(scene),
                                              scene->streams[below((unsigned)scene->n_streams)]);
    }
    ggml_clear_error();
    if (what & 8) report(sched, scene->graph);
    if (!(what & 16) || told(ggml_backend_sched_alloc_graph(sched, scene->graph))) {
        if (what & 32) use_result(scene);
        compute(scene, sched);
        if (what & 64) compute(scene, sched);
        use_result(scene);
    }
    if (what & 8) report(sched, NULL);
    ggml_backend_sched_reset(sched);
    ggml_free(scene->ctx);
    scene->n = n;
}

static void keep_quiet(enum ggml_log_level level, const char *text, void *context) {
    (void)level;
    (void)text;
    (void)context;
}

void run_sched_input(const unsigned char *data, size_t size) {
    struct scene scene = {0};
    input = data;
    n_left = size;
    ggml_log_set(keep_quiet, NULL);
    ggml_clear_error();
    scene.n_streams = 1 + (int)below(MOST_DEVICES);
    for (int i = 0; i < scene.n_streams; ++i) {
        fake_init(&fakes[i], i, i == scene.n_streams - 1);
        scene.streams[i] = ggml_backend_dev_init(&fakes[i].device, NULL);
        require(scene.streams[i] != NULL);
    }
    const unsigned how = byte();
    const bool usable = add_weights(&scene);
    ggml_backend_sched_t sched =
        ggml_backend_sched_new(scene.streams, NULL, scene.n_streams, 64, how & 1, how >> 1 & 1);
    if (told(sched != NULL)) {
        if (how & 4) set_costs(&scene, sched);
        ggml_clear_error();
        for (int i = 0; i < ROUNDS && usable; ++i)
            round_of(&scene, sched);
    }
    ggml_backend_sched_free(sched);
    ggml_backend_buffer_free(scene.buffer);
    ggml_free(scene.weights);
    for (int i = 0; i < scene.n_streams; ++i)
        ggml_backend_free(scene.streams[i]);
    ggml_clear_error();
}
