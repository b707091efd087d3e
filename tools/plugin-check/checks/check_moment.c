// SPDX-License-Identifier: MIT
// Calls at awkward moments: while the plugin calls its host or the application, with objects of
// other devices and plugins, and after a device was lost.
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "exercise.h"
#include "ggml-host.h"

enum { N_NUMBERS = 256, PATIENCE_S = 1 };

// A device that adds, with a stream and its operands in place.
struct bench {
    ggml_backend_dev_t device;
    ggml_backend_t stream;
    struct sum_graph sum;
};

// False if the device does not claim an addition or makes no stream.
static bool bench_new(const struct check_run *run, ggml_backend_dev_t device, struct bench *out) {
    const float ones[N_NUMBERS] = {1};
    *out = (struct bench){.device = device};
    CHECK_THAT(run, sum_graph_new(&out->sum, N_NUMBERS), "no memory");
    if (!device->table->supports_op(device, out->sum.sum)) return false;
    out->stream = make_stream(device, NULL);
    if (!out->stream) return false;
    CHECK_THAT(run, sum_graph_place(&out->sum, device), "%s: no buffer", label(device));
    ggml_backend_tensor_set(out->sum.a, ones, 0, sizeof(ones));
    ggml_backend_tensor_set(out->sum.b, ones, 0, sizeof(ones));
    return true;
}

static void *function_of(ggml_backend_dev_t device, const char *name) {
    ggml_backend_reg_t reg = device->reg;
    return reg->table->get_proc_address ? reg->table->get_proc_address(reg, name) : NULL;
}

// --- while the plugin calls out ------------------------------------------------------------------

// What is asked from another thread while the plugin waits for a callback to return.
static struct {
    const struct check_run *run;
    const struct devices *devices;
    const struct ggml_tensor *node;
    const char *callback;
    int n_calls;
} outside;

// Asks every device everything that any thread may ask at any time.
static void *ask_all(void *unused) {
    for (int i = 0; i < outside.devices->n; ++i) {
        ggml_backend_dev_t device = outside.devices->items[i];
        struct ggml_backend_dev_props props;
        size_t free_bytes, total;
        memset(&props, 0, sizeof(props));
        device->table->get_memory(device, &free_bytes, &total);
        device->table->get_props(device, &props);
        device->table->supports_op(device, outside.node);
        device->table->supports_buft(device, device->table->get_buffer_type(device));
    }
    return unused;
}

// A lock that is held over the callback makes the other thread wait.
static void ask_from_elsewhere(void) {
    pthread_t thread;
    struct timespec until;
    if (outside.n_calls++ > 0) return;
    CHECK_THAT(outside.run, pthread_create(&thread, NULL, ask_all, NULL) == 0, "no thread");
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    CHECK_THAT(outside.run, pthread_timedjoin_np(thread, NULL, &until) == 0,
               "a call in another thread waits until %s returns", outside.callback);
}

static bool abort_asking(void *unused) {
    (void)unused;
    ask_from_elsewhere();
    return true;
}

// Has another thread ask the devices while the plugin is inside the application's callback: with
// a lock held there, both would wait for ever, until the deadline fails the check.
void stream_callback_unlocked(struct check_run *run) {
    struct devices devices;
    struct bench bench;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        ggml_backend_set_abort_callback_t set = NULL;
        *(void **)&set = function_of(devices.items[i], "ggml_backend_set_abort_callback");
        if (!set || !bench_new(run, devices.items[i], &bench)) continue;
        outside.run = run;
        outside.devices = &devices;
        outside.node = bench.sum.sum;
        outside.callback = "the abort callback";
        set(bench.stream, abort_asking, NULL);
        ggml_backend_graph_compute(bench.stream, bench.sum.graph);
    }
    if (outside.n_calls == 0) check_skip(run, "it calls no abort callback");
}

// The same while the plugin is inside the host's log.
void life_log_unlocked(struct check_run *run) {
    struct devices devices;
    struct sum_graph sum;
    devices_open(run, &devices);
    CHECK_THAT(run, sum_graph_new(&sum, N_NUMBERS), "no memory");
    outside.run = run;
    outside.devices = &devices;
    outside.node = sum.sum;
    outside.callback = "the host's log";
    host_counters.on_log = ask_from_elsewhere;
    exercise(&devices.subject);
    host_counters.on_log = NULL;
    if (outside.n_calls == 0) check_skip(run, "it logs nothing");
}

// --- objects of others ---------------------------------------------------------------------------

// A tensor of another plugin: its `extra` leads to a page that can't be accessed.
void buffer_foreign_extra(struct check_run *run) {
    struct bufts bufts;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *trap = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool any = false;
    CHECK_THAT(run, trap != MAP_FAILED, "no memory");
    bufts_open(run, &bufts);
    for (int i = 0; i < bufts.n; ++i) {
        struct sum_graph mine, foreign;
        CHECK_THAT(run, sum_graph_new(&mine, N_NUMBERS) && sum_graph_new(&foreign, N_NUMBERS),
                   "no memory");
        mine.buffer = ggml_backend_alloc_ctx_tensors_from_buft(mine.ctx, bufts.items[i]);
        foreign.buffer =
            ggml_backend_alloc_ctx_tensors_from_buft(foreign.ctx, ggml_backend_cpu_buffer_type());
        if (!mine.buffer || !foreign.buffer || !mine.buffer->table->cpy_tensor) continue;
        any = true;
        foreign.a->extra = trap;
        mine.buffer->table->cpy_tensor(mine.buffer, foreign.a, mine.a);
        ggml_backend_tensor_copy(foreign.a, mine.a);
        CHECK_THAT(run, foreign.a->extra == trap, "%s: what another plugin keeps was changed",
                   label(bufts.owners[i]));
    }
    if (!any) check_skip(run, "no buffer copies directly");
}

// A device waits for the event of another one.
static void wait_for_other(const struct check_run *run, struct bench *mine, struct bench *other) {
    ggml_backend_event_t event = make_event(other->device);
    float sum[N_NUMBERS];
    if (!event) return;
    ggml_backend_graph_compute_async(other->stream, other->sum.graph);
    ggml_backend_event_record(event, other->stream);
    ggml_backend_event_wait(mine->stream, event);
    ggml_backend_graph_compute_async(mine->stream, mine->sum.graph);
    ggml_backend_synchronize(mine->stream);
    ggml_backend_event_synchronize(event);
    ggml_backend_tensor_get(mine->sum.sum, sum, 0, sizeof(sum));
    CHECK_THAT(run, sum[0] == 2.0f, "%s: wrong after waiting for %s", label(mine->device),
               label(other->device));
    ggml_backend_tensor_get(other->sum.sum, sum, 0, sizeof(sum));
    CHECK_THAT(run, sum[0] == 2.0f, "%s: not complete when %s waited for it", label(other->device),
               label(mine->device));
    ggml_backend_event_free(event);
}

// A stream waits for an event of another device of the plugin, in both directions.
void stream_event_devices(struct check_run *run) {
    struct devices devices;
    struct bench benches[2];
    bool any = false;
    devices_open(run, &devices);
    for (int i = 0; i + 1 < devices.n; ++i) {
        bool good = true;
        for (int j = 0; j < 2 && good; ++j)
            good = devices.items[i + j]->table->event_new &&
                   bench_new(run, devices.items[i + j], &benches[j]);
        if (!good) continue;
        any = true;
        wait_for_other(run, &benches[0], &benches[1]);
        wait_for_other(run, &benches[1], &benches[0]);
    }
    if (!any) check_skip(run, "not two devices with events");
}

// --- lost devices --------------------------------------------------------------------------------

// Each call to a lost device fails, and says why, not only the first one.
static void fail_unless_lost(const struct check_run *run, const struct bench *bench) {
    for (int i = 0; i < 3; ++i) {
        atomic_store(&host_counters.last_status, GGML_HOST_OK);
        const enum ggml_status status = ggml_backend_graph_compute(bench->stream, bench->sum.graph);
        CHECK_THAT(run, status == GGML_STATUS_FAILED, "%s: a lost device computes, status %d",
                   label(bench->device), (int)status);
        CHECK_THAT(run, atomic_load(&host_counters.last_status) == GGML_HOST_DEVICE_LOST,
                   "%s: a lost device does not say that it is lost", label(bench->device));
    }
}

// Loses a device by a function that plugins may offer for this test: computing fails, new
// streams fail, but synchronize and free work, so that an application can clean up.
void stream_device_lost(struct check_run *run) {
    struct devices devices;
    struct bench bench;
    bool any = false;
    devices_open(run, &devices);
    for (int i = 0; i < devices.n; ++i) {
        bool (*lose)(ggml_backend_dev_t) = NULL;
        *(void **)&lose = function_of(devices.items[i], "ggml_backend_test_lose_device");
        if (!lose || !bench_new(run, devices.items[i], &bench) || !lose(bench.device)) continue;
        any = true;
        fail_unless_lost(run, &bench);
        ggml_backend_t another = NULL;
        const int32_t status = bench.device->table->init_backend(bench.device, NULL, &another);
        CHECK_THAT(run, status == GGML_HOST_DEVICE_LOST && !another,
                   "%s: a lost device makes a stream, status %d (%s)", label(bench.device),
                   (int)status, status_text(status));
        ggml_backend_synchronize(bench.stream);
        ggml_backend_free(bench.stream);
        sum_graph_free(&bench.sum);
    }
    if (!any) check_skip(run, "no device can be lost on purpose");
    subject_shutdown(&devices.subject);
}
