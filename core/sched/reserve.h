// SPDX-License-Identifier: MIT
// Inline function that sets an entry's size and pool, for per-node loops.
#ifndef GGML_SCHED_RESERVE_H
#define GGML_SCHED_RESERVE_H

#include "base/status.h"
#include "ggml-backend.h"
#include "sched/sched.h"

// The entry needs memory of that stream, from step `first` on; false with a message.
static inline bool sched_reserve_entry(struct ggml_backend_sched *sched, struct sched_place *place,
                                       const struct ggml_tensor *tensor, int32_t backend,
                                       int32_t first) {
    const struct sched_stream *stream = &sched->streams[backend];
    const int32_t pool = stream->pool;
    size_t size = place->size;
    if (UNLIKELY(stream->asks_size)) {
        size = ggml_backend_buft_get_alloc_size(sched->galloc->pools[pool].buft, tensor);
    }
    if (UNLIKELY(size > SIZE_MAX / 4 - stream->alignment)) {
        ggml_fail(GGML_HOST_OUT_OF_RANGE, "%s: tensor '%s' of %zu bytes is too large",
                  sched->function, tensor->name, size);
        return false;
    }
    *place = (struct sched_place){
        .size = GGML_PAD(size, stream->alignment),
        .pool = pool,
        .first = first,
        .from = -1,
    };
    return true;
}

static inline bool sched_needs_place(const struct sched_value *value) {
    return !(value->traits & (SCHED_HAS_MEMORY | SCHED_SLOTTED));
}

#endif
