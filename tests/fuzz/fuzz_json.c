// SPDX-License-Identifier: MIT
// libFuzzer target: whatever strangers call things, what is printed is JSON.
#include <stdint.h>

#include "fuzz/inputs/json_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    run_json_input(data, size);
    return 0;
}
