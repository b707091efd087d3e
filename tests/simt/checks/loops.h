// SPDX-License-Identifier: MIT
// Which turn of which loops of a kernel an instruction belongs to, as far as that shows in what
// threads did: lanes that skip an instruction in one turn do it together with the others in the
// next. Instructions are numbers from 0 on.
#ifndef SIMT_LOOPS_H
#define SIMT_LOOPS_H

#include <stddef.h>
#include <stdint.h>

#include <vector>

struct loop_node {
    std::vector<unsigned> next; // what came after it
    unsigned last_next = ~0u;   // the latest of these
    uint64_t count = 0;
    bool is_first = false; // of a thread
    // Lanes, of any warp, that do it; whether those of a warp do it equally often.
    uint32_t lanes = 0;
    bool is_uniform = true;
    std::vector<unsigned> loops; // from the outermost one on
    unsigned header_of = ~0u;    // the loop whose turns it begins
    unsigned component = 0;      // while loops are looked for
    bool is_entry = false;
};

struct loop_graph {
    std::vector<loop_node> nodes;
    std::vector<unsigned> loop_ends; // loops within loop i are i + 1 to loop_ends[i] - 1
    bool has_changed = false;
};

// What a lane did, in order.
typedef std::vector<unsigned> loop_trace;

// Learns from the lanes of a warp. Before: graph->nodes has all of their instructions.
void simt_loops_learn(loop_graph *graph, const loop_trace *lanes, size_t n);
// Finds the loops, if something new was learnt.
void simt_loops_find(loop_graph *graph);
// A number for each step of a lane, the same for those of other lanes that belong to the same turn.
void simt_loops_turns(const loop_graph *graph, const loop_trace &lane, std::vector<uint64_t> *out);

#endif
