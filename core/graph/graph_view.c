// SPDX-License-Identifier: MIT
// Views of a range of nodes, and identities of graphs.
#include <stdatomic.h>

#include "base/status.h"
#include "ggml-impl.h"

// Shares its arrays with the graph and is valid as long as that. The number is 0, as several views
// may exist.
struct ggml_cgraph ggml_graph_view(struct ggml_cgraph *cgraph, int i0, int i1) {
    struct ggml_cgraph view = {0};
    if (!cgraph || i0 < 0 || i1 < i0 || i1 > cgraph->n_nodes) {
        ggml_fail(GGML_HOST_OUT_OF_RANGE, "ggml_graph_view: nodes [%d, %d) of %d", i0, i1,
                  cgraph ? cgraph->n_nodes : 0);
        view.error = "ggml_graph_view: the range is not inside the graph";
        return view;
    }
    view.n_nodes = i1 - i0;
    view.nodes = cgraph->nodes + i0;
    view.use_counts = cgraph->use_counts;
    view.visited_hash_set = cgraph->visited_hash_set;
    view.order = cgraph->order;
    view.error = cgraph->error;
    return view;
}

// Never 0, which marks a graph without a number. Lock-free.
uint64_t ggml_graph_next_uid(void) {
    static atomic_uint_least64_t last_uid;
    return atomic_fetch_add_explicit(&last_uid, 1, memory_order_relaxed) + 1;
}
