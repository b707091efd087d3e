// SPDX-License-Identifier: MIT
// What the host's processors can do at most.
#ifndef BENCH_ROOFLINE_H
#define BENCH_ROOFLINE_H

#include <stddef.h>

// Fused multiply-adds of all available processors together, in operations (two each) per second,
// with the widest vectors that they have. Takes about a tenth of a second; *out_threads: how many
// processors.
double bench_fma_peak(int *out_threads);

// Bytes that all available processors together read per second from memory of `size` bytes, of
// which each reads a part of its own from start to end; 0 if there is no such memory. Takes some
// tenths of a second.
double bench_read_peak(size_t size);

#endif
