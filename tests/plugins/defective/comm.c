// SPDX-License-Identifier: MIT
// Groups of streams: what a stream has queued is worked off first, and the rest done at once.
#include "defective.h"

enum { MAX_RANKS = 8, MAX_MESSAGES = 8 };

struct message {
    uint32_t from, to;
    size_t size;
    enum ggml_type type;
    void *data;
};

struct ggml_comm_group {
    uint32_t n;
    ggml_backend_t streams[MAX_RANKS];
    struct message messages[MAX_MESSAGES];
    int n_messages;
};

static int32_t group_new(const struct ggml_comm_ranks *ranks, ggml_comm_group_t *out_group) {
    const int32_t status = ggml_sdk_comm_check_ranks(ranks, &defective_reg);
    if (status != GGML_HOST_OK && (!HAS(comm_group_unchecked) || ranks->n_streams == 0))
        return status;
    if (ranks->n_streams > MAX_RANKS) return GGML_HOST_UNSUPPORTED;
    struct ggml_comm_group *group = ggml_aligned_malloc(sizeof(*group));
    if (!group) return fail(GGML_HOST_OUT_OF_MEMORY, "no memory for a group");
    *group = (struct ggml_comm_group){.n = ranks->n_streams};
    memcpy(group->streams, ranks->streams, group->n * sizeof(group->streams[0]));
    *out_group = group;
    return GGML_HOST_OK;
}

static void drop(struct ggml_comm_group *group, int i) {
    ggml_aligned_free(group->messages[i].data, group->messages[i].size);
    --group->n_messages;
    memmove(&group->messages[i], &group->messages[i + 1],
            (size_t)(group->n_messages - i) * sizeof(group->messages[0]));
}

static void group_free(ggml_comm_group_t group) {
    if (!group) return;
    while (group->n_messages > 0 && !HAS(comm_message_leaks))
        drop(group, 0);
    if (!HAS(comm_group_leaks)) ggml_aligned_free(group, sizeof(*group));
}

static int32_t refuse(const char *text) {
    if (HAS(comm_refuses_by_crash)) abort();
    return fail(GGML_HOST_INVALID_ARGUMENT, text);
}

static int32_t check(const struct ggml_comm_group *group,
                     const struct ggml_tensor *const *tensors) {
    for (uint32_t i = 1; i < group->n && !HAS(comm_sizes_unchecked); ++i) {
        if (tensors[i]->type != tensors[0]->type ||
            ggml_nelements(tensors[i]) != ggml_nelements(tensors[0]))
            return refuse("the ranks' tensors differ");
    }
    for (uint32_t i = 0; i < group->n && !HAS(comm_unordered); ++i)
        stream_drain(group->streams[i]);
    return GGML_HOST_OK;
}

static int32_t all_reduce(ggml_comm_group_t group, enum ggml_comm_reduction reduction,
                          struct ggml_tensor *const *parts, const uint8_t *counts) {
    const void *data[MAX_RANKS];
    const int32_t status = check(group, (const struct ggml_tensor *const *)parts);
    if (status != GGML_HOST_OK) return status;
    if (!ggml_sdk_comm_combines(reduction, parts[0]->type)) return GGML_HOST_UNSUPPORTED;
    for (uint32_t i = 0; i < group->n; ++i)
        data[i] = !counts || counts[i] || HAS(comm_counts_ignored) ? parts[i]->data : NULL;
    if (HAS(comm_sum_wrong)) data[group->n - 1] = NULL;
    if (HAS(comm_maximum_wrong)) reduction = GGML_COMM_SUM;
    ggml_sdk_comm_combine(reduction, parts[0]->type, data, group->n, 0,
                          (size_t)ggml_nelements(parts[group->n - 1]), parts[0]->data);
    for (uint32_t i = 1; i < group->n && !HAS(comm_sum_at_first); ++i)
        memcpy(parts[i]->data, parts[0]->data, ggml_nbytes(parts[i]));
    return GGML_HOST_OK;
}

static int32_t broadcast(ggml_comm_group_t group, uint32_t root,
                         struct ggml_tensor *const *tensors) {
    if (root >= group->n) return refuse("the root is not in the group");
    const int32_t status = check(group, (const struct ggml_tensor *const *)tensors);
    if (HAS(comm_root_ignored)) root = 0;
    for (uint32_t i = 0; i < group->n && status == GGML_HOST_OK; ++i)
        memmove(tensors[i]->data, tensors[root]->data, ggml_nbytes(tensors[i]));
    return status;
}

static int32_t all_gather(ggml_comm_group_t group, const struct ggml_tensor *const *parts,
                          struct ggml_tensor *const *results) {
    const size_t size = ggml_nbytes(parts[group->n - 1]);
    const int32_t status = check(group, parts);
    if (status != GGML_HOST_OK) return status;
    for (uint32_t i = 0; i < group->n; ++i) {
        if (ggml_nbytes(results[i]) != group->n * size) return refuse("a result does not fit");
    }
    for (uint32_t i = 0; i < group->n; ++i) {
        for (uint32_t k = 0; k < group->n; ++k) {
            const uint32_t at = HAS(comm_gather_reversed) ? group->n - 1 - k : k;
            memcpy((char *)results[i]->data + at * size, parts[k]->data, size);
        }
    }
    return GGML_HOST_OK;
}

static int32_t send(ggml_comm_group_t group, uint32_t from, uint32_t to,
                    const struct ggml_tensor *tensor) {
    if (from >= group->n || to >= group->n || from == to) return refuse("no such ranks");
    if (group->n_messages == MAX_MESSAGES) return GGML_HOST_UNSUPPORTED;
    const struct message message = {from, to, ggml_nbytes(tensor), tensor->type,
                                    ggml_aligned_malloc(ggml_nbytes(tensor))};
    if (!message.data) return fail(GGML_HOST_OUT_OF_MEMORY, "no memory for a message");
    stream_drain(group->streams[from]);
    memcpy(message.data, tensor->data, message.size);
    group->messages[group->n_messages++] = message;
    return GGML_HOST_OK;
}

static int32_t receive(ggml_comm_group_t group, uint32_t to, uint32_t from,
                       struct ggml_tensor *tensor) {
    int found = -1;
    if (from >= group->n || to >= group->n || from == to) return refuse("no such ranks");
    for (int i = 0; i < group->n_messages; ++i) {
        if (group->messages[i].from != from || group->messages[i].to != to) continue;
        if (found < 0 || HAS(comm_messages_reversed)) found = i;
    }
    if (found < 0 && HAS(comm_message_invented)) return GGML_HOST_OK;
    if (found < 0) return refuse("nothing was sent");
    const struct message *message = &group->messages[found];
    if (message->type != tensor->type || message->size != ggml_nbytes(tensor))
        return refuse("something else was sent");
    stream_drain(group->streams[to]);
    memcpy(tensor->data, message->data, message->size);
    drop(group, found);
    return GGML_HOST_OK;
}

const struct ggml_extension_comm *comm_extension(void) {
    static struct ggml_extension_comm comm = {.size = sizeof(comm),
                                              .revision = 1,
                                              .group_new = group_new,
                                              .group_free = group_free,
                                              .all_reduce = all_reduce,
                                              .broadcast = broadcast,
                                              .all_gather = all_gather,
                                              .send = send,
                                              .receive = receive};
    if (HAS(comm_table_short)) comm.size = 16;
    return &comm;
}
