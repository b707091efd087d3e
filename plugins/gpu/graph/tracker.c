// SPDX-License-Identifier: MIT
// Compares each dispatch with all that ran since the last barrier, byte range by byte range: a
// list, since it is short.
#include "gpu/graph/tracker.h"

#include <string.h>

void gpu_tracker_clear(struct gpu_tracker *tracker) {
    tracker->n = 0;
}

static bool conflict(const struct gpu_tracker_touch *a, const struct gpu_tracker_touch *b) {
    return (a->writes || b->writes) && a->buffer == b->buffer && a->begin < b->end &&
           b->begin < a->end;
}

// Every pair is compared: at most 512 touches since the last barrier, mostly a few dozen. When they
// are full a barrier comes that was not needed, which is slower and never wrong.
bool gpu_tracker_conflicts(const struct gpu_tracker *tracker,
                           const struct gpu_tracker_touch *touches, int n) {
    if (n > GPU_TRACKER_TOUCHES - tracker->n) return true;
    for (int i = 0; i < n; ++i) {
        for (int k = 0; k < tracker->n; ++k) {
            if (conflict(&touches[i], &tracker->touches[k])) return true;
        }
    }
    return false;
}

void gpu_tracker_add(struct gpu_tracker *tracker, const struct gpu_tracker_touch *touches, int n) {
    memcpy(&tracker->touches[tracker->n], touches, (size_t)n * sizeof(*touches));
    tracker->n += n;
}
