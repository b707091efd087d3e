// SPDX-License-Identifier: MIT
// Accesses of a block, put together to requests as warps make them: those of lanes by the same
// instruction in the same turn of its loops (loops.h). A request to device memory moves sectors of
// 32 bytes; one to shared memory takes a turn for each word that the busiest bank is asked for, 128
// bytes of lanes at a time.
#include "traffic.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "emulator_state.h"
#include "loops.h"

thread_local bool simt_traffic_is_counted;

struct access {
    const void *pc;
    uintptr_t where;
    uint32_t size;
    bool is_shared, write;
    uint32_t lane;
    size_t step; // of the lane's trace
};
struct line {
    unsigned long long requests = 0, moves = 0, least = 0;
    uint32_t size = 0;
    bool is_shared = false, write = false;
};
// What is counted, by one of the system's threads.
struct counts {
    std::vector<access> accesses[SIMT_MAX_THREADS];     // of each thread of the block
    loop_trace traces[SIMT_MAX_THREADS];                // the same, and where it waited for others
    std::unordered_map<const void *, unsigned> numbers; // of instructions
    loop_graph graph;
};
static thread_local counts *counted;         // never freed
typedef std::pair<const void *, bool> place; // an instruction, and whether of shared memory
static thread_local std::map<place, line> *lines;

static void add_step(unsigned thread, const void *pc) {
    const auto at = counted->numbers.insert({pc, (unsigned)counted->graph.nodes.size()});
    if (at.second) counted->graph.nodes.emplace_back();
    counted->traces[thread].push_back(at.first->second);
}

void simt_traffic_add(unsigned thread, const void *pc, uintptr_t where, size_t size, bool is_shared,
                      bool write) {
    counted->accesses[thread].push_back({pc, where, (uint32_t)size, is_shared, write,
                                         thread % SIMT_WARP, counted->traces[thread].size()});
    add_step(thread, pc);
}

void simt_checks_step(const void *pc) {
    if (simt_traffic_is_counted) add_step(simt_here->current->index, pc);
}

typedef std::vector<access> request;

// The busiest bank's words, for as many lanes at a time as 128 bytes serve.
static void count_shared(const request &r, line *out) {
    const uint32_t lanes = std::max<uint32_t>(1, 128 / std::max<uint32_t>(4, r[0].size));
    for (size_t i = 0; i < r.size();) {
        const uint32_t turn = r[i].lane / lanes;
        std::set<uintptr_t> banks[32];
        size_t most = 0;
        for (; i < r.size() && r[i].lane / lanes == turn; ++i) {
            for (uintptr_t w = r[i].where / 4; w <= (r[i].where + r[i].size - 1) / 4; ++w) {
                banks[w % 32].insert(w);
                most = std::max(most, banks[w % 32].size());
            }
        }
        out->moves += most;
        ++out->least;
    }
}

static void count_global(const request &r, line *out) {
    std::set<uintptr_t> sectors;
    std::map<uintptr_t, uint32_t> distinct;
    unsigned long long bytes = 0;
    for (const access &a : r) {
        if (a.size == 0) continue;
        for (uintptr_t s = a.where / 32; s <= (a.where + a.size - 1) / 32; ++s)
            sectors.insert(s);
        if (distinct.insert({a.where, a.size}).second) bytes += a.size;
    }
    out->moves += sectors.size();
    out->least += (bytes + 31) / 32;
}

static void count_request(const request &r) {
    const access &first = r[0];
    line *l = &(*lines)[{first.pc, first.is_shared}];
    l->size = std::max(l->size, first.size);
    l->is_shared = first.is_shared;
    l->write = first.write;
    ++l->requests;
    if (first.is_shared)
        count_shared(r, l);
    else
        count_global(r, l);
}

static void count_warp(unsigned first) {
    typedef std::pair<uint64_t, const access *> keyed;
    std::vector<keyed> all;
    std::vector<uint64_t> turns;
    for (unsigned i = first; i < first + SIMT_WARP; ++i) {
        simt_loops_turns(&counted->graph, counted->traces[i], &turns);
        for (const access &a : counted->accesses[i])
            all.push_back({turns[a.step] ^ a.is_shared, &a});
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const keyed &a, const keyed &b) { return a.first < b.first; });
    request r;
    for (size_t i = 0; i < all.size(); ++i) {
        r.push_back(*all[i].second);
        if (i + 1 < all.size() && all[i + 1].first == all[i].first) continue;
        count_request(r);
        r.clear();
    }
}

void simt_checks_end_block(void) {
    if (!simt_traffic_is_counted) return;
    const unsigned n = simt_here->n;
    for (unsigned i = 0; i < n; i += SIMT_WARP)
        simt_loops_learn(&counted->graph, &counted->traces[i], SIMT_WARP);
    simt_loops_find(&counted->graph);
    for (unsigned i = 0; i < n; i += SIMT_WARP)
        count_warp(i);
    for (unsigned i = 0; i < n; ++i) {
        counted->accesses[i].clear();
        counted->traces[i].clear();
    }
}

void simt_traffic_start(void) {
    if (!counted) counted = new counts();
    if (!lines) lines = new std::map<place, line>();
    lines->clear();
    counted->numbers.clear();
    counted->graph = loop_graph();
    simt_traffic_is_counted = true;
}

static void print(const void *pc, const line &l) {
    Dl_info info = {};
    dladdr(pc, &info);
    fprintf(stderr, "%s+0x%lx: %llu %s %s of %u bytes: %llu %s, at least %llu\n",
            info.dli_fname ? info.dli_fname : "?",
            (unsigned long)((const char *)pc - (const char *)info.dli_fbase), l.requests,
            l.is_shared ? "shared" : "global", l.write ? "writes" : "reads", l.size, l.moves,
            l.is_shared ? "wavefronts" : "sectors", l.least);
}

void simt_traffic_stop(simt_traffic *out) {
    *out = {};
    simt_traffic_is_counted = false;
    for (const auto &l : *lines) {
        if (getenv("SIMT_TRAFFIC")) print(l.first.first, l.second);
        unsigned long long *moves = l.second.is_shared ? &out->wavefronts
                                    : l.second.write   ? &out->write_sectors
                                                       : &out->read_sectors;
        unsigned long long *least = l.second.is_shared ? &out->wavefronts_least
                                    : l.second.write   ? &out->write_least
                                                       : &out->read_least;
        *moves += l.second.moves;
        *least += l.second.least;
    }
}
