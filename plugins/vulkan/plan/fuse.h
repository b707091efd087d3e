// SPDX-License-Identifier: MIT
// Dispatches of what gpu/graph/fuse.h finds: a function for each row of its list.
#ifndef VK_FUSE_H
#define VK_FUSE_H

#include "gpu/graph/plan.h"

#define GPU_FUSION_ROW(name, ...)                                                                  \
    bool vk_fuse_##name(struct gpu_plan *plan, const struct gpu_fused *fused);
#include "gpu/graph/fuse_list.inl"

#endif
