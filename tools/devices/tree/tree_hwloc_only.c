// SPDX-License-Identifier: MIT
// In place of tree_child.c on systems other than Linux: hwloc in this process.
#include "tree.h"

struct node *tree_build_machine(const struct inventory *inventory) {
    return tree_build_hwloc(inventory);
}
