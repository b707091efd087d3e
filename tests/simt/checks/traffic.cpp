// SPDX-License-Identifier: MIT
// Accesses of a block, put together to requests as warps make them: the n-th access of each lane by
// the same instruction belongs to one request. A request to device memory moves sectors of 32
// bytes; one to shared memory takes a turn for each word that the busiest bank is asked for, 128
// bytes of lanes at a time.
#include "traffic.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "emulator_state.h"

thread_local bool simt_traffic_is_counted;

struct access {
    const void *pc;
    uintptr_t where;
    uint32_t size;
    bool is_shared, write;
    uint32_t lane;
};
struct line {
    unsigned long long requests = 0, moves = 0, least = 0;
    uint32_t size = 0;
    bool is_shared = false, write = false;
};
static thread_local std::vector<access> *accesses; // of each thread of the block
typedef std::pair<const void *, bool> place;       // an instruction, and whether of shared memory
static thread_local std::map<place, line> *lines;

void simt_traffic_add(unsigned thread, const void *pc, uintptr_t where, size_t size, bool is_shared,
                      bool write) {
    accesses[thread].push_back({pc, where, (uint32_t)size, is_shared, write, thread % SIMT_WARP});
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

static void count_warp(const std::vector<access> *lanes) {
    std::map<std::pair<place, unsigned>, request> requests;
    for (unsigned i = 0; i < SIMT_WARP; ++i) {
        std::map<place, unsigned> before;
        for (const access &a : lanes[i])
            requests[{{a.pc, a.is_shared}, before[{a.pc, a.is_shared}]++}].push_back(a);
    }
    for (const auto &r : requests) {
        line *l = &(*lines)[r.first.first];
        const access &first = r.second[0];
        l->size = std::max(l->size, first.size);
        l->is_shared = first.is_shared;
        l->write = first.write;
        ++l->requests;
        if (first.is_shared)
            count_shared(r.second, l);
        else
            count_global(r.second, l);
    }
}

void simt_checks_end_block(void) {
    if (!simt_traffic_is_counted) return;
    for (unsigned i = 0; i < simt_here->n; i += SIMT_WARP)
        count_warp(&accesses[i]);
    for (unsigned i = 0; i < simt_here->n; ++i)
        accesses[i].clear();
}

void simt_traffic_start(void) {
    if (!accesses) accesses = new std::vector<access>[SIMT_MAX_THREADS];
    if (!lines) lines = new std::map<place, line>();
    lines->clear();
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
