// SPDX-License-Identifier: MIT
// Nodes that lend devices of other hosts, by the keys "host" and "node" of what plugins say of
// their devices, and the links between them that plugins declare.
#include <stdlib.h>
#include <string.h>

#include "inventory.h"

static const char *detail(const struct device_entry *device, const char *key) {
    for (const struct ggml_backend_feature *d = device->details; d && d->name; ++d)
        if (strcmp(d->name, key) == 0) return d->value;
    return NULL;
}

// Number of the device's node, which is added where it is new; 0: the device names no host. The
// device itself is the node where it names none. O(nodes).
static size_t number_of_node(struct inventory *inventory, const struct device_entry *device) {
    const char *host = detail(device, "host"), *name = detail(device, "node");
    if (!host) return 0;
    if (!name) name = device->props.name;
    for (size_t i = 0; i < inventory->n_nodes; ++i) {
        const struct node_entry *node = &inventory->nodes[i];
        if (strcmp(node->host, host) == 0 && strcmp(node->name, name) == 0) return i + 1;
    }
    inventory->nodes[inventory->n_nodes++] = (struct node_entry){host, name, device->handle};
    return inventory->n_nodes;
}

// From the node (0: the program) with the lower number to the other one.
static void take_link(struct inventory *inventory, size_t from, size_t to) {
    ggml_backend_dev_t a = from > 0 ? inventory->nodes[from - 1].handle : NULL;
    ggml_backend_dev_t b = inventory->nodes[to - 1].handle;
    struct ggml_device_link link = {.size = sizeof(link)};
    if (!b || (from > 0 && !a) || ggml_backend_dev_link(a, b, &link) != GGML_HOST_OK) return;
    inventory->links[inventory->n_links++] =
        (struct link_entry){from, to, link.seconds, link.bytes_per_second};
}

bool inventory_take_hosts(struct inventory *inventory) {
    inventory->nodes = calloc(inventory->n_devices + 1, sizeof(*inventory->nodes));
    if (!inventory->nodes) return false;
    for (size_t i = 0; i < inventory->n_devices; ++i) {
        struct device_entry *device = &inventory->devices[i];
        device->node = number_of_node(inventory, device);
    }
    const size_t n = inventory->n_nodes; // no more than there are devices, so that no product wraps
    inventory->links = calloc(n * (n + 1) / 2 + 1, sizeof(*inventory->links));
    if (!inventory->links) return false;
    for (size_t from = 0; from < n; ++from) {
        for (size_t to = from + 1; to <= n; ++to)
            take_link(inventory, from, to);
    }
    return true;
}
