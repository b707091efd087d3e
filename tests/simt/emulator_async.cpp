// SPDX-License-Identifier: MIT
// The emulator of what sm_90a does by the way (gpu_warpgroup.h). Copies are done when no thread of
// the block can go on without them, one by one, in turn or in an order that follows from the seed;
// products when they are waited for. What is overwritten too early is poisoned until then.
//
// Accesses that such a barrier orders are no race: each thread has a vector of clocks (Mattern
// 1989), one per thread of the block, which arrivals give to the barrier and waits take from it.
#include <string.h>

#include <algorithm>

#include "emulator_state.h"
#include "gpu_warpgroup.h"

// libtsan is told what barriers order; it has clocks of its own, and would see races in these.
#if defined(SIMT_TSAN)
extern "C" {
void __tsan_acquire(void *address);
void __tsan_release(void *address);
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
}
#define TSAN(code) code
enum { HAS_CLOCKS = false };
#else
#define TSAN(code)
enum { HAS_CLOCKS = true };
#endif
#define ACCESS(address, size, write, pc)                                                           \
    if (simt_checks_access) simt_checks_access(address, size, write, pc)

// While one lives, libtsan sees no allocations and copies: lists of the emulator, which the threads
// of a block change in turn without being ordered by that, and copies that it does later than their
// threads asked for them. What a kernel accesses by these is an ACCESS of the thread that asked.
struct unseen {
    unseen() {
        TSAN(AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
             AnnotateIgnoreWritesBegin(__FILE__, __LINE__);)
    }
    ~unseen() {
        TSAN(AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
             AnnotateIgnoreReadsEnd(__FILE__, __LINE__);)
    }
};

// --- clocks --------------------------------------------------------------------------------------

static uint32_t *clocks_of(simt_block *b, unsigned thread) {
    return &b->clocks[(size_t)thread * b->n];
}

static void join(uint32_t *into, const uint32_t *from, unsigned n) {
    if (!HAS_CLOCKS) return;
    for (unsigned i = 0; i < n; ++i)
        into[i] = std::max(into[i], from[i]);
}

void simt_join_clocks(simt_block *b, unsigned first_lane) {
    if (b->clocks.empty()) return;
    uint32_t *all = clocks_of(b, first_lane), latest = 0;
    for (unsigned i = 1; i < SIMT_WARP; ++i)
        join(all, clocks_of(b, first_lane + i), b->n);
    for (unsigned i = 0; i < SIMT_WARP; ++i)
        latest = std::max(latest, all[first_lane + i]);
    for (unsigned i = 0; i < SIMT_WARP; ++i)
        all[first_lane + i] = latest;
    for (unsigned i = 0; i < SIMT_WARP; ++i) {
        uint32_t *own = clocks_of(b, first_lane + i);
        if (i > 0) memcpy(own, all, b->n * sizeof(*own));
    }
    for (unsigned i = 0; i < SIMT_WARP; ++i)
        clocks_of(b, first_lane + i)[first_lane + i] = latest + 1;
}

// --- barriers ------------------------------------------------------------------------------------

static simt_barrier_state *find(simt_block *b, const void *at) {
    for (simt_barrier_state &s : b->barriers) {
        if (s.at == at) return &s;
    }
    simt_fail("thread %u of block %u uses a barrier that was not begun", b->current->index,
              b->index);
    return nullptr;
}

static void settle(simt_barrier_state *s) {
    if (s->pending != 0 || s->bytes != 0) return;
    ++s->phase;
    s->pending = s->expected;
    s->ended = s->arrived;
}

// What the current thread did so far, for a barrier that it arrives at.
static std::vector<uint32_t> release(simt_block *b, const void *at) {
    const unsigned me = b->current->index;
    TSAN(__tsan_release((void *)(uintptr_t)at);)
    (void)at;
    if (!HAS_CLOCKS) return {};
    const uint32_t *clocks = clocks_of(b, me);
    const std::vector<uint32_t> released(clocks, clocks + b->n);
    ++clocks_of(b, me)[me];
    return released;
}

void simt_barrier_init(const void *at, u32 n) {
    simt_block *b = simt_here;
    if (b->clocks.empty() && HAS_CLOCKS) {
        b->clocks.assign((size_t)b->n * b->n, 0);
        for (unsigned i = 0; i < b->n; ++i)
            clocks_of(b, i)[i] = 1;
    }
    ACCESS(at, sizeof(u64), true, nullptr);
    simt_needs(90, "barriers for copies");
    for (const simt_barrier_state &s : b->barriers) {
        if (s.at == at) simt_fail("a barrier of block %u is begun twice", b->index);
    }
    const unseen list;
    const std::vector<uint32_t> nothing(HAS_CLOCKS ? b->n : 0, 0);
    b->barriers.push_back({at, n, n, 0, 0, nothing, nothing});
}

void simt_barrier_arrive(const void *at, u32 bytes) {
    simt_block *b = simt_here;
    simt_barrier_state *s = find(b, at);
    if (s->pending == 0) simt_fail("more arrivals at a barrier of block %u than it has", b->index);
    s->bytes += bytes;
    --s->pending;
    join(s->arrived.data(), release(b, at).data(), b->n);
    settle(s);
}

static bool has_ended(simt_block *b, const void *at, u32 parity) {
    return (find(b, at)->phase & 1) != parity;
}

void simt_barrier_wait(const void *at, u32 parity) {
    simt_block *b = simt_here;
    simt_thread *me = b->current;
    if (!has_ended(b, at, parity)) {
        me->waits_at = at;
        me->parity = parity;
        ++b->n_at_barriers;
        simt_wait(b);
    }
    if (HAS_CLOCKS) join(clocks_of(b, me->index), find(b, at)->ended.data(), b->n);
    TSAN(__tsan_acquire((void *)(uintptr_t)at);)
}

// --- copies --------------------------------------------------------------------------------------

void simt_copy_arrive(const void *at) {
    simt_block *b = simt_here;
    simt_thread *me = b->current;
    find(b, at);
    const unseen list;
    b->deliveries.push_back({at, nullptr, nullptr, 0, me->index, me->group++, release(b, at)});
}

void simt_bulk_copy(void *to, const void *from, u32 bytes, const void *at) {
    simt_block *b = simt_here;
    if ((uintptr_t)to % 16 != 0 || (uintptr_t)from % 16 != 0 || bytes % 16 != 0)
        simt_fail("thread %u copies %u bytes between addresses that are no multiples of 16",
                  b->current->index, bytes);
    find(b, at);
    ACCESS(from, bytes, false, __builtin_return_address(0));
    b->current->copies_async = true;
    ACCESS(to, bytes, true, nullptr);
    b->current->copies_async = false;
    TSAN(__tsan_release((void *)(uintptr_t)at);) // the bytes arrive when they have been written
    const unseen list;
    memset(to, 0xff, bytes);
    b->deliveries.push_back({at, (char *)to, (const char *)from, bytes, b->current->index, 0, {}});
}

static void copy_groups(simt_thread *t, unsigned last) {
    unsigned kept = 0;
    for (unsigned i = 0; i < t->n_copies; ++i) {
        const simt_copy c = t->copies[i];
        if (c.group > last) {
            t->copies[kept++] = c;
            continue;
        }
        simt_finish_copy(&c);
    }
    t->n_copies = kept;
}

static void deliver(simt_block *b) {
    const size_t i = simt_is_random() ? simt_random(b) % b->deliveries.size() : 0;
    const simt_delivery d = b->deliveries[i];
    b->deliveries.erase(b->deliveries.begin() + (long)i);
    simt_barrier_state *s = find(b, d.barrier);
    if (d.to) {
        memcpy(d.to, d.from, d.bytes);
        s->bytes -= d.bytes;
    } else {
        copy_groups(&b->threads[d.thread], d.group);
        join(s->arrived.data(), d.clocks.data(), b->n);
        --s->pending;
    }
    settle(s);
}

bool simt_advance(simt_block *b) {
    const unseen work;
    while (b->n_at_barriers > 0) {
        bool any = false;
        for (unsigned i = 0; i < b->n; ++i) {
            simt_thread *t = &b->threads[i];
            if (!t->waits_at || !has_ended(b, t->waits_at, t->parity)) continue;
            t->waits_at = nullptr;
            --b->n_at_barriers;
            simt_wake(b, i);
            any = true;
        }
        if (any) return true;
        if (b->deliveries.empty()) return false;
        deliver(b);
    }
    return false;
}

void simt_begin_async(simt_block *b) {
    b->barriers.clear();
    b->deliveries.clear();
    b->clocks.clear();
    b->n_at_barriers = 0;
    memset(b->at_products, 0, sizeof(b->at_products));
}

void simt_end_async(simt_block *b) {
    if (!b->deliveries.empty()) simt_fail("block %u ends before its copies", b->index);
}

// --- products of warpgroups ----------------------------------------------------------------------

u64 simt_wgmma_operand(const void *tile) {
    const size_t at = (size_t)((const char *)tile - simt_here->shared);
    if (at % 1024 != 0 || at >= SIMT_SHARED_ARENA)
        simt_fail("a tile that does not begin at a multiple of 1024 bytes of shared memory");
    return (u64)(at >> 4) | (u64)1 << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}

u64 simt_wgmma_operand_turned(const void *tile, u32 panel) {
    if (panel % 1024 != 0 || panel >= 1 << 18) simt_fail("panels of %u bytes", panel);
    return (simt_wgmma_operand(tile) & ~((u64)0x3fff << 16)) | (u64)(panel >> 4) << 16;
}

void simt_fence_async(void) {
    ++simt_here->current->fences;
}

void simt_wgmma(float *d, u32 n, const u32 *a, u64 operand, bool is_bf16, bool is_turned) {
    simt_thread *me = simt_here->current;
    if (simt_capability != 90) simt_fail("wgmma on capability %u", simt_capability);
    if (me->n_products == SIMT_MAX_PRODUCTS)
        simt_fail("more than %d products at a time", (int)SIMT_MAX_PRODUCTS);
    me->products[me->n_products++] = {d,       n,         {a[0], a[1], a[2], a[3]}, operand,
                                      is_bf16, is_turned, me->product_group};
}

void simt_wgmma_commit(void) {
    ++simt_here->current->product_group;
}

static float half_at(u32 word, unsigned h, bool is_bf16) {
    const u16 bits = (u16)(word >> (16 * h));
    return is_bf16 ? gpu_bf16_to_f32(bits) : gpu_f16_to_f32(bits);
}

// At a place before the swizzle, which is of the address.
static const char *swizzled(simt_block *b, size_t at) {
    const char *from = b->shared + (at ^ (at >> 7 & 7) << 4);
    if (simt_checks_product) simt_checks_product(from, 2);
    return from;
}

// Column n of the operand, 16 elements of k: rows are k where it is turned.
static void fetch(simt_block *b, const simt_product &p, unsigned n, float (*out)[256]) {
    const size_t start = (size_t)(p.operand & 0x3fff) << 4;
    const size_t panel = (size_t)(p.operand >> 16 & 0x3fff) << 4;
    for (unsigned k = 0; k < 16 && p.is_turned; ++k) {
        u16 half;
        memcpy(&half, swizzled(b, start + n / 64 * panel + k * 128 + n % 64 * 2), sizeof(half));
        out[k][n] = half_at(half, 0, p.is_bf16);
    }
    if (p.is_turned) return;
    for (unsigned piece = 0; piece < 2; ++piece) {
        const size_t at = start + n / 8 * 1024 + n % 8 * 128 + piece * 16;
        const char *from = swizzled(b, at);
        u16 halves[8];
        memcpy(halves, from, sizeof(halves));
        for (unsigned i = 0; i < 8; ++i)
            out[8 * piece + i][n] = half_at(halves[i], 0, p.is_bf16);
    }
}

// Sums in the order of k.
static void multiply(simt_block *b, simt_thread *group, unsigned index) {
    float(*right)[256] = b->right, *sums = b->sums;
    const simt_product &p = group[0].products[index];
    for (unsigned n = 0; n < p.n; ++n)
        fetch(b, p, n, right);
    for (unsigned row = 0; row < 64; ++row) {
        const unsigned first = row / 16 * SIMT_WARP + row % 8 * 4, upper = row % 16 / 8;
        for (unsigned n = 0; n < p.n; ++n)
            sums[n] = group[first + n % 8 / 2].products[index].d[n / 8 * 4 + 2 * upper + n % 2];
        for (unsigned k = 0; k < 16; ++k) {
            const u32 word = group[first + k % 8 / 2].products[index].a[k / 8 * 2 + upper];
            const float left = half_at(word, k % 2, p.is_bf16);
            for (unsigned n = 0; n < p.n; ++n)
                sums[n] += left * right[k][n];
        }
        for (unsigned n = 0; n < p.n; ++n)
            group[first + n % 8 / 2].products[index].d[n / 8 * 4 + 2 * upper + n % 2] = sums[n];
    }
}

// Of groups that are closed.
static bool is_due(const simt_thread *t, unsigned i) {
    return i < t->n_products && t->products[i].group < t->product_group;
}

static void finish_products(simt_block *b, simt_thread *group) {
    for (unsigned t = 1; t < SIMT_WARPGROUP; ++t) {
        for (unsigned i = 0; i < group[0].n_products; ++i) {
            if (group[t].n_products != group[0].n_products ||
                group[t].products[i].operand != group[0].products[i].operand ||
                group[t].products[i].n != group[0].products[i].n ||
                group[t].products[i].is_turned != group[0].products[i].is_turned)
                simt_fail("warps of a group at different products");
        }
    }
    unsigned n = 0;
    while (is_due(&group[0], n))
        multiply(b, group, n++);
    const unseen lists;
    for (unsigned t = 0; t < SIMT_WARPGROUP; ++t) {
        group[t].n_products -= n;
        memmove(group[t].products, group[t].products + n,
                group[t].n_products * sizeof(simt_product));
    }
}

void simt_wgmma_finish(void) {
    simt_block *b = simt_here;
    const unsigned index = b->current->index / SIMT_WARPGROUP, first = index * SIMT_WARPGROUP;
    if (first + SIMT_WARPGROUP > b->n) simt_fail("a product in a group of less than four warps");
    if (!is_due(b->current, 0)) return;
    if (++b->at_products[index] < SIMT_WARPGROUP) {
        simt_wait(b);
        return;
    }
    b->at_products[index] = 0;
    finish_products(b, &b->threads[first]);
    for (unsigned t = first; t < first + SIMT_WARPGROUP; ++t) {
        if (t != b->current->index) simt_wake(b, t);
    }
}
