// SPDX-License-Identifier: MIT
// What is printed as JSON, made of the texts of strangers, and what the fuzzer and the replay test
// do with it.
#ifndef GGML_TESTS_JSON_INPUT_H
#define GGML_TESTS_JSON_INPUT_H

#include <stddef.h>

// The first byte says what is printed: the inventory of ggml-devices, the report of
// ggml-plugin-check, the placement report of a scheduler, or one text and number as ggml-bench
// prints them. The rest, cut at bytes of 0, are its texts and numbers, over and over. Aborts unless
// the output is a JSON document.
void run_json_input(const unsigned char *data, size_t size);

#endif
