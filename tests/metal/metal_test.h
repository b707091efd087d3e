// SPDX-License-Identifier: MIT
// What tests of the Metal plugin share: the plugin, what the fake runtime offers to tests, tensors
// with values.
#ifndef METAL_TEST_H
#define METAL_TEST_H

// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <stdbool.h>

#include "fake_metal.h"
#include "ggml-alloc.h"
#include "ggml-host.h"

// Of fake_metal.h, by name: the plugin's libraries are found when it is loaded.
struct metal_runtime {
    void (*fail_after)(long n, int code);
    const char *(*failed)(void);
    long (*live)(void), (*faults)(void);
    long (*calls)(const char *selector);
    long (*compiled)(void), (*threads)(void);
    void (*drop)(const char *selector, long n);
    bool (*dropped)(void);
};
extern struct metal_runtime metal;

// Fails the test where the runtime in the search path is not the fake one.
void metal_find_runtime(void);
// The plugin. NULL: it doesn't load, for a reason that was told.
ggml_backend_reg_t metal_load(void);
// Device i of the plugin, which has to load.
ggml_backend_dev_t metal_device(ggml_backend_reg_t reg, size_t i);
// Unloads the plugin and fails where something went wrong on the way. NULL: only that.
void metal_unload(ggml_backend_reg_t reg);

// A context for tensors without memory.
struct ggml_context *metal_context(void);
struct ggml_tensor *metal_matrix(struct ggml_context *context, int64_t n, int64_t m);
// F32 that follow from the seed, -1 to 1.
void metal_fill(struct ggml_tensor *tensor, uint32_t seed);
// The largest difference to what is expected; NaN counts as infinity.
double metal_worst(const struct ggml_tensor *result, const float *expected);

#endif
