// SPDX-License-Identifier: MIT
// The ends of the compiler's memory instrumentation (-fsanitize=thread) of emulated kernels,
// without libtsan: every access is checked for bounds and alignment, and those of shared memory for
// races: two threads of a block, at least one of which writes, with no barrier (or, in one warp,
// exchange) between them. A warpgroup's products read like threads, and only what somebody
// wrote; nobody reads what a copy is still on its way to.
#include <link.h>
#include <string.h>

#include "emulator_state.h"
#include "traffic.h"

// The last write, and the reads since, of each word of shared memory. Reads by several lanes of a
// warp count as one by all of it, with the latest of their clocks; those by several warps in one
// phase as one by a thread that nobody is.
struct word_use {
    uint16_t thread; // number + 1, or WARP + number of the warp, or MANY
    bool is_copied;  // by a copy of the thread's that may be under way
    uint32_t phase, warp_phase;
    uint32_t clock;  // of the thread
    uint32_t fences; // of a write: the thread's fences so far + 1; 0: products see it without one
};
enum { WARP = 0x8000, MANY = 0xffff };

// The last product of a warpgroup that read 16 bytes: all of its threads have this clock then.
struct product_read {
    uint32_t phase, clock; // clock 0: there was none
};
enum { MAX_GROUPS = SIMT_MAX_THREADS / SIMT_WARPGROUP, PIECE = 16 };

struct shared_uses {
    word_use written[SIMT_SHARED_ARENA / 4], read[SIMT_SHARED_ARENA / 4];
    product_read products[SIMT_SHARED_ARENA / PIECE + 1][MAX_GROUPS];
    unsigned finished[MAX_GROUPS]; // the group of products whose clock that is
    bool has_products;
    size_t n; // words up to the highest that was used
};
// One for each thread that runs blocks, never freed; too large for the static TLS of a library that
// is opened.
static thread_local shared_uses *uses;

void simt_checks_resume_block(void) {
    if (!simt_here->checks) simt_here->checks = new shared_uses();
    uses = (shared_uses *)simt_here->checks;
}

void simt_checks_begin_block(void) {
    simt_checks_resume_block();
    memset(uses->written, 0, uses->n * sizeof(word_use));
    memset(uses->read, 0, uses->n * sizeof(word_use));
    if (uses->has_products) {
        memset(uses->products, 0, sizeof(uses->products));
        memset(uses->finished, 0, sizeof(uses->finished));
        uses->has_products = false;
    }
    uses->n = 0;
}

static unsigned warp_of(const word_use *use) {
    return use->thread >= WARP ? use->thread - (unsigned)WARP : (use->thread - 1u) / SIMT_WARP;
}

// Whether barriers in shared memory order what `use` says before what this thread does now.
static bool is_known(const word_use *use, const simt_block *b, const simt_thread *me) {
    if (b->clocks.empty() || use->thread == MANY) return false;
    const uint32_t *known = &b->clocks[(size_t)me->index * b->n];
    if (use->thread < WARP) return known[use->thread - 1u] >= use->clock;
    bool all = true;
    for (unsigned i = 0; i < SIMT_WARP; ++i)
        all &= known[warp_of(use) * SIMT_WARP + i] >= use->clock;
    return all;
}

// Whether nothing orders what `use` says before what this thread does now.
static bool races(const word_use *use, const simt_block *b, const simt_thread *me) {
    if (use->thread == 0 || use->thread == me->index + 1 || use->phase != b->phase) return false;
    const bool same_warp = use->thread != MANY && warp_of(use) == me->index / SIMT_WARP;
    return !(same_warp && use->warp_phase != me->warp_phase) && !is_known(use, b, me);
}

// Whether the copy that wrote a word is not done, or was not waited for by its thread.
static bool is_under_way(const simt_block *b, word_use *written, size_t word) {
    if (!written->is_copied) return false;
    const simt_thread *t = &b->threads[written->thread - 1u];
    const char *p = b->shared + 4 * word;
    for (unsigned i = 0; i < t->n_copies; ++i) {
        if (p >= t->copies[i].to && p < t->copies[i].to + PIECE) return true;
    }
    written->is_copied = false;
    return false;
}

// Whether this thread knows, of each warp of the group, that its product is done: a lane that
// waited for it has told.
static bool knows_product(const simt_block *b, const simt_thread *me, unsigned group,
                          uint32_t clock) {
    if (me->index / SIMT_WARPGROUP == group) return true;
    if (b->clocks.empty()) return false;
    const uint32_t *known = &b->clocks[(size_t)me->index * b->n + group * SIMT_WARPGROUP];
    unsigned n_warps = 0;
    for (unsigned first = 0; first < SIMT_WARPGROUP; first += SIMT_WARP) {
        unsigned lane = 0;
        while (lane < SIMT_WARP && known[first + lane] < clock)
            ++lane;
        n_warps += lane < SIMT_WARP;
    }
    return n_warps == SIMT_WARPGROUP / SIMT_WARP;
}

static void check_products(const simt_block *b, const simt_thread *me, size_t word) {
    for (unsigned group = 0; group < b->n / SIMT_WARPGROUP; ++group) {
        const product_read *r = &uses->products[4 * word / PIECE][group];
        if (r->clock != 0 && r->phase == b->phase && !knows_product(b, me, group, r->clock))
            simt_fail("a race: thread %u of block %u writes shared memory that a product reads, "
                      "without a barrier between",
                      me->index, b->index);
    }
}

static void check_race(simt_block *b, const simt_thread *me, size_t word, bool write, bool copies) {
    if (word >= uses->n) uses->n = word + 1;
    word_use *written = &uses->written[word], *read = &uses->read[word];
    const word_use now = {(uint16_t)(me->index + 1),
                          copies,
                          b->phase,
                          me->warp_phase,
                          b->clocks.empty() ? 0 : b->clocks[(size_t)me->index * b->n + me->index],
                          me->copies_async ? 0 : me->fences + 1};
    if (races(written, b, me) || (write && races(read, b, me)))
        simt_fail("a race: thread %u of block %u %s shared memory that thread %d %s, without a "
                  "barrier between",
                  me->index, b->index, write ? "writes" : "reads",
                  (int)(races(written, b, me) ? written->thread : read->thread) - 1,
                  races(written, b, me) ? "wrote" : "reads");
    if (write && uses->has_products) check_products(b, me, word);
    if (!write && is_under_way(b, written, word))
        simt_fail("thread %u of block %u reads shared memory that a copy of thread %u is on its "
                  "way to",
                  me->index, b->index, written->thread - 1u);
    if (write) {
        *written = now;
        read->thread = 0; // what comes after this comes after those
    } else if (read->thread == 0 || read->phase != b->phase || read->thread == now.thread) {
        *read = now;
    } else if (read->thread != MANY && warp_of(read) == me->index / SIMT_WARP) {
        const uint32_t clock = read->clock > now.clock ? read->clock : now.clock;
        *read = {
            (uint16_t)(WARP + me->index / SIMT_WARP), false, b->phase, me->warp_phase, clock, 0};
    } else {
        read->thread = MANY;
    }
}

// The clock of the products that a group waits for now: the latest of its threads', which all of
// them have from now on, so that whatever one of them tells later tells of the products, too.
static uint32_t clock_of_products(simt_block *b, unsigned group) {
    const unsigned first = group * SIMT_WARPGROUP, number = b->threads[first].product_group;
    uint32_t *own = &b->clocks[(size_t)first * b->n + first];
    if (uses->finished[group] == number) return *own;
    uint32_t latest = 1;
    for (unsigned i = 0; i < SIMT_WARPGROUP; ++i)
        latest = own[i * (b->n + 1)] > latest ? own[i * (b->n + 1)] : latest;
    for (unsigned i = 0; i < SIMT_WARPGROUP; ++i)
        own[i * (b->n + 1)] = latest;
    uses->finished[group] = number;
    uses->has_products = true;
    return latest;
}

// What a product reads is read by the thread that came last to wait for it, in whole pieces, of
// each of which the beginning is named. Whether bulk copies are ordered is not looked at: they are
// written by no thread's clock.
void simt_checks_product(const char *p, size_t) {
    simt_block *b = simt_here;
    const size_t offset = (size_t)(p - b->shared);
    if (offset % PIECE != 0) return;
    const unsigned group = b->current->index / SIMT_WARPGROUP;
    if (!b->clocks.empty())
        uses->products[offset / PIECE][group] = {b->phase, clock_of_products(b, group)};
    for (size_t word = offset / 4; word < (offset + PIECE) / 4; ++word) {
        word_use *w = &uses->written[word];
        if (w->thread == 0)
            simt_fail("a product of block %u reads shared memory that nobody wrote", b->index);
        if (is_under_way(b, w, word))
            simt_fail("a product of block %u reads shared memory that a copy of thread %u is on "
                      "its way to",
                      b->index, w->thread - 1u);
        if (w->fences && b->threads[w->thread - 1u].fences + 1 == w->fences)
            simt_fail("a product reads shared memory that thread %u of block %u wrote without a "
                      "fence since",
                      w->thread - 1u, b->index);
        if (w->fences && races(w, b, b->current))
            simt_fail("a race: a product of block %u reads shared memory that thread %u wrote, "
                      "without a barrier between",
                      b->index, w->thread - 1u);
    }
}

static bool check_shared(simt_block *b, const char *p, size_t size, bool write, bool copies) {
    const size_t offset = (size_t)(p - b->shared);
    for (unsigned i = 0; i < b->n_objects; ++i) {
        const simt_object *o = &b->objects[i];
        if (offset < o->offset || offset + size > o->offset + o->size) continue;
        for (size_t word = offset / 4; word <= (offset + size - 1) / 4; ++word)
            check_race(b, b->current, word, write, copies);
        return true;
    }
    return false;
}

// Constants of the kernels' own.
static bool is_constant(const char *p, size_t size) {
    struct range {
        uintptr_t begin, end;
    };
    static const range image = [] {
        range r = {0, 0};
        dl_iterate_phdr(
            [](dl_phdr_info *info, size_t, void *out) {
                uintptr_t low = UINTPTR_MAX, high = 0;
                for (int i = 0; i < info->dlpi_phnum; ++i) {
                    const ElfW(Phdr) *h = &info->dlpi_phdr[i];
                    if (h->p_type != PT_LOAD || (h->p_flags & PF_W)) continue;
                    low = low < info->dlpi_addr + h->p_vaddr ? low : info->dlpi_addr + h->p_vaddr;
                    high = high > info->dlpi_addr + h->p_vaddr + h->p_memsz
                               ? high
                               : info->dlpi_addr + h->p_vaddr + h->p_memsz;
                }
                const uintptr_t here = (uintptr_t)&simt_run;
                if (here < low || here >= high) return 0;
                *(range *)out = {low, high};
                return 1;
            },
            &r);
        return r;
    }();
    return (uintptr_t)p >= image.begin && (uintptr_t)p + size <= image.end;
}

// ALIGNED: to a multiple of its size; JOINED: by the compiler, of perhaps several, which are
// several on a GPU, as it has no unaligned ones; WHOLE: one at any address.
enum access_kind { ALIGNED, JOINED, WHOLE };

static inline void seen(const void *address, size_t size, bool write, access_kind kind,
                        const void *pc) {
    simt_block *b = simt_here;
    if (!b || !b->current) return;
    const char *p = (const char *)address;
    if (size == 0) { // of a lane that takes no part in a request
        if (simt_traffic_is_counted && pc)
            simt_traffic_add(b->current->index, pc, 0, 0, false, write);
        return;
    }
    if (p >= b->current->stack && p < b->current->stack + SIMT_STACK_BYTES) return;
    if (p >= (const char *)&simt_me && p < (const char *)(&simt_me + 1)) return;
    if (!write && p >= b->args && p + size <= b->args + b->args_size) return;
    const bool is_shared = p >= b->shared && p < b->shared + SIMT_SHARED_ARENA;
    // Copies that go on meanwhile are all that writes so much as a whole; without `pc` they end.
    const bool copies = write && kind == WHOLE && size == PIECE && pc;
    const bool good = is_shared ? check_shared(b, p, size, write, copies)
                                : simt_memory_has(p, size) || (!write && is_constant(p, size));
    if (!good)
        simt_fail("thread %u of block %u %s %zu bytes of %s memory outside of any object",
                  b->current->index, b->index, write ? "writes" : "reads", size,
                  is_shared ? "shared" : "global");
    if (write && !is_shared && !b->current->has_waited)
        simt_fail("thread %u of block %u writes device memory before it has waited for the "
                  "launches before its own",
                  b->current->index, b->index);
    if (simt_metal_rules && !is_shared) simt_races_check(p, size, write);
    if (kind == ALIGNED && (uintptr_t)p % size != 0)
        simt_fail(
            "thread %u of block %u accesses %zu bytes at an address that is no multiple of it",
            b->current->index, b->index, size);
    if (!simt_traffic_is_counted || !pc) return;
    const unsigned parts = kind != JOINED || size > 8 ? 1 : (uintptr_t)p % 2 ? (unsigned)size : 2;
    for (unsigned i = 0; i < parts; ++i)
        simt_traffic_add(b->current->index, (const char *)pc + i,
                         (is_shared ? (size_t)(p - b->shared) : (uintptr_t)p) + i * size / parts,
                         size / parts, is_shared, write);
}

#define HERE __builtin_return_address(0)
#define ENDS(n)                                                                                    \
    extern "C" void __tsan_read##n(void *p) {                                                      \
        seen(p, n, false, ALIGNED, HERE);                                                          \
    }                                                                                              \
    extern "C" void __tsan_write##n(void *p) {                                                     \
        seen(p, n, true, ALIGNED, HERE);                                                           \
    }                                                                                              \
    extern "C" void __tsan_unaligned_read##n(void *p) {                                            \
        seen(p, n, false, JOINED, HERE);                                                           \
    }                                                                                              \
    extern "C" void __tsan_unaligned_write##n(void *p) {                                           \
        seen(p, n, true, JOINED, HERE);                                                            \
    }
ENDS(1)
ENDS(2)
ENDS(4)
ENDS(8)
ENDS(16)
extern "C" void __tsan_read_range(void *p, unsigned long n) {
    seen(p, n, false, JOINED, HERE);
}
extern "C" void __tsan_write_range(void *p, unsigned long n) {
    seen(p, n, true, JOINED, HERE);
}
void simt_checks_access(const void *address, size_t size, bool write, const void *pc) {
    seen(address, size, write, WHOLE, pc);
}
extern "C" void __tsan_init(void) {
}
extern "C" void __tsan_func_entry(void *) {
}
extern "C" void __tsan_func_exit(void) {
}
