// SPDX-License-Identifier: MIT
// In place of tree_child.c for builds without hwloc.
#include "tree.h"

struct node *tree_build_machine(const struct inventory *inventory) {
    return tree_build_plain(inventory);
}
