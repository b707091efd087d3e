// SPDX-License-Identifier: MIT
// Nodes that one launch computes together.
#ifndef VK_FUSE_H
#define VK_FUSE_H

#include "plan/plan.h"

enum { VK_MAX_FUSED = 6, VK_FUSION_OPS = 3 };

enum vk_fusion_shape { VK_FUSION_CHAIN, VK_FUSION_JOIN };

// A row of fuse_list.inl.
struct vk_fusion {
    const char *name;
    enum vk_fusion_shape shape;
    int least, most;
    enum ggml_op ops[VK_FUSION_OPS];
};

// All rows, in order.
const struct vk_fusion *vk_fusions(int *out_count);
// Whether a node may be the k-th of the fusion.
bool vk_fusion_takes(const struct vk_fusion *fusion, int k, const struct ggml_tensor *node);
// Which fusions GGML_VULKAN_DISABLE_FUSION switches off, one bit each. [any-thread]
uint32_t vk_fusions_disabled(void);
// Appends a launch for node i and those after it, if there is one that computes them together.
// Answers how many nodes these are, 0: nothing was appended. What only they use is then not
// written. [stream]
int vk_fuse(struct vk_plan *plan, const struct ggml_graph *graph, int i);
// How many of the nodes at idxs[0] ... idxs[n - 1], from the first on, fusion number k would
// compute together if they came one after the other; 0: none. The plan is empty afterwards.
// [stream]
int vk_fuse_ask(struct vk_plan *plan, const struct ggml_graph *graph, int k, const int *idxs,
                int n);

#endif
