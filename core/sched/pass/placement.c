// SPDX-License-Identifier: MIT
// Placement by rules: pins, weights, graph inputs and streams that support the operation decide in
// that order; the rest is spread along the edges. A handful of walks over the nodes, each linear:
// the rules are ggml's, so that applications find their nodes where ggml would have put them.
#include "sched/pass/placement.h"

#include "base/array.h"
#include "base/mem.h"
#include "base/status.h"
#include "ggml-backend.h"

// What the rules read, and the placement that they write.
struct placer {
    const struct sched_setup *setup;
    const struct sched_graph *graph;
    struct sched_placement *out;
};

const char *sched_reason_text(enum sched_reason reason) {
    static const char *const texts[] = {
#define SCHED_REASON_ROW(name, text) text,
#include "sched/pass/reason_list.inl"
    };
    return texts[reason];
}

// Views and leafs compute nothing and are supported everywhere. Answers are kept for the graph, as
// several rules and the search by cost ask about the same node.
bool sched_supports(const struct sched_setup *setup, const struct sched_graph *graph, int32_t node,
                    int32_t backend, struct sched_placement *placement) {
    if (node >= graph->n_nodes) return true; // holds data, computes nothing
    if (graph->values[node].traits & (SCHED_VIEW_OP | SCHED_NO_OP)) return true;
    uint8_t *answer = &placement->answers[(int64_t)node * setup->n_streams + backend];
    if (*answer == SCHED_NOT_ASKED) {
        ggml_backend_dev_t device = setup->streams[backend].device;
        const bool supported = ggml_backend_dev_supports_op(device, graph->values[node].tensor);
        *answer = supported ? SCHED_SUPPORTED : SCHED_UNSUPPORTED;
    }
    return *answer == SCHED_SUPPORTED;
}

static bool supports(const struct placer *placer, int32_t node, int32_t backend) {
    return sched_supports(placer->setup, placer->graph, node, backend, placer->out);
}

// A value without memory will lie in that of its stream, or in that of the tensor that it views.
bool sched_readable(const struct sched_setup *setup, const struct sched_graph *graph,
                    const struct sched_placement *placement, int32_t value, int32_t backend) {
    const int32_t root = graph->values[value].root;
    int32_t memory = graph->values[root].memory;
    if (memory < 0) { // the value will lie in the memory of its root's stream
        const int32_t owner = placement->placed[root].backend;
        const int32_t at = owner >= 0 ? owner : placement->placed[value].backend;
        if (at < 0) return false;
        memory = setup->streams[at].pool;
    }
    return sched_reads(graph, memory, backend);
}

static bool is_readable(const struct placer *placer, int32_t value, int32_t backend) {
    return sched_readable(placer->setup, placer->graph, placer->out, value, backend);
}

// The first stream that can use this memory and computes the node, or -1.
static inline int32_t first_reader(const struct placer *placer, int32_t memory, int32_t node) {
    int32_t b = placer->graph->memories[memory].first_reader;
    for (; b >= 0 && b < placer->setup->n_streams; ++b) {
        if (sched_reads(placer->graph, memory, b) && supports(placer, node, b)) return b;
    }
    return -1;
}

// --- 0: nothing is placed

// Makes room for a graph and forgets what devices have said about the last one.
static bool make_room(const struct placer *placer) {
    struct sched_placement *out = placer->out;
    const int64_t n_answers = (int64_t)placer->graph->n_nodes * placer->setup->n_streams;
    if (!ARRAY_GROW(out, placed, placer->graph->n_values) || !ARRAY_GROW(out, answers, n_answers)) {
        return false;
    }
    if (n_answers > 0) memset(out->answers, SCHED_NOT_ASKED, (size_t)n_answers);
    return true;
}

// --- 1: what is tied to a place

// Places nodes where the application wants them; pins of other graphs stay for these.
static void apply_pins(const struct placer *placer) {
    const struct sched_graph *graph = placer->graph;
    for (int32_t i = 0; i < placer->setup->n_pins; ++i) {
        const struct sched_pin *pin = &placer->setup->pins[i];
        const int32_t value = tensor_index_get(&graph->ids, sched_list(graph), pin->tensor);
        if (value >= 0) sched_assign(placer->out, value, pin->backend, SCHED_REASON_PINNED);
    }
}

// Always false: no stream computes a value where it lies.
static bool refuse_memory(const struct placer *placer, int32_t value, int32_t memory) {
    const struct ggml_tensor *tensor = placer->graph->values[value].tensor;
    ggml_fail(GGML_HOST_UNSUPPORTED,
              "%s: tensor '%s' (%s) lies in %s memory, and no stream that can use it computes it: "
              "add a stream of that device, or place the tensor elsewhere",
              placer->setup->function, tensor->name, ggml_op_name(tensor->op),
              ggml_backend_buft_name(placer->graph->memories[memory].buft));
    return false;
}

// Places a value that has memory on the first stream that can read it (and compute it, for a
// node). False after the error was set.
static inline bool place_by_buffer(const struct placer *placer, int32_t value, int32_t memory) {
    const int32_t backend = first_reader(placer, memory, value);
    sched_assign(placer->out, value, backend, SCHED_REASON_BUFFER);
    return backend >= 0 || refuse_memory(placer, value, memory);
}

// A weight in host memory may be worth copying to a device for one operation.
static int32_t offload_target(const struct placer *placer, int32_t node) {
    const struct ggml_tensor *tensor = placer->graph->values[node].tensor;
    for (int32_t b = 0; b < placer->setup->n_streams - 1; ++b) {
        if (supports(placer, node, b) &&
            ggml_backend_dev_offload_op(placer->setup->streams[b].device, tensor)) {
            return b;
        }
    }
    return -1;
}

// Places a node where its weight lies. Weights in host memory may have it offloaded to a device
// that wants such nodes.
static void place_by_weight(const struct placer *placer, int32_t node, int32_t weight) {
    const int32_t last = placer->setup->n_streams - 1;
    const int32_t memory = placer->graph->values[placer->graph->values[weight].root].memory;
    if (memory < 0) return;
    const int32_t backend = first_reader(placer, memory, node);
    sched_assign(placer->out, node, backend,
                 backend >= 0 ? SCHED_REASON_WEIGHT : SCHED_REASON_NONE);
    if (!placer->setup->op_offload || backend != last || !placer->graph->memories[memory].host)
        return;
    const int32_t target = offload_target(placer, node);
    if (target >= 0) sched_assign(placer->out, node, target, SCHED_REASON_OFFLOAD);
}

// The first source of a node that is a weight, or -1.
static int32_t first_weight(const struct placer *placer, int32_t node) {
    for (int32_t e = placer->graph->first_edge[node]; e < placer->graph->first_edge[node + 1];
         ++e) {
        if (placer->graph->values[placer->graph->edges[e].value].traits & SCHED_WEIGHT)
            return placer->graph->edges[e].value;
    }
    return -1;
}

// Places what memory, the input flag or a weight decides, which is little; others stay unplaced.
static inline bool place_fixed(const struct placer *placer, int32_t number) {
    const struct sched_value *value = &placer->graph->values[number];
    const int32_t memory = placer->graph->values[value->root].memory;
    if (memory >= 0) return place_by_buffer(placer, number, memory);
    if (value->traits & SCHED_INPUT) {
        sched_assign(placer->out, number, placer->setup->n_streams - 1, SCHED_REASON_INPUT);
    } else if ((value->traits & SCHED_HAS_WEIGHT) && !(value->traits & SCHED_DETACHED)) {
        place_by_weight(placer, number, first_weight(placer, number));
    }
    return true;
}

// Leafs first, as nodes are placed by them; *out_left is the number of nodes that compute and are
// left. O(nodes + edges).
static bool place_all_fixed(const struct placer *placer, int32_t *out_left) {
    const struct sched_value *values = placer->graph->values;
    const struct sched_placed *placed = placer->out->placed;
    const int32_t n_nodes = placer->graph->n_nodes, n_values = placer->graph->n_values;
    *out_left = 0;
    for (int32_t i = n_nodes; i < n_values; ++i) {
        if (placed[i].backend < 0 && !place_fixed(placer, i)) return false;
    }
    for (int32_t i = 0; i < n_nodes; ++i) {
        if (placed[i].backend >= 0) continue;
        if (!place_fixed(placer, i)) return false;
        *out_left += placed[i].backend < 0 && !(values[i].traits & SCHED_VIEW_OP);
    }
    return true;
}

// --- 2: what lies between

// Hands streams on to unplaced nodes from the last placed one before them (step 1) or after them
// (step -1), and keeps count of those that are left. Unless spread_last, the last stream does not
// spread.
static void expand(const struct placer *placer, int32_t step, bool spread_last, int32_t *io_left) {
    const struct sched_value *values = placer->graph->values;
    const struct sched_placed *placed = placer->out->placed;
    const int32_t last = placer->setup->n_streams - 1, n_nodes = placer->graph->n_nodes;
    int32_t current = -1;
    for (int32_t i = step > 0 ? 0 : n_nodes - 1; i >= 0 && i<n_nodes && * io_left> 0; i += step) {
        if (values[i].traits & SCHED_VIEW_OP) continue;
        const int32_t backend = placed[i].backend;
        if (backend >= 0) {
            current = backend == last && !spread_last ? -1 : backend;
        } else if (current >= 0 && supports(placer, i, current)) {
            sched_assign(placer->out, i, current, SCHED_REASON_NEIGHBOUR);
            --*io_left;
        }
    }
}

// --- 3: the rest, and better places

// Sources of a node that a stream reads without a copy.
static int32_t count_readable(const struct placer *placer, int32_t node, int32_t backend) {
    int32_t count = 0;
    for (int32_t e = placer->graph->first_edge[node]; e < placer->graph->first_edge[node + 1];
         ++e) {
        count += is_readable(placer, placer->graph->edges[e].value, backend);
    }
    return count;
}

// Places a node on the stream that reads most of its sources; the first of equals. O(streams *
// sources).
static void place_best_fit(const struct placer *placer, int32_t node) {
    int32_t best = -1;
    int32_t best_count = -1;
    for (int32_t b = 0; b < placer->setup->n_streams; ++b) {
        if (!supports(placer, node, b)) continue;
        const int32_t count = count_readable(placer, node, b);
        if (count <= best_count) continue;
        best = b;
        best_count = count;
    }
    if (best >= 0) sched_assign(placer->out, node, best, SCHED_REASON_BEST_FIT);
}

// A preferred stream whose memory is the same takes the node over (say, a matrix library before the
// CPU).
static void upgrade(const struct placer *placer, int32_t node) {
    const struct sched_stream *streams = placer->setup->streams;
    const int32_t now = placer->out->placed[node].backend;
    const int32_t *edges = &placer->graph->first_edge[node];
    for (int32_t b = streams[now].pool_stream; b < now; ++b) {
        if (streams[b].pool != streams[now].pool || !supports(placer, node, b)) continue;
        if (count_readable(placer, node, b) < edges[1] - edges[0]) continue;
        sched_assign(placer->out, node, b, SCHED_REASON_UPGRADE);
        return;
    }
}

// Places what is left, and moves nodes to an earlier stream of the same memory that supports
// them.
static void place_or_upgrade(const struct placer *placer) {
    for (int32_t i = 0; i < placer->graph->n_nodes; ++i) {
        if (placer->graph->values[i].traits & SCHED_VIEW_OP) continue;
        if (placer->out->placed[i].backend < 0) {
            place_best_fit(placer, i);
        } else {
            upgrade(placer, i);
        }
    }
}

// --- 4: views and what nodes bring with them

// A view goes where its root is.
static void place_view(const struct placer *placer, int32_t value) {
    const int32_t root = placer->graph->values[value].root;
    if (placer->out->placed[value].backend < 0 && root != value) {
        sched_assign(placer->out, value, placer->out->placed[root].backend, SCHED_REASON_VIEW);
    }
}

// Places a node on the first stream that supports it. False after the error was set: none does.
static bool place_leftover(const struct placer *placer, int32_t node) {
    place_view(placer, node);
    for (int32_t b = 0; b < placer->setup->n_streams && placer->out->placed[node].backend < 0;
         ++b) {
        if (supports(placer, node, b)) sched_assign(placer->out, node, b, SCHED_REASON_FIRST);
    }
    if (placer->out->placed[node].backend >= 0) return true;
    const struct ggml_tensor *tensor = placer->graph->values[node].tensor;
    ggml_fail(GGML_HOST_UNSUPPORTED,
              "%s: node %d '%s' (%s, %s) is supported by none of the %d streams",
              placer->setup->function, (int)node, tensor->name, ggml_op_desc(tensor),
              ggml_type_name(tensor->type), placer->setup->n_streams);
    return false;
}

// Places the unplaced sources of a node: with their root, or where they are read.
static void place_sources(const struct placer *placer, int32_t node) {
    const int32_t backend = placer->out->placed[node].backend;
    for (int32_t e = placer->graph->first_edge[node]; e < placer->graph->first_edge[node + 1];
         ++e) {
        const int32_t value = placer->graph->edges[e].value;
        place_view(placer, value);
        if (placer->out->placed[value].backend < 0) {
            sched_assign(placer->out, value, backend, SCHED_REASON_CONSUMER);
        }
    }
}

// Whether every source of a node is placed before the node is, so that sources need no walk of
// their own: leafs mostly have memory or are inputs.
static bool are_sources_placed(const struct placer *placer) {
    bool placed = placer->graph->in_order;
    for (int32_t i = placer->graph->n_nodes; i < placer->graph->n_values && placed; ++i) {
        placed = placer->out->placed[i].backend >= 0;
    }
    return placed;
}

// Places what is left; leafs that no node reads go to the last stream, the CPU.
static bool place_leftovers(const struct placer *placer) {
    const struct sched_placed *placed = placer->out->placed;
    const int32_t n_nodes = placer->graph->n_nodes, n_values = placer->graph->n_values;
    const bool nodes_only = are_sources_placed(placer);
    for (int32_t i = 0; i < n_nodes; ++i) {
        if (placed[i].backend < 0 && !place_leftover(placer, i)) return false;
        if (!nodes_only) place_sources(placer, i);
    }
    for (int32_t i = n_nodes; i < n_values && !nodes_only; ++i) {
        if (placed[i].backend >= 0) continue;
        sched_assign(placer->out, i, placer->setup->n_streams - 1, SCHED_REASON_CONSUMER);
    }
    return true;
}

// Whether a node that doesn't compute on the stream of its root has the memory in reach, or follows
// it there.
static bool place_writer(const struct placer *placer, int32_t node) {
    const int32_t root = placer->graph->values[node].root;
    const int32_t owner = placer->out->placed[root].backend;
    if (is_readable(placer, node, placer->out->placed[node].backend)) return true;
    if (supports(placer, node, owner)) {
        sched_assign(placer->out, node, owner, SCHED_REASON_VIEW);
        return true;
    }
    const struct ggml_tensor *tensor = placer->graph->values[node].tensor;
    ggml_fail(GGML_HOST_UNSUPPORTED,
              "%s: node %d '%s' (%s) writes to the memory of '%s' on %s, which does not support it",
              placer->setup->function, (int)node, tensor->name, ggml_op_desc(tensor),
              placer->graph->values[root].tensor->name, sched_stream_label(placer->setup, owner));
    return false;
}

bool sched_place_writers(const struct sched_setup *setup, const struct sched_graph *graph,
                         struct sched_placement *placement) {
    const struct placer placer = {setup, graph, placement};
    for (int32_t i = 0; i < graph->n_nodes; ++i) {
        const struct sched_value *value = &graph->values[i];
        const bool writes = !(value->traits & (SCHED_VIEW_OP | SCHED_NO_OP | SCHED_SKIPPED));
        if (writes && value->root != i && !place_writer(&placer, i)) return false;
    }
    return true;
}

bool sched_is_allowed(const struct sched_setup *setup, const struct sched_graph *graph,
                      const struct sched_placement *placement) {
    for (int32_t i = 0; i < graph->n_nodes && setup->restricted; ++i) {
        const struct sched_value *value = &graph->values[i];
        const struct sched_placed *placed = &placement->placed[i];
        if ((value->traits & (SCHED_VIEW_OP | SCHED_NO_OP)) ||
            setup->streams[placed->backend].allowed) {
            continue;
        }
        ggml_fail(GGML_HOST_UNSUPPORTED,
                  "%s: node %d '%s' (%s) would run on %s (%s), which is not allowed",
                  setup->function, (int)i, value->tensor->name, ggml_op_desc(value->tensor),
                  sched_stream_label(setup, placed->backend), sched_reason_text(placed->reason));
        return false;
    }
    return true;
}

// The rules in order. Each only places what those before it left.
bool sched_place(const struct sched_setup *setup, const struct sched_graph *graph,
                 struct sched_placement *out) {
    const struct placer placer = {setup, graph, out};
    if (!make_room(&placer)) return false;
    for (int32_t i = 0; i < graph->n_values; ++i) {
        sched_assign(out, i, -1, SCHED_REASON_NONE);
    }
    apply_pins(&placer);
    int32_t n_left;
    if (!place_all_fixed(&placer, &n_left)) return false;
    expand(&placer, 1, false, &n_left);
    expand(&placer, -1, false, &n_left);
    expand(&placer, 1, true, &n_left);
    expand(&placer, -1, true, &n_left);
    if (n_left > 0 || setup->n_pools < setup->n_streams) place_or_upgrade(&placer);
    return place_leftovers(&placer);
}

void sched_placement_free(struct sched_placement *placement) {
    ggml_mem_free(placement->placed);
    ggml_mem_free(placement->answers);
}
