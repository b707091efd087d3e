// SPDX-License-Identifier: MIT
// Staging memory of a stream, given out in the order in which the device is done with it. Knows
// nothing of Vulkan.
#ifndef GPU_RING_H
#define GPU_RING_H

#include <stdbool.h>
#include <stdint.h>

enum { GPU_RING_MARKS = 64 };

struct gpu_ring {
    uint64_t size;       // bytes
    uint64_t head, tail; // taken are [tail, head), counted from the beginning of time
    struct gpu_ring_mark {
        uint64_t value; // of the work that uses the bytes up to `end`
        uint64_t end;
    } marks[GPU_RING_MARKS];
    int n_marks; // oldest first, values ascending
};

void gpu_ring_init(struct gpu_ring *ring, uint64_t size);
// Offset of `bytes` bytes that lie together (aligned to 16), used by the work of that value, which
// is not below an earlier one. False: there is no room before older work is done.
bool gpu_ring_take(struct gpu_ring *ring, uint64_t bytes, uint64_t value, uint64_t *out_offset);
// Work up to the value is done.
void gpu_ring_reach(struct gpu_ring *ring, uint64_t value);
// Work above the value never comes: its bytes are free, the newest ones.
void gpu_ring_forget(struct gpu_ring *ring, uint64_t value);
// Value of the oldest work that holds bytes, 0: none.
uint64_t gpu_ring_oldest(const struct gpu_ring *ring);

#endif
