// SPDX-License-Identifier: MIT
// A message of a program or a node (plugins/mpi/wire), and what the fuzzer and the replay test do
// with it.
#ifndef GGML_TESTS_WIRE_INPUT_H
#define GGML_TESTS_WIRE_INPUT_H

#include <stddef.h>

// The bytes as a message: aborts where one that is accepted has a tensor that reaches further than
// was checked, or one that is refused has no reason.
void run_wire_input(const unsigned char *data, size_t size);

#endif
