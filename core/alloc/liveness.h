// SPDX-License-Identifier: MIT
// Liveness of the memory of a graph: the live range of every entry, and which nodes reuse the
// memory of a source (in place). The graph allocator and the scheduler describe their graphs with
// the same arrays; offsets.h plans the memory of what was found. An entry is what may have memory:
// a tensor, or a copy that the scheduler makes of one. Step k computes the k-th node, and a live
// range is [first step, last step].
#ifndef GGML_ALLOC_LIVENESS_H
#define GGML_ALLOC_LIVENESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ggml-impl.h"

// Use of a tensor as source `slot` of a node.
struct live_edge {
    int32_t value; // the tensor's entry
    int32_t entry; // whose memory is read: the root of a view, or a copy
    int16_t slot;
    bool same_layout; // an operation that may overwrite the source can do so
};

// The memory of an entry, but for its last use.
struct live_range {
    size_t size;   // padded
    int32_t pool;  // -1: a view, or its memory comes from elsewhere
    int32_t first; // step from which it lives; -1: before all
    int32_t from;  // entry whose memory it takes over, or -1
    int32_t root;  // entry that owns the memory; itself unless it is a view
};

// The last step of an entry that is never released.
enum { LIVE_FOREVER = INT32_MAX };

// The last use of an entry.
struct live_last {
    int32_t step; // then its memory is released: for the last that takes it over this is later
    int32_t edge; // the use of the entry itself, or one of:
};
enum {
    LIVE_NOT_USED = -1,
    LIVE_VIEWED = -2, // the step's node is a view of it
    LIVE_COPIED = -3, // it is copied before the step
    LIVE_TAKEN = -4,  // its memory goes on with another entry
};

// A graph, and what is found out about it. A node's entry has its number. The arrays are the
// caller's, none of them NULL.
struct liveness {
    int32_t n_steps;
    int32_t n_entries;
    const int32_t *order;      // node by step; NULL: the numbers of nodes are their steps
    const int32_t *first_edge; // by node, and the end
    const struct live_edge *edges;
    struct live_range *ranges; // by entry; all is set, from to -1
    struct live_last *last;    // by entry; written
    int32_t *inplace_steps;    // room for n_steps; those whose node may take memory over
    int32_t n_inplace_steps;
};

// The functions are called in this order. All are linear in what they walk over. [stream]

// One scan forward over the steps, in which the last use that is met is the last one. A view as a
// node is a use of the memory that it views.
void liveness_find_uses(struct liveness *liveness);
// The entry is needed until that step too, for `reason` (LIVE_COPIED).
void liveness_extend(struct liveness *liveness, int32_t entry, int32_t step, int32_t reason);
// The root of the entry is never released: the entry is an output, or a node that no other uses.
void liveness_keep(struct liveness *liveness, int32_t entry);
// The same for those among n entries that have no use, as leafs may.
void liveness_keep_unused(struct liveness *liveness, const int32_t *entries, int32_t n);
// One scan backward, as memory lives as long as the last that takes it over: writes `from`. Last
// uses, sizes and pools must be final. With `known`, the ranges of another graph by entry, a node
// only takes over what it took over there.
void liveness_find_takeovers(struct liveness *liveness, const struct live_range *known);

// Whether a source lies as the result of an operation on it would. An offset in the source would be
// lost, as the result begins where its own memory does.
static inline bool live_same_layout(const struct ggml_tensor *node,
                                    const struct ggml_tensor *source) {
    return source->view_offs == 0 && ggml_are_same_layout(node, source);
}

#endif
