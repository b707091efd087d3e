// SPDX-License-Identifier: MIT
// A page lies at the node whose thread writes it first. Tensors are written by the thread that
// loads them, so that without a policy one node holds all weights and its memory limits every
// thread. Interleaving needs no knowledge of which thread reads what, which changes with each
// product. The system's calls are made by their numbers: libnuma would be one more dependency.
#define _GNU_SOURCE
#include "machine/topology/numa.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "machine/number_list.h"

#ifdef __linux__
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "machine/topology/topology.h"
#endif

static bool has(const uint64_t *words, unsigned node) {
    return words[node / 64] >> node % 64 & 1;
}

unsigned ggml_numa_nodes(const char *has_cpu, const char *mems_allowed,
                         uint64_t out_words[GGML_NUMA_WORDS]) {
    uint64_t allowed[GGML_NUMA_WORDS];
    unsigned n = 0;
    ggml_number_list_parse(has_cpu, out_words, GGML_NUMA_WORDS);
    ggml_number_list_parse(mems_allowed, allowed, GGML_NUMA_WORDS);
    for (size_t i = 0; i < GGML_NUMA_WORDS; ++i)
        out_words[i] &= allowed[i];
    for (unsigned node = 0; node < GGML_NUMA_WORDS * 64; ++node)
        n += has(out_words, node);
    return n;
}

#if defined(__linux__) && defined(SYS_mbind) && defined(SYS_get_mempolicy)
enum { POLICY_DEFAULT = 0, POLICY_INTERLEAVE = 3 }; // of the kernel's numbers

int ggml_numa_interleave(void *memory, size_t size, const uint64_t words[GGML_NUMA_WORDS]) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = ((uintptr_t)memory + page - 1) / page * page;
    const uintptr_t end = ((uintptr_t)memory + size) / page * page;
    unsigned long mask[GGML_NUMA_WORDS * 64 / (8 * sizeof(unsigned long))] = {0};
    enum { LONG_BITS = 8 * sizeof(mask[0]) };
    for (unsigned node = 0; node < GGML_NUMA_WORDS * 64; ++node)
        if (has(words, node)) mask[node / LONG_BITS] |= 1UL << node % LONG_BITS;
    if (begin >= end) return 0;
    // The kernel takes one bit less than it is told.
    const long status = syscall(SYS_mbind, begin, end - begin, POLICY_INTERLEAVE, mask,
                                (unsigned long)GGML_NUMA_WORDS * 64 + 1, 0UL);
    return status == 0 ? 0 : errno;
}

// Text of a file from a mark on, "" without.
static void read_after(const char *path, const char *mark, char *out_text, size_t size) {
    char line[512];
    FILE *file = fopen(path, "rb");
    *out_text = '\0';
    while (file && *out_text == '\0' && fgets(line, sizeof(line), file)) {
        if (strncmp(line, mark, strlen(mark)) == 0)
            snprintf(out_text, size, "%s", line + strlen(mark));
    }
    if (file) fclose(file);
}

static struct {
    uint64_t words[GGML_NUMA_WORDS];
    unsigned n; // nodes; 0: memory is not spread
} nodes;

static void find_nodes(void) {
    char has_cpu[512], allowed[512];
    struct ggml_host_topology topology = {.size = sizeof(topology)};
    read_after("/sys/devices/system/node/has_cpu", "", has_cpu, sizeof(has_cpu));
    read_after("/proc/self/status", "Mems_allowed_list:\t", allowed, sizeof(allowed));
    const unsigned n = ggml_numa_nodes(has_cpu, allowed, nodes.words);
    // The affinity may leave the processors of one node alone, whose memory is the nearest then.
    if (n > 1 && topology_get(&topology) == GGML_HOST_OK && topology.n_numa_nodes > 1) nodes.n = n;
}

void ggml_numa_spread(void *memory, size_t size) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int policy = POLICY_DEFAULT;
    if (size < GGML_NUMA_LEAST_BYTES) return;
    pthread_once(&once, find_nodes);
    if (nodes.n < 2 || syscall(SYS_get_mempolicy, &policy, NULL, 0UL, NULL, 0UL) != 0) return;
    // A refusal leaves the memory as the system gives it.
    if (policy == POLICY_DEFAULT) ggml_numa_interleave(memory, size, nodes.words);
}
#else
int ggml_numa_interleave(void *memory, size_t size, const uint64_t words[GGML_NUMA_WORDS]) {
    (void)memory;
    (void)size;
    (void)words;
    return ENOSYS;
}

void ggml_numa_spread(void *memory, size_t size) {
    (void)memory;
    (void)size;
}
#endif
