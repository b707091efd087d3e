// SPDX-License-Identifier: MIT
// The arena of tensors, graphs and work buffers that applications call a context.
#ifndef GGML_TENSOR_CONTEXT_H
#define GGML_TENSOR_CONTEXT_H

#include "ggml-impl.h"

// Header in front of each payload; its size is part of what clients compute with.
struct ggml_object {
    size_t offs; // of the payload in the arena
    size_t size; // of the payload, padded to GGML_MEM_ALIGN
    struct ggml_object *next;
    enum ggml_object_type type;
    char padding[4];
};

// The error tensor of a context, or of a thread, with its message.
struct error_holder {
    struct ggml_tensor tensor;
    char message[512];
};

struct ggml_context {
    size_t mem_size;
    char *mem_buffer;
    bool owns_buffer;
    bool no_alloc;
    struct ggml_object *first;
    struct ggml_object *last;
    struct error_holder error;
};

// Payload of a new object, not cleared and padded to GGML_MEM_ALIGN; NULL with a message when the
// context is NULL or full. `what` names it in the message. [stream]
void *ggml_context_take(struct ggml_context *ctx, enum ggml_object_type type, size_t size,
                        const char *what);

// As ggml_error_tensor(), for the failure that was just recorded with ggml_fail(). [stream]
struct ggml_tensor *ggml_last_error_tensor(struct ggml_context *ctx);

#endif
