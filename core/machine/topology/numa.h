// SPDX-License-Identifier: MIT
// Where the pages of large memory lie on machines with several NUMA nodes.
#ifndef GGML_MACHINE_NUMA_H
#define GGML_MACHINE_NUMA_H

#include <stddef.h>
#include <stdint.h>

enum {
    GGML_NUMA_WORDS = 16,             // 1,024 nodes
    GGML_NUMA_LEAST_BYTES = 32 << 20, // of memory that is spread
};

// Spreads the pages of new memory that nobody has written yet over all nodes whose processors this
// process may use, in turn: threads on every node read weights and caches at the bandwidth of all.
// Nothing for less than GGML_NUMA_LEAST_BYTES, with one node, or where the process or thread has a
// memory policy already (numactl). [any-thread]
void ggml_numa_spread(void *memory, size_t size);

// The same over the nodes of a mask (bit i of words[i / 64] is node i), whatever the size and the
// policy are. 0, or an errno. [any-thread]
int ggml_numa_interleave(void *memory, size_t size, const uint64_t words[GGML_NUMA_WORDS]);

// The nodes with processors of the list has_cpu that are also in mems_allowed, as the system writes
// them ("0-1,4"). How many there are. [any-thread]
unsigned ggml_numa_nodes(const char *has_cpu, const char *mems_allowed,
                         uint64_t out_words[GGML_NUMA_WORDS]);

#endif
