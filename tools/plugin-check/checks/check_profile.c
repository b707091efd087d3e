// SPDX-License-Identifier: MIT
// When the nodes of graphs are computed: the extension "ggml.profile".
#include <string.h>
#include <time.h>

#include "subject.h"

enum { N_NODES = 6, N_ELEMENTS = 256, N_TAGS = 3, MAX_SLICES = 64 };

// A chain of additions, with a view that computes nothing in the middle.
struct chain {
    const struct check_run *run;
    const struct ggml_extension_profile *profile;
    const char *name;
    ggml_backend_t stream;
    struct ggml_context *ctx;
    struct ggml_cgraph *graph;
    ggml_backend_buffer_t buffer;
};

// The plugin's extension; skips the check for a plugin without it.
static const struct ggml_extension_profile *profile_of(const struct check_run *run,
                                                       const struct devices *devices) {
    const struct ggml_plugin_table *table = devices->subject.table;
    if (!table->get_extension) check_skip(run, "it has no extensions");
    const struct ggml_extension_profile *profile =
        table->get_extension(table, GGML_EXTENSION_PROFILE, GGML_EXTENSION_PROFILE_REVISION);
    if (!profile) check_skip(run, "it does not offer " GGML_EXTENSION_PROFILE);
    return profile;
}

// The clock that slices have to be in.
static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// --- the chain -----------------------------------------------------------------------------------

// Builds the chain in the device's memory; false if it doesn't add.
static bool chain_build(struct chain *chain, ggml_backend_dev_t device) {
    const float zeros[N_ELEMENTS] = {0};
    chain->ctx = ggml_init((struct ggml_init_params){
        .mem_size = 32 * ggml_tensor_overhead() + 4 * ggml_graph_overhead(), .no_alloc = true});
    CHECK_THAT(chain->run, chain->ctx, "no memory");
    struct ggml_tensor *a = ggml_new_tensor_1d(chain->ctx, GGML_TYPE_F32, N_ELEMENTS);
    struct ggml_tensor *b = ggml_new_tensor_1d(chain->ctx, GGML_TYPE_F32, N_ELEMENTS);
    struct ggml_tensor *x = a;
    for (int i = 0; i < N_NODES; ++i) {
        x = ggml_add(chain->ctx, x, b);
        if (!device->table->supports_op(device, x)) return false;
        if (i == N_NODES / 2) x = ggml_view_1d(chain->ctx, x, N_ELEMENTS, 0);
    }
    chain->graph = ggml_new_graph(chain->ctx);
    ggml_build_forward_expand(chain->graph, x);
    chain->buffer = ggml_backend_alloc_ctx_tensors_from_buft(
        chain->ctx, device->table->get_buffer_type(device));
    CHECK_THAT(chain->run, chain->buffer, "%s: no buffer", chain->name);
    ggml_backend_tensor_set(a, zeros, 0, sizeof(zeros));
    ggml_backend_tensor_set(b, zeros, 0, sizeof(zeros));
    return true;
}

static void chain_free(struct chain *chain) {
    ggml_backend_buffer_free(chain->buffer);
    ggml_free(chain->ctx);
    ggml_backend_free(chain->stream);
}

// Computes the chain once, and waits for it.
static void chain_compute(const struct chain *chain) {
    CHECK_THAT(
        chain->run, ggml_backend_graph_compute(chain->stream, chain->graph) == GGML_STATUS_SUCCESS,
        "%s: it can't compute while times are recorded: %s", chain->name, host_counters.last_error);
}

// The body runs for each device that records and adds; skipped if none does.
static void for_each_chain(struct check_run *run, void (*body)(const struct chain *chain)) {
    struct devices devices;
    int n = 0;
    devices_open(run, &devices);
    const struct ggml_extension_profile *profile = profile_of(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        struct chain chain = {.run = run, .profile = profile, .name = label(devices.items[i])};
        chain.stream = make_stream(devices.items[i], NULL);
        if (!chain.stream) check_skip(run, "%s: no stream", chain.name);
        if (chain_build(&chain, devices.items[i])) {
            const int32_t status = profile->begin(chain.stream, MAX_SLICES);
            CHECK_THAT(run, status == GGML_HOST_OK || status == GGML_HOST_UNSUPPORTED,
                       "%s: begin returns status %d (%s)", chain.name, (int)status,
                       status_text(status));
            if (status == GGML_HOST_OK) body(&chain);
            n += status == GGML_HOST_OK;
        }
        chain_free(&chain);
    }
    if (n == 0) check_skip(run, "no device records times of nodes that add");
}

// Reads what was recorded since the last time; fails the check with any other status than OK.
static int read_slices(const struct chain *chain, struct ggml_profile_slice *slices,
                       uint64_t *out_lost) {
    uint64_t n = 0;
    *out_lost = 0;
    const int32_t status = chain->profile->read(chain->stream, slices, MAX_SLICES, &n, out_lost);
    CHECK_THAT(chain->run, status == GGML_HOST_OK, "%s: read returns status %d (%s)", chain->name,
               (int)status, status_text(status));
    CHECK_THAT(chain->run, n <= MAX_SLICES, "%s: read returns more slices than were asked for",
               chain->name);
    return (int)n;
}

static void set_tag(const struct chain *chain, uint64_t tag) {
    CHECK_THAT(chain->run, chain->profile->tag(chain->stream, tag) == GGML_HOST_OK,
               "%s: a tag can't be set", chain->name);
}

// --- checks --------------------------------------------------------------------------------------

// Size, revision and every entry, before any is called.
void profile_table(struct check_run *run) {
    struct devices devices;
    devices_open(run, &devices);
    const struct ggml_extension_profile *profile = profile_of(run, &devices);
    CHECK_THAT(run, profile->size >= sizeof(*profile), "its table is %u bytes long",
               (unsigned)profile->size);
    CHECK_THAT(run, profile->revision >= GGML_EXTENSION_PROFILE_REVISION, "its revision is 0");
    CHECK_THAT(run, profile->begin && profile->tag && profile->read && profile->end,
               "an entry is missing");
}

// Of each tag, every node that adds once, and nothing else.
static void body_nodes(const struct chain *chain) {
    struct ggml_profile_slice slices[MAX_SLICES];
    uint64_t lost;
    int counted[N_TAGS] = {0};
    bool seen[N_TAGS][N_NODES + 1] = {{false}};
    for (int i = 0; i < N_TAGS; ++i) {
        set_tag(chain, 100 + (uint64_t)i);
        chain_compute(chain);
    }
    const int n = read_slices(chain, slices, &lost);
    CHECK_THAT(chain->run, lost == 0, "%s: slices are lost that there is room for", chain->name);
    for (int i = 0; i < n; ++i) {
        const uint64_t tag = slices[i].tag - 100;
        const int first = slices[i].first_node;
        CHECK_THAT(chain->run, tag < N_TAGS, "%s: a slice has a tag that was not set", chain->name);
        CHECK_THAT(chain->run, first >= 0 && first < ggml_graph_n_nodes(chain->graph),
                   "%s: a slice names node %d, which isn't there", chain->name, first);
        CHECK_THAT(chain->run, ggml_graph_node(chain->graph, first)->op == GGML_OP_ADD,
                   "%s: a slice names node %d, which computes nothing", chain->name, first);
        CHECK_THAT(chain->run, !seen[tag][first], "%s: two slices name node %d", chain->name,
                   first);
        seen[tag][first] = true;
        counted[tag] += slices[i].n_nodes;
    }
    for (int i = 0; i < N_TAGS; ++i)
        CHECK_THAT(chain->run, counted[i] == N_NODES, "%s: %d of %d nodes are in slices",
                   chain->name, counted[i], N_NODES);
}

void profile_nodes(struct check_run *run) {
    for_each_chain(run, body_nodes);
}

// Slices lie within the time of their graph, in order and without overlap.
static void body_times(const struct chain *chain) {
    struct ggml_profile_slice slices[MAX_SLICES];
    uint64_t lost;
    for (int round = 0; round < N_TAGS; ++round) {
        const uint64_t begin = now_ns();
        chain_compute(chain);
        const uint64_t end = now_ns();
        const int n = read_slices(chain, slices, &lost);
        for (int i = 0; i < n; ++i) {
            CHECK_THAT(chain->run, slices[i].end_ns >= slices[i].begin_ns,
                       "%s: a slice ends before it begins", chain->name);
            CHECK_THAT(chain->run, slices[i].begin_ns >= begin && slices[i].end_ns <= end,
                       "%s: a slice lies outside the time of its graph", chain->name);
            CHECK_THAT(chain->run, i == 0 || slices[i].begin_ns >= slices[i - 1].end_ns,
                       "%s: slices overlap, or are not in the order of their time", chain->name);
        }
    }
}

void profile_times(struct check_run *run) {
    for_each_chain(run, body_times);
}

// All slices of a graph, then with room for one less.
static void body_capacity(const struct chain *chain) {
    struct ggml_profile_slice slices[MAX_SLICES];
    uint64_t lost;
    chain_compute(chain);
    const int all = read_slices(chain, slices, &lost);
    chain->profile->end(chain->stream);
    if (all < 2) return;
    CHECK_THAT(chain->run, chain->profile->begin(chain->stream, (uint64_t)all - 1) == GGML_HOST_OK,
               "%s: it can't record a second time", chain->name);
    chain_compute(chain);
    const int n = read_slices(chain, slices, &lost);
    CHECK_THAT(chain->run, n == all - 1 && lost == 1,
               "%s: with room for %d of %d slices it returns %d, and says that %llu are lost",
               chain->name, all - 1, all, n, (unsigned long long)lost);
    CHECK_THAT(chain->run, read_slices(chain, slices, &lost) == 0 && lost == 0,
               "%s: what was read is returned again", chain->name);
}

void profile_capacity(struct check_run *run) {
    for_each_chain(run, body_capacity);
}

// The states of recording: beginning twice is BUSY; after the end nothing can be read, tagged or
// ended, nothing more is recorded, and a new beginning has no slices of before.
static void body_end(const struct chain *chain) {
    struct ggml_profile_slice slices[MAX_SLICES];
    uint64_t n = 1, lost = 1;
    CHECK_THAT(chain->run, chain->profile->begin(chain->stream, MAX_SLICES) == GGML_HOST_BUSY,
               "%s: it begins to record while it does", chain->name);
    chain_compute(chain);
    CHECK_THAT(chain->run, chain->profile->end(chain->stream) == GGML_HOST_OK,
               "%s: it does not stop", chain->name);
    chain_compute(chain);
    CHECK_THAT(chain->run,
               chain->profile->read(chain->stream, slices, MAX_SLICES, &n, &lost) ==
                       GGML_HOST_INVALID_ARGUMENT &&
                   n == 0 && lost == 0,
               "%s: it is read after it was stopped", chain->name);
    CHECK_THAT(chain->run,
               chain->profile->end(chain->stream) == GGML_HOST_INVALID_ARGUMENT &&
                   chain->profile->tag(chain->stream, 1) == GGML_HOST_INVALID_ARGUMENT,
               "%s: it is stopped or given a tag after it was stopped", chain->name);
    CHECK_THAT(chain->run, chain->profile->begin(chain->stream, MAX_SLICES) == GGML_HOST_OK,
               "%s: it can't record a second time", chain->name);
    CHECK_THAT(chain->run, read_slices(chain, slices, &lost) == 0,
               "%s: slices are left of what was recorded before", chain->name);
}

void profile_end(struct check_run *run) {
    for_each_chain(run, body_end);
}
