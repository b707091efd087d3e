// SPDX-License-Identifier: MIT
// All-reduce: each rank of a group is a queue of some node, which does its part when its turn
// comes.
//
// Few bytes: recursive doubling (Thakur, Rabenseifner, Gropp 2005) in log2(n) exchanges, after
// ranks beyond the largest power of two have given their parts to a partner; in each pair both add
// the lower rank's to the higher one's, so that all get the same bits. Many bytes: a ring (ring.c).
//
// Of many bytes in memory that MPI takes of a device, the device adds (device_sum.c); else they are
// copied to the host's memory, and the host adds.
//
// Where a node has several ranks, they add their parts in its memory first (meeting.c), and one of
// them takes part for all.
//
// MPI's own collectives wait for ever for a member that is gone; here a transfer fails with its
// peer, and the ranks that wait for others are told by the program that the group has failed.
#include <stdlib.h>
#include <string.h>

#include "ggml-plugin-sdk.h"
#include "reduce.h"

enum { FEW_BYTES = 32768 };

// --- groups that have failed ---------------------------------------------------------------------

void reduce_note_lost(struct server *server, uint64_t group) {
    const uint64_t at = atomic_fetch_add(&server->n_lost_groups, 1);
    atomic_store(&server->lost_groups[at % NODE_LOST_GROUPS], group);
    pthread_mutex_lock(&server->lock);
    pthread_cond_broadcast(&server->progress); // who waits for other ranks of this node
    pthread_mutex_unlock(&server->lock);
}

bool reduction_is_lost(void *reduction) {
    const struct reduction *r = reduction;
    if (r->gave_up) return true;
    if (atomic_load(&r->server->n_lost_groups) == 0) return false;
    for (int i = 0; i < NODE_LOST_GROUPS; ++i)
        if (atomic_load(&r->server->lost_groups[i]) == r->group) return true;
    return false;
}

// --- memory that MPI may use ---------------------------------------------------------------------

// Memory of transfers that were given up is never freed, as MPI may use it still; it stays within
// reach, so that leak checkers tell it from what was forgotten.
struct kept {
    const void *memory;
    struct kept *next;
};
static _Atomic(struct kept *) all_kept;

static void keep(const void *memory) {
    struct kept *kept = memory ? malloc(sizeof(*kept)) : NULL;
    if (!kept) return;
    *kept = (struct kept){memory, atomic_load(&all_kept)};
    while (!atomic_compare_exchange_weak(&all_kept, &kept->next, kept))
        continue;
}

// --- transfers -----------------------------------------------------------------------------------

struct link_op reduction_transfer(const struct reduction *r, uint32_t from, uint32_t to, void *data,
                                  size_t size) {
    const bool receives = to == r->self;
    return (struct link_op){.peer = (int)r->ranks[receives ? from : to].peer,
                            .tag = (int)(r->first_tag + from * r->n + to),
                            .receives = receives,
                            .data = data,
                            .size = size};
}

static bool await(struct reduction *r, struct link_op *op) {
    const bool good = link_wait_unless(r->server->link, op, reduction_is_lost, r);
    r->gave_up = r->gave_up || !good;
    return good;
}

static bool transfer(struct reduction *r, uint32_t from, uint32_t to, void *data, size_t size) {
    struct link_op op = reduction_transfer(r, from, to, data, size);
    link_post(r->server->link, &op);
    return await(r, &op);
}

static bool give(struct reduction *r, uint32_t to, void *data, size_t size) {
    return transfer(r, r->self, to, data, size);
}

static bool take(struct reduction *r, uint32_t from, void *data, size_t size) {
    return transfer(r, from, r->self, data, size);
}

// Sends the sum so far and receives the partner's at the same time; waits for both, also after a
// failure, as memory is in use until then.
static bool exchange(struct reduction *r, uint32_t partner, size_t size) {
    struct link_op received = reduction_transfer(r, partner, r->self, r->other, size);
    struct link_op sent = reduction_transfer(r, r->self, partner, r->sum, size);
    link_post(r->server->link, &received);
    link_post(r->server->link, &sent);
    const bool good = await(r, &received);
    return await(r, &sent) && good;
}

// --- few bytes -----------------------------------------------------------------------------------

// Adds what rank `from` sent to what there is: parts of lower ranks stand first. Both may count.
static void add(struct reduction *r, uint32_t from, bool has_mine, bool has_other) {
    const void *mine = has_mine ? r->sum : NULL, *other = has_other ? r->other : NULL;
    const void *const parts[2] = {from < r->self ? other : mine, from < r->self ? mine : other};
    if (has_other) ggml_sdk_comm_combine(r->how, r->type, parts, 2, 0, r->n_elements, r->sum);
}

static uint32_t largest_power(uint32_t n) {
    uint32_t power = 1;
    while (2 * power <= n)
        power *= 2;
    return power;
}

// Whether rank i has something that counts after its first `step` exchanges.
static bool has(const struct reduction *r, uint32_t power, uint32_t step, uint32_t i) {
    bool any = false;
    for (uint32_t k = 0; k < r->n; ++k) {
        const uint32_t at = k < power ? k : k - power;
        any = any || (at / step == i / step && r->ranks[k].counts);
    }
    return any;
}

bool reduction_counts(const struct reduction *r, uint32_t first, uint32_t count) {
    bool any = false;
    for (uint32_t i = 0; i < count; ++i)
        any = any || r->ranks[(first + i) % r->n].counts;
    return any;
}

// Recursive doubling: in step s partners differ in bit s of their rank. False if a rank is lost.
static bool double_up(struct reduction *r) {
    const uint32_t power = largest_power(r->n), rest = r->n - power, self = r->self;
    const size_t size = r->n_elements * r->element;
    if (self >= power)
        return give(r, self - power, r->sum, size) && take(r, self - power, r->sum, size);
    if (self < rest) {
        if (!take(r, self + power, r->other, size)) return false;
        add(r, self + power, r->ranks[self].counts, r->ranks[self + power].counts);
    }
    for (uint32_t step = 1; step < power; step *= 2) {
        const uint32_t partner = self ^ step;
        if (!exchange(r, partner, size)) return false;
        add(r, partner, has(r, power, step, self), has(r, power, step, partner));
    }
    return self >= rest || give(r, self + power, r->sum, size);
}

// --- a request -----------------------------------------------------------------------------------

// Reads and checks the list of ranks: tags and peers exist, and this node is the rank it is told
// to be.
static bool read_ranks(struct reduction *r, const struct job *job) {
    const struct wire_message *message = &job->message;
    const uint64_t tags = (uint64_t)r->n * r->n;
    if (r->n == 0 || message->tag < LINK_FIRST_GROUP_TAG ||
        message->tag + tags > LINK_FIRST_GROUP_TAG + LINK_GROUP_TAGS) {
        return false;
    }
    for (uint32_t i = 0; i < r->n; ++i) {
        wire_read_rank(job->rest, i, &r->ranks[i]);
        if (r->ranks[i].peer == 0 || (int)r->ranks[i].peer >= link_count(r->server->link))
            return false;
    }
    return (int)r->ranks[r->self].peer == link_self(r->server->link);
}

static bool is_few(const struct reduction *r) {
    return r->n_elements * r->element <= FEW_BYTES || r->n_elements < r->n;
}

// Memory of the queue for what others send, the same each time.
static char *scratch_of(struct queue *queue, size_t size) {
    if (queue->scratch && queue->scratch_size >= size) return queue->scratch;
    free(queue->scratch);
    queue->scratch = malloc(size);
    queue->scratch_size = size;
    return queue->scratch;
}

static enum ggml_host_status no_rank(void) {
    return fail(GGML_HOST_DEVICE_LOST, "another rank of the group is gone");
}

// Between ranks, by the algorithm for so many bytes.
static enum ggml_host_status reduce_between(struct reduction *r) {
    const size_t size = r->n_elements * r->element;
    if (r->n == 1) return GGML_HOST_OK;
    if (!r->device)
        r->other = scratch_of(r->queue, is_few(r) ? size : ring_scratch(r->n_elements, r->element));
    if (!r->other) return fail(GGML_HOST_OUT_OF_MEMORY, "no memory for a sum");
    if (is_few(r) ? double_up(r) : ring_sum(r)) return GGML_HOST_OK;
    return r->status != GGML_HOST_OK ? r->status : no_rank();
}

// One rank for each node, in the order of the first one of each; the ranks of this node.
static void split(const struct reduction *r, struct reduction *nodes, struct local_sum *local,
                  uint32_t *out_self) {
    *nodes = *r;
    *local = (struct local_sum){.group = r->group,
                                .how = r->how,
                                .type = r->type,
                                .n_elements = r->n_elements,
                                .bytes = r->n_elements * r->element};
    nodes->n = 0;
    for (uint32_t i = 0; i < r->n; ++i) {
        const struct wire_rank *rank = &r->ranks[i];
        uint32_t at = 0;
        while (at < nodes->n && nodes->ranks[at].peer != rank->peer)
            ++at;
        if (at == nodes->n) nodes->ranks[nodes->n++] = (struct wire_rank){rank->peer, 0};
        if (rank->counts) nodes->ranks[at].counts = 1;
        if (rank->peer != r->ranks[r->self].peer) continue;
        nodes->self = at;
        if (i == r->self) *out_self = local->n;
        local->counts[local->n++] = rank->counts != 0;
    }
}

static enum ggml_host_status reduce_by_nodes(struct reduction *r) {
    struct reduction nodes;
    struct local_sum local;
    uint32_t self = 0;
    split(r, &nodes, &local, &self);
    struct meeting *meeting = NULL;
    if (local.n > 1) {
        meeting = meeting_enter(r->server, &local, self, r->sum, reduction_is_lost, r);
        if (!meeting) return last_status();
    }
    if (self > 0) return meeting_leave(meeting, r->sum) ? GGML_HOST_OK : no_rank();
    const enum ggml_host_status status = reduce_between(&nodes);
    r->gave_up = nodes.gave_up;
    if (meeting) meeting_end(meeting, status == GGML_HOST_OK);
    return status;
}

// Without any part that counts the sum is 0.
static enum ggml_host_status reduce_in(struct reduction *r, bool by_nodes) {
    const size_t size = r->n_elements * r->element;
    if (size == 0) return GGML_HOST_OK;
    if (reduction_counts(r, 0, r->n)) return by_nodes ? reduce_by_nodes(r) : reduce_between(r);
    memset(r->sum, 0, size);
    return GGML_HOST_OK;
}

// Of ranks that are alone at their node, as others add within it by the host.
static bool reduce_on_device(struct reduction *r, struct ggml_tensor *tensor,
                             const struct held_buffer *held, bool by_nodes,
                             enum ggml_host_status *out_status) {
    uint32_t n_here = 0;
    for (uint32_t i = 0; i < r->n; ++i)
        n_here += r->ranks[i].peer == r->ranks[r->self].peer;
    if (n_here != 1 || r->n < 2 || is_few(r) || !reduction_counts(r, 0, r->n) ||
        r->how != GGML_COMM_SUM || r->type != GGML_TYPE_F32) {
        return false;
    }
    r->other = device_sum_begin(r->queue, held, ring_scratch(r->n_elements, r->element));
    if (!r->other) return false;
    r->device = held;
    r->sum = tensor->data;
    *out_status = reduce_in(r, by_nodes);
    if (r->gave_up) {
        keep(r->queue->device_scratch);
        r->queue->device_scratch = NULL;
    }
    return true;
}

// In memory of the host, which a device's own is copied to and from.
static enum ggml_host_status reduce_tensor(struct reduction *r, struct ggml_tensor *tensor,
                                           const struct held_buffer *held, bool by_nodes) {
    enum ggml_host_status status = GGML_HOST_OK;
    if (reduce_on_device(r, tensor, held, by_nodes, &status)) return status;
    const size_t size = ggml_nbytes(tensor);
    char *own = held->is_host ? NULL : malloc(size + 1);
    r->sum = held->is_host ? tensor->data : own;
    if (!r->sum) status = fail(GGML_HOST_OUT_OF_MEMORY, "no memory for a sum");
    if (status == GGML_HOST_OK && own) {
        ggml_backend_tensor_get(tensor, own, 0, size);
        status = last_status();
    }
    if (status == GGML_HOST_OK) status = reduce_in(r, by_nodes);
    if (status == GGML_HOST_OK && own) {
        ggml_backend_tensor_set(tensor, own, 0, size);
        status = last_status();
    }
    if (r->gave_up) {
        keep(r->queue->scratch);
        keep(own);
        r->queue->scratch = NULL;
    } else {
        free(own);
    }
    return status;
}

enum ggml_host_status reduce(struct queue *queue, const struct job *job) {
    struct server *server = queue->server;
    const struct wire_message *message = &job->message;
    struct reduction r = {.server = server,
                          .queue = queue,
                          .group = message->object,
                          .how = (enum ggml_comm_reduction)message->value,
                          .n = message->n_nodes,
                          .self = message->device,
                          .first_tag = message->tag};
    const bool by_nodes = WIRE_MINOR >= 2 && message->peer == WIRE_BY_NODES;
    struct wire_tensor from;
    struct placed place;
    struct ggml_tensor *tensor = &place.tensor;
    wire_read_tensor(job->rest, 0, &from);
    wire_restore(&from, tensor);
    r.type = tensor->type;
    if (!ggml_is_contiguous(tensor) || !ggml_sdk_comm_combines(r.how, r.type) ||
        !read_ranks(&r, job)) {
        return refuse("a sum that can't be");
    }
    if (!tensor_place_alone(server, &from, &place)) return last_status();
    struct held_buffer *held = place.held;
    r.n_elements = (size_t)ggml_nelements(tensor);
    r.element = ggml_type_size(r.type);
    const enum ggml_host_status status = reduce_tensor(&r, tensor, held, by_nodes);
    if (r.gave_up)
        keep(held);
    else
        buffer_release(server, held);
    return status;
}
