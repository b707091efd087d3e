// SPDX-License-Identifier: MIT
// Streams as the ranks of a group (extension "ggml.comm"). They don't queue, so that everything is
// done by the calling thread before an entry returns; what is sent is kept until it is received.
#include "entry/comm.h"

#include "base/util.h"
#include "runtime/device.h"

struct message {
    struct message *next;
    uint32_t from, to;
    struct ggml_tensor tensor; // its data lies behind the message
};

struct ggml_comm_group {
    uint32_t n;
    struct message *first; // in order of the sends
    const void **parts;    // n; NULL: not counted
    ggml_backend_t streams[];
};

// Streams and parts lie behind the group, in one allocation.
static size_t group_bytes(uint32_t n) {
    return sizeof(struct ggml_comm_group) + n * (sizeof(ggml_backend_t) + sizeof(const void *));
}

static int32_t no_memory(size_t size) {
    cpu_fail(GGML_STATUS_ALLOC_FAILED, GGML_HOST_OUT_OF_MEMORY, "comm: no memory for %zu bytes",
             size);
    return GGML_HOST_OUT_OF_MEMORY;
}

// A group within this process: its streams are all of this plugin. The list of parts has room for
// one pointer per rank.
static int32_t group_new(const struct ggml_comm_ranks *ranks, ggml_comm_group_t *out_group) {
    const int32_t status = ggml_sdk_comm_check_ranks(ranks, cpu_reg());
    if (status != GGML_HOST_OK) return status;
    const size_t size = group_bytes(ranks->n_ranks);
    struct ggml_comm_group *group = ggml_aligned_malloc(size);
    if (!group) return no_memory(size);
    *group = (struct ggml_comm_group){.n = ranks->n_ranks};
    memcpy(group->streams, ranks->streams, group->n * sizeof(group->streams[0]));
    group->parts = (const void **)(group->streams + group->n);
    *out_group = group;
    return GGML_HOST_OK;
}

static size_t message_bytes(const struct ggml_tensor *tensor) {
    return sizeof(struct message) + ggml_nbytes(tensor);
}

static void drop(struct message *message) {
    ggml_aligned_free(message, message_bytes(&message->tensor));
}

// Messages that were sent and never received are freed, too.
static void group_free(ggml_comm_group_t group) {
    if (!group) return;
    while (group->first) {
        struct message *message = group->first;
        group->first = message->next;
        drop(message);
    }
    ggml_aligned_free(group, group_bytes(group->n));
}

static int32_t check(const struct ggml_comm_group *group,
                     const struct ggml_tensor *const *tensors) {
    return ggml_sdk_comm_check_tensors(group->streams, group->n, tensors);
}

static int32_t no_rank(uint32_t rank) {
    cpu_fail(GGML_STATUS_FAILED, GGML_HOST_INVALID_ARGUMENT, "comm: rank %u is not in the group",
             rank);
    return GGML_HOST_INVALID_ARGUMENT;
}

// Combines into the first part and copies it to the others: O(n ranks x elements), by one thread. A
// part that does not count is not read, only written.
static int32_t all_reduce(ggml_comm_group_t group, enum ggml_comm_reduction reduction,
                          struct ggml_tensor *const *parts, const uint8_t *counts) {
    const int32_t status = check(group, (const struct ggml_tensor *const *)parts);
    if (status != GGML_HOST_OK) return status;
    if (!ggml_sdk_comm_combines(reduction, parts[0]->type)) return GGML_HOST_UNSUPPORTED;
    for (uint32_t i = 0; i < group->n; ++i)
        group->parts[i] = !counts || counts[i] ? parts[i]->data : NULL;
    ggml_sdk_comm_combine(reduction, parts[0]->type, group->parts, group->n, 0,
                          (size_t)ggml_nelements(parts[0]), parts[0]->data);
    for (uint32_t i = 1; i < group->n; ++i)
        memcpy(parts[i]->data, parts[0]->data, ggml_nbytes(parts[0]));
    return GGML_HOST_OK;
}

// All ranks are in this process' memory: the root's tensor is copied to the others. The caller is
// the only thread, so that no synchronisation is needed.
static int32_t broadcast(ggml_comm_group_t group, uint32_t root,
                         struct ggml_tensor *const *tensors) {
    if (root >= group->n) return no_rank(root);
    const int32_t status = check(group, (const struct ggml_tensor *const *)tensors);
    if (status != GGML_HOST_OK) return status;
    for (uint32_t i = 0; i < group->n; ++i) {
        if (i != root) memcpy(tensors[i]->data, tensors[root]->data, ggml_nbytes(tensors[root]));
    }
    return GGML_HOST_OK;
}

// Each result has the parts one after the other, in order of the ranks.
static int32_t all_gather(ggml_comm_group_t group, const struct ggml_tensor *const *parts,
                          struct ggml_tensor *const *results) {
    int32_t status = check(group, parts);
    if (status == GGML_HOST_OK) status = check(group, (const struct ggml_tensor *const *)results);
    for (uint32_t i = 0; i < group->n && status == GGML_HOST_OK; ++i)
        status = ggml_sdk_comm_check_copy(parts[i], group->n, results[i]);
    for (uint32_t i = 0; i < group->n && status == GGML_HOST_OK; ++i) {
        const size_t size = ggml_nbytes(parts[0]);
        for (uint32_t k = 0; k < group->n; ++k)
            memcpy((char *)results[i]->data + k * size, parts[k]->data, size);
    }
    return status;
}

// Copies the data: the sender may change it as soon as the call returns. By the copy of the tensor
// the receiver's type and extents are checked.
static int32_t send(ggml_comm_group_t group, uint32_t from, uint32_t to,
                    const struct ggml_tensor *tensor) {
    if (from >= group->n) return no_rank(from);
    if (to >= group->n || to == from) return no_rank(to);
    const int32_t status = ggml_sdk_comm_check_tensors(&group->streams[from], 1, &tensor);
    if (status != GGML_HOST_OK) return status;
    struct message *message = ggml_aligned_malloc(message_bytes(tensor));
    struct message **last = &group->first;
    if (!message) return no_memory(message_bytes(tensor));
    *message = (struct message){.from = from, .to = to, .tensor = *tensor};
    message->tensor.data = message + 1;
    message->tensor.view_src = NULL;
    message->tensor.buffer = NULL;
    memcpy(message + 1, tensor->data, ggml_nbytes(tensor));
    while (*last)
        last = &(*last)->next;
    *last = message;
    return GGML_HOST_OK;
}

// Takes the oldest message of the pair. Nothing can come later, as there is no queue, so an absent
// one is the caller's fault.
static int32_t receive(ggml_comm_group_t group, uint32_t to, uint32_t from,
                       struct ggml_tensor *tensor) {
    if (to >= group->n) return no_rank(to);
    if (from >= group->n || from == to) return no_rank(from);
    const struct ggml_tensor *received = tensor;
    int32_t status = ggml_sdk_comm_check_tensors(&group->streams[to], 1, &received);
    if (status != GGML_HOST_OK) return status;
    struct message **at = &group->first;
    while (*at && ((*at)->from != from || (*at)->to != to))
        at = &(*at)->next;
    struct message *message = *at;
    if (!message) {
        cpu_fail(GGML_STATUS_FAILED, GGML_HOST_INVALID_ARGUMENT,
                 "comm: rank %u has sent nothing to rank %u", from, to);
        return GGML_HOST_INVALID_ARGUMENT;
    }
    status = ggml_sdk_comm_check_copy(&message->tensor, 1, tensor);
    if (status != GGML_HOST_OK) return status;
    memcpy(tensor->data, message + 1, ggml_nbytes(tensor));
    *at = message->next;
    drop(message);
    return GGML_HOST_OK;
}

const struct ggml_extension_comm cpu_comm = {
    .size = sizeof(cpu_comm),
    .revision = GGML_EXTENSION_COMM_REVISION,
    .group_new = group_new,
    .group_free = group_free,
    .all_reduce = all_reduce,
    .broadcast = broadcast,
    .all_gather = all_gather,
    .send = send,
    .receive = receive,
};
