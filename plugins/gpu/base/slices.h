// SPDX-License-Identifier: MIT
// Slices of time that a stream keeps for its reader (extension "ggml.profile"), and the host's
// clock that they are told by.
#ifndef GPU_SLICES_H
#define GPU_SLICES_H

#include "ggml-plugin.h"

// Of one stream, in the order of their time. Zero-initialised is off.
struct gpu_slices {
    struct ggml_profile_slice *all; // NULL: off
    uint64_t capacity;
    uint64_t n;
    uint64_t lost; // since they were read
    uint64_t tag;  // of graphs that are computed from now on
};

// CLOCK_MONOTONIC, on Windows the performance counter, in nanoseconds. [any-thread]
uint64_t gpu_clock_ns(void);
// Room for so many, which is kept until gpu_slices_close(). OUT_OF_MEMORY after telling why.
// [stream]
enum ggml_host_status gpu_slices_open(struct gpu_slices *slices, uint64_t capacity);
// Off, without memory. [stream]
void gpu_slices_close(struct gpu_slices *slices);
// Keeps a slice, or counts it as lost. [stream]
void gpu_slices_add(struct gpu_slices *slices, const struct ggml_profile_slice *slice);
// Moves up to max of the oldest to `out`; *out_lost is how many were lost since the last call.
// Returns how many. [stream]
uint64_t gpu_slices_read(struct gpu_slices *slices, struct ggml_profile_slice *out, uint64_t max,
                         uint64_t *out_lost);

#endif
