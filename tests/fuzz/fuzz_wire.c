// SPDX-License-Identifier: MIT
// libFuzzer target: messages between a program and nodes of MPI.
#include <stdint.h>

#include "fuzz/inputs/wire_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    run_wire_input(data, size);
    return 0;
}
