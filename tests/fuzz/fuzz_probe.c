// SPDX-License-Identifier: MIT
// libFuzzer target: what a helper says.
#include "fuzz/inputs/probe_input.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    run_probe_input(data, size);
    return 0;
}
