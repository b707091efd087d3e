// SPDX-License-Identifier: MIT
// The launches that compute a graph, in order, before anything is recorded or queued.
#ifndef CUDA_QUEUE_PLAN_H
#define CUDA_QUEUE_PLAN_H

#include "simt/step.h"

// An empty plan for a device with some of enum simt_feature; gpu_plan_free() ends it. [stream]
void cuda_plan_init(struct gpu_plan *plan, unsigned features);

// Leaves out kernels that need much scratch memory from now on, if the plan has any. False: it has
// none, and nothing has changed. [stream]
bool cuda_plan_use_less(struct gpu_plan *plan);

// A number that plans with the same kernels in the same order share. [stream]
uint64_t cuda_plan_shape(const struct gpu_plan *plan);

static inline struct simt_step *cuda_plan_at(const struct gpu_plan *plan, int i) {
    return &((struct simt_step *)plan->launches)[i];
}

#endif
