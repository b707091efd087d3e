// SPDX-License-Identifier: MIT
// Where the tensors of a case lie: in one buffer, each with a guard on either side. Bytes that no
// operand fills are poison: NaN in every floating-point type and in every block scale.
#include <stdlib.h>

#include "table.h"

enum { GUARD = 256, POISON = 0xFF };

void conformance_memory_free(struct conformance_memory *m) {
    ggml_backend_buffer_free(m->buffer);
    ggml_free(m->ctx);
    free(m->before);
    free(m->after);
    free(m->again);
    *m = (struct conformance_memory){.size = 0};
}

static bool grow(struct conformance *c, size_t size) {
    struct conformance_memory *m = c->memory;
    const size_t used = m->used;
    if (size <= m->size) return true;
    conformance_memory_free(m);
    m->used = used;
    size += size / 2 + (1 << 20);
    m->buffer = ggml_backend_buft_alloc_buffer(ggml_backend_dev_buffer_type(c->device), size);
    m->ctx = ggml_init((struct ggml_init_params){.mem_size = 4096, .no_alloc = true});
    m->before = malloc(size);
    m->after = malloc(size);
    m->again = malloc(size);
    if (!m->buffer || !m->ctx || !m->before || !m->after || !m->again) return false;
    m->all = ggml_new_tensor_1d(m->ctx, GGML_TYPE_I8, (int64_t)size);
    if (ggml_backend_tensor_alloc(m->buffer, m->all, ggml_backend_buffer_get_base(m->buffer)) !=
        GGML_STATUS_SUCCESS) {
        return false;
    }
    m->size = size;
    return true;
}

static size_t round_up(size_t size, size_t alignment) {
    return (size + alignment - 1) / alignment * alignment;
}

// Offset behind the tensor and its guard.
static size_t behind(ggml_backend_buffer_type_t type, const struct ggml_tensor *t, size_t offset) {
    return round_up(offset + ggml_backend_buft_get_alloc_size(type, t) + GUARD,
                    ggml_backend_buft_get_alignment(type));
}

bool conformance_place(struct conformance *c) {
    struct conformance_memory *m = c->memory;
    ggml_backend_buffer_type_t type = ggml_backend_dev_buffer_type(c->device);
    const size_t start = round_up(GUARD, ggml_backend_buft_get_alignment(type));
    struct ggml_tensor *t;
    m->used = start;
    for (t = ggml_get_first_tensor(c->ctx); t; t = ggml_get_next_tensor(c->ctx, t)) {
        if (!t->view_src) m->used = behind(type, t, m->used);
    }
    if (!grow(c, m->used)) {
        conformance_fail(c, "no memory: %s", ggml_last_error());
        return false;
    }
    size_t offset = start;
    for (t = ggml_get_first_tensor(c->ctx); t; t = ggml_get_next_tensor(c->ctx, t)) {
        char *address = (char *)ggml_backend_buffer_get_base(m->buffer) + offset;
        const enum ggml_status status = t->view_src
                                            ? ggml_backend_view_init(t)
                                            : ggml_backend_tensor_alloc(m->buffer, t, address);
        if (!t->view_src) offset = behind(type, t, offset);
        if (status == GGML_STATUS_SUCCESS) continue;
        conformance_fail(c, "%s was not placed: %s", t->name, ggml_last_error());
        return false;
    }
    return true;
}

struct ggml_tensor conformance_mirror(const struct conformance *c, const struct ggml_tensor *tensor,
                                      uint8_t *image) {
    struct ggml_tensor mirror = *tensor;
    const char *base = ggml_backend_buffer_get_base(c->memory->buffer);
    mirror.data = image + ((const char *)tensor->data - base);
    mirror.buffer = NULL;
    return mirror;
}

void conformance_upload(struct conformance *c) {
    struct conformance_memory *m = c->memory;
    memset(m->before, POISON, m->used);
    for (int i = 0; i < c->n_operands; ++i) {
        const struct ggml_tensor mirror = conformance_mirror(c, c->operands[i].tensor, m->before);
        conformance_write_operand(c, &c->operands[i], &mirror);
    }
    ggml_backend_tensor_set(m->all, m->before, 0, m->used);
}

void conformance_download(struct conformance *c) {
    ggml_backend_tensor_get(c->memory->all, c->memory->after, 0, c->memory->used);
}
