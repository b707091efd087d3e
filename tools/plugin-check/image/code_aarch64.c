// SPDX-License-Identifier: MIT
// Recognises instructions of AArch64 that need an extension or jump. Every instruction has four
// bytes.
#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "code.h"
#include "ggml-plugin.h"

#define BIT(name) GGML_CPU_BIT(GGML_CPU_AARCH64_##name)

// The first row that matches names the extension. Floating point and vectors are part of every
// processor: they need none.
static const struct {
    uint32_t mask;
    uint32_t value;
    uint64_t feature;
    const char *name;
} rows[] = {
    {0x9fe0fc00, 0x0e809400, BIT(DOTPROD), "sdot or udot"},
    {0x9fc0f400, 0x0f80e000, BIT(DOTPROD), "sdot or udot"},
    {0xbfe0fc00, 0x0e809c00, BIT(I8MM), "usdot"},
    {0xbfc0f400, 0x0f00f000, BIT(I8MM), "sudot"},
    {0xbfc0f400, 0x0f80f000, BIT(I8MM), "usdot"},
    {0xdfe0f400, 0x4e80a400, BIT(I8MM), "smmla, ummla or usmmla"},
    {0xbfe0fc00, 0x2e40fc00, BIT(BF16), "bfdot"},
    {0xbfc0f400, 0x0f40f000, BIT(BF16), "bfdot"},
    {0xffe0fc00, 0x6e40ec00, BIT(BF16), "bfmmla"},
    {0xbfe0fc00, 0x2ec0fc00, BIT(BF16), "bfmlal"},
    {0xbfc0f400, 0x0fc0f000, BIT(BF16), "bfmlal"},
    {0xbffffc00, 0x0ea16800, BIT(BF16), "bfcvtn"},
    {0xfffffc00, 0x1e634000, BIT(BF16), "bfcvt"},
    {0xfffffc00, 0x1ee24000, 0, "fcvt"}, // from half to single and double precision
    {0xfffffc00, 0x1ee2c000, 0, "fcvt"},
    {0x7fe00000, 0x1ee00000, BIT(FP16), "an instruction for half precision"},
    {0x7fe00000, 0x1ec00000, BIT(FP16), "a conversion of half precision"},
    {0xffc00000, 0x1fc00000, BIT(FP16), "fmadd for half precision"},
    {0x9f60c400, 0x0e400400, BIT(FP16), "a vector instruction for half precision"},
    {0x9f7e0c00, 0x0e780800, BIT(FP16), "a vector instruction for half precision"},
    {0xbf7fcc00, 0x0e30c800, BIT(FP16), "a reduction in half precision"},
    {0xdf60c400, 0x5e400400, BIT(FP16), "an instruction for half precision"},
    {0xdf7e0c00, 0x5e780800, BIT(FP16), "an instruction for half precision"},
    {0xdfc03400, 0x5f001000, BIT(FP16), "a product with an element in half precision"},
    {0x9fc03400, 0x0f001000, BIT(FP16), "a product with an element in half precision"},
    {0xbff8fc00, 0x0f00fc00, BIT(FP16), "fmov of half precision"},
    {0x1e000000, 0x04000000, BIT(SVE), "an instruction of SVE"},
    {0x9e000000, 0x80000000, BIT(SME), "an instruction of SME"},
};

// Direct jumps and calls: the offset is counted in instructions.
static const struct {
    uint32_t mask;
    uint32_t value;
    unsigned shift; // of the offset
    unsigned bits;
    bool ends;
} jumps[] = {
    {0xfc000000, 0x14000000, 0, 26, true},  // b
    {0xfc000000, 0x94000000, 0, 26, false}, // bl
    {0xff000000, 0x54000000, 5, 19, false}, // b.cond
    {0x7e000000, 0x34000000, 5, 19, false}, // cbz, cbnz
    {0x7e000000, 0x36000000, 5, 14, false}, // tbz, tbnz
};

static bool open_decoder(void) {
    return true;
}

static uint64_t with_implied(uint64_t features) {
    return features & BIT(SVE2) ? features | BIT(SVE) : features;
}

static bool ends(uint32_t word) {
    const uint32_t kind = word >> 21 & 15;
    if ((word & 0xfe000000) == 0xd6000000) return kind != 1 && kind != 9; // all but blr
    return (word & 0xffff0000) == 0 || (word & 0xffe0001f) == 0xd4200000; // udf, brk
}

static void decode(const uint8_t *bytes, size_t size, uint64_t address,
                   struct code_step *out_step) {
    uint32_t word;
    *out_step = (struct code_step){.size = sizeof(word)};
    if (size < sizeof(word)) {
        out_step->size = 0;
        return;
    }
    memcpy(&word, bytes, sizeof(word));
    out_step->ends = ends(word);
    for (size_t i = 0; i < sizeof(jumps) / sizeof(jumps[0]); ++i) {
        if ((word & jumps[i].mask) != jumps[i].value) continue;
        const uint64_t raw = (uint64_t)word << (64 - jumps[i].shift - jumps[i].bits);
        const int64_t offset = (int64_t)raw >> (64 - jumps[i].bits);
        out_step->target = address + (uint64_t)offset * sizeof(word);
        out_step->ends = jumps[i].ends;
        return;
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        if ((word & rows[i].mask) != rows[i].value) continue;
        out_step->feature = rows[i].feature;
        snprintf(out_step->name, sizeof(out_step->name), "%s", rows[i].name);
        return;
    }
}

const struct code_machine code_aarch64 = {
    .machine = GGML_MACHINE_AARCH64,
    .elf_machine = EM_AARCH64,
    .elf_relative = R_AARCH64_RELATIVE,
    .open = open_decoder,
    .with_implied = with_implied,
    .decode = decode,
};
