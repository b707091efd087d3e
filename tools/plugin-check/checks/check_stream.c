// SPDX-License-Identifier: MIT
// Streams: queues of work, events, graphs.
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "elf_view.h"
#include "exercise.h"
#include "ggml-host.h"
#include "ggml-impl.h"

enum { N_NUMBERS = 1000, N_STREAMS = 16, N_ROUNDS = 20 };

// A new stream of the device; skips the check where it has none. Streams are not freed: the
// process ends with the check.
static ggml_backend_t new_stream(const struct check_run *run, ggml_backend_dev_t device) {
    ggml_backend_t stream = make_stream(device, NULL);
    if (!stream) check_skip(run, "%s: no stream: %s", label(device), host_counters.last_error);
    return stream;
}

static bool all_zero(const void *memory, size_t size) {
    for (size_t i = 0; i < size; ++i) {
        if (((const char *)memory)[i] != 0) return false;
    }
    return true;
}

// --- objects -------------------------------------------------------------------------------------

// A device without streams is skipped only if it set an error that says why.
void stream_create(struct check_run *run) {
    struct devices devices;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        const long errors = atomic_load(&host_counters.n_errors);
        ggml_backend_t stream = make_stream(devices.items[i], NULL);
        if (stream) continue;
        CHECK_THAT(run, atomic_load(&host_counters.n_errors) > errors,
                   "%s makes no stream and does not say why", label(devices.items[i]));
        check_skip(run, "%s has no streams: %s", label(devices.items[i]), host_counters.last_error);
    }
}

void stream_table(struct check_run *run) {
    struct devices devices;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        const ggml_backend_dev_t device = devices.items[i];
        const struct ggml_backend *stream = new_stream(run, device);
        const struct ggml_stream_table *table = stream->table;
        CHECK_THAT(run, table, "%s: a stream has no table", label(device));
        CHECK_THAT(run, table->size >= offsetof(struct ggml_stream_table, reserved),
                   "%s: the table of a stream is %u bytes long, less than that of contract 1.0",
                   label(device), (unsigned)table->size);
    }
}

void stream_entries(struct check_run *run) {
    struct devices devices;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        const struct ggml_stream_table *table = new_stream(run, devices.items[i])->table;
        CHECK_THAT(run, table->get_name, "%s: get_name is missing", label(devices.items[i]));
        CHECK_THAT(run, table->free, "%s: free is missing", label(devices.items[i]));
        CHECK_THAT(run, table->graph_compute, "%s: graph_compute is missing",
                   label(devices.items[i]));
    }
}

// The three entries for plans exist together or not at all: a host that finds one calls the
// others.
void stream_plan_entries(struct check_run *run) {
    struct devices devices;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        const struct ggml_stream_table *table = new_stream(run, devices.items[i])->table;
        const int n = (table->graph_plan_create != NULL) + (table->graph_plan_free != NULL) +
                      (table->graph_plan_compute != NULL);
        CHECK_THAT(run, n == 0 || n == 3, "%s: only %d of the three entries for plans",
                   label(devices.items[i]), n);
    }
}

// A device that makes events needs streams that record and wait for them.
void stream_event_entries(struct check_run *run) {
    struct devices devices;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        const struct ggml_stream_table *table = new_stream(run, devices.items[i])->table;
        const bool any = devices.items[i]->table->event_new != NULL;
        CHECK_THAT(run, !any || (table->event_record && table->event_wait),
                   "%s makes events that its streams can't record or wait for",
                   label(devices.items[i]));
    }
}

void stream_name(struct check_run *run) {
    struct devices devices;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        ggml_backend_t stream = new_stream(run, devices.items[i]);
        const char *name = stream->table->get_name(stream);
        CHECK_THAT(run, name && name[0] && valid_utf8(name), "%s: a stream has no valid name",
                   label(devices.items[i]));
    }
}

// The guid tells the kind of a stream: never zero, and the same for two streams of a device.
void stream_guid(struct check_run *run) {
    struct devices devices;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        const uint8_t *first = new_stream(run, devices.items[i])->table->guid;
        CHECK_THAT(run, !all_zero(first, 16), "%s: a stream has no identity",
                   label(devices.items[i]));
        CHECK_THAT(run, memcmp(first, new_stream(run, devices.items[i])->table->guid, 16) == 0,
                   "%s: two streams have different identities", label(devices.items[i]));
    }
}

void stream_device(struct check_run *run) {
    struct devices devices;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        CHECK_THAT(run, new_stream(run, devices.items[i])->device == devices.items[i],
                   "%s: a stream names another device", label(devices.items[i]));
    }
}

// Slots that a later contract may define are zero, so that a host of that contract doesn't call
// what isn't there. Skipped for a plugin of a newer contract, which may use them.
void stream_reserved(struct check_run *run) {
    struct devices devices;
    if (elf_view_is_newer(run)) check_skip(run, "the plugin may know more than this program");
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        ggml_backend_t stream = new_stream(run, devices.items[i]);
        CHECK_THAT(run,
                   all_zero(stream->reserved, sizeof(stream->reserved)) &&
                       all_zero(stream->table->reserved, sizeof(stream->table->reserved)) &&
                       stream->table->reserved0 == 0,
                   "%s: a reserved slot of a stream or of its table is not zero",
                   label(devices.items[i]));
    }
}

// Parameters are text from the user: unknown, malformed and non-UTF-8 ones may be refused or
// ignored, but not crash.
void stream_parameters(struct check_run *run) {
    static const char *const texts[] = {"", "no-such-parameter=1", "\xff\xfe", "=,=,,",
                                        "threads=-1"};
    struct devices devices;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        for (size_t j = 0; j < sizeof(texts) / sizeof(texts[0]); ++j)
            ggml_backend_free(make_stream(devices.items[i], texts[j]));
    }
}

// One stream is made and freed first, for what a plugin allocates once and keeps. After that
// N_STREAMS of them, alive at once, must leave no block of the host's memory.
void stream_free(struct check_run *run) {
    struct devices devices;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        ggml_backend_t streams[N_STREAMS];
        ggml_backend_free(new_stream(run, devices.items[i]));
        const long before = atomic_load(&host_counters.live_blocks);
        for (int j = 0; j < N_STREAMS; ++j)
            streams[j] = new_stream(run, devices.items[i]);
        for (int j = 0; j < N_STREAMS; ++j)
            ggml_backend_free(streams[j]);
        const long left = atomic_load(&host_counters.live_blocks) - before;
        CHECK_THAT(run, left <= 0, "%s: %ld blocks are left of %d streams", label(devices.items[i]),
                   left, N_STREAMS);
    }
}

// Lets the n-th allocation of a new stream fail, for n = 1, 2, ... until none is left to fail:
// whatever was allocated before must be freed. The first stream takes what is allocated once.
void stream_out_of_memory(struct check_run *run) {
    struct devices devices;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        ggml_backend_dev_t device = devices.items[i];
        ggml_backend_free(new_stream(run, device));
        const long live = atomic_load(&host_counters.live_blocks);
        for (long n = 1; n < 100; ++n) {
            const long begun = atomic_load(&host_counters.n_allocs);
            atomic_store(&host_counters.fail_at, begun + n);
            ggml_backend_t stream = make_stream(device, NULL);
            atomic_store(&host_counters.fail_at, 0);
            if (stream) ggml_backend_free(stream);
            const long left = atomic_load(&host_counters.live_blocks) - live;
            CHECK_THAT(run, left <= 0, "%s: %ld blocks are left after allocation %ld failed",
                       label(device), left, n);
            if (atomic_load(&host_counters.n_allocs) - begun < n) break;
        }
    }
}

// Synchronising a stream without work returns, however often.
void stream_idle(struct check_run *run) {
    struct devices devices;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        ggml_backend_t stream = new_stream(run, devices.items[i]);
        for (int j = 0; j < 10; ++j)
            ggml_backend_synchronize(stream);
    }
}

// --- sums ----------------------------------------------------------------------------------------

// A stream of a device that claims an addition, and the addition.
struct work {
    ggml_backend_dev_t device;
    ggml_backend_t stream;
    struct sum_graph sum;
    float a[N_NUMBERS];
    float b[N_NUMBERS];
};

// Random operands by the run's seed; the result is filled with NaN, so that a sum that was never
// computed is seen.
static void work_fill(const struct check_run *run, struct work *work) {
    struct numbers numbers = {run->seed};
    for (int i = 0; i < N_NUMBERS; ++i) {
        work->a[i] = numbers_float(&numbers);
        work->b[i] = numbers_float(&numbers);
    }
    ggml_backend_tensor_set(work->sum.a, work->a, 0, sizeof(work->a));
    ggml_backend_tensor_set(work->sum.b, work->b, 0, sizeof(work->b));
    ggml_backend_tensor_memset(work->sum.sum, 0xff, 0, sizeof(work->a));
}

// False if the device does not claim it.
static bool work_new(const struct check_run *run, ggml_backend_dev_t device, struct work *out) {
    *out = (struct work){.device = device};
    CHECK_THAT(run, sum_graph_new(&out->sum, N_NUMBERS), "no memory");
    if (!device->table->supports_op(device, out->sum.sum)) return false;
    out->stream = new_stream(run, device);
    CHECK_THAT(run, sum_graph_place(&out->sum, device), "%s: no buffer: %s", label(device),
               ggml_last_error());
    work_fill(run, out);
    return true;
}

// Computes the sum and waits for it; a failure of a claimed operation fails the check.
static void compute(const struct check_run *run, const struct work *work) {
    const enum ggml_status status = ggml_backend_graph_compute(work->stream, work->sum.graph);
    CHECK_THAT(run, status == GGML_STATUS_SUCCESS, "%s: a claimed addition fails: %s",
               label(work->device), host_counters.last_error);
}

// Additions in F32 are exact to the bit: both sides round once.
static void expect_sum(const struct check_run *run, const struct work *work, const float *actual) {
    for (int i = 0; i < N_NUMBERS; ++i) {
        CHECK_THAT(run, actual[i] == work->a[i] + work->b[i],
                   "%s: ADD in F32: number %d is %g instead of %g, the sum of %g and %g",
                   label(work->device), i, (double)actual[i], (double)(work->a[i] + work->b[i]),
                   (double)work->a[i], (double)work->b[i]);
    }
}

static void read_and_expect_sum(const struct check_run *run, const struct work *work) {
    float actual[N_NUMBERS];
    ggml_backend_tensor_get(work->sum.sum, actual, 0, sizeof(actual));
    expect_sum(run, work, actual);
}

// For each device that adds: `work` is ready. Skips the check if there is none.
static void for_each_work(const struct check_run *run,
                          bool (*body)(const struct check_run *run, struct work *work)) {
    struct devices devices;
    static struct work work;
    bool any = false;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        if (work_new(run, devices.items[i], &work) && body(run, &work)) any = true;
    }
    if (!any) check_skip(run, "no device does that");
}

static bool body_sum(const struct check_run *run, struct work *work) {
    compute(run, work);
    read_and_expect_sum(run, work);
    return true;
}

void op_sum(struct check_run *run) {
    for_each_work(run, body_sum);
}

// --- order and transfers -------------------------------------------------------------------------

// Overwrites an operand with zeros, sets it through the stream and adds: the sum shows whether
// the transfer was done when synchronize returned.
static bool body_async_set(const struct check_run *run, struct work *work) {
    if (!work->stream->table->set_tensor_async) return false;
    ggml_backend_tensor_memset(work->sum.a, 0, 0, sizeof(work->a));
    ggml_backend_tensor_set_async(work->stream, work->sum.a, work->a, 0, sizeof(work->a));
    ggml_backend_synchronize(work->stream);
    compute(run, work);
    read_and_expect_sum(run, work);
    return true;
}

void stream_async_set(struct check_run *run) {
    for_each_work(run, body_async_set);
}

// Reads the sum through the stream right behind the computation.
static bool body_async_get(const struct check_run *run, struct work *work) {
    float actual[N_NUMBERS] = {0};
    if (!work->stream->table->get_tensor_async) return false;
    compute(run, work);
    ggml_backend_tensor_get_async(work->stream, work->sum.sum, actual, 0, sizeof(actual));
    ggml_backend_synchronize(work->stream);
    expect_sum(run, work, actual);
    return true;
}

void stream_async_get(struct check_run *run) {
    for_each_work(run, body_async_get);
}

// Set, compute and get without waiting in between, N_ROUNDS times with other numbers: the sum is
// right only if the stream keeps their order.
static bool body_order(const struct check_run *run, struct work *work) {
    float actual[N_NUMBERS];
    for (int round = 0; round < N_ROUNDS; ++round) {
        for (int i = 0; i < N_NUMBERS; ++i)
            work->a[i] += 1.0f;
        memset(actual, 0, sizeof(actual));
        ggml_backend_tensor_set_async(work->stream, work->sum.a, work->a, 0, sizeof(work->a));
        ggml_backend_graph_compute_async(work->stream, work->sum.graph);
        ggml_backend_tensor_get_async(work->stream, work->sum.sum, actual, 0, sizeof(actual));
        ggml_backend_synchronize(work->stream);
        expect_sum(run, work, actual);
    }
    return true;
}

void stream_order(struct check_run *run) {
    for_each_work(run, body_order);
}

// Copies the sum to another stream of the same device, which must wait for the first one's work.
static bool body_copy_async(const struct check_run *run, struct work *work) {
    ggml_backend_t other = new_stream(run, work->device);
    compute(run, work);
    ggml_backend_tensor_copy_async(work->stream, other, work->sum.sum, work->sum.b);
    ggml_backend_synchronize(other);
    ggml_backend_synchronize(work->stream);
    float actual[N_NUMBERS];
    ggml_backend_tensor_get(work->sum.b, actual, 0, sizeof(actual));
    expect_sum(run, work, actual);
    return true;
}

void stream_copy_queued(struct check_run *run) {
    for_each_work(run, body_copy_async);
}

// A stream with a table that the plugin doesn't know must be refused with UNSUPPORTED, before
// anything of it is used; the own stream must still work after it.
static bool body_copy_foreign(const struct check_run *run, struct work *work) {
    static const struct ggml_stream_table strange_table = {.size = sizeof(strange_table)};
    struct ggml_backend stranger = {.table = &strange_table};
    ggml_backend_t stream = work->stream;
    if (!stream->table->cpy_tensor_async) return false;
    const int32_t status =
        stream->table->cpy_tensor_async(&stranger, stream, work->sum.b, work->sum.a);
    CHECK_THAT(run, status == GGML_HOST_UNSUPPORTED,
               "%s: a copy from a strange stream gets status %d (%s)", label(work->device),
               (int)status, status_text(status));
    ggml_backend_synchronize(stream);
    compute(run, work);
    read_and_expect_sum(run, work);
    return true;
}

void stream_copy_foreign(struct check_run *run) {
    for_each_work(run, body_copy_foreign);
}

// Frees a stream with work under way: free has to wait, or the sum is incomplete or memory is
// used after free.
static bool body_free_waits(const struct check_run *run, struct work *work) {
    ggml_backend_graph_compute_async(work->stream, work->sum.graph);
    ggml_backend_free(work->stream);
    read_and_expect_sum(run, work);
    return true;
}

void stream_free_waits(struct check_run *run) {
    for_each_work(run, body_free_waits);
}

// --- events --------------------------------------------------------------------------------------

// An event, or NULL if the device has none; fails the check if it has the entry and makes none.
static ggml_backend_event_t new_event(const struct check_run *run, ggml_backend_dev_t device) {
    ggml_backend_event_t event = device->table->event_new ? make_event(device) : NULL;
    CHECK_THAT(run, event || !device->table->event_new, "%s makes no event", label(device));
    return event;
}

// argument: 0 unrecorded, 1 recorded, 2 recorded twice.
static bool body_event(const struct check_run *run, struct work *work) {
    ggml_backend_event_t event = new_event(run, work->device);
    if (!event) return false;
    for (int i = 0; i < run->check->argument; ++i) {
        ggml_backend_tensor_memset(work->sum.sum, 0, 0, sizeof(work->a));
        ggml_backend_graph_compute_async(work->stream, work->sum.graph);
        ggml_backend_event_record(event, work->stream);
        if (i + 1 < run->check->argument) ggml_backend_event_synchronize(event);
    }
    if (run->check->argument == 0) {
        ggml_backend_t other = new_stream(run, work->device);
        ggml_backend_event_wait(other, event);
        ggml_backend_synchronize(other);
    }
    ggml_backend_event_synchronize(event);
    if (run->check->argument > 0) read_and_expect_sum(run, work);
    ggml_backend_event_free(event);
    return true;
}

void stream_event(struct check_run *run) {
    for_each_work(run, body_event);
}

// One stream computes, another reads the result after waiting for the first one's event: without
// an order between them a wrong sum shows in some of N_ROUNDS.
static bool body_event_across(const struct check_run *run, struct work *work) {
    ggml_backend_event_t event = new_event(run, work->device);
    float actual[N_NUMBERS];
    if (!event) return false;
    ggml_backend_t other = new_stream(run, work->device);
    for (int round = 0; round < N_ROUNDS; ++round) {
        for (int i = 0; i < N_NUMBERS; ++i)
            work->a[i] += 1.0f;
        ggml_backend_tensor_set_async(work->stream, work->sum.a, work->a, 0, sizeof(work->a));
        ggml_backend_graph_compute_async(work->stream, work->sum.graph);
        ggml_backend_event_record(event, work->stream);
        ggml_backend_event_wait(other, event);
        ggml_backend_tensor_get_async(other, work->sum.sum, actual, 0, sizeof(actual));
        ggml_backend_synchronize(other);
        expect_sum(run, work, actual);
        ggml_backend_synchronize(work->stream);
    }
    return true;
}

void stream_event_across(struct check_run *run) {
    for_each_work(run, body_event_across);
}

// Work that stays unfinished while event_wait runs, as long as another thread does it.
static struct {
    pthread_t caller;
    atomic_bool waits, has_waited;
    atomic_bool was_stuck, was_done_here, was_waited_for;
} stuck;

enum { BRIEF_MS = 100, LONG_MS = 2000 };

static void sleep_ms(void) {
    nanosleep(&(struct timespec){0, 1000000}, NULL);
}

// The abort callback of that work.
static bool abort_never(void *unused) {
    (void)unused;
    if (pthread_equal(pthread_self(), stuck.caller)) {
        if (stuck.waits) stuck.was_done_here = true;
        return false;
    }
    // A device that computes before it returns gets no further than this.
    for (int i = 0; i < BRIEF_MS && !stuck.waits && !stuck.has_waited; ++i)
        sleep_ms();
    for (int i = 0; i < LONG_MS && stuck.waits; ++i) {
        stuck.was_stuck = true;
        sleep_ms();
    }
    if (stuck.waits) stuck.was_waited_for = true;
    return false;
}

// event_wait must queue the wait and return: it may not block the thread until the work is done.
// The abort callback of the work holds that up (at most LONG_MS) and notes whether event_wait
// was still running then. Skipped without such a callback.
static bool body_event_wait_returns(const struct check_run *run, struct work *work) {
    ggml_backend_set_abort_callback_t set = NULL;
    ggml_backend_reg_t reg = work->device->reg;
    ggml_backend_event_t event = new_event(run, work->device);
    if (reg->table->get_proc_address)
        *(void **)&set = reg->table->get_proc_address(reg, "ggml_backend_set_abort_callback");
    if (!event || !set) return false;
    ggml_backend_t other = new_stream(run, work->device);
    stuck.caller = pthread_self();
    stuck.has_waited = false;
    set(work->stream, abort_never, NULL);
    ggml_backend_tensor_set_async(work->stream, work->sum.a, work->a, 0, sizeof(work->a));
    ggml_backend_graph_compute_async(work->stream, work->sum.graph);
    ggml_backend_event_record(event, work->stream);
    stuck.waits = true;
    ggml_backend_event_wait(other, event);
    stuck.waits = false;
    stuck.has_waited = true;
    CHECK_THAT(run, !stuck.was_done_here && !stuck.was_waited_for,
               "%s: event_wait returns only when the work is done", label(work->device));
    ggml_backend_synchronize(other);
    ggml_backend_synchronize(work->stream);
    set(work->stream, NULL, NULL);
    ggml_backend_event_free(event);
    ggml_backend_free(other);
    return true;
}

void stream_event_wait_returns(struct check_run *run) {
    for_each_work(run, body_event_wait_returns);
}

// --- graphs --------------------------------------------------------------------------------------

void stream_empty_graph(struct check_run *run) {
    struct devices devices;
    struct sum_graph graph;
    devices_open(run, &devices);
    CHECK_THAT(run, sum_graph_new(&graph, 4), "no memory");
    struct ggml_cgraph *empty = ggml_new_graph(graph.ctx);
    for (int i = 0; i < devices.n; ++i) {
        ggml_backend_t stream = new_stream(run, devices.items[i]);
        CHECK_THAT(run, ggml_backend_graph_compute(stream, empty) == GGML_STATUS_SUCCESS,
                   "%s: a graph without nodes fails", label(devices.items[i]));
        ggml_backend_free(stream);
    }
}

// Nodes that only describe a view.
void stream_skips_views(struct check_run *run) {
    struct devices devices;
    struct sum_graph graph;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        CHECK_THAT(run, sum_graph_new(&graph, 64), "no memory");
        struct ggml_cgraph *views = ggml_new_graph(graph.ctx);
        struct ggml_tensor *shaped = ggml_reshape_2d(graph.ctx, graph.a, 8, 8);
        ggml_build_forward_expand(views, ggml_transpose(graph.ctx, shaped));
        ggml_build_forward_expand(views, ggml_view_1d(graph.ctx, graph.a, 8, 16));
        CHECK_THAT(run, sum_graph_place(&graph, devices.items[i]), "no buffer");
        ggml_backend_t stream = new_stream(run, devices.items[i]);
        CHECK_THAT(run, ggml_backend_graph_compute(stream, views) == GGML_STATUS_SUCCESS,
                   "%s: a graph of views fails: %s", label(devices.items[i]),
                   host_counters.last_error);
        ggml_backend_free(stream);
    }
}

// The result keeps its zeros if the node was skipped.
static bool body_unflagged(const struct check_run *run, struct work *work) {
    float actual[N_NUMBERS];
    ggml_backend_tensor_memset(work->sum.sum, 0, 0, sizeof(actual));
    work->sum.sum->flags &= ~GGML_TENSOR_FLAG_COMPUTE;
    compute(run, work);
    ggml_backend_tensor_get(work->sum.sum, actual, 0, sizeof(actual));
    CHECK_THAT(run, all_zero(actual, sizeof(actual)),
               "%s computes a node that is not to be computed", label(work->device));
    return true;
}

void stream_skips_unflagged(struct check_run *run) {
    for_each_work(run, body_unflagged);
}

// The result is cleared before each run, so that the last one's can't be taken for it.
static bool body_repeat(const struct check_run *run, struct work *work) {
    for (int i = 0; i < N_ROUNDS; ++i) {
        ggml_backend_tensor_memset(work->sum.sum, 0, 0, sizeof(work->a));
        compute(run, work);
        read_and_expect_sum(run, work);
    }
    return true;
}

void stream_repeat(struct check_run *run) {
    for_each_work(run, body_repeat);
}

// After synchronize nothing may touch the graph, while another one is computed; then a third one
// lies where it was.
static bool body_graph_freed(const struct check_run *run, struct work *work) {
    static struct work other;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t size = (sum_graph_bytes() + page - 1) / page * page;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK_THAT(run, memory != MAP_FAILED, "no memory");
    for (int i = 0; i < 2; ++i) {
        other = (struct work){.device = work->device, .stream = work->stream};
        CHECK_THAT(run,
                   sum_graph_new_in(&other.sum, N_NUMBERS, memory) &&
                       sum_graph_place(&other.sum, other.device),
                   "no memory");
        work_fill(run, &other);
        ggml_backend_graph_compute_async(other.stream, other.sum.graph);
        ggml_backend_synchronize(other.stream);
        read_and_expect_sum(run, &other);
        CHECK_THAT(run, mprotect(memory, size, PROT_NONE) == 0, "no memory");
        compute(run, work);
        read_and_expect_sum(run, work);
        CHECK_THAT(run, mprotect(memory, size, PROT_READ | PROT_WRITE) == 0, "no memory");
        memset(memory, 0, size);
    }
    return true;
}

void stream_graph_freed(struct check_run *run) {
    for_each_work(run, body_graph_freed);
}

// As a host does that computes one graph again and again, and a second host with the same numbers.
static bool body_graph_uid(const struct check_run *run, struct work *work) {
    static struct work other;
    CHECK_THAT(run, work_new(run, work->device, &other), "%s claims a node only once",
               label(work->device));
    work->sum.graph->uid = other.sum.graph->uid = 1;
    for (int i = 0; i < N_ROUNDS; ++i) {
        work->a[i] = (float)i;
        ggml_backend_tensor_set(work->sum.a, work->a, 0, sizeof(work->a));
        compute(run, work);
        read_and_expect_sum(run, work);
    }
    compute(run, &other);
    read_and_expect_sum(run, &other);
    return true;
}

void stream_graph_uid(struct check_run *run) {
    for_each_work(run, body_graph_uid);
}

// Calls graph_compute of the stream's table with a graph made here, as the host's wrapper would
// set its own uid and structure.
static void compute_as(const struct check_run *run, const struct work *work,
                       const struct ggml_graph *graph) {
    const int32_t status = work->stream->table->graph_compute(work->stream, graph);
    CHECK_THAT(run, status == GGML_HOST_OK, "%s: claimed nodes fail: %s", label(work->device),
               host_counters.last_error);
    ggml_backend_synchronize(work->stream);
}

// Computes the sum as a graph of structure 7: a plugin may reuse what it planned for an earlier
// one.
static void compute_structure(const struct check_run *run, const struct work *work, uint64_t uid) {
    static const int32_t use_counts[1];
    const struct ggml_graph graph = {.size = sizeof(graph),
                                     .n_nodes = 1,
                                     .nodes = ggml_graph_nodes(work->sum.graph),
                                     .use_counts = use_counts,
                                     .structure = 7,
                                     .uid = uid};
    compute_as(run, work, &graph);
    read_and_expect_sum(run, work);
}

// As a scheduler does whose graph is built again for each step: other tensors, other memory. The
// first graph's is gone in the end.
static bool body_graph_structure(const struct check_run *run, struct work *work) {
    static struct work others[2];
    for (int i = 0; i < 2; ++i) {
        others[i] = (struct work){.device = work->device, .stream = work->stream};
        CHECK_THAT(run,
                   sum_graph_new(&others[i].sum, N_NUMBERS) &&
                       sum_graph_place(&others[i].sum, work->device),
                   "no memory");
    }
    for (uint64_t i = 0; i < N_ROUNDS; ++i) {
        struct work *next = i % 3 == 0 ? work : &others[i % 3 - 1];
        work_fill(run, next);
        compute_structure(run, next, i % 2 * i);
    }
    sum_graph_free(&work->sum);
    work_fill(run, &others[0]);
    compute_structure(run, &others[0], 0);
    return true;
}

void stream_graph_structure(struct check_run *run) {
    for_each_work(run, body_graph_structure);
}

// --- use counts

enum { SIDE = 32 };

// Two nodes, the first of them a source of the second, that plugins often compute at once.
static struct ggml_tensor *make_pair(struct ggml_context *ctx, int kind, struct ggml_tensor *a,
                                     struct ggml_tensor *b) {
    switch (kind) {
    case 0: return ggml_add(ctx, ggml_add(ctx, a, b), b);
    case 1: return ggml_mul(ctx, ggml_rms_norm(ctx, a, 1e-5f), b);
    case 2: return ggml_add(ctx, ggml_mul_mat(ctx, a, b), b);
    case 3: return ggml_add(ctx, ggml_mul(ctx, a, b), b);
    case 4: return ggml_mul(ctx, ggml_silu(ctx, a), b);
    default: return NULL;
    }
}

// Random numbers by the run's seed, the same for each operand.
static void fill_side(const struct check_run *run, struct ggml_tensor *tensor) {
    float values[SIDE * SIDE];
    struct numbers numbers = {run->seed};
    for (int i = 0; i < SIDE * SIDE; ++i)
        values[i] = numbers_float(&numbers);
    ggml_backend_tensor_set(tensor, values, 0, sizeof(values));
}

// Computes nodes with a use count of the first one, whose results are NaN before.
static void compute_nodes(const struct check_run *run, const struct work *work,
                          struct ggml_tensor **nodes, int n, int32_t first_uses) {
    const int32_t use_counts[2] = {first_uses, 0};
    const struct ggml_graph graph = {
        .size = sizeof(graph), .n_nodes = n, .nodes = nodes, .use_counts = use_counts};
    for (int i = 0; i < n; ++i)
        ggml_backend_tensor_memset(nodes[i], 0xff, 0, ggml_nbytes(nodes[i]));
    compute_as(run, work, &graph);
}

// The first node is read by a third one, which another graph has.
static void expect_both(const struct check_run *run, const struct work *work,
                        struct ggml_tensor **nodes) {
    float expected[2][SIDE * SIDE], actual[SIDE * SIDE];
    for (int i = 0; i < 2; ++i) {
        compute_nodes(run, work, &nodes[i], 1, 2);
        ggml_backend_tensor_get(nodes[i], expected[i], 0, sizeof(expected[i]));
    }
    compute_nodes(run, work, nodes, 2, 2);
    for (int i = 0; i < 2; ++i) {
        ggml_backend_tensor_get(nodes[i], actual, 0, sizeof(actual));
        for (int k = 0; k < SIDE * SIDE; ++k) {
            const double want = (double)expected[i][k], found = (double)actual[k];
            CHECK_THAT(run, fabs(found - want) <= 1e-3 * (1 + fabs(want)),
                       "%s: of a %s that is used twice number %d is %g, alone %g",
                       label(work->device), ggml_op_desc(nodes[i]), k, found, want);
        }
    }
}

// Tries one pair of nodes on the device; true also where it doesn't claim them, false behind the
// last pair.
static bool pair_on(const struct check_run *run, const struct work *work, int kind) {
    const struct ggml_init_params params = {.mem_size = 8 * ggml_tensor_overhead(),
                                            .no_alloc = true};
    struct ggml_context *ctx = ggml_init(params);
    CHECK_THAT(run, ctx, "no memory");
    struct ggml_tensor *a = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, SIDE, SIDE);
    struct ggml_tensor *b = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, SIDE, SIDE);
    struct ggml_tensor *last = make_pair(ctx, kind, a, b);
    if (!last) return false;
    struct ggml_tensor *nodes[] = {last->src[0], last};
    bool claimed = true;
    for (int i = 0; i < 2; ++i) {
        nodes[i]->flags |= GGML_TENSOR_FLAG_COMPUTE;
        claimed = claimed && work->device->table->supports_op(work->device, nodes[i]);
    }
    if (!claimed) return true;
    ggml_backend_buffer_t buffer =
        ggml_backend_alloc_ctx_tensors_from_buft(ctx, ggml_backend_dev_buffer_type(work->device));
    CHECK_THAT(run, buffer, "%s: no buffer: %s", label(work->device), ggml_last_error());
    fill_side(run, a);
    fill_side(run, b);
    expect_both(run, work, nodes);
    ggml_backend_buffer_free(buffer);
    ggml_free(ctx);
    return true;
}

static bool body_use_counts(const struct check_run *run, struct work *work) {
    for (int kind = 0; pair_on(run, work, kind); ++kind) {
    }
    return true;
}

void stream_use_counts(struct check_run *run) {
    for_each_work(run, body_use_counts);
}

// A plan is computed three times, with the result cleared in between.
static bool body_plan(const struct check_run *run, struct work *work) {
    if (!work->stream->table->graph_plan_create) return false;
    ggml_backend_graph_plan_t plan = ggml_backend_graph_plan_create(work->stream, work->sum.graph);
    CHECK_THAT(run, plan, "%s: no plan of an addition: %s", label(work->device),
               host_counters.last_error);
    for (int i = 0; i < 3; ++i) {
        ggml_backend_tensor_memset(work->sum.sum, 0, 0, sizeof(work->a));
        CHECK_THAT(run, ggml_backend_graph_plan_compute(work->stream, plan) == GGML_STATUS_SUCCESS,
                   "%s: a plan fails", label(work->device));
        ggml_backend_synchronize(work->stream);
        read_and_expect_sum(run, work);
    }
    ggml_backend_graph_plan_free(work->stream, plan);
    return true;
}

void stream_plan(struct check_run *run) {
    for_each_work(run, body_plan);
}

// For qsort(): pointers in the order of their addresses.
static int by_address(const void *a, const void *b) {
    const uintptr_t left = (uintptr_t) * (void *const *)a, right = (uintptr_t) * (void *const *)b;
    return (left > right) - (left < right);
}

// graph_optimize may reorder nodes, and nothing else: the set of nodes, their contents and the
// rest of the graph are compared with what they were. Nodes are compared as sorted addresses.
static bool body_optimize(const struct check_run *run, struct work *work) {
    enum { N_NODES = 6 };
    struct ggml_tensor *before[N_NODES], *after[N_NODES], copies[N_NODES];
    struct ggml_cgraph *graph = ggml_new_graph(work->sum.ctx);
    if (!work->stream->table->graph_optimize) return false;
    struct ggml_tensor *node = work->sum.sum;
    for (int i = 1; i < N_NODES; ++i)
        node = ggml_add(work->sum.ctx, node, i % 2 ? work->sum.a : work->sum.b);
    ggml_build_forward_expand(graph, node);
    CHECK_THAT(run, ggml_graph_n_nodes(graph) == N_NODES, "the check's graph is wrong");
    for (int i = 0; i < N_NODES; ++i) {
        before[i] = ggml_graph_node(graph, i);
        copies[i] = *before[i];
    }
    int32_t use_counts[N_NODES];
    for (int i = 0; i < N_NODES; ++i)
        use_counts[i] = ggml_node_get_use_count(graph, i);
    const struct ggml_graph given = {.size = sizeof(given),
                                     .n_nodes = N_NODES,
                                     .nodes = ggml_graph_nodes(graph),
                                     .use_counts = use_counts};
    struct ggml_graph view = given;
    const int32_t status = work->stream->table->graph_optimize(work->stream, &view);
    CHECK_THAT(run, status == GGML_HOST_OK || status == GGML_HOST_UNSUPPORTED,
               "%s: graph_optimize answers status %d (%s)", label(work->device), (int)status,
               status_text(status));
    CHECK_THAT(run, view.n_nodes == N_NODES, "%s: %d nodes became %d", label(work->device), N_NODES,
               view.n_nodes);
    CHECK_THAT(run, memcmp(&view, &given, sizeof(view)) == 0,
               "%s: more of the graph than the order of its nodes was changed",
               label(work->device));
    for (int i = 0; i < N_NODES; ++i) {
        after[i] = ggml_graph_node(graph, i);
        CHECK_THAT(run, memcmp(before[i], &copies[i], sizeof(copies[i])) == 0,
                   "%s: a node was changed", label(work->device));
    }
    qsort(before, N_NODES, sizeof(before[0]), by_address);
    qsort(after, N_NODES, sizeof(after[0]), by_address);
    CHECK_THAT(run, memcmp(before, after, sizeof(before)) == 0, "%s: the nodes are others",
               label(work->device));
    return true;
}

void stream_optimize(struct check_run *run) {
    for_each_work(run, body_optimize);
}

// --- callbacks and threads -----------------------------------------------------------------------

// Counts its calls in *data and asks to stop.
static bool abort_at_once(void *data) {
    ++*(int *)data;
    return true;
}

// A callback that always asks to abort: the computation ends with ABORTED, or with SUCCESS if it
// never asked; and the stream works again once the callback is gone.
static bool body_abort(const struct check_run *run, struct work *work) {
    int n_calls = 0;
    ggml_backend_set_abort_callback_t set = NULL;
    ggml_backend_reg_t reg = work->device->reg;
    if (reg->table->get_proc_address)
        *(void **)&set = reg->table->get_proc_address(reg, "ggml_backend_set_abort_callback");
    if (!set) return false;
    set(work->stream, abort_at_once, &n_calls);
    const enum ggml_status status = ggml_backend_graph_compute(work->stream, work->sum.graph);
    CHECK_THAT(run,
               status == GGML_STATUS_ABORTED || (status == GGML_STATUS_SUCCESS && n_calls == 0),
               "%s: a computation that is aborted answers %d", label(work->device), (int)status);
    set(work->stream, NULL, NULL);
    compute(run, work);
    read_and_expect_sum(run, work);
    return true;
}

void stream_abort(struct check_run *run) {
    for_each_work(run, body_abort);
}

struct worker {
    const struct check_run *run;
    struct work work;
};

// A thread that computes the same sum again and again.
static void *work_often(void *argument) {
    struct worker *worker = argument;
    for (int i = 0; i < N_ROUNDS; ++i) {
        ggml_backend_tensor_memset(worker->work.sum.sum, 0, 0, sizeof(worker->work.a));
        compute(worker->run, &worker->work);
        read_and_expect_sum(worker->run, &worker->work);
    }
    return NULL;
}

// Two streams of a device, each in a thread of its own, at the same time: what a device shares
// between its streams is locked.
void stream_threads(struct check_run *run) {
    struct devices devices;
    static struct worker workers[2];
    bool any = false;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        pthread_t threads[2];
        if (!work_new(run, devices.items[i], &workers[0].work)) continue;
        any = work_new(run, devices.items[i], &workers[1].work);
        for (int j = 0; j < 2; ++j) {
            workers[j].run = run;
            CHECK_THAT(run, pthread_create(&threads[j], NULL, work_often, &workers[j]) == 0,
                       "no thread");
        }
        for (int j = 0; j < 2; ++j)
            pthread_join(threads[j], NULL);
    }
    if (!any) check_skip(run, "no device does that");
}

// One stream, used by one thread after the other.
static bool body_other_thread(const struct check_run *run, struct work *work) {
    static struct worker worker;
    pthread_t thread;
    worker = (struct worker){.run = run, .work = *work};
    for (int i = 0; i < 4; ++i) {
        CHECK_THAT(run, pthread_create(&thread, NULL, work_often, &worker) == 0, "no thread");
        pthread_join(thread, NULL);
    }
    return true;
}

void stream_other_thread(struct check_run *run) {
    for_each_work(run, body_other_thread);
}
