// SPDX-License-Identifier: MIT
// Streams of nodes as the ranks of a group (extension "ggml.comm"). Sums are made by the nodes
// among themselves; the rest are copies between queues, in an order that every queue keeps.
#include <stdlib.h>
#include <string.h>

#include "client.h"

// What was sent lies in a buffer of its own beside the tensor until it is received.
struct message {
    struct message *next;
    uint32_t from, to;
    uint64_t buffer;
    struct ggml_tensor tensor; // as it was sent, without where it lies
};

struct ggml_comm_group {
    struct remote_group *shared;
    struct remote_end ends[WIRE_MAX_RANKS];
    struct remote_device *devices[WIRE_MAX_RANKS];
    ggml_backend_t streams[WIRE_MAX_RANKS];
    uint32_t n;
    bool by_nodes;         // several ranks of one node add there first
    struct message *first; // in order of the sends
};

static int32_t no_rank(uint32_t rank) {
    return ggml_sdk_fail(GGML_HOST_INVALID_ARGUMENT,
                         "comm: rank %u is not in the group, or is not one "
                         "that another one sends to",
                         rank);
}

// --- what calls are given ------------------------------------------------------------------------

// Checks the tensors of ranks from `first` on: types and shapes, that their nodes are there, and
// that the group has not failed. The status of what is wrong, after the error was set.
static int32_t check(const struct ggml_comm_group *group, uint32_t first, uint32_t n,
                     const struct ggml_tensor *const *tensors) {
    const int32_t status = ggml_sdk_comm_check_tensors(group->streams + first, n, tensors);
    if (status != GGML_HOST_OK) return status;
    for (uint32_t i = 0; i < n; ++i)
        if (!node_usable(group->ends[first + i].node)) return GGML_HOST_DEVICE_LOST;
    if (!atomic_load(&group->shared->has_failed)) return GGML_HOST_OK;
    return ggml_sdk_fail(GGML_HOST_DEVICE_LOST, "comm: the group has failed");
}

// One end of a copy: the queue of a rank, with the tensor there.
static struct remote_end end_of(const struct ggml_comm_group *group, uint32_t rank,
                                const struct ggml_tensor *tensor) {
    struct remote_end end = group->ends[rank];
    end.tensor = tensor;
    end.group = group->shared;
    return end;
}

// Fails the whole group if a call could not be queued for all ranks: those where it was queued
// would wait for the others.
static int32_t or_fail(struct ggml_comm_group *group, int32_t status) {
    if (status != GGML_HOST_OK) group_fail(group->shared);
    return status;
}

static int32_t copy(const struct ggml_comm_group *group, uint32_t from,
                    const struct ggml_tensor *src, uint32_t to, const struct ggml_tensor *dst) {
    const struct remote_end a = end_of(group, from, src), b = end_of(group, to, dst);
    return remote_copy(&a, &b);
}

// --- sums ----------------------------------------------------------------------------------------

// Posts the sum at one rank. Each node gets the list of all ranks and exchanges parts with the
// others directly; the program sees no data.
static int32_t reduce_at(const struct ggml_comm_group *group, uint32_t rank,
                         enum ggml_comm_reduction reduction, const struct ggml_tensor *part,
                         const struct wire_rank *ranks) {
    const struct remote_end *end = &group->ends[rank];
    struct wire_message message = {.kind = WIRE_REDUCE,
                                   .queue = end->queue,
                                   .device = rank,
                                   .value = (uint32_t)reduction,
                                   .object = group->shared->id,
                                   .tag = group->shared->first_tag,
                                   .peer = group->by_nodes ? WIRE_BY_NODES : 0,
                                   .n_nodes = group->n};
    struct wire_tensor described;
    const struct parts parts = {.first = &described,
                                .first_size = sizeof(described),
                                .second = ranks,
                                .second_size = group->n * sizeof(ranks[0]),
                                .group = group->shared};
    if (!remote_describe(end->node, part, &described)) return GGML_HOST_INVALID_ARGUMENT;
    return client_post(end->node, end->line, &message, &parts);
}

// Posts the same sum to every rank, under the lock of the order of copies: two groups that share
// nodes have their sums in the same order in all queues. `counts` of 0: the rank's part is left
// out.
static int32_t all_reduce(ggml_comm_group_t group, enum ggml_comm_reduction reduction,
                          struct ggml_tensor *const *parts, const uint8_t *counts) {
    struct wire_rank ranks[WIRE_MAX_RANKS];
    int32_t status = check(group, 0, group->n, (const struct ggml_tensor *const *)parts);
    if (status != GGML_HOST_OK) return status;
    if (!ggml_sdk_comm_combines(reduction, parts[0]->type)) return GGML_HOST_UNSUPPORTED;
    if (ggml_is_empty(parts[0])) return GGML_HOST_OK;
    for (uint32_t i = 0; i < group->n; ++i)
        ranks[i] = (struct wire_rank){(uint32_t)group->ends[i].node->peer, !counts || counts[i]};
    remote_order_lock();
    for (uint32_t i = 0; i < group->n && status == GGML_HOST_OK; ++i)
        status = reduce_at(group, i, reduction, parts[i], ranks);
    remote_order_unlock();
    return or_fail(group, status);
}

// --- copies to many ------------------------------------------------------------------------------

// Copies from the root along a binomial tree: in each round those that have the tensor give it
// to as many others, log2(n) rounds.
static int32_t broadcast(ggml_comm_group_t group, uint32_t root,
                         struct ggml_tensor *const *tensors) {
    const uint32_t n = group->n;
    if (root >= n) return no_rank(root);
    int32_t status = check(group, 0, n, (const struct ggml_tensor *const *)tensors);
    if (status != GGML_HOST_OK || ggml_is_empty(tensors[0])) return status;
    for (uint32_t have = 1; have < n; have *= 2) {
        for (uint32_t i = 0; i < have && i + have < n && status == GGML_HOST_OK; ++i) {
            const uint32_t from = (root + i) % n, to = (root + i + have) % n;
            status = copy(group, from, tensors[from], to, tensors[to]);
        }
    }
    return or_fail(group, status);
}

static int32_t check_gather(const struct ggml_comm_group *group,
                            const struct ggml_tensor *const *parts,
                            struct ggml_tensor *const *results) {
    int32_t status = check(group, 0, group->n, parts);
    if (status == GGML_HOST_OK)
        status = check(group, 0, group->n, (const struct ggml_tensor *const *)results);
    for (uint32_t i = 0; i < group->n && status == GGML_HOST_OK; ++i)
        status = ggml_sdk_comm_check_copy(parts[i], group->n, results[i]);
    return status;
}

// Gives each rank's part to all, in n rounds of n copies: in each round every rank sends its
// part to another one, so that no node receives two parts at once.
static int32_t all_gather(ggml_comm_group_t group, const struct ggml_tensor *const *parts,
                          struct ggml_tensor *const *results) {
    const uint32_t n = group->n;
    int32_t status = check_gather(group, parts, results);
    if (status != GGML_HOST_OK || ggml_is_empty(parts[0])) return status;
    const size_t size = ggml_nbytes(parts[0]);
    for (uint32_t round = 0; round < n; ++round) {
        for (uint32_t i = 0; i < n && status == GGML_HOST_OK; ++i) {
            const uint32_t to = (i + round) % n;
            struct ggml_tensor place = *parts[i];
            place.buffer = results[to]->buffer;
            place.view_src = results[to]->view_src;
            place.data = (char *)results[to]->data + i * size;
            status = copy(group, i, parts[i], to, &place);
        }
    }
    return or_fail(group, status);
}

// --- messages ------------------------------------------------------------------------------------

// Posts a request to the queue of a rank.
static int32_t post(const struct ggml_comm_group *group, uint32_t rank,
                    struct wire_message *message, const struct parts *parts) {
    const struct remote_end *end = &group->ends[rank];
    message->queue = end->queue;
    return client_post(end->node, end->line, message, parts);
}

// The same bytes in the message's buffer.
static void describe_kept(const struct message *message, struct wire_tensor *out) {
    wire_describe(&message->tensor, out);
    out->op = GGML_OP_NONE;
    out->view_offs = 0;
    out->buffer = message->buffer;
    memset(out->op_params, 0, sizeof(out->op_params));
}

// Frees a message and its buffer at the sender's node.
static void message_free(const struct ggml_comm_group *group, struct message *message) {
    struct wire_message end = {.kind = WIRE_BUFFER_FREE, .object = message->buffer};
    if (!atomic_load(&group->ends[message->from].node->lost))
        post(group, message->from, &end, NULL);
    free(message);
}

// Copies what is sent to a buffer of the message's own at the same node, so that send() need not
// wait for a receiver and the tensor may change after it.
static int32_t keep(const struct ggml_comm_group *group, const struct message *message,
                    const struct ggml_tensor *tensor) {
    const uint32_t from = message->from;
    struct remote_device *device = group->devices[from];
    struct wire_message make = {.kind = WIRE_BUFFER_NEW,
                                .device = device->index,
                                .object = message->buffer,
                                .size = remote_alloc_size(device, &message->tensor)};
    struct wire_message fill = {.kind = WIRE_COPY};
    struct wire_tensor described[2];
    const struct parts none = {.group = group->shared};
    const struct parts both = {
        .first = described, .first_size = sizeof(described), .group = group->shared};
    if (!remote_describe(device->node, tensor, &described[0])) return GGML_HOST_INVALID_ARGUMENT;
    describe_kept(message, &described[1]);
    const int32_t status = post(group, from, &make, &none);
    return status == GGML_HOST_OK ? post(group, from, &fill, &both) : status;
}

// Keeps the message until receive() asks for it. O(messages of the group) for the order.
static int32_t send(ggml_comm_group_t group, uint32_t from, uint32_t to,
                    const struct ggml_tensor *tensor) {
    if (from >= group->n) return no_rank(from);
    if (to >= group->n || to == from) return no_rank(to);
    int32_t status = check(group, from, 1, &tensor);
    if (status != GGML_HOST_OK) return status;
    struct message *message = calloc(1, sizeof(*message)), **last = &group->first;
    if (!message) return ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for a message");
    *message = (struct message){.from = from, .to = to, .tensor = *tensor};
    message->buffer = atomic_fetch_add(&group->shared->client->next_object, 1) + 1;
    message->tensor.data = NULL;
    message->tensor.buffer = NULL;
    message->tensor.view_src = NULL;
    if (!ggml_is_empty(tensor)) status = keep(group, message, tensor);
    if (status != GGML_HOST_OK) {
        free(message);
        return or_fail(group, status);
    }
    while (*last)
        last = &(*last)->next;
    *last = message;
    return GGML_HOST_OK;
}

// Copies what was kept to the receiver's tensor. Between nodes: a send and a receive. Within
// one: the receiver's queue waits for the sender's, copies, and the sender's waits for that, as
// the message's buffer is freed in it next.
static int32_t deliver(const struct ggml_comm_group *group, const struct message *message,
                       const struct ggml_tensor *tensor) {
    const struct remote_end *from = &group->ends[message->from], *to = &group->ends[message->to];
    const bool within = from->node == to->node;
    struct client *client = group->shared->client;
    const size_t size = ggml_nbytes(tensor);
    struct wire_message wait = {
        .kind = WIRE_WAIT, .object = from->queue, .offset = from->line->last};
    struct wire_message out = {.kind = WIRE_SEND, .size = size, .peer = (uint32_t)to->node->peer};
    struct wire_message in = {.kind = within ? WIRE_COPY : WIRE_RECEIVE,
                              .size = within ? 0 : size,
                              .peer = within ? 0 : (uint32_t)from->node->peer};
    struct wire_tensor described[2];
    describe_kept(message, &described[0]);
    if (!remote_describe(to->node, tensor, &described[1])) return GGML_HOST_INVALID_ARGUMENT;
    const struct parts first = {.first = within ? NULL : described,
                                .first_size = within ? 0 : sizeof(described[0]),
                                .group = group->shared};
    const struct parts second = {.first = within ? described : &described[1],
                                 .first_size = (within ? 2 : 1) * sizeof(described[0]),
                                 .group = group->shared};
    if (!within) out.tag = in.tag = client_take_tag(client);
    out.queue = from->queue;
    in.queue = to->queue;
    const struct posting both[2] = {{from->node, from->line, &out, &first},
                                    {to->node, to->line, &in, &second}};
    remote_order_lock();
    int32_t status = within ? post(group, message->to, &wait, &first) : client_post_both(both);
    if (status == GGML_HOST_OK && within) status = post(group, message->to, &in, &second);
    if (status == GGML_HOST_OK && within) { // the buffer goes after that
        wait =
            (struct wire_message){.kind = WIRE_WAIT, .object = to->queue, .offset = to->line->last};
        status = post(group, message->from, &wait, &first);
    }
    remote_order_unlock();
    client_drop_tag(client, out.tag);
    return status;
}

// Takes the oldest message between the two ranks; INVALID_ARGUMENT if nothing was sent.
static int32_t receive(ggml_comm_group_t group, uint32_t to, uint32_t from,
                       struct ggml_tensor *tensor) {
    const struct ggml_tensor *const received = tensor;
    struct message **at = &group->first;
    if (to >= group->n) return no_rank(to);
    if (from >= group->n || from == to) return no_rank(from);
    int32_t status = check(group, to, 1, &received);
    if (status != GGML_HOST_OK) return status;
    while (*at && ((*at)->from != from || (*at)->to != to))
        at = &(*at)->next;
    struct message *message = *at;
    if (!message)
        return ggml_sdk_fail(GGML_HOST_INVALID_ARGUMENT,
                             "comm: rank %u has sent nothing to rank %u", from, to);
    status = ggml_sdk_comm_check_copy(&message->tensor, 1, tensor);
    if (status != GGML_HOST_OK) return status;
    if (!ggml_is_empty(tensor)) status = deliver(group, message, tensor);
    *at = message->next;
    message_free(group, message);
    return or_fail(group, status);
}

// --- groups --------------------------------------------------------------------------------------

// Whether a node has several ranks, and every node knows how to add them by itself first (2.2).
static bool goes_by_nodes(const struct ggml_comm_group *group) {
    bool several = false;
    for (uint32_t i = 0; i < group->n; ++i) {
        const struct node *node = group->ends[i].node;
        if (link_minor(node->client->link, node->peer) < 2) return false;
        for (uint32_t k = 0; k < i; ++k)
            several = several || group->ends[k].node == node;
    }
    return several;
}

// All streams have to be of this plugin; they belong to the caller and outlive the group.
static int32_t group_new(const struct ggml_comm_ranks *ranks, ggml_comm_group_t *out_group) {
    const bool any = ranks && ranks->streams && ranks->n_streams > 0 && ranks->streams[0];
    uint32_t peers[WIRE_MAX_RANKS];
    struct remote_device *device;
    struct remote_end end;
    if (!any || !remote_stream_end(ranks->streams[0], &end, &device))
        return ggml_sdk_fail(GGML_HOST_INVALID_ARGUMENT, "comm group: no streams of this plugin");
    const int32_t status = ggml_sdk_comm_check_ranks(ranks, device->base.reg);
    if (status != GGML_HOST_OK) return status;
    if (ranks->n_ranks > WIRE_MAX_RANKS || !client_get()) return GGML_HOST_UNSUPPORTED;
    struct ggml_comm_group *group = calloc(1, sizeof(*group));
    if (!group) return ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for a group");
    group->n = ranks->n_ranks;
    for (uint32_t i = 0; i < group->n; ++i) {
        group->streams[i] = ranks->streams[i];
        remote_stream_end(group->streams[i], &group->ends[i], &group->devices[i]);
        peers[i] = (uint32_t)group->ends[i].node->peer;
        if (!nodes_reach(group->ends[0].node, group->ends[i].node)) { // then the host adds
            free(group);
            return GGML_HOST_UNSUPPORTED;
        }
    }
    group->by_nodes = goes_by_nodes(group);
    group->shared = group_take(client_get(), peers, group->n);
    if (group->shared) {
        *out_group = group;
        return GGML_HOST_OK;
    }
    free(group);
    return GGML_HOST_BUSY;
}

// Messages that nobody received are freed; open requests keep the shared part alive.
static void group_free(ggml_comm_group_t group) {
    if (!group) return;
    while (group->first) {
        struct message *message = group->first;
        group->first = message->next;
        message_free(group, message);
    }
    group_drop(group->shared);
    free(group);
}

const struct ggml_extension_comm remote_comm = {
    .size = sizeof(remote_comm),
    .revision = GGML_EXTENSION_COMM_REVISION,
    .group_new = group_new,
    .group_free = group_free,
    .all_reduce = all_reduce,
    .broadcast = broadcast,
    .all_gather = all_gather,
    .send = send,
    .receive = receive,
};
