// SPDX-License-Identifier: MIT
// What the fuzzer and the replay test do with an image that is to be mapped.
#ifndef GGML_TESTS_IMAGE_INPUT_H
#define GGML_TESTS_IMAGE_INPUT_H

#include <stddef.h>

#include "ggml-plugin.h"

// Asks whether the dynamic linker may have the bytes; aborts if the result breaks the contract
// of plugin_image_check(), or if an ELF image is accepted whose segments leave the file, overlap
// or wrap, or that wants an executable stack.
enum ggml_host_status run_image_input(const unsigned char *data, size_t size);

#endif
