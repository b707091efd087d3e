// SPDX-License-Identifier: MIT
// Partition: cuts the placed nodes into splits, maximal runs of nodes on one stream, in one walk,
// and finds the copies and waits that each split needs.
#include "sched/pass/partition.h"

#include "base/array.h"
#include "base/mem.h"

// The partition that is made, and what it is made of.
struct cutter {
    const struct sched_setup *setup;
    const struct sched_graph *graph;
    const struct sched_placed *placed;
    const struct sched_placement *placement;
    struct sched_partition *out;
};

// Whether the stream may still compute when the graph has been queued, and the other one doesn't.
static bool is_later(const struct cutter *cutter, int32_t backend, int32_t other) {
    return cutter->setup->streams[backend].queues && !cutter->setup->streams[other].queues;
}

// Whether a stream reads the value in place. No inputs that the user may overwrite before that.
static bool is_readable(const struct cutter *cutter, int32_t value, int32_t backend) {
    const int32_t root = cutter->graph->values[value].root;
    const bool may_change = (cutter->graph->values[root].traits & SCHED_INPUT) &&
                            is_later(cutter, backend, cutter->placed[root].backend);
    return !may_change &&
           sched_readable(cutter->setup, cutter->graph, cutter->placement, value, backend);
}

// The value's copy for a stream, or -1. The newest is first: neighbours ask for the same.
static int32_t find_copy(const struct sched_partition *out, int32_t value, int32_t backend) {
    int32_t copy = out->first_copy[value];
    while (copy >= 0 && out->copies[copy].backend != backend) {
        copy = out->copies[copy].next;
    }
    return copy;
}

// Number of a new copy, or -1 when memory runs out.
static int32_t add_copy(struct sched_partition *out, int32_t value, int32_t backend,
                        bool with_original) {
    const int32_t copy = out->n_copies;
    if (!ARRAY_GROW(out, copies, (int64_t)copy + 1)) return -1;
    out->copies[copy] = (struct sched_copy){
        .value = value,
        .backend = backend,
        .next = out->first_copy[value],
        .i_made = out->n_splits > 0 ? out->splits[out->n_splits - 1].i_start : 0,
        .expert_ids = -1,
        .with_original = with_original,
    };
    out->first_copy[value] = copy;
    return out->n_copies++;
}

// With several copies the user's inputs alternate too, so that the user may write the next one
// early.
static bool add_input_slots(const struct cutter *cutter, int32_t value) {
    const struct sched_value *input = &cutter->graph->values[value];
    if (!(input->traits & SCHED_INPUT) || input->tensor->data || input->tensor->view_src)
        return true;
    const int32_t backend = cutter->placed[value].backend;
    return find_copy(cutter->out, value, backend) >= 0 ||
           add_copy(cutter->out, value, backend, true) >= 0;
}

// Ends the last split before node `start` and begins one there.
static bool begin_split(struct sched_partition *out, int32_t backend, int32_t start) {
    if (!ARRAY_GROW(out, splits, (int64_t)out->n_splits + 1)) return false;
    if (out->n_splits > 0) out->splits[out->n_splits - 1].i_end = start;
    out->splits[out->n_splits++] = (struct sched_split){
        .backend = backend,
        .i_start = start,
        .first_input = out->n_inputs,
        .first_wait = out->n_waits,
    };
    return true;
}

// The split that nodes are added to.
static struct sched_split *current_split(const struct sched_partition *out) {
    return &out->splits[out->n_splits - 1];
}

// A weight that has to be copied opens a split, so that the memory of the one before can be used
// again.
static bool brings_weight(const struct cutter *cutter, int32_t node, int32_t backend) {
    const struct sched_graph *graph = cutter->graph;
    if (!(graph->values[node].traits & SCHED_HAS_WEIGHT)) return false;
    for (int32_t e = graph->first_edge[node]; e < graph->first_edge[node + 1]; ++e) {
        const int32_t source = graph->edges[e].value;
        if ((graph->values[source].traits & SCHED_WEIGHT) &&
            cutter->placed[source].backend != backend && !is_readable(cutter, source, backend)) {
            return true;
        }
    }
    return false;
}

// Whether the split waits for the stream already. Linear: a split waits for a handful of streams.
static bool waits_for(const struct sched_partition *out, int32_t backend) {
    const struct sched_split *split = current_split(out);
    bool found = false;
    for (int32_t i = 0; i < split->n_waits && !found; ++i) {
        found = out->waits[split->first_wait + i] == backend;
    }
    return found;
}

// Memory of another stream is used in place: what that stream writes has to be there.
static bool use_in_place(const struct cutter *cutter, int32_t backend, int32_t owner) {
    struct sched_partition *out = cutter->out;
    out->used_late |= is_later(cutter, backend, owner);
    if (waits_for(out, owner)) return true;
    if (!ARRAY_GROW(out, waits, (int64_t)out->n_waits + 1)) return false;
    out->waits[out->n_waits++] = owner;
    current_split(out)->n_waits++;
    return true;
}

// A copied weight of experts needs only those that `ids` names, as long as every use says the same.
// The ids of an alternative that was not chosen may never be computed.
static void note_use(const struct cutter *cutter, int32_t node, const struct sched_edge *edge,
                     struct sched_copy *copy, bool first) {
    const struct sched_graph *graph = cutter->graph;
    const uint32_t traits = graph->values[node].traits;
    const bool experts = (traits & SCHED_EXPERTS) && !(traits & SCHED_SKIPPED) && edge->slot == 0;
    int32_t ids = -1;
    for (int32_t e = graph->first_edge[node]; experts && e < graph->first_edge[node + 1]; ++e) {
        if (graph->edges[e].slot == 2) ids = graph->edges[e].value;
    }
    const int32_t root = ids >= 0 ? graph->values[ids].root : graph->n_nodes;
    const int32_t begin = current_split(cutter->out)->i_start;
    const bool computed_here = ids >= 0 && ((root < graph->n_nodes && root >= begin) ||
                                            cutter->out->written[root] >= begin);
    if (first) copy->expert_ids = computed_here ? -1 : ids;
    if (copy->expert_ids != ids) copy->expert_ids = -1;
}

// The last node so far that wrote to the value's memory in place, or none.
static int32_t writer_of(const struct cutter *cutter, int32_t value) {
    return cutter->out->written[cutter->graph->values[value].root];
}

// Has a node read the copy of a source instead of it; the split makes the copy unless an earlier
// one did, and nothing has written to the source since.
static bool use_copy(const struct cutter *cutter, int32_t node, int32_t e, int32_t backend) {
    struct sched_partition *out = cutter->out;
    const struct sched_edge *edge = &cutter->graph->edges[e];
    int32_t copy = find_copy(out, edge->value, backend);
    const bool first = copy < 0 || writer_of(cutter, edge->value) >= out->copies[copy].i_made;
    if (first) {
        copy = add_copy(out, edge->value, backend, false);
        if (copy < 0 || !ARRAY_GROW(out, inputs, (int64_t)out->n_inputs + 1)) {
            return false;
        }
        out->inputs[out->n_inputs++] = copy;
        current_split(out)->n_inputs++;
    }
    note_use(cutter, node, edge, &out->copies[copy], first);
    if (!ARRAY_GROW(out, rewrites, (int64_t)out->n_rewrites + 1)) return false;
    out->rewrites[out->n_rewrites++] = (struct sched_rewrite){node, e, copy};
    return true;
}

// A value that is used where it lies: the stream waits for those that compute it, that own its
// memory and that wrote to it last, and is noted as a user of theirs. Weights to which no node of
// the graph writes stay as they are.
static bool use_value(const struct cutter *cutter, int32_t value, int32_t backend) {
    const struct sched_graph *graph = cutter->graph;
    const int32_t writer = writer_of(cutter, value);
    const int32_t streams[] = {cutter->placed[value].backend,
                               cutter->placed[graph->values[value].root].backend,
                               writer >= 0 ? cutter->placed[writer].backend : backend};
    const bool fixed =
        writer == SCHED_NEVER && (graph->values[graph->values[value].root].traits & SCHED_WEIGHT);
    for (int i = 0; i < 3 && !fixed; ++i) {
        if (streams[i] == backend) continue;
        if (!use_in_place(cutter, backend, streams[i])) return false;
    }
    return true;
}

// Copies or waits that a node needs for each of its sources, and waits for the memory that it
// writes to.
static bool connect(const struct cutter *cutter, int32_t node, int32_t backend) {
    const struct sched_graph *graph = cutter->graph;
    const bool pipelined = cutter->setup->pipeline_depth > 1;
    if (!use_value(cutter, node, backend)) return false;
    for (int32_t e = graph->first_edge[node]; e < graph->first_edge[node + 1]; ++e) {
        const int32_t source = graph->edges[e].value;
        if (pipelined && !add_input_slots(cutter, source)) return false;
        const bool here = cutter->placed[source].backend == backend;
        const bool done = here || is_readable(cutter, source, backend)
                              ? use_value(cutter, source, backend)
                              : use_copy(cutter, node, e, backend);
        if (!done) return false;
    }
    return true;
}

// Whether the node reads a copy of what its split has written to: copies are made when a split
// begins.
static bool reads_own_writes(const struct cutter *cutter, int32_t node, int32_t backend) {
    const struct sched_graph *graph = cutter->graph;
    bool found = false;
    for (int32_t e = graph->first_edge[node]; e < graph->first_edge[node + 1] && !found; ++e) {
        const int32_t source = graph->edges[e].value;
        found = writer_of(cutter, source) >= current_split(cutter->out)->i_start &&
                cutter->placed[source].backend != backend && !is_readable(cutter, source, backend);
    }
    return found;
}

// Adds a node to the current split, or begins one: on another stream, or before what would have to
// be copied earlier than it should.
static bool cut_node(const struct cutter *cutter, int32_t node) {
    struct sched_partition *out = cutter->out;
    const int32_t backend = cutter->placed[node].backend;
    const struct sched_split *split = out->n_splits > 0 ? current_split(out) : NULL;
    const bool opens = !split || split->backend != backend ||
                       (split->n_inputs > 0 && brings_weight(cutter, node, backend)) ||
                       reads_own_writes(cutter, node, backend);
    if (opens && !begin_split(out, backend, split ? node : 0)) return false;
    if (!connect(cutter, node, backend)) return false;
    const int32_t root = cutter->graph->values[node].root;
    if (root != node) out->written[root] = node;
    return true;
}

// One pass over the nodes; views lie in whatever split surrounds them.
static bool cut_all(const struct cutter *cutter) {
    const struct sched_value *values = cutter->graph->values;
    const int32_t n_nodes = cutter->graph->n_nodes;
    for (int32_t i = 0; i < n_nodes; ++i) {
        if (values[i].traits & SCHED_VIEW_OP) continue;
        if (!cut_node(cutter, i)) return false;
    }
    return true;
}

// Which values are written to in place by some node.
static void note_writes(const struct sched_graph *graph, struct sched_partition *out) {
    for (int32_t i = 0; i < graph->n_values; ++i) {
        out->written[i] = SCHED_NEVER;
    }
    for (int32_t i = 0; i < graph->n_nodes; ++i) {
        const struct sched_value *value = &graph->values[i];
        if (value->root == i || (value->traits & (SCHED_VIEW_OP | SCHED_SKIPPED))) continue;
        out->written[value->root] = SCHED_NOT_YET;
    }
}

// A graph of views alone gets one empty split.
bool sched_partition(const struct sched_setup *setup, const struct sched_graph *graph,
                     const struct sched_placement *placement, struct sched_partition *out) {
    const struct cutter cutter = {setup, graph, placement->placed, placement, out};
    const size_t n = (size_t)graph->n_values;
    sched_partition_clear(out);
    if (!ARRAY_GROW(out, first_copy, (int64_t)n + 1) || !ARRAY_GROW(out, written, (int64_t)n + 1))
        return false;
    memset(out->first_copy, 0xFF, n * sizeof(out->first_copy[0]));
    note_writes(graph, out);
    if (!cut_all(&cutter)) return false;
    if (out->n_splits == 0 && graph->n_nodes > 0) {
        if (!begin_split(out, setup->n_streams - 1, 0)) return false;
    }
    if (out->n_splits > 0) current_split(out)->i_end = graph->n_nodes;
    return true;
}

// Keeps the arrays for the next graph.
void sched_partition_clear(struct sched_partition *partition) {
    partition->n_splits = partition->n_copies = partition->n_inputs = 0;
    partition->n_waits = partition->n_rewrites = 0;
    partition->used_late = false;
}

void sched_partition_free(struct sched_partition *partition) {
    ggml_mem_free(partition->splits);
    ggml_mem_free(partition->copies);
    ggml_mem_free(partition->first_copy);
    ggml_mem_free(partition->written);
    ggml_mem_free(partition->inputs);
    ggml_mem_free(partition->waits);
    ggml_mem_free(partition->rewrites);
}
