// SPDX-License-Identifier: MIT
// What the emulator and its memory checks share: the block that is being run.
#ifndef SIMT_EMULATOR_STATE_H
#define SIMT_EMULATOR_STATE_H

#include <stddef.h>
#include <stdint.h>

#define GPU_EMULATED 1
#include "gpu.h"
#include "simt.h"

enum {
    SIMT_MAX_THREADS = 1024,
    SIMT_WARP = 32,
    SIMT_STACK_BYTES = 64 * 1024,
    SIMT_SHARED_BYTES = 48 * 1024, // what every GPU has without being asked
    SIMT_MAX_SHARED = 16,          // objects
    SIMT_MAX_COPIES = 256,         // of a thread at a time
    SIMT_GAP = 64,                 // unused bytes between objects in shared memory
    SIMT_SHARED_ARENA = SIMT_SHARED_BYTES + SIMT_MAX_SHARED * (SIMT_GAP + 16) + SIMT_GAP,
};

// What a warp does together.
enum simt_exchange {
    SIMT_SHUFFLE,
    SIMT_SYNC_WARP,
    SIMT_MATRICES,
    SIMT_MATRICES_TURNED,
    SIMT_MMA_F16,
    SIMT_MMA_BF16,
    SIMT_MATRIX_8X8,
    SIMT_MATRIX_MOVE, // load or store: only together
};

// A copy to shared memory that is under way.
struct simt_copy {
    char *to;
    const char *from;
    uint32_t n;
    unsigned group;
};

struct simt_thread {
    void *stack_pointer;
    char *stack;
    void *tsan_fiber;
    void *asan_fake_stack;
    simt_self self;
    unsigned index;
    bool done;
    uint32_t value; // given to a warp's exchange, then what comes back
    int mask;
    simt_exchange exchange;
    uint32_t *words;   // where the result of a load of matrices goes
    const void *row;   // of that load
    float *sums;       // of a product: the result
    const uint32_t *a; // and the operands
    const uint32_t *b;
    simt_copy copies[SIMT_MAX_COPIES];
    unsigned n_copies, group; // group: the one that is open
    uint32_t warp_phase; // exchanges so far: accesses of one warp between two of them are unordered
};

struct simt_object {
    const void *key;
    size_t offset, size;
};

struct simt_block {
    const char *kernel;
    void (*body)(const void *);
    const char *args;
    size_t args_size;
    unsigned index, n, n_alive;
    simt_thread threads[SIMT_MAX_THREADS];
    simt_thread *current;
    unsigned ready[SIMT_MAX_THREADS], n_ready, first_ready;
    unsigned at_barrier, waiting[SIMT_MAX_THREADS];
    unsigned at_exchange[SIMT_MAX_THREADS / SIMT_WARP];
    uint32_t phase; // barriers so far
    uint64_t random;
    char *shared;
    simt_object objects[SIMT_MAX_SHARED];
    unsigned n_objects;
    size_t shared_used, shared_bytes; // with the gaps, without
    void *main_stack_pointer, *main_tsan_fiber, *main_asan_fake_stack;
    bool is_entered; // the last switch came from the thread's own stack
    const void *main_bottom;
    size_t main_size;
    char message[256];
};

extern thread_local simt_block *simt_here __attribute__((tls_model("initial-exec")));
// Ends the block with a message. Does not return when a thread of the block runs.
void simt_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Of the memory checks, where they are built in.
void simt_checks_begin_block(void) __attribute__((weak));
void simt_checks_end_block(void) __attribute__((weak));
// An access that the emulator does for a kernel; pc: where the kernel asks for it.
void simt_checks_access(const void *address, size_t size, bool write, const void *pc)
    __attribute__((weak));

#endif
