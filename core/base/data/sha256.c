// SPDX-License-Identifier: MIT
// SHA-256 as FIPS 180-4 describes it: whole blocks are compressed from the caller's memory, only
// what is left over is copied. Where an x86 processor has instructions for it, they are used: files
// of plugins have some megabytes, and every process of an isolated device takes the sum of one.
#include "base/data/sha256.h"

#include <stdatomic.h>
#include <string.h>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define HAS_X86 1
#include <cpuid.h>
#include <immintrin.h>
#endif

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

// ROTR of the standard. n is 1 to 31, so that no shift has the width of the type.
static uint32_t rotate(uint32_t x, unsigned n) {
    return x >> n | x << (32 - n);
}

static uint32_t load_be32(const uint8_t *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void store_be32(uint8_t *out_bytes, uint32_t value) {
    for (int i = 0; i < 4; ++i)
        out_bytes[i] = (uint8_t)(value >> (24 - 8 * i));
}

// The message schedule: 16 words of the block, the rest by the recurrence of section 6.2.2.
static void expand(uint32_t schedule[64], const uint8_t *block) {
    for (int t = 0; t < 16; ++t)
        schedule[t] = load_be32(block + 4 * t);
    for (int t = 16; t < 64; ++t) {
        const uint32_t a = schedule[t - 15];
        const uint32_t b = schedule[t - 2];
        const uint32_t sigma0 = rotate(a, 7) ^ rotate(a, 18) ^ a >> 3;
        const uint32_t sigma1 = rotate(b, 17) ^ rotate(b, 19) ^ b >> 10;
        schedule[t] = schedule[t - 16] + sigma0 + schedule[t - 7] + sigma1;
    }
}

void ggml_sha256_compress_plain(uint32_t state[8], const uint8_t *block) {
    uint32_t schedule[64];
    uint32_t v[8]; // the standard's a to h
    expand(schedule, block);
    memcpy(v, state, sizeof(v));
    for (int t = 0; t < 64; ++t) {
        const uint32_t sum1 = rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25);
        const uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        const uint32_t t1 = v[7] + sum1 + choice + round_constants[t] + schedule[t];
        const uint32_t sum0 = rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22);
        const uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        for (int i = 7; i > 0; --i) // no memmove, which would be a call
            v[i] = v[i - 1];
        v[4] += t1;
        v[0] = t1 + sum0 + majority;
    }
    for (int i = 0; i < 8; ++i)
        state[i] += v[i];
}

#ifdef HAS_X86

// Whether the processor has SHA, SSSE3 and SSE4.1.
static bool ask_processor(void) {
    unsigned eax, ebx, ecx, edx;
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) || !(ebx & bit_SHA)) return false;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_SSSE3) && (ecx & bit_SSE4_1);
}

bool ggml_sha256_has_instructions(void) {
    static atomic_int answer; // 0: not asked yet
    int known = atomic_load_explicit(&answer, memory_order_relaxed);
    if (known == 0) {
        known = ask_processor() ? 1 : -1;
        atomic_store_explicit(&answer, known, memory_order_relaxed);
    }
    return known > 0;
}

// The instructions want the state as ABEF and CDGH. Four words of the schedule at a time, of which
// the last 16 are kept.
__attribute__((target("sha,ssse3,sse4.1"))) void ggml_sha256_compress_x86(uint32_t state[8],
                                                                          const uint8_t *block) {
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    const __m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(void *)state), 0xb1);
    const __m128i high =
        _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(void *)(state + 4)), 0x1b);
    __m128i abef = _mm_alignr_epi8(low, high, 8), cdgh = _mm_blend_epi16(high, low, 0xf0);
    const __m128i first_abef = abef, first_cdgh = cdgh;
    __m128i words[4];
    for (int i = 0; i < 4; ++i)
        words[i] =
            _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)block + i), big_endian);
    for (int t = 0; t < 16; ++t) {
        const __m128i constants =
            _mm_loadu_si128((const __m128i *)(const void *)round_constants + t);
        const __m128i sum = _mm_add_epi32(words[t % 4], constants);
        cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
        abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
        const __m128i w7 = _mm_alignr_epi8(words[(t + 3) % 4], words[(t + 2) % 4], 4); // W[t-7]
        const __m128i next =
            _mm_add_epi32(_mm_sha256msg1_epu32(words[t % 4], words[(t + 1) % 4]), w7);
        words[t % 4] = _mm_sha256msg2_epu32(next, words[(t + 3) % 4]);
    }
    abef = _mm_shuffle_epi32(_mm_add_epi32(abef, first_abef), 0x1b);
    cdgh = _mm_shuffle_epi32(_mm_add_epi32(cdgh, first_cdgh), 0xb1);
    _mm_storeu_si128((__m128i *)(void *)state, _mm_blend_epi16(abef, cdgh, 0xf0));
    _mm_storeu_si128((__m128i *)(void *)(state + 4), _mm_alignr_epi8(cdgh, abef, 8));
}

#else

bool ggml_sha256_has_instructions(void) {
    return false;
}

void ggml_sha256_compress_x86(uint32_t state[8], const uint8_t *block) {
    ggml_sha256_compress_plain(state, block);
}

#endif

static void compress(uint32_t state[8], const uint8_t *block) {
    if (ggml_sha256_has_instructions()) {
        ggml_sha256_compress_x86(state, block);
    } else {
        ggml_sha256_compress_plain(state, block);
    }
}

void ggml_sha256_init(struct ggml_sha256 *sum) {
    // The first 32 bits of the fractional parts of the square roots of the first 8 primes.
    static const uint32_t first_state[8] = {
        0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
    };
    memset(sum, 0, sizeof(*sum));
    memcpy(sum->state, first_state, sizeof(first_state));
}

void ggml_sha256_update(struct ggml_sha256 *sum, const void *data, size_t size) {
    const uint8_t *bytes = data;
    while (size > 0) {
        const size_t filled = (size_t)(sum->length % GGML_SHA256_BLOCK_SIZE);
        const size_t space = GGML_SHA256_BLOCK_SIZE - filled;
        const size_t n = size < space ? size : space;
        const bool is_whole = n == GGML_SHA256_BLOCK_SIZE;
        if (!is_whole) memcpy(sum->block + filled, bytes, n);
        if (n == space) compress(sum->state, is_whole ? bytes : sum->block);
        sum->length += n;
        bytes += n;
        size -= n;
    }
}

// Pads with a 1 bit and zeros to 8 bytes below a whole block, then appends the length in bits,
// big-endian.
void ggml_sha256_final(struct ggml_sha256 *sum, uint8_t out_digest[GGML_SHA256_SIZE]) {
    static const uint8_t padding[GGML_SHA256_BLOCK_SIZE] = {0x80};
    enum { LENGTH_SIZE = 8, LENGTH_AT = GGML_SHA256_BLOCK_SIZE - LENGTH_SIZE };
    const uint64_t bits = sum->length * 8;
    const size_t filled = (size_t)(sum->length % GGML_SHA256_BLOCK_SIZE);
    // Padding takes at least one byte: where the length no longer fits, it goes into a block of its
    // own.
    const size_t end = filled < LENGTH_AT ? LENGTH_AT : LENGTH_AT + GGML_SHA256_BLOCK_SIZE;
    uint8_t length[LENGTH_SIZE];
    store_be32(length, (uint32_t)(bits >> 32));
    store_be32(length + 4, (uint32_t)bits);
    ggml_sha256_update(sum, padding, end - filled);
    ggml_sha256_update(sum, length, sizeof(length));
    for (int i = 0; i < 8; ++i)
        store_be32(out_digest + 4 * i, sum->state[i]);
}
