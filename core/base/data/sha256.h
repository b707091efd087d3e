// SPDX-License-Identifier: MIT
// SHA-256 (FIPS 180-4), to tell files by what they hold.
#ifndef GGML_BASE_SHA256_H
#define GGML_BASE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GGML_SHA256_SIZE = 32, GGML_SHA256_BLOCK_SIZE = 64 };

// A sum in progress: init, any number of updates, final; init again for the next. [stream]
struct ggml_sha256 {
    uint32_t state[8];
    uint64_t length;                       // bytes taken so far
    uint8_t block[GGML_SHA256_BLOCK_SIZE]; // the last length % 64 of them
};

void ggml_sha256_init(struct ggml_sha256 *sum);
// Takes `size` more bytes; data may be NULL if there are none.
void ggml_sha256_update(struct ggml_sha256 *sum, const void *data, size_t size);
void ggml_sha256_final(struct ggml_sha256 *sum, uint8_t out_digest[GGML_SHA256_SIZE]);

// Folds one block of GGML_SHA256_BLOCK_SIZE bytes into the state, in plain C and by instructions of
// x86 processors, which must be there. The functions above choose; the tests compare. [any-thread]
void ggml_sha256_compress_plain(uint32_t state[8], const uint8_t *block);
void ggml_sha256_compress_x86(uint32_t state[8], const uint8_t *block);
bool ggml_sha256_has_instructions(void);

#endif
