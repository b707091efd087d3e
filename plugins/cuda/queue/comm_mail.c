// SPDX-License-Identifier: MIT
// Messages of a group: what is sent is copied to memory of the sender's device at once, so that its
// stream goes on whatever the receiver does; the receiver's stream waits for that copy and takes
// it. The memory is used again when the next message finds it received, and freed where that does
// not fit and it was read, so that a pair of ranks has as many as were under way at once.
#include "device/loader.h"
#include "memory/budget.h"
#include "memory/buffer.h"
#include "queue/comm.h"

// Frees a message in the sender's context. The receiver reads the memory by work of its own device,
// which freeing need not wait for: `waits` does. A forked child, or a device that was lost so that
// its context can't be entered, leaves the driver's objects to the driver.
static void release(const struct ggml_comm_group *group, struct cuda_message *m, bool waits) {
    const struct cu_api *api = cuda_api();
    if (cuda_in_owner() &&
        api->cuCtxPushCurrent(group->streams[m->from]->context->handle) == CUDA_SUCCESS) {
        if (waits && m->received) api->cuEventSynchronize(m->received);
        if (m->sent) api->cuEventDestroy(m->sent);
        if (m->received) api->cuEventDestroy(m->received);
        if (m->memory) cuda_memory_free(group->streams[m->from]->context, m->memory, m->room);
        cuda_context_leave();
    }
    ggml_aligned_free(m, sizeof(*m));
}

// Also those that nobody received.
void cuda_comm_drop_messages(ggml_comm_group_t group) {
    while (group->first) {
        struct cuda_message *m = group->first;
        group->first = m->next;
        release(group, m, true);
    }
}

// The sender's memory and both events; `received` is of the receiver's context, which records it.
static enum ggml_host_status make(const struct ggml_comm_group *group, uint32_t from, uint32_t to,
                                  size_t room, struct cuda_message **out_message) {
    const struct cu_api *api = cuda_api();
    struct cuda_context *sender = group->streams[from]->context;
    struct cuda_context *receiver = group->streams[to]->context;
    struct cuda_message *m = ggml_aligned_malloc(sizeof(*m));
    if (!m) return ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "cuda: no memory for a message");
    *m = (struct cuda_message){.from = from, .to = to, .room = room};
    *out_message = m;
    enum ggml_host_status status = cuda_context_enter(sender);
    if (status == GGML_HOST_OK) {
        status = cuda_memory_new(sender, room, &m->memory);
        if (status == GGML_HOST_OK)
            status = cuda_context_check(
                sender, api->cuEventCreate(&m->sent, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
        cuda_context_leave();
    }
    if (status == GGML_HOST_OK) status = cuda_context_enter(receiver);
    if (status == GGML_HOST_OK) {
        status = cuda_context_check(
            receiver, api->cuEventCreate(&m->received, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
        cuda_context_leave();
    }
    return status;
}

// Takes out of the list a message between the two ranks that was received and has room for so many
// bytes; NULL: there is none. Linear in the messages of the group.
static struct cuda_message *take_received(ggml_comm_group_t group, uint32_t from, uint32_t to,
                                          size_t room) {
    struct cuda_message **at = &group->first;
    while (*at &&
           !((*at)->is_received && (*at)->from == from && (*at)->to == to && (*at)->room >= room))
        at = &(*at)->next;
    struct cuda_message *m = *at;
    if (m) *at = m->next;
    return m;
}

// Whether the receiver's device has read a message that was received.
static bool was_read(const struct ggml_comm_group *group, const struct cuda_message *m) {
    if (cuda_context_enter(group->streams[m->from]->context) != GGML_HOST_OK) return false;
    const bool read = cuda_api()->cuEventQuery(m->received) == CUDA_SUCCESS;
    cuda_context_leave();
    return read;
}

// Frees the messages between the two ranks that were read. Others stay for a later call: none waits
// for another rank.
static void drop_read(ggml_comm_group_t group, uint32_t from, uint32_t to) {
    struct cuda_message **at = &group->first;
    while (*at) {
        struct cuda_message *m = *at;
        if (m->is_received && m->from == from && m->to == to && was_read(group, m)) {
            *at = m->next;
            release(group, m, false);
        } else {
            at = &m->next;
        }
    }
}

// Returns in *out_message a message with room for the bytes: one between the same two ranks that
// was received already, or a new one, in whose place those go that are too small. Either goes to
// the end of the list, so that messages of a pair are received in the order in which they were
// sent.
static enum ggml_host_status take(ggml_comm_group_t group, uint32_t from, uint32_t to, size_t room,
                                  struct cuda_message **out_message) {
    struct cuda_message *m = take_received(group, from, to, room);
    if (!m) {
        drop_read(group, from, to);
        const enum ggml_host_status status = make(group, from, to, room, &m);
        if (status != GGML_HOST_OK && m) release(group, m, false);
        if (status != GGML_HOST_OK) return status;
    }
    m->next = NULL;
    struct cuda_message **at = &group->first;
    while (*at)
        at = &(*at)->next;
    *at = *out_message = m;
    return GGML_HOST_OK;
}

// Queues on the stream: wait for `before` (an event that was never recorded is over), copy, record
// `after`. No thread blocks.
static enum ggml_host_status queue_copy(const struct cuda_stream *stream, CUevent before,
                                        CUdeviceptr to, const struct cuda_stream *from_stream,
                                        CUdeviceptr from, size_t size, CUevent after) {
    const struct cu_api *api = cuda_api();
    enum ggml_host_status status = cuda_context_enter(stream->context);
    if (status != GGML_HOST_OK) return status;
    CUresult result = api->cuStreamWaitEvent(stream->handle, before, 0);
    if (result == CUDA_SUCCESS && size > 0)
        result = cuda_copy(to, stream->context, from, from_stream->context, size, stream->handle);
    if (result == CUDA_SUCCESS) result = api->cuEventRecord(after, stream->handle);
    status = cuda_context_check(stream->context, result, "a message");
    cuda_context_leave();
    return status;
}

// Out of memory is the sender's alone, and the group goes on; any other failure leaves it unusable,
// since ranks may have queued their half of an exchange.
int32_t cuda_comm_send(ggml_comm_group_t group, uint32_t from, uint32_t to,
                       const struct ggml_tensor *tensor) {
    int32_t begun = cuda_comm_begin(group);
    if (begun != GGML_HOST_OK) return begun;
    if (from >= group->n) return cuda_comm_no_rank(from);
    if (to >= group->n || to == from) return cuda_comm_no_rank(to);
    begun = ggml_sdk_comm_check_tensors(&group->backends[from], 1, &tensor);
    if (begun != GGML_HOST_OK) return begun;
    const struct cuda_stream *stream = group->streams[from];
    const size_t size = ggml_nbytes(tensor);
    struct cuda_message *m;
    enum ggml_host_status status = take(group, from, to, MAX(size, (size_t)256), &m);
    if (status == GGML_HOST_OUT_OF_MEMORY) return status;
    if (status != GGML_HOST_OK) return cuda_comm_end(group, status);
    m->is_received = false;
    m->tensor = *tensor;
    m->tensor.view_src = NULL;
    m->tensor.buffer = NULL;
    m->tensor.data = (void *)(uintptr_t)m->memory;
    status = queue_copy(stream, m->received, m->memory, stream,
                        (CUdeviceptr)(uintptr_t)tensor->data, size, m->sent);
    return cuda_comm_end(group, status);
}

// Takes the oldest message of the pair that was not received. There must be one: a group is used by
// one thread, so that nobody could send it later.
int32_t cuda_comm_receive(ggml_comm_group_t group, uint32_t to, uint32_t from,
                          struct ggml_tensor *tensor) {
    int32_t begun = cuda_comm_begin(group);
    if (begun != GGML_HOST_OK) return begun;
    if (to >= group->n) return cuda_comm_no_rank(to);
    if (from >= group->n || from == to) return cuda_comm_no_rank(from);
    const struct ggml_tensor *received = tensor;
    begun = ggml_sdk_comm_check_tensors(&group->backends[to], 1, &received);
    if (begun != GGML_HOST_OK) return begun;
    struct cuda_message *m = group->first;
    while (m && (m->is_received || m->from != from || m->to != to))
        m = m->next;
    if (!m)
        return ggml_sdk_fail(GGML_HOST_INVALID_ARGUMENT,
                             "cuda: rank %u has sent nothing to rank %u", from, to);
    begun = ggml_sdk_comm_check_copy(&m->tensor, 1, tensor);
    if (begun != GGML_HOST_OK) return begun;
    m->is_received = true;
    return cuda_comm_end(
        group, queue_copy(group->streams[to], m->sent, (CUdeviceptr)(uintptr_t)tensor->data,
                          group->streams[from], m->memory, ggml_nbytes(tensor), m->received));
}
