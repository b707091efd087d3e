// SPDX-License-Identifier: MIT
// libFuzzer target: one of the texts, as TEXT_INPUT says.
#include "fuzz/inputs/text_input.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    TEXT_INPUT(data, size);
    return 0;
}
