// SPDX-License-Identifier: MIT
// The backend of port.cpp as its sources would look for ggml's interface of late 2023, in C and
// C++: a function that makes a stream.
#include <stdlib.h>
#include <string.h>

#include "ggml-backend.h"
#include "ggml-impl.h"

#ifdef __cplusplus
extern "C"
#endif
    ggml_backend_t
    ggml_backend_port_init(void);

static void buffer_free(ggml_backend_buffer_t buffer) {
    free(buffer->context);
}

static void *buffer_base(ggml_backend_buffer_t buffer) {
    return buffer->context;
}

static struct ggml_backend_buffer_i buffer_interface = {
    /* .free_buffer    = */ buffer_free,
    /* .get_base       = */ buffer_base,
    /* .get_alloc_size = */ NULL,
    /* .init_tensor    = */ NULL,
    /* .free_tensor    = */ NULL,
};

static const char *stream_name(ggml_backend_t backend) {
    (void)backend;
    return "Port";
}

static void stream_free(ggml_backend_t backend) {
    free(backend);
}

static ggml_backend_buffer_t stream_alloc_buffer(ggml_backend_t backend, size_t size) {
    void *memory = size > SIZE_MAX / 2 ? NULL : aligned_alloc(64, (size + 63) / 64 * 64);
    return memory ? ggml_backend_buffer_init(backend, buffer_interface, memory, size) : NULL;
}

static size_t stream_alignment(ggml_backend_t backend) {
    (void)backend;
    return 64;
}

static void stream_set(ggml_backend_t backend, struct ggml_tensor *tensor, const void *data,
                       size_t offset, size_t size) {
    (void)backend;
    memcpy((char *)tensor->data + offset, data, size);
}

static void stream_get(ggml_backend_t backend, const struct ggml_tensor *tensor, void *data,
                       size_t offset, size_t size) {
    (void)backend;
    memcpy(data, (const char *)tensor->data + offset, size);
}

static bool is_plain(const struct ggml_tensor *tensor) {
    return tensor && tensor->type == GGML_TYPE_F32 && ggml_is_contiguous(tensor);
}

static bool stream_supports_op(ggml_backend_t backend, const struct ggml_tensor *op) {
    (void)backend;
    return op->op == GGML_OP_ADD && is_plain(op) && is_plain(op->src[0]) && is_plain(op->src[1]) &&
           ggml_are_same_shape(op->src[0], op->src[1]);
}

static void stream_compute(ggml_backend_t backend, struct ggml_cgraph *cgraph) {
    (void)backend;
    for (int i = 0; i < cgraph->n_nodes; ++i) {
        const struct ggml_tensor *node = cgraph->nodes[i];
        if (node->op != GGML_OP_ADD) continue;
        const float *a = (const float *)node->src[0]->data;
        const float *b = (const float *)node->src[1]->data;
        for (int64_t k = 0; k < ggml_nelements(node); ++k)
            ((float *)node->data)[k] = a[k] + b[k];
    }
}

static struct ggml_backend_i stream_interface = {
    /* .get_name           = */ stream_name,
    /* .free               = */ stream_free,
    /* .alloc_buffer       = */ stream_alloc_buffer,
    /* .get_alignment      = */ stream_alignment,
    /* .set_tensor_async   = */ stream_set,
    /* .get_tensor_async   = */ stream_get,
    /* .synchronize        = */ NULL,
    /* .cpy_tensor_from    = */ NULL,
    /* .cpy_tensor_to      = */ NULL,
    /* .graph_plan_create  = */ NULL,
    /* .graph_plan_free    = */ NULL,
    /* .graph_plan_compute = */ NULL,
    /* .graph_compute      = */ stream_compute,
    /* .supports_op        = */ stream_supports_op,
};

ggml_backend_t ggml_backend_port_init(void) {
#ifdef __cplusplus
    return new ggml_backend{
        /* .iface   = */ stream_interface,
        /* .context = */ NULL,
    };
#else
    ggml_backend_t backend = malloc(sizeof(struct ggml_backend));
    *backend = (struct ggml_backend){
        .iface = stream_interface,
        .context = NULL,
    };
    return backend;
#endif
}
