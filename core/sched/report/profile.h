// SPDX-License-Identifier: MIT
// A recording that has ended, as the application reads it.
#ifndef GGML_SCHED_PROFILE_H
#define GGML_SCHED_PROFILE_H

#include "base/data/arena.h"
#include "sched/record/record.h"

// A recording that has ended, which belongs to the application.
struct ggml_sched_profile {
    struct ggml_sched_slice *slices; // by the time at which they begin
    size_t n_slices;
    struct profile_tensor *tensors; // that slices point to
    struct arena arena;             // of the names of devices
    const char **devices;           // by stream
    int n_streams;
    uint64_t lost; // slices
    char *text;    // written when first asked for
    char *json;
};

#endif
