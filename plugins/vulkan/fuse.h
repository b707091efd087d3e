// SPDX-License-Identifier: MIT
// Nodes that one launch computes together.
#ifndef VK_FUSE_H
#define VK_FUSE_H

#include "plan.h"

// Which fusions GGML_VULKAN_DISABLE_FUSION switches off, one bit each. [any-thread]
uint32_t vk_fusions_disabled(void);
// Appends a launch for node i and those after it, if there is one that computes them together.
// Answers how many nodes these are, 0: nothing was appended. What only they use is then not
// written. [stream]
int vk_fuse(struct vk_plan *plan, const struct ggml_cgraph *graph, int i);

#endif
