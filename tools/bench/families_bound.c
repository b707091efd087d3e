// SPDX-License-Identifier: MIT
// What a graph needs at least.
#include <stdint.h>
#include <stdlib.h>

#include "families.h"
#include "ggml-impl.h"

struct place {
    const struct ggml_tensor *root;
    int first, last; // steps; node i is computed at step i + 1
};

// By the root's address, open addressing.
struct places {
    struct place *slots;
    size_t mask;
};

static struct ggml_tensor *root_of(struct ggml_tensor *tensor) {
    return tensor->view_src ? tensor->view_src : tensor;
}

static struct place *find(struct places *places, struct ggml_tensor *tensor, int step) {
    const struct ggml_tensor *root = root_of(tensor);
    size_t i = (size_t)((uint64_t)(uintptr_t)root * 0x9e3779b97f4a7c15u >> 32) & places->mask;
    while (places->slots[i].root && places->slots[i].root != root) {
        i = (i + 1) & places->mask;
    }
    if (!places->slots[i].root) places->slots[i] = (struct place){root, step, -1};
    return &places->slots[i];
}

static bool is_planned(struct ggml_tensor *tensor) {
    const struct ggml_tensor *root = root_of(tensor);
    return root->buffer &&
           ggml_backend_buffer_get_usage(root->buffer) == GGML_BACKEND_BUFFER_USAGE_COMPUTE;
}

static void collect(struct ggml_cgraph *graph, struct places *places) {
    for (int i = 0; i < graph->n_leafs; ++i) {
        if (is_planned(graph->leafs[i])) find(places, graph->leafs[i], 0);
    }
    for (int i = 0; i < graph->n_nodes; ++i) {
        struct ggml_tensor *node = graph->nodes[i];
        for (int k = 0; k < GGML_MAX_SRC; ++k) {
            if (!node->src[k] || node->src[k] == node || !is_planned(node->src[k])) continue;
            struct place *place = find(places, node->src[k], 0);
            if (place->last < i + 1) place->last = i + 1;
        }
        if (!is_planned(node)) continue;
        struct place *place = find(places, node, i + 1);
        place->last = i + 1;
        if (node->flags & GGML_TENSOR_FLAG_OUTPUT) place->last = graph->n_nodes + 1;
    }
}

// A node that overwrites a source lies where that did, which ends where it begins.
static bool overwrites(struct places *places, struct ggml_cgraph *graph,
                       const struct place *place) {
    if (place->first == 0) return false;
    const struct ggml_tensor *node = graph->nodes[place->first - 1];
    for (int k = 0; k < GGML_MAX_SRC; ++k) {
        if (!node->src[k] || node->src[k] == node || !is_planned(node->src[k])) continue;
        const struct place *other = find(places, node->src[k], 0);
        if (other != place && other->last == place->first && other->first < place->first &&
            other->root->data == place->root->data && other->root->buffer == place->root->buffer) {
            return true;
        }
    }
    return false;
}

size_t family_bound(struct ggml_cgraph *graph, size_t alignment) {
    size_t capacity = 64;
    while (capacity < 4 * ((size_t)graph->n_nodes + (size_t)graph->n_leafs)) {
        capacity *= 2;
    }
    struct places places = {calloc(capacity, sizeof(places.slots[0])), capacity - 1};
    // Of what begins and ends with each step.
    size_t *changes = calloc((size_t)graph->n_nodes + 3, sizeof(changes[0]));
    if (places.slots && changes) collect(graph, &places);
    size_t most = 0;
    for (size_t i = 0; places.slots && changes && i < capacity; ++i) {
        const struct place *place = &places.slots[i];
        if (!place->root) continue;
        const size_t size = (ggml_nbytes(place->root) + alignment - 1) / alignment * alignment;
        const int begin = place->first + overwrites(&places, graph, place);
        const int end = place->last < 0 ? graph->n_nodes + 1 : place->last;
        if (begin > end) continue;
        changes[begin] += size;
        changes[end + 1] -= size;
    }
    for (size_t i = 0, live = 0; changes && i < (size_t)graph->n_nodes + 2; ++i) {
        live += changes[i];
        if (live > most) most = live;
    }
    free(places.slots);
    free(changes);
    return most;
}
