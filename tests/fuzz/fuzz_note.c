// SPDX-License-Identifier: MIT
// libFuzzer target: the note reader.
#include "fuzz/inputs/note_input.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    run_note_input(data, size);
    return 0;
}
