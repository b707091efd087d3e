// SPDX-License-Identifier: MIT
// The launches that compute a graph, in order, before anything is recorded or queued.
#ifndef CUDA_QUEUE_PLAN_H
#define CUDA_QUEUE_PLAN_H

#include "gpu/graph/overlap.h"
#include "gpu/graph/plan.h"
#include "simt/kernels.h"

// A launch, and the tensors whose memory it uses: the first one is written.
struct cuda_launch {
    struct simt_work work;
    int n_tensors;
    uint32_t writes; // bits of the tensors that are written
    const struct ggml_tensor *tensors[GPU_MAX_TOUCHES];
};

// An empty plan for a device with some of enum simt_feature; gpu_plan_free() ends it. [stream]
void cuda_plan_init(struct gpu_plan *plan, unsigned features);

// A number that plans with the same kernels in the same order share. [stream]
uint64_t cuda_plan_shape(const struct gpu_plan *plan);

static inline struct cuda_launch *cuda_plan_at(const struct gpu_plan *plan, int i) {
    return &((struct cuda_launch *)plan->launches)[i];
}

#endif
