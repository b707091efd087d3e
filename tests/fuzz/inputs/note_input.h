// SPDX-License-Identifier: MIT
// What the fuzzer and the replay test do with an input.
#ifndef GGML_TESTS_NOTE_INPUT_H
#define GGML_TESTS_NOTE_INPUT_H

#include <stddef.h>

#include "ggml-plugin.h"

// Parses the bytes as a plugin; aborts if the result breaks the reader's contract.
enum ggml_host_status run_note_input(const unsigned char *data, size_t size);

#endif
