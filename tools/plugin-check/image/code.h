// SPDX-License-Identifier: MIT
// What the check of a plugin's code needs to know of a machine's instructions.
#ifndef PLUGIN_CHECK_CODE_H
#define PLUGIN_CHECK_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct code_step {
    size_t size;      // in bytes; 0: not decoded, which ends
    uint64_t feature; // GGML_CPU_BIT that it needs, or 0
    uint64_t target;  // of a direct jump or call, or 0
    bool ends;        // the next instruction does not follow
    char name[48];
};

struct code_machine {
    uint32_t machine;                            // GGML_MACHINE_…
    uint16_t elf_machine;                        // EM_…
    uint32_t elf_relative;                       // relocation of a pointer into the file itself
    const char *no_decoder;                      // why there is none, or NULL
    bool (*open)(void);                          // false: no memory. [init]
    uint64_t (*with_implied)(uint64_t features); // adds what a CPU with these has too
    // Decodes what begins at the address. [init]
    void (*decode)(const uint8_t *bytes, size_t size, uint64_t address, struct code_step *out_step);
};

extern const struct code_machine code_x86_64;
extern const struct code_machine code_aarch64;

#endif
