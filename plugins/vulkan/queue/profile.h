// SPDX-License-Identifier: MIT
// When the nodes of graphs are computed (extension "ggml.profile"), by timestamps of the device.
#ifndef GVK_PROFILE_H
#define GVK_PROFILE_H

#include "device/context.h"
#include "gpu/base/slices.h"
#include "gpu/graph/plan.h"

struct gvk_recording;
struct gvk_stream;

// Timestamps of a recording: one before its dispatches and one after those of each span of nodes.
struct gvk_times {
    VkQueryPool queries;
    uint32_t n_spans, max_spans;
    struct gpu_span *spans;
    // Of the last submission, until its slices were added.
    bool pending;
    uint64_t tag;
    uint64_t submit_ns;
};

// Of one stream. Zero-initialised is off.
struct gvk_profile {
    struct gpu_slices slices;
    uint64_t anchor_ticks; // of the device, at about
    uint64_t anchor_ns;    // this time of the host
    uint64_t last_end_ns;  // of the last slice
};

extern const struct ggml_extension_profile gvk_profile_extension;

static inline bool gvk_profile_is_on(const struct gvk_profile *profile) {
    return profile->slices.all != NULL;
}

// Room for the timestamps of a plan's spans. NULL after telling why. [stream]
struct gvk_times *gvk_times_new(struct gvk_context *context, const struct gpu_plan *plan);
// The device is done with them. NULL is ignored. [stream]
void gvk_times_free(struct gvk_context *context, struct gvk_times *times);
// Records the first timestamp. [stream]
void gvk_times_begin(struct gvk_context *context, struct gvk_times *times,
                     VkCommandBuffer commands);
// Records that the dispatches of a span are done. [stream]
void gvk_times_mark(struct gvk_context *context, struct gvk_times *times, VkCommandBuffer commands,
                    const struct gpu_span *span);
// Before a recording with timestamps is submitted: waits for the last time it was, whose timestamps
// it overwrites, and adds their slices. [stream]
enum ggml_status gvk_profile_submit(struct gvk_stream *stream, struct gvk_recording *recording);
// Adds the slices of the work that is done. [stream]
void gvk_profile_collect(struct gvk_stream *stream);

#endif
