// SPDX-License-Identifier: MIT
// Buffers that live at a node. Their addresses here are reserved and may not be used.
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "client.h"

static void *buffer_base(ggml_backend_buffer_t buffer) {
    return ((struct remote_buffer *)buffer->context)->base;
}

struct remote_buffer *remote_buffer_of(const struct ggml_tensor *tensor) {
    ggml_backend_buffer_t buffer = tensor->view_src ? tensor->view_src->buffer : tensor->buffer;
    return buffer && buffer->table->get_base == buffer_base ? buffer->context : NULL;
}

// Whether the node can reach it.
static bool lies_at(const struct node *node, const struct ggml_tensor *tensor) {
    const struct remote_buffer *buffer = remote_buffer_of(tensor);
    return (buffer && buffer->node == node) || !tensor->data || ggml_is_empty(tensor);
}

bool remote_lies_at(const struct node *node, const struct ggml_tensor *tensor) {
    if (lies_at(node, tensor)) return true;
    ggml_sdk_fail(GGML_HOST_INVALID_ARGUMENT, "'%s' does not lie in memory of MPI%d", tensor->name,
                  node->peer);
    return false;
}

// A node's memory is told as the id of a buffer and an offset in it; other memory has buffer 0.
void remote_describe_any(const struct node *node, const struct ggml_tensor *tensor,
                         struct wire_tensor *out) {
    const struct remote_buffer *buffer = remote_buffer_of(tensor);
    wire_describe(tensor, out);
    if (!tensor->data || !buffer || buffer->node != node) return;
    out->buffer = buffer->id;
    out->offset = (uint64_t)((const char *)tensor->data - buffer->base);
}

bool remote_describe(const struct node *node, const struct ggml_tensor *tensor,
                     struct wire_tensor *out_tensor) {
    remote_describe_any(node, tensor, out_tensor);
    if (tensor->view_src) out_tensor->view_src = 0; // whatever it views: the node knows it is one
    return remote_lies_at(node, tensor);
}

// --- transfers -----------------------------------------------------------------------------------

// Small data go within the message; others travel by themselves, from the caller's memory and
// without a copy, under a tag that the message names.
int32_t remote_set(struct node *node, struct line *line, uint32_t queue,
                   const struct ggml_tensor *tensor, const void *data, size_t offset, size_t size) {
    struct wire_message message = {
        .kind = WIRE_SET, .queue = queue, .offset = offset, .size = size};
    struct wire_tensor described;
    struct parts parts = {.first = &described, .first_size = sizeof(described)};
    if (!remote_describe(node, tensor, &described)) return GGML_HOST_INVALID_ARGUMENT;
    if (size <= WIRE_INLINE_BYTES) {
        parts.second = data;
        parts.second_size = size;
    } else {
        message.tag = client_take_tag(node->client);
        parts.send = data;
        parts.bytes = size;
    }
    const int32_t status = client_post(node, line, &message, &parts);
    client_drop_tag(node->client, message.tag);
    return status;
}

// Small data come within the answer, others under a tag straight into the caller's memory.
int32_t remote_get(struct node *node, struct line *line, uint32_t queue,
                   const struct ggml_tensor *tensor, void *data, size_t offset, size_t size) {
    struct wire_message message = {
        .kind = WIRE_GET, .queue = queue, .offset = offset, .size = size};
    struct wire_tensor described;
    struct parts parts = {.first = &described, .first_size = sizeof(described)};
    if (!remote_describe(node, tensor, &described)) return GGML_HOST_INVALID_ARGUMENT;
    if (size <= WIRE_INLINE_BYTES)
        return client_post_into(node, line, &message, &parts, data, size);
    message.tag = client_take_tag(node->client);
    parts.receive = data;
    parts.bytes = size;
    const int32_t status = client_post(node, line, &message, &parts);
    client_drop_tag(node->client, message.tag);
    return status;
}

// --- the table's entries -------------------------------------------------------------------------

// Waits for a line of one request's life; the first of the two statuses that is not OK counts.
static int32_t finish(struct remote_buffer *buffer, struct line *line, int32_t posted) {
    const int32_t status = line_wait(buffer->node, line);
    return posted != GGML_HOST_OK ? posted : status;
}

// Few bytes have left the caller's memory when this returns: the node is not waited for, as it does
// later requests later. A scheduler sets some inputs for each graph.
static int32_t set_quietly(struct node *node, const struct ggml_tensor *tensor, const void *data,
                           size_t offset, size_t size) {
    struct wire_message message = {
        .kind = WIRE_SET, .offset = offset, .size = size, .value = WIRE_QUIET};
    struct wire_tensor described;
    const struct parts parts = {
        .first = &described, .first_size = sizeof(described), .second = data, .second_size = size};
    if (!remote_describe(node, tensor, &described)) return GGML_HOST_INVALID_ARGUMENT;
    return client_tell(node, &message, &parts);
}

static int32_t set_tensor(ggml_backend_buffer_t handle, struct ggml_tensor *tensor,
                          const void *data, size_t offset, size_t size) {
    struct remote_buffer *buffer = handle->context;
    struct line line = {0};
    if (size <= WIRE_INLINE_BYTES) return set_quietly(buffer->node, tensor, data, offset, size);
    if (remote_set_from_file(buffer->node, tensor, data, offset, size)) return GGML_HOST_OK;
    return finish(buffer, &line, remote_set(buffer->node, &line, 0, tensor, data, offset, size));
}

static int32_t get_tensor(ggml_backend_buffer_t handle, const struct ggml_tensor *tensor,
                          void *data, size_t offset, size_t size) {
    struct remote_buffer *buffer = handle->context;
    struct line line = {0};
    return finish(buffer, &line, remote_get(buffer->node, &line, 0, tensor, data, offset, size));
}

// Blocks until the node has done it, like every entry of the table.
static int32_t memset_tensor(ggml_backend_buffer_t handle, struct ggml_tensor *tensor,
                             uint8_t value, size_t offset, size_t size) {
    struct remote_buffer *buffer = handle->context;
    struct wire_message message = {
        .kind = WIRE_MEMSET, .offset = offset, .size = size, .value = value};
    struct wire_tensor described;
    const struct parts parts = {.first = &described, .first_size = sizeof(described)};
    if (!remote_describe(buffer->node, tensor, &described)) return GGML_HOST_INVALID_ARGUMENT;
    return client_call(buffer->node, &message, &parts, NULL);
}

// --- copies --------------------------------------------------------------------------------------

// Copies between two tensors of one node: no data comes to the program.
int32_t remote_copy_within(struct node *node, struct line *line, uint32_t queue,
                           const struct ggml_tensor *src, const struct ggml_tensor *dst) {
    struct wire_message message = {.kind = WIRE_COPY, .queue = queue};
    struct wire_tensor described[2];
    const struct parts parts = {.first = described, .first_size = sizeof(described)};
    if (!remote_describe(node, src, &described[0]) || !remote_describe(node, dst, &described[1]))
        return GGML_HOST_INVALID_ARGUMENT;
    return client_post(node, line, &message, &parts);
}

// Both halves of a copy enter their queues before those of any later copy: so there is an order of
// all copies that every queue keeps, and no two queues wait for each other.
static pthread_mutex_t copying = PTHREAD_MUTEX_INITIALIZER;

void remote_order_lock(void) {
    pthread_mutex_lock(&copying);
}

void remote_order_unlock(void) {
    pthread_mutex_unlock(&copying);
}

// WIRE_SEND at the source and WIRE_RECEIVE at the target: the bytes go from node to node under a
// tag. Nothing is posted unless both can be: the other one would wait for bytes that don't come.
int32_t remote_copy_between(const struct remote_end *from, const struct remote_end *to) {
    struct wire_tensor described[2];
    if (!remote_describe(from->node, from->tensor, &described[0]) ||
        !remote_describe(to->node, to->tensor, &described[1])) {
        return GGML_HOST_INVALID_ARGUMENT;
    }
    if (!node_usable(from->node) || !node_usable(to->node)) return GGML_HOST_DEVICE_LOST;
    const uint32_t tag = client_take_tag(from->node->client);
    struct wire_message out = {.kind = WIRE_SEND,
                               .queue = from->queue,
                               .size = ggml_nbytes(from->tensor),
                               .peer = (uint32_t)to->node->peer,
                               .tag = tag};
    struct wire_message in = {.kind = WIRE_RECEIVE,
                              .queue = to->queue,
                              .size = ggml_nbytes(to->tensor),
                              .peer = (uint32_t)from->node->peer,
                              .tag = tag};
    const struct parts parts[2] = {
        {.first = &described[0], .first_size = sizeof(described[0]), .group = from->group},
        {.first = &described[1], .first_size = sizeof(described[1]), .group = to->group}};
    const struct posting both[2] = {{from->node, from->line, &out, &parts[0]},
                                    {to->node, to->line, &in, &parts[1]}};
    remote_order_lock();
    const int32_t status = client_post_both(both);
    remote_order_unlock();
    client_drop_tag(from->node->client, tag);
    return status;
}

// Copies from another buffer of this plugin, within a node or between two; UNSUPPORTED
// otherwise, after which the host copies by way of its own memory. Both ends are waited for,
// whatever became of the first.
static int32_t copy_tensor(ggml_backend_buffer_t handle, const struct ggml_tensor *src,
                           struct ggml_tensor *dst) {
    struct remote_buffer *buffer = handle->context;
    const struct remote_buffer *other = remote_buffer_of(src);
    struct line from = {0}, to = {0};
    if (!other) return GGML_HOST_UNSUPPORTED;
    if (other->node == buffer->node)
        return finish(buffer, &to, remote_copy_within(buffer->node, &to, 0, src, dst));
    if (!ggml_is_contiguous(src) || !ggml_is_contiguous(dst) ||
        !nodes_reach(other->node, buffer->node)) {
        return GGML_HOST_UNSUPPORTED;
    }
    const struct remote_end ends[2] = {{.node = other->node, .line = &from, .tensor = src},
                                       {.node = buffer->node, .line = &to, .tensor = dst}};
    const int32_t posted = remote_copy_between(&ends[0], &ends[1]);
    const int32_t sent = line_wait(other->node, &from);
    const int32_t received = line_wait(buffer->node, &to);
    if (posted != GGML_HOST_OK) return posted;
    return sent != GGML_HOST_OK ? sent : received;
}

// The node fills the whole buffer.
static int32_t clear(ggml_backend_buffer_t handle, uint8_t value) {
    const struct remote_buffer *buffer = handle->context;
    struct wire_message message = {.kind = WIRE_BUFFER_CLEAR, .object = buffer->id, .value = value};
    return client_call(buffer->node, &message, NULL, NULL);
}

static int32_t set_usage(ggml_backend_buffer_t handle, enum ggml_backend_buffer_usage usage) {
    const struct remote_buffer *buffer = handle->context;
    struct wire_message message = {
        .kind = WIRE_BUFFER_USAGE, .object = buffer->id, .value = (uint32_t)usage};
    return client_call(buffer->node, &message, NULL, NULL);
}

// --- buffers -------------------------------------------------------------------------------------

// Frees this side of a buffer: its addresses and its record.
static void release(struct remote_buffer *buffer) {
    if (buffer->base) munmap(buffer->base, buffer->size);
    free(buffer);
}

// A node that is lost has freed its side. No failure is told, as there is nobody to tell.
static void buffer_free(ggml_backend_buffer_t handle) {
    struct remote_buffer *buffer = handle->context;
    struct node *node = buffer->node;
    struct wire_message message = {.kind = WIRE_BUFFER_FREE, .object = buffer->id};
    atomic_fetch_add(&node->generation, 1);
    if (!atomic_load(&node->lost)) client_post(node, &node->buffers, &message, NULL);
    release(buffer);
    ggml_sdk_buffer_free(handle);
}

static const struct ggml_buffer_table buffer_table = {
    .size = sizeof(buffer_table),
    .free = buffer_free,
    .get_base = buffer_base,
    .memset_tensor = memset_tensor,
    .set_tensor = set_tensor,
    .get_tensor = get_tensor,
    .cpy_tensor = copy_tensor,
    .clear = clear,
    .set_usage = set_usage,
};

// --- type ----------------------------------------------------------------------------------------

static struct remote_device *device_of(ggml_backend_buffer_type_t buft) {
    return buft->context;
}

// Reserves addresses without memory (PROT_NONE), of which tensors' data pointers are made; the
// node has the memory. The id is chosen here, so that later requests can name the buffer before
// its answer has come.
static int32_t alloc_buffer(ggml_backend_buffer_type_t buft, size_t size,
                            ggml_backend_buffer_t *out_buffer) {
    enum { FLAGS = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };
    struct remote_device *device = device_of(buft);
    struct node *node = device->node;
    if (!node_usable(node)) return GGML_HOST_DEVICE_LOST;
    struct remote_buffer *buffer = calloc(1, sizeof(*buffer));
    void *base = buffer ? mmap(NULL, size, PROT_NONE, FLAGS, -1, 0) : MAP_FAILED;
    if (base == MAP_FAILED) {
        free(buffer);
        return ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "no addresses for %zu bytes of %s", size,
                             device->name);
    }
    *buffer = (struct remote_buffer){
        .node = node,
        .device = device,
        .id = atomic_fetch_add(&node->client->next_object, 1) + 1,
        .base = base,
        .size = size,
    };
    struct wire_message message = {
        .kind = WIRE_BUFFER_NEW, .device = device->index, .object = buffer->id, .size = size};
    int32_t status = client_call(node, &message, NULL, NULL);
    if (status != GGML_HOST_OK) {
        release(buffer);
        return status;
    }
    *out_buffer = ggml_sdk_buffer_new(buft, &buffer_table, buffer, size);
    if (*out_buffer) return GGML_HOST_OK;
    message = (struct wire_message){.kind = WIRE_BUFFER_FREE, .object = buffer->id};
    client_call(node, &message, NULL, NULL);
    release(buffer);
    return GGML_HOST_OUT_OF_MEMORY;
}

static const char *type_name(ggml_backend_buffer_type_t buft) {
    return device_of(buft)->name;
}

static size_t type_alignment(ggml_backend_buffer_type_t buft) {
    return (size_t)device_of(buft)->about.alignment;
}

static size_t type_max_size(ggml_backend_buffer_type_t buft) {
    return (size_t)device_of(buft)->about.max_size;
}

static size_t type_alloc_size(ggml_backend_buffer_type_t buft, const struct ggml_tensor *tensor) {
    return remote_alloc_size(device_of(buft), tensor);
}

static const struct ggml_buffer_type_table type_table = {
    .size = sizeof(type_table),
    .get_name = type_name,
    .alloc_buffer = alloc_buffer,
    .get_alignment = type_alignment,
    .get_max_size = type_max_size,
    .get_alloc_size = type_alloc_size,
};

void remote_buft_init(struct remote_device *device) {
    device->buft = (struct ggml_backend_buffer_type){
        .table = &type_table, .device = &device->base, .context = device};
}
