// SPDX-License-Identifier: MIT
// What tests of the shared parts of GPU plugins include.
#ifndef GPU_TEST_H
#define GPU_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ggml-impl.h"
#include "ggml.h"

static inline struct ggml_context *gpu_test_context(void) {
    const struct ggml_init_params params = {.mem_size = 1 << 20, .no_alloc = true};
    struct ggml_context *ctx = ggml_init(params);
    assert_non_null(ctx);
    return ctx;
}

#endif
