// SPDX-License-Identifier: MIT
// The launches that compute a graph, in order, before anything is recorded or queued. What a launch
// is, and which ones compute a node, is the plugin's; this keeps them and walks the graph.
#ifndef GPU_PLAN_H
#define GPU_PLAN_H

#include "gpu/graph/fuse.h"

struct gpu_plan;

// What a plugin adds: constant, one per plugin.
struct gpu_planner {
    const char *name;    // of the plugin, for messages
    size_t launch_bytes; // of the plugin's description of a launch
    // Appends the launches that compute the node. False: no kernel does, or the plan is out of
    // memory.
    bool (*add)(struct gpu_plan *plan, const struct ggml_tensor *node);
    // By number of the fusion; NULL: the plugin has no such kernel. Appends the launch of what was
    // found. False: it can't be launched like this; what was appended is dropped.
    bool (*fuse[GPU_FUSION_COUNT])(struct gpu_plan *plan, const struct gpu_fused *fused);
};

// The nodes that launches compute. Those that move no data lie between them and are not counted.
struct gpu_span {
    int32_t first_node; // in the graph
    int32_t n_nodes;
};

struct gpu_plan {
    const struct gpu_planner *planner;
    void *launches; // n_launches of planner->launch_bytes
    struct gpu_span
        *spans; // by launch, after gpu_plan_graph(): launches of one span follow each other
    int n_launches;
    int max_launches;
    size_t scratch_used;  // by the node that is being encoded
    size_t scratch_bytes; // most that a node needs
    bool out_of_memory;
    unsigned
        features; // of the device that kernels may use: the plugin's bits, 0 unless it sets them
    uint32_t fusions_disabled; // bits as gpu_fusions_named() returns them
};

// An empty plan; gpu_plan_free() ends it. [stream]
void gpu_plan_init(struct gpu_plan *plan, const struct gpu_planner *planner,
                   uint32_t fusions_disabled);
// Forgets the launches and keeps the memory. [stream]
void gpu_plan_clear(struct gpu_plan *plan);
void gpu_plan_free(struct gpu_plan *plan);
// Appends a launch of zeros. NULL when memory ran out, which the plan remembers. Valid until the
// next call. [stream]
void *gpu_plan_append(struct gpu_plan *plan);
// Reserves scratch memory until the end of this node; returns its offset (256-byte aligned).
size_t gpu_plan_scratch(struct gpu_plan *plan, size_t bytes);
// Appends the launches of the whole graph, leaving out what moves no data. Fails after telling why
// where a node is not computed; ALLOC_FAILED: no memory. [stream]
enum ggml_status gpu_plan_graph(struct gpu_plan *plan, const struct ggml_graph *graph);

// Appends a launch for node i and those after it, if there is one that computes them together.
// Returns how many nodes these are, 0: nothing was appended. [stream]
int gpu_plan_fuse(struct gpu_plan *plan, const struct ggml_graph *graph, int i);
// How many of the nodes at idxs[0] ... idxs[n - 1], from the first on, fusion number k would
// compute together if they came one after the other; 0: none. The plan is empty afterwards.
// [stream]
int gpu_plan_fuse_ask(struct gpu_plan *plan, const struct ggml_graph *graph, int k, const int *idxs,
                      int n);

#endif
