// SPDX-License-Identifier: MIT
// The Vulkan plugin, linked into a test.
#ifndef VULKAN_TEST_H
#define VULKAN_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/device.h"
#include "ggml-alloc.h"
#include "ggml-backend-impl.h"
#include "ggml-host.h"

// Starts it with text in GGML_VULKAN_DEBUG and GGML_VULKAN_DEVICES. NULL if that failed.
ggml_backend_reg_t vulkan_start(const char *debug, const char *devices);
// Stops it; nothing of it may live.
void vulkan_stop(void);
// The device that the tests run on: the last, a driver that computes on the CPU if there is one.
ggml_backend_dev_t vulkan_device(ggml_backend_reg_t reg);
// Messages of the validation layer, and graphs that were recorded (with "record" in
// GGML_VULKAN_DEBUG), since the start.
int vulkan_n_messages(void);
int vulkan_n_recorded(void);
// Of all graphs that were recorded.
int vulkan_n_dispatches(void);
int vulkan_n_barriers(void);

// |x| of n numbers, in a buffer of the device's memory.
struct vulkan_graph {
    struct ggml_context *ctx;
    ggml_backend_buffer_t buffer;
    struct ggml_tensor *x, *y;
    struct ggml_cgraph *graph;
};
bool vulkan_graph_new(ggml_backend_buffer_type_t buft, int64_t n, int n_steps,
                      struct vulkan_graph *out_graph);
void vulkan_graph_free(struct vulkan_graph *graph);

// Sets a tensor's elements to numbers, converted to its type.
void vulkan_set(struct ggml_tensor *t, const float *numbers);
// To numbers in [-1, 1) that follow from the seed, of 4096 steps so that some are equal.
void vulkan_fill(struct ggml_tensor *t, uint32_t seed);
// The next such number.
float vulkan_number(uint32_t *seed);
// Computes y on a device after fill(y) has set what it depends on, and frees the context. The bytes
// of the result, for free().
void *vulkan_compute(ggml_backend_dev_t device, struct ggml_context *ctx, struct ggml_tensor *y,
                     void (*fill)(struct ggml_tensor *y));
// Mean squared difference, relative to the mean square of what is wanted.
double vulkan_error(const float *got, const float *wanted, int64_t n);

#endif
