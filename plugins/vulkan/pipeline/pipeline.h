// SPDX-License-Identifier: MIT
// Compiled shaders, made when a graph needs them first. Those that a graph lacks are compiled at
// once by several threads, which have ended when the call returns.
#ifndef VK_PIPELINE_H
#define VK_PIPELINE_H

#include "device/context.h"
#include "plan/plan.h"

struct vk_pipelines *vk_pipelines_new(struct vk_context *context);
// Writes the driver's cache to disk if something was added. [any-thread]
void vk_pipelines_save(struct vk_pipelines *pipelines);
// Saves, then frees. NULL is ignored.
void vk_pipelines_free(struct vk_pipelines *pipelines);
// The pipelines of all dispatches of the plan, by number. [any-thread]
enum ggml_status vk_pipelines_find(struct vk_pipelines *pipelines, const struct vk_plan *plan,
                                   VkPipeline *out_handles);

#endif
