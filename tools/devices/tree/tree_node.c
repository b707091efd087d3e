// SPDX-License-Identifier: MIT
// Nodes of the tree that ggml-devices draws, in one block of memory for each.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void tree_tell(struct node *node, const char *format, ...) {
    const size_t used = strlen(node->more);
    va_list arguments;
    if (used + 2 > sizeof(node->more)) return;
    if (used > 0) strcpy(node->more + used, "\n");
    const size_t start = used + (used > 0);
    va_start(arguments, format);
    vsnprintf(node->more + start, sizeof(node->more) - start, format, arguments);
    va_end(arguments);
}

// What a person at a drawing asks of a device next.
static void tell_of_device(struct node *node, const struct device_entry *device) {
    const struct ggml_backend_dev_props *props = &device->props;
    char text[160];
    sanitise(props->description, text, sizeof(text));
    tree_tell(node, "%s", text);
    if (props->memory_total > 0)
        tree_tell(node, "%.1f of %.1f GiB free%s", (double)props->memory_free / 1073741824.0,
                  (double)props->memory_total / 1073741824.0,
                  device->memory_age > 0 ? " when it was asked" : "");
    sanitise(device->plugin_name ? device->plugin_name : "?", text, sizeof(text));
    tree_tell(node, "plugin %s", text);
    for (const struct ggml_backend_feature *d = device->details; d && d->name; ++d) {
        char name[64];
        if (strncmp(d->name, "driver", 6) != 0 && strncmp(d->name, "api", 3) != 0) continue;
        sanitise(d->name, name, sizeof(name));
        sanitise(d->value, text, sizeof(text));
        tree_tell(node, "%s %s", name, text);
    }
    if (device->alias_of) tree_tell(node, "the same device as %.60s", device->alias_of);
}

struct node *tree_append_device(struct node *parent, const struct device_entry *device) {
    struct node *node = tree_append(parent, NODE_DEVICE);
    if (!node) return NULL;
    char name[64], description[96];
    sanitise(device->props.name, name, sizeof(name));
    sanitise(device->props.description, description, sizeof(description));
    snprintf(node->label, sizeof(node->label), "%s (%s): %s", name,
             device_type_name(device->props.type), description);
    tell_of_device(node, device);
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
        tree_tell(slot, "%s", inventory->gpus[i].advice);
    }
    return true;
}
