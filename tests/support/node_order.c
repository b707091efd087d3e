// SPDX-License-Identifier: MIT
// Dependence between nodes by comparing every pair, O(n^2): the reference for the orders that
// plugins compute.
#include "support/node_order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ggml-impl.h"

static const struct ggml_tensor *root_of(const struct ggml_tensor *t) {
    while (t->view_src)
        t = t->view_src;
    return t;
}

bool share_memory(const struct ggml_tensor *a, const struct ggml_tensor *b) {
    const struct ggml_tensor *x = root_of(a), *y = root_of(b);
    if (x == y) return true;
    if (!x->data || !y->data) return false;
    const char *p = x->data, *q = y->data;
    return p < q + ggml_nbytes(y) && q < p + ggml_nbytes(x);
}

// The step of AdamW updates its momenta, which are sources.
static bool writes(const struct ggml_tensor *node, const struct ggml_tensor *memory) {
    if (share_memory(node, memory)) return true;
    return node->op == GGML_OP_OPT_STEP_ADAMW &&
           (share_memory(node->src[2], memory) || share_memory(node->src[3], memory));
}

// Whether a writes what b reads or writes.
static bool writes_for(const struct ggml_tensor *a, const struct ggml_tensor *b) {
    for (int i = 0; i < GGML_MAX_SRC; ++i) {
        if (b->src[i] && writes(a, b->src[i])) return true;
    }
    return writes(a, b);
}

bool node_depends(const struct ggml_tensor *b, const struct ggml_tensor *a) {
    if (b->view_src == a) return true;
    for (int i = 0; i < GGML_MAX_SRC; ++i) {
        if (b->src[i] == a) return true;
    }
    if (ggml_op_is_empty(a->op) || ggml_op_is_empty(b->op)) return false;
    return writes_for(a, b) || writes_for(b, a);
}

void shuffle_nodes(struct ggml_cgraph *graph, uint32_t seed) {
    for (int step = 0; step < 40 * graph->n_nodes; ++step) {
        seed = seed * 1664525u + 1013904223u;
        const int i = (int)((seed >> 8) % (uint32_t)(graph->n_nodes - 1));
        struct ggml_tensor *a = graph->nodes[i], *b = graph->nodes[i + 1];
        if (node_depends(b, a)) continue;
        graph->nodes[i] = b;
        graph->nodes[i + 1] = a;
    }
}

struct ggml_tensor **copy_nodes(const struct ggml_cgraph *graph) {
    const size_t bytes = (size_t)graph->n_nodes * sizeof(graph->nodes[0]);
    struct ggml_tensor **nodes = malloc(bytes + 1);
    assert_non_null(nodes);
    memcpy(nodes, graph->nodes, bytes);
    return nodes;
}

static int place_of(const struct ggml_cgraph *graph, const struct ggml_tensor *node) {
    int place = -1, n = 0;
    for (int i = 0; i < graph->n_nodes; ++i) {
        if (graph->nodes[i] != node) continue;
        place = i;
        ++n;
    }
    assert_int_equal(n, 1);
    return place;
}

void expect_legal_order(struct ggml_tensor **before, const struct ggml_cgraph *graph) {
    int *places = malloc((size_t)graph->n_nodes * sizeof(*places) + 1);
    assert_non_null(places);
    for (int i = 0; i < graph->n_nodes; ++i)
        places[i] = place_of(graph, before[i]);
    for (int k = 0; k < graph->n_nodes; ++k) {
        for (int i = 0; i < k; ++i) {
            if (places[k] < places[i] && node_depends(before[k], before[i]))
                fail_msg("node %d (%s) comes before node %d (%s)", k, ggml_op_name(before[k]->op),
                         i, ggml_op_name(before[i]->op));
        }
    }
    free(places);
}
