// SPDX-License-Identifier: MIT
// Public functions that a later version implements: each says so and answers its documented failure.
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#include "base/status.h"
#include "ggml-cpu.h"
#include "ggml-impl.h"
#include "ggml-opt.h"
#include "gguf.h"

static void report_pending(const char *name) {
    ggml_fail(GGML_HOST_NOT_IMPLEMENTED, "%s is not implemented yet", name);
}

#define GGML_PENDING(type, name, parameters, failure)                                               \
    type name parameters {                                                                          \
        report_pending(#name);                                                                      \
        return failure;                                                                             \
    }
#define GGML_PENDING_VOID(name, parameters)                                                         \
    void name parameters {                                                                          \
        report_pending(#name);                                                                      \
    }
#include "pending/pending_list.inl"
