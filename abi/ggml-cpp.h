// SPDX-License-Identifier: MIT
// ggml-cpp.h: owning pointers for C++. Each ends its object when it goes out of scope; an object
// that depends on another (a scheduler on its streams) must end first, so declare it after.
//
//     ggml_context_ptr ctx(ggml_init(params));
//     ggml_backend_ptr stream(ggml_backend_init_best());
//     ggml_backend_buffer_ptr buffer(ggml_backend_alloc_ctx_tensors(ctx.get(), stream.get()));
//     if (!buffer) return fail(ggml_last_error());
//     // buffer, stream and ctx end in this order
//
// C++17 or later. Functions of the library take the plain pointer: get(). The pointers may be NULL,
// since every function that ends an object accepts that, and are as large as plain ones.
#ifndef GGML_CPP_H
#define GGML_CPP_H

#ifndef __cplusplus
#error "ggml-cpp.h is for C++"
#endif

#include <memory>

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml.h"
#include "gguf.h"

// What each pointer calls, and on which thread: the one that destroys it, as the tag [stream] of
// these functions allows.
struct ggml_context_deleter {
    void operator()(struct ggml_context *ctx) const {
        ggml_free(ctx);
    }
};

struct gguf_context_deleter {
    void operator()(struct gguf_context *ctx) const {
        gguf_free(ctx);
    }
};

struct ggml_gallocr_deleter {
    void operator()(ggml_gallocr_t galloc) const {
        ggml_gallocr_free(galloc);
    }
};

struct ggml_backend_deleter {
    void operator()(ggml_backend_t backend) const {
        ggml_backend_free(backend);
    }
};

struct ggml_backend_buffer_deleter {
    void operator()(ggml_backend_buffer_t buffer) const {
        ggml_backend_buffer_free(buffer);
    }
};

struct ggml_backend_event_deleter {
    void operator()(ggml_backend_event_t event) const {
        ggml_backend_event_free(event);
    }
};

struct ggml_backend_sched_deleter {
    void operator()(ggml_backend_sched_t sched) const {
        ggml_backend_sched_free(sched);
    }
};

// A context with its tensors and graphs: ggml_init(). Buffers of its tensors are not ended with it.
using ggml_context_ptr = std::unique_ptr<struct ggml_context, ggml_context_deleter>;

// Meta data of a file: gguf_init_*(). The context with its tensors is another object.
using gguf_context_ptr = std::unique_ptr<struct gguf_context, gguf_context_deleter>;

// A graph allocator with its buffers: ggml_gallocr_new().
using ggml_gallocr_ptr = std::unique_ptr<struct ggml_gallocr, ggml_gallocr_deleter>;

// A stream: ggml_backend_dev_init() and others. Ending it waits for its work.
using ggml_backend_ptr = std::unique_ptr<struct ggml_backend, ggml_backend_deleter>;

// A buffer with the data of its tensors: ggml_backend_alloc_ctx_tensors() and others.
using ggml_backend_buffer_ptr =
    std::unique_ptr<struct ggml_backend_buffer, ggml_backend_buffer_deleter>;

// An event: ggml_backend_event_new().
using ggml_backend_event_ptr =
    std::unique_ptr<struct ggml_backend_event, ggml_backend_event_deleter>;

// A scheduler with its buffers: ggml_backend_sched_new().
using ggml_backend_sched_ptr =
    std::unique_ptr<struct ggml_backend_sched, ggml_backend_sched_deleter>;

#endif
