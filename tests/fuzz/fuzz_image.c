// SPDX-License-Identifier: MIT
// libFuzzer target: program headers and tables that the dynamic linker would follow.
#include "fuzz/inputs/image_input.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    run_image_input(data, size);
    return 0;
}
