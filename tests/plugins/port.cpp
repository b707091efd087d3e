// SPDX-License-Identifier: MIT
// One small backend as its sources would look for each of ggml's interfaces: it adds tensors in
// memory of its own. What stands between #if is what changed between them; nothing here knows of
// plugins but the last line.
#include <cstdlib>
#include <cstring>
#include <new>

#include "ggml-backend-impl.h"
#include "ggml-impl.h"

namespace {

// --- buffers -------------------------------------------------------------------------------------

void buffer_free(ggml_backend_buffer_t buffer) {
    std::free(buffer->context);
}

void *buffer_base(ggml_backend_buffer_t buffer) {
    return buffer->context;
}

#if GGML_PORT_API_VERSION >= 2
enum ggml_status buffer_init_tensor(ggml_backend_buffer_t, struct ggml_tensor *) {
    return GGML_STATUS_SUCCESS;
}
#else
void buffer_init_tensor(ggml_backend_buffer_t, struct ggml_tensor *) {
}
#endif

void buffer_memset(ggml_backend_buffer_t, struct ggml_tensor *tensor, uint8_t value, size_t offset,
                   size_t size) {
    memset(static_cast<char *>(tensor->data) + offset, value, size);
}

void buffer_set(ggml_backend_buffer_t, struct ggml_tensor *tensor, const void *data, size_t offset,
                size_t size) {
    memcpy(static_cast<char *>(tensor->data) + offset, data, size);
}

void buffer_get(ggml_backend_buffer_t, const struct ggml_tensor *tensor, void *data, size_t offset,
                size_t size) {
    memcpy(data, static_cast<const char *>(tensor->data) + offset, size);
}

bool buffer_copy(ggml_backend_buffer_t buffer, const struct ggml_tensor *src,
                 struct ggml_tensor *dst) {
    if (src->buffer->iface.get_base != buffer->iface.get_base) return false;
    memcpy(dst->data, src->data, ggml_nbytes(src));
    return true;
}

void buffer_clear(ggml_backend_buffer_t buffer, uint8_t value) {
    memset(buffer->context, value, buffer->size);
}

struct ggml_backend_buffer_i buffer_interface = {
    /* .free_buffer   = */ buffer_free,
    /* .get_base      = */ buffer_base,
    /* .init_tensor   = */ buffer_init_tensor,
    /* .memset_tensor = */ buffer_memset,
    /* .set_tensor    = */ buffer_set,
    /* .get_tensor    = */ buffer_get,
#if GGML_PORT_API_VERSION >= 2
    /* .set_tensor_2d = */ NULL,
    /* .get_tensor_2d = */ NULL,
#endif
    /* .cpy_tensor    = */ buffer_copy,
    /* .clear         = */ buffer_clear,
    /* .reset         = */ NULL,
};

// --- buffer type ---------------------------------------------------------------------------------

const char *buft_name(ggml_backend_buffer_type_t) {
    return "Port";
}

ggml_backend_buffer_t buft_alloc(ggml_backend_buffer_type_t buft, size_t size) {
    void *memory = size > SIZE_MAX / 2 ? NULL : std::aligned_alloc(64, (size + 63) / 64 * 64);
    return memory ? ggml_backend_buffer_init(buft, buffer_interface, memory, size) : NULL;
}

size_t buft_alignment(ggml_backend_buffer_type_t) {
    return 64;
}

bool buft_is_host(ggml_backend_buffer_type_t) {
    return true;
}

ggml_backend_buffer_type_t device_buffer_type(ggml_backend_dev_t device) {
    static struct ggml_backend_buffer_type buft = {
        /* .iface   = */ {
            /* .get_name         = */ buft_name,
            /* .alloc_buffer     = */ buft_alloc,
#if GGML_PORT_API_VERSION >= 3
            /* .alloc_buffer_n   = */ NULL,
#endif
            /* .get_alignment    = */ buft_alignment,
            /* .get_max_size     = */ NULL,
            /* .get_alloc_size   = */ NULL,
#if GGML_PORT_API_VERSION >= 3
            /* .get_alloc_size_n = */ NULL,
#endif
            /* .is_host          = */ buft_is_host,
        },
        /* .device  = */ device,
        /* .context = */ NULL,
    };
    return &buft;
}

// --- stream --------------------------------------------------------------------------------------

bool is_plain(const struct ggml_tensor *tensor) {
    return tensor && tensor->type == GGML_TYPE_F32 && ggml_is_contiguous(tensor);
}

bool adds(const struct ggml_tensor *node) {
    return node->op == GGML_OP_ADD && is_plain(node) && is_plain(node->src[0]) &&
           is_plain(node->src[1]) && ggml_are_same_shape(node->src[0], node->src[1]);
}

const char *stream_name(ggml_backend_t) {
    return "Port";
}

void stream_free(ggml_backend_t backend) {
    delete backend;
}

void add(const struct ggml_tensor *node, float *result, const float *a) {
    const float *b = static_cast<const float *>(node->src[1]->data);
    for (int64_t k = 0; k < ggml_nelements(node); ++k)
        result[k] = a[k] + b[k];
}

// Two sums in one go leave the first result where the second one comes.
bool add_twice(struct ggml_cgraph *cgraph, int i) {
    if (!ggml_can_fuse(cgraph, i, {GGML_OP_ADD, GGML_OP_ADD})) return false;
    const struct ggml_tensor *first = cgraph->nodes[i], *second = cgraph->nodes[i + 1];
    float *result = static_cast<float *>(second->data);
    if (second->src[0] != first || second->src[1] == first || second->src[1]->data == result)
        return false;
    add(first, result, static_cast<const float *>(first->src[0]->data));
    add(second, result, result);
    return true;
}

enum ggml_status stream_compute(ggml_backend_t, struct ggml_cgraph *cgraph) {
    for (int i = 0; i < cgraph->n_nodes; ++i) {
        const struct ggml_tensor *node = cgraph->nodes[i];
        if (node->op != GGML_OP_ADD || !(node->flags & GGML_TENSOR_FLAG_COMPUTE)) continue;
        if (add_twice(cgraph, i)) {
            ++i;
            continue;
        }
        add(node, static_cast<float *>(node->data), static_cast<const float *>(node->src[0]->data));
    }
    return GGML_STATUS_SUCCESS;
}

struct ggml_backend_i stream_interface = {
    /* .get_name            = */ stream_name,
    /* .free                = */ stream_free,
    /* .set_tensor_async    = */ NULL,
    /* .get_tensor_async    = */ NULL,
#if GGML_PORT_API_VERSION >= 2
    /* .set_tensor_2d_async = */ NULL,
    /* .get_tensor_2d_async = */ NULL,
#endif
    /* .cpy_tensor_async    = */ NULL,
    /* .synchronize         = */ NULL,
    /* .graph_plan_create   = */ NULL,
    /* .graph_plan_free     = */ NULL,
    /* .graph_plan_update   = */ NULL,
    /* .graph_plan_compute  = */ NULL,
    /* .graph_compute       = */ stream_compute,
    /* .event_record        = */ NULL,
    /* .event_wait          = */ NULL,
#if GGML_PORT_API_VERSION >= 2
    /* .graph_optimize      = */ NULL,
#endif
};

ggml_backend_t device_init(ggml_backend_dev_t device, const char *) {
    static ggml_guid guid = {0x70, 0x6f, 0x72, 0x74, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    return new (std::nothrow) ggml_backend{
        /* .guid    = */ &guid,
        /* .iface   = */ stream_interface,
        /* .device  = */ device,
        /* .context = */ NULL,
    };
}

// --- device --------------------------------------------------------------------------------------

const char *device_name(ggml_backend_dev_t) {
    return "PORT0";
}

void device_memory(ggml_backend_dev_t, size_t *free, size_t *total) {
    *free = 0;
    *total = 0;
}

enum ggml_backend_dev_type device_type(ggml_backend_dev_t) {
    return GGML_BACKEND_DEVICE_TYPE_ACCEL;
}

void device_props(ggml_backend_dev_t device, struct ggml_backend_dev_props *props) {
    props->name = device_name(device);
    props->description = device_name(device);
    props->type = device_type(device);
    device_memory(device, &props->memory_free, &props->memory_total);
    props->caps = {
        /* .async                = */ false,
        /* .host_buffer          = */ false,
        /* .buffer_from_host_ptr = */ false,
        /* .events               = */ false,
#if GGML_PORT_API_VERSION >= 3
        /* .mmap_support         = */ false,
#endif
    };
}

bool device_supports_op(ggml_backend_dev_t, const struct ggml_tensor *op) {
    return ggml_op_is_empty(op->op) || adds(op);
}

bool device_supports_buft(ggml_backend_dev_t, ggml_backend_buffer_type_t buft) {
    return buft->iface.get_name == buft_name;
}

const struct ggml_backend_device_i device_interface = {
    /* .get_name             = */ device_name,
    /* .get_description      = */ device_name,
    /* .get_memory           = */ device_memory,
    /* .get_type             = */ device_type,
    /* .get_props            = */ device_props,
    /* .init_backend         = */ device_init,
    /* .get_buffer_type      = */ device_buffer_type,
    /* .get_host_buffer_type = */ NULL,
    /* .buffer_from_host_ptr = */ NULL,
    /* .supports_op          = */ device_supports_op,
    /* .supports_buft        = */ device_supports_buft,
    /* .offload_op           = */ NULL,
    /* .event_new            = */ NULL,
    /* .event_free           = */ NULL,
    /* .event_synchronize    = */ NULL,
};

// --- registration --------------------------------------------------------------------------------

const char *reg_name(ggml_backend_reg_t) {
    return "PORT";
}

size_t reg_count(ggml_backend_reg_t) {
    return 1;
}

ggml_backend_dev_t reg_device(ggml_backend_reg_t reg, size_t) {
    static struct ggml_backend_device device = {
        /* .iface   = */ device_interface,
        /* .reg     = */ reg,
        /* .context = */ NULL,
    };
    return &device;
}

const struct ggml_backend_reg_i reg_interface = {
    /* .get_name         = */ reg_name,
    /* .get_device_count = */ reg_count,
    /* .get_device       = */ reg_device,
    /* .get_proc_address = */ NULL,
};

ggml_backend_reg_t port_reg() {
    static struct ggml_backend_reg reg = {
#if GGML_PORT_API_VERSION >= 2
        /* .api_version = */ GGML_BACKEND_API_VERSION,
#endif
        /* .iface       = */ reg_interface,
        /* .context     = */ NULL,
    };
    return &reg;
}

} // namespace

GGML_BACKEND_DL_IMPL(port_reg)
