// SPDX-License-Identifier: MIT
// SHA-256 as FIPS 180-4 describes it: whole blocks are compressed from the caller's memory, only
// what is left over is copied. Without the processor's instructions for it: files of plugins are
// small, and one source serves every machine.
#include "base/sha256.h"

#include <string.h>

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

// Folds one block into the state: 64 rounds.
static void compress(uint32_t state[8], const uint8_t *block) {
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

void ggml_sha256_init(struct ggml_sha256 *sum) {
    // First 32 bits of the fractional parts of the square roots of the first 8 primes.
    // The same of the square roots of the first 8 primes.
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
        memcpy(sum->block + filled, bytes, n);
        sum->length += n;
        bytes += n;
        size -= n;
        if (n == space) compress(sum->state, sum->block);
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
