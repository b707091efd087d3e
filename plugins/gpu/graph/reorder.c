// SPDX-License-Identifier: MIT
// First what is fused is gathered, then launches are grouped into waves: grouping moves whole
// units, so that it never takes apart what gathering brought together. The memory that is alive at
// once (gpu_order_peak) decides whether the result is taken.
#include "gpu/graph/reorder.h"

#include <string.h>

#include "gpu/graph/order.h"

// By how much memory may grow: an eighth, or so little that it matters nowhere.
enum { GROWTH_DIVISOR = 8, GROWTH_BYTES = 1 << 20 };

struct reordering {
    struct gpu_order order;
    struct gpu_depend depend;
    struct ggml_tensor **nodes; // in the order in which they came
    void *block;
    size_t block_bytes;
};

static bool make_room(struct reordering *r) {
    const size_t n = (size_t)r->depend.n, memories = (size_t)r->depend.n_memories;
    r->block_bytes = n * sizeof(*r->nodes) + (6 * n + memories) * sizeof(int32_t);
    r->block = ggml_aligned_malloc(r->block_bytes);
    if (!r->block) return false;
    r->nodes = r->block;
    int32_t *numbers = (int32_t *)(void *)(r->nodes + n);
    r->order = (struct gpu_order){.graph = r->depend.graph,
                                  .depend = &r->depend,
                                  .n = r->depend.n,
                                  .at = numbers,
                                  .place = numbers + n,
                                  .unit = numbers + 2 * n,
                                  .size = numbers + 3 * n,
                                  .mark = numbers + 4 * n,
                                  .spare = numbers + 5 * n,
                                  .left = numbers + 6 * n};
    return true;
}

static void begin(struct reordering *r) {
    memcpy(r->nodes, r->depend.graph->nodes, (size_t)r->depend.n * sizeof(*r->nodes));
    for (int32_t i = 0; i < r->depend.n; ++i) {
        r->order.at[i] = r->order.place[i] = r->order.unit[i] = i;
        r->order.size[i] = 1;
        r->order.mark[i] = 0;
    }
}

// Returns whether there is an order that is better.
static bool improve(struct reordering *r, struct gpu_plan *plan) {
    struct gpu_order *order = &r->order;
    const size_t peak = gpu_order_peak(order, order->at);
    const size_t limit = peak + MAX(peak / GROWTH_DIVISOR, (size_t)GROWTH_BYTES);
    const int n_moved = gpu_order_gather(order, plan);
    if (n_moved > 0 && gpu_order_peak(order, order->at) > limit) return false;
    return gpu_order_group(order, limit) || n_moved > 0;
}

void gpu_reorder(struct ggml_graph *graph, struct gpu_plan *plan) {
    struct reordering r = {.block = NULL};
    if (graph->n_nodes < 3) return;
    if (gpu_depend_make(&r.depend, graph) && make_room(&r)) {
        begin(&r);
        if (improve(&r, plan)) {
            for (int32_t p = 0; p < r.order.n; ++p)
                graph->nodes[p] = r.nodes[r.order.at[p]];
        }
    }
    ggml_aligned_free(r.block, r.block_bytes);
    gpu_depend_free(&r.depend);
}
