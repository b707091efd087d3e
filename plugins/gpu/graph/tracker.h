// SPDX-License-Identifier: MIT
// Which bytes were touched since the last barrier: the next one is set only where work depends on
// them. Knows nothing of a driver.
#ifndef GPU_TRACKER_H
#define GPU_TRACKER_H

#include <stdbool.h>
#include <stdint.h>

struct gpu_tracker_touch {
    uint64_t buffer; // number of the memory that the bytes are counted in
    uint64_t begin, end;
    bool writes;
};

enum { GPU_TRACKER_TOUCHES = 512 };

struct gpu_tracker {
    int n;
    struct gpu_tracker_touch touches[GPU_TRACKER_TOUCHES];
};

// Forgets everything, as a barrier does.
void gpu_tracker_clear(struct gpu_tracker *tracker);
// Whether one of the n touches must wait for what came before: both touch a byte and one of them
// writes it, or there is no room to remember them.
bool gpu_tracker_conflicts(const struct gpu_tracker *tracker,
                           const struct gpu_tracker_touch *touches, int n);
// Remembers them; n is at most GPU_TRACKER_TOUCHES after a clear.
void gpu_tracker_add(struct gpu_tracker *tracker, const struct gpu_tracker_touch *touches, int n);

#endif
