// SPDX-License-Identifier: MIT
// Events: a shared event of Metal's each, whose value grows with each mark.
#ifndef METAL_QUEUE_EVENT_H
#define METAL_QUEUE_EVENT_H

#include "device/device.h"

int32_t metal_event_new(struct metal_device *device, ggml_backend_event_t *out_event);
// Entries of streams.
int32_t metal_event_record(ggml_backend_t backend, ggml_backend_event_t event);
int32_t metal_event_wait(ggml_backend_t backend, ggml_backend_event_t event);

#endif
