// SPDX-License-Identifier: MIT
// What tests of isolated devices begin with.
#ifndef ISOLATED_H
#define ISOLATED_H

#include "ggml-backend.h"
#include "ggml-host.h"

// Fails the test if it can't.
ggml_backend_dev_t isolate(ggml_backend_dev_t device, uint32_t deadline_ms);

// A graph of one operation on a device: y = x * x.
struct small {
    struct ggml_context *ctx;
    struct ggml_tensor *x, *y;
    struct ggml_cgraph *graph;
    ggml_backend_t stream;
    ggml_backend_buffer_t buffer;
};

// Fails the test if it can't.
void small_begin(struct small *small, ggml_backend_dev_t device);
void small_end(struct small *small);
// Sets x and computes; *out_y is the first of the results, 0 if that failed.
enum ggml_status small_compute(struct small *small, float x, float *out_y);

// Fails the test unless the last status is DEVICE_LOST, and clears it.
void expect_lost(void);
// Kills the isolated device's process after 0.3 seconds: to be run as a thread.
void *kill_later(void *device);

#endif
