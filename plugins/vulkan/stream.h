// SPDX-License-Identifier: MIT
// A queue of work.
#ifndef VK_STREAM_H
#define VK_STREAM_H

#include "device.h"

// NULL after telling why. [any-thread]
ggml_backend_t vk_stream_new(struct vk_device *device);

#endif
