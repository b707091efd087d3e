// SPDX-License-Identifier: MIT
// What the emulator and its memory checks share: the block that is being run.
#ifndef SIMT_EMULATOR_STATE_H
#define SIMT_EMULATOR_STATE_H

#include <stddef.h>
#include <stdint.h>

#include <vector>

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
    SIMT_LARGE_BYTES = 227 * 1024, // what a launch may ask for, of sm_90
    SIMT_LARGE_AT = 1024,          // where that begins: at a multiple of it
    SIMT_SHARED_ARENA = SIMT_LARGE_AT + SIMT_LARGE_BYTES + SIMT_SHARED_BYTES +
                        SIMT_MAX_SHARED * (SIMT_GAP + 16) + SIMT_GAP,
    SIMT_WARPGROUP = 128,
    SIMT_MAX_PRODUCTS = 16, // of a warpgroup at a time
};

// What a warp does together.
enum simt_exchange {
    SIMT_SHUFFLE,
    SIMT_SYNC_WARP,
    SIMT_MATRICES,
    SIMT_MATRICES_TURNED,
    SIMT_MMA_F16,
    SIMT_MMA_BF16,
    SIMT_MMA_F16_8,
    SIMT_MATRIX_8X8,
    SIMT_MATRIX_MOVE, // load or store: only together
};

// A copy to shared memory that is under way.
struct simt_copy {
    char *to;
    const char *from;
    uint32_t n;
    unsigned group;
    bool is_early; // begun before the launches before this one had ended: with what was there
    char early[16];
};

// A product of a warpgroup that is under way.
struct simt_product {
    float *d;
    uint32_t n, a[4];
    uint64_t operand;
    bool is_bf16, is_turned;
    unsigned group;
};

// A barrier in shared memory. What is done before an arrival is seen by who waits for the phase: it
// takes over the clocks of all threads that these knew of.
struct simt_barrier_state {
    const void *at;
    uint32_t expected, pending, phase;
    int64_t bytes;
    std::vector<uint32_t> arrived, ended;
};

// An arrival, or bytes, that come with copies which are done as late as they may be.
struct simt_delivery {
    const void *barrier;
    char *to; // NULL: the copies of the thread up to the group
    const char *from;
    uint32_t bytes;
    unsigned thread, group;
    std::vector<uint32_t> clocks; // of an arrival
};

struct simt_thread {
    void *stack_pointer;
    char *stack;
    void *tsan_fiber;
    void *asan_fake_stack;
    const void
        *home; // variables of the system's thread that the stack's frames may have addresses of
    simt_self self;
    unsigned index;
    bool done;
    bool copies_async; // what it writes now, the copy engine does
    uint32_t fences;   // between its writes to shared memory and products
    bool has_waited;   // for the launches before this one
    uint32_t value;    // given to a warp's exchange, then what comes back
    int mask;
    simt_exchange exchange;
    uint32_t *words;   // where the result of a load of matrices goes
    const void *row;   // of that load
    float *sums;       // of a product: the result
    const uint32_t *a; // and the operands
    const uint32_t *b;
    simt_copy copies[SIMT_MAX_COPIES];
    unsigned n_copies, group; // group: the one that is open
    simt_product products[SIMT_MAX_PRODUCTS];
    unsigned n_products, product_group;
    const void *waits_at; // a barrier in shared memory
    uint32_t parity;
    uint32_t warp_phase; // exchanges so far: accesses of one warp between two of them are unordered
};

struct simt_object {
    const void *key;
    size_t offset, size;
};

struct simt_block {
    simt_block *next; // in the pool
    void *checks;     // of the memory checks
    const char *kernel;
    void (*body)(const void *);
    const char *args;
    size_t args_size;
    void (*before)(
        void *data); // what has to be run before a thread goes on that waits; NULL: nothing
    void *before_data;
    unsigned waiting_before[SIMT_MAX_THREADS], n_waiting_before;
    bool runs_before; // now, as nobody else can go on
    unsigned index, n, n_alive;
    simt_thread threads[SIMT_MAX_THREADS];
    simt_thread *current;
    unsigned ready[SIMT_MAX_THREADS], n_ready, first_ready;
    unsigned at_barrier, waiting[SIMT_MAX_THREADS];
    unsigned at_exchange[SIMT_MAX_THREADS / SIMT_WARP];
    uint32_t phase;        // barriers so far
    uint32_t global_phase; // those that order device memory
    std::vector<simt_barrier_state> barriers;
    std::vector<simt_delivery> deliveries;
    // Where there are such barriers: what thread i knows of thread k is at n i + k; accesses of k
    // with a clock up to that come before what i does now.
    std::vector<uint32_t> clocks;
    unsigned n_at_barriers, at_products[SIMT_MAX_THREADS / SIMT_WARPGROUP];
    float right[16][256], sums[256]; // of the product of a warpgroup that is computed
    size_t large;                    // bytes of shared memory that the launch asks for
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
extern unsigned simt_capability; // 10 * major + minor
// Fails on older ones.
void simt_needs(unsigned capability, const char *what);
// For files of the emulator: the current thread lets others run until one of them wakes it.
void simt_wait(simt_block *b);
void simt_wake(simt_block *b, unsigned thread);
uint64_t simt_random(simt_block *b);
bool simt_is_random(void);
// Where all wait: wakes threads at barriers whose phase has ended, after deliveries if need be.
// False: nothing goes on.
bool simt_advance(simt_block *b);
void simt_begin_async(simt_block *b);
// Fails where copies are left.
void simt_end_async(simt_block *b);
// What arrives with a copy of 16 bytes.
void simt_finish_copy(const simt_copy *copy);
// After an exchange that orders accesses: the lanes know what each of them knew.
void simt_join_clocks(simt_block *b, unsigned first_lane);
// Of the memory checks, where they are built in.
void simt_checks_begin_block(void) __attribute__((weak));
void simt_checks_resume_block(void) __attribute__((weak)); // after another launch
void simt_checks_end_block(void) __attribute__((weak));
// A launch begins, whose accesses to device memory are compared with each other. An access of the
// current thread; fails where it is a race.
extern bool simt_metal_rules;
void simt_races_begin(void) __attribute__((weak));
void simt_races_check(const char *p, size_t size, bool write);
// An access that the emulator does for a kernel; pc: where the kernel asks for it.
void simt_checks_access(const void *address, size_t size, bool write, const void *pc)
    __attribute__((weak));
// The current thread waits for others at this instruction.
void simt_checks_step(const void *pc) __attribute__((weak));
// Products read shared memory: fails where a thread wrote it without a fence since.
void simt_checks_product(const char *p, size_t size) __attribute__((weak));

#endif
