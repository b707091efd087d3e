// SPDX-License-Identifier: MIT
// Records by tensor address: open addressing with linear probing, at most half full. A tensor at
// the address of one that is gone takes over its record, so that there are never more records than
// addresses.
#include "base/mem.h"
#include "meta/meta.h"

enum { FIRST_SLOTS = 64 };

// Fibonacci hashing (Knuth, TAOCP 3, 6.4); the low four bits of addresses are equal.
static size_t home(const struct ggml_tensor *tensor, size_t n_slots) {
    const uint64_t key = (uint64_t)(uintptr_t)tensor >> 4;
    return (size_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (n_slots - 1);
}

// The slot of the tensor, or the free one where it belongs.
static size_t find(struct meta_record *const *slots, size_t n_slots,
                   const struct ggml_tensor *tensor) {
    size_t i = home(tensor, n_slots);
    while (slots[i] && slots[i]->tensor != tensor)
        i = (i + 1) & (n_slots - 1);
    return i;
}

// Pointers are moved, not records: callers keep them.
static bool rehash(struct meta_buffer *buffer, size_t n_slots) {
    struct meta_record **slots = ggml_mem_calloc(n_slots, sizeof(*slots));
    if (!slots) return false;
    for (size_t i = 0; i < buffer->n_slots; ++i) {
        struct meta_record *record = buffer->slots[i];
        if (record) slots[find(slots, n_slots, record->tensor)] = record;
    }
    ggml_mem_free(buffer->slots);
    buffer->slots = slots;
    buffer->n_slots = n_slots;
    return true;
}

// The state of a tensor of the meta device: a slice per device.
static struct meta_record *record_new(const struct ggml_tensor *tensor, size_t n) {
    struct meta_record *record = ggml_mem_calloc(1, sizeof(*record));
    struct ggml_tensor *slices = ggml_mem_calloc(n, sizeof(*slices));
    if (!record || !slices) {
        ggml_mem_free(slices);
        ggml_mem_free(record);
        return NULL;
    }
    record->tensor = tensor;
    record->slices = slices;
    return record;
}

static void record_free(struct meta_record *record) {
    if (!record) return;
    for (int k = 0; k < GGML_MAX_SRC; ++k)
        ggml_mem_free(record->cuts[k]);
    ggml_mem_free(record->slices);
    ggml_mem_free(record);
}

// A record of an earlier graph is reset if its memory is not static: another tensor may be at that
// address.
struct meta_record *meta_record_get(const struct ggml_tensor *tensor) {
    struct meta_buffer *buffer = meta_buffer_with(tensor);
    if (!buffer) return NULL;
    if (2 * (buffer->n_records + 1) > buffer->n_slots &&
        !rehash(buffer, buffer->n_slots ? 2 * buffer->n_slots : FIRST_SLOTS)) {
        goto fail;
    }
    struct meta_record **slot = &buffer->slots[find(buffer->slots, buffer->n_slots, tensor)];
    if (!*slot) {
        *slot = record_new(tensor, buffer->device->n);
        if (!*slot) goto fail;
        ++buffer->n_records;
    } else if ((*slot)->epoch != buffer->epoch && !(*slot)->is_static) {
        (*slot)->is_resolved = false;
    }
    (*slot)->epoch = buffer->epoch;
    return *slot;
fail:
    ggml_fail(GGML_HOST_OUT_OF_MEMORY, "meta device: no memory for the slices of '%s'",
              tensor->name);
    return NULL;
}

// Two graphs without a touch: one graph alternates with another in many programs.
static bool is_expired(const struct meta_buffer *buffer, const struct meta_record *record) {
    return !record->is_static && record->epoch + 1 < buffer->epoch;
}

// Records that the last two graphs did not touch go. Without memory for a table they stay longer.
void meta_records_expire(struct meta_buffer *buffer) {
    size_t n_kept = 0;
    struct meta_record **slots =
        buffer->n_slots ? ggml_mem_calloc(buffer->n_slots, sizeof(*slots)) : NULL;
    ++buffer->epoch;
    if (!slots) return;
    for (size_t i = 0; i < buffer->n_slots; ++i) {
        struct meta_record *record = buffer->slots[i];
        if (!record) continue;
        if (is_expired(buffer, record)) {
            record_free(record);
        } else {
            slots[find(slots, buffer->n_slots, record->tensor)] = record;
            ++n_kept;
        }
    }
    ggml_mem_free(buffer->slots);
    buffer->slots = slots;
    buffer->n_records = n_kept;
}

void meta_records_free(struct meta_buffer *buffer) {
    for (size_t i = 0; i < buffer->n_slots; ++i)
        record_free(buffer->slots[i]);
    ggml_mem_free(buffer->slots);
    buffer->slots = NULL;
    buffer->n_slots = 0;
    buffer->n_records = 0;
}
