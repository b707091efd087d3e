// SPDX-License-Identifier: MIT
// ggml-cpp.h: owning pointers for C++. Each ends its object when it goes out of scope; an object
// that depends on another (a scheduler on its streams) must end first, so declare it after.
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

struct ggml_context_deleter {
    void operator()(struct ggml_context *ctx) const { ggml_free(ctx); }
};

struct gguf_context_deleter {
    void operator()(struct gguf_context *ctx) const { gguf_free(ctx); }
};

struct ggml_gallocr_deleter {
    void operator()(ggml_gallocr_t galloc) const { ggml_gallocr_free(galloc); }
};

struct ggml_backend_deleter {
    void operator()(ggml_backend_t backend) const { ggml_backend_free(backend); }
};

struct ggml_backend_buffer_deleter {
    void operator()(ggml_backend_buffer_t buffer) const { ggml_backend_buffer_free(buffer); }
};

struct ggml_backend_event_deleter {
    void operator()(ggml_backend_event_t event) const { ggml_backend_event_free(event); }
};

struct ggml_backend_sched_deleter {
    void operator()(ggml_backend_sched_t sched) const { ggml_backend_sched_free(sched); }
};

using ggml_context_ptr = std::unique_ptr<struct ggml_context, ggml_context_deleter>;
using gguf_context_ptr = std::unique_ptr<struct gguf_context, gguf_context_deleter>;
using ggml_gallocr_ptr = std::unique_ptr<struct ggml_gallocr, ggml_gallocr_deleter>;
using ggml_backend_ptr = std::unique_ptr<struct ggml_backend, ggml_backend_deleter>;
using ggml_backend_buffer_ptr =
    std::unique_ptr<struct ggml_backend_buffer, ggml_backend_buffer_deleter>;
using ggml_backend_event_ptr =
    std::unique_ptr<struct ggml_backend_event, ggml_backend_event_deleter>;
using ggml_backend_sched_ptr =
    std::unique_ptr<struct ggml_backend_sched, ggml_backend_sched_deleter>;

#endif
