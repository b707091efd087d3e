// SPDX-License-Identifier: MIT
// The harmless tensor that builders return instead of failing.
#ifndef GGML_TENSOR_ERROR_TENSOR_H
#define GGML_TENSOR_ERROR_TENSOR_H

#include "ggml-impl.h"

// Records the failure for the calling thread and in the context (the first one is kept), and
// returns the context's error tensor: flag GGML_TENSOR_FLAG_ERROR, no elements, `extra` points
// to the context's first message. It lives inside the context, so this never fails; with ctx
// NULL it is one of the thread. [stream]
struct ggml_tensor *ggml_error_tensor(struct ggml_context *ctx, const char *format, ...)
    GGML_ATTRIBUTE_FORMAT(2, 3);

#endif
