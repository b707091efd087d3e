// SPDX-License-Identifier: MIT
// Dispatches of what gpu/graph/fuse.h finds: a function for each row of its list.
#ifndef GVK_FUSE_H
#define GVK_FUSE_H

#include "gpu/graph/plan.h"

#define GPU_FUSION_ROW(name, ...)                                                                  \
    bool gvk_fuse_##name(struct gpu_plan *plan, const struct gpu_fused *fused);
#include "gpu/graph/fuse_list.inl"

#endif
