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
    ggml_sdk_buffer_free(buffer);
}

static int32_t fake_init(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor) {
    struct fake_memory *memory = buffer->buft->context;
    (void)tensor;
    if (memory->inits_left == 0) return GGML_HOST_FAILED;
    if (memory->inits_left > 0) --memory->inits_left;
    return GGML_HOST_OK;
}

static int32_t fake_reset(ggml_backend_buffer_t buffer) {
    ++((struct fake_memory *)buffer->buft->context)->resets;
    return GGML_HOST_OK;
}

#define FAKE_BUFFER(init_, reset_)                                                                 \
    {                                                                                              \
        .size = sizeof(struct ggml_buffer_table), .free = fake_free, .get_base = fake_base,        \
        .init_tensor = init_, .reset = reset_                                                      \
    }
// By what is plain and what has a reset.
static const struct ggml_buffer_table fake_buffer_tables[2][2] = {
    {FAKE_BUFFER(fake_init, NULL), FAKE_BUFFER(fake_init, fake_reset)},
    {FAKE_BUFFER(NULL, NULL), FAKE_BUFFER(NULL, fake_reset)},
};

static int32_t fake_alloc(ggml_backend_buffer_type_t buft, size_t size,
                          ggml_backend_buffer_t *out_buffer) {
    struct fake_memory *memory = buft->context;
    if (memory->allocations_left == 0) return GGML_HOST_OUT_OF_MEMORY;
    if (memory->allocations_left > 0) --memory->allocations_left;
    ggml_backend_buffer_t buffer = ggml_sdk_buffer_new(
        buft, &fake_buffer_tables[memory->plain][memory->has_reset], (void *)fake_next_base, size);
    if (!buffer) return GGML_HOST_OUT_OF_MEMORY;
    fake_next_base += GGML_PAD(size, (size_t)4096) + 4096;
    memory->live_bytes += size;
    ++memory->live_buffers;
    *out_buffer = buffer;
    return GGML_HOST_OK;
}

static size_t fake_alignment(ggml_backend_buffer_type_t buft) {
    return ((struct fake_memory *)buft->context)->alignment;
}

static size_t fake_max_size(ggml_backend_buffer_type_t buft) {
    return ((struct fake_memory *)buft->context)->max_size;
}

static const struct ggml_buffer_type_table fake_type_table = {
    .size = sizeof(fake_type_table),
    .get_name = fake_name,
    .alloc_buffer = fake_alloc,
    .get_alignment = fake_alignment,
    .get_max_size = fake_max_size,
};

static void fake_memory_init(struct fake_memory *memory, size_t alignment, size_t max_size) {
    *memory = (struct fake_memory){
        .buft.table = &fake_type_table,
        .alignment = alignment,
        .max_size = max_size,
        .allocations_left = -1,
        .inits_left = -1,
    };
    memory->buft.context = memory;
}

#endif
