// SPDX-License-Identifier: MIT
// Devices of other processes through MPI, as a program sees them. Started by run.sh as the first
// process of a job, or by tools/mpi-test on hosts that it names in TEST_HOSTS; the others are
// ggml-node. The argument says which tests run.
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ggml-alloc.h"
#include "ggml-host.h"
#include "ggml-impl.h"
#include "ggml-plugin.h"
#include "support/transformer.h"

enum { PROMPT = 5, STEPS = 8, VOCABULARY = 40, SEED = 7, MOST_NODES = 64 };

static ggml_backend_dev_t remote[MOST_NODES]; // the CPU of each node, or its TEST_DEVICE
static int n_remote;

static int start(void **state) {
    const char *device = getenv("TEST_DEVICE");
    (void)state;
    ggml_backend_load_all();
    for (n_remote = 0; n_remote < MOST_NODES; ++n_remote) {
        char name[32];
        snprintf(name, sizeof(name), "MPI%d:%s", n_remote + 1, device ? device : "CPU");
        remote[n_remote] = ggml_backend_dev_by_name(name);
        if (!remote[n_remote]) break;
    }
    return n_remote > 0 ? 0 : -1;
}

static ggml_backend_dev_t cpu(void) {
    return ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
}

static const char *info_of(ggml_backend_dev_t device, const char *key) {
    const struct ggml_extension_device_info *extension = ggml_backend_reg_get_extension(
        ggml_backend_dev_backend_reg(device), GGML_EXTENSION_DEVICE_INFO, 1);
    assert_non_null(extension);
    for (const struct ggml_backend_feature *pair = extension->info(device); pair->name; ++pair)
        if (strcmp(pair->name, key) == 0) return pair->value;
    fail_msg("%s has no %s", ggml_backend_dev_name(device), key);
    return NULL;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// --- what there is -------------------------------------------------------------------------------

// The host of a node, the next one of a list with commas; without one it is this host.
static const char *next_host(const char **list, char *host, size_t size) {
    assert_int_equal(gethostname(host, size), 0);
    if (!*list) return host;
    const size_t n = strcspn(*list, ",");
    snprintf(host, size, "%.*s", (int)n, *list);
    *list += n + ((*list)[n] == ',');
    return host;
}

static void test_devices_have_hosts_ranks_and_memory(void **state) {
    (void)state;
    const char *hosts = getenv("TEST_HOSTS");
    char host[256];
    for (int i = 0; i < n_remote; ++i) {
        next_host(&hosts, host, sizeof(host));
        struct ggml_backend_dev_props props;
        ggml_backend_dev_get_props(remote[i], &props);
        assert_true(props.memory_total > 0 && props.memory_free <= props.memory_total);
        assert_true(props.memory_free > 0);
        assert_non_null(strstr(props.description, host));
        assert_string_equal(info_of(remote[i], "host"), host);
        assert_int_equal(atoi(info_of(remote[i], "mpi-rank")), i + 1);
        assert_true(atoi(info_of(remote[i], "mpi-process")) != getpid());
        for (int peer = 1; peer <= n_remote; ++peer) {
            char name[32];
            double us = 0, rate = 0;
            snprintf(name, sizeof(name), "mpi-link-%d", peer);
            if (peer == i + 1 || n_remote > 16) continue;
            assert_int_equal(sscanf(info_of(remote[i], name), "%lf us, %lf GB/s", &us, &rate), 2);
            assert_true(us > 0 && rate > 0);
            struct ggml_device_link link = {.size = sizeof(link)};
            assert_int_equal(ggml_backend_dev_link(remote[i], remote[peer - 1], &link),
                             GGML_HOST_OK);
            assert_true(fabs(link.seconds * 1e6 - us) <= 0.06);
            assert_true(fabs(link.bytes_per_second * 1e-9 - rate) <= 0.006);
        }
        struct ggml_device_link way = {.size = sizeof(way)};
        assert_int_equal(ggml_backend_dev_link(NULL, remote[i], &way), GGML_HOST_OK);
        assert_true(way.seconds > 0 && way.bytes_per_second > 0);
        assert_int_equal(ggml_backend_dev_link(remote[i], remote[i], &way), GGML_HOST_UNSUPPORTED);
    }
}

// --- bytes ---------------------------------------------------------------------------------------

struct area {
    struct ggml_context *ctx;
    ggml_backend_buffer_t buffer;
    struct ggml_tensor *tensor;
};

static void area_new(struct area *area, ggml_backend_dev_t device, size_t bytes) {
    const struct ggml_init_params params = {.mem_size = 4 * ggml_tensor_overhead(),
                                            .no_alloc = true};
    area->ctx = ggml_init(params);
    area->tensor = ggml_new_tensor_1d(area->ctx, GGML_TYPE_I8, (int64_t)bytes);
    area->buffer =
        ggml_backend_alloc_ctx_tensors_from_buft(area->ctx, ggml_backend_dev_buffer_type(device));
    if (!area->buffer) fail_msg("%s", ggml_last_error());
}

static void area_free(struct area *area) {
    ggml_backend_buffer_free(area->buffer);
    ggml_free(area->ctx);
}

static void fill(uint8_t *bytes, size_t n, uint32_t seed) {
    for (size_t i = 0; i < n; ++i) {
        seed = seed * 1664525u + 1013904223u;
        bytes[i] = (uint8_t)(seed >> 24);
    }
}

// Around what travels within a message, and around the pieces of what doesn't.
static const size_t sizes[] = {1,       16384,       16385,           100003,
                               4 << 20, 4194304 + 1, 3 * 4194304 + 5, 2 * 4194304};

static void test_bytes_come_back(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        const size_t n = sizes[i], offset = n / 3, part = n - offset;
        struct area area;
        uint8_t *out = malloc(n), *in = calloc(1, n);
        fill(out, n, (uint32_t)i);
        area_new(&area, remote[i % (size_t)n_remote], n);
        ggml_backend_tensor_set(area.tensor, out, 0, n);
        fill(out + offset, part, 99);
        ggml_backend_tensor_set(area.tensor, out + offset, offset, part);
        ggml_backend_tensor_get(area.tensor, in, 0, n);
        assert_memory_equal(in, out, n);
        ggml_backend_tensor_memset(area.tensor, 0x5a, 0, n / 2);
        memset(out, 0x5a, n / 2);
        ggml_backend_tensor_get(area.tensor, in, 0, n);
        assert_memory_equal(in, out, n);
        area_free(&area);
        free(out);
        free(in);
    }
}

// An address that a device takes of no other tensor; what lies around it stays as it is.
static void test_views_need_not_be_aligned(void **state) {
    (void)state;
    enum { BYTES = 100000, OFFSET = 12, PART = 50000, FEW = 20 };
    static uint8_t out[BYTES], in[BYTES];
    for (int part = FEW; part <= PART; part += PART - FEW) {
        struct area area;
        area_new(&area, remote[0], BYTES);
        struct ggml_tensor *view = ggml_view_1d(area.ctx, area.tensor, part, OFFSET);
        assert_int_equal(ggml_backend_view_init(view), GGML_STATUS_SUCCESS);
        ggml_clear_error();
        fill(out, BYTES, (uint32_t)part);
        ggml_backend_tensor_set(area.tensor, out, 0, BYTES);
        fill(out + OFFSET, (size_t)part, 4);
        ggml_backend_tensor_set(view, out + OFFSET, 0, (size_t)part);
        ggml_backend_tensor_get(area.tensor, in, 0, BYTES);
        assert_memory_equal(in, out, BYTES);
        ggml_backend_tensor_get(view, in, 0, (size_t)part);
        assert_memory_equal(in, out + OFFSET, (size_t)part);
        if (ggml_last_status() != GGML_HOST_OK) fail_msg("%s", ggml_last_error());
        area_free(&area);
    }
}

// From each node to the next one, whose bytes never come here on the way.
static void test_bytes_go_from_node_to_node(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        const size_t n = sizes[i];
        struct area areas[MOST_NODES];
        uint8_t *out = malloc(n), *in = calloc(1, n);
        fill(out, n, (uint32_t)i + 5);
        for (int k = 0; k < n_remote; ++k)
            area_new(&areas[k], remote[k], n);
        ggml_backend_tensor_set(areas[0].tensor, out, 0, n);
        for (int k = 1; k < n_remote; ++k)
            assert_true(ggml_backend_buffer_copy_tensor(areas[k - 1].tensor, areas[k].tensor));
        ggml_backend_tensor_get(areas[n_remote - 1].tensor, in, 0, n);
        assert_memory_equal(in, out, n);
        for (int k = 0; k < n_remote; ++k)
            area_free(&areas[k]);
        free(out);
        free(in);
    }
}

// --- a transformer -------------------------------------------------------------------------------

struct session {
    ggml_backend_t streams[MOST_NODES + 1];
    ggml_backend_dev_t devices[MOST_NODES + 1];
    int n_streams;
    struct transformer_shape shape;
    ggml_backend_sched_t sched;
    struct transformer *model;
};

// Layer by layer to one device after the other, from -1, which is the embedding.
static ggml_backend_buffer_type_t place(void *user, int layer) {
    const struct session *s = user;
    const int n = s->n_streams - 1;
    return ggml_backend_dev_buffer_type(s->devices[n > 0 ? (layer + 1) % n : 0]);
}

// With so many layers, on n devices and the host's CPU, which is the last one, as the scheduler
// wants it.
static void session_begin(struct session *s, int n_layers, ggml_backend_dev_t const *devices,
                          int n) {
    *s = (struct session){.shape = transformer_small};
    s->shape.layers = n_layers;
    for (int i = 0; i <= n; ++i) {
        s->devices[i] = i < n ? devices[i] : cpu();
        s->streams[i] = ggml_backend_dev_init(s->devices[i], NULL);
        if (!s->streams[i]) fail_msg("%s", ggml_last_error());
    }
    s->n_streams = n + 1;
    s->sched = ggml_backend_sched_new(s->streams, NULL, s->n_streams, 4096, true, false);
    assert_non_null(s->sched);
    s->model = transformer_new(&s->shape, SEED, place, NULL, s);
    if (!s->model) fail_msg("%s", ggml_last_error());
}

static void session_end(struct session *s) {
    transformer_free(s->model);
    ggml_backend_sched_free(s->sched);
    for (int i = 0; i < s->n_streams; ++i)
        ggml_backend_free(s->streams[i]);
}

static void generate(struct session *s, float out[STEPS][VOCABULARY]) {
    for (int i = 0; i < STEPS; ++i) {
        struct transformer_graph graph;
        const int n_tokens = i == 0 ? PROMPT : 1, n_past = i == 0 ? 0 : PROMPT + i - 1;
        assert_true(transformer_graph_build(s->model, n_tokens, n_past, &graph));
        ggml_backend_sched_reset(s->sched);
        assert_true(ggml_backend_sched_alloc_graph(s->sched, graph.graph));
        transformer_set_inputs(s->model, &graph, (uint64_t)(SEED + n_past));
        const enum ggml_status status = ggml_backend_sched_graph_compute(s->sched, graph.graph);
        if (status != GGML_STATUS_SUCCESS) fail_msg("step %d: %s", i, ggml_last_error());
        const size_t row = VOCABULARY * sizeof(float);
        ggml_backend_tensor_get(graph.logits, out[i], (size_t)(n_tokens - 1) * row, row);
        transformer_graph_free(&graph);
    }
}

static void expect_same(float a[STEPS][VOCABULARY], float b[STEPS][VOCABULARY]) {
    for (int i = 0; i < STEPS; ++i) {
        for (int k = 0; k < VOCABULARY; ++k) {
            if (memcmp(&a[i][k], &b[i][k], sizeof(float)) != 0)
                fail_msg("step %d, logit %d: %g, not %g", i, k, (double)a[i][k], (double)b[i][k]);
        }
    }
}

// Of nodes: each one up to four, then twice as many, and all.
static int next_count(int n) {
    if (n < 4 || n == n_remote) return n + 1;
    return 2 * n < n_remote ? 2 * n : n_remote;
}

static void test_a_transformer_over_all_nodes_equals_one_host(void **state) {
    (void)state;
    static float expected[STEPS][VOCABULARY], computed[STEPS][VOCABULARY];
    struct session s;
    for (int n = 1; n <= n_remote; n = next_count(n)) {
        const int n_layers = n > transformer_small.layers ? n : transformer_small.layers;
        session_begin(&s, n_layers, NULL, 0);
        generate(&s, expected);
        session_end(&s);
        session_begin(&s, n_layers, remote, n);
        generate(&s, computed);
        // Every node has had a part in it.
        assert_true(n == 1 || ggml_backend_sched_get_n_splits(s.sched) >= n);
        session_end(&s);
        expect_same(computed, expected);
    }
}

// As often as check_messages.py wants, which counts what the nodes are sent meanwhile.
static void test_tokens(void **state) {
    static float computed[STEPS][VOCABULARY];
    struct session s;
    (void)state;
    assert_non_null(getenv("TEST_TIMES"));
    session_begin(&s, transformer_small.layers, remote, n_remote);
    for (int i = 0; i < atoi(getenv("TEST_TIMES")); ++i)
        generate(&s, computed);
    session_end(&s);
}

// --- streams -------------------------------------------------------------------------------------

// Adds 1 to a tensor again and again; how often is told by the number of graphs.
struct counter {
    struct area area;
    struct ggml_context *ctx;
    struct ggml_cgraph *graph;
    ggml_backend_t stream;
};

static void counter_new(struct counter *counter, ggml_backend_dev_t device, int64_t n) {
    const struct ggml_init_params params = {
        .mem_size = 8 * ggml_tensor_overhead() + ggml_graph_overhead(), .no_alloc = true};
    counter->ctx = ggml_init(params);
    struct ggml_tensor *value = ggml_new_tensor_1d(counter->ctx, GGML_TYPE_F32, n);
    struct ggml_tensor *next = ggml_scale_bias_inplace(counter->ctx, value, 1.0f, 1.0f);
    counter->area.tensor = value;
    counter->area.buffer = ggml_backend_alloc_ctx_tensors_from_buft(
        counter->ctx, ggml_backend_dev_buffer_type(device));
    assert_non_null(counter->area.buffer);
    counter->graph = ggml_new_graph(counter->ctx);
    ggml_build_forward_expand(counter->graph, next);
    counter->stream = ggml_backend_dev_init(device, NULL);
    assert_non_null(counter->stream);
    ggml_backend_buffer_clear(counter->area.buffer, 0);
}

static void counter_free(struct counter *counter) {
    ggml_backend_free(counter->stream);
    ggml_backend_buffer_free(counter->area.buffer);
    ggml_free(counter->ctx);
}

// Nothing is waited for but the end.
static void test_a_stream_keeps_its_order(void **state) {
    (void)state;
    enum { N = 20000, TIMES = 200 };
    static float out[N], in[N];
    struct counter counter;
    counter_new(&counter, remote[0], N);
    for (int i = 0; i < N; ++i)
        in[i] = (float)i;
    ggml_backend_tensor_set_async(counter.stream, counter.area.tensor, in, 0, sizeof(in));
    for (int i = 0; i < TIMES; ++i) {
        assert_int_equal(ggml_backend_graph_compute_async(counter.stream, counter.graph),
                         GGML_STATUS_SUCCESS);
    }
    ggml_backend_tensor_get_async(counter.stream, counter.area.tensor, out, 0, sizeof(out));
    ggml_backend_synchronize(counter.stream);
    for (int i = 0; i < N; ++i)
        assert_true(out[i] == (float)(i + TIMES));
    counter_free(&counter);
}

// The tensors need not lie at the nodes of the streams: the host copies then.
static void test_a_copy_may_be_between_other_nodes_than_its_streams(void **state) {
    (void)state;
    enum { BYTES = 100000 };
    static uint8_t out[BYTES], in[BYTES];
    if (n_remote < 2) return;
    ggml_backend_t streams[2];
    for (int i = 0; i < 2; ++i)
        streams[i] = ggml_backend_dev_init(remote[i], NULL);
    for (int way = 0; way < 4; ++way) {
        struct area from, to;
        area_new(&from, remote[way % 2], BYTES);
        area_new(&to, remote[way / 2], BYTES);
        fill(out, BYTES, (uint32_t)way);
        ggml_backend_tensor_set(from.tensor, out, 0, BYTES);
        ggml_clear_error();
        ggml_backend_tensor_copy_async(streams[0], streams[1], from.tensor, to.tensor);
        ggml_backend_synchronize(streams[0]);
        ggml_backend_synchronize(streams[1]);
        if (ggml_last_status() != GGML_HOST_OK) fail_msg("%d: %s", way, ggml_last_error());
        ggml_backend_tensor_get(to.tensor, in, 0, BYTES);
        assert_memory_equal(in, out, BYTES);
        area_free(&from);
        area_free(&to);
    }
    for (int i = 0; i < 2; ++i)
        ggml_backend_free(streams[i]);
}

// --- what a node refuses -------------------------------------------------------------------------

static void test_a_failure_of_queued_work_is_told(void **state) {
    (void)state;
    struct counter counter;
    counter_new(&counter, remote[0], 16);
    struct ggml_tensor *node = ggml_graph_node(counter.graph, 0);
    node->nb[0] = 1; // elements that overlap: not what an operation takes
    ggml_clear_error();
    const enum ggml_status status = ggml_backend_graph_compute(counter.stream, counter.graph);
    assert_int_not_equal(status, GGML_STATUS_SUCCESS);
    assert_non_null(strstr(ggml_last_error(), "does not support"));
    node->nb[0] = sizeof(float);
    counter.graph->uid = 0;
    assert_int_equal(ggml_backend_graph_compute(counter.stream, counter.graph),
                     GGML_STATUS_SUCCESS);
    counter_free(&counter);
}

// A view in the host's memory, which computes nothing, among nodes that do.
static void test_nodes_that_compute_nothing_may_lie_elsewhere(void **state) {
    (void)state;
    struct counter counter;
    struct area area;
    float value = 0;
    counter_new(&counter, remote[0], 16);
    area_new(&area, cpu(), 64);
    struct ggml_tensor *view = ggml_view_1d(counter.ctx, area.tensor, 16, 16);
    assert_int_equal(ggml_backend_view_init(view), GGML_STATUS_SUCCESS);
    ggml_build_forward_expand(counter.graph, view);
    assert_int_equal(ggml_graph_n_nodes(counter.graph), 2);
    if (ggml_backend_graph_compute(counter.stream, counter.graph) != GGML_STATUS_SUCCESS)
        fail_msg("%s", ggml_last_error());
    ggml_backend_tensor_get(counter.area.tensor, &value, 0, sizeof(value));
    assert_true(value == 1.0f);
    counter_free(&counter);
    area_free(&area);
}

static void call_program(struct ggml_tensor *dst, const struct ggml_tensor *a, int ith, int nth,
                         void *user) {
    (void)dst, (void)a, (void)ith, (void)nth, (void)user;
}

static float compute_counter(struct counter *counter, const struct ggml_tensor *tensor) {
    float value = 0;
    if (ggml_backend_graph_compute(counter->stream, counter->graph) != GGML_STATUS_SUCCESS)
        fail_msg("%s", ggml_last_error());
    ggml_backend_tensor_get(tensor, &value, 0, sizeof(value));
    return value;
}

static enum ggml_status place_at(const struct area *area, struct ggml_tensor *tensor) {
    return ggml_backend_tensor_alloc(area->buffer, tensor,
                                     ggml_backend_buffer_get_base(area->buffer));
}

// Alternatives that were not chosen lie nowhere, read from the host's memory, or call the program.
static void test_nodes_that_are_not_chosen_may_lie_nowhere(void **state) {
    (void)state;
    struct counter counter;
    struct area host, own;
    counter_new(&counter, remote[0], 16);
    area_new(&host, cpu(), 64);
    area_new(&own, remote[0], 64);
    struct ggml_tensor *away = ggml_new_tensor_1d(counter.ctx, GGML_TYPE_F32, 16);
    assert_int_equal(place_at(&host, away), GGML_STATUS_SUCCESS);
    struct ggml_tensor *nowhere = ggml_neg(counter.ctx, away);
    struct ggml_tensor *calls = ggml_map_custom1(counter.ctx, nowhere, call_program, 1, NULL);
    ggml_graph_add_node(counter.graph, nowhere);
    ggml_graph_add_node(counter.graph, calls);
    for (int i = 0; i < 2; ++i) {
        assert_true(compute_counter(&counter, counter.area.tensor) == (float)(2 * i + 1));
        nowhere->src[0] = counter.area.tensor;
        assert_int_equal(place_at(&own, nowhere), GGML_STATUS_SUCCESS);
        nowhere->flags |= GGML_TENSOR_FLAG_COMPUTE;
        assert_true(compute_counter(&counter, nowhere) == (float)(-2 * i - 2));
        nowhere->flags &= ~GGML_TENSOR_FLAG_COMPUTE;
        nowhere->src[0] = away;
        nowhere->buffer = NULL;
        nowhere->data = NULL;
    }
    area_free(&own);
    area_free(&host);
    counter_free(&counter);
}

// Two transpositions of blocks, of which the second undoes the first and is read.
static void test_blocks_may_be_viewed_transposed(void **state) {
    (void)state;
    enum { N = 64, ROWS = 3, BLOCKS = N / 32 * ROWS };
    struct {
        uint16_t scale;
        int8_t values[32];
    } blocks[BLOCKS];
    float ones[N], sums[ROWS];
    const struct ggml_init_params params = {
        .mem_size = 8 * ggml_tensor_overhead() + ggml_graph_overhead(), .no_alloc = true};
    struct ggml_context *ctx = ggml_init(params);
    struct ggml_tensor *v = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, N);
    struct ggml_tensor *w = ggml_new_tensor_2d(ctx, GGML_TYPE_Q8_0, N, ROWS);
    struct ggml_tensor *product = ggml_mul_mat(ctx, ggml_transpose(ctx, ggml_transpose(ctx, w)), v);
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, product);
    ggml_backend_buffer_t buffer =
        ggml_backend_alloc_ctx_tensors_from_buft(ctx, ggml_backend_dev_buffer_type(remote[0]));
    ggml_backend_t stream = ggml_backend_dev_init(remote[0], NULL);
    assert_true(buffer && stream && sizeof(blocks) == ggml_nbytes(w));
    for (int i = 0; i < BLOCKS; ++i) {
        blocks[i].scale = 0x3c00; // 1
        memset(blocks[i].values, 1 + i / 2, sizeof(blocks[i].values));
    }
    for (int i = 0; i < N; ++i)
        ones[i] = 1;
    ggml_backend_tensor_set(w, blocks, 0, sizeof(blocks));
    ggml_backend_tensor_set(v, ones, 0, sizeof(ones));
    if (ggml_backend_graph_compute(stream, graph) != GGML_STATUS_SUCCESS)
        fail_msg("%s", ggml_last_error());
    ggml_backend_tensor_get(product, sums, 0, sizeof(sums));
    for (int i = 0; i < ROWS; ++i)
        assert_true(fabsf(sums[i] - (float)(N * (1 + i))) < 1);
    ggml_backend_free(stream);
    ggml_backend_buffer_free(buffer);
    ggml_free(ctx);
}

// --- the child of a fork -------------------------------------------------------------------------

// Every call fails there, and none waits for a thread that is not there.
static void test_calls_in_the_child_of_a_fork_fail(void **state) {
    (void)state;
    struct counter counter;
    counter_new(&counter, remote[0], 16);
    const pid_t child = fork();
    if (child == 0) {
        float value = 0;
        alarm(10);
        ggml_clear_error();
        ggml_backend_tensor_get(counter.area.tensor, &value, 0, sizeof(value));
        const bool refused = ggml_last_status() == GGML_HOST_DEVICE_LOST;
        const bool failed =
            ggml_backend_graph_compute(counter.stream, counter.graph) == GGML_STATUS_FAILED;
        ggml_backend_free(counter.stream);
        exit(refused && failed ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(ggml_backend_graph_compute(counter.stream, counter.graph),
                     GGML_STATUS_SUCCESS);
    counter_free(&counter);
}

// --- a node that is lost -------------------------------------------------------------------------

struct blow {
    pid_t process;
    int signal;
};

static void *strike(void *context) {
    const struct blow *blow = context;
    usleep(300000);
    kill(blow->process, blow->signal);
    return NULL;
}

// Products that take long.
static void lose_while_computing(int signal) {
    enum { SIDE = 2048, TIMES = 100 };
    const double deadline = atof(getenv("GGML_MPI_DEADLINE"));
    const struct ggml_init_params params = {
        .mem_size = (TIMES + 8) * ggml_tensor_overhead() + ggml_graph_overhead(), .no_alloc = true};
    ggml_backend_buffer_type_t memory = ggml_backend_dev_buffer_type(remote[0]);
    struct ggml_context *ctx = ggml_init(params), *nodes = ggml_init(params);
    struct ggml_tensor *a = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, SIDE, SIDE), *product = a;
    for (int i = 0; i < TIMES; ++i)
        product = ggml_mul_mat(nodes, a, product);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors_from_buft(ctx, memory);
    assert_non_null(buffer);
    ggml_backend_buffer_clear(buffer, 0);
    struct ggml_cgraph *graph = ggml_new_graph(nodes);
    ggml_build_forward_expand(graph, product);
    ggml_gallocr_t galloc = ggml_gallocr_new(memory); // products take turns in little memory
    assert_true(ggml_gallocr_alloc_graph(galloc, graph));
    ggml_backend_t stream = ggml_backend_dev_init(remote[0], NULL);
    struct blow blow = {(pid_t)atoi(info_of(remote[0], "mpi-process")), signal};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, strike, &blow), 0);
    const double begin = seconds();
    assert_int_equal(ggml_backend_graph_compute(stream, graph), GGML_STATUS_FAILED);
    const double took = seconds() - begin;
    pthread_join(thread, NULL);
    kill(blow.process, SIGKILL); // the launcher waits for one that is stopped
    assert_int_equal(ggml_last_status(), GGML_HOST_DEVICE_LOST);
    assert_non_null(strstr(ggml_last_error(), info_of(remote[0], "host")));
    if (took > 0.3 + deadline + 2) fail_msg("it took %.1f s to be told", took);
    float value;
    ggml_clear_error();
    ggml_backend_tensor_get(a, &value, 0, sizeof(value));
    assert_int_equal(ggml_last_status(), GGML_HOST_DEVICE_LOST);
    ggml_backend_free(stream);
    ggml_gallocr_free(galloc);
    ggml_backend_buffer_free(buffer);
    ggml_free(nodes);
    ggml_free(ctx);
    // The others go on.
    static float expected[STEPS][VOCABULARY], computed[STEPS][VOCABULARY];
    struct session s;
    session_begin(&s, transformer_small.layers, NULL, 0);
    generate(&s, expected);
    session_end(&s);
    session_begin(&s, transformer_small.layers, remote + 1, n_remote - 1);
    generate(&s, computed);
    session_end(&s);
    expect_same(computed, expected);
}

static void test_a_node_that_hangs_is_lost(void **state) {
    (void)state;
    lose_while_computing(SIGSTOP);
}

static void test_a_node_that_is_killed_is_lost(void **state) {
    (void)state;
    lose_while_computing(SIGKILL);
}

// One of these again and again, until the first node is killed meanwhile.
static void set_much(struct area *areas, uint8_t *bytes) {
    ggml_backend_tensor_set(areas[0].tensor, bytes, 0, ggml_nbytes(areas[0].tensor));
}

static void copy_much(struct area *areas, uint8_t *bytes) {
    (void)bytes;
    ggml_backend_tensor_copy(areas[0].tensor, areas[1].tensor);
}

static void load_much(struct area *areas, uint8_t *bytes) {
    struct area area;
    (void)areas;
    if (ggml_last_status() == GGML_HOST_DEVICE_LOST) return;
    const struct ggml_init_params params = {.mem_size = 4 * ggml_tensor_overhead(),
                                            .no_alloc = true};
    area.ctx = ggml_init(params);
    area.tensor = ggml_new_tensor_1d(area.ctx, GGML_TYPE_I8, 1 << 20);
    area.buffer =
        ggml_backend_alloc_ctx_tensors_from_buft(area.ctx, ggml_backend_dev_buffer_type(remote[0]));
    if (area.buffer) ggml_backend_tensor_set(area.tensor, bytes, 0, 1 << 20);
    area_free(&area);
}

static void lose_during(void (*work)(struct area *areas, uint8_t *bytes)) {
    enum { BYTES = 16 << 20 };
    const double deadline = atof(getenv("GGML_MPI_DEADLINE"));
    struct blow blow = {(pid_t)atoi(info_of(remote[0], "mpi-process")), SIGKILL};
    uint8_t *bytes = calloc(1, BYTES), *read = calloc(1, BYTES);
    struct area areas[2];
    pthread_t thread;
    area_new(&areas[0], remote[0], BYTES);
    area_new(&areas[1], remote[1], BYTES);
    ggml_clear_error();
    assert_int_equal(pthread_create(&thread, NULL, strike, &blow), 0);
    const double begin = seconds();
    while (ggml_last_status() == GGML_HOST_OK && seconds() < begin + deadline + 10)
        work(areas, bytes);
    const double took = seconds() - begin;
    pthread_join(thread, NULL);
    assert_int_equal(ggml_last_status(), GGML_HOST_DEVICE_LOST);
    if (took > 0.3 + deadline + 3) fail_msg("it took %.1f s to be told", took);
    ggml_clear_error();
    fill(bytes, BYTES, 3);
    ggml_backend_tensor_set(areas[1].tensor, bytes, 0, BYTES);
    ggml_backend_tensor_get(areas[1].tensor, read, 0, BYTES);
    assert_int_equal(ggml_last_status(), GGML_HOST_OK);
    assert_memory_equal(read, bytes, BYTES);
    area_free(&areas[0]);
    area_free(&areas[1]);
    free(bytes);
    free(read);
}

static void test_a_node_that_is_killed_while_it_is_loaded(void **state) {
    (void)state;
    lose_during(load_much);
}

static void test_a_node_that_is_killed_while_bytes_come(void **state) {
    (void)state;
    lose_during(set_much);
}

static void test_a_node_that_is_killed_while_it_sends_to_another(void **state) {
    (void)state;
    lose_during(copy_much);
}

// --- weights from files --------------------------------------------------------------------------

// Sets a tensor from a mapping of a file, from `offset` on, and asserts that it is there.
static void set_from_mapping(const char *folder, const char *name, size_t offset) {
    char path[512];
    struct stat about;
    struct area area;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && fstat(fd, &about) == 0);
    const size_t size = (size_t)about.st_size, n = size - offset;
    uint8_t *mapped = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0), *read = calloc(1, n);
    assert_true(mapped != MAP_FAILED && read);
    close(fd);
    area_new(&area, remote[0], n);
    ggml_clear_error();
    ggml_backend_tensor_set(area.tensor, mapped + offset, 0, n);
    assert_int_equal(ggml_last_status(), GGML_HOST_OK);
    ggml_backend_tensor_get(area.tensor, read, 0, n);
    assert_memory_equal(read, mapped + offset, n);
    area_free(&area);
    munmap(mapped, size);
    free(read);
}

// check_files.py has made the files, and looks at how many bytes the node has read.
static void test_weights_are_read_where_they_are(void **state) {
    const char *folder = getenv("TEST_FILES");
    (void)state;
    assert_non_null(folder);
    set_from_mapping(folder, "same", 12345);
    set_from_mapping(folder, "differs", 0);
    set_from_mapping(folder, "missing", 0);
    set_from_mapping(folder, "same", 0);
}

// --- nodes of other jobs -------------------------------------------------------------------------

static ggml_backend_dev_t await_device(const char *name) {
    const double begin = seconds();
    ggml_backend_dev_t device;
    while (!(device = ggml_backend_dev_by_name(name)) && seconds() < begin + 40)
        usleep(10000);
    if (!device) fail_msg("%s has not come", name);
    return device;
}

// What a device of a node that has left holds is gone, and says why.
static void expect_to_leave(ggml_backend_dev_t device) {
    const double begin = seconds();
    struct area area;
    uint8_t byte;
    area_new(&area, device, 1);
    kill((pid_t)atoi(info_of(device, "mpi-process")), SIGTERM);
    ggml_clear_error();
    while (ggml_last_status() == GGML_HOST_OK && seconds() < begin + 10) {
        usleep(10000);
        ggml_backend_tensor_get(area.tensor, &byte, 0, 1);
    }
    assert_int_equal(ggml_last_status(), GGML_HOST_DEVICE_LOST);
    if (!strstr(ggml_last_error(), "it has left")) fail_msg("%s", ggml_last_error());
    area_free(&area);
}

// check_join.py starts them, one after the other. Layers go over a node of this job and the one
// that has joined: between these bytes go through the program.
static void test_nodes_of_other_jobs_come_and_go(void **state) {
    static float expected[STEPS][VOCABULARY], computed[STEPS][VOCABULARY];
    struct session s;
    (void)state;
    assert_int_equal(n_remote, 1);
    const size_t n_before = ggml_backend_dev_count();
    session_begin(&s, transformer_small.layers, NULL, 0);
    generate(&s, expected);
    session_end(&s);
    for (int peer = 2; peer <= 3; ++peer) {
        char name[32];
        snprintf(name, sizeof(name), "MPI%d:CPU", peer);
        remote[1] = await_device(name);
        assert_true(ggml_backend_dev_count() >= n_before + (size_t)peer - 1);
        session_begin(&s, transformer_small.layers, remote, 2);
        generate(&s, computed);
        session_end(&s);
        expect_same(computed, expected);
        expect_to_leave(remote[1]);
    }
    session_begin(&s, transformer_small.layers, remote, 1);
    generate(&s, computed);
    session_end(&s);
    expect_same(computed, expected);
}

// No test: the program of check_join.py that is gone without a word when a node has joined.
static int be_killed(void) {
    ggml_backend_load_all();
    ggml_backend_dev_t device = NULL;
    for (int i = 0; i < 4000 && !(device = ggml_backend_dev_by_name("MPI1:CPU")); ++i)
        usleep(10000);
    if (!device) return 1;
    printf("node %s\n", info_of(device, "mpi-process"));
    fflush(stdout);
    return raise(SIGKILL);
}

int main(int argc, char **argv) {
    const struct CMUnitTest usual[] = {
        cmocka_unit_test(test_devices_have_hosts_ranks_and_memory),
        cmocka_unit_test(test_bytes_come_back),
        cmocka_unit_test(test_views_need_not_be_aligned),
        cmocka_unit_test(test_bytes_go_from_node_to_node),
        cmocka_unit_test(test_a_transformer_over_all_nodes_equals_one_host),
        cmocka_unit_test(test_a_stream_keeps_its_order),
        cmocka_unit_test(test_a_copy_may_be_between_other_nodes_than_its_streams),
        cmocka_unit_test(test_a_failure_of_queued_work_is_told),
        cmocka_unit_test(test_nodes_that_compute_nothing_may_lie_elsewhere),
        cmocka_unit_test(test_nodes_that_are_not_chosen_may_lie_nowhere),
        cmocka_unit_test(test_blocks_may_be_viewed_transposed),
        cmocka_unit_test(test_calls_in_the_child_of_a_fork_fail),
    };
    const struct CMUnitTest hung[] = {cmocka_unit_test(test_a_node_that_hangs_is_lost)};
    const struct CMUnitTest killed[] = {cmocka_unit_test(test_a_node_that_is_killed_is_lost)};
    const struct CMUnitTest load[] = {
        cmocka_unit_test(test_a_node_that_is_killed_while_it_is_loaded)};
    const struct CMUnitTest set[] = {cmocka_unit_test(test_a_node_that_is_killed_while_bytes_come)};
    const struct CMUnitTest copy[] = {
        cmocka_unit_test(test_a_node_that_is_killed_while_it_sends_to_another)};
    const struct CMUnitTest files[] = {cmocka_unit_test(test_weights_are_read_where_they_are)};
    const struct CMUnitTest join[] = {cmocka_unit_test(test_nodes_of_other_jobs_come_and_go)};
    const struct CMUnitTest views[] = {cmocka_unit_test(test_views_need_not_be_aligned)};
    const struct CMUnitTest tokens[] = {cmocka_unit_test(test_tokens)};
    const char *which = argc > 1 ? argv[1] : "usual";
    if (strcmp(which, "hung") == 0) return cmocka_run_group_tests(hung, start, NULL);
    if (strcmp(which, "killed") == 0) return cmocka_run_group_tests(killed, start, NULL);
    if (strcmp(which, "join") == 0) return cmocka_run_group_tests(join, start, NULL);
    if (strcmp(which, "join-killed") == 0) return be_killed();
    if (strcmp(which, "views") == 0) return cmocka_run_group_tests(views, start, NULL);
    if (strcmp(which, "tokens") == 0) return cmocka_run_group_tests(tokens, start, NULL);
    if (strcmp(which, "files") == 0) return cmocka_run_group_tests(files, start, NULL);
    if (strcmp(which, "killed-load") == 0) return cmocka_run_group_tests(load, start, NULL);
    if (strcmp(which, "killed-set") == 0) return cmocka_run_group_tests(set, start, NULL);
    if (strcmp(which, "killed-copy") == 0) return cmocka_run_group_tests(copy, start, NULL);
    return cmocka_run_group_tests(usual, start, NULL);
}
