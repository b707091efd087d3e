// SPDX-License-Identifier: MIT
// Races in device memory, by Metal's rules: for each word that a launch writes, which thread did it
// last. Words are kept by pages, since most accesses of a launch are to few of them, and most pages
// are only read. What is read before another thread writes it is not remembered: an order of
// threads by seed finds that.
#include <string.h>

#include <unordered_map>

#include "emulator_state.h"

enum { PAGE_WORDS = 1024, CACHED_PAGES = 256, MIXED = 0xfff };

struct writer {
    uint32_t block;
    uint16_t thread : 12; // MIXED: several, each of some of the bytes
    uint16_t bytes : 4;   // that are written, a bit for each
    uint16_t phase;       // barriers for device memory before it
};
struct page {
    writer words[PAGE_WORDS];
};
struct mixed_word {
    writer bytes[4];
};
struct writers {
    std::unordered_map<uintptr_t, page *> pages; // by address / PAGE_WORDS / 4
    std::unordered_map<uintptr_t, mixed_word> mixed;
    std::vector<page *> unused;
    struct {
        uintptr_t number; // + 1; 0: nothing is known
        page *found;      // NULL: nobody wrote there
    } cache[CACHED_PAGES];
};
static thread_local writers *written; // never freed

void simt_races_begin(void) {
    if (!written) written = new writers();
    for (auto &p : written->pages)
        written->unused.push_back(p.second);
    written->pages.clear();
    written->mixed.clear();
    memset(written->cache, 0, sizeof(written->cache));
}

static page *find_page(uintptr_t number, bool make) {
    auto &cached = written->cache[number % CACHED_PAGES];
    if (cached.number == number + 1 && (cached.found || !make)) return cached.found;
    auto at = written->pages.find(number);
    page *p = at == written->pages.end() ? nullptr : at->second;
    if (!p && make) {
        if (written->unused.empty()) written->unused.push_back(new page());
        p = written->unused.back();
        written->unused.pop_back();
        memset(p, 0, sizeof(*p));
        written->pages[number] = p;
    }
    cached.number = number + 1;
    cached.found = p;
    return p;
}

static void check(const writer *by, bool write) {
    const simt_block *b = simt_here;
    const bool same_block = by->block == b->index;
    if (same_block && (by->thread == b->current->index || by->phase != (uint16_t)b->global_phase))
        return;
    simt_fail("a race: thread %u of block %u %s device memory that thread %u of block %u wrote, %s",
              b->current->index, b->index, write ? "writes" : "reads", (unsigned)by->thread,
              by->block,
              same_block ? "without a barrier for device memory between" : "in the same launch");
}

static bool is_same(const writer &a, const writer &b) {
    return a.block == b.block && a.thread == b.thread && a.phase == b.phase;
}

// Bytes of a word of which each may have a writer of its own.
static void access_mixed(mixed_word *word, const writer &now, bool write) {
    for (unsigned i = 0; i < 4; ++i) {
        if (!(now.bytes >> i & 1)) continue;
        if (word->bytes[i].bytes) check(&word->bytes[i], write);
        if (write) word->bytes[i] = now;
    }
}

// now.bytes: which ones are accessed.
static void access(uintptr_t number, writer *word, const writer &now, bool write) {
    if (word->thread == MIXED) {
        access_mixed(&written->mixed[number], now, write);
        return;
    }
    if (word->bytes & now.bytes) check(word, write);
    if (!write) return;
    if ((word->bytes & ~now.bytes) == 0) {
        *word = now;
    } else if (is_same(*word, now)) {
        word->bytes |= now.bytes;
    } else {
        mixed_word *mixed = &written->mixed[number];
        for (unsigned i = 0; i < 4; ++i)
            mixed->bytes[i] = word->bytes >> i & 1 ? *word : writer{};
        access_mixed(mixed, now, write);
        word->thread = MIXED;
    }
}

void simt_races_check(const char *p, size_t size, bool write) {
    const simt_block *b = simt_here;
    const uintptr_t begin = (uintptr_t)p, end = begin + size;
    for (uintptr_t number = begin / 4; number <= (end - 1) / 4; ++number) {
        page *in = find_page(number / PAGE_WORDS, write);
        if (!in) continue;
        const unsigned first = 4 * number < begin ? (unsigned)(begin - 4 * number) : 0,
                       last = 4 * number + 4 > end ? (unsigned)(end - 4 * number) : 4;
        const unsigned bytes = (1u << last) - (1u << first);
        const writer now = {b->index, (uint16_t)(b->current->index & 0xfffu),
                            (uint16_t)(bytes & 0xfu), (uint16_t)b->global_phase};
        access(number, &in->words[number % PAGE_WORDS], now, write);
    }
}
