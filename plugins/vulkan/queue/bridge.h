// SPDX-License-Identifier: MIT
// Waiting for another device. A semaphore belongs to one device, so that a thread of each context
// waits for the other device's and then signals one of its own.
#ifndef GVK_BRIDGE_H
#define GVK_BRIDGE_H

#include "queue/stream.h"

// Lets later work of the stream wait for the value of a timeline of another context. Does not block
// unless no thread can be had. [stream]
enum ggml_status gvk_bridge_wait(struct gvk_stream *stream, struct gvk_timeline *timeline,
                                 uint64_t value);
// Ends the thread. NULL is ignored.
void gvk_bridge_free(struct gvk_bridge *bridge);

#endif
