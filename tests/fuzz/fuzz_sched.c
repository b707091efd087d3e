// SPDX-License-Identifier: MIT
// libFuzzer target: schedulers with devices that return anything.
#include <stdint.h>

#include "fuzz/inputs/sched_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    run_sched_input(data, size);
    return 0;
}
