// SPDX-License-Identifier: MIT
// Which minor of the contract brought what a node means.
#ifndef GGML_TENSOR_NODE_SINCE_H
#define GGML_TENSOR_NODE_SINCE_H

#include "ggml-impl.h"

// Lowest minor of a plugin that can know the node: the highest `since` in the lists among its
// operation and sub-operation, the parameter words that are not 0, the sources that are there, and
// of itself and its sources the type and the flags that must be understood. GGML_CONTRACT_MINOR + 1
// for what this host gives no meaning to. Private numbers (GGML_FIRST_PRIVATE) need none: who else
// does not know them declines them. [any-thread]
int op_needs_minor(const struct ggml_tensor *node);

// The same for what one tensor is: its type, its flags and its padding. [any-thread]
int op_tensor_needs_minor(const struct ggml_tensor *tensor);

#endif
