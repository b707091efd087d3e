// SPDX-License-Identifier: MIT
// How fast the way to a node is: measured at start, with a device of the node that takes the bytes.
#include <stdlib.h>

#include "client.h"

enum { TIMES = 8, BYTES = 4 << 20 };

// Seconds that an empty request and its answer take, the least of some.
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

// Seconds that BYTES take, without what an empty request does.
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
            .kind = WIRE_SET, .size = BYTES, .tag = client_new_tag(node->client)};
        const double begin = link_now();
        if (client_call(node, &message, &parts, NULL) != GGML_HOST_OK) return 0;
        const double took = link_now() - begin;
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
