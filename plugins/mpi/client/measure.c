// SPDX-License-Identifier: MIT
// Measures links at start: to each node, with bytes that are sent to a device there, and between
// nodes, which these measure themselves when asked.
#include <stdlib.h>

#include "client.h"

enum { TIMES = 8, BYTES = 4 << 20, LINK_BYTES = 1 << 20 };

// Seconds that an empty request and its reply take, the fewest of several tries.
static double round_trip(struct node *node) {
    double least = 0;
    for (int i = 0; i < TIMES; ++i) {
        struct wire_message message = {.kind = WIRE_PING};
        const double begin = link_now();
        if (client_call(node, &message, NULL, NULL) != GGML_HOST_OK) return 0;
        const double took = link_now() - begin;
        if (i == 0 || took < least) least = took;
    }
    return least;
}

// Seconds that BYTES take, less those of an empty request.
static double transfer(struct node *node, uint64_t buffer, const void *bytes) {
    const struct wire_tensor tensor = {.type = GGML_TYPE_I8,
                                       .ne = {BYTES, 1, 1, 1},
                                       .nb = {1, BYTES, BYTES, BYTES},
                                       .src = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
                                       .view_src = -1,
                                       .buffer = buffer};
    const struct parts parts = {
        .first = &tensor, .first_size = sizeof(tensor), .send = bytes, .bytes = BYTES};
    double least = 0;
    for (int i = 0; i < TIMES / 2; ++i) {
        struct wire_message message = {
            .kind = WIRE_SET, .size = BYTES, .tag = client_take_tag(node->client)};
        const double begin = link_now();
        const int32_t status = client_call(node, &message, &parts, NULL);
        const double took = link_now() - begin;
        client_drop_tag(node->client, message.tag);
        if (status != GGML_HOST_OK) return 0;
        if (i == 0 || took < least) least = took;
    }
    return least > node->link_seconds ? least - node->link_seconds : least;
}

void node_measure(struct node *node) {
    node->link_seconds = round_trip(node);
    if (node->n_devices == 0 || node->link_seconds <= 0) return;
    void *bytes = calloc(1, BYTES);
    const uint64_t id = atomic_fetch_add(&node->client->next_object, 1) + 1;
    struct wire_message message = {.kind = WIRE_BUFFER_NEW, .object = id, .size = BYTES};
    if (bytes && client_call(node, &message, NULL, NULL) == GGML_HOST_OK) {
        const double took = transfer(node, id, bytes);
        node->link_bytes_per_second = took > 0 ? BYTES / took : 0;
        message = (struct wire_message){.kind = WIRE_BUFFER_FREE, .object = id};
        client_call(node, &message, NULL, NULL);
    }
    free(bytes);
}

// --- between nodes -------------------------------------------------------------------------------

struct pair {
    struct node *nodes[2];
    struct line lines[2];
    struct wire_link link;
};

// Has both nodes begin; the first one leads.
static void begin_pair(struct client *client, struct pair *pair, int a, int b) {
    const uint32_t tag = client_take_tag(client);
    *pair = (struct pair){.nodes = {&client->nodes[a], &client->nodes[b]}};
    for (int i = 0; i < 2; ++i) {
        struct wire_message message = {.kind = WIRE_MEASURE,
                                       .size = LINK_BYTES,
                                       .value = i == 0,
                                       .peer = (uint32_t)pair->nodes[1 - i]->peer,
                                       .tag = tag};
        client_post_into(pair->nodes[i], &pair->lines[i], &message, NULL,
                         i == 0 ? &pair->link : NULL, i == 0 ? sizeof(pair->link) : 0);
    }
    client_drop_tag(client, tag);
}

static void end_pair(struct pair *pair) {
    const bool led = line_wait(pair->nodes[0], &pair->lines[0]) == GGML_HOST_OK;
    const bool followed = line_wait(pair->nodes[1], &pair->lines[1]) == GGML_HOST_OK;
    if (!led || !followed) return;
    pair->nodes[0]->links[pair->nodes[1]->peer - 1] = pair->link;
    pair->nodes[1]->links[pair->nodes[0]->peer - 1] = pair->link;
}

// In rounds of pairs without a node in common (the circle method of tournaments): in each one node
// stays and the others move on by one place.
void client_measure_links(struct client *client) {
    const int n = client->n_nodes + client->n_nodes % 2; // the last one may be nobody
    struct pair pairs[CLIENT_LINKS / 2];
    if (client->n_nodes < 2 || client->n_nodes > CLIENT_LINKS) return;
    for (int round = 0; round + 1 < n; ++round) {
        int count = 0;
        for (int i = 0; i < n / 2; ++i) {
            const int a = i == 0 ? n - 1 : (round + i) % (n - 1);
            const int b = (round + n - 1 - i) % (n - 1);
            const bool all = a < client->n_nodes && b < client->n_nodes;
            if (all && client->nodes[a].devices && client->nodes[b].devices)
                begin_pair(client, &pairs[count++], a, b);
        }
        for (int i = 0; i < count; ++i)
            end_pair(&pairs[i]);
    }
}
