// SPDX-License-Identifier: MIT
// Nodes of the tree that ggml-devices draws, in one block of memory for each.
#include <stdio.h>
#include <stdlib.h>

#include "print.h"
#include "tree.h"

void tree_free(struct node *node) {
    while (node) {
        struct node *next = node->next;
        tree_free(node->first_child);
        free(node);
        node = next;
    }
}

struct node *tree_append(struct node *parent, enum node_kind kind) {
    struct node *node = calloc(1, sizeof(*node));
    if (!node) return NULL;
    node->kind = kind;
    node->count = 1;
    if (parent) {
        struct node **end = &parent->first_child;
        while (*end) {
            end = &(*end)->next;
        }
        *end = node;
    }
    return node;
}

struct node *tree_append_device(struct node *parent, const struct device_entry *device) {
    struct node *node = tree_append(parent, NODE_DEVICE);
    if (!node) return NULL;
    char name[64], description[96];
    sanitise(device->props.name, name, sizeof(name));
    sanitise(device->props.description, description, sizeof(description));
    snprintf(node->label, sizeof(node->label), "%s (%s): %s", name,
             device_type_name(device->props.type), description);
    return node;
}

bool tree_append_gpus(struct node *root, const struct inventory *inventory) {
    for (size_t i = 0; i < inventory->n_gpus; ++i) {
        const struct gpu *gpu = &inventory->gpus[i].gpu;
        char name[128];
        if (gpu->display_only) continue;
        struct node *slot = tree_append(root, NODE_PCI);
        if (!slot) return false;
        sanitise(gpu->model[0] ? gpu->model : "GPU", name, sizeof(name));
        snprintf(slot->label, sizeof(slot->label), "PCI %s: %s %s, without a device", gpu->address,
                 gpu->vendor_name, name);
    }
    return true;
}
