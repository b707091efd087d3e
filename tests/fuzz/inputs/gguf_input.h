// SPDX-License-Identifier: MIT
// What the fuzzer and the tests do with an input.
#ifndef GGML_TESTS_GGUF_INPUT_H
#define GGML_TESTS_GGUF_INPUT_H

#include <stdbool.h>
#include <stddef.h>

// Reads the bytes as a GGUF file, asks for everything in it and writes it again; aborts if an
// result breaks a contract. Whether it is a file.
bool run_gguf_input(const unsigned char *data, size_t size);

#endif
