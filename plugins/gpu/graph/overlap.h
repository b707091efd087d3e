// SPDX-License-Identifier: MIT
// Which launches of a plan must wait for which, by the bytes that they read and write. Everything
// else may run at the same time.
//
// Why not depend.h, which says the same of nodes: it puts nodes in order before there is memory,
// and takes tensors that overlap for one, all through a chain of them. After an allocator has given
// bytes out again and again, that is nearly all of a graph.
#ifndef GPU_OVERLAP_H
#define GPU_OVERLAP_H

#include <stdbool.h>
#include <stdint.h>

enum { GPU_MAX_TOUCHES = 12, GPU_OVERLAP_WINDOW = 256 };

// Bytes that a launch reads, or also writes.
struct gpu_touch {
    uintptr_t begin, end;
    bool writes;
};

struct gpu_overlap_launch {
    struct gpu_touch touches[GPU_MAX_TOUCHES];
    int n;
    bool is_waited_for;                       // by a later one
    uint64_t before[GPU_OVERLAP_WINDOW / 64]; // of the window: what it waits for, all ways
};

// The launches since the last one that all later ones wait for. Zero-initialised is empty.
struct gpu_overlap {
    int32_t first; // number of window[0]
    int n;
    struct gpu_overlap_launch window[GPU_OVERLAP_WINDOW];
};

// Appends the launch that comes next, with up to GPU_MAX_TOUCHES touches. Writes the numbers of
// those that it must wait for, without those that these wait for themselves, to out_before, which
// has room for GPU_OVERLAP_WINDOW, and returns how many. [stream]
int gpu_overlap_add(struct gpu_overlap *overlap, const struct gpu_touch *touches, int n,
                    int32_t *out_before);

#endif
