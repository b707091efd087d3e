// SPDX-License-Identifier: MIT
// The emulator: the threads of a block are fibers of one thread of the operating system, which
// change over at barriers and exchanges alone. A warp's exchange is done by the lane that arrives
// last.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <atomic>
#include <map>
#include <mutex>

#include "../../core/base/sanitizer.h"
#include "emulator_state.h"
#include "gpu_matrix.h"
#include "gpu_warpgroup.h"

// With libtsan, which is told of fibers, this file itself is not instrumented.
#if defined(SIMT_TSAN)
extern "C" {
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
void __tsan_acquire(void *address);
void __tsan_release(void *address);
void __tsan_read_range(void *address, unsigned long size);
void __tsan_write_range(void *address, unsigned long size);
}
// What the emulator accesses for a kernel, as this thread's access.
void simt_checks_access(const void *address, size_t size, bool write, const void *) {
    (write ? __tsan_write_range : __tsan_read_range)((void *)(uintptr_t)address, size);
}
#define TSAN(code) code
#else
#define TSAN(code)
#endif
#if GGML_ADDRESS_SANITIZER
extern "C" {
void __sanitizer_start_switch_fiber(void **fake, const void *bottom, size_t size);
void __sanitizer_finish_switch_fiber(void *fake, const void **bottom, size_t *size);
}
#define ASAN(code) code
#else
#define ASAN(code)
#endif

thread_local simt_self simt_me __attribute__((tls_model("initial-exec")));
thread_local simt_block *simt_here __attribute__((tls_model("initial-exec")));

// --- changing stacks -----------------------------------------------------------------------------

// Stores the registers that a call keeps on the stack, and the stack's address in *save; goes on
// where `load` was stored.
extern "C" void simt_switch(void **save, void *load);
#if defined(__x86_64__)
enum { SPARE_WORDS = 1, FRAME_WORDS = 7, RETURN_WORD = 6 };
asm(".text\n.globl simt_switch\n.hidden simt_switch\n.type simt_switch,@function\nsimt_switch:\n"
    "push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15\n"
    "mov %rsp,(%rdi); mov %rsi,%rsp\n"
    "pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp; ret\n"
    ".size simt_switch,.-simt_switch\n");
#elif defined(__aarch64__)
enum { SPARE_WORDS = 2, FRAME_WORDS = 20, RETURN_WORD = 11 };
asm(".text\n.globl simt_switch\n.hidden simt_switch\n.type simt_switch,%function\nsimt_switch:\n"
    "sub sp,sp,#160\n"
    "stp x19,x20,[sp]\nstp x21,x22,[sp,#16]\nstp x23,x24,[sp,#32]\nstp x25,x26,[sp,#48]\n"
    "stp x27,x28,[sp,#64]\nstp x29,x30,[sp,#80]\n"
    "stp d8,d9,[sp,#96]\nstp d10,d11,[sp,#112]\nstp d12,d13,[sp,#128]\nstp d14,d15,[sp,#144]\n"
    "mov x2,sp\nstr x2,[x0]\nmov sp,x1\n"
    "ldp x19,x20,[sp]\nldp x21,x22,[sp,#16]\nldp x23,x24,[sp,#32]\nldp x25,x26,[sp,#48]\n"
    "ldp x27,x28,[sp,#64]\nldp x29,x30,[sp,#80]\n"
    "ldp d8,d9,[sp,#96]\nldp d10,d11,[sp,#112]\nldp d12,d13,[sp,#128]\nldp d14,d15,[sp,#144]\n"
    "add sp,sp,#160\nret\n.size simt_switch,.-simt_switch\n");
#endif

// To another thread of the block, or NULL: out of it.
static void go(simt_block *b, simt_thread *to) {
    simt_thread *from = b->current;
    b->current = to;
    b->is_entered = !from;
    if (to) simt_me = to->self;
    TSAN(__tsan_switch_to_fiber(to ? to->tsan_fiber : b->main_tsan_fiber, 1);)
    ASAN(__sanitizer_start_switch_fiber(
             from ? (from->done ? nullptr : &from->asan_fake_stack) : &b->main_asan_fake_stack,
             to ? to->stack : b->main_bottom, to ? (size_t)SIMT_STACK_BYTES : b->main_size);)
    ASAN(if (from && from->done) from->asan_fake_stack = nullptr;)
    simt_switch(from ? &from->stack_pointer : &b->main_stack_pointer,
                to ? to->stack_pointer : b->main_stack_pointer);
    ASAN(__sanitizer_finish_switch_fiber(from ? from->asan_fake_stack : b->main_asan_fake_stack,
                                         nullptr, nullptr);)
}

// --- which thread runs ---------------------------------------------------------------------------

static uint64_t seed = getenv("SIMT_SEED") ? strtoull(getenv("SIMT_SEED"), nullptr, 10) : 0;

void simt_set_seed(uint64_t value) {
    seed = value;
}

// Xorshift (Marsaglia 2003).
static uint64_t next_random(simt_block *b) {
    b->random ^= b->random << 13;
    b->random ^= b->random >> 7;
    b->random ^= b->random << 17;
    return b->random;
}

static void wake(simt_block *b, unsigned i) {
    b->ready[(b->first_ready + b->n_ready++) % SIMT_MAX_THREADS] = i;
}

static simt_thread *pick(simt_block *b) {
    if (b->n_ready == 0 && !simt_advance(b)) return nullptr;
    unsigned *first = &b->ready[b->first_ready];
    if (seed) {
        unsigned *other =
            &b->ready[(b->first_ready + next_random(b) % b->n_ready) % SIMT_MAX_THREADS];
        const unsigned i = *other;
        *other = *first;
        *first = i;
    }
    b->first_ready = (b->first_ready + 1) % SIMT_MAX_THREADS;
    --b->n_ready;
    return &b->threads[*first];
}

void simt_fail(const char *format, ...) {
    simt_block *b = simt_here;
    va_list args;
    va_start(args, format);
    if (!b->message[0]) vsnprintf(b->message, sizeof(b->message), format, args);
    va_end(args);
    TSAN(__tsan_release(b);)
    if (b->current) go(b, nullptr);
}

// Where nobody can go on but those who wait for the launches before this one: lets these run.
static bool has_launches_left(simt_block *b) {
    b->runs_before = b->n_waiting_before > 0;
    return b->runs_before;
}

static void wait_for_others(simt_block *b) {
    simt_thread *next = pick(b);
    if (!next && has_launches_left(b)) {
        go(b, nullptr);
        return;
    }
    if (!next)
        simt_fail("deadlock: %u of %u threads wait, thread %u of block %u among them", b->n_alive,
                  b->n, simt_me.tid, b->index);
    if (next != b->current) go(b, next);
}

void simt_wait(simt_block *b) {
    wait_for_others(b);
}
void simt_wake(simt_block *b, unsigned thread) {
    wake(b, thread);
}
uint64_t simt_random(simt_block *b) {
    return next_random(b);
}
bool simt_is_random(void) {
    return seed != 0;
}

// A fiber that has ended begins again here with the next block of the same thread of the system.
static void fiber_main(void) {
    // What was left is the thread's own stack or another fiber's.
    ASAN(const void *bottom; size_t size; __sanitizer_finish_switch_fiber(nullptr, &bottom, &size);
         if (simt_here->is_entered) {
             simt_here->main_bottom = bottom;
             simt_here->main_size = size;
         })
    for (;;) {
        simt_block *b = simt_here;
        TSAN(__tsan_acquire(b);)
        b->body(b->args);
        if (!b->current->has_waited)
            simt_fail("thread %u of block %u ends without waiting for the launches before its own",
                      b->current->index, b->index);
        TSAN(__tsan_release(b);)
        b->current->done = true;
        --b->n_alive;
        simt_thread *next = pick(b);
        if (!next && b->n_alive && !has_launches_left(b) && !b->message[0])
            snprintf(b->message, sizeof(b->message),
                     "deadlock: %u of %u threads of block %u wait for ones that have ended",
                     b->n_alive, b->n, b->index);
        go(b, next);
    }
}

unsigned simt_capability = 90;

void simt_set_capability(unsigned capability) {
    simt_capability = capability;
}

unsigned simt_get_capability(void) {
    return simt_capability;
}

// CUDA Programming Guide, "Technical Specifications per Compute Capability".
size_t simt_most_shared(unsigned capability) {
    static const struct {
        unsigned from;
        size_t kib;
    } rows[] = {{120, 99}, {90, 227}, {89, 99}, {87, 163}, {86, 99},
                {80, 163}, {75, 64},  {70, 96}, {0, 48}};
    for (const auto &row : rows) {
        if (capability >= row.from) return row.kib * 1024;
    }
    return 0;
}

bool simt_is_before(u32 capability) {
    return simt_capability < capability;
}

void simt_needs(unsigned capability, const char *what) {
    if (simt_capability < capability) simt_fail("%s on capability %u", what, simt_capability);
}

bool simt_metal_rules;

void simt_use_metal_rules(bool metal) {
    simt_metal_rules = metal;
}

// --- blocks --------------------------------------------------------------------------------------

static void start_stack(simt_thread *t) {
    if (!t->stack) {
        void *stack = mmap(nullptr, SIMT_STACK_BYTES, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (stack == MAP_FAILED) abort();
        t->stack = (char *)stack;
        mprotect(t->stack, 4096, PROT_NONE);
    }
    TSAN(if (t->tsan_fiber && !t->done) __tsan_destroy_fiber(t->tsan_fiber);
         if (!t->done) t->tsan_fiber = __tsan_create_fiber(0);)
    t->home = &simt_here;
    uint64_t *top =
        (uint64_t *)(t->stack + SIMT_STACK_BYTES) - SPARE_WORDS; // aligned as after a call
    top -= FRAME_WORDS;
    memset(top, 0, (FRAME_WORDS + SPARE_WORDS) * sizeof(*top));
    top[RETURN_WORD] = (uint64_t)(uintptr_t)fiber_main;
    t->stack_pointer = top;
}

static void init_block(simt_block *b, const simt_launch *l, unsigned index) {
    b->index = index;
    b->n = b->n_alive = l->threads;
    b->n_ready = b->first_ready = b->at_barrier = b->n_objects = b->n_waiting_before = 0;
    b->runs_before = false;
    memset(b->at_exchange, 0, sizeof(b->at_exchange));
    b->phase = b->global_phase = 0;
    b->shared_used = b->shared_bytes = 0;
    b->large = l->shared;
    simt_begin_async(b);
    b->current = nullptr;
    b->message[0] = '\0';
    b->random = seed * 0x9e3779b97f4a7c15ull + index + 1;
    for (unsigned i = 0; i < b->n; ++i) {
        simt_thread *t = &b->threads[i];
        if (!t->done || t->home != &simt_here) start_stack(t);
        t->index = i;
        t->done = t->has_waited = false;
        t->warp_phase = 0;
        t->n_copies = t->group = t->n_products = t->product_group = 0;
        t->waits_at = nullptr;
        t->fences = 0;
        t->copies_async = false;
        t->self = {i,
                   b->n,
                   index % l->grid[0],
                   index / l->grid[0] % l->grid[1],
                   index / l->grid[0] / l->grid[1],
                   l->grid[0]};
        wake(b, i);
    }
}

// What has been put off, on the thread's own stack.
static void run_before(simt_block *b) {
    void (*before)(void *) = b->before;
    b->before = nullptr;
    before(b->before_data);
    simt_here = b;
    if (simt_checks_resume_block) simt_checks_resume_block();
    for (unsigned i = 0; i < b->n_waiting_before; ++i)
        wake(b, b->waiting_before[i]);
    b->n_waiting_before = 0;
}

// Threads that a failure leaves where they are have come to an end, for libtsan.
static void end_threads(simt_block *b) {
    TSAN(for (unsigned i = 0; i < b->n; ++i) {
        if (b->threads[i].done) continue;
        __tsan_switch_to_fiber(b->threads[i].tsan_fiber, 1);
        __tsan_release(b);
        __tsan_switch_to_fiber(b->main_tsan_fiber, 1);
    })
    (void)b;
}

static void run_block(simt_block *b, const simt_launch *l, unsigned index) {
    init_block(b, l, index);
    simt_here = b;
    if (simt_checks_begin_block) simt_checks_begin_block();
    TSAN(b->main_tsan_fiber = __tsan_get_current_fiber(); __tsan_release(b);)
    go(b, pick(b));
    while (b->runs_before) {
        b->runs_before = false;
        run_before(b);
        TSAN(__tsan_release(b);)
        go(b, pick(b));
    }
    end_threads(b);
    TSAN(__tsan_acquire(b);)
    b->current = nullptr;
    simt_end_async(b);
    if (simt_checks_end_block) simt_checks_end_block();
    simt_here = nullptr;
}

static thread_local unsigned depth; // launches that are under way on this thread

// Blocks that no launch has: the next one takes the last, whichever thread it runs on, as stacks
// and what libtsan keeps for each fiber (0.8 MB) are dear.
static std::mutex pool_lock;
static simt_block *pool;

static simt_block *take_block(void) {
    std::lock_guard<std::mutex> hold(pool_lock);
    simt_block *block = pool;
    if (block) {
        pool = block->next;
        return block;
    }
    block = new simt_block();
    block->shared = (char *)mmap(nullptr, SIMT_SHARED_ARENA, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return block;
}

static void give_block(simt_block *block) {
    std::lock_guard<std::mutex> hold(pool_lock);
    block->next = pool;
    pool = block;
}

// --- kernels -------------------------------------------------------------------------------------

static simt_kernel *kernels;

void simt_register(simt_kernel *kernel) {
    kernel->next = kernels;
    kernels = kernel;
}

static const simt_kernel *find(const char *name) {
    const simt_kernel *k = kernels;
    while (k && strcmp(k->name, name) != 0)
        k = k->next;
    return k;
}

bool simt_finds_defects(void) {
    return true;
}

bool simt_has(const char *name) {
    return find(name) != nullptr;
}

size_t simt_args_size(const char *name) {
    const simt_kernel *k = find(name);
    return k ? k->args_size : 0;
}

unsigned simt_max_threads(const char *name) {
    const simt_kernel *k = find(name);
    return k ? k->max_threads : 0;
}

static bool run_blocks(simt_block *b, const simt_launch *l, char *message, size_t message_size) {
    const uint64_t n = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    for (uint64_t i = 0; i < n; ++i) {
        run_block(b, l, (unsigned)(seed ? n - 1 - i : i));
        if (!b->message[0]) continue;
        snprintf(message, message_size, "%s: %s", l->kernel, b->message);
        return false;
    }
    return true;
}

bool simt_run_early(const simt_launch *l, void (*before)(void *data), void *data, char *message,
                    size_t message_size) {
    const simt_kernel *k = find(l->kernel);
    if (!k || l->threads == 0 || l->threads > k->max_threads || l->shared > SIMT_LARGE_BYTES ||
        depth == SIMT_MAX_DEPTH) {
        snprintf(message, message_size, "%s: %s", l->kernel,
                 k ? "too many threads in a block, or too much shared memory" : "no such kernel");
        if (before) before(data);
        return false;
    }
    simt_block *b = take_block();
    b->kernel = k->name;
    b->body = k->body;
    b->args = (const char *)l->args;
    b->args_size = k->args_size;
    b->before = before;
    b->before_data = data;
    if (simt_metal_rules && simt_races_begin) simt_races_begin();
    ++depth;
    const bool good = run_blocks(b, l, message, message_size);
    --depth;
    // No thread has waited, or there is none that could.
    const bool is_left = b->before != nullptr;
    b->before = nullptr;
    give_block(b);
    if (is_left) before(data);
    return good;
}

bool simt_run(const simt_launch *l, char *message, size_t message_size) {
    return simt_run_early(l, nullptr, nullptr, message, message_size);
}

// --- what kernels call ---------------------------------------------------------------------------

// Launches that were put off run when all threads wait for something.
void simt_wait_for_launches(void) {
    simt_block *b = simt_here;
    simt_thread *me = b->current;
    if (b->before) {
        b->waiting_before[b->n_waiting_before++] = me->index;
        wait_for_others(b);
    }
    me->has_waited = true;
    TSAN(__tsan_acquire(b);)
}

static size_t shared_limit = SIMT_SHARED_BYTES;

void simt_limit_shared(size_t bytes) {
    shared_limit = bytes < SIMT_SHARED_BYTES ? bytes : (size_t)SIMT_SHARED_BYTES;
}

void *simt_shared(const void *key, size_t bytes) {
    simt_block *b = simt_here;
    for (unsigned i = 0; i < b->n_objects; ++i) {
        if (b->objects[i].key != key) continue;
        TSAN(__tsan_acquire(&b->objects[i]);)
        return b->shared + b->objects[i].offset;
    }
    if (b->shared_used < SIMT_LARGE_AT + b->large && b->large > 0)
        b->shared_used = SIMT_LARGE_AT + b->large;
    const size_t offset = (b->shared_used + SIMT_GAP + 15) / 16 * 16;
    // The gaps are the emulator's, and don't count.
    if (b->n_objects == SIMT_MAX_SHARED || b->shared_bytes + bytes > shared_limit)
        simt_fail("more than %zu bytes of shared memory", shared_limit);
    const size_t most = simt_most_shared(simt_capability);
    if (b->large + b->shared_bytes + bytes > most)
        simt_fail("more than %zu bytes of shared memory in all", most);
    b->objects[b->n_objects++] = {key, offset, bytes};
    b->shared_used = offset + bytes;
    b->shared_bytes += bytes;
    memset(b->shared + offset, 0xff, bytes); // not a number
    TSAN(__tsan_release(&b->objects[b->n_objects - 1]);)
    return b->shared + offset;
}

void *simt_shared_large(size_t bytes) {
    simt_block *b = simt_here;
    static const char key = 0;
    for (unsigned i = 0; i < b->n_objects; ++i) {
        if (b->objects[i].key != &key) continue;
        TSAN(__tsan_acquire(&b->objects[i]);)
        return b->shared + b->objects[i].offset;
    }
    if (bytes > b->large || b->n_objects == SIMT_MAX_SHARED)
        simt_fail("%zu bytes of shared memory, of which the launch has %zu", bytes, b->large);
    b->objects[b->n_objects++] = {&key, SIMT_LARGE_AT, b->large};
    memset(b->shared + SIMT_LARGE_AT, 0xff, b->large); // not a number
    TSAN(__tsan_release(&b->objects[b->n_objects - 1]);)
    return b->shared + SIMT_LARGE_AT;
}

// Where threads wait for others shows which turn of a loop they are in.
#define STEP()                                                                                     \
    if (simt_checks_step) simt_checks_step(__builtin_return_address(0))

void simt_barrier(bool orders_global) {
    simt_block *b = simt_here;
    STEP();
    TSAN(__tsan_release(&b->at_barrier);)
    b->waiting[b->at_barrier++] = simt_me.tid;
    if (b->at_barrier == b->n) {
        const unsigned n = b->at_barrier - 1; // the last one, this one, goes on
        b->at_barrier = 0;
        ++b->phase;
        b->global_phase += orders_global;
        for (unsigned i = 0; i < n; ++i)
            wake(b, b->waiting[i]);
    } else {
        wait_for_others(b);
    }
    TSAN(__tsan_acquire(&b->at_barrier);)
}

// --- a warp together: the lane that arrives last does the work of all ----------------------------

static void shuffle(simt_block *b, simt_thread *lanes, int mask) {
    u32 given[SIMT_WARP];
    for (unsigned i = 0; i < SIMT_WARP; ++i)
        given[i] = lanes[i].value;
    for (unsigned i = 0; i < SIMT_WARP; ++i) {
        if (lanes[i].mask != mask)
            simt_fail("lanes of warp %u at different exchanges", lanes[0].index / SIMT_WARP);
        lanes[i].value = given[i ^ (unsigned)mask];
    }
    (void)b;
}

// Lane i has of matrix m row i / 4, columns 2 (i % 4) and the next; transposed: column i / 4.
static void load_matrices(simt_thread *lanes, bool turned) {
    for (unsigned m = 0; m < 4; ++m) {
        uint16_t matrix[8][8];
        for (unsigned r = 0; r < 8; ++r)
            memcpy(matrix[r], lanes[8 * m + r].row, sizeof(matrix[r]));
        for (unsigned i = 0; i < SIMT_WARP; ++i) {
            const unsigned row = i / 4, column = 2 * (i % 4);
            const uint16_t low = turned ? matrix[column][row] : matrix[row][column];
            const uint16_t high = turned ? matrix[column + 1][row] : matrix[row][column + 1];
            lanes[i].words[m] = low | (u32)high << 16;
        }
    }
}

// As gpu_tensor.h says; sums of products that are exact in a float, in the order of k.
static void multiply(simt_thread *lanes, bool is_bf16, unsigned depth) {
    float a[16][16], b[8][16];
    for (unsigned i = 0; i < SIMT_WARP; ++i) {
        const unsigned g = i / 4, c = i % 4;
        for (unsigned w = 0; w < depth / 4; ++w) {
            const bool has_b = w < depth / 8;
            for (unsigned h = 0; h < 2; ++h) {
                const uint16_t x = (uint16_t)(lanes[i].a[w] >> (16 * h)),
                               y = has_b ? (uint16_t)(lanes[i].b[w] >> (16 * h)) : 0;
                a[g + w % 2 * 8][w / 2 * 8 + 2 * c + h] =
                    is_bf16 ? gpu_bf16_to_f32(x) : gpu_f16_to_f32(x);
                if (has_b)
                    b[g][w * 8 + 2 * c + h] = is_bf16 ? gpu_bf16_to_f32(y) : gpu_f16_to_f32(y);
            }
        }
    }
    for (unsigned i = 0; i < SIMT_WARP; ++i) {
        for (unsigned e = 0; e < 4; ++e) {
            const float *row = a[i / 4 + e / 2 * 8], *column = b[2 * (i % 4) + e % 2];
            for (unsigned k = 0; k < depth; ++k)
                lanes[i].sums[e] += row[k] * column[k];
        }
    }
}

// Matrices of 8 x 8: a lane has two neighbours in a row.
static void multiply_8x8(simt_thread *lanes) {
    float a[8][8], b[8][8];
    for (unsigned i = 0; i < SIMT_WARP; ++i) {
        memcpy(&a[i / 4][i % 4 * 2], lanes[i].a, 2 * sizeof(float));
        memcpy(&b[i / 4][i % 4 * 2], lanes[i].b, 2 * sizeof(float));
    }
    for (unsigned i = 0; i < 2 * SIMT_WARP; ++i) {
        float *sum = &lanes[i / 2].sums[i % 2];
        for (unsigned k = 0; k < 8; ++k)
            *sum = __builtin_fmaf(a[i / 8][k], b[k][i % 8], *sum);
    }
}

static void do_exchange(simt_block *b, simt_thread *lanes, const simt_thread *me) {
    switch (me->exchange) {
    case SIMT_SHUFFLE: shuffle(b, lanes, me->mask); break;
    case SIMT_SYNC_WARP: break;
    case SIMT_MATRICES: load_matrices(lanes, false); break;
    case SIMT_MATRICES_TURNED: load_matrices(lanes, true); break;
    case SIMT_MMA_F16: multiply(lanes, false, 16); break;
    case SIMT_MMA_BF16: multiply(lanes, true, 16); break;
    case SIMT_MMA_F16_8: multiply(lanes, false, 8); break;
    case SIMT_MATRIX_8X8: multiply_8x8(lanes); break;
    case SIMT_MATRIX_MOVE: break;
    }
}

// Only shuffles, of CUDA's, and barriers order what the lanes do with shared memory.
static void exchange(simt_exchange kind) {
    simt_block *b = simt_here;
    simt_thread *me = b->current;
    const unsigned warp = me->index / SIMT_WARP, first = warp * SIMT_WARP;
    const unsigned n = b->n - first < SIMT_WARP ? b->n - first : (unsigned)SIMT_WARP;
    const bool orders = (kind == SIMT_SHUFFLE && !simt_metal_rules) || kind == SIMT_SYNC_WARP;
    simt_thread *lanes = &b->threads[first];
    me->exchange = kind;
    if (n < SIMT_WARP) simt_fail("an exchange in a warp of %u lanes", n);
    TSAN(__tsan_release(&b->at_exchange[warp]);)
    if (++b->at_exchange[warp] < n) {
        wait_for_others(b);
    } else {
        b->at_exchange[warp] = 0;
        for (unsigned i = 0; i < n; ++i) {
            if (lanes[i].exchange != kind)
                simt_fail("lanes of warp %u at different exchanges", warp);
        }
        do_exchange(b, lanes, me);
        if (orders) simt_join_clocks(b, first);
        for (unsigned i = 0; i < n; ++i) {
            lanes[i].warp_phase += orders;
            if (&lanes[i] != me) wake(b, lanes[i].index);
        }
    }
    TSAN(__tsan_acquire(&b->at_exchange[warp]);)
}

u32 simt_shfl_xor(u32 value, int mask) {
    simt_thread *me = simt_here->current;
    STEP();
    me->value = value;
    me->mask = mask;
    exchange(SIMT_SHUFFLE);
    return me->value;
}

void simt_sync_warp(void) {
    STEP();
    exchange(SIMT_SYNC_WARP);
}

static void multiply_together(float *d, const u32 *a, const u32 *b, simt_exchange kind) {
    simt_thread *me = simt_here->current;
    simt_needs(75, "products of warps");
    me->sums = d;
    me->a = a;
    me->b = b;
    exchange(kind);
}

void simt_needs_bf16(void) {
    simt_needs(80, "arithmetic in BF16");
}

void simt_mma_8(float *d, const u32 *a, const u32 *b) {
    STEP();
    multiply_together(d, a, b, SIMT_MMA_F16_8);
}

void simt_mma(float *d, const u32 *a, const u32 *b, bool is_bf16) {
    STEP();
    simt_needs(80, is_bf16 ? "products in BF16" : "products of 16 in depth");
    multiply_together(d, a, b, is_bf16 ? SIMT_MMA_BF16 : SIMT_MMA_F16);
}

#define ACCESS(address, size, write)                                                               \
    if (simt_checks_access) simt_checks_access(address, size, write, __builtin_return_address(0))

void simt_load_matrices(u32 *r, const void *row, bool turned) {
    simt_thread *me = simt_here->current;
    simt_needs(75, "ldmatrix");
    ACCESS(row, 16, false);
    me->words = r;
    me->row = row;
    exchange(turned ? SIMT_MATRICES_TURNED : SIMT_MATRICES);
}

static const float *element_8x8(const float *p, u32 pitch, unsigned i, bool turned) {
    const unsigned row = i / 8, column = i % 8;
    return turned ? p + column * pitch + row : p + row * pitch + column;
}

void simt_matrix_load(float *own, const float *p, u32 pitch, bool turned) {
    const unsigned lane = simt_here->current->index % SIMT_WARP;
    for (unsigned i = 0; i < 2; ++i) {
        const float *from = element_8x8(p, pitch, 2 * lane + i, turned);
        ACCESS(from, sizeof(float), false);
        own[i] = *from;
    }
    exchange(SIMT_MATRIX_MOVE);
}

void simt_matrix_store(const float *own, float *p, u32 pitch) {
    const unsigned lane = simt_here->current->index % SIMT_WARP;
    for (unsigned i = 0; i < 2; ++i) {
        float *to = (float *)(uintptr_t)element_8x8(p, pitch, 2 * lane + i, false);
        ACCESS(to, sizeof(float), true);
        *to = own[i];
    }
    exchange(SIMT_MATRIX_MOVE);
}

void simt_matrix_multiply(float *sums, const float *a, const float *b) {
    simt_thread *me = simt_here->current;
    me->sums = sums;
    me->a = (const u32 *)(const void *)a;
    me->b = (const u32 *)(const void *)b;
    exchange(SIMT_MATRIX_8X8);
}

// --- copies that go on meanwhile -----------------------------------------------------------------

// What is there may be overwritten at once: it is poisoned. What is copied comes with the wait.
void simt_copy_16(void *to, const void *from, u32 n) {
    simt_thread *me = simt_here->current;
    simt_needs(80, "copies that go on meanwhile");
    if ((uintptr_t)to % 16 != 0 || (uintptr_t)from % 16 != 0 || n > 16)
        simt_fail("thread %u copies %u bytes between addresses that are no multiples of 16",
                  me->index, n);
    ACCESS(from, n, false);
    ACCESS(to, 16, true);
    if (me->n_copies == SIMT_MAX_COPIES)
        simt_fail("more than %d copies of a thread at a time", (int)SIMT_MAX_COPIES);
    memset(to, 0xff, 16);
    simt_copy *c = &me->copies[me->n_copies++];
    *c = {(char *)to, (const char *)from, n, me->group, !me->has_waited, {}};
    if (c->is_early) memcpy(c->early, from, n);
}

void simt_finish_copy(const simt_copy *c) {
    memset(c->to, 0, 16);
    memcpy(c->to, c->is_early ? c->early : c->from, c->n);
}

void simt_copy_group(void) {
    ++simt_here->current->group;
}

void simt_copy_wait(int most) {
    simt_thread *me = simt_here->current;
    unsigned kept = 0;
    for (unsigned i = 0; i < me->n_copies; ++i) {
        const simt_copy *c = &me->copies[i];
        if (c->group + (unsigned)most >= me->group) {
            me->copies[kept++] = *c;
            continue;
        }
        if (simt_checks_access) simt_checks_access(c->to, 16, true, nullptr); // counted before
        simt_finish_copy(c);
    }
    me->n_copies = kept;
}

// --- memory --------------------------------------------------------------------------------------

static std::mutex memory_lock;
static std::map<const char *, size_t> *memory; // by its beginning
static std::atomic<unsigned> memory_changes;

void simt_memory_add(void *begin, size_t size) {
    memset(begin, 0xff, size);
    simt_memory_show(begin, size);
}

void simt_memory_show(void *begin, size_t size) {
    std::lock_guard<std::mutex> hold(memory_lock);
    if (!memory) memory = new std::map<const char *, size_t>();
    (*memory)[(const char *)begin] = size;
    ++memory_changes;
}

void simt_memory_remove(void *begin) {
    std::lock_guard<std::mutex> hold(memory_lock);
    if (memory) memory->erase((const char *)begin);
    ++memory_changes;
}

bool simt_memory_has(const void *begin, size_t size) {
    static thread_local struct {
        const char *begin, *end;
        unsigned changes;
    } last;
    const char *p = (const char *)begin;
    if (last.begin && last.changes == memory_changes && p >= last.begin && p + size <= last.end)
        return true;
    std::lock_guard<std::mutex> hold(memory_lock);
    if (!memory) return false;
    auto after = memory->upper_bound(p);
    if (after == memory->begin()) return false;
    --after;
    if (p + size > after->first + after->second) return false;
    last = {after->first, after->first + after->second, memory_changes};
    return true;
}
