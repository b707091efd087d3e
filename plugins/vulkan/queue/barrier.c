// SPDX-License-Identifier: MIT
// Compares each dispatch with all that ran since the last barrier, byte range by byte range: a
// list, since it is short.
#include "queue/barrier.h"

#include <string.h>

void gvk_tracker_clear(struct gvk_tracker *tracker) {
    tracker->n = 0;
}

static bool conflict(const struct gvk_touch *a, const struct gvk_touch *b) {
    return (a->writes || b->writes) && a->buffer == b->buffer && a->begin < b->end &&
           b->begin < a->end;
}

// Every pair is compared: at most 512 touches since the last barrier, mostly a few dozen. When they
// are full a barrier comes that was not needed, which is slower and never wrong.
bool gvk_tracker_conflicts(const struct gvk_tracker *tracker, const struct gvk_touch *touches,
                           int n) {
    if (n > GVK_MAX_TOUCHES - tracker->n) return true;
    for (int i = 0; i < n; ++i) {
        for (int k = 0; k < tracker->n; ++k) {
            if (conflict(&touches[i], &tracker->touches[k])) return true;
        }
    }
    return false;
}

void gvk_tracker_add(struct gvk_tracker *tracker, const struct gvk_touch *touches, int n) {
    memcpy(&tracker->touches[tracker->n], touches, (size_t)n * sizeof(*touches));
    tracker->n += n;
}
