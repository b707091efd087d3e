// SPDX-License-Identifier: MIT
// Partition: cuts the placed nodes into splits, maximal runs of nodes on one stream, and finds the
// copies and waits that each split needs. Linear in nodes and edges, times the streams that a split
// waits for.
#include "base/mem.h"
#include "base/status.h"
#include "sched/sched.h"

// The value's copy for a stream, or -1. It is moved to the front: neighbours ask for the same.
static int32_t find_copy(struct ggml_backend_sched *sched, int32_t value, int32_t backend) {
    int32_t previous = -1;
    int32_t copy = sched->values[value].copies;
    while (copy >= 0 && sched->partition.copies[copy].backend != backend) {
        previous = copy;
        copy = sched->partition.copies[copy].next;
    }
    if (copy < 0 || previous < 0) return copy;
    sched->partition.copies[previous].next = sched->partition.copies[copy].next;
    sched->partition.copies[copy].next = sched->values[value].copies;
    sched->values[value].copies = copy;
    return copy;
}

// Appends at most `limit` characters of a text; returns the new end. snprintf() would take
// longer than all else here.
static char *append(char *to, const char *end, const char *text, int limit) {
    for (; *text && to < end && limit > 0; --limit) {
        *to++ = *text++;
    }
    return to;
}

// device#tensor#slot
static void name_copy(char *name, const char *device, const char *tensor, int slot) {
    const char digit[] = {(char)('0' + slot), '\0'};
    const char *end = name + GGML_MAX_NAME - 1;
    char *to = append(name, end, device, GGML_MAX_NAME);
    to = append(to, end, "#", 1);
    to = append(to, end, tensor, 40);
    to = append(to, end, "#", 1);
    *append(to, end, digit, 1) = '\0';
}

// A tensor of the frame's pool like another one, for a stream's copy of it. NULL after the error
// was set. In a pipeline it is kept like an input, as the next run writes it while this one
// reads.
struct ggml_tensor *sched_duplicate(struct ggml_backend_sched *sched,
                                    const struct ggml_tensor *tensor, int32_t backend, int slot) {
    struct ggml_tensor *copy = tensor_pool_take(&sched_frame(sched)->pool);
    if (!copy) {
        ggml_fail(GGML_HOST_OUT_OF_MEMORY, "%s: no memory to copy tensor '%s' to %s",
                  sched->function, tensor->name, sched_stream_label(sched, backend));
        return NULL;
    }
    copy->type = tensor->type;
    memcpy(copy->ne, tensor->ne, sizeof(copy->ne));
    memcpy(copy->nb, tensor->nb, sizeof(copy->nb));
    name_copy(copy->name, sched_stream_label(sched, backend), tensor->name, slot);
    if (sched->pipeline_depth > 1) copy->flags = GGML_TENSOR_FLAG_INPUT | GGML_TENSOR_FLAG_OUTPUT;
    return copy;
}

// Makes an entry with pipeline_depth tensors; the original is one of them if it lies on this stream
// anyway.
static int32_t add_copy(struct ggml_backend_sched *sched, int32_t value, int32_t backend,
                        bool with_original) {
    const int32_t copy = sched->partition.n_copies;
    const int n = sched->pipeline_depth;
    struct ggml_tensor *tensor = sched->values[value].tensor;
    if (!sched_grow(&sched->partition.copies, &sched->partition.copies_capacity, (int64_t)copy + 1,
                    sizeof(sched->partition.copies[0])) ||
        !sched_grow(&sched->partition.copy_slots, &sched->partition.copy_slots_capacity,
                    ((int64_t)copy + 1) * n, sizeof(sched->partition.copy_slots[0]))) {
        return -1;
    }
    struct ggml_tensor **slots = &sched->partition.copy_slots[(int64_t)copy * n];
    for (int c = 0; c < n; ++c) {
        slots[c] = tensor;
        if (with_original && c == sched->cur_copy) continue;
        slots[c] = sched_duplicate(sched, tensor, backend, c);
        if (!slots[c]) return -1;
    }
    sched->partition.copies[copy] = (struct sched_copy){
        .value = value,
        .backend = backend,
        .next = sched->values[value].copies,
        .expert_ids = -1,
    };
    sched->values[value].copies = copy;
    sched->partition.n_copies++;
    return copy;
}

// With several copies the user's inputs alternate too, so that the user may write the next one
// early.
static bool add_input_slots(struct ggml_backend_sched *sched, int32_t value) {
    const struct sched_value *input = &sched->values[value];
    if (sched->pipeline_depth == 1 || !(input->traits & SCHED_INPUT) || input->tensor->data)
        return true;
    if (input->tensor->view_src || find_copy(sched, value, input->backend) >= 0) return true;
    if (add_copy(sched, value, input->backend, true) < 0) return false;
    sched->values[value].traits |= SCHED_SLOTTED;
    input->tensor->flags |= GGML_TENSOR_FLAG_INPUT | GGML_TENSOR_FLAG_OUTPUT;
    return true;
}

// Ends the last split before node `start` and begins one there.
static bool begin_split(struct ggml_backend_sched *sched, int32_t backend, int32_t start) {
    if (!sched_grow(&sched->partition.splits, &sched->partition.splits_capacity,
                    (int64_t)sched->partition.n_splits + 1, sizeof(sched->partition.splits[0]))) {
        return false;
    }
    if (sched->partition.n_splits > 0)
        sched->partition.splits[sched->partition.n_splits - 1].i_end = start;
    sched->partition.splits[sched->partition.n_splits++] = (struct sched_split){
        .backend = backend,
        .i_start = start,
        .first_input = sched->partition.n_inputs,
        .first_wait = sched->partition.n_waits,
    };
    return true;
}

static struct sched_split *current_split(struct ggml_backend_sched *sched) {
    return &sched->partition.splits[sched->partition.n_splits - 1];
}

// A weight that has to be copied opens a split, so that the memory of the one before can be used
// again.
static bool brings_weight(const struct ggml_backend_sched *sched, int32_t node, int32_t backend) {
    for (int32_t e = sched->first_edge[node]; e < sched->first_edge[node + 1]; ++e) {
        const struct sched_value *value = &sched->values[sched->edges[e].value];
        if ((value->traits & SCHED_WEIGHT) && value->backend != backend &&
            !sched_readable(sched, sched->edges[e].value, backend)) {
            return true;
        }
    }
    return false;
}

// Whether the split waits for the stream already. Linear: a split waits for a handful of streams.
static bool waits_for(const struct sched_partition *partition, const struct sched_split *split,
                      int32_t backend) {
    bool found = false;
    for (int32_t i = 0; i < split->n_waits && !found; ++i) {
        found = partition->waits[split->first_wait + i] == backend;
    }
    return found;
}

// The result of another stream is read in place: it has to be there.
static bool wait_for(struct ggml_backend_sched *sched, int32_t backend) {
    if (waits_for(&sched->partition, current_split(sched), backend)) return true;
    if (!sched_grow(&sched->partition.waits, &sched->partition.waits_capacity,
                    (int64_t)sched->partition.n_waits + 1, sizeof(sched->partition.waits[0]))) {
        return false;
    }
    sched->partition.waits[sched->partition.n_waits++] = backend;
    current_split(sched)->n_waits++;
    return true;
}

// A copied weight of experts needs only those that `ids` names, as long as every use says the same.
static void note_use(struct ggml_backend_sched *sched, int32_t node, const struct live_edge *edge,
                     struct sched_copy *copy, bool first) {
    const bool experts = (sched->values[node].traits & SCHED_EXPERTS) && edge->slot == 0;
    int32_t ids = -1;
    for (int32_t e = sched->first_edge[node]; experts && e < sched->first_edge[node + 1]; ++e) {
        if (sched->edges[e].slot == 2) ids = sched->edges[e].value;
    }
    const bool computed_here = ids >= 0 && ids < sched->n_nodes &&
                               sched->values[ids].root < sched->n_nodes &&
                               sched->values[ids].root >= current_split(sched)->i_start;
    if (first) copy->expert_ids = computed_here ? -1 : ids;
    if (copy->expert_ids != ids) copy->expert_ids = -1;
}

// Has a node read the copy of a source instead. The change is noted, so that sched_restore() can
// take it back from the application's graph.
static bool use_copy(struct ggml_backend_sched *sched, int32_t node, struct live_edge *edge,
                     int32_t backend) {
    int32_t copy = find_copy(sched, edge->value, backend);
    const bool first = copy < 0;
    if (first) {
        copy = add_copy(sched, edge->value, backend, false);
        if (copy < 0 || !sched_grow(&sched->partition.inputs, &sched->partition.inputs_capacity,
                                    (int64_t)sched->partition.n_inputs + 1,
                                    sizeof(sched->partition.inputs[0]))) {
            return false;
        }
        sched->partition.inputs[sched->partition.n_inputs++] = copy;
        current_split(sched)->n_inputs++;
    }
    note_use(sched, node, edge, &sched->partition.copies[copy], first);
    if (!sched_grow(&sched->partition.rewrites, &sched->partition.rewrites_capacity,
                    (int64_t)sched->partition.n_rewrites + 1,
                    sizeof(sched->partition.rewrites[0]))) {
        return false;
    }
    sched->partition.rewrites[sched->partition.n_rewrites++] =
        (struct sched_rewrite){node, (int32_t)(edge - sched->edges), copy};
    sched->values[node].tensor->src[edge->slot] = sched_copy_tensor(sched, copy);
    edge->entry = sched->n_values + copy;
    return true;
}

// Copies or waits that a node needs for each source that another stream computes.
static bool connect(struct ggml_backend_sched *sched, int32_t node, int32_t backend) {
    for (int32_t e = sched->first_edge[node]; e < sched->first_edge[node + 1]; ++e) {
        struct live_edge *edge = &sched->edges[e];
        const struct sched_value *value = &sched->values[edge->value];
        if (sched->pipeline_depth > 1 && (value->traits & SCHED_INPUT) &&
            !add_input_slots(sched, edge->value))
            return false;
        if (value->backend == backend) continue;
        if (!sched_readable(sched, edge->value, backend)) {
            if (!use_copy(sched, node, edge, backend)) return false;
        } else if (edge->value < sched->n_nodes && !wait_for(sched, value->backend)) {
            return false;
        }
    }
    return true;
}

// Adds a node to the current split, or begins one: on another stream, or before a weight that
// would have to be copied early.
static bool cut_node(struct ggml_backend_sched *sched, int32_t node) {
    const int32_t backend = sched->values[node].backend;
    const struct sched_split *split = sched->partition.n_splits > 0 ? current_split(sched) : NULL;
    const bool opens = !split || split->backend != backend ||
                       (split->n_inputs > 0 && brings_weight(sched, node, backend));
    if (opens && !begin_split(sched, backend, split ? node : 0)) return false;
    return connect(sched, node, backend);
}

// Whether the node goes on with the split as it is: everything it uses is on the same stream.
static inline bool continues(const struct ggml_backend_sched *sched, int32_t node,
                             int32_t backend) {
    const struct sched_value *values = sched->values;
    if (backend < 0 || values[node].backend != backend) return false;
    const struct live_edge *edge = &sched->edges[sched->first_edge[node]];
    const struct live_edge *end = &sched->edges[sched->first_edge[node + 1]];
    for (; edge < end; ++edge) {
        if (values[edge->value].backend != backend) return false;
    }
    return true;
}

// What the next needs.
static inline void fetch_node(const struct ggml_backend_sched *sched, int32_t node) {
    __builtin_prefetch(&sched->values[node], 1);
    __builtin_prefetch(&sched->first_edge[node]);
}

// What a copied source is written to.
static inline void fetch_sources(const struct ggml_backend_sched *sched, int32_t node) {
    const struct ggml_tensor *tensor = sched->values[node].tensor;
    __builtin_prefetch(&tensor->src[0], 1);
    __builtin_prefetch(&sched->edges[sched->first_edge[node]], 1);
}

// One pass over the nodes. Sources and nodes are prefetched, as graphs lie scattered in memory
// and waiting for them was most of the time.
static bool cut_all(struct ggml_backend_sched *sched) {
    enum { AHEAD = 8, FAR_AHEAD = 16 };
    int32_t backend = -1; // of the split, where what `continues` compares is all that matters
    for (int32_t i = 0; i < sched->n_nodes; ++i) {
        if (i + FAR_AHEAD < sched->n_nodes) fetch_node(sched, i + FAR_AHEAD);
        if (i + AHEAD < sched->n_nodes) fetch_sources(sched, i + AHEAD);
        if (continues(sched, i, backend)) continue;
        if (sched->values[i].traits & SCHED_VIEW_OP) continue;
        if (!cut_node(sched, i)) return false;
        if (sched->pipeline_depth == 1) backend = current_split(sched)->backend;
    }
    return true;
}

// False after the error was set. A graph of views alone gets one empty split.
bool sched_partition(struct ggml_backend_sched *sched) {
    struct sched_partition *partition = &sched->partition;
    partition->n_splits = partition->n_inputs = partition->n_waits = 0;
    partition->n_copies = partition->n_rewrites = 0;
    if (!cut_all(sched)) return false;
    if (partition->n_splits == 0 && sched->n_nodes > 0) { // nothing but views
        if (!begin_split(sched, sched->n_backends - 1, 0)) return false;
    }
    if (partition->n_splits > 0) current_split(sched)->i_end = sched->n_nodes;
    return true;
}

void sched_partition_free(struct sched_partition *partition) {
    ggml_mem_free(partition->splits);
    ggml_mem_free(partition->copies);
    ggml_mem_free(partition->copy_slots);
    ggml_mem_free(partition->inputs);
    ggml_mem_free(partition->waits);
    ggml_mem_free(partition->rewrites);
}

// Takes back everything that the scheduler changed in the application's graph: sources, places,
// order.
void sched_restore(struct ggml_backend_sched *sched, struct ggml_cgraph *graph) {
    for (int32_t i = sched->partition.n_rewrites - 1; i >= 0; --i) {
        const struct sched_rewrite *rewrite = &sched->partition.rewrites[i];
        const struct live_edge *edge = &sched->edges[rewrite->edge];
        sched->values[rewrite->node].tensor->src[edge->slot] = sched->values[edge->value].tensor;
    }
    for (int32_t i = 0; i < sched->n_values && sched->in_place; ++i) {
        if (sched->values[i].traits & SCHED_HAS_MEMORY) continue;
        sched->values[i].tensor->buffer = NULL;
        sched->values[i].tensor->data = NULL;
    }
    sched_restore_order(sched, graph);
    sched->partition.n_rewrites = 0;
    sched->caches.graph.repeatable = false;
    sched->in_place = false;
    sched->graph = NULL;
    sched->graph_uid = 0;
    graph->uid = 0;
}
