// SPDX-License-Identifier: MIT
#include "queue/barrier.h"

#include <string.h>

void vk_tracker_clear(struct vk_tracker *tracker) {
    tracker->n = 0;
}

static bool conflict(const struct vk_touch *a, const struct vk_touch *b) {
    return (a->writes || b->writes) && a->buffer == b->buffer && a->begin < b->end &&
           b->begin < a->end;
}

bool vk_tracker_conflicts(const struct vk_tracker *tracker, const struct vk_touch *touches, int n) {
    if (n > VK_MAX_TOUCHES - tracker->n) return true;
    for (int i = 0; i < n; ++i) {
        for (int k = 0; k < tracker->n; ++k) {
            if (conflict(&touches[i], &tracker->touches[k])) return true;
        }
    }
    return false;
}

void vk_tracker_add(struct vk_tracker *tracker, const struct vk_touch *touches, int n) {
    memcpy(&tracker->touches[tracker->n], touches, (size_t)n * sizeof(*touches));
    tracker->n += n;
}
