// SPDX-License-Identifier: MIT
// The machine as hwloc sees it, with the devices where they hang.
#include "tree.h"

#include <hwloc.h>
#ifdef __linux__
#include <sys/auxv.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct builder {
    hwloc_topology_t topology;
    const struct inventory *inventory;
    bool *placed; // per device
    bool failed;
};

static struct node *append(struct builder *builder, struct node *parent, enum node_kind kind) {
    struct node *node = tree_append(parent, kind);
    builder->failed = builder->failed || !node;
    return node;
}

static void add_device(struct builder *builder, struct node *parent, size_t index) {
    builder->placed[index] = true;
    if (!tree_append_device(parent, &builder->inventory->devices[index])) builder->failed = true;
}

// Devices with a PCI address hang below the object that hwloc attaches their bus to.
static void add_devices_below(struct builder *builder, struct node *parent, hwloc_obj_t object) {
    for (size_t i = 0; i < builder->inventory->n_devices; ++i) {
        const char *id = builder->inventory->devices[i].props.device_id;
        if (builder->placed[i] || !id) continue;
        hwloc_obj_t pci = hwloc_get_pcidev_by_busidstring(builder->topology, id);
        if (!pci || hwloc_get_non_io_ancestor_obj(builder->topology, pci) != object) continue;
        struct node *slot = append(builder, parent, NODE_PCI);
        if (!slot) return;
        snprintf(slot->label, sizeof(slot->label), "PCI %s", id);
        add_device(builder, slot, i);
    }
}

// Kind and label of an object; false for those that are not drawn.
static bool describe(hwloc_obj_t object, enum node_kind *out_kind, char *out_label, size_t size) {
    switch (object->type) {
    case HWLOC_OBJ_MACHINE:
        *out_kind = NODE_MACHINE;
        snprintf(out_label, size, "Machine, %.1f GiB", (double)object->total_memory / 1073741824.0);
        return true;
    case HWLOC_OBJ_PACKAGE: {
        const char *model = hwloc_obj_get_info_by_name(object, "CPUModel");
        *out_kind = NODE_PACKAGE;
        size_t length = model ? strlen(model) : 0;
        while (length > 0 && model[length - 1] == ' ') // CPUID pads it
            --length;
        snprintf(out_label, size, "Package %u%s%.*s", object->logical_index, length > 0 ? ": " : "",
                 (int)length, length > 0 ? model : "");
        return true;
    }
    case HWLOC_OBJ_NUMANODE:
        *out_kind = NODE_MEMORY;
        snprintf(out_label, size, "NUMA node %u, %.1f GiB", object->logical_index,
                 (double)object->attr->numanode.local_memory / 1073741824.0);
        return true;
    case HWLOC_OBJ_L3CACHE:
        *out_kind = NODE_CACHE;
        snprintf(out_label, size, "L3 cache, %.1f MiB",
                 (double)object->attr->cache.size / 1048576.0);
        return true;
    case HWLOC_OBJ_CORE: {
        const unsigned threads = (unsigned)hwloc_bitmap_weight(object->cpuset);
        *out_kind = NODE_CORES;
        snprintf(out_label, size, "core%s", threads > 1 ? ", 2 threads each" : "");
        if (threads > 2) snprintf(out_label, size, "core, %u threads each", threads);
        return true;
    }
    default: return false;
    }
}

static void add_object(struct builder *builder, struct node *parent, hwloc_obj_t object);

// Memory first, then everything else below an object, then devices that hang there.
static void add_children(struct builder *builder, struct node *parent, hwloc_obj_t object) {
    for (hwloc_obj_t child = object->memory_first_child; child; child = child->next_sibling) {
        add_object(builder, parent, child);
    }
    for (hwloc_obj_t child = object->first_child; child; child = child->next_sibling) {
        add_object(builder, parent, child);
    }
    add_devices_below(builder, parent, object);
}

static struct node *last_child(struct node *parent) {
    struct node *child = parent->first_child;
    while (child && child->next) {
        child = child->next;
    }
    return child;
}

// Caches of a core, and the numbers of the logical CPUs.
static void tell_of_object(struct node *node, hwloc_obj_t object) {
    static const hwloc_obj_type_t caches[] = {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE};
    char cpus[128] = "";
    hwloc_bitmap_list_snprintf(cpus, sizeof(cpus), object->cpuset);
    tree_tell(node,
              object->type == HWLOC_OBJ_CORE ? "logical CPUs of the first: %s" : "logical CPUs %s",
              cpus);
    for (size_t i = 0; object->type == HWLOC_OBJ_CORE && i < 2; ++i) {
        hwloc_obj_t cache = object->parent;
        while (cache && cache->type != caches[i])
            cache = cache->parent;
        if (cache)
            tree_tell(node, "L%zu cache %.0f KiB each", i + 1,
                      (double)cache->attr->cache.size / 1024.0);
    }
}

// Objects that say nothing to a reader are passed over; cores that are alike become one box.
static void add_object(struct builder *builder, struct node *parent, hwloc_obj_t object) {
    char label[sizeof(parent->label)];
    enum node_kind kind;
    if (!describe(object, &kind, label, sizeof(label))) {
        add_children(builder, parent, object);
        return;
    }
    struct node *last = last_child(parent);
    if (kind == NODE_CORES && last && last->kind == NODE_CORES && strcmp(last->label, label) == 0) {
        ++last->count;
        return; // what it tells is of the first
    }
    struct node *node = append(builder, parent, kind);
    if (!node) return;
    memcpy(node->label, label, sizeof(label));
    if (object->cpuset) tell_of_object(node, object);
    if (kind != NODE_CORES) add_children(builder, node, object);
}

// Turns nodes that stand for several like cores into "N cores".
static void number_cores(struct node *node) {
    for (; node; node = node->next) {
        if (node->kind == NODE_CORES) {
            char text[sizeof(node->label)];
            memcpy(text, node->label, sizeof(text));
            const char *rest = text + strlen("core");
            snprintf(node->label, sizeof(node->label), "%u core%s%.100s", node->count,
                     node->count == 1 ? "" : "s", rest);
        }
        number_cores(node->first_child);
    }
}

// NULL if hwloc can't read the machine, and in privileged processes.
static hwloc_topology_t load_topology(void) {
    hwloc_topology_t topology;
#ifdef __linux__
    if (getauxval(AT_SECURE) != 0) return NULL; // hwloc trusts the caller's environment
#endif
    if (hwloc_topology_init(&topology) != 0) return NULL;
    hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    if (hwloc_topology_load(topology) == 0) return topology;
    hwloc_topology_destroy(topology);
    return NULL;
}

// Devices that hang nowhere (without a PCI address, or far away) are put below the machine.
struct node *tree_build_hwloc(const struct inventory *inventory) {
    struct builder builder = {.inventory = inventory};
    struct node *root = NULL;
    builder.topology = load_topology();
    builder.placed = calloc(inventory->n_devices + 1, sizeof(bool));
    if (!builder.topology || !builder.placed) goto fail;
    for (size_t i = 0; i < inventory->n_devices; ++i)
        builder.placed[i] = inventory->devices[i].node > 0; // in another host's box

    hwloc_obj_t machine = hwloc_get_root_obj(builder.topology);
    enum node_kind kind;
    root = append(&builder, NULL, NODE_MACHINE);
    if (!root) goto fail;
    describe(machine, &kind, root->label, sizeof(root->label));
    add_children(&builder, root, machine);
    for (size_t i = 0; i < inventory->n_devices; ++i) {
        if (!builder.placed[i]) add_device(&builder, root, i);
    }
    if (!tree_append_gpus(root, inventory)) builder.failed = true;
    number_cores(root);
    if (builder.failed) goto fail;
    goto done;

fail:
    fputs("ggml-devices: the topology can't be read\n", stderr);
    tree_free(root);
    root = NULL;
done:
    if (builder.topology) hwloc_topology_destroy(builder.topology);
    free(builder.placed);
    return root;
}
