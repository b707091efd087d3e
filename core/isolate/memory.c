// SPDX-License-Identifier: MIT
// Buffers of an isolated device: memory mapped in both processes, or reserved addresses that stand
// for memory which only the device can address.
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/mem.h"
#include "device/check.h"
#include "device/tensor_access.h"
#include "isolate/encode.h"

enum {
    PIECE_BYTES = 4 << 20, // of a transfer to memory of the device's own
    PIECES = 8,            // that are moved without a pause for others
};

// --- shared memory -------------------------------------------------------------------------------

// Mapped memory stays readable after the other process is gone, but its contents are unreliable:
// transfers fail like all other calls. What the device does to tensors that are placed comes first.
static bool usable(ggml_backend_buffer_t handle) {
    struct isolated_buffer *buffer = handle->context;
    struct channel *channel = &buffer->device->channel;
    struct isolate_request request = {.kind = ISOLATE_WAIT};
    if (!atomic_load(&buffer->is_behind)) return channel_usable(channel);
    if (!channel_lock(channel)) return false;
    const bool waited = channel_call(channel, &request, -1, NULL) == GGML_HOST_OK;
    atomic_store(&buffer->is_behind, !waited);
    channel_unlock(channel);
    return waited;
}

// No message to the other process: both have the memory mapped.
static int32_t shared_set(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                          const void *data, size_t offset, size_t size) {
    if (!usable(buffer)) return ggml_last_status();
    memmove((char *)tensor->data + offset, data, size);
    return GGML_HOST_OK;
}

static int32_t shared_get(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor,
                          void *data, size_t offset, size_t size) {
    if (!usable(buffer)) return ggml_last_status();
    memmove(data, (const char *)tensor->data + offset, size);
    return GGML_HOST_OK;
}

static int32_t shared_memset(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor,
                             uint8_t value, size_t offset, size_t size) {
    if (!usable(buffer)) return ggml_last_status();
    memset((char *)tensor->data + offset, value, size);
    return GGML_HOST_OK;
}

static int32_t shared_copy(ggml_backend_buffer_t buffer, const struct ggml_tensor *src,
                           struct ggml_tensor *dst) {
    if (!ggml_backend_buffer_is_host(device_tensor_buffer(src))) return GGML_HOST_UNSUPPORTED;
    if (!usable(buffer)) return ggml_last_status();
    memmove(dst->data, src->data, ggml_nbytes(src));
    return GGML_HOST_OK;
}

static int32_t shared_clear(ggml_backend_buffer_t buffer, uint8_t value) {
    const struct isolated_buffer *isolated = buffer->context;
    if (!usable(buffer)) return ggml_last_status();
    memset(isolated->memory.data, value, buffer->size);
    return GGML_HOST_OK;
}

// --- memory of the device's own ------------------------------------------------------------------

// Describes the tensor in shared memory, with room for `size` bytes after it; NULL on failure. The
// lock is held.
static char *describe(const struct isolated_buffer *buffer, const struct ggml_tensor *tensor,
                      size_t size) {
    struct channel *channel = &buffer->device->channel;
    if (channel_reserve(channel, sizeof(struct isolate_tensor) + size) != GGML_HOST_OK) return NULL;
    encode_tensor(buffer->device, tensor, (struct isolate_tensor *)channel->shared);
    return channel->shared + sizeof(struct isolate_tensor);
}

// A few bytes, as programs set before each graph, go with a message that nobody waits for: what
// follows finds them there, and fails if they could not be set. Weights are set once.
static int32_t own_post(const struct isolated_buffer *buffer, const struct ggml_tensor *tensor,
                        const void *data, size_t offset, size_t size) {
    struct channel *channel = &buffer->device->channel;
    struct isolate_request request = {.kind = ISOLATE_TENSOR_POST, .offset = offset, .size = size};
    struct isolate_tensor described;
    if (!channel_lock(channel)) return GGML_HOST_DEVICE_LOST;
    encode_tensor(buffer->device, tensor, &described);
    const enum ggml_host_status status = channel_post(channel, &request, &described, data, size);
    channel_unlock(channel);
    return status;
}

// A copy to or from memory of the device's own, through the channel's, in pieces. There is room for
// two, so that one is copied here while the other process copies the other.
struct transfer {
    const struct isolated_buffer *buffer;
    const struct ggml_tensor *tensor;
    const char *from; // of the application: to be set
    char *to;         // to be read; NULL: set
    size_t piece;     // bytes
};

// Where piece i lies in shared memory: its description, then its bytes.
static size_t piece_at(const struct transfer *t, size_t i) {
    const size_t size = sizeof(struct isolate_tensor) + t->piece;
    return i % 2 * ((size + 63) / 64 * 64);
}

// Of piece i, for which there is room.
static char *piece_bytes(const struct transfer *t, size_t i) {
    return t->buffer->device->channel.shared + piece_at(t, i) + sizeof(struct isolate_tensor);
}

// The request for piece i of what lies from `offset` on; bytes to be set are in place.
static enum ggml_host_status send_piece(const struct transfer *t, size_t i, size_t offset,
                                        size_t size, struct isolate_request *out_request) {
    struct channel *channel = &t->buffer->device->channel;
    const size_t at = piece_at(t, i);
    encode_tensor(t->buffer->device, t->tensor,
                  (struct isolate_tensor *)(void *)(channel->shared + at));
    *out_request = (struct isolate_request){.kind = t->to ? ISOLATE_TENSOR_GET : ISOLATE_TENSOR_SET,
                                            .id = at,
                                            .offset = offset,
                                            .size = size};
    return channel_send(channel, out_request, -1);
}

// Up to PIECES pieces, with the lock held. Nothing is under way when it returns.
static enum ggml_host_status move_pieces(const struct transfer *t, size_t offset, size_t size) {
    struct channel *channel = &t->buffer->device->channel;
    struct isolate_request request;
    const size_t n = (size + t->piece - 1) / t->piece;
    const size_t room = n > 1 ? piece_at(t, 1) + sizeof(struct isolate_tensor) + t->piece
                              : sizeof(struct isolate_tensor) + size;
    enum ggml_host_status status = channel_reserve(channel, room);
    for (size_t i = 0; i <= n && status == GGML_HOST_OK; ++i) {
        const size_t at = i * t->piece;
        if (i < n && !t->to) memcpy(piece_bytes(t, i), t->from + at, MIN(t->piece, size - at));
        if (i > 0) status = channel_wait(channel, &request, NULL);
        if (status != GGML_HOST_OK) break;
        if (i < n) status = send_piece(t, i, offset + at, MIN(t->piece, size - at), &request);
        if (i > 0 && t->to) {
            const size_t before = at - t->piece;
            memcpy(t->to + before, piece_bytes(t, i - 1), MIN(t->piece, size - before));
        }
    }
    return status;
}

// Whole blocks, so that none is divided, and as many bytes as the device takes at once: all where
// it takes whole tensors alone.
static size_t choose_piece(const struct ggml_tensor *tensor, size_t offset, size_t size) {
    const size_t unit = tensor_access_unit(tensor), block = ggml_type_size(tensor->type);
    if (unit >= size || size % unit != 0 || offset % unit != 0) return size;
    const size_t step = unit % block == 0 ? unit : unit * block;
    return step >= PIECE_BYTES ? step : PIECE_BYTES / step * step;
}

// The lock is released now and then, so that a large transfer doesn't hold up other streams.
static int32_t move(struct transfer *t, size_t offset, size_t size) {
    struct channel *channel = &t->buffer->device->channel;
    t->piece = choose_piece(t->tensor, offset, size);
    while (size > 0) {
        const size_t part = MIN(size, PIECES * t->piece);
        if (!channel_lock(channel)) return GGML_HOST_DEVICE_LOST;
        const enum ggml_host_status status = move_pieces(t, offset, part);
        channel_unlock(channel);
        if (status != GGML_HOST_OK) return status;
        if (t->to) t->to += part;
        if (t->from) t->from += part;
        offset += part;
        size -= part;
    }
    return GGML_HOST_OK;
}

static int32_t own_set(ggml_backend_buffer_t handle, struct ggml_tensor *tensor, const void *data,
                       size_t offset, size_t size) {
    const struct isolated_buffer *buffer = handle->context;
    const bool once = ggml_backend_buffer_get_usage(handle) == GGML_BACKEND_BUFFER_USAGE_WEIGHTS;
    if (size <= ISOLATE_POST_BYTES && !once) return own_post(buffer, tensor, data, offset, size);
    struct transfer transfer = {.buffer = buffer, .tensor = tensor, .from = data};
    return move(&transfer, offset, size);
}

static int32_t own_get(ggml_backend_buffer_t handle, const struct ggml_tensor *tensor, void *data,
                       size_t offset, size_t size) {
    struct transfer transfer = {.buffer = handle->context, .tensor = tensor, .to = data};
    return move(&transfer, offset, size);
}

static int32_t own_memset(ggml_backend_buffer_t handle, struct ggml_tensor *tensor, uint8_t value,
                          size_t offset, size_t size) {
    const struct isolated_buffer *buffer = handle->context;
    struct channel *channel = &buffer->device->channel;
    struct isolate_request request = {
        .kind = ISOLATE_TENSOR_MEMSET, .offset = offset, .size = size, .flag = value};
    if (!channel_lock(channel)) return GGML_HOST_DEVICE_LOST;
    const enum ggml_host_status status = describe(buffer, tensor, 0)
                                             ? channel_call(channel, &request, -1, NULL)
                                             : ggml_last_status();
    channel_unlock(channel);
    return status;
}

// Within this device; other copies go through the host.
static int32_t own_copy(ggml_backend_buffer_t handle, const struct ggml_tensor *src,
                        struct ggml_tensor *dst) {
    const struct isolated_buffer *buffer = handle->context;
    struct channel *channel = &buffer->device->channel;
    struct isolate_request request = {.kind = ISOLATE_TENSOR_COPY};
    if (!isolated_buffer_of(buffer->device, src)) return GGML_HOST_UNSUPPORTED;
    if (!channel_lock(channel)) return GGML_HOST_DEVICE_LOST;
    char *second = describe(buffer, src, sizeof(struct isolate_tensor));
    if (second) encode_tensor(buffer->device, dst, (struct isolate_tensor *)second);
    const enum ggml_host_status status =
        second ? channel_call(channel, &request, -1, NULL) : ggml_last_status();
    channel_unlock(channel);
    return status;
}

static int32_t own_clear(ggml_backend_buffer_t handle, uint8_t value) {
    const struct isolated_buffer *buffer = handle->context;
    struct isolate_request request = {
        .kind = ISOLATE_BUFFER_CLEAR, .id = buffer->id, .flag = value};
    return channel_ask(&buffer->device->channel, &request, -1);
}

// --- both ----------------------------------------------------------------------------------------

static int32_t set_usage(ggml_backend_buffer_t handle, enum ggml_backend_buffer_usage usage) {
    const struct isolated_buffer *buffer = handle->context;
    struct isolate_request request = {
        .kind = ISOLATE_BUFFER_USAGE, .id = buffer->id, .flag = (uint32_t)usage};
    return channel_ask(&buffer->device->channel, &request, -1);
}

// --- what the device attaches to tensors ---------------------------------------------------------

// With the lock held. Waits for tensors that live long; those of graphs and views are many each
// time, and what uses them fails if this did.
static enum ggml_host_status tell(struct channel *channel, const struct isolate_tensor described[2],
                                  bool is_view, bool waits) {
    const size_t more = is_view ? sizeof(described[1]) : 0;
    struct isolate_request request = {.kind = waits ? ISOLATE_TENSOR_INIT : ISOLATE_TENSOR_POST,
                                      .size = more,
                                      .flag = ISOLATE_POST_INIT};
    if (!waits) return channel_post(channel, &request, &described[0], &described[1], more);
    const enum ggml_host_status status = channel_reserve(channel, sizeof(described[0]) + more);
    if (status != GGML_HOST_OK) return status;
    request.flag = is_view;
    memcpy(channel->shared, described, sizeof(described[0]) + more);
    return channel_call(channel, &request, -1, NULL);
}

static uint64_t mix(uint64_t hash, const void *data, size_t size) {
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; ++i)
        hash = (hash ^ bytes[i]) * 0x100000001b3; // FNV-1a
    return hash;
}

// What a tensor is, and where in its buffer.
static uint64_t mix_tensor(uint64_t hash, const struct isolate_tensor *tensor) {
    hash = mix(hash, &tensor->owner_init, sizeof(tensor->owner_init));
    hash = mix(hash, &tensor->offset, sizeof(tensor->offset));
    hash = mix(hash, &tensor->type, sizeof(tensor->type));
    hash = mix(hash, &tensor->op, sizeof(tensor->op));
    hash = mix(hash, &tensor->flags, sizeof(tensor->flags));
    hash = mix(hash, tensor->op_params, sizeof(tensor->op_params));
    hash = mix(hash, tensor->ne, sizeof(tensor->ne));
    return mix(hash, tensor->nb, sizeof(tensor->nb));
}

// And what it is made of: nodes that write in place to one tensor may differ in that alone.
static uint64_t mix_sources(uint64_t hash, const struct isolated_device *device,
                            const struct ggml_tensor *tensor) {
    for (int i = 0; i < GGML_MAX_SRC; ++i) {
        struct isolate_tensor source;
        if (!tensor->src[i]) continue;
        encode_tensor(device, tensor->src[i], &source);
        hash = mix(hash, &i, sizeof(i));
        hash = mix(hash, &source.buffer, sizeof(source.buffer));
        hash = mix(hash, &source.init, sizeof(source.init));
        hash = mix_tensor(hash, &source);
    }
    return hash;
}

// The number of a tensor that is placed. Both kinds are the same when a graph is built again as it
// was, which then needs not be sent again: owners are counted since the last reset, and views,
// which may be made of a tensor for ever, have a number of what they are.
static uintptr_t number_of(const struct isolated_buffer *buffer, const struct ggml_tensor *tensor,
                           const struct isolate_tensor *described) {
    const uintptr_t top = ~(UINTPTR_MAX >> 1);
    if (!tensor->view_src) return buffer->n_owners + 1;
    const uint64_t hash = mix_tensor(0xcbf29ce484222325, described);
    return (uintptr_t)mix_sources(hash, buffer->device, tensor) | top;
}

static bool is_shared(const struct isolated_buffer *buffer) {
    return buffer->device->memory != ISOLATE_MEMORY_OWN;
}

// Whether the application may write to the tensor's address, without a call that could wait.
static bool is_written_in_place(const struct isolated_buffer *buffer,
                                const struct ggml_tensor *tensor) {
    return is_shared(buffer) && (tensor->flags & GGML_TENSOR_FLAG_INPUT);
}

// What is attached to the tensor stays in the other process, which finds it by a number.
static int32_t init_tensor(ggml_backend_buffer_t handle, struct ggml_tensor *tensor) {
    struct isolated_buffer *buffer = handle->context;
    struct isolated_device *device = buffer->device;
    const bool is_view = tensor->view_src != NULL;
    const bool waits = !is_view && (handle->usage != GGML_BACKEND_BUFFER_USAGE_COMPUTE ||
                                    is_written_in_place(buffer, tensor));
    struct isolate_tensor described[2];
    // Of a tensor in error `extra` says why.
    if (tensor->flags & GGML_TENSOR_FLAG_ERROR) return GGML_HOST_OK;
    if (!channel_lock(&device->channel)) return GGML_HOST_DEVICE_LOST;
    encode_tensor(device, tensor, &described[0]);
    if (is_view) encode_tensor(device, tensor->view_src, &described[1]);
    const uintptr_t number = number_of(buffer, tensor, &described[0]);
    described[0].init = number;
    const enum ggml_host_status status = tell(&device->channel, described, is_view, waits);
    buffer->has_tensors = true;
    if (!waits && is_shared(buffer)) atomic_store(&buffer->is_behind, true);
    if (status == GGML_HOST_OK) {
        tensor->extra = (void *)number;
        if (!is_view) buffer->n_owners = number;
    }
    channel_unlock(&device->channel);
    return status;
}

// Nobody waits: before each graph the buffers of its tensors are reset.
static int32_t reset(ggml_backend_buffer_t handle) {
    struct isolated_buffer *buffer = handle->context;
    struct isolated_device *device = buffer->device;
    struct isolate_request request = {.kind = ISOLATE_TENSOR_POST, .flag = ISOLATE_POST_RESET};
    const struct isolate_tensor described = {.has_data = 1, .buffer = buffer->id};
    enum ggml_host_status status = GGML_HOST_OK;
    if (!channel_lock(&device->channel)) return GGML_HOST_DEVICE_LOST;
    if (buffer->has_tensors) status = channel_post(&device->channel, &request, &described, NULL, 0);
    buffer->has_tensors = false;
    buffer->n_owners = 0;
    channel_unlock(&device->channel);
    return status;
}

// --- buffers -------------------------------------------------------------------------------------

static void *buffer_base(ggml_backend_buffer_t buffer) {
    return ((struct isolated_buffer *)buffer->context)->memory.data;
}

// A process that is gone has freed its side; nothing is recorded then.
static void end_buffer(struct isolated_buffer *buffer) {
    struct isolated_device *device = buffer->device;
    struct isolate_request request = {.kind = ISOLATE_BUFFER_FREE, .id = buffer->id};
    struct ggml_saved_error saved;
    ggml_error_save(&saved);
    if (channel_lock(&device->channel)) {
        ++device->generation;
        channel_call(&device->channel, &request, -1, NULL);
        channel_unlock(&device->channel);
    }
    ggml_error_restore(&saved);
    shared_memory_free(&buffer->memory);
    ggml_mem_free(buffer);
    atomic_fetch_sub(&device->n_alive, 1);
}

static void buffer_free(ggml_backend_buffer_t handle) {
    end_buffer(handle->context);
    ggml_sdk_buffer_free(handle);
}

#define SHARED_TABLE                                                                               \
    .size = sizeof(struct ggml_buffer_table), .free = buffer_free, .get_base = buffer_base,        \
    .memset_tensor = shared_memset, .set_tensor = shared_set, .get_tensor = shared_get,            \
    .cpy_tensor = shared_copy, .clear = shared_clear, .set_usage = set_usage

#define OWN_TABLE                                                                                  \
    .size = sizeof(struct ggml_buffer_table), .free = buffer_free, .get_base = buffer_base,        \
    .memset_tensor = own_memset, .set_tensor = own_set, .get_tensor = own_get,                     \
    .cpy_tensor = own_copy, .clear = own_clear, .set_usage = set_usage

// By whether memory is the device's own, and whether it is told of tensors.
static const struct ggml_buffer_table tables[2][2] = {
    {{SHARED_TABLE}, {SHARED_TABLE, .init_tensor = init_tensor, .reset = reset}},
    {{OWN_TABLE}, {OWN_TABLE, .init_tensor = init_tensor, .reset = reset}},
};

struct isolated_buffer *isolated_buffer_of(const struct isolated_device *device,
                                           const struct ggml_tensor *tensor) {
    ggml_backend_buffer_t buffer = device_tensor_buffer(tensor);
    return buffer && buffer->buft == &device->buft && buffer->table->get_base == buffer_base
               ? buffer->context
               : NULL;
}

static void give_back(char *from, const char *to) {
    if (from < to) munmap(from, (size_t)(to - from));
}

// Addresses that nobody else has and nobody may use, at a multiple of the alignment: of more than a
// page's only a part is one.
// PROT_NONE: a program that reads such an address by mistake crashes at once instead of reading
// something else. MAP_NORESERVE: costs no memory.
static enum ggml_host_status reserve_addresses(size_t size, size_t alignment,
                                               struct shared_memory *out_memory) {
    *out_memory = (struct shared_memory){.fd = -1};
    enum { FLAGS = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), more = alignment > page ? alignment : 0;
    char *all = MAP_FAILED;
    if (size <= SIZE_MAX / 2 - more && !ggml_fault(GGML_FAULT_MAP))
        all = mmap(NULL, size + more, PROT_NONE, FLAGS, -1, 0);
    if (all == MAP_FAILED)
        return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no addresses for a buffer of %zu bytes", size);
    char *data = all + (more ? (more - (uintptr_t)all % more) % more : 0);
    give_back(all, data);
    if (more) give_back(data + GGML_PAD(size, page), all + GGML_PAD(size + more, page));
    *out_memory = (struct shared_memory){-1, data, size};
    return GGML_HOST_OK;
}

// Has the other process make its side.
static enum ggml_host_status make_there(struct isolated_buffer *buffer, size_t size) {
    struct isolated_device *device = buffer->device;
    struct isolate_request request = {.kind = ISOLATE_BUFFER_NEW,
                                      .id = buffer->id,
                                      .size = size,
                                      .flag = (uint32_t)device->memory};
    struct isolate_answer answer = {0};
    if (!channel_lock(&device->channel)) return GGML_HOST_DEVICE_LOST;
    const enum ggml_host_status status =
        channel_call(&device->channel, &request, buffer->memory.fd, &answer);
    channel_unlock(&device->channel);
    buffer->attaches = answer.attaches != 0;
    return status;
}

// The file behind shared memory is closed once the other process has it: the mappings keep it
// alive.
static int32_t type_alloc(ggml_backend_buffer_type_t buft, size_t size,
                          ggml_backend_buffer_t *out_buffer) {
    struct isolated_device *device = buft->context;
    const bool own = device->memory == ISOLATE_MEMORY_OWN;
    struct isolated_buffer *buffer = NULL;
    if (!channel_usable(&device->channel)) return ggml_last_status();
    buffer = ggml_mem_calloc(1, sizeof(*buffer));
    if (!buffer) {
        return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for a buffer of %s",
                         device->channel.name);
    }
    buffer->device = device;
    buffer->id = atomic_fetch_add(&device->next_id, 1) + 1;
    enum ggml_host_status status =
        own ? reserve_addresses(size, ggml_backend_buft_get_alignment(buft), &buffer->memory)
            : shared_memory_new(size, &buffer->memory);
    if (status != GGML_HOST_OK) goto fail;
    status = make_there(buffer, own ? size : buffer->memory.size);
    if (status != GGML_HOST_OK) goto fail;
    if (buffer->memory.fd >= 0) close(buffer->memory.fd);
    buffer->memory.fd = -1;
    atomic_fetch_add(&device->n_alive, 1);
    *out_buffer = ggml_sdk_buffer_new(buft, &tables[own][buffer->attaches], buffer, size);
    if (*out_buffer) return GGML_HOST_OK;
    end_buffer(buffer);
    return GGML_HOST_OUT_OF_MEMORY;
fail:
    shared_memory_free(&buffer->memory);
    ggml_mem_free(buffer);
    return status;
}

// --- type ----------------------------------------------------------------------------------------

static const struct isolated_device *device_of(ggml_backend_buffer_type_t buft) {
    return buft->context;
}

static const char *type_name(ggml_backend_buffer_type_t buft) {
    return device_of(buft)->channel.name;
}

// Of the real type in the other process, which the tensors have to fit.
static size_t type_alignment(ggml_backend_buffer_type_t buft) {
    return ggml_backend_buft_get_alignment(device_of(buft)->original_buft);
}

static size_t type_max_size(ggml_backend_buffer_type_t buft) {
    return ggml_backend_buft_get_max_size(device_of(buft)->original_buft);
}

static size_t type_alloc_size(ggml_backend_buffer_type_t buft, const struct ggml_tensor *tensor) {
    return ggml_backend_buft_get_alloc_size(device_of(buft)->original_buft, tensor);
}

// Memory that is shared can be read and written in place by anybody in this process.
static bool type_is_host(ggml_backend_buffer_type_t buft) {
    return device_of(buft)->memory != ISOLATE_MEMORY_OWN;
}

static size_t type_access_unit(ggml_backend_buffer_type_t buft, const struct ggml_tensor *tensor) {
    ggml_backend_buffer_type_t original = device_of(buft)->original_buft;
    return original->table->get_access_unit ? original->table->get_access_unit(original, tensor)
                                            : 1;
}

static const struct ggml_buffer_type_table type_table = {
    .size = sizeof(type_table),
    .get_name = type_name,
    .alloc_buffer = type_alloc,
    .get_alignment = type_alignment,
    .get_max_size = type_max_size,
    .get_alloc_size = type_alloc_size,
    .is_host = type_is_host,
    .get_access_unit = type_access_unit,
};

void isolated_buft_init(struct isolated_device *device) {
    device->buft = (struct ggml_backend_buffer_type){
        .table = &type_table,
        .device = &device->base,
        .context = device,
    };
}
