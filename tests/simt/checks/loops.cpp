// SPDX-License-Identifier: MIT
// Loops are the strongly connected components (R. Tarjan, 1972) of the graph of what came after
// what; a loop without its header has inner ones, found in the same way. The header is an
// instruction that lanes do equally often if there is one, so that it counts turns.
#include "loops.h"

#include <algorithm>

// --- the graph -----------------------------------------------------------------------------------

static void learn_trace(loop_graph *graph, const loop_trace &lane) {
    loop_node *before = nullptr;
    for (unsigned i : lane) {
        loop_node *node = &graph->nodes[i];
        ++node->count;
        if (!before) {
            graph->has_changed |= !node->is_first;
            node->is_first = true;
        } else if (before->last_next != i) {
            before->last_next = i;
            if (std::find(before->next.begin(), before->next.end(), i) == before->next.end()) {
                before->next.push_back(i);
                graph->has_changed = true;
            }
        }
        before = node;
    }
}

void simt_loops_learn(loop_graph *graph, const loop_trace *lanes, size_t n) {
    std::vector<unsigned> common(graph->nodes.size()), own(graph->nodes.size());
    for (size_t lane = 0; lane < n; ++lane) {
        learn_trace(graph, lanes[lane]);
        for (unsigned i : lanes[lane])
            ++own[i];
        for (unsigned i : lanes[lane]) {
            if (own[i] == 0) continue;
            if (common[i] == 0) common[i] = own[i];
            loop_node *node = &graph->nodes[i];
            const bool is_uniform = node->is_uniform && common[i] == own[i];
            const uint32_t lanes = node->lanes | 1u << lane;
            graph->has_changed |= is_uniform != node->is_uniform || lanes != node->lanes;
            node->is_uniform = is_uniform;
            node->lanes = lanes;
            own[i] = 0;
        }
    }
}

// --- loops ---------------------------------------------------------------------------------------

struct component_search {
    loop_graph *graph;
    std::vector<bool> inside; // of the part that is searched
    std::vector<unsigned> index, low, stack;
    std::vector<bool> on_stack;
    unsigned n = 0;
    std::vector<std::vector<unsigned>> found;
};

static void visit(component_search *s, unsigned i) {
    s->index[i] = s->low[i] = ++s->n;
    s->stack.push_back(i);
    s->on_stack[i] = true;
    for (unsigned next : s->graph->nodes[i].next) {
        if (!s->inside[next]) continue;
        if (s->index[next] == 0) visit(s, next);
        if (s->on_stack[next]) s->low[i] = std::min(s->low[i], s->low[next]);
    }
    if (s->low[i] != s->index[i]) return;
    s->found.emplace_back();
    for (unsigned last = ~0u; last != i;) {
        last = s->stack.back();
        s->stack.pop_back();
        s->on_stack[last] = false;
        s->found.back().push_back(last);
    }
}

static std::vector<std::vector<unsigned>> components(loop_graph *graph,
                                                     const std::vector<unsigned> &part) {
    const size_t n = graph->nodes.size();
    component_search s = {};
    s.graph = graph;
    s.inside.resize(n);
    s.on_stack.resize(n);
    s.index.resize(n);
    s.low.resize(n);
    for (unsigned i : part)
        s.inside[i] = true;
    for (unsigned i : part) {
        if (s.index[i] == 0) visit(&s, i);
    }
    return s.found;
}

static bool is_loop(const loop_graph *graph, const std::vector<unsigned> &component) {
    const std::vector<unsigned> &next = graph->nodes[component[0]].next;
    return component.size() > 1 || std::find(next.begin(), next.end(), component[0]) != next.end();
}

// Of those that lanes do equally often, one that most lanes do, by which the loop is entered, the
// most frequent.
static unsigned choose_header(const loop_graph *graph, const std::vector<unsigned> &component) {
    unsigned best = component[0];
    for (unsigned i : component) {
        const loop_node &a = graph->nodes[i], &b = graph->nodes[best];
        const int more_lanes = __builtin_popcount(a.lanes) - __builtin_popcount(b.lanes);
        const bool better = a.is_uniform != b.is_uniform ? a.is_uniform
                            : more_lanes != 0            ? more_lanes > 0
                            : a.is_entry != b.is_entry   ? a.is_entry
                            : a.count != b.count         ? a.count > b.count
                                                         : i < best;
        if (better) best = i;
    }
    return best;
}

static void find_in(loop_graph *graph, const std::vector<unsigned> &part,
                    const std::vector<unsigned> &around) {
    static unsigned n_components;
    const std::vector<std::vector<unsigned>> all = components(graph, part);
    for (const auto &component : all) {
        ++n_components;
        for (unsigned i : component) {
            graph->nodes[i].component = n_components;
            graph->nodes[i].loops = around;
            graph->nodes[i].is_entry = graph->nodes[i].is_first;
        }
    }
    for (const loop_node &from : graph->nodes) {
        for (unsigned to : from.next)
            graph->nodes[to].is_entry |= graph->nodes[to].component != from.component;
    }
    for (const auto &component : all) {
        if (!is_loop(graph, component)) continue;
        const unsigned loop = (unsigned)graph->loop_ends.size();
        const unsigned header = choose_header(graph, component);
        std::vector<unsigned> within = around, rest;
        within.push_back(loop);
        graph->loop_ends.push_back(0);
        for (unsigned i : component) {
            if (i != header) rest.push_back(i);
        }
        graph->nodes[header].loops = within;
        graph->nodes[header].header_of = loop;
        find_in(graph, rest, within);
        graph->loop_ends[loop] = (unsigned)graph->loop_ends.size();
    }
}

void simt_loops_find(loop_graph *graph) {
    if (!graph->has_changed) return;
    std::vector<unsigned> all;
    for (unsigned i = 0; i < graph->nodes.size(); ++i) {
        graph->nodes[i].header_of = ~0u;
        all.push_back(i);
    }
    graph->loop_ends.clear();
    find_in(graph, all, {});
    graph->has_changed = false;
}

// --- turns ---------------------------------------------------------------------------------------

// The finaliser of SplitMix64 (G. Steele, D. Lea, C. Flood, 2014).
static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

void simt_loops_turns(const loop_graph *graph, const loop_trace &lane, std::vector<uint64_t> *out) {
    std::vector<uint32_t> turns(graph->loop_ends.size());
    out->clear();
    for (unsigned i : lane) {
        const loop_node &node = graph->nodes[i];
        uint64_t key = mix(i);
        for (unsigned loop : node.loops)
            key = mix(key ^ turns[loop]);
        out->push_back(key);
        if (node.header_of == ~0u) continue;
        ++turns[node.header_of];
        std::fill(turns.begin() + node.header_of + 1,
                  turns.begin() + graph->loop_ends[node.header_of], 0);
    }
}
