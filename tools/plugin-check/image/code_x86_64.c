// SPDX-License-Identifier: MIT
// Instructions of x86-64, decoded by Capstone.
#include <capstone/capstone.h>
#include <elf.h>
#include <stdio.h>

#include "code.h"
#include "ggml-plugin.h"

#define BIT(name) GGML_CPU_BIT(GGML_CPU_X86_64_##name)

// What a CPU with the feature has too.
static const struct {
    uint64_t feature;
    uint64_t others;
} implied[] = {
    {BIT(AMX_INT8) | BIT(AMX_BF16), BIT(AMX_TILE)},
    {BIT(AVX512CD) | BIT(AVX512BW) | BIT(AVX512DQ) | BIT(AVX512VL) | BIT(AVX512_VBMI) |
         BIT(AVX512_VNNI) | BIT(AVX512_BF16) | BIT(AVX512_FP16),
     BIT(AVX512F)},
    {BIT(AVX512F), BIT(AVX2) | BIT(FMA) | BIT(F16C)},
    {BIT(AVX_VNNI), BIT(AVX2)},
    {BIT(AVX2) | BIT(FMA) | BIT(F16C), BIT(AVX)},
    {BIT(AVX), BIT(SSE42)},
    {BIT(SSE42), BIT(SSE41) | BIT(POPCNT)},
    {BIT(SSE41), BIT(SSSE3)},
    {BIT(SSSE3), BIT(SSE3)},
};

static uint64_t with_implied(uint64_t features) {
    for (size_t i = 0; i < sizeof(implied) / sizeof(implied[0]); ++i) {
        if (features & implied[i].feature) features |= implied[i].others;
    }
    return features;
}

static const struct {
    uint8_t group;
    uint64_t feature;
} groups[] = {
    {X86_GRP_AVX512, BIT(AVX512F)}, {X86_GRP_CDI, BIT(AVX512CD)}, {X86_GRP_BWI, BIT(AVX512BW)},
    {X86_GRP_DQI, BIT(AVX512DQ)},   {X86_GRP_VLX, BIT(AVX512VL)}, {X86_GRP_AVX2, BIT(AVX2)},
    {X86_GRP_FMA, BIT(FMA)},        {X86_GRP_F16C, BIT(F16C)},    {X86_GRP_AVX, BIT(AVX)},
    {X86_GRP_SSE42, BIT(SSE42)},    {X86_GRP_SSE41, BIT(SSE41)},  {X86_GRP_SSSE3, BIT(SSSE3)},
    {X86_GRP_SSE3, BIT(SSE3)},      {X86_GRP_BMI2, BIT(BMI2)},    {X86_GRP_BMI, BIT(BMI1)},
};

static uint64_t needed_by(const cs_insn *insn) {
    switch (insn->id) {
    case X86_INS_TZCNT: return 0; // older CPUs take it for BSF, as compilers mean it
    case X86_INS_LZCNT: return BIT(LZCNT);
    case X86_INS_POPCNT: return BIT(POPCNT);
    case X86_INS_MOVBE: return BIT(MOVBE);
    default: break;
    }
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); ++i) {
        for (int j = 0; j < insn->detail->groups_count; ++j) {
            if (insn->detail->groups[j] == groups[i].group) return groups[i].feature;
        }
    }
    return 0;
}

// What the decoder does not know: the prefix tells the least that it needs.
static uint64_t needed_by_prefix(uint8_t first) {
    return first == 0x62 ? BIT(AVX512F) : first == 0xc4 || first == 0xc5 ? BIT(AVX) : 0;
}

static csh decoder;
static cs_insn *insn;

static bool open_decoder(void) {
    if (cs_open(CS_ARCH_X86, CS_MODE_64, &decoder) != CS_ERR_OK) return false;
    if (cs_option(decoder, CS_OPT_DETAIL, CS_OPT_ON) != CS_ERR_OK) return false;
    insn = cs_malloc(decoder);
    return insn != NULL;
}

static bool in_group(uint8_t group) {
    for (int i = 0; i < insn->detail->groups_count; ++i) {
        if (insn->detail->groups[i] == group) return true;
    }
    return false;
}

static void decode(const uint8_t *bytes, size_t size, uint64_t address,
                   struct code_step *out_step) {
    const uint8_t prefix = *bytes;
    const size_t before = size;
    *out_step = (struct code_step){.name = "an instruction"};
    if (!cs_disasm_iter(decoder, &bytes, &size, &address, insn)) {
        out_step->feature = needed_by_prefix(prefix);
        return;
    }
    const cs_x86 *x86 = &insn->detail->x86;
    const bool leads = in_group(X86_GRP_JUMP) || in_group(X86_GRP_CALL);
    out_step->size = before - size;
    out_step->feature = needed_by(insn);
    if (leads && x86->op_count == 1 && x86->operands[0].type == X86_OP_IMM)
        out_step->target = (uint64_t)x86->operands[0].imm;
    out_step->ends = insn->id == X86_INS_JMP || insn->id == X86_INS_UD2 ||
                     insn->id == X86_INS_HLT || in_group(X86_GRP_RET);
    snprintf(out_step->name, sizeof(out_step->name), "%s", insn->mnemonic);
}

const struct code_machine code_x86_64 = {
    .machine = GGML_MACHINE_X86_64,
    .elf_machine = EM_X86_64,
    .elf_relative = R_X86_64_RELATIVE,
    .open = open_decoder,
    .with_implied = with_implied,
    .decode = decode,
};
