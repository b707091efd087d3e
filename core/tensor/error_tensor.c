// SPDX-License-Identifier: MIT
// Error tensors: one per context, and one per thread for calls without a context. An extent of 0
// leaves nothing to read in them.
#include "tensor/error_tensor.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/status.h"
#include "tensor/context.h"

static _Thread_local struct error_holder thread_error;

// Fills in the error tensor on each return, since a client may have written to it. The context's
// first message is kept.
struct ggml_tensor *ggml_last_error_tensor(struct ggml_context *ctx) {
    struct error_holder *holder = ctx ? &ctx->error : &thread_error;
    if (!ctx || holder->message[0] == '\0') {
        snprintf(holder->message, sizeof(holder->message), "%s", ggml_last_error());
    }
    const size_t size = ggml_type_size(GGML_TYPE_F32);
    holder->tensor = (struct ggml_tensor){
        .type = GGML_TYPE_F32,
        .ne = {0, 1, 1, 1},
        .nb = {size, 0, 0, 0},
        .flags = GGML_TENSOR_FLAG_ERROR,
        .name = "error",
        .extra = holder->message,
    };
    return &holder->tensor;
}

struct ggml_tensor *ggml_error_tensor(struct ggml_context *ctx, const char *format, ...) {
    va_list args;
    va_start(args, format);
    ggml_fail_v(GGML_HOST_INVALID_ARGUMENT, format, args);
    va_end(args);
    return ggml_last_error_tensor(ctx);
}

bool ggml_tensor_is_error(const struct ggml_tensor *tensor) {
    return tensor && (tensor->flags & GGML_TENSOR_FLAG_ERROR) != 0;
}

const char *ggml_tensor_error(const struct ggml_tensor *tensor) {
    return ggml_tensor_is_error(tensor) ? tensor->extra : NULL;
}

const char *ggml_graph_error(const struct ggml_cgraph *cgraph) {
    return cgraph ? cgraph->error : NULL;
}
