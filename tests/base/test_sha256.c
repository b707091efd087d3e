// SPDX-License-Identifier: MIT
// SHA-256 against digests of FIPS 180-4 and of other programs, for every length up to 300 bytes
// and in pieces of uneven size.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/data/sha256.h"

enum { HEX_SIZE = 2 * GGML_SHA256_SIZE + 1 };

static void assert_digest(const uint8_t *digest, const char *expected) {
    char hex[HEX_SIZE];
    for (size_t i = 0; i < GGML_SHA256_SIZE; ++i)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    assert_string_equal(hex, expected);
}

static void sum_of(const void *data, size_t size, uint8_t *out_digest) {
    struct ggml_sha256 sum;
    ggml_sha256_init(&sum);
    ggml_sha256_update(&sum, data, size);
    ggml_sha256_final(&sum, out_digest);
}

// The examples that go with FIPS 180-4.
static void test_known_answers(void **state) {
    static const struct {
        const char *text;
        const char *digest;
    } answers[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno"
         "ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    uint8_t digest[GGML_SHA256_SIZE];
    (void)state;
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); ++i) {
        sum_of(answers[i].text, strlen(answers[i].text), digest);
        assert_digest(digest, answers[i].digest);
    }
}

static void test_a_million_bytes_in_uneven_pieces(void **state) {
    struct ggml_sha256 sum;
    uint8_t digest[GGML_SHA256_SIZE];
    char text[997];
    (void)state;
    memset(text, 'a', sizeof(text));
    ggml_sha256_init(&sum);
    size_t left = 1000000;
    for (size_t n = 0; left > 0; n = (n + 61) % sizeof(text)) {
        const size_t piece = n < left ? n : left;
        ggml_sha256_update(&sum, text, piece);
        left -= piece;
    }
    ggml_sha256_final(&sum, digest);
    assert_digest(digest, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// Every length around the ends of blocks: the sum of the sums, computed by another program.
static void test_every_length_up_to_300(void **state) {
    uint8_t data[300];
    uint8_t digest[GGML_SHA256_SIZE];
    struct ggml_sha256 all;
    (void)state;
    ggml_sha256_init(&all);
    for (size_t n = 0; n < sizeof(data); ++n) {
        data[n] = (uint8_t)(n * 7);
        sum_of(data, n, digest);
        ggml_sha256_update(&all, digest, sizeof(digest));
    }
    ggml_sha256_final(&all, digest);
    assert_digest(digest, "f65f14b090e805017546322e618401d41f0710c213e013a5131eb38bbe8f367f");
}

// Any state and block: the two ways differ in no bit.
static void test_instructions_do_as_plain_c_does(void **state) {
    enum { ROUNDS = 1000 };
    uint32_t plain[8] = {1}, fast[8] = {1};
    uint8_t blocks[GGML_SHA256_BLOCK_SIZE + 1];
    uint32_t random = 12345;
    (void)state;
    if (!ggml_sha256_has_instructions()) {
        print_message("# left out: the processor has no instructions for it\n");
        return;
    }
    for (int round = 0; round < ROUNDS; ++round) {
        for (size_t i = 0; i < sizeof(blocks); ++i)
            blocks[i] = (uint8_t)((random = random * 1664525 + 1013904223) >> 24);
        ggml_sha256_compress_plain(plain, blocks + round % 2); // aligned or not
        ggml_sha256_compress_x86(fast, blocks + round % 2);
        assert_memory_equal(plain, fast, sizeof(plain));
    }
}

// Whatever the processor has, the plain way is checked too: "abc" with its padding.
static void test_plain_c(void **state) {
    uint32_t sum[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    const uint8_t block[GGML_SHA256_BLOCK_SIZE] = {'a', 'b', 'c', 0x80, [63] = 24};
    (void)state;
    ggml_sha256_compress_plain(sum, block);
    assert_int_equal(sum[0], 0xba7816bf);
    assert_int_equal(sum[7], 0xf20015ad);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),
        cmocka_unit_test(test_a_million_bytes_in_uneven_pieces),
        cmocka_unit_test(test_every_length_up_to_300),
        cmocka_unit_test(test_instructions_do_as_plain_c_does),
        cmocka_unit_test(test_plain_c),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
