// SPDX-License-Identifier: MIT
// Counts of what memory would do for a launch, kept by the memory checks.
#ifndef SIMT_TRAFFIC_H
#define SIMT_TRAFFIC_H

#include <stddef.h>
#include <stdint.h>

extern thread_local bool simt_traffic_is_counted;
// An access of a thread of the block; where: an address, or the offset in shared memory.
void simt_traffic_add(unsigned thread, const void *pc, uintptr_t where, size_t size, bool is_shared,
                      bool write);

#endif
