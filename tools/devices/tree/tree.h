// SPDX-License-Identifier: MIT
// The machine as nested boxes, with ggml's devices in them, and other hosts that lend some; every
// drawing starts from it.
#ifndef DEVICES_TREE_H
#define DEVICES_TREE_H

#include "inventory.h"

enum node_kind {
    NODE_MACHINE,
    NODE_PACKAGE,
    NODE_MEMORY,
    NODE_CACHE,
    NODE_CORES,
    NODE_PCI,
    NODE_DEVICE,
    NODE_HOSTS, // around the machine and the others
    NODE_HOST,
    NODE_NODE,  // of a host, which lends devices
    NODE_LINKS, // of links alone
    NODE_LINK
};

struct node {
    enum node_kind kind;
    char label[224];
    char more[512];       // that a pointer on its box brings up, in lines; ""
    unsigned count;       // cores: how many alike; links: how many may have an end there
    unsigned number;      // of such an end, from 0, which is the machine
    unsigned id;          // of the drawing
    struct node *ends[2]; // of a link
    struct node *first_child;
    struct node *next; // sibling
};

// NULL after a message on stderr. tree_free() ends it.
struct node *tree_build(const struct inventory *inventory);
void tree_free(struct node *node);
// This machine alone, with the devices that no other host lends; for tree_build.
struct node *tree_build_machine(const struct inventory *inventory);
// The two ways to that: by hwloc, in this process, and without it.
struct node *tree_build_hwloc(const struct inventory *inventory);
struct node *tree_build_plain(const struct inventory *inventory);
// What a machine or node is called at the end of a link.
const char *tree_end_name(const struct node *end);

// A new last child of `parent` (may be NULL), for tree_build; NULL when memory gives out.
struct node *tree_append(struct node *parent, enum node_kind kind);
struct node *tree_append_device(struct node *parent, const struct device_entry *device);
// Appends a line to what the node tells besides its label.
void tree_tell(struct node *node, const char *format, ...);
// The GPUs that no device stands for; false when memory gives out.
bool tree_append_gpus(struct node *root, const struct inventory *inventory);

#endif
