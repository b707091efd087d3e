// SPDX-License-Identifier: MIT
// What the host's processors can do at most.
#ifndef BENCH_ROOFLINE_H
#define BENCH_ROOFLINE_H

// Fused multiply-adds of all available processors together, in operations (two each) per second,
// with the widest vectors that they have. Takes about a tenth of a second; *out_threads: how many
// processors.
double bench_fma_peak(int *out_threads);

#endif
