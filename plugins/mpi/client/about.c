// SPDX-License-Identifier: MIT
// What a node and the program tell each other about themselves when they have met.
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "link/link_process.h"

// Tells a node which process this is, that it may see it end. Nodes of 2.2 do not know how.
static void introduce(const struct node *node) {
    const struct wire_message message = {.magic = WIRE_MAGIC, .kind = WIRE_PROGRAM};
    struct wire_program self;
    if (link_minor(node->client->link, node->peer) < 3 || !link_process_self(&self)) return;
    char *bytes = malloc(sizeof(message) + sizeof(self));
    if (!bytes) return;
    memcpy(bytes, &message, sizeof(message));
    memcpy(bytes + sizeof(message), &self, sizeof(self));
    link_send(node->client->link, node->peer, bytes, sizeof(message) + sizeof(self));
}

// Asks a node for its devices. The answer is read twice: for their number, then into memory of
// that size.
bool node_describe(struct node *node) {
    struct wire_message message = {.kind = WIRE_DESCRIBE};
    struct request *request;
    struct wire_device *devices = NULL;
    const char *why = "no memory";
    introduce(node);
    if (client_call(node, &message, NULL, &request) != GGML_HOST_OK) return false;
    bool good = wire_read_node(request->rest, request->rest_size, &node->about, NULL, &why);
    if (good) devices = calloc(node->about.n_devices + 1, sizeof(*devices));
    good =
        devices && wire_read_node(request->rest, request->rest_size, &node->about, devices, &why);
    request_free(request);
    if (good) node->devices = calloc(node->about.n_devices + 1, sizeof(*node->devices));
    good = good && node->devices;
    if (good) node->n_devices = node->about.n_devices;
    for (uint32_t i = 0; i < node->n_devices; ++i)
        node->devices[i].about = devices[i];
    free(devices);
    if (!good) ggml_sdk_fail(GGML_HOST_FAILED, "MPI%d described itself with %s", node->peer, why);
    return good;
}
