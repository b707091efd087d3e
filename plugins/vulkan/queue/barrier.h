// SPDX-License-Identifier: MIT
// Which bytes were touched since the last barrier: the next one is set only where work depends on
// them. Knows nothing of Vulkan.
#ifndef GVK_BARRIER_H
#define GVK_BARRIER_H

#include <stdbool.h>
#include <stdint.h>

struct gvk_touch {
    uint64_t buffer; // number of the memory
    uint64_t begin, end;
    bool writes;
};

enum { GVK_MAX_TOUCHES = 512 };

struct gvk_tracker {
    int n;
    struct gvk_touch touches[GVK_MAX_TOUCHES];
};

// Forgets everything, as a barrier does.
void gvk_tracker_clear(struct gvk_tracker *tracker);
// Whether one of the n touches must wait for what came before: both touch a byte and one of them
// writes it, or there is no room to remember them.
bool gvk_tracker_conflicts(const struct gvk_tracker *tracker, const struct gvk_touch *touches,
                           int n);
// Remembers them; n is at most GVK_MAX_TOUCHES after a clear.
void gvk_tracker_add(struct gvk_tracker *tracker, const struct gvk_touch *touches, int n);

#endif
