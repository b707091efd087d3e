// SPDX-License-Identifier: MIT
// Requests to nodes and their answers.
#include "client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct client the_client;
static bool is_running;

struct client *client_get(void) {
    return is_running ? &the_client : NULL;
}

// --- requests, under the lock --------------------------------------------------------------------

// Returns the node's open request with this id, or NULL. A linear search: answers mostly come in
// the order of the requests, so that the first one is it.
static struct request *find(struct node *node, uint64_t id) {
    for (struct request *request = node->waiting; request; request = request->next)
        if (request->id == id) return request;
    return NULL;
}

// Removes a request from its node's list; nothing if it is not there, as one that was never
// sent.
static void take_out(struct request *request) {
    struct node *node = request->node;
    struct request **at = &node->waiting;
    while (*at && *at != request)
        at = &(*at)->next;
    if (!*at) return;
    *at = request->next;
    if (!*at) node->waiting_end = at;
    atomic_fetch_sub(&node->client->n_waiting, 1);
}

// Frees a request that is in no list, with the answer's bytes; the group loses an owner.
void request_free(struct request *request) {
    if (!request) return;
    group_drop(request->group);
    free(request->bytes);
    free(request->copy);
    free(request);
}

// Keeps the first failure of a line: later ones mostly follow from it, and would hide its cause.
static void note_failure(struct line *line, const struct request *request) {
    if (request->status == GGML_HOST_OK || line->status != GGML_HOST_OK) return;
    line->status = request->status;
    memcpy(line->why, request->why, sizeof(line->why));
}

// --- groups --------------------------------------------------------------------------------------

// Tells all nodes of the group, once, that it has failed: those that wait for a part of another
// one would wait until their deadline. The caller holds the client's lock.
static void tell_group(struct remote_group *group) {
    if (atomic_exchange(&group->has_failed, true)) return;
    for (uint32_t i = 0; i < group->n; ++i) {
        const struct node *node = &group->client->nodes[group->peers[i] - 1];
        struct wire_message *message = calloc(1, sizeof(*message));
        if (!message || atomic_load(&node->lost)) {
            free(message);
            continue;
        }
        *message = (struct wire_message){
            .magic = WIRE_MAGIC, .kind = WIRE_GROUP_LOST, .object = group->id};
        link_send(group->client->link, node->peer, message, sizeof(*message));
    }
}

void group_fail(struct remote_group *group) {
    struct client *client = group->client;
    pthread_mutex_lock(&client->lock);
    tell_group(group);
    pthread_mutex_unlock(&client->lock);
}

static void mark_tags(struct client *client, uint32_t first, uint32_t count, bool taken) {
    for (uint32_t i = first; i < first + count; ++i)
        atomic_store(&client->group_tags[i], taken);
}

// Takes `count` neighbouring tags, first fit; false when there are no such. A group of n ranks
// needs n * n, one per pair of sender and receiver.
static bool take_tags(struct client *client, uint32_t count, uint32_t *out_first) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < LINK_GROUP_TAGS; ++i) {
        n = atomic_load(&client->group_tags[i]) ? 0 : n + 1;
        if (n < count) continue;
        *out_first = i + 1 - count;
        mark_tags(client, *out_first, count, true);
        return true;
    }
    return false;
}

// The caller is the first owner. Fails with BUSY when the tags are used up.
struct remote_group *group_take(struct client *client, const uint32_t *peers, uint32_t n) {
    struct remote_group *group = calloc(1, sizeof(*group));
    uint32_t first = 0;
    pthread_mutex_lock(&client->lock);
    const bool taken = group && take_tags(client, n * n, &first);
    pthread_mutex_unlock(&client->lock);
    if (!taken) {
        free(group);
        ggml_sdk_fail(group ? GGML_HOST_BUSY : GGML_HOST_OUT_OF_MEMORY,
                      "no room for another group");
        return NULL;
    }
    group->client = client;
    group->id = atomic_fetch_add(&client->next_object, 1) + 1;
    group->n = n;
    group->first_tag = LINK_FIRST_GROUP_TAG + first;
    atomic_init(&group->n_owners, 1);
    memcpy(group->peers, peers, n * sizeof(peers[0]));
    return group;
}

// What is left of a group that failed may still come under its tags, which nobody uses again.
void group_drop(struct remote_group *group) {
    if (!group || atomic_fetch_sub(&group->n_owners, 1) > 1) return;
    if (!atomic_load(&group->has_failed))
        mark_tags(group->client, group->first_tag - LINK_FIRST_GROUP_TAG, group->n * group->n,
                  false);
    free(group);
}

// Those of groups are taken and dropped with their group.
static bool is_transfer_tag(uint32_t tag) {
    return tag >= LINK_FIRST_TAG && tag < LINK_FIRST_TAG + LINK_TAGS;
}

// Completes a request when both its answer and its bytes have come, in either order. One of a
// line is freed here; one that a thread waits for is marked as done, and its caller frees it.
// The caller holds the client's lock.
static void complete(struct request *request) {
    const bool travels = request->has_op && !request->op_done && !request->is_abandoned;
    if (!request->answered || travels) return;
    struct node *node = request->node;
    if (request->op.failed && request->status == GGML_HOST_OK) {
        request->status = GGML_HOST_DEVICE_LOST;
        snprintf(request->why, sizeof(request->why), "%s", node->why);
    }
    if (request->group && request->status != GGML_HOST_OK) tell_group(request->group);
    take_out(request);
    if (is_transfer_tag(request->tag)) --node->client->tag_users[request->tag - LINK_FIRST_TAG];
    pthread_cond_broadcast(&node->client->answered);
    if (!request->line) {
        request->done = true;
        return;
    }
    note_failure(request->line, request);
    --request->line->n_waiting;
    if (!request->is_abandoned) request_free(request);
}

// Called by the link when the bytes that travel beside a request have been sent or received, or
// could not be.
static void op_done(struct link_op *op) {
    struct request *request = op->context;
    struct client *client = request->node->client;
    pthread_mutex_lock(&client->lock);
    request->op_done = true;
    if (!request->is_abandoned) complete(request);
    pthread_mutex_unlock(&client->lock);
}

// Queues do one request after the other, and failures are always answered: what the queue of this
// one was given before is done. The caller holds the client's lock.
static void complete_earlier(const struct request *request) {
    struct request *next;
    for (struct request *at = request->node->waiting; at && at->id < request->id; at = next) {
        next = at->next;
        if (!at->may_be_told_later || at->queue != request->queue || at->answered) continue;
        at->answered = true;
        complete(at);
    }
}

// --- nodes that are gone -------------------------------------------------------------------------

// Tells the other nodes that one is lost, so that what they exchange with it fails now and not
// at their deadline. Failures to send are ignored: a node that can't be told is found lost
// itself.
static void tell_others(struct node *lost) {
    struct client *client = lost->client;
    for (int i = 0; i < client->n_nodes && !lost->joined; ++i) {
        if (atomic_load(&client->nodes[i].lost) || client->nodes[i].joined) continue;
        struct wire_message *message = calloc(1, sizeof(*message));
        if (!message) continue;
        *message = (struct wire_message){
            .magic = WIRE_MAGIC, .kind = WIRE_LOST, .peer = (uint32_t)lost->peer};
        link_send(client->link, client->nodes[i].peer, message, sizeof(*message));
    }
}

// Answers a request of a node that is lost. The caller holds the client's lock.
static void fail_request(struct request *request) {
    request->answered = true;
    request->status = GGML_HOST_DEVICE_LOST;
    snprintf(request->why, sizeof(request->why), "%s", request->node->why);
    complete(request);
}

// Marks a node as lost, for good: its transfers are dropped, each request without an answer
// fails with DEVICE_LOST, and the other nodes are told. The caller holds the client's lock.
static void lose(struct node *node, const char *why) {
    if (atomic_load(&node->lost)) return;
    snprintf(node->why, sizeof(node->why), "MPI%d on %s is lost: %s", node->peer, node->about.host,
             why);
    atomic_store(&node->lost, true);
    GGML_LOG_WARN("%s\n", node->why);
    link_drop(node->client->link, node->peer);
    struct request *next;
    for (struct request *request = node->waiting; request; request = next) {
        next = request->next;
        if (!request->answered) fail_request(request);
    }
    tell_others(node);
}

// Called by the link when MPI reports an error about a peer. At the end of the program such
// errors are expected and ignored.
static void on_failure(void *context, int peer, const char *why) {
    struct client *client = context;
    if (peer < 1 || peer > client->n_nodes) return;
    pthread_mutex_lock(&client->lock);
    if (!client->ends) lose(&client->nodes[peer - 1], why);
    pthread_mutex_unlock(&client->lock);
}

// Without setting the error.
static bool is_open(const struct node *node) {
    return !atomic_load(&node->lost) && !atomic_load(&node->client->closes);
}

bool node_usable(const struct node *node) {
    if (is_open(node)) return true;
    if (atomic_load(&node->lost))
        ggml_sdk_fail(GGML_HOST_DEVICE_LOST, "%s", node->why);
    else
        ggml_sdk_fail(GGML_HOST_DEVICE_LOST, "MPI%d is out of reach: the program ends", node->peer);
    return false;
}

// Asks a node to show that it lives. The answer has no request; only its arrival counts.
static void ping(struct node *node, double now) {
    struct wire_message *message = calloc(1, sizeof(*message));
    node->last_asked = now;
    if (!message) return;
    *message = (struct wire_message){.magic = WIRE_MAGIC, .kind = WIRE_PING};
    link_send(node->client->link, node->peer, message, sizeof(*message));
}

// Called by the link with each piece of a transfer. What the node sends beside may come after all
// of it.
static void on_progress(void *context, int peer) {
    struct client *client = context;
    if (peer < 1 || peer > client->n_nodes) return;
    pthread_mutex_lock(&client->lock);
    client->nodes[peer - 1].last_heard = client->nodes[peer - 1].last_step = link_now();
    pthread_mutex_unlock(&client->lock);
}

// Loses a node that owes an answer and has sent nothing for `deadline` seconds. A node answers
// pings also while it computes: the first is sent after a quarter of the time, so that some may
// come late. The time of an idle node doesn't count.
static void watch(struct node *node, double now) {
    const double deadline = node->client->deadline;
    if (!node->waiting || atomic_load(&node->lost)) {
        node->first_waiting = 0;
        return;
    }
    if (node->first_waiting == 0) node->first_waiting = now;
    const double since =
        node->last_heard > node->first_waiting ? node->last_heard : node->first_waiting;
    if (now - since > deadline) {
        char why[64];
        snprintf(why, sizeof(why), "nothing was heard of it for %.1f s", now - since);
        lose(node, why);
    } else if (now - since > deadline / 4 && now - node->last_asked > deadline / 4) {
        ping(node, now);
    }
}

// For so long this process was stopped, as by a signal: it could not hear anything. None of it is
// after now, of what came since.
static void excuse(struct node *node, double seconds, double now) {
    double *const times[] = {&node->last_heard, &node->last_asked, &node->first_waiting,
                             &node->last_step};
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); ++i) {
        const double moved = *times[i] + seconds;
        if (*times[i] > 0) *times[i] = moved < now ? moved : now;
    }
}

// Called by the link about every 20 ms; returns whether answers are expected, without which the
// link's thread sleeps deeply.
static bool on_tick(void *context, double now) {
    struct client *client = context;
    const double gap = now - atomic_exchange(&client->last_tick, now);
    if (atomic_load(&client->n_waiting) == 0) return false;
    pthread_mutex_lock(&client->lock);
    for (int i = 0; i < client->n_nodes; ++i) {
        if (gap > client->deadline / 4) excuse(&client->nodes[i], gap, now);
        watch(&client->nodes[i], now);
    }
    pthread_mutex_unlock(&client->lock);
    return true;
}

// --- answers -------------------------------------------------------------------------------------

// What was told before the request is done then, or has failed and said so: queue 0 does it in
// order, and what other queues are sent later is done later.
static void note_answered(struct node *node, uint64_t id) {
    if (id > node->last_answered) node->last_answered = id;
    if (node->last_answered >= node->last_told) node->told_bytes = 0;
}

// Stores an answer, whose bytes the request owns from here on. A failed one carries its message
// as text; otherwise what follows the answer goes to `into`, whose size has to fit exactly.
static void take_answer(struct request *request, void *bytes, const struct wire_message *answer,
                        const void *rest, size_t rest_size) {
    request->bytes = bytes;
    request->answer = *answer;
    request->rest = rest;
    request->rest_size = rest_size;
    request->status = answer->status;
    request->answered = true;
    request->node->last_step = request->node->last_heard;
    note_answered(request->node, request->id);
    if (answer->value == WIRE_IN_ORDER) complete_earlier(request);
    if (answer->status != GGML_HOST_OK) {
        const int length = rest_size < CLIENT_TEXT - 1 ? (int)rest_size : CLIENT_TEXT - 1;
        snprintf(request->why, sizeof(request->why), "%.*s", length, (const char *)rest);
    } else if (request->into && rest_size == request->into_size) {
        memcpy(request->into, rest, rest_size);
    } else if (request->into) {
        request->status = GGML_HOST_FAILED;
        snprintf(request->why, sizeof(request->why), "MPI%d answered %zu bytes instead of %zu",
                 request->node->peer, rest_size, request->into_size);
    }
    complete(request);
}

// Keeps why a request failed that nobody waits for.
static void note_unawaited_failure(struct node *node, int32_t status, const char *why,
                                   size_t size) {
    struct line *line = &node->buffers;
    if (line->status != GGML_HOST_OK) return;
    line->status = status;
    snprintf(line->why, sizeof(line->why), "%.*s", (int)(size < CLIENT_TEXT ? size : CLIENT_TEXT),
             why);
}

// Called by the link with each message, whose `bytes` belong to this function. A node that sends
// anything but an answer can't be trusted with the next one and counts as lost, but that one of
// another job says goodbye; an answer without a request (id 0) is a ping's.
static void on_message(void *context, int peer, void *bytes, size_t size) {
    struct client *client = context;
    struct wire_message answer;
    const void *rest;
    const char *why;
    if (peer < 1 || peer > client->n_nodes) {
        free(bytes);
        return;
    }
    struct node *node = &client->nodes[peer - 1];
    const bool is_read = wire_read(bytes, size, &answer, &rest, &why);
    const bool leaves = is_read && answer.kind == WIRE_BYE && node->joined;
    const bool sound = is_read && answer.kind == WIRE_ANSWER;
    pthread_mutex_lock(&client->lock);
    node->last_heard = link_now();
    node->left = node->left || leaves;
    struct request *request = sound && answer.id != 0 ? find(node, answer.id) : NULL;
    if (request && !request->answered) {
        take_answer(request, bytes, &answer, rest, size - sizeof(answer));
    } else {
        if (sound && !request && answer.id != 0 && answer.status != GGML_HOST_OK)
            note_unawaited_failure(node, answer.status, rest, size - sizeof(answer));
        free(bytes);
        if (!sound) lose(node, leaves ? "it has left" : "it sent something that is no answer");
    }
    pthread_mutex_unlock(&client->lock);
}

// --- asking --------------------------------------------------------------------------------------

// Makes a request and the transfer that goes with it, not yet sent; NULL without memory.
// `copies`: the bytes are copied now, as the caller's memory may change before they are sent.
static struct request *new_request(struct node *node, struct line *line,
                                   const struct parts *parts) {
    struct request *request = calloc(1, sizeof(*request));
    if (!request) return NULL;
    request->node = node;
    request->line = line;
    request->group = parts->group;
    if (request->group) atomic_fetch_add(&request->group->n_owners, 1);
    if (!parts->send && !parts->receive) return request;
    request->has_op = true;
    if (parts->copies) {
        request->copy = malloc(parts->bytes);
        if (!request->copy) {
            free(request);
            return NULL;
        }
        memcpy(request->copy, parts->send, parts->bytes);
    }
    void *data = request->copy ? request->copy
                 : parts->send ? (void *)(uintptr_t)parts->send
                               : parts->receive;
    request->op = (struct link_op){.peer = node->peer,
                                   .receives = parts->receive != NULL,
                                   .data = data,
                                   .size = parts->bytes,
                                   .on_done = op_done,
                                   .context = request};
    return request;
}

// Allocates a message with the parts that follow it; its head is filled in by enter(), which
// knows the id. NULL without memory or above the largest message.
static char *assemble(const struct parts *parts, size_t *out_size) {
    const size_t head = sizeof(struct wire_message);
    *out_size = head + parts->first_size + parts->second_size;
    char *bytes = *out_size <= WIRE_MAX_MESSAGE ? malloc(*out_size) : NULL;
    if (bytes && parts->first_size > 0) memcpy(bytes + head, parts->first, parts->first_size);
    if (bytes && parts->second_size > 0)
        memcpy(bytes + head + parts->first_size, parts->second, parts->second_size);
    return bytes;
}

// Gives the request its id, appends it to its node's list and hands message and transfer to the
// link, which owns `bytes`. Under one lock, so that ids rise in the order in which messages are
// sent. The caller holds the client's lock.
static void enter(struct request *request, struct wire_message *message, char *bytes, size_t size) {
    struct node *node = request->node;
    struct client *client = node->client;
    struct line *line = request->line;
    message->magic = WIRE_MAGIC;
    message->id = request->id = ++client->next_id;
    request->queue = message->queue;
    request->tag = message->tag;
    if (is_transfer_tag(request->tag)) ++client->tag_users[request->tag - LINK_FIRST_TAG];
    request->may_be_told_later = line && message->queue != 0 && !request->has_op && !request->into;
    if (request->may_be_told_later) message->status = WIRE_OR_NEXT;
    if (request->has_op) request->op.tag = (int)message->tag;
    memcpy(bytes, message, sizeof(*message));
    if (line) {
        ++line->n_waiting;
        line->last = request->id;
    }
    if (!node->waiting) node->first_waiting = 0;
    *node->waiting_end = request; // answers mostly come in the same order
    node->waiting_end = &request->next;
    atomic_fetch_add(&client->n_waiting, 1);
    link_send(client->link, node->peer, bytes, size);
    if (request->has_op) link_post(client->link, &request->op);
}

// A request that is made but not sent.
struct draft {
    struct request *request;
    char *bytes;
    size_t size;
};

// False after the error was set.
static bool draft(struct node *node, struct line *line, const struct parts *parts,
                  struct draft *out_draft) {
    static const struct parts nothing = {0};
    *out_draft = (struct draft){0};
    if (!parts) parts = &nothing;
    if (!node_usable(node)) return false;
    out_draft->request = new_request(node, line, parts);
    if (out_draft->request) out_draft->bytes = assemble(parts, &out_draft->size);
    if (out_draft->bytes) return true;
    request_free(out_draft->request);
    ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for a request to MPI%d", node->peer);
    return false;
}

static void draft_free(struct draft *draft) {
    free(draft->bytes);
    request_free(draft->request);
}

// Sends a request; NULL after the error was set. A node may be lost between the first test and
// the lock, so it is tested again under it.
static struct request *post(struct node *node, struct line *line, struct wire_message *message,
                            const struct parts *parts, void *into, size_t into_size) {
    struct draft made;
    if (!draft(node, line, parts, &made)) return NULL;
    made.request->into = into;
    made.request->into_size = into_size;
    pthread_mutex_lock(&node->client->lock);
    const bool open = is_open(node);
    if (open) enter(made.request, message, made.bytes, made.size);
    pthread_mutex_unlock(&node->client->lock);
    if (open) return made.request;
    draft_free(&made);
    node_usable(node);
    return NULL;
}

static bool call_is_over(void *context) {
    const struct request *request = context;
    return request->done;
}

// Waits until `is_over`. The caller holds the client's lock, which is given back while it waits.
static void await(struct client *client, bool (*is_over)(void *), void *context) {
    const struct link_waiting waiting = {&client->lock, &client->answered, is_over, context};
    link_await(client->link, &waiting);
}

// A lost node completes the request as well, so that this returns at the deadline at the latest.
int32_t client_call(struct node *node, struct wire_message *message, const struct parts *parts,
                    struct request **out_request) {
    struct client *client = node->client;
    struct request *request = post(node, NULL, message, parts, NULL, 0);
    if (out_request) *out_request = NULL;
    if (!request) return is_open(node) ? GGML_HOST_OUT_OF_MEMORY : GGML_HOST_DEVICE_LOST;
    pthread_mutex_lock(&client->lock);
    await(client, call_is_over, request);
    pthread_mutex_unlock(&client->lock);
    const int32_t status = request->status;
    if (status != GGML_HOST_OK) ggml_sdk_fail((enum ggml_host_status)status, "%s", request->why);
    if (status == GGML_HOST_OK && out_request) {
        *out_request = request;
    } else if (!request->is_abandoned) {
        request_free(request);
    }
    return status;
}

// Waits until what was told is done; nothing if an answer has said so already.
static int32_t confirm(struct node *node) {
    struct client *client = node->client;
    struct wire_message message = {.kind = WIRE_WAIT}; // of queue 0, for nothing
    pthread_mutex_lock(&client->lock);
    const uint64_t last = node->last_told;
    const bool is_open = last > node->last_answered;
    pthread_mutex_unlock(&client->lock);
    if (!is_open) return GGML_HOST_OK;
    const int32_t status = client_call(node, &message, NULL, NULL);
    pthread_mutex_lock(&client->lock);
    note_answered(node, last); // a failure is told once
    pthread_mutex_unlock(&client->lock);
    return status;
}

int32_t client_tell(struct node *node, struct wire_message *message, const struct parts *parts) {
    struct client *client = node->client;
    size_t size;
    if (!node_usable(node)) return GGML_HOST_DEVICE_LOST;
    char *bytes = assemble(parts, &size);
    if (!bytes)
        return ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for a request to MPI%d",
                             node->peer);
    message->magic = WIRE_MAGIC;
    pthread_mutex_lock(&client->lock);
    if (!is_open(node)) {
        pthread_mutex_unlock(&client->lock);
        free(bytes);
        node_usable(node);
        return GGML_HOST_DEVICE_LOST;
    }
    node->last_told = message->id = ++client->next_id;
    node->told_bytes += size;
    memcpy(bytes, message, sizeof(*message));
    const bool sent = link_send_later(client->link, node->peer, bytes, size);
    const bool is_much = node->told_bytes > CLIENT_TOLD_BYTES;
    pthread_mutex_unlock(&client->lock);
    if (!sent)
        return ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for a request to MPI%d",
                             node->peer);
    return is_much ? confirm(node) : GGML_HOST_OK;
}

// Status of a request that was posted, or was not and has set the error.
static int32_t posted(const struct node *node, const struct request *request) {
    if (request) return GGML_HOST_OK;
    return is_open(node) ? GGML_HOST_OUT_OF_MEMORY : GGML_HOST_DEVICE_LOST;
}

int32_t client_post(struct node *node, struct line *line, struct wire_message *message,
                    const struct parts *parts) {
    return posted(node, post(node, line, message, parts, NULL, 0));
}

int32_t client_post_into(struct node *node, struct line *line, struct wire_message *message,
                         const struct parts *parts, void *into, size_t into_size) {
    return posted(node, post(node, line, message, parts, into, into_size));
}

int32_t client_post_both(const struct posting both[2]) {
    struct client *client = both[0].node->client;
    struct draft made[2];
    if (!draft(both[0].node, both[0].line, both[0].parts, &made[0]))
        return posted(both[0].node, NULL);
    if (!draft(both[1].node, both[1].line, both[1].parts, &made[1])) {
        draft_free(&made[0]);
        return posted(both[1].node, NULL);
    }
    pthread_mutex_lock(&client->lock);
    const bool open = is_open(both[0].node) && is_open(both[1].node);
    for (int i = 0; i < 2 && open; ++i)
        enter(made[i].request, both[i].message, made[i].bytes, made[i].size);
    pthread_mutex_unlock(&client->lock);
    if (open) return GGML_HOST_OK;
    for (int i = 0; i < 2; ++i)
        draft_free(&made[i]);
    if (node_usable(both[0].node)) node_usable(both[1].node);
    return GGML_HOST_DEVICE_LOST;
}

// In the child of a fork nothing comes any more.
static bool line_is_over(void *context) {
    const struct line *line = context;
    return line->n_waiting == 0 || the_client.is_child;
}

void line_drain(struct node *node, struct line *line) {
    pthread_mutex_lock(&node->client->lock);
    await(node->client, line_is_over, line);
    pthread_mutex_unlock(&node->client->lock);
}

// The error is set after the lock was given back, as a log callback may call the library again.
int32_t line_wait(struct node *node, struct line *line) {
    struct client *client = node->client;
    char why[CLIENT_TEXT];
    line_drain(node, line);
    const int32_t confirmed = confirm(node);
    pthread_mutex_lock(&client->lock);
    if (line->status == GGML_HOST_OK) line = &node->buffers;
    const int32_t status = line->status;
    memcpy(why, line->why, sizeof(why));
    line->status = GGML_HOST_OK;
    pthread_mutex_unlock(&client->lock);
    if (status == GGML_HOST_OK) return confirmed;
    return ggml_sdk_fail((enum ggml_host_status)status, "%s", why);
}

struct place {
    const struct node *node;
    const struct line *line;
    uint64_t id;
};

// Whether no request of the line up to `id` is open. The list is in the order of ids, but holds
// other lines' requests, too.
static bool place_is_over(void *context) {
    const struct place *place = context;
    const struct request *request = place->node->waiting;
    while (request && (request->line != place->line || request->id > place->id))
        request = request->next;
    return !request || the_client.is_child;
}

void line_wait_for(struct node *node, const struct line *line, uint64_t id) {
    struct client *client = node->client;
    pthread_mutex_lock(&client->lock);
    await(client, place_is_over, &(struct place){node, line, id});
    pthread_mutex_unlock(&client->lock);
}

// The tag, or -1: all are in use. The next one mostly is free: transfers end in the order in which
// they begin, but for few that wait.
static int take_tag(struct client *client) {
    for (uint32_t n = 0; n < LINK_TAGS; ++n) {
        const uint32_t i = client->next_tag++ % LINK_TAGS;
        if (client->tag_users[i] > 0) continue;
        client->tag_users[i] = 1;
        return (int)i;
    }
    return -1;
}

struct tag_wait {
    struct client *client;
    int taken;
};

// In the child of a fork nothing is given back, and nothing sent.
static bool has_tag(void *context) {
    struct tag_wait *wait = context;
    wait->taken = wait->client->is_child ? 0 : take_tag(wait->client);
    return wait->taken >= 0;
}

uint32_t client_take_tag(struct client *client) {
    struct tag_wait wait = {client, -1};
    pthread_mutex_lock(&client->lock);
    await(client, has_tag, &wait);
    pthread_mutex_unlock(&client->lock);
    return LINK_FIRST_TAG + (uint32_t)wait.taken;
}

void client_drop_tag(struct client *client, uint32_t tag) {
    pthread_mutex_lock(&client->lock);
    if (is_transfer_tag(tag) && !client->is_child &&
        --client->tag_users[tag - LINK_FIRST_TAG] == 0) {
        pthread_cond_broadcast(&client->answered); // all may have been in use
    }
    pthread_mutex_unlock(&client->lock);
}

// --- start and end -------------------------------------------------------------------------------

double client_seconds(const char *name, double otherwise) {
    const char *value = ggml_sdk_config(name);
    char *end;
    if (!value || value[0] == '\0') return otherwise;
    const double seconds = strtod(value, &end);
    if (*end == '\0' && seconds > 0 && seconds < 1e6) return seconds;
    GGML_LOG_WARN("mpi: %s=%s is no number of seconds, %g are taken\n", name, value, otherwise);
    return otherwise;
}

// Peer p of the link is nodes[p - 1].
static struct node *set_up(struct client *client, int peer) {
    struct node *node = &client->nodes[peer - 1];
    node->client = client;
    node->peer = peer;
    node->waiting_end = &node->waiting;
    snprintf(node->about.host, WIRE_TEXT, "?");
    return node;
}

static void make_devices(struct node *node) {
    for (uint32_t k = 0; k < node->n_devices; ++k) {
        const struct wire_device about = node->devices[k].about;
        remote_device_init(&node->devices[k], node, k, &about, node->client->reg);
    }
}

struct node *client_add(struct client *client) {
    struct node *node = set_up(client, client->n_nodes + 1);
    node->joined = true;
    atomic_fetch_add(&client->n_nodes, 1);
    if (!node_describe(node)) return NULL;
    node_measure(node);
    make_devices(node);
    atomic_store(&client->n_shown, client->n_nodes);
    return node;
}

bool nodes_reach(const struct node *a, const struct node *b) {
    return a == b || (!a->joined && !b->joined);
}

// The file by which nodes of other jobs join; NULL: none may.
static const char *join_file(void) {
    const char *path = ggml_sdk_config("GGML_MPI_JOIN");
    return path && path[0] != '\0' ? path : NULL;
}

// Whether no process of the job can be a node.
static bool has_no_nodes(int size, int programs, unsigned n_expected) {
    return size == 1 || (programs == 1 && n_expected == 0);
}

// 0: every other process of the job.
static unsigned expected_nodes(void) {
    const char *value = ggml_sdk_config("GGML_MPI_NODES");
    char *end;
    if (!value || value[0] == '\0') return 0;
    const long n = strtol(value, &end, 10);
    if (*end == '\0' && n >= 0 && n < LINK_MAX_PEERS) return (unsigned)n;
    GGML_LOG_WARN("mpi: GGML_MPI_NODES=%s is no number of nodes\n", value);
    return 0;
}

// Whether MPI may be started: nobody may wait for processes that don't.
bool client_may_start(unsigned *out_n_expected) {
    static const char how[] = "start the program with mpirun -n 1 PROGRAM : -n NODES ggml-node";
    int rank = -1, size = -1, programs = 0;
    char why[LINK_TEXT];
    const bool is_own = link_has_own_mpi(why);
    const bool launched = is_own && link_launched(&rank, &size, &programs);
    const unsigned n_expected = launched ? expected_nodes() : 0;
    if (out_n_expected) *out_n_expected = n_expected;
    if (!is_own) {
        ggml_sdk_fail(GGML_HOST_NO_DEVICE, "%s", why);
    } else if (!launched) {
        ggml_sdk_fail(GGML_HOST_NO_DEVICE, "no MPI job: %s", how);
    } else if (rank > 0) {
        ggml_sdk_fail(GGML_HOST_NO_DEVICE, "rank %d of an MPI job: only rank 0 uses nodes", rank);
    } else if (has_no_nodes(size, programs, n_expected) && !join_file()) {
        ggml_sdk_fail(GGML_HOST_NO_DEVICE, "the MPI job has no ggml-node: %s", how);
    } else {
        return true;
    }
    return false;
}

// Runs in the child of a fork, where neither MPI nor the link's thread exists. Locks may be held
// by threads that are gone, so they are made again, and every node counts as lost: calls fail at
// once instead of waiting for ever.
static void note_child(void) {
    struct client *client = &the_client;
    if (!is_running) return;
    client->is_child = true;
    pthread_mutex_init(&client->lock, NULL);
    link_cond_init(&client->answered);
    for (int i = 0; i < client->n_nodes; ++i) {
        struct node *node = &client->nodes[i];
        snprintf(node->why, sizeof(node->why), "MPI%d is out of reach in the child of a fork",
                 node->peer);
        atomic_store(&node->lost, true);
    }
}

static void on_finalize(void *context) {
    (void)context;
    client_end();
}

// Starts MPI, meets the nodes, asks each for its devices and measures the way to it. Ends again
// when no node has answered. Nothing is freed on failure: the link's thread may still be inside
// MPI.
struct client *client_start(ggml_backend_reg_t reg) {
    struct client *client = &the_client;
    const char *path = join_file();
    char why[LINK_TEXT];
    unsigned n_expected;
    int rank, size, programs;
    if (is_running) return client;
    if (!client_may_start(&n_expected)) return NULL;
    link_launched(&rank, &size, &programs);
    *client = (struct client){.deadline = client_seconds("GGML_MPI_DEADLINE", 30), .reg = reg};
    pthread_mutex_init(&client->lock, NULL);
    link_cond_init(&client->answered);
    client->nodes = calloc(LINK_MAX_PEERS, sizeof(*client->nodes));
    if (!client->nodes) {
        ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for the nodes of an MPI job");
        return NULL;
    }
    const struct link_options options = {
        .n_expected = n_expected,
        .is_alone = has_no_nodes(size, programs, n_expected),
        .start_seconds = client_seconds("GGML_MPI_START_SECONDS", 30),
        .stuck_seconds = client->deadline,
        .on_message = on_message,
        .on_failure = on_failure,
        .on_progress = on_progress,
        .on_tick = on_tick,
        .on_finalize = on_finalize,
        .context = client,
        .out_link = &client->link,
    };
    if (!link_open(&options, why)) {
        GGML_LOG_WARN("mpi: no node of the job is used: %s\n", why);
        ggml_sdk_fail(GGML_HOST_NO_DEVICE, "%s", why);
        return NULL;
    }
    for (int peer = 1; peer < link_count(client->link); ++peer)
        set_up(client, peer);
    client->n_nodes = link_count(client->link) - 1;
    if (link_refused(client->link)[0] != '\0') GGML_LOG_WARN("%s\n", link_refused(client->link));
    pthread_atfork(NULL, NULL, note_child);
    is_running = true;
    int n_alive = 0;
    for (int i = 0; i < client->n_nodes; ++i)
        n_alive += node_describe(&client->nodes[i]);
    for (int i = 0; i < client->n_nodes; ++i)
        if (client->nodes[i].devices) node_measure(&client->nodes[i]);
    client_measure_links(client);
    for (int i = 0; i < client->n_nodes; ++i)
        make_devices(&client->nodes[i]);
    atomic_store(&client->n_shown, client->n_nodes);
    if (path) client->joiner = joiner_start(client, path);
    if (n_alive > 0 || client->joiner) return client;
    client_end();
    return NULL;
}

// Tells each node to end, and takes no request any more: none comes after the goodbye. Returns
// whether ending MPI would wait for a node for ever, as is said to the others.
static bool say_goodbye(struct client *client, bool lost) {
    pthread_mutex_lock(&client->lock);
    client->ends = true;
    for (int i = 0; i < client->n_nodes; ++i)
        lost = lost || (atomic_load(&client->nodes[i].lost) && !client->nodes[i].left);
    for (int i = 0; i < client->n_nodes; ++i) {
        struct node *node = &client->nodes[i];
        struct wire_message *message = calloc(1, sizeof(*message));
        if (!message || atomic_load(&node->lost)) {
            free(message);
            continue;
        }
        *message = (struct wire_message){.magic = WIRE_MAGIC, .kind = WIRE_BYE, .value = lost};
        link_send(client->link, node->peer, message, sizeof(*message));
        snprintf(node->why, sizeof(node->why), "MPI%d is out of reach: MPI has ended", node->peer);
        atomic_store(&node->lost, true);
    }
    pthread_mutex_unlock(&client->lock);
    return lost;
}

// Completes what was still asked for, so that nobody waits for it. Bytes that are still with MPI
// count as done: it has ended, or its thread never comes back; the request is not freed then.
static void abandon(struct request *request) {
    const bool travels = request->has_op && !request->op_done;
    if (travels) request->op.failed = request->is_abandoned = true;
    if (request->answered)
        complete(request);
    else
        fail_request(request);
}

// An answer that came has come, whatever becomes of the bytes beside it.
static bool owes(const struct node *node) {
    const struct request *at = node->waiting;
    while (at && at->answered)
        at = at->next;
    return at != NULL;
}

// Whether all is answered, or nothing more is done of what is not. Nothing is known of that while
// this process was stopped, of which the link's thread has not learned yet.
static bool end_is_due(void *context) {
    struct client *client = context;
    const double now = link_now();
    const bool was_stopped = now - atomic_load(&client->last_tick) > 1;
    for (int i = 0; i < client->n_nodes; ++i) {
        const struct node *node = &client->nodes[i];
        if (owes(node) && (was_stopped || now - node->last_step < client->deadline)) return false;
    }
    return true;
}

// Waits for what nodes were asked for: false if one gets nothing of it done, however it answers
// pings. The caller holds the client's lock.
static bool await_answers(struct client *client) {
    bool all = true;
    for (int i = 0; i < client->n_nodes; ++i)
        client->nodes[i].last_step = link_now();
    await(client, end_is_due, client);
    for (int i = 0; i < client->n_nodes; ++i) {
        const struct node *node = &client->nodes[i];
        if (!owes(node)) continue;
        GGML_LOG_WARN("MPI%d on %s has got nothing done for %g s: it is not waited for\n",
                      node->peer, node->about.host, client->deadline);
        all = false;
    }
    return all;
}

// Tells each node to end, once it has done what it was asked for: the program would not wait for
// one that still computes and ends MPI later. Nothing new is asked then, so that the wait has an
// end while other threads go on. Then stops the link. `value` of WIRE_BYE says whether
// a node was lost: then no process may call MPI_Finalize, which waits for all. What the program
// still has of nodes it may use and free later: its calls find each node lost.
void client_end(void) {
    struct client *client = &the_client;
    if (!is_running || client->is_child) return;
    is_running = false;
    pthread_mutex_lock(&client->lock);
    atomic_store(&client->closes, true);
    const bool all = await_answers(client);
    pthread_mutex_unlock(&client->lock);
    const bool stays = !joiner_end(client->joiner); // ending MPI would wait for that thread
    const bool lost = say_goodbye(client, stays || !all);
    // Ending MPI waits for every process of the job, so nobody does when one is lost.
    link_close(client->link, !lost);
    pthread_mutex_lock(&client->lock);
    struct request *next;
    for (int i = 0; i < client->n_nodes; ++i) {
        for (struct request *request = client->nodes[i].waiting; request; request = next) {
            next = request->next;
            abandon(request);
        }
    }
    pthread_mutex_unlock(&client->lock);
}
