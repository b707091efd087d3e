// SPDX-License-Identifier: MIT
// Computing small graphs at every instruction-set level and several numbers of threads.
#ifndef CPU_TEST_H
#define CPU_TEST_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml-host.h"

struct extents {
    int64_t ne[4];
};

// A context whose tensors have memory.
struct ggml_context *test_context(size_t megabytes);
// A tensor of I32, F16, BF16 or F32 with random values in [low, high); the seed makes them.
struct ggml_tensor *test_tensor(struct ggml_context *ctx, enum ggml_type type,
                                struct extents extents, uint32_t seed, float low, float high);
// The same values and extents in memory with gaps after each row and matrix.
struct ggml_tensor *test_gapped(struct ggml_context *ctx, enum ggml_type type,
                                struct extents extents, uint32_t seed, float low, float high);
// A scan of small states, n_states of them: a sequence of one token per index.
struct ggml_tensor *test_states(struct ggml_context *ctx, struct ggml_tensor *ids,
                                int64_t n_states);
// The graph that ends in `result`.
struct ggml_cgraph *test_graph(struct ggml_context *ctx, struct ggml_tensor *result);
// Computes on a stream with n_threads.
enum ggml_status test_compute(struct ggml_cgraph *graph, int n_threads);

// Number of levels that this machine has; test_use_level() makes one the highest allowed.
int test_level_count(void);
const char *test_use_level(int i);
void test_use_best_level(void);

// Relative accuracy to expect of results of a type.
double test_tolerance(enum ggml_type type);

// Expected value of an element of the result, from the operands.
typedef double (*test_oracle)(const struct ggml_tensor *result, const int64_t *i,
                              const void *context);
// Computes at every level, with 1, 2 and 3 threads, and compares every element; `what` is printed.
void test_against(struct ggml_context *ctx, struct ggml_tensor *result, test_oracle oracle,
                  const void *context, const char *what);
// An element as double.
double test_get(const struct ggml_tensor *tensor, int64_t i0, int64_t i1, int64_t i2, int64_t i3);

#endif
