// SPDX-License-Identifier: MIT
// Decodes features from CPUID and XCR0 on x86 and from the auxiliary vector on AArch64. The tables
// name one bit for each feature; reading registers and decoding them are apart, for replay.
#include "machine/cpu_features.h"

#include <pthread.h>
#include <string.h>

// Register state that the operating system must save: bits of XCR0.
enum {
    STATE_NONE = 0,
    STATE_YMM = 0x6,
    STATE_ZMM = 0xe6,
    STATE_TILE = 0x60000,
};

// Registers of CPUID that hold the features' bits.
enum cpuid_word {
    LEAF_1_ECX,
    LEAF_7_EBX,
    LEAF_7_ECX,
    LEAF_7_EDX,
    LEAF_7_1_EAX,
    LEAF_EXTENDED_ECX,
    N_WORDS,
};

enum { BIT_OSXSAVE = 27 }; // of leaf 1's ECX: XGETBV may be executed

#define FEATURE(name) GGML_CPU_BIT(GGML_CPU_X86_64_##name)

// A feature counts only if the operating system saves its registers and the features that it needs
// are present. Rows are in an order where needed features come first.
static const struct feature_row {
    uint64_t feature;
    enum cpuid_word word;
    unsigned bit;
    uint64_t state;
    uint64_t needs;
} feature_rows[] = {
    {FEATURE(SSE3), LEAF_1_ECX, 0, STATE_NONE, 0},
    {FEATURE(SSSE3), LEAF_1_ECX, 9, STATE_NONE, 0},
    {FEATURE(SSE41), LEAF_1_ECX, 19, STATE_NONE, 0},
    {FEATURE(SSE42), LEAF_1_ECX, 20, STATE_NONE, 0},
    {FEATURE(POPCNT), LEAF_1_ECX, 23, STATE_NONE, 0},
    {FEATURE(MOVBE), LEAF_1_ECX, 22, STATE_NONE, 0},
    {FEATURE(LZCNT), LEAF_EXTENDED_ECX, 5, STATE_NONE, 0},
    {FEATURE(BMI1), LEAF_7_EBX, 3, STATE_NONE, 0},
    {FEATURE(BMI2), LEAF_7_EBX, 8, STATE_NONE, 0},
    {FEATURE(AVX), LEAF_1_ECX, 28, STATE_YMM, 0},
    {FEATURE(F16C), LEAF_1_ECX, 29, STATE_YMM, FEATURE(AVX)},
    {FEATURE(FMA), LEAF_1_ECX, 12, STATE_YMM, FEATURE(AVX)},
    {FEATURE(AVX2), LEAF_7_EBX, 5, STATE_YMM, FEATURE(AVX)},
    {FEATURE(AVX_VNNI), LEAF_7_1_EAX, 4, STATE_YMM, FEATURE(AVX2)},
    {FEATURE(AVX512F), LEAF_7_EBX, 16, STATE_ZMM, FEATURE(AVX2)},
    {FEATURE(AVX512CD), LEAF_7_EBX, 28, STATE_ZMM, FEATURE(AVX512F)},
    {FEATURE(AVX512BW), LEAF_7_EBX, 30, STATE_ZMM, FEATURE(AVX512F)},
    {FEATURE(AVX512DQ), LEAF_7_EBX, 17, STATE_ZMM, FEATURE(AVX512F)},
    {FEATURE(AVX512VL), LEAF_7_EBX, 31, STATE_ZMM, FEATURE(AVX512F)},
    {FEATURE(AVX512_VBMI), LEAF_7_ECX, 1, STATE_ZMM, FEATURE(AVX512F)},
    {FEATURE(AVX512_VNNI), LEAF_7_ECX, 11, STATE_ZMM, FEATURE(AVX512F)},
    {FEATURE(AVX512_BF16), LEAF_7_1_EAX, 5, STATE_ZMM, FEATURE(AVX512F)},
    {FEATURE(AVX512_FP16), LEAF_7_EDX, 23, STATE_ZMM, FEATURE(AVX512F)},
    {FEATURE(AMX_TILE), LEAF_7_EDX, 24, STATE_TILE, 0},
    {FEATURE(AMX_INT8), LEAF_7_EDX, 25, STATE_TILE, FEATURE(AMX_TILE)},
    {FEATURE(AMX_BF16), LEAF_7_EDX, 22, STATE_TILE, FEATURE(AMX_TILE)},
};

// Leaves that the processor doesn't have read as 0.
static void read_words(const struct cpuid_source *source, uint32_t words[N_WORDS]) {
    memset(words, 0, N_WORDS * sizeof(words[0]));
    const uint32_t last = source->leaf(source->context, 0, 0).eax;
    const uint32_t last_extended = source->leaf(source->context, 0x80000000u, 0).eax;
    if (last >= 1) words[LEAF_1_ECX] = source->leaf(source->context, 1, 0).ecx;
    if (last >= 7) {
        const struct cpuid_registers leaf_7 = source->leaf(source->context, 7, 0);
        words[LEAF_7_EBX] = leaf_7.ebx;
        words[LEAF_7_ECX] = leaf_7.ecx;
        words[LEAF_7_EDX] = leaf_7.edx;
        if (leaf_7.eax >= 1) words[LEAF_7_1_EAX] = source->leaf(source->context, 7, 1).eax;
    }
    // For an unknown leaf an old processor returns something else's registers.
    if (last_extended >= 0x80000001u && last_extended <= 0x8000ffffu) {
        words[LEAF_EXTENDED_ECX] = source->leaf(source->context, 0x80000001u, 0).ecx;
    }
}

uint64_t cpu_features_from_cpuid(const struct cpuid_source *source) {
    uint32_t words[N_WORDS];
    uint64_t features = 0;
    read_words(source, words);
    const bool has_xcr0 = words[LEAF_1_ECX] >> BIT_OSXSAVE & 1;
    uint64_t saved = has_xcr0 ? source->xcr0(source->context) : 0;
    // AMX needs a request per process; without support for that the tiles can't be used although
    // XCR0 has them.
    if ((saved & STATE_TILE) == STATE_TILE && !source->amx_grantable(source->context)) {
        saved &= ~(uint64_t)STATE_TILE;
    }
    for (size_t i = 0; i < sizeof(feature_rows) / sizeof(feature_rows[0]); ++i) {
        const struct feature_row *row = &feature_rows[i];
        const bool present = words[row->word] >> row->bit & 1;
        const bool usable = (saved & row->state) == row->state;
        if (present && usable && (features & row->needs) == row->needs) features |= row->feature;
    }
    return features;
}

// Bit numbers of HWCAP_* and HWCAP2_* of Linux, which don't change.
uint64_t cpu_features_from_hwcap(uint64_t hwcap, uint64_t hwcap2) {
    static const struct {
        unsigned bit;
        bool second;
        enum ggml_cpu_feature feature;
    } rows[] = {
        {1, false, GGML_CPU_AARCH64_ASIMD},    {10, false, GGML_CPU_AARCH64_FP16},
        {20, false, GGML_CPU_AARCH64_DOTPROD}, {13, true, GGML_CPU_AARCH64_I8MM},
        {14, true, GGML_CPU_AARCH64_BF16},     {22, false, GGML_CPU_AARCH64_SVE},
        {1, true, GGML_CPU_AARCH64_SVE2},      {23, true, GGML_CPU_AARCH64_SME},
    };
    uint64_t features = 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        const uint64_t word = rows[i].second ? hwcap2 : hwcap;
        if (word >> rows[i].bit & 1) features |= GGML_CPU_BIT(rows[i].feature);
    }
    return features;
}

static uint64_t detected;

static void detect(void) {
    struct cpuid_source source;
    detected = cpu_features_here_cpuid(&source) ? cpu_features_from_cpuid(&source)
                                                : cpu_features_here_other();
}

// Thread-safe; CPUID traps into the hypervisor in a virtual machine, some ten microseconds a leaf.
uint64_t cpu_features_detect(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, detect);
    return detected;
}
