// SPDX-License-Identifier: MIT
// Hostile devices under the scheduler, and what the fuzzer and the replay test do with them.
#ifndef GGML_TESTS_SCHED_INPUT_H
#define GGML_TESTS_SCHED_INPUT_H

#include <stddef.h>

// The bytes are what the devices return, one after the other, and the graphs that are computed.
// Aborts if a failure has no message, or an outcome is none that there is.
void run_sched_input(const unsigned char *data, size_t size);

#endif
