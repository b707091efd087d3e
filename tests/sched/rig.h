// SPDX-License-Identifier: MIT
// A generated transformer over several virtual devices and the CPU, and the CPU alone to compare
// with.
#ifndef GGML_TESTS_SCHED_RIG_H
#define GGML_TESTS_SCHED_RIG_H

#include "ggml-host.h"
#include "support/transformer.h"
#include "virtual_host.h"

enum { RIG_MAX_DEVICES = 64 };

struct rig {
    struct virtual_host host;
    struct virtual_config config; // as configured on all devices
    int n_devices;
    int embedding_device;                        // the last one, or with pipelining the first
    ggml_backend_t streams[RIG_MAX_DEVICES + 1]; // the CPU's last
    struct transformer *model;                   // layers spread over the devices
    struct transformer *reference;               // all on the CPU
    ggml_backend_sched_t sched;
};

// The small model that most tests use.
extern const struct transformer_shape rig_shape;

// Ends the test on failure. change (NULL: nothing) adjusts the devices before streams are made.
void rig_open(struct rig *rig, int n_devices, const struct transformer_shape *shape,
              void (*change)(struct virtual_config *config), bool parallel);
// Asserts that no device saw a rule broken.
void rig_close(struct rig *rig);

// Logits of the same tokens on the CPU alone; the caller frees them.
float *rig_reference(struct rig *rig, int n_tokens, int n_past, uint64_t seed);
// Logits through the scheduler: reset, build, allocate, compute. NULL if that failed.
float *rig_run(struct rig *rig, int n_tokens, int n_past, uint64_t seed);
// Asserts that both agree bit for bit.
void rig_check(struct rig *rig, int n_tokens, int n_past, uint64_t seed);

#endif
