// SPDX-License-Identifier: MIT
// Texts that the host reads, and what the fuzzers and the replay test do with one.
#ifndef GGML_TESTS_TEXT_INPUT_H
#define GGML_TESTS_TEXT_INPUT_H

#include <stddef.h>

// Each parses the bytes, and aborts if the result breaks its reader's contract.

// A list of SHA-256 sums.
void run_sums_input(const unsigned char *data, size_t size);
// A value of GGML_DEVICES; each further line is the name of a plugin and a device of it.
void run_devices_input(const unsigned char *data, size_t size);
// /proc/self/cgroup and, after a byte 0, /proc/self/mountinfo.
void run_cgroup_input(const unsigned char *data, size_t size);

#endif
