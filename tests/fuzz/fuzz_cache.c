// SPDX-License-Identifier: MIT
// libFuzzer target: an entry of the probe cache.
#include "fuzz/inputs/probe_input.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    run_cache_input(data, size);
    return 0;
}
