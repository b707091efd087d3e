// SPDX-License-Identifier: MIT
// Graphs of one node on the CPU device, checked against an oracle.
#ifndef CPU_FIXTURE_H
#define CPU_FIXTURE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "conformance/oracle/oracle.h"
#include "conformance/random.h"
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml-host.h"
#include "ggml.h"

struct fixture {
    struct ggml_context *ctx;
    ggml_backend_t cpu;
    struct test_random random;
};

// cmocka's set-up and tear-down of one test; *state is a struct fixture.
int fixture_setup(void **state);
int fixture_setup_large(void **state); // for operands of more than 15 MiB in all
int fixture_teardown(void **state);

// A tensor of normally distributed numbers of any type that has an encoder.
struct ggml_tensor *fixture_tensor(struct fixture *f, enum ggml_type type, int64_t ne0, int64_t ne1,
                                   int64_t ne2, int64_t ne3);
// Whole numbers in [0, n).
struct ggml_tensor *fixture_indices(struct fixture *f, int64_t n, int64_t ne0, int64_t ne1,
                                    int64_t ne2);
// Overwrites it with normally distributed numbers.
void fixture_fill(struct fixture *f, struct ggml_tensor *t);

// Computes the node and what it depends on.
enum ggml_status fixture_compute(struct fixture *f, struct ggml_tensor *node, int n_threads);
// Computes it on one thread and checks it against the oracle; then on three and on two threads,
// with the same bits as result.
void fixture_check(struct fixture *f, struct ggml_tensor *node, oracle_fn oracle, double nmse);

#define cpu_test(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
#define cpu_test_large(name)                                                                       \
    cmocka_unit_test_setup_teardown(name, fixture_setup_large, fixture_teardown)

#endif
