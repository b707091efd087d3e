// SPDX-License-Identifier: MIT
// Waiting for another device. A semaphore belongs to one device, so that a thread of each context
// waits for the other device's and then signals one of its own.
#ifndef VK_BRIDGE_H
#define VK_BRIDGE_H

#include "queue/stream.h"

// Lets later work of the stream wait for the value of a timeline of another context. Does not block
// unless no thread can be had. [stream]
void vk_bridge_wait(struct vk_stream *stream, struct vk_timeline *timeline, uint64_t value);
// Ends the thread. NULL is ignored.
void vk_bridge_free(struct vk_bridge *bridge);

#endif
