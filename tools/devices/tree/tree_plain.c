// SPDX-License-Identifier: MIT
// Without hwloc: what the library knows of the machine, with all devices at its top.
#include <stdio.h>

#include "tree.h"

struct node *tree_build_plain(const struct inventory *inventory) {
    struct ggml_host_topology machine = {.size = sizeof(machine)};
    struct node *root = NULL;
    if (ggml_host_get_topology(&machine) != GGML_HOST_OK) goto fail;
    root = tree_append(NULL, NODE_MACHINE);
    struct node *cores = root ? tree_append(root, NODE_CORES) : NULL;
    if (!cores) goto fail;
    snprintf(root->label, sizeof(root->label), "Machine, %u package%s, %u NUMA node%s",
             machine.n_packages, machine.n_packages == 1 ? "" : "s", machine.n_numa_nodes,
             machine.n_numa_nodes == 1 ? "" : "s");
    cores->count = machine.n_cores;
    snprintf(cores->label, sizeof(cores->label), "%u core%s, %u thread%s in all", machine.n_cores,
             machine.n_cores == 1 ? "" : "s", machine.n_pus, machine.n_pus == 1 ? "" : "s");
    for (size_t i = 0; i < inventory->n_devices; ++i) {
        if (inventory->devices[i].node > 0) continue;
        if (!tree_append_device(root, &inventory->devices[i])) goto fail;
    }
    if (!tree_append_gpus(root, inventory)) goto fail;
    return root;
fail:
    fputs("ggml-devices: the topology can't be read\n", stderr);
    tree_free(root);
    return NULL;
}
