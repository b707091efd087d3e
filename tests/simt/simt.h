// SPDX-License-Identifier: MIT
// The SIMT emulator: kernels that were written for GPUs, compiled for the host, run block by block
// with a fiber for each thread. The fake driver launches by it.
#ifndef SIMT_H
#define SIMT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct simt_launch {
    const char *kernel;
    unsigned grid[3];
    unsigned threads; // of a block
    const void *args;
    size_t shared; // bytes that a kernel's large array of shared memory has
};

// Whether defects of kernels are found; not by a GPU (device.c), which has other kernels, too.
bool simt_finds_defects(void);
bool simt_has(const char *kernel);
// Bytes of the arguments of the kernel with this name; 0: there is none.
size_t simt_args_size(const char *kernel);
// Largest block that the kernel was declared for.
unsigned simt_max_threads(const char *kernel);
// Runs all blocks. False: one of them did something wrong, which `message` says.
bool simt_run(const struct simt_launch *launch, char *message, size_t message_size);
// The same of a launch that may begin before others have ended, those that `before` runs, once:
// when all threads of a block wait, as late as that may be.
bool simt_run_early(const struct simt_launch *launch, void (*before)(void *data), void *data,
                    char *message, size_t message_size);
// How many launches may be under way on a thread, one in another's `before`.
enum { SIMT_MAX_DEPTH = 4 };
// Order of blocks and of the threads that can run. 0: in turn. Before: that of SIMT_SEED.
void simt_set_seed(uint64_t seed);
// Less shared memory for a block than the emulator has; before anything runs.
void simt_limit_shared(size_t bytes);
// What kernels may do from now on, by 10 * major + minor of the capability: products of warps from
// 75 on; before 80 no BF16, products in two steps, and copies that are done at once; warpgroups on
// 90 alone; shared memory as below. Before: 90.
void simt_set_capability(unsigned capability);
unsigned simt_get_capability(void);
// Bytes of shared memory that a block may have, with what a launch asks for.
size_t simt_most_shared(unsigned capability);
// From now on kernels may rely on no more than Metal promises, and not on what CUDA does: a barrier
// orders shared memory alone unless it says more (gpu_sync_global), exchanges between lanes order
// no memory, and what two threads write to device memory, or one writes and another reads, is a
// race without such a barrier; of threads of two blocks in any case. false: as CUDA again.
void simt_use_metal_rules(bool metal);
// What kernels may read and write besides their shared memory. Poisoned with NaN when it is added.
void simt_memory_add(void *begin, size_t size);
// The same, with what is in it.
void simt_memory_show(void *begin, size_t size);
void simt_memory_remove(void *begin);
bool simt_memory_has(const void *begin, size_t size);

// What the memory of a GPU would do for a launch: requests of warps to device memory in sectors of
// 32 bytes, to shared memory in wavefronts of 32 banks of 4 bytes; and the least that could be.
struct simt_traffic {
    unsigned long long read_sectors, read_least, write_sectors, write_least, wavefronts,
        wavefronts_least;
};
// Counts all launches of the calling thread from now on; not with libtsan. Not cheap.
void simt_traffic_start(void);
// Stops that. With SIMT_TRAFFIC set, prints the same for each instruction to standard error.
void simt_traffic_stop(struct simt_traffic *out);

#ifdef __cplusplus
}
#endif

#endif
