// SPDX-License-Identifier: MIT
// File descriptors that are said to be memory of a driver.
#ifndef GPU_BASE_FILES_H
#define GPU_BASE_FILES_H

#include <stdbool.h>
#include <stdint.h>

// Whether it may be one of that much memory, as far as can be seen from outside: drivers may crash
// on what is none. [any-thread]
bool gpu_file_may_be_memory(int fd, uint64_t bytes);

#endif
