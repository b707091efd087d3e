// SPDX-License-Identifier: MIT
// What tests of the CUDA plugin share: the plugin, and what the fake driver offers to tests.
#ifndef CUDA_TEST_H
#define CUDA_TEST_H

// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <stdbool.h>

#include "ggml-alloc.h"
#include "ggml-host.h"

// Of tests/simt/fake_cuda.h, by name.
struct cuda_driver {
    void (*fail_after)(long n, int error);
    const char *(*failed)(void);
    long (*live)(void);
    long (*calls)(const char *name);
    long (*launches)(const char *kernel);
    void (*set_seed)(unsigned long seed);
    void (*drop_edge)(long n);
    bool (*dropped)(void);
};
extern struct cuda_driver driver;

// Fails the test where the driver in the search path is not the fake one.
void cuda_find_driver(void);
// The plugin. NULL: it doesn't load, for a reason that was told.
ggml_backend_reg_t cuda_load(void);
// Device i of the plugin, which is loaded if need be.
ggml_backend_dev_t cuda_device(size_t i);
// Unloads the plugin and fails where something of the driver's is left.
void cuda_unload(void);

// A context for tensors without memory.
struct ggml_context *cuda_context(void);
// Values that follow from the tensor's number of bytes and the seed, about -1 to 1; integers 0
// to 3.
void cuda_fill(struct ggml_tensor *tensor, uint32_t seed);
// The largest difference to the same graph on the CPU: leaves are the same there. Reads the result
// from the device. Before: the graph was computed.
double cuda_worst(const struct ggml_tensor *result, const float *expected);
void cuda_read(const struct ggml_tensor *result, float *out);

#endif
