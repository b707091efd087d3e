// SPDX-License-Identifier: MIT
// The performance model: predicted seconds of each node and copy, and bytes, on each stream.
#include "op/op_table.h"
#include "sched/cost/cost.h"

// Whether the node reads the value at no earlier edge: a tensor that is read twice is copied
// once.
bool cost_is_first_edge(const struct sched_graph *graph, int32_t node, int32_t edge) {
    for (int32_t e = graph->first_edge[node]; e < edge; ++e) {
        if (graph->edges[e].value == graph->edges[edge].value) return false;
    }
    return true;
}

// Operations per second by the type of the weights, which decides the kernel.
static double rate_of(const struct ggml_device_figures *figures, const struct ggml_tensor *node) {
    const enum ggml_type type = node->src[0] ? node->src[0]->type : node->type;
    if ((unsigned)type >= GGML_DEVICE_FIGURES_TYPES) return figures->flops;
    return figures->flops_of[type] > 0 ? figures->flops_of[type] : figures->flops;
}

// A roofline: whichever takes longer, arithmetic or memory, after the time of a launch.
double cost_node_seconds(const struct ggml_device_figures *figures,
                         const struct ggml_tensor *node) {
    const struct ggml_op_cost work = ggml_op_cost(node);
    const double compute = work.flops / rate_of(figures, node);
    const double memory = (work.bytes_read + work.bytes_written) / figures->bytes_per_second;
    return figures->launch_seconds + MAX(compute, memory);
}

// What is declared of the two; else through the host both links count, one after the other, and
// directly the slower one.
struct cost_link cost_link_between(const struct sched_setup *setup, int32_t from, int32_t to) {
    const struct ggml_device_link *declared =
        setup->links ? &setup->links[from * setup->n_streams + to] : NULL;
    if (declared && declared->bytes_per_second > 0)
        return (struct cost_link){declared->seconds, 1 / declared->bytes_per_second, true};
    const struct ggml_device_figures *a = &setup->figures[from], *b = &setup->figures[to];
    const double slow_a = a->link_bytes_per_second > 0 ? 1 / a->link_bytes_per_second : 0;
    const double slow_b = b->link_bytes_per_second > 0 ? 1 / b->link_bytes_per_second : 0;
    struct cost_link link = {a->link_seconds + b->link_seconds, slow_a + slow_b, false};
    link.direct = setup->streams[from].device->reg == setup->streams[to].device->reg &&
                  (a->flags & b->flags & GGML_DEVICE_FIGURES_DIRECT_COPY);
    if (link.direct) {
        link.seconds = MAX(a->link_seconds, b->link_seconds);
        link.seconds_per_byte = MAX(slow_a, slow_b);
    }
    // Within the host's memory a copy reads and writes.
    if (link.seconds_per_byte <= 0) link.seconds_per_byte = 2 / b->bytes_per_second;
    return link;
}

// --- memory

void *cost_take(struct cost_memory *memory, size_t n, size_t element) {
    void *array = n <= SIZE_MAX / element ? arena_alloc(&memory->arena, n * element) : NULL;
    memory->failed |= !array;
    return array;
}

// False: no memory.
static bool make_arrays(struct cost_model *model) {
    struct cost_memory *memory = &model->memory;
    const size_t n = (size_t)model->n_streams;
    const size_t values = (size_t)model->graph->n_values + 1;
    model->links = cost_take(memory, n * n, sizeof(model->links[0]));
    model->seconds = cost_take(memory, values, n * sizeof(model->seconds[0]));
    model->bytes = cost_take(memory, values, sizeof(model->bytes[0]));
    model->copied = cost_take(memory, values, sizeof(model->copied[0]));
    model->held = cost_take(memory, n, sizeof(model->held[0]));
    model->usual = cost_take(memory, values, sizeof(model->usual[0]));
    model->last_read = cost_take(memory, values, sizeof(model->last_read[0]));
    model->last_touch = cost_take(memory, values, sizeof(model->last_touch[0]));
    model->n_readers = cost_take(memory, values, sizeof(model->n_readers[0]));
    model->kinds = cost_take(memory, values, sizeof(model->kinds[0]));
    model->has_followers = cost_take(memory, values, sizeof(model->has_followers[0]));
    return !memory->failed;
}

// --- values

// Whether the search may move a node: views and nodes that have memory, a pin or another one's
// memory stay.
static enum cost_kind kind_of(const struct cost_model *model, int32_t node) {
    const struct sched_value *value = &model->graph->values[node];
    const uint8_t reason = model->placement->placed[node].reason;
    if (value->traits & (SCHED_VIEW_OP | SCHED_NO_OP | SCHED_SKIPPED)) return COST_SKIPPED;
    const bool fixed = (value->traits & SCHED_HAS_MEMORY) || reason == SCHED_REASON_PINNED ||
                       reason == SCHED_REASON_INPUT;
    return fixed || value->root != node ? COST_FIXED : COST_FREE;
}

// What a value takes, where the usual passes have put it, and what stays in memory throughout.
static void set_up_item(struct cost_model *model, int32_t i, size_t alignment) {
    const struct sched_graph *graph = model->graph;
    const struct sched_value *value = &graph->values[i];
    const size_t size = ggml_nbytes(value->tensor);
    const size_t padded = size > SIZE_MAX - alignment ? size : GGML_PAD(size, alignment);
    model->last_read[i] = model->last_touch[i] = -1;
    model->bytes[i] = (double)padded;
    model->copied[i] = (double)size;
    model->usual[i] = i < graph->n_nodes ? model->placement->placed[i].backend
                                         : model->placement->placed[value->root].backend;
    if (i >= graph->n_nodes && value->root == i && !(value->traits & SCHED_HAS_MEMORY)) {
        model->held[model->placement->placed[i].backend] += (double)padded;
    }
}

// The memory of a value's root is used by the node.
static void touch(struct cost_model *model, int32_t value, int32_t node) {
    model->last_touch[model->graph->values[value].root] = node;
}

// Seconds on each stream, -1 where it can't be, and the node's place in the lives of its
// sources. O(streams + sources^2).
static void set_up_node(struct cost_model *model, int32_t i) {
    const struct sched_graph *graph = model->graph;
    const struct sched_value *value = &graph->values[i];
    model->kinds[i] = (uint8_t)kind_of(model, i);
    if (model->kinds[i] == COST_SKIPPED) return;
    for (int32_t b = 0; b < model->n_streams; ++b) {
        const bool possible = b == model->placement->placed[i].backend ||
                              (model->kinds[i] == COST_FREE && model->setup->streams[b].allowed &&
                               sched_supports(model->setup, graph, i, b, model->placement));
        model->seconds[(int64_t)i * model->n_streams + b] =
            possible ? cost_node_seconds(&model->figures[b], value->tensor) : -1;
    }
    touch(model, i, i);
    for (int32_t e = graph->first_edge[i]; e < graph->first_edge[i + 1]; ++e) {
        const int32_t source = graph->edges[e].value;
        if (!cost_is_first_edge(graph, i, e)) continue;
        model->last_read[source] = i;
        model->n_readers[source]++;
        touch(model, source, i);
    }
}

// A node that writes into a computed tensor goes where that goes, or both stay.
static void tie(struct cost_model *model, int32_t i) {
    const struct sched_graph *graph = model->graph;
    const struct sched_value *value = &graph->values[i];
    const int32_t root = value->root;
    if (model->kinds[i] != COST_FIXED || root == i || root >= graph->n_nodes) return;
    if (model->kinds[root] != COST_FREE) return;
    if (model->placement->placed[i].reason == SCHED_REASON_PINNED ||
        model->placement->placed[i].backend != model->placement->placed[root].backend) {
        model->kinds[root] = COST_FIXED;
        return;
    }
    for (int32_t b = 0; b < model->n_streams; ++b) {
        double *own = &model->seconds[(int64_t)i * model->n_streams + b];
        double *whole = &model->seconds[(int64_t)root * model->n_streams + b];
        *own = cost_node_seconds(&model->figures[b], value->tensor);
        if (b == model->placement->placed[i].backend) continue;
        if (!model->setup->streams[b].allowed ||
            !sched_supports(model->setup, graph, i, b, model->placement))
            *whole = -1;
    }
    model->kinds[i] = COST_FOLLOWS;
    model->has_followers[root] = true;
}

// Where a root turned out to be fixed, so is what was to follow it.
static void settle_followers(struct cost_model *model) {
    const struct sched_graph *graph = model->graph;
    for (int32_t i = 0; i < graph->n_nodes; ++i) {
        if (model->kinds[i] != COST_FOLLOWS) continue;
        if (model->kinds[graph->values[i].root] != COST_FREE) model->kinds[i] = COST_FIXED;
    }
}

// The largest of all streams, so that sizes don't depend on the placement.
static size_t largest_alignment(const struct sched_setup *setup) {
    size_t largest = 1;
    for (int32_t b = 0; b < setup->n_streams; ++b) {
        if (setup->streams[b].alignment > largest) largest = setup->streams[b].alignment;
    }
    return largest;
}

bool cost_model_init(struct cost_model *model, const struct sched_setup *setup,
                     const struct sched_graph *graph, struct sched_placement *placement) {
    *model = (struct cost_model){
        .setup = setup,
        .graph = graph,
        .placement = placement,
        .figures = setup->figures,
        .n_streams = setup->n_streams,
    };
    if (!make_arrays(model)) return false;
    for (int32_t from = 0; from < model->n_streams; ++from) {
        model->limited |= model->figures[from].memory_bytes > 0;
        for (int32_t to = 0; to < model->n_streams; ++to) {
            model->links[from * model->n_streams + to] = cost_link_between(setup, from, to);
        }
    }
    const size_t alignment = largest_alignment(setup);
    for (int32_t i = 0; i < graph->n_values; ++i) {
        set_up_item(model, i, alignment);
    }
    for (int32_t i = 0; i < graph->n_nodes; ++i) {
        set_up_node(model, i);
    }
    for (int32_t i = 0; i < graph->n_nodes; ++i) {
        tie(model, i);
    }
    settle_followers(model);
    return true;
}
