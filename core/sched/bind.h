// SPDX-License-Identifier: MIT
// Inline functions that give a planned tensor its memory, for per-node loops.
#ifndef GGML_SCHED_BIND_H
#define GGML_SCHED_BIND_H

#include "sched/sched.h"

// At an offset of a buffer, which is not told about it.
static inline void sched_put(struct ggml_tensor *tensor, const struct sched_base *base,
                             size_t offset) {
    tensor->buffer = base->buffer;
    tensor->data = base->address + offset;
}

// A view, after the tensor whose memory it views. Views of memory that no buffer owns have their
// address already. false: the buffer has to be told about it.
static inline bool sched_put_view(const struct sched_value *value) {
    struct ggml_tensor *view = value->tensor;
    const struct ggml_tensor *owner = view->view_src;
    if (!owner->buffer || ((value->traits & SCHED_HAS_MEMORY) && view->buffer)) return true;
    if (view->view_offs > owner->buffer->size || owner->buffer->table->init_tensor) return false;
    view->buffer = owner->buffer;
    view->data = (char *)owner->data + view->view_offs;
    return true;
}

#endif
