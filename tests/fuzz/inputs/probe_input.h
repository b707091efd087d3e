// SPDX-License-Identifier: MIT
// What the fuzzers and the replay test do with an input. Both abort if a result breaks the
// contract.
#ifndef GGML_TESTS_PROBE_INPUT_H
#define GGML_TESTS_PROBE_INPUT_H

#include <stddef.h>

// How many results were whole and were checked.
extern size_t n_results_taken;

// What a helper says. The first byte decides:
//   even  the rest comes over the pipe as it is, in pieces of that many bytes
//   odd   the rest is a list of frames (kind, size as two bytes, payload) that are made authentic,
//         after a proper HELLO
void run_probe_input(const unsigned char *data, size_t size);

// An entry of the cache. The first byte modulo 3:
//   0  the rest is the entry
//   1  it gets a header with the right digest
//   2  it also gets the right terms: what is left is the content's sum, the time and the result
void run_cache_input(const unsigned char *data, size_t size);

#endif
