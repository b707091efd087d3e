// SPDX-License-Identifier: MIT
// Orders of a graph's nodes, told by comparing every pair.
#ifndef TESTS_SUPPORT_NODE_ORDER_H
#define TESTS_SUPPORT_NODE_ORDER_H

#include "ggml-impl.h"

// Whether they lie in the same memory, or places given to them overlap.
bool share_memory(const struct ggml_tensor *a, const struct ggml_tensor *b);
// Whether b, which comes later, must: it refers to a, or they share memory that one of them writes.
bool node_depends(const struct ggml_tensor *b, const struct ggml_tensor *a);
// Moves nodes at random where nothing forbids it.
void shuffle_nodes(struct ggml_cgraph *graph, uint32_t seed);
// A copy of the list of nodes, which the caller frees.
struct ggml_tensor **copy_nodes(const struct ggml_cgraph *graph);
// Fails unless the graph has the same nodes and each still comes after what it depends on.
void expect_legal_order(struct ggml_tensor **before, const struct ggml_cgraph *graph);

#endif
