// SPDX-License-Identifier: MIT
// When each step of a plan was computed (extension "ggml.profile").
#ifndef CPU_PROFILE_H
#define CPU_PROFILE_H

#include "ggml-plugin.h"

struct cpu_step;

// Of one stream. Zero-initialised is off.
struct cpu_profile {
    struct ggml_profile_slice *slices; // NULL: off
    uint64_t capacity;
    uint64_t n;
    uint64_t lost;
    uint64_t tag;
    const struct cpu_step *step; // whose slice is open, or NULL
    uint64_t begin_ns;           // of that slice
};

extern const struct ggml_extension_profile cpu_profile_extension;

// Ends the open slice and begins that of the step, with one look at the clock. [stream]
void cpu_profile_step(struct cpu_profile *profile, const struct cpu_step *step);
// Ends the open slice, if there is one. [stream]
void cpu_profile_stop(struct cpu_profile *profile);
// Off, without memory. [stream]
void cpu_profile_free(struct cpu_profile *profile);

#endif
