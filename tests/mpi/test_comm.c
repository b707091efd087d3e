// SPDX-License-Identifier: MIT
// Groups of nodes' streams (ggml.comm), and tensors that are split over nodes. Started by run.sh as
// the first process of a job; the others are ggml-node. The argument says which tests run.
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

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "ggml-alloc.h"
#include "ggml-host.h"
#include "ggml-impl.h"
#include "ggml-plugin.h"
#include "support/transformer.h"

enum { MOST = 8, STEPS = 4, PROMPT = 5 };

static ggml_backend_dev_t remote[MOST]; // of all nodes
static int n_remote;
static const struct ggml_extension_comm *comm;

static int start(void **state) {
    (void)state;
    ggml_backend_load_all();
    for (size_t i = 0; i < ggml_backend_dev_count() && n_remote < MOST; ++i) {
        ggml_backend_dev_t device = ggml_backend_dev_get(i);
        const bool is_remote = strncmp(ggml_backend_dev_name(device), "MPI", 3) == 0;
        if (is_remote) remote[n_remote++] = device;
    }
    if (n_remote == 0) return -1;
    comm = ggml_backend_reg_get_extension(ggml_backend_dev_backend_reg(remote[0]),
                                          GGML_EXTENSION_COMM, GGML_EXTENSION_COMM_REVISION);
    return comm ? 0 : -1;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// --- groups --------------------------------------------------------------------------------------

// One rank for each device, and the last one twice: its node has several ranks.
struct ranks {
    uint32_t n;
    ggml_backend_t streams[MOST + 1];
    ggml_backend_buffer_t buffers[MOST + 1];
    struct ggml_context *ctx;
    struct ggml_tensor *parts[MOST + 1], *results[MOST + 1];
    ggml_comm_group_t group;
};

static ggml_backend_dev_t device_of(uint32_t rank) {
    return remote[rank < (uint32_t)n_remote ? rank : (uint32_t)n_remote - 1];
}

static struct ggml_tensor *tensor_at(struct ranks *r, ggml_backend_buffer_t buffer, size_t offset,
                                     enum ggml_type type, int64_t n) {
    struct ggml_tensor *tensor = ggml_new_tensor_1d(r->ctx, type, n);
    char *base = ggml_backend_buffer_get_base(buffer);
    assert_int_equal(ggml_backend_tensor_alloc(buffer, tensor, base + offset), GGML_STATUS_SUCCESS);
    return tensor;
}

static void ranks_new(struct ranks *r, enum ggml_type type, int64_t n) {
    const struct ggml_init_params params = {.mem_size = 64 * ggml_tensor_overhead(),
                                            .no_alloc = true};
    *r = (struct ranks){.n = (uint32_t)n_remote + 1, .ctx = ggml_init(params)};
    const size_t size = (size_t)n * ggml_type_size(type), room = (size + 127) / 128 * 128;
    for (uint32_t i = 0; i < r->n; ++i) {
        r->streams[i] = ggml_backend_dev_init(device_of(i), NULL);
        r->buffers[i] = ggml_backend_buft_alloc_buffer(ggml_backend_dev_buffer_type(device_of(i)),
                                                       room * (r->n + 2));
        assert_non_null(r->streams[i]);
        assert_non_null(r->buffers[i]);
        r->parts[i] = tensor_at(r, r->buffers[i], 0, type, n);
        r->results[i] = tensor_at(r, r->buffers[i], room, type, n * r->n);
    }
    const struct ggml_comm_ranks held = {
        .size = sizeof(held), .n_ranks = r->n, .n_streams = r->n, .streams = r->streams};
    assert_int_equal(comm->group_new(&held, &r->group), GGML_HOST_OK);
}

static void ranks_free(struct ranks *r) {
    for (uint32_t i = 0; i < r->n; ++i)
        ggml_backend_synchronize(r->streams[i]);
    comm->group_free(r->group);
    for (uint32_t i = 0; i < r->n; ++i) {
        ggml_backend_free(r->streams[i]);
        ggml_backend_buffer_free(r->buffers[i]);
    }
    ggml_free(r->ctx);
}

// Small integers, exact in every type: any order of additions gives the same.
static float number(uint32_t rank, int64_t i) {
    return (float)((i * 7 + 3 * rank) % 11) - 5.0f + (float)(rank == 1);
}

static void write_number(enum ggml_type type, void *data, int64_t i, float value) {
    if (type == GGML_TYPE_F16)
        ((ggml_fp16_t *)data)[i] = ggml_fp32_to_fp16(value);
    else if (type == GGML_TYPE_BF16)
        ((ggml_bf16_t *)data)[i] = ggml_fp32_to_bf16(value);
    else
        ((float *)data)[i] = value;
}

static void set_numbers(const struct ranks *r, uint32_t rank, struct ggml_tensor *tensor,
                        uint32_t of_rank) {
    char *data = malloc(ggml_nbytes(tensor));
    for (int64_t i = 0; i < ggml_nelements(tensor); ++i)
        write_number(tensor->type, data, i, number(of_rank, i));
    ggml_backend_tensor_set_async(r->streams[rank], tensor, data, 0, ggml_nbytes(tensor));
    ggml_backend_synchronize(r->streams[rank]);
    free(data);
}

static void expect(const struct ranks *r, uint32_t rank, const struct ggml_tensor *tensor,
                   float (*expected)(const struct ranks *r, int64_t i, const void *context),
                   const void *context) {
    const size_t size = ggml_nbytes(tensor);
    char *got = malloc(size), *wanted = malloc(size);
    ggml_backend_synchronize(r->streams[rank]);
    ggml_backend_tensor_get(tensor, got, 0, size);
    for (int64_t i = 0; i < ggml_nelements(tensor); ++i)
        write_number(tensor->type, wanted, i, expected(r, i, context));
    assert_memory_equal(got, wanted, size);
    free(got);
    free(wanted);
}

// --- sums ----------------------------------------------------------------------------------------

struct combination {
    enum ggml_comm_reduction reduction;
    uint8_t counts[MOST + 1];
};

static float combined(const struct ranks *r, int64_t i, const void *context) {
    const struct combination *c = context;
    float value = 0;
    bool any = false;
    for (uint32_t k = 0; k < r->n; ++k) {
        if (!c->counts[k]) continue;
        const float part = number(k, i);
        value = !any                            ? part
                : c->reduction == GGML_COMM_SUM ? value + part
                : part > value                  ? part
                                                : value;
        any = true;
    }
    return value;
}

static void reduce(enum ggml_type type, int64_t n, const struct combination *c) {
    struct ranks r;
    ranks_new(&r, type, n);
    for (uint32_t i = 0; i < r.n; ++i)
        set_numbers(&r, i, r.parts[i], i);
    assert_int_equal(comm->all_reduce(r.group, c->reduction, r.parts, c->counts), GGML_HOST_OK);
    for (uint32_t i = 0; i < r.n; ++i)
        expect(&r, i, r.parts[i], combined, c);
    ranks_free(&r);
}

// Fewer elements than ranks, few, many, and more than a piece of a transfer.
static const int64_t sizes[] = {1, 2, 100, 8192, 8193, 100003, 3500001};

// What goes on between nodes of several ranks: few and many elements.
static void test_some_sums(void **state) {
    static const int64_t some[] = {2, 100, 8193, 20001};
    (void)state;
    for (size_t s = 0; s < sizeof(some) / sizeof(some[0]); ++s) {
        for (uint32_t mask = 0; mask < 3; ++mask) {
            struct combination c = {mask == 2 ? GGML_COMM_MAX : GGML_COMM_SUM, {0}};
            for (int k = 0; k <= MOST; ++k) // all, the second, all but the first
                c.counts[k] = mask == 0 || (mask == 1 ? k == 1 : k > 0);
            reduce(s % 2 ? GGML_TYPE_F16 : GGML_TYPE_F32, some[s], &c);
        }
    }
}

static void test_sums(void **state) {
    (void)state;
    static const enum ggml_type types[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16};
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); ++s) {
        for (size_t t = 0; t < (sizes[s] > 200000 ? 1 : 3); ++t) {
            for (uint32_t mask = 0; mask < 4; ++mask) {
                struct combination c = {mask == 3 ? GGML_COMM_MAX : GGML_COMM_SUM, {0}};
                for (int k = 0; k <= MOST; ++k) // none, all, the second, all but the first
                    c.counts[k] = mask == 0 ? 0 : mask == 1 ? 1 : mask == 2 ? k == 1 : k > 0;
                reduce(types[t], sizes[s], &c);
            }
        }
    }
}

// Numbers whose sum depends on the order: all ranks have the same bits.
static void test_every_rank_has_the_same_bits(void **state) {
    (void)state;
    for (size_t s = 2; s < 6; ++s) {
        struct ranks r;
        const size_t size = (size_t)sizes[s] * sizeof(float);
        float *first = malloc(size), *other = malloc(size);
        ranks_new(&r, GGML_TYPE_F32, sizes[s]);
        for (uint32_t i = 0; i < r.n; ++i) {
            for (int64_t k = 0; k < sizes[s]; ++k)
                first[k] = sinf((float)k * 0.37f + (float)i) * powf(10.0f, (float)(k % 7) - 3.0f);
            ggml_backend_tensor_set(r.parts[i], first, 0, size);
        }
        assert_int_equal(comm->all_reduce(r.group, GGML_COMM_SUM, r.parts, NULL), GGML_HOST_OK);
        for (uint32_t i = 0; i < r.n; ++i) {
            ggml_backend_synchronize(r.streams[i]);
            ggml_backend_tensor_get(r.parts[i], i == 0 ? first : other, 0, size);
            if (i > 0) assert_memory_equal(first, other, size);
        }
        ranks_free(&r);
        free(first);
        free(other);
    }
}

// --- copies --------------------------------------------------------------------------------------

static float of_rank(const struct ranks *r, int64_t i, const void *context) {
    (void)r;
    return number(*(const uint32_t *)context, i);
}

static float gathered(const struct ranks *r, int64_t i, const void *context) {
    (void)context;
    const int64_t n = ggml_nelements(r->parts[0]);
    return number((uint32_t)(i / n), i % n);
}

static void test_broadcasts_and_gathers(void **state) {
    (void)state;
    struct ranks r;
    ranks_new(&r, GGML_TYPE_F32, 30001);
    for (uint32_t root = 0; root < r.n; ++root) {
        const uint32_t expected = root + 4;
        for (uint32_t i = 0; i < r.n; ++i)
            set_numbers(&r, i, r.parts[i], i + 4);
        assert_int_equal(comm->broadcast(r.group, root, r.parts), GGML_HOST_OK);
        for (uint32_t i = 0; i < r.n; ++i)
            expect(&r, i, r.parts[i], of_rank, &expected);
    }
    for (uint32_t i = 0; i < r.n; ++i)
        set_numbers(&r, i, r.parts[i], i);
    assert_int_equal(
        comm->all_gather(r.group, (const struct ggml_tensor *const *)r.parts, r.results),
        GGML_HOST_OK);
    for (uint32_t i = 0; i < r.n; ++i)
        expect(&r, i, r.results[i], gathered, NULL);
    ranks_free(&r);
}

// Between all pairs, also within a node; what is sent first is received first, whatever becomes of
// the tensor. One message is never received.
static void test_messages(void **state) {
    (void)state;
    struct ranks r;
    ranks_new(&r, GGML_TYPE_F32, 5000);
    for (uint32_t from = 0; from < r.n; ++from) {
        const uint32_t to = (from + 1) % r.n;
        for (uint32_t k = 0; k < 3; ++k) {
            set_numbers(&r, from, r.parts[from], 10 * from + k);
            assert_int_equal(comm->send(r.group, from, to, r.parts[from]), GGML_HOST_OK);
        }
    }
    for (uint32_t from = 0; from < r.n; ++from) {
        const uint32_t to = (from + 1) % r.n;
        for (uint32_t k = 0; k < 2; ++k) {
            const uint32_t expected = 10 * from + k;
            assert_int_equal(comm->receive(r.group, to, from, r.parts[to]), GGML_HOST_OK);
            expect(&r, to, r.parts[to], of_rank, &expected);
        }
    }
    ranks_free(&r);
}

static void test_what_is_wrong_is_refused(void **state) {
    (void)state;
    struct ranks r;
    ranks_new(&r, GGML_TYPE_F32, 100);
    struct ggml_tensor *unlike[MOST + 1];
    memcpy(unlike, r.parts, sizeof(unlike));
    unlike[1] = r.results[1];
    set_numbers(&r, 0, r.parts[0], 0);
    const int32_t wrong[] = {
        comm->all_reduce(r.group, GGML_COMM_SUM, unlike, NULL),
        comm->broadcast(r.group, 0, unlike),
        comm->broadcast(r.group, r.n, r.parts),
        comm->all_gather(r.group, (const struct ggml_tensor *const *)r.parts, unlike),
        comm->send(r.group, 0, 0, r.parts[0]),
        comm->send(r.group, 0, r.n, r.parts[0]),
        comm->receive(r.group, 1, 0, r.parts[1]),
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i)
        assert_int_equal(wrong[i], GGML_HOST_INVALID_ARGUMENT);
    ggml_comm_group_t group = NULL;
    const ggml_backend_t twice[2] = {r.streams[0], r.streams[0]};
    const struct ggml_comm_ranks held = {
        .size = sizeof(held), .n_ranks = 2, .n_streams = 2, .streams = twice};
    assert_int_equal(comm->group_new(&held, &group), GGML_HOST_INVALID_ARGUMENT);
    assert_null(group);
    // The group is as good as before.
    const struct combination c = {GGML_COMM_SUM, {1, 1, 1, 1, 1, 1, 1, 1, 1}};
    for (uint32_t i = 0; i < r.n; ++i)
        set_numbers(&r, i, r.parts[i], i);
    assert_int_equal(comm->all_reduce(r.group, GGML_COMM_SUM, r.parts, NULL), GGML_HOST_OK);
    expect(&r, 0, r.parts[0], combined, &c);
    ranks_free(&r);
}

// --- a transformer that is split by tensors ------------------------------------------------------

static const struct transformer_shape shape = {.layers = 3,
                                               .width = 64,
                                               .heads = 8,
                                               .kv_heads = 4,
                                               .hidden = 128,
                                               .vocabulary = 40,
                                               .capacity = 16,
                                               .type = GGML_TYPE_F32};

// Islands of devices in the order of their layers: one device for each, which splits its tensors
// over its nodes.
struct division {
    int n;
    ggml_backend_dev_t devices[MOST];
    uint32_t first_layer[MOST];
};

static ggml_backend_buffer_type_t place(void *user, int layer) {
    const struct division *d = user;
    int island = d->n - 1;
    while (island > 0 && (layer < 0 || d->first_layer[island] > (uint32_t)layer))
        --island;
    return ggml_backend_dev_buffer_type(d->devices[island]);
}

static void add_island(struct division *d, ggml_backend_dev_t *nodes, uint32_t n,
                       uint32_t first_layer) {
    static int counts[MOST + 1]; // meta devices live for the process
    counts[n] = (int)n;
    d->first_layer[d->n] = first_layer;
    d->devices[d->n++] = ggml_backend_meta_device(nodes, n, transformer_split, &counts[n]);
    assert_non_null(d->devices[d->n - 1]);
}

static void generate(struct division *d, float out[STEPS][40]) {
    ggml_backend_t streams[MOST + 1];
    for (int i = 0; i < d->n; ++i)
        assert_non_null(streams[i] = ggml_backend_dev_init(d->devices[i], NULL));
    streams[d->n] = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, NULL);
    ggml_backend_sched_t sched =
        ggml_backend_sched_new(streams, NULL, d->n + 1, 1024, false, false);
    struct transformer *model = transformer_new(&shape, 3, place, NULL, d);
    if (!model) fail_msg("%s", ggml_last_error());
    for (int i = 0; i < STEPS; ++i) {
        struct transformer_graph graph;
        const int n_tokens = i == 0 ? PROMPT : 1, n_past = i == 0 ? 0 : PROMPT + i - 1;
        assert_true(transformer_graph_build(model, n_tokens, n_past, &graph));
        ggml_backend_sched_reset(sched);
        if (!ggml_backend_sched_alloc_graph(sched, graph.graph)) fail_msg("%s", ggml_last_error());
        transformer_set_inputs(model, &graph, (uint64_t)(3 + n_past));
        if (ggml_backend_sched_graph_compute(sched, graph.graph) != GGML_STATUS_SUCCESS)
            fail_msg("step %d: %s", i, ggml_last_error());
        const size_t row = sizeof(out[i]);
        ggml_backend_tensor_get(graph.logits, out[i], (size_t)(n_tokens - 1) * row, row);
        transformer_graph_free(&graph);
    }
    transformer_free(model);
    ggml_backend_sched_free(sched);
    for (int i = 0; i <= d->n; ++i)
        ggml_backend_free(streams[i]);
}

// Sums are made in another order than on one host.
static void expect_as_on_one_host(struct division *d) {
    static float expected[STEPS][40], computed[STEPS][40];
    struct division one = {.n = 1};
    one.devices[0] = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    generate(&one, expected);
    generate(d, computed);
    float largest = 0, difference = 0;
    for (int i = 0; i < STEPS * 40; ++i) {
        const float wanted = expected[i / 40][i % 40];
        largest = fmaxf(largest, fabsf(wanted));
        difference = fmaxf(difference, fabsf(wanted - computed[i / 40][i % 40]));
    }
    if (!(difference <= 2e-5f * largest)) fail_msg("off by %g", (double)difference);
}

static void test_a_transformer_split_by_tensors_equals_one_host(void **state) {
    (void)state;
    for (int n = 1; n <= n_remote && n <= 4; ++n) {
        struct division d = {0};
        add_island(&d, remote, (uint32_t)n, 0);
        expect_as_on_one_host(&d);
    }
}

// Two nodes split the tensors of the first layers, the others those of the last one.
static void test_layers_between_islands_of_nodes_equal_one_host(void **state) {
    struct division d = {0};
    (void)state;
    add_island(&d, remote, 2, 0);
    add_island(&d, remote + 2, (uint32_t)n_remote - 2 > 2 ? 2 : (uint32_t)n_remote - 2, 2);
    expect_as_on_one_host(&d);
}

// --- who splits what -----------------------------------------------------------------------------

enum { LAYER_BYTES = 1000000, VALUE_BYTES = 4096 };

// Islands of the first n devices, if their memory has that rate, for a model of one layer.
static size_t plan(int n, double bytes_per_second, struct ggml_island out_islands[MOST]) {
    const struct ggml_device_figures figures = {.size = sizeof(figures),
                                                .flags = GGML_DEVICE_FIGURES_DIRECT_COPY,
                                                .bytes_per_second = bytes_per_second};
    const struct ggml_device_figures *given[MOST];
    const struct ggml_split_model model = {.size = sizeof(model),
                                           .n_layers = 1,
                                           .layer_bytes = LAYER_BYTES,
                                           .value_bytes = VALUE_BYTES,
                                           .figures = given};
    size_t n_islands;
    for (int i = 0; i < n; ++i)
        given[i] = &figures;
    if (ggml_host_plan_islands(remote, (size_t)n, &model, out_islands, &n_islands) != GGML_HOST_OK)
        fail_msg("%s", ggml_last_error());
    return n_islands;
}

// Seconds of an exchange between the first two nodes, as measured.
static double exchange_seconds(void) {
    double most = 0;
    for (int i = 0; i < 2; ++i) {
        struct ggml_device_link link = {.size = sizeof(link)};
        assert_int_equal(ggml_backend_dev_link(remote[i], remote[1 - i], &link), GGML_HOST_OK);
        most = fmax(most, link.seconds + VALUE_BYTES / link.bytes_per_second);
    }
    return most;
}

// Two nodes save half of a layer's time, and exchange twice for it.
static void test_measured_links_decide_who_splits_tensors(void **state) {
    struct ggml_island islands[MOST];
    const double exchange = exchange_seconds();
    (void)state;
    assert_int_equal(plan(2, LAYER_BYTES / (5 * exchange), islands), 1);
    assert_int_equal(islands[0].n_devices, 2);
    assert_int_equal(islands[0].n_layers, 1);
    assert_int_equal(plan(2, LAYER_BYTES / (3 * exchange), islands), 2);
    assert_int_equal(islands[0].n_devices, 1);
    assert_int_equal(islands[0].n_layers, 1);
    assert_int_equal(islands[1].n_layers, 0);
}

// --- a node that is lost -------------------------------------------------------------------------

struct blow {
    pid_t process;
    int signal;
};

static void *strike(void *context) {
    const struct blow *blow = context;
    usleep(200000);
    kill(blow->process, blow->signal);
    return NULL;
}

static pid_t process_of(ggml_backend_dev_t device) {
    const struct ggml_extension_device_info *extension = ggml_backend_reg_get_extension(
        ggml_backend_dev_backend_reg(device), GGML_EXTENSION_DEVICE_INFO, 1);
    for (const struct ggml_backend_feature *pair = extension->info(device); pair->name; ++pair)
        if (strcmp(pair->name, "mpi-process") == 0) return (pid_t)atoi(pair->value);
    fail_msg("no process");
    return 0;
}

// Sums go on until one of the nodes is gone; every stream says so in time, and the others' memory
// is as usable as before.
static void lose_while_adding(int signal) {
    const double deadline = atof(getenv("GGML_MPI_DEADLINE"));
    struct blow blow = {process_of(remote[0]), signal};
    struct ranks r;
    pthread_t thread;
    ranks_new(&r, GGML_TYPE_F32, 1000000);
    assert_int_equal(pthread_create(&thread, NULL, strike, &blow), 0);
    const double begin = seconds();
    bool failed = false;
    while (!failed && seconds() < begin + deadline + 10) {
        ggml_clear_error();
        failed = comm->all_reduce(r.group, GGML_COMM_SUM, r.parts, NULL) != GGML_HOST_OK;
        for (uint32_t i = 0; i < r.n; ++i)
            ggml_backend_synchronize(r.streams[i]);
        failed = failed || ggml_last_status() == GGML_HOST_DEVICE_LOST;
    }
    const double took = seconds() - begin;
    pthread_join(thread, NULL);
    kill(blow.process, SIGKILL); // the launcher waits for one that is stopped
    assert_true(failed);
    if (took > 0.2 + deadline + 3) fail_msg("it took %.1f s to be told", took);
    assert_int_not_equal(comm->all_reduce(r.group, GGML_COMM_SUM, r.parts, NULL), GGML_HOST_OK);
    for (uint32_t i = 1; i < r.n; ++i) {
        const uint32_t expected = i + 2;
        set_numbers(&r, i, r.parts[i], i + 2);
        expect(&r, i, r.parts[i], of_rank, &expected);
    }
    // Those that are left make another group.
    struct ggml_comm_ranks held = {
        .size = sizeof(held), .n_ranks = r.n - 1, .n_streams = r.n - 1, .streams = r.streams + 1};
    ggml_comm_group_t group;
    const uint32_t expected = 3;
    assert_int_equal(comm->group_new(&held, &group), GGML_HOST_OK);
    assert_int_equal(comm->broadcast(group, 0, r.parts + 1), GGML_HOST_OK);
    for (uint32_t i = 1; i < r.n; ++i)
        expect(&r, i, r.parts[i], of_rank, &expected);
    comm->group_free(group);
    ranks_free(&r);
    // And they split tensors: a node that is lost has no memory for a layer.
    struct ggml_island islands[MOST];
    struct division d = {0};
    assert_int_equal(plan(n_remote, 1e3, islands), 2);
    assert_int_equal(islands[0].n_devices, n_remote - 1);
    assert_ptr_equal(islands[1].devices[0], remote[0]);
    assert_int_equal(islands[1].n_layers, 0);
    add_island(&d, islands[0].devices, islands[0].n_devices, 0);
    expect_as_on_one_host(&d);
}

static void test_a_node_that_hangs_while_adding(void **state) {
    (void)state;
    lose_while_adding(SIGSTOP);
}

static void test_a_node_that_is_killed_while_adding(void **state) {
    (void)state;
    lose_while_adding(SIGKILL);
}

int main(int argc, char **argv) {
    const struct CMUnitTest usual[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_every_rank_has_the_same_bits),
        cmocka_unit_test(test_broadcasts_and_gathers),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_what_is_wrong_is_refused),
        cmocka_unit_test(test_a_transformer_split_by_tensors_equals_one_host),
        cmocka_unit_test(test_layers_between_islands_of_nodes_equal_one_host),
        cmocka_unit_test(test_measured_links_decide_who_splits_tensors),
    };
    const struct CMUnitTest few[] = {
        cmocka_unit_test(test_some_sums),
        cmocka_unit_test(test_a_transformer_split_by_tensors_equals_one_host)};
    const struct CMUnitTest hung[] = {cmocka_unit_test(test_a_node_that_hangs_while_adding)};
    const struct CMUnitTest killed[] = {cmocka_unit_test(test_a_node_that_is_killed_while_adding)};
    const char *which = argc > 1 ? argv[1] : "usual";
    if (strcmp(which, "few") == 0) return cmocka_run_group_tests(few, start, NULL);
    if (strcmp(which, "hung") == 0) return cmocka_run_group_tests(hung, start, NULL);
    if (strcmp(which, "killed") == 0) return cmocka_run_group_tests(killed, start, NULL);
    return cmocka_run_group_tests(usual, start, NULL);
}
