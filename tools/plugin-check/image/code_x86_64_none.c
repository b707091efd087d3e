// SPDX-License-Identifier: MIT
// Where there is nothing to decode instructions of x86-64 with.
#include <elf.h>

#include "code.h"
#include "ggml-plugin.h"

const struct code_machine code_x86_64 = {
    .machine = GGML_MACHINE_X86_64,
    .elf_machine = EM_X86_64,
    .no_decoder = "built without Capstone",
};
