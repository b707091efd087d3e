// SPDX-License-Identifier: MIT
// Random calls of builders with hostile arguments; what is not refused is computed on the CPU.
#ifndef GGML_TESTS_BUILD_INPUT_H
#define GGML_TESTS_BUILD_INPUT_H

#include <stdbool.h>
#include <stddef.h>

// Bytes that decide everything about one graph; those beyond are not looked at.
enum { BUILD_INPUT_BYTES = 800 };

// Returns whether the graph could be computed. Aborts if a failure has no message.
bool run_build_input(const unsigned char *data, size_t size);

#endif
