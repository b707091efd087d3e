// SPDX-License-Identifier: MIT
// The whole tree: this machine alone, or beside the hosts that lend devices, with the links.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "print.h"
#include "tree.h"

// The box of a host, which its first node makes.
static struct node *host_box(struct node *root, const char *name) {
    char label[sizeof(root->label)], text[160];
    sanitise(name, text, sizeof(text));
    snprintf(label, sizeof(label), "Host %s", text);
    for (struct node *child = root->first_child; child; child = child->next)
        if (child->kind == NODE_HOST && strcmp(child->label, label) == 0) return child;
    struct node *host = tree_append(root, NODE_HOST);
    if (host) memcpy(host->label, label, sizeof(label));
    return host;
}

// A node in its host, with its devices; NULL when memory gives out.
static struct node *node_box(struct node *root, const struct inventory *inventory, size_t number) {
    const struct node_entry *entry = &inventory->nodes[number - 1];
    struct node *host = host_box(root, entry->host);
    struct node *node = host ? tree_append(host, NODE_NODE) : NULL;
    if (!node) return NULL;
    node->number = (unsigned)number;
    sanitise(entry->name, node->label, sizeof(node->label));
    for (size_t i = 0; i < inventory->n_devices; ++i) {
        const struct device_entry *device = &inventory->devices[i];
        if (device->node == number && !tree_append_device(node, device)) return NULL;
    }
    return node;
}

// The name of an end of links.
const char *tree_end_name(const struct node *end) {
    return end->kind == NODE_MACHINE ? "program" : end->label;
}

// `ends`: this machine and the nodes, by their numbers.
static bool add_links(struct node *root, const struct inventory *inventory,
                      struct node *const *ends) {
    struct node *links = inventory->n_links > 0 ? tree_append(root, NODE_LINKS) : NULL;
    if (!links) return inventory->n_links == 0;
    snprintf(links->label, sizeof(links->label), "Links");
    links->count = (unsigned)inventory->n_nodes + 1;
    for (size_t i = 0; i < inventory->n_links; ++i) {
        const struct link_entry *entry = &inventory->links[i];
        struct node *link = tree_append(links, NODE_LINK);
        if (!link) return false;
        link->ends[0] = ends[entry->from];
        link->ends[1] = ends[entry->to];
        snprintf(link->more, sizeof(link->more), "%.1f us, %.2f GB/s", entry->seconds * 1e6,
                 entry->bytes_per_second * 1e-9);
        snprintf(link->label, sizeof(link->label), "%.64s - %.64s: %.64s",
                 tree_end_name(link->ends[0]), tree_end_name(link->ends[1]), link->more);
    }
    return true;
}

struct node *tree_build(const struct inventory *inventory) {
    struct node *machine = tree_build_machine(inventory);
    if (!machine || inventory->n_nodes == 0) return machine;
    struct node **ends = calloc(inventory->n_nodes + 1, sizeof(struct node *));
    struct node *root = tree_append(NULL, NODE_HOSTS);
    if (!root || !ends) {
        tree_free(machine);
        goto fail;
    }
    snprintf(root->label, sizeof(root->label), "This machine, and hosts that lend devices");
    root->first_child = ends[0] = machine;
    for (size_t i = 1; i <= inventory->n_nodes; ++i)
        if (!(ends[i] = node_box(root, inventory, i))) goto fail;
    if (!add_links(root, inventory, ends)) goto fail;
    free(ends);
    return root;
fail:
    fputs("ggml-devices: out of memory\n", stderr);
    free(ends);
    tree_free(root);
    return NULL;
}
