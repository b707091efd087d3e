// SPDX-License-Identifier: MIT
// The fake driver's kernels, alone and as nodes of graphs. Nodes run in any order that the edges of
// the graph permit, so that a missing edge is found: the last that may run first, or by the seed of
// FAKE_CUDA_SEED or fake_cuda_set_seed(). What may begin before another node has ended does, as far
// as it gets. FAKE_CUDA_SKIP_KERNELS: nothing is computed; FAKE_CUDA_EARLY: 0: nothing may begin
// early.
#include "fake_cuda_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <memory>

// Kernels are in this library, whatever the image; it is only looked at whether it is one.
API CUresult cuModuleLoadData(CUmodule *out, const void *image) {
    ENTER
    const char *bytes = (const char *)image;
    static const unsigned char fatbin[4] = {0x50, 0xed, 0x55, 0xba};
    if (memcmp(bytes, fatbin, 4) != 0 && memcmp(bytes, "\177ELF", 4) != 0 &&
        !strstr(bytes, ".version"))
        return CUDA_ERROR_INVALID_IMAGE;
    const char *ptx = strstr(bytes, ".version ");
    if (ptx && strtod(ptx + 9, nullptr) * 10.0 > (double)fake_number("FAKE_CUDA_PTX", 90) + 0.5)
        return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    simt_set_capability(fake_capability());
    *out = (CUmodule) new char;
    ++fake.n_live;
    return CUDA_SUCCESS;
}
API CUresult cuModuleUnload(CUmodule module) {
    std::lock_guard<std::recursive_mutex> hold(fake.lock);
    delete (char *)module;
    --fake.n_live;
    return CUDA_SUCCESS;
}
static std::set<std::string> &names = *new std::set<std::string>();
API CUresult cuModuleGetFunction(CUfunction *out, CUmodule, const char *name) {
    ENTER
    if (simt_args_size(name) == 0) return CUDA_ERROR_NOT_FOUND;
    *out = (CUfunction)names.insert(name).first->c_str();
    return CUDA_SUCCESS;
}

// Bytes of shared memory that a launch may ask for, by function; without it none.
static std::map<CUfunction, unsigned> &allowed = *new std::map<CUfunction, unsigned>();
API CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value) {
    ENTER
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
        (size_t)value > simt_most_shared(fake_capability()))
        return CUDA_ERROR_INVALID_VALUE;
    allowed[function] = (unsigned)value;
    return CUDA_SUCCESS;
}

// --- launches ------------------------------------------------------------------------------------

struct launch {
    const char *name;
    unsigned grid[3], threads, shared;
    std::vector<char> args;
};

static bool is_launch(const CUDA_KERNEL_NODE_PARAMS *p) {
    return p->gridDimX != 0 && p->gridDimY != 0 && p->gridDimZ != 0 && p->gridDimX <= 0x7fffffffu &&
           p->gridDimY <= 65535 && p->gridDimZ <= 65535 && p->blockDimY == 1 && p->blockDimZ == 1 &&
           p->blockDimX != 0 && (p->sharedMemBytes == 0 || p->sharedMemBytes <= allowed[p->func]) &&
           p->blockDimX <= simt_max_threads((const char *)p->func);
}
static launch launch_of(const CUDA_KERNEL_NODE_PARAMS *p) {
    const char *name = (const char *)p->func;
    const char *args = (const char *)p->kernelParams[0];
    return {name,
            {p->gridDimX, p->gridDimY, p->gridDimZ},
            p->blockDimX,
            p->sharedMemBytes,
            std::vector<char>(args, args + simt_args_size(name))};
}

static std::map<std::string, long> &n_launches = *new std::map<std::string, long>();
API long fake_cuda_launches(const char *kernel) {
    std::lock_guard<std::recursive_mutex> hold(fake.lock);
    return n_launches[kernel];
}

// Memory of devices that this one has no access to is not there for its kernels.
static void show_memory(int device, bool all) {
    if (fake.n_visible < 2) return;
    for (auto &m : fake_memory) {
        if (m.second.device < 0 || fake_reaches(device, m.second)) continue;
        if (all)
            simt_memory_show((void *)m.first, m.second.size);
        else
            simt_memory_remove((void *)m.first);
    }
}

// before: what ends only after this has begun, or empty.
static void run(const launch &l, int device, std::function<void()> before = {}) {
    static const bool skip = getenv("FAKE_CUDA_SKIP_KERNELS");
    static int depth; // under the lock
    if (fake.lost || skip) return;
    ++n_launches[l.name];
    void *args = aligned_alloc(64, (l.args.size() + 63) / 64 * 64);
    memcpy(args, l.args.data(), l.args.size());
    const simt_launch s = {l.name, {l.grid[0], l.grid[1], l.grid[2]}, l.threads, args, l.shared};
    char text[300];
    if (depth++ == 0) show_memory(device, false);
    const auto run_before = [](void *data) { (*(std::function<void()> *)data)(); };
    if (!simt_run_early(&s, before ? +run_before : nullptr, &before, text, sizeof(text))) {
        fake.message = text;
        if (!getenv("FAKE_CUDA_QUIET")) fprintf(stderr, "fake_cuda: %s\n", text);
        fake.lost = CUDA_ERROR_LAUNCH_FAILED;
    }
    if (--depth == 0) show_memory(device, true);
    free(args);
}

API CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                            unsigned by, unsigned bz, unsigned shared, CUstream stream,
                            void **params, void **) {
    ENTER
    const CUDA_KERNEL_NODE_PARAMS p = {function, gx, gy, gz, bx, by, bz, shared, params, nullptr};
    if (!is_launch(&p)) return CUDA_ERROR_INVALID_VALUE;
    if (!fake_is_stream_here(stream)) return CUDA_ERROR_INVALID_HANDLE;
    const launch l = launch_of(&p);
    stream->queue.push_back([=] { run(l, stream->device); });
    return CUDA_SUCCESS;
}

// --- graphs --------------------------------------------------------------------------------------

struct graph_node {
    launch kernel; // name NULL: it records the event
    CUevent event;
    std::vector<size_t> before; // numbers of the nodes that it waits for
    std::vector<size_t> early;  // those of them that need not have ended when it begins
    bool is_late;               // an edge from it was left out
};
struct CUgraphNode_st {
    CUgraph graph;
    size_t number;
};
struct CUgraph_st {
    int device;
    std::vector<graph_node> nodes;
    std::deque<CUgraphNode_st> handles;
};
// Launches that wait in streams keep the nodes as they were: a change makes a copy.
struct CUgraphExec_st {
    CUgraph graph;
    std::shared_ptr<std::vector<graph_node>> nodes;
};

static uint64_t seed = fake_number("FAKE_CUDA_SEED", 0);
static long to_drop = -1; // so many edges from now, below 0: none
static bool was_dropped;

static bool drops_edge(void) {
    const bool drops = to_drop == 0;
    if (to_drop >= 0) --to_drop;
    was_dropped |= drops;
    return drops;
}

API void fake_cuda_set_seed(unsigned long value) {
    std::lock_guard<std::recursive_mutex> hold(fake.lock);
    seed = value;
}
API void fake_cuda_drop_edge(long n) {
    std::lock_guard<std::recursive_mutex> hold(fake.lock);
    to_drop = n;
    was_dropped = false;
}
API bool fake_cuda_dropped(void) {
    return was_dropped;
}

API CUresult cuGraphCreate(CUgraph *out, unsigned) {
    ENTER
    *out = new CUgraph_st{fake_current(), {}, {}};
    ++fake.n_live;
    return CUDA_SUCCESS;
}
API CUresult cuGraphDestroy(CUgraph graph) {
    std::lock_guard<std::recursive_mutex> hold(fake.lock);
    delete graph;
    --fake.n_live;
    return CUDA_SUCCESS;
}
// Adds the edge between two nodes, unless it is to be left out.
static void add_edge(CUgraph graph, size_t from, graph_node *to) {
    if (drops_edge())
        graph->nodes[from].is_late = true;
    else
        to->before.push_back(from);
}
static CUresult add_node(CUgraphNode *out, CUgraph graph, const CUgraphNode *before,
                         size_t n_before, graph_node node) {
    for (size_t i = 0; i < n_before; ++i) {
        if (before[i]->graph != graph) return CUDA_ERROR_INVALID_VALUE;
        for (size_t k = 0; k < i; ++k) {
            if (before[k] == before[i]) return CUDA_ERROR_INVALID_VALUE;
        }
        add_edge(graph, before[i]->number, &node);
    }
    graph->handles.push_back({graph, graph->nodes.size()});
    graph->nodes.push_back(std::move(node));
    *out = &graph->handles.back();
    return CUDA_SUCCESS;
}
API CUresult cuGraphAddKernelNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *before,
                                  size_t n_before, const CUDA_KERNEL_NODE_PARAMS *params) {
    ENTER
    if (!is_launch(params)) return CUDA_ERROR_INVALID_VALUE;
    return add_node(out, graph, before, n_before, {launch_of(params), nullptr, {}, {}, false});
}
// Only edges between kernels may let the second one begin early, and only from 9.0 on.
API CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from,
                                       const CUgraphNode *to, const CUgraphEdgeData *edges,
                                       size_t n) {
    ENTER
    for (size_t i = 0; i < n; ++i) {
        if (from[i]->graph != graph || to[i]->graph != graph || from[i]->number >= to[i]->number)
            return CUDA_ERROR_INVALID_VALUE;
        graph_node &node = graph->nodes[to[i]->number];
        const bool early = edges && edges[i].type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
        if (early && (fake_capability() < 90 || fake_number("FAKE_CUDA_EARLY", 1) == 0))
            return CUDA_ERROR_NOT_SUPPORTED;
        if (early && (edges[i].from_port != CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC ||
                      edges[i].to_port != 0 || node.event || graph->nodes[from[i]->number].event))
            return CUDA_ERROR_INVALID_VALUE;
        add_edge(graph, from[i]->number, &node);
        if (early) node.early.push_back(from[i]->number);
    }
    return CUDA_SUCCESS;
}
API CUresult cuGraphAddEventRecordNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *before,
                                       size_t n_before, CUevent event) {
    ENTER
    if (!fake_event_is_of(event, graph->device)) return CUDA_ERROR_INVALID_HANDLE;
    return add_node(out, graph, before, n_before, {{}, event, {}, {}, false});
}
API CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long) {
    ENTER
    *out = new CUgraphExec_st{graph, std::make_shared<std::vector<graph_node>>(graph->nodes)};
    ++fake.n_live;
    return CUDA_SUCCESS;
}
API CUresult cuGraphExecDestroy(CUgraphExec exec) {
    std::lock_guard<std::recursive_mutex> hold(fake.lock);
    delete exec;
    --fake.n_live;
    return CUDA_SUCCESS;
}
// The kernel stays the same.
API CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                            const CUDA_KERNEL_NODE_PARAMS *params) {
    ENTER
    if (node->graph != exec->graph || !is_launch(params)) return CUDA_ERROR_INVALID_VALUE;
    if (exec->nodes.use_count() > 1)
        exec->nodes = std::make_shared<std::vector<graph_node>>(*exec->nodes);
    graph_node &changed = (*exec->nodes)[node->number];
    if (changed.kernel.name != (const char *)params->func) return CUDA_ERROR_INVALID_VALUE;
    changed.kernel = launch_of(params);
    return CUDA_SUCCESS;
}

// Xorshift (Marsaglia 2003).
static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

// Without a seed. What an edge was left out from runs last of all.
static bool is_sooner(const std::vector<graph_node> &nodes, size_t a, size_t b) {
    return nodes[a].is_late != nodes[b].is_late ? nodes[b].is_late : a > b;
}

typedef std::vector<std::vector<size_t>> node_lists;

// The node, then one that may begin before that has ended and waits for nothing else, and so on;
// with a seed, only perhaps.
static std::vector<size_t> chain_from(size_t node, const std::vector<graph_node> &nodes,
                                      const node_lists &after, const std::vector<size_t> &left,
                                      uint64_t *random) {
    std::vector<size_t> chain = {node};
    for (bool more = true; more && chain.size() < SIMT_MAX_DEPTH;) {
        more = false;
        for (size_t k : after[chain.back()]) {
            const std::vector<size_t> &early = nodes[k].early;
            if (left[k] != 1 || nodes[k].is_late || early.size() != 1 || early[0] != chain.back())
                continue;
            if (seed && next_random(random) % 2) continue;
            chain.push_back(k);
            more = true;
            break;
        }
    }
    return chain;
}

// The n-th of a chain, with those before it put off until it waits for them.
static void run_chain(const std::vector<size_t> &chain, size_t n,
                      const std::vector<graph_node> &nodes, int device) {
    if (n == 0)
        run(nodes[chain[0]].kernel, device);
    else
        run(nodes[chain[n]].kernel, device, [&] { run_chain(chain, n - 1, nodes, device); });
}

// Values of the events of the nodes, by node.
static void run_graph(const std::vector<graph_node> &nodes, const std::vector<unsigned> &values,
                      int device) {
    std::vector<size_t> left(nodes.size()), ready;
    node_lists after(nodes.size());
    uint64_t random = seed * 0x9e3779b97f4a7c15ull + 1;
    for (size_t i = 0; i < nodes.size(); ++i) {
        left[i] = nodes[i].before.size();
        for (size_t k : nodes[i].before)
            after[k].push_back(i);
        if (left[i] == 0) ready.push_back(i);
    }
    while (!ready.empty()) {
        size_t at = 0;
        for (size_t i = 1; i < ready.size() && !seed; ++i)
            at = is_sooner(nodes, ready[i], ready[at]) ? i : at;
        if (seed) at = next_random(&random) % ready.size();
        const size_t node = ready[at];
        ready.erase(ready.begin() + (long)at);
        const std::vector<size_t> chain = chain_from(node, nodes, after, left, &random);
        if (nodes[node].event)
            fake_event_reached(nodes[node].event, values[node]);
        else
            run_chain(chain, chain.size() - 1, nodes, device);
        for (size_t i = 0; i < chain.size(); ++i) {
            for (size_t k : after[chain[i]]) {
                if (--left[k] == 0 && (i + 1 == chain.size() || chain[i + 1] != k))
                    ready.push_back(k);
            }
        }
    }
}

API CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
    ENTER
    if (!fake_is_stream_here(stream)) return CUDA_ERROR_INVALID_HANDLE;
    const std::shared_ptr<const std::vector<graph_node>> nodes = exec->nodes;
    std::vector<unsigned> values(nodes->size());
    for (size_t i = 0; i < nodes->size(); ++i) {
        if ((*nodes)[i].event) values[i] = fake_event_recorded((*nodes)[i].event, stream);
    }
    stream->queue.push_back([=] { run_graph(*nodes, values, stream->device); });
    return CUDA_SUCCESS;
}
