// SPDX-License-Identifier: MIT
// The launches that compute a graph on a Metal device: those of the shared kernels.
#ifndef METAL_QUEUE_PLAN_H
#define METAL_QUEUE_PLAN_H

#include "simt/step.h"

// An empty plan; gpu_plan_free() ends it. [stream]
void metal_plan_init(struct gpu_plan *plan);

static inline const struct simt_step *metal_plan_at(const struct gpu_plan *plan, int i) {
    return &((const struct simt_step *)plan->launches)[i];
}

#endif
