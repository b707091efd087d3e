// SPDX-License-Identifier: MIT
// The machine as far as this process may use it, and binding threads to it. Discovered when first
// asked for, which takes milliseconds; affinity and quota are those of that moment.
#ifndef GGML_MACHINE_TOPOLOGY_H
#define GGML_MACHINE_TOPOLOGY_H

#include <stddef.h>

#include "ggml-plugin.h"

// out->size is set by the caller and returned as the number of bytes that were filled, so that a
// caller that knows more members sees which are there. INVALID_ARGUMENT, UNSUPPORTED or
// OUT_OF_MEMORY when the machine can't be discovered. [any-thread]
enum ggml_host_status topology_get(struct ggml_host_topology *out);

// Binds the calling thread as worker `index` of `count`: up to the number of performance cores they
// are spread over these, beyond it the other cores follow and then all start again. A worker gets a
// whole core with its hardware threads. With count 0 the thread may use everything that the process
// may. INVALID_ARGUMENT (index >= count), UNSUPPORTED where the system can't bind, FAILED.
// [any-thread]
enum ggml_host_status topology_bind_thread(uint32_t index, uint32_t count);

// Binds the calling thread to logical CPUs: bit i of mask[i / 64] is CPU i. INVALID_ARGUMENT if
// none of them may be used here. [any-thread]
enum ggml_host_status topology_bind_mask(const uint64_t *mask, size_t n_words);

#endif
