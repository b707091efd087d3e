// SPDX-License-Identifier: MIT
// Use counts by node, read from the graph's hash table in one pass, since plugins get them by
// position. Counts of a small graph are stored in the view itself, which saves an allocation per
// graph.
#include "device/stream_view.h"

#include "base/data/divisor.h"
#include "base/mem.h"
#include "base/status.h"

// Nodes without an entry in the hash set get 0, so that nothing is fused on a guess. O(nodes).
void ggml_graph_count_uses(const struct ggml_cgraph *graph, int32_t *out_counts) {
    const struct ggml_hash_set *set = &graph->visited_hash_set;
    const size_t n = (size_t)MAX(graph->n_nodes, 0);
    if (!graph->use_counts || set->size == 0) {
        memset(out_counts, 0, n * sizeof(out_counts[0]));
        return;
    }
    const struct divisor size = divisor_of(set->size);
    for (size_t i = 0; i < n; ++i) {
        struct ggml_tensor *node = graph->nodes[i];
        // Nearly all are in their first slot, as ggml_hash_find() would begin.
        size_t slot = (size_t)divisor_remainder((uintptr_t)node >> 4, &size);
        if (!ggml_bitset_get(set->used, slot) || set->keys[slot] != node)
            slot = ggml_hash_find(set, node);
        const bool visited = slot != GGML_HASHSET_FULL && ggml_bitset_get(set->used, slot);
        out_counts[i] = visited ? graph->use_counts[slot] : 0;
    }
}

// Memory for n counts: in the view, in the stream's array, which grows by a quarter more than
// needed, or allocated for this call.
static int32_t *room_for(struct stream_view *view, struct use_memory *kept, int32_t n) {
    if (n <= STREAM_VIEW_FEW) return view->few;
    if (!kept) return view->own = ggml_mem_alloc((size_t)n * sizeof(view->own[0]));
    if (n > kept->capacity) {
        const size_t wanted = (size_t)n + (size_t)n / 4;
        ggml_mem_free(kept->counts);
        kept->counts = ggml_mem_alloc(wanted * sizeof(kept->counts[0]));
        kept->capacity = kept->counts ? (int32_t)MIN(wanted, INT32_MAX) : 0;
    }
    return kept->counts;
}

bool stream_view_make(struct stream_view *out_view, const struct ggml_cgraph *graph,
                      struct use_memory *kept) {
    out_view->own = NULL;
    int32_t *counts = room_for(out_view, kept, graph->n_nodes);
    // The old counts aren't needed: freed and allocated, not reallocated.
    if (!counts) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for the use counts of %d nodes",
                  graph->n_nodes);
        return false;
    }
    ggml_graph_count_uses(graph, counts);
    // The nodes are shared with the application's graph.
    out_view->graph = (struct ggml_graph){
        .size = sizeof(out_view->graph),
        .n_nodes = MAX(graph->n_nodes, 0),
        .nodes = graph->nodes,
        .use_counts = counts,
        .uid = graph->uid,
    };
    return true;
}

void stream_view_end(struct stream_view *view) {
    ggml_mem_free(view->own);
}
