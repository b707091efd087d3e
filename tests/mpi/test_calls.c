// SPDX-License-Identifier: MIT
// What a program's calls make of messages, counted by watch_mpi.c, and what goes on at the nodes
// meanwhile. Nothing is timed: a node that must not end its work is stopped. The argument says
// which tests run.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ggml-alloc.h"
#include "ggml-host.h"
#include "ggml-impl.h"
#include "ggml-plugin.h"

static ggml_backend_dev_t first, second, host;

static int start(void **state) {
    (void)state;
    ggml_backend_load_all();
    first = ggml_backend_dev_by_name("MPI1:CPU");
    second = ggml_backend_dev_by_name("MPI2:CPU");
    host = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    return first && host ? 0 : -1;
}

static void rest(void) {
    const struct timespec pause = {0, 1000000};
    nanosleep(&pause, NULL);
}

// --- messages ------------------------------------------------------------------------------------

struct counts {
    uint64_t sent, received, transfers;
};

static struct counts count(void) {
    struct counts counts;
    void (*watch)(uint64_t *, uint64_t *, uint64_t *);
    *(void **)&watch = dlsym(RTLD_DEFAULT, "watch_mpi_counts");
    assert_non_null(watch);
    watch(&counts.sent, &counts.received, &counts.transfers);
    return counts;
}

// A chain of scalings by 2 of four numbers, in place.
struct chain {
    struct ggml_context *ctx;
    ggml_backend_buffer_t buffer;
    ggml_backend_t stream;
    struct ggml_tensor *value;
    struct ggml_cgraph *graph;
};

enum { CHAIN = 1000, NUMBERS = 4 };

static void chain_new(struct chain *chain) {
    const struct ggml_init_params params = {.mem_size =
                                                (CHAIN + 8) * ggml_tensor_overhead() +
                                                ggml_graph_overhead_custom(CHAIN + 1, false),
                                            .no_alloc = true};
    *chain = (struct chain){.ctx = ggml_init(params), .stream = ggml_backend_dev_init(first, NULL)};
    assert_true(chain->ctx && chain->stream);
    chain->value = ggml_new_tensor_1d(chain->ctx, GGML_TYPE_F32, NUMBERS);
    chain->graph = ggml_new_graph_custom(chain->ctx, CHAIN + 1, false);
    struct ggml_tensor *last = chain->value;
    for (int i = 0; i < CHAIN; ++i)
        last = ggml_scale_inplace(chain->ctx, last, i % 2 ? 0.5f : 2.0f);
    ggml_build_forward_expand(chain->graph, last);
    chain->buffer = ggml_backend_alloc_ctx_tensors(chain->ctx, chain->stream);
    assert_non_null(chain->buffer);
    ggml_backend_buffer_clear(chain->buffer, 0);
}

static void chain_free(struct chain *chain) {
    ggml_backend_free(chain->stream);
    ggml_backend_buffer_free(chain->buffer);
    ggml_free(chain->ctx);
}

// What was asked before is answered then.
static void settle(const struct chain *chain) {
    float values[NUMBERS];
    ggml_backend_synchronize(chain->stream);
    ggml_backend_tensor_get(chain->value, values, 0, sizeof(values));
}

static void test_a_repeated_graph_is_one_round_trip(void **state) {
    (void)state;
    enum { TIMES = 20 };
    struct chain chain;
    chain_new(&chain);
    assert_int_equal(ggml_graph_n_nodes(chain.graph), CHAIN);
    for (int i = 0; i < 2; ++i)
        assert_int_equal(ggml_backend_graph_compute(chain.stream, chain.graph), 0);
    settle(&chain);
    const struct counts before = count();
    for (int i = 0; i < TIMES; ++i)
        assert_int_equal(ggml_backend_graph_compute(chain.stream, chain.graph), 0);
    const struct counts after = count();
    assert_int_equal(after.sent - before.sent, TIMES);
    assert_int_equal(after.received - before.received, TIMES);
    assert_int_equal(after.transfers, before.transfers);
    chain_free(&chain);
}

// As a scheduler does for each graph: inputs are not waited for, and the result is read last.
static void test_with_its_input_and_result_it_is_two(void **state) {
    (void)state;
    enum { TIMES = 20 };
    struct chain chain;
    float in[NUMBERS] = {0}, out[NUMBERS];
    chain_new(&chain);
    assert_int_equal(ggml_backend_graph_compute(chain.stream, chain.graph), 0);
    settle(&chain);
    const struct counts before = count();
    for (int i = 0; i < TIMES; ++i) {
        in[1] = (float)i;
        ggml_backend_tensor_set(chain.value, in, 0, sizeof(in));
        assert_int_equal(ggml_backend_graph_compute(chain.stream, chain.graph), 0);
        ggml_backend_tensor_get(chain.value, out, 0, sizeof(out));
        assert_memory_equal(out, in, sizeof(in));
    }
    const struct counts between = count();
    assert_int_equal(between.sent - before.sent, 3 * TIMES);
    assert_int_equal(between.received - before.received, 2 * TIMES);
    // Queued, the answer to the graph may be left out, as that with the bytes says it too.
    for (int i = 0; i < TIMES; ++i) {
        in[1] = (float)i;
        ggml_backend_tensor_set_async(chain.stream, chain.value, in, 0, sizeof(in));
        assert_int_equal(ggml_backend_graph_compute_async(chain.stream, chain.graph), 0);
        ggml_backend_tensor_get_async(chain.stream, chain.value, out, 0, sizeof(out));
        ggml_backend_synchronize(chain.stream);
        assert_memory_equal(out, in, sizeof(in));
    }
    const struct counts after = count();
    assert_int_equal(after.sent - between.sent, 3 * TIMES);
    assert_in_range(after.received - between.received, TIMES, 3 * TIMES);
    assert_int_equal(after.transfers, before.transfers);
    chain_free(&chain);
}

// --- sets that are not waited for ----------------------------------------------------------------

// A program that sets something and then has nothing to do for hours.
static void test_a_set_leaves_without_a_request_after_it(void **state) {
    (void)state;
    struct chain chain;
    const float in[NUMBERS] = {1, 2, 3, 4};
    chain_new(&chain);
    settle(&chain);
    for (int i = 0; i < 3; ++i) {
        const uint64_t before = count().sent;
        ggml_backend_tensor_set(chain.value, in, 0, sizeof(in));
        while (count().sent == before) // for ever if it does not leave
            rest();
        assert_int_equal(count().sent, before + 1);
    }
    chain_free(&chain);
}

// A buffer is made and freed, which the graph might have used: the node is told to forget the
// graph, of which it gets a new one.
static void test_a_graph_that_is_made_anew_is_forgotten(void **state) {
    (void)state;
    struct chain chain;
    chain_new(&chain);
    assert_int_equal(ggml_backend_graph_compute(chain.stream, chain.graph), 0);
    settle(&chain);
    ggml_backend_buffer_free(
        ggml_backend_buft_alloc_buffer(ggml_backend_dev_buffer_type(first), 64));
    settle(&chain);
    const struct counts before = count();
    assert_int_equal(ggml_backend_graph_compute(chain.stream, chain.graph), 0);
    assert_int_equal(count().sent - before.sent, 2);
    assert_int_equal(ggml_backend_graph_compute(chain.stream, chain.graph), 0);
    assert_int_equal(count().sent - before.sent, 3);
    chain_free(&chain);
}

// What was set is at the node, or has failed, once a stream of it was waited for.
static void test_synchronize_waits_for_sets(void **state) {
    (void)state;
    struct chain chain;
    const float in[NUMBERS] = {1, 2, 3, 4};
    chain_new(&chain);
    settle(&chain);
    const struct counts before = count();
    ggml_backend_tensor_set(chain.value, in, 0, sizeof(in));
    ggml_backend_synchronize(chain.stream);
    const struct counts after = count();
    assert_int_equal(after.sent - before.sent, 2);
    assert_int_equal(after.received - before.received, 1);
    // Once is enough, and a graph that comes after them tells as well.
    ggml_backend_synchronize(chain.stream);
    assert_int_equal(count().sent, after.sent);
    ggml_backend_tensor_set(chain.value, in, 0, sizeof(in));
    assert_int_equal(ggml_backend_graph_compute(chain.stream, chain.graph), 0);
    ggml_backend_synchronize(chain.stream);
    assert_int_equal(count().sent, after.sent + 2);
    chain_free(&chain);
}

// Many of them are waited for now and then, so that the program's copies of them don't grow
// without bounds, and all of them arrive in order.
static void test_many_sets_are_bounded_and_in_order(void **state) {
    (void)state;
    enum { PIECE = 16384, PIECES = 1024, SIZE = PIECE * PIECES / 4 };
    const struct ggml_init_params params = {.mem_size = 4 * ggml_tensor_overhead(),
                                            .no_alloc = true};
    struct ggml_context *ctx = ggml_init(params);
    struct ggml_tensor *tensor = ggml_new_tensor_1d(ctx, GGML_TYPE_I8, SIZE);
    ggml_backend_buffer_t buffer =
        ggml_backend_alloc_ctx_tensors_from_buft(ctx, ggml_backend_dev_buffer_type(first));
    uint8_t *expected = calloc(1, SIZE), *got = calloc(1, SIZE), *piece = malloc(PIECE);
    assert_true(buffer && expected && got && piece);
    ggml_backend_buffer_clear(buffer, 0);
    const struct counts before = count();
    for (uint32_t i = 0; i < PIECES; ++i) { // overlapping ones: a later one wins
        const size_t at = i * 40503u % (SIZE - PIECE);
        memset(piece, (int)(1 + i % 251), PIECE);
        memcpy(expected + at, piece, PIECE);
        ggml_backend_tensor_set(tensor, piece, at, PIECE);
        memset(piece, 0, PIECE);
    }
    const struct counts after = count();
    assert_true(after.received - before.received >= PIECES * (uint64_t)PIECE >> 21);
    assert_true(after.received - before.received <= PIECES * (uint64_t)PIECE >> 19);
    ggml_backend_tensor_get(tensor, got, 0, SIZE);
    assert_memory_equal(got, expected, SIZE);
    free(piece);
    free(got);
    free(expected);
    ggml_backend_buffer_free(buffer);
    ggml_free(ctx);
}

// --- areas ---------------------------------------------------------------------------------------

struct area {
    struct ggml_context *ctx;
    struct ggml_tensor *tensor;
    ggml_backend_buffer_t buffer;
};

static void area_new(struct area *area, ggml_backend_dev_t device, size_t size) {
    const struct ggml_init_params params = {.mem_size = 4 * ggml_tensor_overhead(),
                                            .no_alloc = true};
    area->ctx = ggml_init(params);
    area->tensor = ggml_new_tensor_1d(area->ctx, GGML_TYPE_I8, (int64_t)size);
    area->buffer =
        ggml_backend_alloc_ctx_tensors_from_buft(area->ctx, ggml_backend_dev_buffer_type(device));
    assert_non_null(area->buffer);
}

static void area_free(struct area *area) {
    ggml_backend_buffer_free(area->buffer);
    ggml_free(area->ctx);
}

// --- a pipeline over two nodes -------------------------------------------------------------------

static pid_t process_of(ggml_backend_dev_t device) {
    const struct ggml_extension_device_info *extension = ggml_backend_reg_get_extension(
        ggml_backend_dev_backend_reg(device), GGML_EXTENSION_DEVICE_INFO, 1);
    assert_non_null(extension);
    for (const struct ggml_backend_feature *pair = extension->info(device); pair->name; ++pair)
        if (strcmp(pair->name, "mpi-process") == 0) return (pid_t)atoi(pair->value);
    fail_msg("%s has no process", ggml_backend_dev_name(device));
    return -1;
}

// As the kernel's list of processes says; the name is in parentheses.
static char state_of(pid_t process) {
    char path[64], text[512] = "";
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)process);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
    fclose(file);
    const char *end = strrchr(text, ')');
    return end ? end[2] : '?';
}

static pid_t stopped;

static void stop(pid_t process) {
    stopped = process;
    assert_int_equal(kill(process, SIGSTOP), 0);
    while (state_of(process) != 'T')
        rest();
}

// z = y + x, y of the first node, x an input of the second one's split.
enum { ROWS = 8192, RUNS = 3 };
struct pipeline {
    ggml_backend_t streams[3];
    ggml_backend_sched_t sched;
    struct ggml_context *weights, *ctx;
    ggml_backend_buffer_t buffer;
    struct ggml_tensor *w, *x, *z;
    struct ggml_cgraph *graph;
};

static void pipeline_new(struct pipeline *p) {
    const struct ggml_init_params params = {
        .mem_size = 16 * ggml_tensor_overhead() + ggml_graph_overhead(), .no_alloc = true};
    ggml_backend_dev_t devices[3] = {first, second, host};
    *p = (struct pipeline){.weights = ggml_init(params)};
    for (int i = 0; i < 3; ++i)
        assert_non_null(p->streams[i] = ggml_backend_dev_init(devices[i], NULL));
    p->sched = ggml_backend_sched_new(p->streams, NULL, 3, 64, true, false);
    assert_non_null(p->sched);
    p->w = ggml_new_tensor_1d(p->weights, GGML_TYPE_F32, ROWS);
    p->buffer = ggml_backend_alloc_ctx_tensors(p->weights, p->streams[0]);
    assert_non_null(p->buffer);
    static float ones[ROWS];
    for (int i = 0; i < ROWS; ++i)
        ones[i] = 1;
    ggml_backend_tensor_set(p->w, ones, 0, sizeof(ones));
}

// The graph again, as a program makes it for each run.
static void pipeline_build(struct pipeline *p) {
    const struct ggml_init_params params = {
        .mem_size = 16 * ggml_tensor_overhead() + ggml_graph_overhead(), .no_alloc = true};
    ggml_free(p->ctx);
    p->ctx = ggml_init(params);
    p->x = ggml_new_tensor_1d(p->ctx, GGML_TYPE_F32, ROWS);
    ggml_set_input(p->x);
    struct ggml_tensor *y = ggml_scale(p->ctx, p->w, 100.0f);
    p->z = ggml_add(p->ctx, y, p->x);
    ggml_set_output(p->z);
    p->graph = ggml_new_graph(p->ctx);
    ggml_build_forward_expand(p->graph, p->z);
    ggml_backend_sched_reset(p->sched);
    ggml_backend_sched_set_tensor_backend(p->sched, y, p->streams[0]);
    ggml_backend_sched_set_tensor_backend(p->sched, p->z, p->streams[1]);
    assert_true(ggml_backend_sched_alloc_graph(p->sched, p->graph));
}

// Starts a run with x = value everywhere; the result is read into `out` when it is there.
static void pipeline_run(struct pipeline *p, float value, float out[ROWS]) {
    static float in[ROWS];
    for (int i = 0; i < ROWS; ++i)
        in[i] = value;
    pipeline_build(p);
    ggml_backend_tensor_set(p->x, in, 0, sizeof(in));
    assert_int_equal(ggml_backend_sched_graph_compute_async(p->sched, p->graph), 0);
    ggml_backend_tensor_get_async(p->streams[1], p->z, out, 0, ROWS * sizeof(float));
}

static void pipeline_free(struct pipeline *p) {
    ggml_backend_sched_free(p->sched);
    for (int i = 0; i < 3; ++i)
        ggml_backend_free(p->streams[i]);
    ggml_backend_buffer_free(p->buffer);
    ggml_free(p->weights);
    ggml_free(p->ctx);
}

// The first node is stopped, so nothing that it computes ends, and the second one waits for it. All
// the same the second one is given the input of its split (32 KiB, which are answered), then that
// of the next run while its split of this one has not ended: otherwise these calls don't return.
static void test_inputs_of_a_split_come_while_the_one_before_computes(void **state) {
    (void)state;
    static float out[RUNS][ROWS];
    struct pipeline pipeline;
    assert_non_null(second);
    pipeline_new(&pipeline);
    pipeline_run(&pipeline, 0.5f, out[0]); // all memory is there then
    assert_int_equal(ggml_backend_sched_get_n_splits(pipeline.sched), 2);
    ggml_backend_sched_synchronize(pipeline.sched);
    assert_true(out[0][0] == 100.5f);
    const pid_t process = process_of(first);
    const uint64_t before = count().transfers;
    stop(process);
    for (int i = 0; i < RUNS; ++i)
        pipeline_run(&pipeline, (float)(i + 1), out[i]);
    assert_int_equal(state_of(process), 'T');
    // Each input has gone; room for the results is told to MPI, by whatever thread calls it.
    while (count().transfers - before < 2 * RUNS)
        rest();
    assert_int_equal(count().transfers - before, 2 * RUNS);
    assert_int_equal(kill(process, SIGCONT), 0);
    ggml_backend_sched_synchronize(pipeline.sched);
    for (int i = 0; i < RUNS; ++i) {
        for (int k = 0; k < ROWS; ++k)
            assert_true(out[i][k] == 100.0f + (float)(i + 1));
    }
    pipeline_free(&pipeline);
}

// After a failure too: the end of the program waits for every node.
static int let_go(void **state) {
    (void)state;
    return stopped > 0 ? kill(stopped, SIGCONT) : 0;
}

// A graph's answer waits for no later graph, also if one is forgotten between them. The first
// node's queue waits for bytes of the second one until it has all of it.
static void test_the_answer_to_a_graph_does_not_wait_for_the_next(void **state) {
    (void)state;
    struct area from_area, to_area;
    struct chain chain;
    const pid_t process = process_of(second);
    ggml_backend_t from = ggml_backend_dev_init(second, NULL);
    assert_non_null(from);
    chain_new(&chain);
    area_new(&from_area, second, NUMBERS);
    area_new(&to_area, first, NUMBERS);
    assert_int_equal(ggml_backend_graph_compute(chain.stream, chain.graph), 0);
    settle(&chain);
    stop(process);
    const uint64_t before = count().received;
    ggml_backend_tensor_copy_async(from, chain.stream, from_area.tensor, to_area.tensor);
    for (int i = 0; i < 2; ++i) {
        ggml_backend_buffer_free(
            ggml_backend_buft_alloc_buffer(ggml_backend_dev_buffer_type(first), 64));
        assert_int_equal(ggml_backend_graph_compute_async(chain.stream, chain.graph), 0);
    }
    assert_int_equal(kill(process, SIGCONT), 0);
    ggml_backend_synchronize(chain.stream);
    ggml_backend_synchronize(from);
    // Of the buffers that are made and freed, of the copy's source and of each graph.
    assert_true(count().received - before >= 2 * 2 + 1 + 2);
    ggml_backend_free(from);
    chain_free(&chain);
    area_free(&from_area);
    area_free(&to_area);
}

// --- what MPI fails without naming it
// -------------------------------------------------------------

// The transfer's node is lost, the other one goes on; MPI is not given the request again.
static void test_a_request_that_mpi_freed_has_failed(void **state) {
    (void)state;
    enum { SIZE = 1 << 20 };
    const struct ggml_init_params params = {.mem_size = 4 * ggml_tensor_overhead(),
                                            .no_alloc = true};
    ggml_backend_dev_t devices[2] = {first, second};
    struct ggml_context *contexts[2];
    struct ggml_tensor *tensors[2];
    ggml_backend_buffer_t buffers[2];
    uint8_t *bytes = calloc(1, SIZE), *got = calloc(1, SIZE);
    void (*break_next)(void);
    *(void **)&break_next = dlsym(RTLD_DEFAULT, "watch_mpi_break");
    assert_true(bytes && got && break_next && second);
    for (int i = 0; i < 2; ++i) {
        contexts[i] = ggml_init(params);
        tensors[i] = ggml_new_tensor_1d(contexts[i], GGML_TYPE_I8, SIZE);
        buffers[i] = ggml_backend_alloc_ctx_tensors_from_buft(
            contexts[i], ggml_backend_dev_buffer_type(devices[i]));
        assert_non_null(buffers[i]);
    }
    memset(bytes, 5, SIZE);
    ggml_clear_error();
    break_next();
    ggml_backend_tensor_set(tensors[0], bytes, 0, SIZE);
    assert_int_equal(ggml_last_status(), GGML_HOST_DEVICE_LOST);
    assert_int_equal(kill(process_of(first), SIGKILL), 0); // it waits for those bytes
    ggml_clear_error();
    ggml_backend_tensor_set(tensors[1], bytes, 0, SIZE);
    ggml_backend_tensor_get(tensors[1], got, 0, SIZE);
    assert_int_equal(ggml_last_status(), GGML_HOST_OK);
    assert_memory_equal(got, bytes, SIZE);
    for (int i = 0; i < 2; ++i) {
        ggml_backend_buffer_free(buffers[i]);
        ggml_free(contexts[i]);
    }
    free(got);
    free(bytes);
}

// --- tags ----------------------------------------------------------------------------------------

// A node goes on once `progress` has not changed for so many seconds.
static pid_t let_go_when_stuck(pid_t process, const atomic_int *progress, unsigned seconds) {
    const pid_t child = fork();
    if (child != 0) return child;
    for (int before = -1; before != atomic_load(progress); sleep(seconds))
        before = atomic_load(progress);
    kill(process, SIGCONT);
    _exit(0);
}

// A stream of the first node waits for bytes of the second one, which is stopped, and a get waits
// behind that. Meanwhile as many others come and go as there are tags.
static void test_an_open_transfer_keeps_its_tag(void **state) {
    (void)state;
    enum { SIZE = 20000, TRANSFERS = 16384 + 4 };
    static uint8_t bytes[SIZE], old[SIZE], got[SIZE];
    const pid_t process = process_of(second);
    struct area areas[4];
    ggml_backend_t to = ggml_backend_dev_init(first, NULL);
    ggml_backend_t from = ggml_backend_dev_init(second, NULL);
    for (int i = 0; i < 4; ++i) {
        area_new(&areas[i], i == 3 ? second : first, SIZE);
        memset(bytes, i, SIZE);
        ggml_backend_tensor_set(areas[i].tensor, bytes, 0, SIZE);
    }
    atomic_int *progress =
        mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(progress != MAP_FAILED);
    stop(process);
    const pid_t child = let_go_when_stuck(process, progress, 20);
    ggml_backend_tensor_copy_async(from, to, areas[3].tensor, areas[0].tensor);
    ggml_backend_tensor_get_async(to, areas[1].tensor, old, 0, SIZE);
    for (int i = 0; i < TRANSFERS; ++i) {
        memset(got, 0, SIZE);
        ggml_backend_tensor_get(areas[2].tensor, got, 0, SIZE);
        if (got[0] != 2) fail_msg("get %d: %d", i, got[0]);
        atomic_store(progress, i + 1);
    }
    assert_int_equal(state_of(process), 'T');
    assert_int_equal(kill(process, SIGCONT), 0);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    munmap(progress, sizeof(*progress));
    ggml_backend_synchronize(to);
    ggml_backend_synchronize(from);
    for (int i = 0; i < SIZE; ++i)
        assert_int_equal(old[i], 1);
    ggml_backend_free(to);
    ggml_backend_free(from);
    for (int i = 0; i < 4; ++i)
        area_free(&areas[i]);
}

// --- signs of life -------------------------------------------------------------------------------

// Pieces come and go, each within the deadline, but all of them take longer, and no message comes
// through meanwhile.
static void test_a_transfer_may_take_longer_than_the_deadline(void **state) {
    (void)state;
    enum { PIECE = 4 << 20, PIECES = 10, MILLISECONDS = 300 };
    const double deadline = atof(getenv("GGML_MPI_DEADLINE"));
    const size_t size = (size_t)PIECE * PIECES;
    uint8_t *bytes = malloc(size), *got = calloc(1, size);
    struct area area;
    void (*slow)(int);
    *(void **)&slow = dlsym(RTLD_DEFAULT, "watch_mpi_slow");
    assert_true(bytes && got && slow && deadline < 1e-3 * PIECES * MILLISECONDS);
    area_new(&area, first, size);
    for (size_t i = 0; i < size; ++i)
        bytes[i] = (uint8_t)(i % 251);
    ggml_clear_error();
    slow(MILLISECONDS);
    ggml_backend_tensor_set(area.tensor, bytes, 0, size);
    if (ggml_last_status() != GGML_HOST_OK) fail_msg("set: %s", ggml_last_error());
    ggml_backend_tensor_get(area.tensor, got, 0, size);
    if (ggml_last_status() != GGML_HOST_OK) fail_msg("get: %s", ggml_last_error());
    slow(0);
    assert_memory_equal(got, bytes, size);
    area_free(&area);
    free(got);
    free(bytes);
}

// The program is stopped for longer than the deadline while it waits for a node, which is stopped
// too and goes on a little later: it has had no time to answer.
static void test_the_time_in_which_the_program_is_stopped_does_not_count(void **state) {
    (void)state;
    const double deadline = atof(getenv("GGML_MPI_DEADLINE"));
    const pid_t process = process_of(first), self = getpid();
    struct area area;
    uint8_t byte = 7, got = 0;
    ggml_backend_t stream = ggml_backend_dev_init(first, NULL);
    area_new(&area, first, 1);
    ggml_backend_tensor_set(area.tensor, &byte, 0, 1);
    ggml_backend_synchronize(stream);
    ggml_clear_error();
    stop(process);
    const pid_t child = fork();
    if (child == 0) {
        usleep(300000);
        kill(self, SIGSTOP);
        usleep((useconds_t)(1e6 * (deadline + 1)));
        kill(self, SIGCONT);
        usleep(500000);
        kill(process, SIGCONT);
        _exit(0);
    }
    ggml_backend_tensor_get_async(stream, area.tensor, &got, 0, 1);
    ggml_backend_synchronize(stream);
    if (ggml_last_status() != GGML_HOST_OK) fail_msg("%s", ggml_last_error());
    assert_int_equal(got, byte);
    assert_int_equal(waitpid(child, NULL, 0), child);
    ggml_backend_free(stream);
    area_free(&area);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tags[] = {
        cmocka_unit_test_teardown(test_an_open_transfer_keeps_its_tag, let_go)};
    const struct CMUnitTest slow[] = {
        cmocka_unit_test(test_a_transfer_may_take_longer_than_the_deadline),
        cmocka_unit_test_teardown(test_the_time_in_which_the_program_is_stopped_does_not_count,
                                  let_go)};
    const struct CMUnitTest counted[] = {
        cmocka_unit_test(test_a_repeated_graph_is_one_round_trip),
        cmocka_unit_test(test_with_its_input_and_result_it_is_two),
        cmocka_unit_test(test_a_set_leaves_without_a_request_after_it),
        cmocka_unit_test(test_a_graph_that_is_made_anew_is_forgotten),
        cmocka_unit_test(test_synchronize_waits_for_sets),
        cmocka_unit_test(test_many_sets_are_bounded_and_in_order),
        cmocka_unit_test_teardown(test_inputs_of_a_split_come_while_the_one_before_computes,
                                  let_go),
        cmocka_unit_test_teardown(test_the_answer_to_a_graph_does_not_wait_for_the_next, let_go),
    };
    const struct CMUnitTest broken[] = {cmocka_unit_test(test_a_request_that_mpi_freed_has_failed)};
    if (argc > 1 && strcmp(argv[1], "broken") == 0)
        return cmocka_run_group_tests(broken, start, NULL);
    if (argc > 1 && strcmp(argv[1], "tags") == 0) return cmocka_run_group_tests(tags, start, NULL);
    if (argc > 1 && strcmp(argv[1], "slow") == 0) return cmocka_run_group_tests(slow, start, NULL);
    return cmocka_run_group_tests(counted, start, NULL);
}
