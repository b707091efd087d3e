// SPDX-License-Identifier: MIT
// Devices whose kernels reach each other's memory.
#ifndef CUDA_DEVICE_PEER_H
#define CUDA_DEVICE_PEER_H

#include "device/context.h"

// Lets the kernels of the context and those of every one that was given before reach each other's
// memory, where the driver and GGML_CUDA_P2P permit it. [any-thread]
void cuda_peers_add(struct cuda_context *context);
// Before it goes. [any-thread]
void cuda_peers_remove(struct cuda_context *context);

// Whether kernels of a reach memory of b. [any-thread]
static inline bool cuda_reaches(const struct cuda_context *a, const struct cuda_context *b) {
    return a == b || (atomic_load(&a->reaches) >> b->device & 1);
}

#endif
