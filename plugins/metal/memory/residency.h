// SPDX-License-Identifier: MIT
// The buffers of a context as a residency set, where the system has those (macOS 15): what is in it
// stays where the device reaches it, while command queues that have the set live. Elsewhere nothing
// is done: each encoder tells which buffers it uses in any case, for the order of its work.
#ifndef METAL_MEMORY_RESIDENCY_H
#define METAL_MEMORY_RESIDENCY_H

#include "device/context.h"

// Makes the set, if there can be one: it is no failure if not. A pool is open. [init]
void metal_residency_init(struct metal_context *context);
// Adds a buffer, or takes it out. [any-thread]
void metal_residency_add(struct metal_context *context, mtl_id buffer);
void metal_residency_remove(struct metal_context *context, mtl_id buffer);

#endif
