// SPDX-License-Identifier: MIT
// Recorded processors are replayed; the one that runs the test is compared with what its system
// says.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ggml-host.h"
#include "machine/cpu_features.h"

struct recorded_leaf {
    uint32_t leaf;
    uint32_t subleaf;
    struct cpuid_registers registers;
};

struct recorded_cpu {
    struct recorded_leaf leaves[8];
    uint64_t xcr0;
    bool amx_grantable;
};

static struct cpuid_registers replay_leaf(const void *context, uint32_t leaf, uint32_t subleaf) {
    const struct recorded_cpu *cpu = context;
    const struct recorded_leaf *last = NULL;
    for (size_t i = 0; i < 8; ++i) {
        const struct recorded_leaf *row = &cpu->leaves[i];
        if (row->leaf == leaf && row->subleaf == subleaf) return row->registers;
        if (row->leaf < 0x80000000u && row->registers.ecx != 0) last = row;
    }
    return last->registers; // as Intel's do beyond the maximum
}

static uint64_t replay_xcr0(const void *context) {
    return ((const struct recorded_cpu *)context)->xcr0;
}

static bool replay_amx(const void *context) {
    return ((const struct recorded_cpu *)context)->amx_grantable;
}

static uint64_t replay(const struct recorded_cpu *cpu) {
    const struct cpuid_source source = {replay_leaf, replay_xcr0, replay_amx, cpu};
    return cpu_features_from_cpuid(&source);
}

// Core i7-8650U: AVX2, no AVX-512.
static const struct recorded_cpu avx2_laptop = {
    {{0, 0, {0x16, 0x756e6547, 0x6c65746e, 0x49656e69}},
     {1, 0, {0x000806ea, 0x00100800, 0x7ffafbbf, 0xbfebfbff}},
     {7, 0, {0x0, 0x029c67af, 0x0, 0x9c002400}},
     {0x80000000u, 0, {0x80000008u, 0, 0, 0}},
     {0x80000001u, 0, {0, 0, 0x121, 0x2c100800}}},
    0x7,
    false};

// Xeon of the Sapphire Rapids generation.
static const struct recorded_cpu amx_server = {
    {{0, 0, {0x20, 0x756e6547, 0x6c65746e, 0x49656e69}},
     {1, 0, {0x000806f8, 0x00400800, 0x7ffefbff, 0xbfebfbff}},
     {7, 0, {0x2, 0xf3bfbffb, 0xfb417ffe, 0xffdd4432}},
     {7, 1, {0x00001c30, 0, 0, 0}},
     {0x80000000u, 0, {0x80000008u, 0, 0, 0}},
     {0x80000001u, 0, {0, 0, 0x121, 0x2c100800}}},
    0x602e7,
    true};

// Core 2 Quad Q9550: SSE4.1, before AVX and before leaf 7 said anything.
static const struct recorded_cpu before_avx = {
    {{0, 0, {0xd, 0x756e6547, 0x6c65746e, 0x49656e69}},
     {1, 0, {0x0001067a, 0x00040800, 0x0408e3bd, 0xbfebfbff}},
     {7, 0, {0, 0, 0, 0}},
     {0x80000000u, 0, {0x80000008u, 0, 0, 0}},
     {0x80000001u, 0, {0, 0, 0x1, 0x20100800}}},
    0x3,
    false};

#define BIT(name) GGML_CPU_BIT(GGML_CPU_X86_64_##name)

static const uint64_t sse_bits = BIT(SSE3) | BIT(SSSE3) | BIT(SSE41) | BIT(SSE42) | BIT(POPCNT);
static const uint64_t v3_bits =
    BIT(AVX) | BIT(F16C) | BIT(FMA) | BIT(BMI1) | BIT(BMI2) | BIT(LZCNT) | BIT(MOVBE) | BIT(AVX2);
static const uint64_t zmm_bits = BIT(AVX512F) | BIT(AVX512CD) | BIT(AVX512BW) | BIT(AVX512DQ) |
                                 BIT(AVX512VL) | BIT(AVX512_VBMI) | BIT(AVX512_VNNI) |
                                 BIT(AVX512_BF16) | BIT(AVX512_FP16);
static const uint64_t amx_bits = BIT(AMX_TILE) | BIT(AMX_INT8) | BIT(AMX_BF16);

static void test_avx2_laptop(void **state) {
    (void)state;
    assert_int_equal(replay(&avx2_laptop), sse_bits | v3_bits);
}

static void test_server_with_everything(void **state) {
    (void)state;
    assert_int_equal(replay(&amx_server), sse_bits | v3_bits | zmm_bits | amx_bits | BIT(AVX_VNNI));
}

static void test_processor_before_avx(void **state) {
    (void)state;
    assert_int_equal(replay(&before_avx), BIT(SSE3) | BIT(SSSE3) | BIT(SSE41));
}

static void test_registers_that_the_system_does_not_save_do_not_count(void **state) {
    (void)state;
    struct recorded_cpu cpu = amx_server;
    cpu.xcr0 = 0x7; // no mask and ZMM registers, no tiles
    assert_int_equal(replay(&cpu), sse_bits | v3_bits | BIT(AVX_VNNI));
    cpu.xcr0 = 0x67; // upper 16 ZMM registers missing
    assert_int_equal(replay(&cpu) & zmm_bits, 0);
    cpu.xcr0 = 0x3; // no YMM registers
    assert_int_equal(replay(&cpu), sse_bits | BIT(BMI1) | BIT(BMI2) | BIT(LZCNT) | BIT(MOVBE));
    cpu.xcr0 = 0x200e7; // tile configuration without tile data
    assert_int_equal(replay(&cpu) & amx_bits, 0);
    cpu.xcr0 = 0x602e7;
    cpu.leaves[1].registers.ecx &= ~(UINT32_C(1) << 27); // OSXSAVE off: XCR0 can't even be read
    assert_int_equal(replay(&cpu), sse_bits | BIT(BMI1) | BIT(BMI2) | BIT(LZCNT) | BIT(MOVBE));
}

static void test_tiles_count_only_if_they_are_handed_out(void **state) {
    (void)state;
    struct recorded_cpu cpu = amx_server;
    cpu.amx_grantable = false;
    assert_int_equal(replay(&cpu), sse_bits | v3_bits | zmm_bits | BIT(AVX_VNNI));
}

static void test_leaves_beyond_the_maximum_are_not_believed(void **state) {
    (void)state;
    struct recorded_cpu cpu = amx_server;
    cpu.leaves[0].registers.eax = 2; // firmware that limits CPUID
    assert_int_equal(replay(&cpu) & (BIT(AVX2) | BIT(BMI1) | zmm_bits), 0);
    assert_int_not_equal(replay(&cpu) & BIT(FMA), 0);
    cpu.leaves[4].registers.eax = 0x80000000u;
    assert_int_equal(replay(&cpu) & BIT(LZCNT), 0);
}

static void test_aarch64_words(void **state) {
    (void)state;
    const uint64_t base = GGML_CPU_BIT(GGML_CPU_AARCH64_ASIMD);
    assert_int_equal(cpu_features_from_hwcap(0, 0), 0);
    assert_int_equal(cpu_features_from_hwcap(0xff, 0), base); // Cortex-A72
    // Neoverse V1: SVE, I8MM and BF16, no SVE2.
    assert_int_equal(cpu_features_from_hwcap(0xdffffbff | 1u << 10, 0x1fb40 & ~0x2u),
                     base | GGML_CPU_BIT(GGML_CPU_AARCH64_FP16) |
                         GGML_CPU_BIT(GGML_CPU_AARCH64_DOTPROD) |
                         GGML_CPU_BIT(GGML_CPU_AARCH64_I8MM) | GGML_CPU_BIT(GGML_CPU_AARCH64_BF16) |
                         GGML_CPU_BIT(GGML_CPU_AARCH64_SVE));
}

#if defined(__x86_64__) && defined(__linux__)
static bool has_flag(const char *flags, const char *wanted) {
    const size_t length = strlen(wanted);
    for (const char *p = flags; (p = strstr(p, wanted)); p += length) {
        if (p[-1] == ' ' && (p[length] == ' ' || p[length] == '\n')) return true;
    }
    return false;
}

static bool read_flags(char *out_flags, int size) {
    bool found = false;
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && !found && fgets(out_flags, size, file)) {
        found = strncmp(out_flags, "flags\t", 6) == 0;
    }
    if (file) fclose(file);
    return found;
}

static void test_this_machine_against_the_kernel(void **state) {
    (void)state;
    static const struct {
        uint64_t feature;
        const char *flag;
    } rows[] = {
        {BIT(SSE3), "pni"},
        {BIT(SSSE3), "ssse3"},
        {BIT(SSE41), "sse4_1"},
        {BIT(SSE42), "sse4_2"},
        {BIT(POPCNT), "popcnt"},
        {BIT(AVX), "avx"},
        {BIT(F16C), "f16c"},
        {BIT(FMA), "fma"},
        {BIT(BMI1), "bmi1"},
        {BIT(BMI2), "bmi2"},
        {BIT(LZCNT), "abm"},
        {BIT(MOVBE), "movbe"},
        {BIT(AVX2), "avx2"},
        {BIT(AVX512F), "avx512f"},
        {BIT(AVX512CD), "avx512cd"},
        {BIT(AVX512BW), "avx512bw"},
        {BIT(AVX512DQ), "avx512dq"},
        {BIT(AVX512VL), "avx512vl"},
        {BIT(AVX512_VBMI), "avx512vbmi"},
        {BIT(AVX512_VNNI), "avx512_vnni"},
        {BIT(AVX512_BF16), "avx512_bf16"},
        {BIT(AVX512_FP16), "avx512_fp16"},
        {BIT(AVX_VNNI), "avx_vnni"},
    };
    static char flags[16384];
    if (!read_flags(flags, sizeof(flags))) return; // the system does not tell
    const uint64_t features = ggml_host_cpu_features();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        const bool found = (features & rows[i].feature) != 0,
                   listed = has_flag(flags, rows[i].flag);
        print_message("# %s\n", rows[i].flag);
        // Some hypervisors give the kernel fewer features than the CPUID instruction of programs.
        if (found && !listed && has_flag(flags, "hypervisor")) continue;
        assert_int_equal(found, listed);
    }
    // The kernel shows tiles even where it does not hand them out.
    if (features & BIT(AMX_TILE)) assert_true(has_flag(flags, "amx_tile"));
}
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>

enum { HWCAP_ID_REGISTERS = 1 << 11 };

#define ID_REGISTER(name, encoding)                                                                \
    static uint64_t name(void) {                                                                   \
        uint64_t value;                                                                            \
        __asm__("mrs %0, " encoding : "=r"(value));                                                \
        return value;                                                                              \
    }
ID_REGISTER(id_aa64pfr0, "s3_0_c0_c4_0")
ID_REGISTER(id_aa64pfr1, "s3_0_c0_c4_1")
ID_REGISTER(id_aa64zfr0, "s3_0_c0_c4_4")
ID_REGISTER(id_aa64isar0, "s3_0_c0_c6_0")
ID_REGISTER(id_aa64isar1, "s3_0_c0_c6_1")

// The kernel lets programs read what it allows of the registers that name the processor's features.
static void test_this_machine_against_the_kernel(void **state) {
    (void)state;
    static const struct {
        enum ggml_cpu_feature feature;
        uint64_t (*read)(void);
        unsigned shift;
        int64_t least; // of a signed field
    } rows[] = {
        {GGML_CPU_AARCH64_ASIMD, id_aa64pfr0, 20, 0},
        {GGML_CPU_AARCH64_FP16, id_aa64pfr0, 20, 1},
        {GGML_CPU_AARCH64_DOTPROD, id_aa64isar0, 44, 1},
        {GGML_CPU_AARCH64_I8MM, id_aa64isar1, 52, 1},
        {GGML_CPU_AARCH64_BF16, id_aa64isar1, 44, 1},
        {GGML_CPU_AARCH64_SVE, id_aa64pfr0, 32, 1},
        {GGML_CPU_AARCH64_SVE2, id_aa64zfr0, 0, 1},
        {GGML_CPU_AARCH64_SME, id_aa64pfr1, 24, 1},
    };
    if (!(getauxval(AT_HWCAP) & HWCAP_ID_REGISTERS)) return;
    const uint64_t features = ggml_host_cpu_features();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        const int64_t field = (int64_t)(rows[i].read() << (60 - rows[i].shift)) >> 60;
        print_message("# %s: %d\n", ggml_host_cpu_feature_name(rows[i].feature), (int)field);
        assert_int_equal(features >> rows[i].feature & 1, field >= rows[i].least);
    }
}
#else
static void test_this_machine_against_the_kernel(void **state) {
    (void)state;
}
#endif

static void test_names(void **state) {
    (void)state;
    for (unsigned bit = 0; bit < 64; ++bit) {
        const bool known = ggml_host_cpu_feature_name(bit) != NULL;
        if (ggml_host_cpu_features() >> bit & 1) assert_true(known);
    }
    assert_null(ggml_host_cpu_feature_name(64));
    assert_null(ggml_host_cpu_feature_name(UINT32_MAX));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_avx2_laptop),
        cmocka_unit_test(test_server_with_everything),
        cmocka_unit_test(test_processor_before_avx),
        cmocka_unit_test(test_registers_that_the_system_does_not_save_do_not_count),
        cmocka_unit_test(test_tiles_count_only_if_they_are_handed_out),
        cmocka_unit_test(test_leaves_beyond_the_maximum_are_not_believed),
        cmocka_unit_test(test_aarch64_words),
        cmocka_unit_test(test_this_machine_against_the_kernel),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
