// SPDX-License-Identifier: MIT
// Compiled shaders, made when a graph needs them first. Those that a graph lacks are compiled at
// once by several threads, which have ended when the call returns.
#ifndef GVK_PIPELINE_H
#define GVK_PIPELINE_H

#include "device/context.h"
#include "plan/plan.h"

struct gvk_pipelines *gvk_pipelines_new(struct gvk_context *context);
// Writes the driver's cache to disk if something was added. [any-thread]
void gvk_pipelines_save(struct gvk_pipelines *pipelines);
// Saves, then frees. NULL is ignored.
void gvk_pipelines_free(struct gvk_pipelines *pipelines);
// The pipelines of all dispatches of the plan, by number. [any-thread]
enum ggml_status gvk_pipelines_find(struct gvk_pipelines *pipelines, const struct gvk_plan *plan,
                                    VkPipeline *out_handles);

#endif
