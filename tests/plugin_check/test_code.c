// SPDX-License-Identifier: MIT
// What ggml-plugin-check makes of AArch64's instructions, as an assembler writes them. Runs on any
// machine.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "code.h"
#include "ggml-plugin.h"

#define BIT(name) GGML_CPU_BIT(GGML_CPU_AARCH64_##name)

static struct code_step decode(uint32_t word) {
    const uint8_t bytes[] = {(uint8_t)word, (uint8_t)(word >> 8), (uint8_t)(word >> 16),
                             (uint8_t)(word >> 24)};
    struct code_step step;
    code_aarch64.decode(bytes, sizeof(bytes), 0x1000, &step);
    return step;
}

static void test_extensions(void **state) {
    (void)state;
    static const struct {
        uint32_t word;
        uint64_t feature;
    } rows[] = {
        {0x4e829420, BIT(DOTPROD)}, // sdot v0.4s, v1.16b, v2.16b
        {0x2fa2e020, BIT(DOTPROD)}, // udot v0.2s, v1.8b, v2.4b[1]
        {0x4e829c20, BIT(I8MM)},    // usdot v0.4s, v1.16b, v2.16b
        {0x4f22f820, BIT(I8MM)},    // sudot v0.4s, v1.16b, v2.4b[3]
        {0x4fa2f820, BIT(I8MM)},    // usdot v0.4s, v1.16b, v2.4b[3]
        {0x4e82a420, BIT(I8MM)},    // smmla v0.4s, v1.16b, v2.16b
        {0x4e82ac20, BIT(I8MM)},    // usmmla v0.4s, v1.16b, v2.16b
        {0x6e42fc20, BIT(BF16)},    // bfdot v0.4s, v1.8h, v2.8h
        {0x4f62f020, BIT(BF16)},    // bfdot v0.4s, v1.8h, v2.2h[1]
        {0x6e42ec20, BIT(BF16)},    // bfmmla v0.4s, v1.8h, v2.8h
        {0x2ec2fc20, BIT(BF16)},    // bfmlalb v0.4s, v1.8h, v2.8h
        {0x4fd2f020, BIT(BF16)},    // bfmlalt v0.4s, v1.8h, v2.h[1]
        {0x0ea16820, BIT(BF16)},    // bfcvtn v0.4h, v1.4s
        {0x1e634020, BIT(BF16)},    // bfcvt h0, s1
        {0x1ee22820, BIT(FP16)},    // fadd h0, h1, h2
        {0x1fc20c20, BIT(FP16)},    // fmadd h0, h1, h2, h3
        {0x1ef80020, BIT(FP16)},    // fcvtzs w0, h1
        {0x4e421420, BIT(FP16)},    // fadd v0.8h, v1.8h, v2.8h
        {0x4ef8f820, BIT(FP16)},    // fabs v0.8h, v1.8h
        {0x4e30f820, BIT(FP16)},    // fmaxv h0, v1.8h
        {0x0eb0c820, BIT(FP16)},    // fminnmv h0, v1.4h
        {0x4f221020, BIT(FP16)},    // fmla v0.8h, v1.8h, v2.h[2]
        {0x4f03fe00, BIT(FP16)},    // fmov v0.8h, #1.0
        {0x1ee70041, BIT(FP16)},    // fmov h1, w2
        {0x1ee20020, BIT(FP16)},    // scvtf h0, w1
        {0x5f329020, BIT(FP16)},    // fmul h0, h1, v2.h[3]
        {0x2518e3e0, BIT(SVE)},     // ptrue p0.b
        {0x1ee24020, 0},            // fcvt s0, h1
        {0x1ee2c020, 0},            // fcvt d0, h1
        {0x1e23c020, 0},            // fcvt h0, s1
        {0x4e22d420, 0},            // fadd v0.4s, v1.4s, v2.4s
        {0x4fa21020, 0},            // fmla v0.4s, v1.4s, v2.s[1]
        {0x0e217820, 0},            // fcvtl v0.4s, v1.4h
        {0x0e216820, 0},            // fcvtn v0.4h, v1.4s
        {0x4f03f600, 0},            // fmov v0.4s, #1.0
        {0x4f008420, 0},            // movi v0.8h, #1
        {0x6f620020, 0},            // mla v0.8h, v1.8h, v2.h[2]
        {0x4f62d020, 0},            // sqrdmulh v0.8h, v1.8h, v2.h[2]
        {0x0f623020, 0},            // sqdmlal v0.4s, v1.4h, v2.h[2]
        {0x4e629c20, 0},            // mul v0.8h, v1.8h, v2.8h
        {0x4e71b820, 0},            // addv h0, v1.8h
        {0x6e30f820, 0},            // fmaxv s0, v1.4s
        {0x4e423820, 0},            // zip1 v0.8h, v1.8h, v2.8h
        {0x4e061c20, 0},            // ins v0.h[1], w1
        {0x3dc00000, 0},            // ldr q0, [x0]
        {0x1e622820, 0},            // fadd d0, d1, d2
        {0x4f135420, 0},            // shl v0.8h, v1.8h, #3
        {0x0e62c020, 0},            // smull v0.4s, v1.4h, v2.4h
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        const struct code_step step = decode(rows[i].word);
        print_message("# %08x %s\n", (unsigned)rows[i].word, step.name);
        assert_int_equal(step.feature, rows[i].feature);
        assert_int_equal(step.size, 4);
        assert_int_equal(step.target, 0);
        assert_false(step.ends);
    }
}

static void test_jumps(void **state) {
    (void)state;
    static const struct {
        uint32_t word;
        uint64_t target;
        bool ends;
    } rows[] = {
        {0x14000002, 0x1008, true},  // b .+8
        {0x17ffffff, 0x0ffc, true},  // b .-4
        {0x94000400, 0x2000, false}, // bl .+4096
        {0x54ffffe1, 0x0ffc, false}, // b.ne .-4
        {0xb4000080, 0x1010, false}, // cbz x0, .+16
        {0x36080060, 0x100c, false}, // tbz w0, #1, .+12
        {0xd65f03c0, 0, true},       // ret
        {0xd61f0220, 0, true},       // br x17
        {0xd63f0000, 0, false},      // blr x0
        {0xd4200020, 0, true},       // brk #1
        {0x00000000, 0, true},       // udf #0
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        const struct code_step step = decode(rows[i].word);
        assert_int_equal(step.target, rows[i].target);
        assert_int_equal(step.ends, rows[i].ends);
        assert_int_equal(step.feature, 0);
    }
}

static void test_the_end_of_a_section(void **state) {
    (void)state;
    struct code_step step;
    code_aarch64.decode((const uint8_t[]){0x20, 0x94, 0x82}, 3, 0x1000, &step);
    assert_int_equal(step.size, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_extensions),
        cmocka_unit_test(test_jumps),
        cmocka_unit_test(test_the_end_of_a_section),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
