// SPDX-License-Identifier: MIT
// Which bytes were touched since the last barrier: the next one is set only where work depends on
// them. Knows nothing of Vulkan.
#ifndef VK_BARRIER_H
#define VK_BARRIER_H

#include <stdbool.h>
#include <stdint.h>

struct vk_touch {
    uint64_t buffer; // number of the memory
    uint64_t begin, end;
    bool writes;
};

enum { VK_MAX_TOUCHES = 512 };

struct vk_tracker {
    int n;
    struct vk_touch touches[VK_MAX_TOUCHES];
};

// Forgets everything, as a barrier does.
void vk_tracker_clear(struct vk_tracker *tracker);
// Whether one of the n touches must wait for what came before: both touch a byte and one of them
// writes it, or there is no room to remember them.
bool vk_tracker_conflicts(const struct vk_tracker *tracker, const struct vk_touch *touches, int n);
// Remembers them; n is at most VK_MAX_TOUCHES after a clear.
void vk_tracker_add(struct vk_tracker *tracker, const struct vk_touch *touches, int n);

#endif
