// SPDX-License-Identifier: MIT
// A graph as a command buffer: recorded once, submitted as often as the same graph comes again.
#ifndef GVK_RECORDING_H
#define GVK_RECORDING_H

#include "gpu/graph/graph_key.h"
#include "gpu/graph/tracker.h"
#include "memory/buffer.h"
#include "plan/plan.h"
#include "queue/profile.h"

struct gvk_recording {
    struct gvk_context *context;
    struct gpu_graph_key key;
    struct gpu_graph_key places; // by which it was found last; no words: never
    uint64_t uid;                // of the graph for which it was found last, 0: not known
    VkCommandPool command_pool;
    VkCommandBuffer commands;
    VkDescriptorPool pool;
    struct gvk_buffer *parameters;
    struct gvk_times *times; // NULL: it has no timestamps
    uint64_t scratch_id;     // of the scratch memory that it uses, 0: none
    uint64_t last_value;     // of its last submission
    uint64_t last_use;       // for choosing the one to be dropped
    int n_barriers;
};

// What a recording is made from.
struct gvk_recipe {
    struct gvk_context *context;
    VkCommandPool command_pool;
    const struct gpu_graph_key *key;
    const struct gvk_plan *plan; // with dispatches
    const struct gvk_buffer *scratch;
    struct gpu_tracker *tracker;
    bool has_times; // of its nodes
};

// [stream]
enum ggml_status gvk_recording_new(const struct gvk_recipe *recipe,
                                   struct gvk_recording **out_recording);
// The device is done with it. NULL is ignored. [stream]
void gvk_recording_free(struct gvk_recording *recording);

#endif
