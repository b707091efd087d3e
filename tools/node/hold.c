// SPDX-License-Identifier: MIT
// Buffers of the program, and tensors in them.
#include <stdlib.h>

#include "server.h"

// --- references ----------------------------------------------------------------------------------

struct held_buffer *buffer_find(struct server *server, uint64_t id) {
    pthread_mutex_lock(&server->lock);
    struct held_buffer *found = server->buffers;
    while (found && found->id != id)
        found = found->next;
    if (found) ++found->n_references;
    pthread_mutex_unlock(&server->lock);
    if (!found) refuse("a buffer that there is not");
    return found;
}

void buffer_release(struct server *server, struct held_buffer *buffer) {
    if (!buffer) return;
    pthread_mutex_lock(&server->lock);
    const bool last = --buffer->n_references == 0;
    pthread_mutex_unlock(&server->lock);
    if (!last) return;
    ggml_backend_buffer_free(buffer->buffer);
    free(buffer->root);
    free(buffer);
}

// --- buffers -------------------------------------------------------------------------------------

static bool is_known(const struct server *server, uint64_t id) {
    const struct held_buffer *buffer = server->buffers;
    while (buffer && buffer->id != id)
        buffer = buffer->next;
    return buffer != NULL;
}

enum ggml_host_status buffer_make(struct server *server, const struct wire_message *message) {
    if (message->device >= server->n_devices) return refuse("a device that there is not");
    if (message->object == 0 || message->size == 0) return refuse("a buffer without a size or id");
    ggml_backend_dev_t device = server->devices[message->device];
    ggml_backend_buffer_type_t buft = ggml_backend_dev_buffer_type(device);
    struct held_buffer *held = calloc(1, sizeof(*held));
    ggml_backend_buffer_t buffer =
        held ? ggml_backend_buft_alloc_buffer(buft, (size_t)message->size) : NULL;
    if (!buffer) {
        free(held);
        const enum ggml_host_status status = last_status();
        return status != GGML_HOST_OK ? status : GGML_HOST_OUT_OF_MEMORY;
    }
    *held = (struct held_buffer){.id = message->object,
                                 .n_references = 1,
                                 .buffer = buffer,
                                 .size = (size_t)message->size,
                                 .is_host = ggml_backend_buft_is_host(buft)};
    held->is_for_mpi =
        held->is_host || device_memory_is_for_mpi(server, device, buffer, held->size);
    pthread_mutex_lock(&server->lock);
    const bool known = is_known(server, held->id);
    if (!known) {
        held->next = server->buffers;
        server->buffers = held;
    }
    pthread_mutex_unlock(&server->lock);
    if (!known) return GGML_HOST_OK;
    buffer_release(server, held);
    return refuse("a buffer that there is already");
}

enum ggml_host_status buffer_end(struct server *server, uint64_t id) {
    pthread_mutex_lock(&server->lock);
    struct held_buffer **at = &server->buffers;
    while (*at && (*at)->id != id)
        at = &(*at)->next;
    struct held_buffer *held = *at;
    if (held) *at = held->next;
    pthread_mutex_unlock(&server->lock);
    if (!held) return refuse("a buffer that there is not");
    graph_forget(server, 0, held);
    buffer_release(server, held);
    return GGML_HOST_OK;
}

// --- tensors -------------------------------------------------------------------------------------

// What a device keeps beyond a tensor's own bytes has to be there too, except behind a view.
static bool fits(const struct held_buffer *held, const struct wire_tensor *from,
                 const struct ggml_tensor *tensor) {
    const char *why;
    uint64_t span;
    if (!wire_tensor_sound(from, WIRE_MAX_TENSORS, &span, &why)) return false;
    if (from->offset > held->size || span > held->size - from->offset) return false;
    if (from->view_src >= 0) return true;
    const size_t size =
        ggml_backend_buft_get_alloc_size(ggml_backend_buffer_get_type(held->buffer), tensor);
    return size <= held->size - from->offset;
}

// The buffer in which a tensor lies, with a reference; NULL after a failure.
static struct held_buffer *find_place(struct server *server, const struct wire_tensor *from,
                                      const struct ggml_tensor *tensor) {
    struct held_buffer *held = buffer_find(server, from->buffer);
    if (!held) return NULL;
    if (ggml_backend_buffer_get_base(held->buffer) && fits(held, from, tensor)) return held;
    buffer_release(server, held);
    refuse("a tensor that does not lie within its buffer");
    return NULL;
}

// False after the device has said why not.
static bool put(const struct held_buffer *held, uint64_t offset, struct ggml_tensor *tensor) {
    tensor->buffer = held->buffer;
    tensor->data = (char *)ggml_backend_buffer_get_base(held->buffer) + offset;
    return ggml_backend_buffer_init_tensor(held->buffer, tensor) == GGML_STATUS_SUCCESS;
}

bool tensor_place(struct server *server, const struct wire_tensor *from, struct ggml_tensor *tensor,
                  struct held_buffer **out_buffer) {
    *out_buffer = NULL;
    tensor->buffer = NULL;
    tensor->data = NULL;
    if (from->buffer == 0) return true;
    struct held_buffer *held = find_place(server, from, tensor);
    if (!held) return false;
    if (!put(held, from->offset, tensor)) {
        buffer_release(server, held);
        return false;
    }
    *out_buffer = held;
    return true;
}

// All bytes of a buffer.
static void make_root(const struct held_buffer *held, struct ggml_tensor *tensor) {
    *tensor = (struct ggml_tensor){.type = GGML_TYPE_I8};
    for (int i = 0; i < GGML_MAX_DIMS; ++i) {
        tensor->ne[i] = i == 0 ? (int64_t)held->size : 1;
        tensor->nb[i] = i == 0 ? 1 : held->size;
    }
}

// The root of what views a buffer, which it keeps; NULL after a failure. Of two that threads make
// at once the first stays.
static struct ggml_tensor *root_of(struct server *server, struct held_buffer *held) {
    pthread_mutex_lock(&server->lock);
    struct ggml_tensor *root = held->root, *made = NULL;
    pthread_mutex_unlock(&server->lock);
    if (root) return root;
    made = malloc(sizeof(*made));
    if (!made) {
        fail(GGML_HOST_OUT_OF_MEMORY, "no memory for a tensor");
        return NULL;
    }
    make_root(held, made);
    if (put(held, 0, made)) {
        pthread_mutex_lock(&server->lock);
        if (!held->root) {
            held->root = made;
            made = NULL;
        }
        root = held->root;
        pthread_mutex_unlock(&server->lock);
    }
    free(made);
    return root;
}

bool tensor_place_alone(struct server *server, const struct wire_tensor *from,
                        struct placed *placed) {
    struct ggml_tensor *tensor = &placed->tensor;
    wire_restore(from, tensor);
    if (from->view_src < 0 || from->buffer == 0)
        return tensor_place(server, from, tensor, &placed->held);
    placed->held = find_place(server, from, tensor);
    if (!placed->held) return false;
    tensor->view_src = root_of(server, placed->held);
    tensor->view_offs = (size_t)from->offset;
    if (tensor->view_src && put(placed->held, from->offset, tensor)) return true;
    buffer_release(server, placed->held);
    placed->held = NULL;
    return false;
}
