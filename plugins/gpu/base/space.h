// SPDX-License-Identifier: MIT
// Address ranges without memory behind them: where tensors of a device seem to lie. An access by
// the host faults instead of going somewhere.
#ifndef GPU_SPACE_H
#define GPU_SPACE_H

#include <stddef.h>

// NULL on failure. [any-thread]
void *gpu_space_reserve(size_t size);
// NULL is ignored. [any-thread]
void gpu_space_release(void *base, size_t size);

#endif
