// SPDX-License-Identifier: MIT
// Events: a driver's event each.
#ifndef CUDA_QUEUE_EVENT_H
#define CUDA_QUEUE_EVENT_H

#include "device/device.h"

int32_t cuda_event_new(struct cuda_device *device, ggml_backend_event_t *out_event);
// Entries of streams.
int32_t cuda_event_record(ggml_backend_t backend, ggml_backend_event_t event);
int32_t cuda_event_wait(ggml_backend_t backend, ggml_backend_event_t event);

#endif
