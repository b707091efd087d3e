// SPDX-License-Identifier: MIT
// What the tests share that replay seeds and damaged copies of them. Inside tests only: it asserts.
#ifndef FUZZ_REPLAY_H
#define FUZZ_REPLAY_H

#include <stddef.h>
#include <stdint.h>

enum { REPLAY_MAX_SEED = 1 << 16 }; // bytes that are read of a file of the corpus

typedef void (*replay_input)(const unsigned char *data, size_t size);

// xorshift64; the state is not 0.
uint64_t replay_random(uint64_t *state);
// Runs a copy that ends where the memory ends, so that a sanitizer sees every byte read beyond it.
void replay_exact(replay_input run, const unsigned char *data, size_t size);
// Hands each file of a folder of the corpus to `damage`, which may change the data. Returns how
// many there were.
size_t replay_folder(const char *corpus, const char *folder, replay_input run,
                     void (*damage)(replay_input run, unsigned char *data, size_t size));

#endif
