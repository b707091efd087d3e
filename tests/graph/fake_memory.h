// SPDX-License-Identifier: MIT
// A buffer type that hands out addresses without memory behind them, and a check of what an
// allocator did with them. For one test program each.
#ifndef GGML_TEST_FAKE_MEMORY_H
#define GGML_TEST_FAKE_MEMORY_H

#include <string.h>

#include "base/mem.h"
#include "ggml-alloc.h"
#include "ggml-backend-impl.h"
#include "ggml-impl.h"

struct fake_memory {
    struct ggml_backend_buffer_type buft;
    size_t max_size;
    size_t alignment;
    size_t live_bytes;
    int live_buffers;
    int allocations_left; // buffers until one is refused; negative: never
    int inits_left;       // the same for init_tensor
    bool plain;           // later buffers need no init_tensor
    bool has_reset;       // later buffers have something to reset
    int resets;
};

static uintptr_t fake_next_base = 1 << 20;

static const char *fake_name(ggml_backend_buffer_type_t buft) {
    (void)buft;
    return "Fake";
}

static void *fake_base(ggml_backend_buffer_t buffer) {
    return buffer->context;
}

static void fake_free(ggml_backend_buffer_t buffer) {
    struct fake_memory *memory = buffer->buft->context;
    memory->live_bytes -= buffer->size;
    --memory->live_buffers;
}

static enum ggml_status fake_init(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor) {
    struct fake_memory *memory = buffer->buft->context;
    (void)tensor;
    if (memory->inits_left == 0) return GGML_STATUS_FAILED;
    if (memory->inits_left > 0) --memory->inits_left;
    return GGML_STATUS_SUCCESS;
}

static void fake_reset(ggml_backend_buffer_t buffer) {
    ++((struct fake_memory *)buffer->buft->context)->resets;
}

static ggml_backend_buffer_t fake_alloc(ggml_backend_buffer_type_t buft, size_t size) {
    struct fake_memory *memory = buft->context;
    const struct ggml_backend_buffer_i iface = {
        .free_buffer = fake_free,
        .get_base = fake_base,
        .init_tensor = memory->plain ? NULL : fake_init,
        .reset = memory->has_reset ? fake_reset : NULL,
    };
    if (memory->allocations_left == 0) return NULL;
    if (memory->allocations_left > 0) --memory->allocations_left;
    ggml_backend_buffer_t buffer =
        ggml_backend_buffer_init(buft, iface, (void *)fake_next_base, size);
    if (!buffer) return NULL;
    fake_next_base += GGML_PAD(size, (size_t)4096) + 4096;
    memory->live_bytes += size;
    ++memory->live_buffers;
    return buffer;
}

static size_t fake_alignment(ggml_backend_buffer_type_t buft) {
    return ((struct fake_memory *)buft->context)->alignment;
}

static size_t fake_max_size(ggml_backend_buffer_type_t buft) {
    return ((struct fake_memory *)buft->context)->max_size;
}

static void fake_memory_init(struct fake_memory *memory, size_t alignment, size_t max_size) {
    *memory = (struct fake_memory){
        .buft.iface = {.get_name = fake_name,
                       .alloc_buffer = fake_alloc,
                       .get_alignment = fake_alignment,
                       .get_max_size = fake_max_size},
        .alignment = alignment,
        .max_size = max_size,
        .allocations_left = -1,
        .inits_left = -1,
    };
    memory->buft.context = memory;
}

#endif
