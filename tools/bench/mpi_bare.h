// SPDX-License-Identifier: MIT
// What MPI does by itself: between the program of ggml-bench mpi (rank 0) and processes beside the
// nodes, which wait without keeping a processor busy until they are told what to do.
#ifndef BENCH_MPI_BARE_H
#define BENCH_MPI_BARE_H

#include <stdbool.h>
#include <stddef.h>

struct bare {
    int first, n; // ranks of the partners
};

// Starts MPI, and makes the partners the last half of the ranks but the first. A partner does as it
// is told and returns false at the end; rank 0 returns true at once. [init]
bool bare_start(struct bare *out_bare);
// Ends the partners, at rank 0. [init]
void bare_end(const struct bare *bare);

// Seconds of one of so many round trips of a few bytes. [init]
double bare_round_trip(const struct bare *bare, int times);
// Seconds of the bytes to the first partner, until it says that it has them; and back. [init]
double bare_send(const struct bare *bare, void *bytes, size_t size);
double bare_receive(const struct bare *bare, void *bytes, size_t size);
// The same from the first partner to the second one. [init]
double bare_between(const struct bare *bare, size_t size);
// Seconds in which all partners add up so many floats. [init]
double bare_all_reduce(const struct bare *bare, size_t n);

#endif
