// SPDX-License-Identifier: MIT
// Positions count up for ever and are taken modulo the size: full and empty can be told apart, and
// 64 bits last for centuries. Pieces of one submission share a mark, so that few marks are enough;
// all calls are of one stream's thread, and take constant time but for moving the marks.
#include "gpu/base/ring.h"

#include <string.h>

enum { ALIGNMENT = 16 };

void gpu_ring_init(struct gpu_ring *ring, uint64_t size) {
    *ring = (struct gpu_ring){.size = size};
}

bool gpu_ring_take(struct gpu_ring *ring, uint64_t bytes, uint64_t value, uint64_t *out_offset) {
    const uint64_t size = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    uint64_t begin = ring->head;
    *out_offset = 0;
    // No piece goes over the end. The gap counts as part of it, and comes back with it.
    if (begin % ring->size + size > ring->size) begin += ring->size - begin % ring->size;
    if (size > ring->size || begin + size - ring->tail > ring->size) return false;
    const bool same = ring->n_marks > 0 && ring->marks[ring->n_marks - 1].value == value;
    if (!same && ring->n_marks == GPU_RING_MARKS) return false;
    if (!same) ring->n_marks++;
    ring->head = begin + size;
    ring->marks[ring->n_marks - 1] = (struct gpu_ring_mark){value, ring->head};
    *out_offset = begin % ring->size;
    return true;
}

void gpu_ring_reach(struct gpu_ring *ring, uint64_t value) {
    int n = 0;
    while (n < ring->n_marks && ring->marks[n].value <= value)
        ring->tail = ring->marks[n++].end;
    ring->n_marks -= n;
    memmove(ring->marks, ring->marks + n, (size_t)ring->n_marks * sizeof(ring->marks[0]));
    // Nothing in use: from the beginning again, where the largest piece fits.
    if (ring->n_marks == 0) ring->head = ring->tail = 0;
}

void gpu_ring_forget(struct gpu_ring *ring, uint64_t value) {
    while (ring->n_marks > 0 && ring->marks[ring->n_marks - 1].value > value)
        ring->n_marks--;
    ring->head = ring->n_marks > 0 ? ring->marks[ring->n_marks - 1].end : ring->tail;
    if (ring->n_marks == 0) ring->head = ring->tail = 0;
}

uint64_t gpu_ring_oldest(const struct gpu_ring *ring) {
    return ring->n_marks ? ring->marks[0].value : 0;
}
