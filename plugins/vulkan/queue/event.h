// SPDX-License-Identifier: MIT
// Events: a place in the work of a stream, of any device of this plugin.
#ifndef GVK_EVENT_H
#define GVK_EVENT_H

#include "device/context.h"

ggml_backend_event_t gvk_event_new(ggml_backend_dev_t device);
int32_t gvk_event_record(ggml_backend_t backend, ggml_backend_event_t event);
int32_t gvk_event_wait(ggml_backend_t backend, ggml_backend_event_t event);

#endif
