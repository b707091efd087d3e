// SPDX-License-Identifier: MIT
// Devices that another process computes: the same results, and what is left when that process ends.
#define _GNU_SOURCE
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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ggml-alloc.h"
#include "ggml-impl.h"
#include "isolate/wait.h"
#include "isolated.h"
#include "support/transformer.h"
#include "virtual_host.h"

enum { PROMPT = 5, STEPS = 8, VOCABULARY = 40, SEED = 7 };

static const char *const slow = "devices=1,graph_delay_us=20000000";

static ggml_backend_dev_t cpu(void) {
    return ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
}

// --- a loop like that of a program for language models -------------------------------------------

struct session {
    ggml_backend_t stream;
    ggml_gallocr_t galloc;
    struct transformer *model;
};

static ggml_backend_buffer_type_t place(void *user, int layer) {
    (void)layer;
    return ggml_backend_dev_buffer_type(user);
}

static void session_begin(struct session *s, ggml_backend_dev_t device) {
    s->stream = ggml_backend_dev_init(device, NULL);
    if (!s->stream) fail_msg("%s", ggml_last_error());
    s->galloc = ggml_gallocr_new(ggml_backend_dev_buffer_type(device));
    s->model = transformer_new(&transformer_small, SEED, place, NULL, device);
    if (!s->model) fail_msg("%s", ggml_last_error());
}

static void session_end(struct session *s) {
    ggml_backend_free(s->stream);
    ggml_gallocr_free(s->galloc);
    transformer_free(s->model);
    *s = (struct session){0};
}

// Tokens from n_past on; the logits of the last one.
static enum ggml_status step(struct session *s, int n_tokens, int n_past, float *logits) {
    struct transformer_graph graph;
    enum ggml_status status = GGML_STATUS_ALLOC_FAILED;
    assert_true(transformer_graph_build(s->model, n_tokens, n_past, &graph));
    if (ggml_gallocr_alloc_graph(s->galloc, graph.graph)) {
        transformer_set_inputs(s->model, &graph, (uint64_t)(SEED + n_past));
        status = ggml_backend_graph_compute(s->stream, graph.graph);
        const size_t row = VOCABULARY * sizeof(float);
        if (status == GGML_STATUS_SUCCESS)
            ggml_backend_tensor_get(graph.logits, logits, (size_t)(n_tokens - 1) * row, row);
    }
    transformer_graph_free(&graph);
    return status;
}

static int step_tokens(int i) {
    return i == 0 ? PROMPT : 1;
}

static int step_past(int i) {
    return i == 0 ? 0 : PROMPT + i - 1;
}

static void generate(ggml_backend_dev_t device, float out[STEPS][VOCABULARY]) {
    struct session s;
    session_begin(&s, device);
    for (int i = 0; i < STEPS; ++i) {
        if (step(&s, step_tokens(i), step_past(i), out[i]) != GGML_STATUS_SUCCESS)
            fail_msg("step %d: %s", i, ggml_last_error());
    }
    session_end(&s);
}

static void expect_same(float a[STEPS][VOCABULARY], float b[STEPS][VOCABULARY]) {
    for (int i = 0; i < STEPS; ++i) {
        for (int k = 0; k < VOCABULARY; ++k) {
            if (memcmp(&a[i][k], &b[i][k], sizeof(float)) != 0)
                fail_msg("step %d, logit %d: %g, not %g", i, k, (double)a[i][k], (double)b[i][k]);
        }
    }
}

static float expected[STEPS][VOCABULARY], computed[STEPS][VOCABULARY];

// --- the same results ----------------------------------------------------------------------------

static void expect_transformer(ggml_backend_dev_t device, bool host_memory) {
    ggml_backend_dev_t isolated = isolate(device, 0);
    assert_string_equal(ggml_backend_dev_name(isolated), ggml_backend_dev_name(device));
    assert_int_equal(ggml_backend_buft_is_host(ggml_backend_dev_buffer_type(isolated)),
                     host_memory);
    assert_true(ggml_host_isolated_process(isolated) > 0);
    memset(computed, 0, sizeof(computed));
    generate(isolated, computed);
    expect_same(computed, expected);
    assert_null(ggml_host_isolated_lost(isolated));
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
}

static void test_a_transformer_on_the_cpu(void **state) {
    (void)state;
    expect_transformer(cpu(), true);
}

static void test_a_transformer_in_memory_of_the_devices_own(void **state) {
    struct virtual_host host;
    (void)state;
    virtual_open(&host, "devices=2");
    expect_transformer(virtual_device(&host, 1), false);
    assert_int_equal(virtual_close(&host), 0);
}

static void test_a_transformer_in_wrapped_memory(void **state) {
    struct virtual_host host;
    (void)state;
    virtual_open(&host, "devices=1,host_memory=1,host_import=1");
    expect_transformer(virtual_device(&host, 0), true);
    assert_int_equal(virtual_close(&host), 0);
}

// Of graphs that the device takes a millisecond for at least. Each other device has none.
static void test_the_time_of_graphs(void **state) {
    enum { DELAY_US = 1000 };
    float logits[VOCABULARY];
    int64_t total_ns = -1, device_ns = -1;
    struct virtual_host host;
    struct session s;
    char options[64];
    (void)state;
    ggml_host_isolated_time(cpu(), &total_ns, &device_ns);
    assert_int_equal(total_ns, 0);
    assert_int_equal(device_ns, 0);
    snprintf(options, sizeof(options), "devices=1,graph_delay_us=%d", DELAY_US);
    virtual_open(&host, options);
    ggml_backend_dev_t isolated = isolate(virtual_device(&host, 0), 0);
    session_begin(&s, isolated);
    ggml_host_isolated_time(isolated, &total_ns, &device_ns);
    assert_int_equal(total_ns, 0);
    const int64_t start = ggml_time_us();
    for (int i = 0; i < STEPS; ++i)
        assert_int_equal(step(&s, step_tokens(i), step_past(i), logits), GGML_STATUS_SUCCESS);
    const int64_t taken_us = ggml_time_us() - start;
    ggml_host_isolated_time(isolated, &total_ns, &device_ns);
    assert_true(device_ns >= STEPS * DELAY_US * 1000);
    assert_true(total_ns > device_ns);
    assert_true(total_ns / 1000 <= taken_us + STEPS);
    ggml_host_isolated_time(isolated, NULL, NULL);
    session_end(&s);
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
    assert_int_equal(virtual_close(&host), 0);
}

// --- crashes -------------------------------------------------------------------------------------

// The graphs so far are computed again on the CPU, as a program would evaluate its tokens again.
static void test_a_loop_survives_its_plugins_bad_access(void **state) {
    enum { CRASH = 3 };
    struct virtual_host host;
    struct session s;
    char options[64];
    (void)state;
    snprintf(options, sizeof(options), "devices=1,crash_after=%d", CRASH);
    virtual_open(&host, options);
    ggml_backend_dev_t isolated = isolate(virtual_device(&host, 0), 0);
    memset(computed, 0, sizeof(computed));
    int n_lost = 0;
    session_begin(&s, isolated);
    for (int i = 0; i < STEPS; ++i) {
        const enum ggml_status status = step(&s, step_tokens(i), step_past(i), computed[i]);
        if (status == GGML_STATUS_SUCCESS) continue;
        assert_int_equal(i, CRASH);
        assert_int_equal(status, GGML_STATUS_FAILED);
        assert_int_equal(ggml_last_status(), GGML_HOST_DEVICE_LOST);
        assert_non_null(strstr(ggml_last_error(), "signal 11"));
        ++n_lost;
        session_end(&s);
        session_begin(&s, cpu());
        i = -1;
    }
    session_end(&s);
    assert_int_equal(n_lost, 1);
    expect_same(computed, expected);
    assert_non_null(strstr(ggml_host_isolated_lost(isolated), "bad address"));
    assert_int_equal(ggml_host_isolated_process(isolated), 0);
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
    assert_int_equal(virtual_close(&host), 0);
}

// --- several devices -----------------------------------------------------------------------------

// Layers in turn on the isolated device and on the CPU.
static ggml_backend_buffer_type_t place_in_turn(void *user, int layer) {
    return layer % 2 == 0 ? ggml_backend_dev_buffer_type(user) : ggml_backend_cpu_buffer_type();
}

static void test_a_scheduler_with_the_cpu(void **state) {
    struct virtual_host host;
    (void)state;
    virtual_open(&host, "devices=1");
    ggml_backend_dev_t isolated = isolate(virtual_device(&host, 0), 0);
    ggml_backend_t streams[2] = {ggml_backend_dev_init(isolated, NULL),
                                 ggml_backend_dev_init(cpu(), NULL)};
    struct transformer *model =
        transformer_new(&transformer_small, SEED, place_in_turn, NULL, isolated);
    ggml_backend_sched_t sched = ggml_backend_sched_new(streams, NULL, 2, 1024, false, true);
    if (!model || !sched) fail_msg("%s", ggml_last_error());
    for (int i = 0; i < STEPS; ++i) {
        struct transformer_graph graph;
        assert_true(transformer_graph_build(model, step_tokens(i), step_past(i), &graph));
        ggml_backend_sched_reset(sched);
        assert_true(ggml_backend_sched_alloc_graph(sched, graph.graph));
        assert_true(ggml_backend_sched_get_n_splits(sched) > 2);
        transformer_set_inputs(model, &graph, (uint64_t)(SEED + step_past(i)));
        assert_int_equal(ggml_backend_sched_graph_compute(sched, graph.graph), GGML_STATUS_SUCCESS);
        const size_t row = VOCABULARY * sizeof(float);
        ggml_backend_tensor_get(graph.logits, computed[i], (size_t)(step_tokens(i) - 1) * row, row);
        transformer_graph_free(&graph);
    }
    expect_same(computed, expected);
    ggml_backend_sched_free(sched);
    transformer_free(model);
    for (int i = 0; i < 2; ++i)
        ggml_backend_free(streams[i]);
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
    assert_int_equal(virtual_close(&host), 0);
}

static void expect_everything_fails(struct small *small, ggml_backend_dev_t device) {
    float values[4] = {5, 5, 5, 5};
    ggml_clear_error();
    assert_int_equal(ggml_backend_graph_compute(small->stream, small->graph), GGML_STATUS_FAILED);
    expect_lost();
    ggml_backend_tensor_set(small->x, values, 0, sizeof(values));
    expect_lost();
    ggml_backend_tensor_get(small->x, values, 0, sizeof(values));
    expect_lost();
    ggml_backend_tensor_memset(small->x, 0, 0, sizeof(values));
    expect_lost();
    ggml_backend_buffer_clear(small->buffer, 0);
    expect_lost();
    assert_null(ggml_backend_alloc_buffer(small->stream, 64));
    expect_lost();
    assert_null(ggml_backend_dev_init(device, NULL));
    expect_lost();
}

static double seconds(void) {
    return (double)ggml_time_us() * 1e-6;
}

static void test_a_kill_in_the_middle_of_a_graph(void **state) {
    struct virtual_host host;
    struct small small;
    pthread_t thread;
    float y;
    (void)state;
    virtual_open(&host, slow);
    ggml_backend_dev_t isolated = isolate(virtual_device(&host, 0), 0);
    small_begin(&small, isolated);
    assert_int_equal(pthread_create(&thread, NULL, kill_later, isolated), 0);
    const double start = seconds();
    assert_int_equal(small_compute(&small, 3, &y), GGML_STATUS_FAILED);
    const double taken = seconds() - start;
    pthread_join(thread, NULL);
    assert_int_equal(ggml_last_status(), GGML_HOST_DEVICE_LOST);
    if (taken < 0.25 || taken > 1.3) fail_msg("it took %g s", taken);
    expect_everything_fails(&small, isolated);
    assert_non_null(strstr(ggml_host_isolated_lost(isolated), "signal 9"));
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_BUSY);
    small_end(&small);
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
    assert_int_equal(virtual_close(&host), 0);
}

static void test_a_kill_between_graphs(void **state) {
    struct small small;
    float y;
    (void)state;
    ggml_backend_dev_t isolated = isolate(cpu(), 0);
    small_begin(&small, isolated);
    assert_int_equal(small_compute(&small, 3, &y), GGML_STATUS_SUCCESS);
    assert_true(y == 9);
    assert_int_equal(kill((pid_t)ggml_host_isolated_process(isolated), SIGKILL), 0);
    assert_int_equal(ggml_backend_graph_compute(small.stream, small.graph), GGML_STATUS_FAILED);
    expect_everything_fails(&small, isolated);
    // What was computed can still be looked at.
    assert_true(((const float *)small.y->data)[0] == 9);
    small_end(&small);
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
}

struct kill {
    pid_t process;
    double killed; // when
};

static void *kill_soon(void *argument) {
    const struct timespec pause = {.tv_nsec = 20000000};
    struct kill *end = argument;
    nanosleep(&pause, NULL);
    end->killed = seconds();
    kill(end->process, SIGKILL);
    return NULL;
}

// Nobody has to look at the process for that, as is done every 100 ms. It is killed 20 ms after
// others began to wait for it, stopped, so that it does not answer before. A busy machine may take
// long for all this, but not each time.
static void test_an_end_is_noticed_at_once(void **state) {
    enum { TRIES = 12 };
    double least = 1;
    (void)state;
    for (int i = 0; i < TRIES && least > 0.06; ++i) {
        struct small small;
        pthread_t thread;
        struct kill end = {0};
        float y;
        ggml_backend_dev_t isolated = isolate(cpu(), 0);
        small_begin(&small, isolated);
        assert_int_equal(small_compute(&small, 3, &y), GGML_STATUS_SUCCESS);
        end.process = (pid_t)ggml_host_isolated_process(isolated);
        assert_int_equal(kill(end.process, SIGSTOP), 0);
        assert_int_equal(pthread_create(&thread, NULL, kill_soon, &end), 0);
        assert_int_equal(small_compute(&small, 3, &y), GGML_STATUS_FAILED);
        const double noticed = seconds();
        pthread_join(thread, NULL);
        least = MIN(least, noticed - end.killed);
        small_end(&small);
        assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
    }
    if (least > 0.06) fail_msg("it took %g s", least);
}

static void test_a_deadline(void **state) {
    struct virtual_host host;
    struct small small;
    float y;
    (void)state;
    virtual_open(&host, slow);
    ggml_backend_dev_t isolated = isolate(virtual_device(&host, 0), 1500);
    small_begin(&small, isolated);
    const double start = seconds();
    assert_int_equal(small_compute(&small, 3, &y), GGML_STATUS_FAILED);
    const double taken = seconds() - start;
    if (taken < 1.4 || taken > 3) fail_msg("it took %g s", taken);
    expect_everything_fails(&small, isolated);
    assert_non_null(strstr(ggml_host_isolated_lost(isolated), "in time"));
    small_end(&small);
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
    assert_int_equal(virtual_close(&host), 0);
}

// In a process of its own, which is stopped meanwhile: whether the graph was computed.
_Noreturn static void run_stopped_application(int out) {
    struct virtual_host host;
    struct small small;
    float y;
    virtual_open(&host, "devices=1,graph_delay_us=500000");
    ggml_backend_dev_t isolated = isolate(virtual_device(&host, 0), 1000);
    small_begin(&small, isolated);
    if (write(out, "", 1) != 1) _exit(1);
    const enum ggml_status status = small_compute(&small, 3, &y);
    _exit(status == GGML_STATUS_SUCCESS && y == 9 ? 0 : 2);
}

// The time in which the application itself did not run is none in which the process was late.
static void test_a_deadline_passes_while_the_application_is_stopped(void **state) {
    const struct timespec begun = {.tv_nsec = 250000000},
                          pause = {.tv_sec = 1, .tv_nsec = 500000000};
    int ends[2], result;
    char ready;
    (void)state;
    assert_int_equal(pipe(ends), 0);
    const pid_t application = fork();
    if (application == 0) run_stopped_application(ends[1]);
    close(ends[1]);
    assert_int_equal(read(ends[0], &ready, 1), 1);
    close(ends[0]);
    nanosleep(&begun, NULL);
    kill(application, SIGSTOP);
    nanosleep(&pause, NULL);
    kill(application, SIGCONT);
    assert_int_equal(waitpid(application, &result, 0), application);
    assert_int_equal(result, 0);
}

// --- waiting -------------------------------------------------------------------------------------

enum { N_WAITS = 1000 };

// How many of N_WAITS messages are looked for, where they come so late in either way after `taken`.
static int count_looks(struct wait_habit *habit, int64_t taken_ns, int64_t asleep_ns,
                       int64_t looking_ns) {
    int n_looks = 0;
    for (int i = 0; i < N_WAITS; ++i) {
        const bool looks = wait_looks(habit);
        n_looks += looks;
        wait_learn(habit, taken_ns + (looks ? looking_ns : asleep_ns), taken_ns);
    }
    return n_looks;
}

static void test_messages_are_waited_for_in_the_shorter_way(void **state) {
    enum { SHORT_NS = 10000, LONG_NS = 30000, FEW = N_WAITS / 10 };
    struct wait_habit habit = {.n_processors = 2};
    (void)state;
    assert_in_range(count_looks(&habit, 0, LONG_NS, SHORT_NS), N_WAITS - FEW, N_WAITS - 1);
    assert_in_range(count_looks(&habit, 0, SHORT_NS, LONG_NS), 1, FEW); // a busy machine
    assert_in_range(count_looks(&habit, 0, LONG_NS, SHORT_NS), N_WAITS - FEW, N_WAITS - 1);
    // However long the way takes, it is what a message is due after that decides.
    assert_in_range(count_looks(&habit, WAIT_SOON_NS, 3 * WAIT_SOON_NS / 2, SHORT_NS),
                    N_WAITS - FEW, N_WAITS - 1);
    assert_int_equal(count_looks(&habit, WAIT_SOON_NS + 1, LONG_NS, SHORT_NS), 1);
    habit = (struct wait_habit){.n_processors = 1};
    assert_int_equal(count_looks(&habit, 0, LONG_NS, SHORT_NS), 0);
}

// --- lifetimes -----------------------------------------------------------------------------------

static bool ends_soon(pid_t pid) {
    const struct timespec moment = {.tv_nsec = 10000000};
    char path[64], text[256];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    for (int i = 0; i < 200; ++i, nanosleep(&moment, NULL)) {
        FILE *file = fopen(path, "r");
        if (!file) return true;
        const char *line = fgets(text, sizeof(text), file);
        fclose(file);
        const char *end = line ? strrchr(line, ')') : NULL;
        if (!end || end[2] == 'Z' || end[2] == 'X') return true; // nobody may collect it here
    }
    return false;
}

// In a process of its own: tells the helper's number and computes until it is killed.
_Noreturn static void run_application(int out) {
    struct virtual_host host;
    struct small small;
    float y;
    virtual_open(&host, slow);
    ggml_backend_dev_t isolated = isolate(virtual_device(&host, 0), 0);
    small_begin(&small, isolated);
    const int64_t pid = ggml_host_isolated_process(isolated);
    if (write(out, &pid, sizeof(pid)) != (ssize_t)sizeof(pid)) _exit(1);
    small_compute(&small, 1, &y);
    _exit(0);
}

static void test_the_process_ends_with_the_application(void **state) {
    const struct timespec pause = {.tv_nsec = 200000000};
    int ends[2];
    int64_t helper = 0;
    (void)state;
    assert_int_equal(pipe(ends), 0);
    const pid_t application = fork();
    if (application == 0) run_application(ends[1]);
    close(ends[1]);
    assert_int_equal(read(ends[0], &helper, sizeof(helper)), sizeof(helper));
    close(ends[0]);
    nanosleep(&pause, NULL);
    assert_int_equal(kill((pid_t)helper, 0), 0);
    kill(application, SIGKILL);
    waitpid(application, NULL, 0);
    assert_true(ends_soon((pid_t)helper));
}

struct worker {
    pthread_t thread;
    struct small small;
    int first, n_wrong;
};

static void *compute_often(void *argument) {
    enum { GRAPHS = 250 };
    struct worker *worker = argument;
    float y;
    for (int i = 0; i < GRAPHS; ++i) {
        const float x = (float)(worker->first + i);
        if (small_compute(&worker->small, x, &y) != GGML_STATUS_SUCCESS || y != x * x)
            ++worker->n_wrong;
    }
    return NULL;
}

// A stream each, of one device.
static void test_several_threads(void **state) {
    enum { THREADS = 4 };
    struct worker workers[THREADS];
    (void)state;
    ggml_backend_dev_t isolated = isolate(cpu(), 0);
    for (int i = 0; i < THREADS; ++i) {
        workers[i] = (struct worker){.first = 1000 * i};
        small_begin(&workers[i].small, isolated);
    }
    for (int i = 0; i < THREADS; ++i)
        assert_int_equal(pthread_create(&workers[i].thread, NULL, compute_often, &workers[i]), 0);
    for (int i = 0; i < THREADS; ++i) {
        pthread_join(workers[i].thread, NULL);
        assert_int_equal(workers[i].n_wrong, 0);
        small_end(&workers[i].small);
    }
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
}

static void *isolate_cpu(void *argument) {
    (void)argument;
    return isolate(cpu(), 0);
}

static void test_the_process_outlives_the_thread_that_made_it(void **state) {
    const struct timespec pause = {.tv_nsec = 100000000};
    struct small small;
    pthread_t thread;
    void *isolated;
    float y;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, isolate_cpu, NULL), 0);
    pthread_join(thread, &isolated);
    nanosleep(&pause, NULL);
    small_begin(&small, isolated);
    assert_int_equal(small_compute(&small, 4, &y), GGML_STATUS_SUCCESS);
    assert_true(y == 16);
    small_end(&small);
    const pid_t pid = (pid_t)ggml_host_isolated_process(isolated);
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
    assert_true(ends_soon(pid));
}

static void test_a_child_of_a_fork_gets_a_status(void **state) {
    struct small small;
    int result;
    float y;
    (void)state;
    ggml_backend_dev_t isolated = isolate(cpu(), 0);
    small_begin(&small, isolated);
    const pid_t child = fork();
    if (child == 0) {
        const bool failed = small_compute(&small, 2, &y) == GGML_STATUS_FAILED;
        const bool lost = ggml_last_status() == GGML_HOST_DEVICE_LOST;
        small_end(&small);
        ggml_host_isolated_free(isolated);
        _exit(failed && lost ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    assert_int_equal(small_compute(&small, 5, &y), GGML_STATUS_SUCCESS);
    assert_true(y == 25);
    small_end(&small);
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
}

// The child writes what the parent may not get, and frees what it can.
_Noreturn static void run_child(struct small *small, ggml_backend_dev_t isolated, long wait_ns) {
    const struct timespec pause = {.tv_nsec = wait_ns};
    const float values[4] = {7, 7, 7, 7};
    alarm(10); // it may not hang
    nanosleep(&pause, NULL);
    ggml_clear_error();
    ggml_backend_tensor_set(small->x, values, 0, sizeof(values));
    const bool set_fails = ggml_last_status() == GGML_HOST_DEVICE_LOST;
    ggml_clear_error();
    ggml_backend_tensor_memset(small->x, 7, 0, sizeof(values));
    const bool memset_fails = ggml_last_status() == GGML_HOST_DEVICE_LOST;
    ggml_clear_error();
    ggml_backend_tensor_copy(small->y, small->x);
    const bool copy_fails = ggml_last_status() == GGML_HOST_DEVICE_LOST;
    small_end(small);
    const bool freed = ggml_host_isolated_free(isolated) == GGML_HOST_OK;
    _exit(set_fails && memset_fails && copy_fails && freed ? 0 : 1);
}

static void *set_slowly(void *argument) {
    const struct small *small = argument;
    const float values[4] = {1, 2, 3, 4};
    ggml_backend_tensor_set(small->x, values, 0, sizeof(values));
    return NULL;
}

// Transfers to memory of the device's own go through memory that a child has mapped too. One is
// under way while one child is made, and while the other, made before, does what it may not.
static void test_a_child_of_a_fork_disturbs_no_transfer(void **state) {
    enum { DELAY_NS = 400000000 };
    const struct timespec half = {.tv_nsec = DELAY_NS / 2};
    struct virtual_host host;
    struct small small;
    pthread_t thread;
    pid_t children[2];
    int result;
    (void)state;
    virtual_open(&host, "devices=1,copy_delay_us=400000");
    ggml_backend_dev_t isolated = isolate(virtual_device(&host, 0), 0);
    small_begin(&small, isolated);
    set_slowly(&small); // so that memory is shared before there are children
    children[0] = fork();
    if (children[0] == 0) run_child(&small, isolated, DELAY_NS / 2);
    assert_int_equal(pthread_create(&thread, NULL, set_slowly, &small), 0);
    nanosleep(&half, NULL);
    children[1] = fork();
    if (children[1] == 0) run_child(&small, isolated, 0);
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(waitpid(children[i], &result, 0), children[i]);
        assert_int_equal(result, 0);
    }
    pthread_join(thread, NULL);
    float values[4] = {0};
    ggml_backend_tensor_get(small.x, values, 0, sizeof(values));
    for (int i = 0; i < 4; ++i)
        assert_true(values[i] == (float)(i + 1));
    small_end(&small);
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
    assert_int_equal(virtual_close(&host), 0);
}

// --- what changes between graphs -----------------------------------------------------------------

static void test_changed_graphs_are_noticed(void **state) {
    struct small small;
    float y;
    (void)state;
    ggml_backend_dev_t isolated = isolate(cpu(), 0);
    small_begin(&small, isolated);
    assert_int_equal(small_compute(&small, 3, &y), GGML_STATUS_SUCCESS);
    assert_true(y == 9);
    struct ggml_cgraph *empty = ggml_new_graph_custom(small.ctx, 1, false);
    assert_int_equal(ggml_backend_graph_compute(small.stream, empty), GGML_STATUS_SUCCESS);
    ggml_set_op_params_i32(small.y, 0, GGML_UNARY_OP_NEG); // parameters alone
    small.y->op = GGML_OP_UNARY;
    assert_int_equal(small_compute(&small, 3, &y), GGML_STATUS_SUCCESS);
    assert_true(y == -3);
    ggml_set_op_params_i32(small.y, 0, GGML_UNARY_OP_RELU);
    assert_int_equal(small_compute(&small, 3, &y), GGML_STATUS_SUCCESS);
    assert_true(y == 3);
    // A graph with a number is known by it; whoever changes it takes the number away, or gives
    // another.
    small.graph->uid = ggml_graph_next_uid();
    for (int i = 0; i < 4; ++i) {
        static const enum ggml_unary_op ops[4] = {GGML_UNARY_OP_NEG, GGML_UNARY_OP_NEG,
                                                  GGML_UNARY_OP_RELU, GGML_UNARY_OP_NEG};
        ggml_set_op_params_i32(small.y, 0, ops[i]);
        if (i > 1) small.graph->uid = i == 2 ? 0 : ggml_graph_next_uid();
        for (int again = 0; again < 2; ++again) {
            assert_int_equal(small_compute(&small, 3, &y), GGML_STATUS_SUCCESS);
            assert_true(y == (ops[i] == GGML_UNARY_OP_NEG ? -3 : 3));
        }
    }
    ggml_set_op_params_i32(small.y, 0, GGML_UNARY_OP_RELU);
    small.graph->uid = 0;
    // The same tensors in another buffer, perhaps at the same addresses.
    for (int i = 0; i < 3; ++i) {
        ggml_backend_buffer_free(small.buffer);
        small.x->buffer = small.y->buffer = NULL;
        small.x->data = small.y->data = NULL;
        small.buffer = ggml_backend_alloc_ctx_tensors(small.ctx, small.stream);
        assert_non_null(small.buffer);
        assert_int_equal(small_compute(&small, 7, &y), GGML_STATUS_SUCCESS);
        assert_true(y == 7);
    }
    small_end(&small);
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
}

static void test_more_graphs_than_are_remembered(void **state) {
    enum { GRAPHS = 40 };
    struct small small[GRAPHS];
    float y;
    (void)state;
    ggml_backend_dev_t isolated = isolate(cpu(), 0);
    for (int i = 0; i < GRAPHS; ++i) {
        small_begin(&small[i], isolated);
        ggml_backend_free(small[i].stream);
        small[i].stream = i > 0 ? small[0].stream : ggml_backend_dev_init(isolated, NULL);
    }
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < GRAPHS; ++i) {
            assert_int_equal(small_compute(&small[i], (float)i, &y), GGML_STATUS_SUCCESS);
            assert_true(y == (float)(i * i));
        }
    }
    for (int i = GRAPHS - 1; i >= 0; --i) {
        if (i > 0) small[i].stream = NULL;
        small_end(&small[i]);
    }
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
}

// --- what is passed on ---------------------------------------------------------------------------

static void test_the_figures_are_those_of_the_device(void **state) {
    struct virtual_host host;
    struct ggml_device_figures figures = {.size = sizeof(figures)};
    struct ggml_device_figures expected_figures = figures;
    (void)state;
    virtual_open(&host, "devices=1,node_ns_per_mflop=500,copy_ns_per_kib=100");
    ggml_backend_dev_t device = virtual_device(&host, 0), isolated = isolate(device, 0);
    assert_int_equal(ggml_backend_dev_figures(device, &expected_figures), GGML_HOST_OK);
    assert_int_equal(expected_figures.flags, GGML_DEVICE_FIGURES_DIRECT_COPY);
    assert_true(expected_figures.flops > 0);
    assert_int_equal(ggml_backend_dev_figures(isolated, &figures), GGML_HOST_OK);
    assert_int_equal(figures.flags, 0); // copies go through the host
    expected_figures.flags = 0;
    assert_memory_equal(&figures, &expected_figures, sizeof(figures));
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
    assert_int_equal(virtual_close(&host), 0);
}

// --- what is refused -----------------------------------------------------------------------------

static void custom(struct ggml_tensor *dst, const struct ggml_tensor *a, int ith, int nth,
                   void *user) {
    (void)dst;
    (void)a;
    (void)ith;
    (void)nth;
    (void)user;
}

static void test_functions_of_the_application_are_refused(void **state) {
    struct small small;
    (void)state;
    ggml_backend_dev_t isolated = isolate(cpu(), 0);
    small_begin(&small, isolated);
    struct ggml_tensor *node = ggml_map_custom1(small.ctx, small.x, custom, 1, NULL);
    assert_true(ggml_backend_dev_supports_op(cpu(), node));
    assert_false(ggml_backend_dev_supports_op(isolated, node));
    assert_true(ggml_backend_dev_supports_op(isolated, small.y));
    assert_false(ggml_backend_dev_supports_buft(isolated, ggml_backend_cpu_buffer_type()));
    small_end(&small);
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
}

// --- what is not computed ------------------------------------------------------------------------

static struct ggml_tensor *add_node(struct small *small, struct ggml_tensor *node) {
    ggml_graph_add_node(small->graph, node);
    return node;
}

static enum ggml_status place_at(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor) {
    return ggml_backend_tensor_alloc(buffer, tensor, ggml_backend_buffer_get_base(buffer));
}

// A graph is refused for a source out of reach as soon as it is read.
static void expect_out_of_reach(struct small *small, const struct ggml_tensor *away) {
    ggml_backend_buffer_t buffer = small->x->buffer;
    void *data = small->x->data;
    small->x->buffer = away->buffer;
    small->x->data = away->data;
    assert_int_equal(ggml_backend_graph_compute(small->stream, small->graph), GGML_STATUS_FAILED);
    assert_non_null(strstr(ggml_last_error(), "does not lie in memory of the isolated device"));
    small->x->buffer = buffer;
    small->x->data = data;
}

// Computes with a node that lies nowhere, with the node chosen, and with it no longer chosen.
static void choose_and_leave(struct small *small, struct ggml_tensor *node,
                             ggml_backend_buffer_t buffer) {
    float y, first = 0;
    struct ggml_tensor *away = node->src[0];
    assert_null(node->data);
    if (small_compute(small, 3, &y) != GGML_STATUS_SUCCESS) fail_msg("%s", ggml_last_error());
    assert_true(y == 9);
    node->src[0] = small->y;
    assert_int_equal(place_at(buffer, node), GGML_STATUS_SUCCESS);
    node->flags |= GGML_TENSOR_FLAG_COMPUTE;
    if (small_compute(small, 4, &y) != GGML_STATUS_SUCCESS) fail_msg("%s", ggml_last_error());
    ggml_backend_tensor_get(node, &first, 0, sizeof(first));
    assert_true(y == 16 && first == -16);
    expect_out_of_reach(small, away);
    assert_int_equal(small_compute(small, 2, &y), GGML_STATUS_SUCCESS);
    node->flags &= ~GGML_TENSOR_FLAG_COMPUTE;
    node->src[0] = away;
    assert_int_equal(small_compute(small, 5, &y), GGML_STATUS_SUCCESS);
    ggml_backend_tensor_get(node, &first, 0, sizeof(first));
    assert_true(y == 25 && first == -4);
    expect_out_of_reach(small, away);
    node->buffer = NULL;
    node->data = NULL;
}

// Alternatives that were not chosen lie nowhere, or read from elsewhere, or call the application; a
// view of memory of the host computes nothing.
static void use_nodes_that_are_not_computed(ggml_backend_dev_t device) {
    struct small small;
    ggml_backend_dev_t isolated = isolate(device, 0);
    ggml_backend_buffer_t host = ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), 64);
    small_begin(&small, isolated);
    ggml_backend_buffer_t own =
        ggml_backend_buft_alloc_buffer(ggml_backend_dev_buffer_type(isolated), 64);
    assert_true(host && own);
    struct ggml_tensor *away = ggml_new_tensor_1d(small.ctx, GGML_TYPE_F32, 4);
    assert_int_equal(place_at(host, away), GGML_STATUS_SUCCESS);
    struct ggml_tensor *view = add_node(&small, ggml_view_1d(small.ctx, away, 2, 8));
    view->flags |= GGML_TENSOR_FLAG_COMPUTE;
    assert_int_equal(ggml_backend_view_init(view), GGML_STATUS_SUCCESS);
    struct ggml_tensor *nowhere = add_node(&small, ggml_neg(small.ctx, away));
    add_node(&small, ggml_neg_inplace(small.ctx, nowhere));
    add_node(&small, ggml_map_custom1(small.ctx, small.x, custom, 1, NULL));
    for (int i = 0; i < 2; ++i)
        choose_and_leave(&small, nowhere, own);
    ggml_backend_buffer_free(own);
    ggml_backend_buffer_free(host);
    small_end(&small);
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
}

static void test_nodes_that_are_not_computed(void **state) {
    struct virtual_host host;
    (void)state;
    use_nodes_that_are_not_computed(cpu());
    virtual_open(&host, "devices=1");
    use_nodes_that_are_not_computed(virtual_device(&host, 0));
    assert_int_equal(virtual_close(&host), 0);
}

// What a later contract puts there would be lost on the way: also in a graph that is known.
static void test_extended_tensors_are_refused(void **state) {
    struct small small;
    float y;
    (void)state;
    ggml_backend_dev_t isolated = isolate(cpu(), 0);
    small_begin(&small, isolated);
    assert_int_equal(small_compute(&small, 3, &y), GGML_STATUS_SUCCESS);
    struct ggml_tensor *const tensors[] = {small.x, small.y};
    for (int i = 0; i < 2; ++i) {
        tensors[i]->padding[0] = 1;
        assert_false(ggml_backend_dev_supports_op(isolated, small.y));
        assert_int_equal(small_compute(&small, 3, &y), GGML_STATUS_FAILED);
        assert_int_equal(ggml_last_status(), GGML_HOST_UNSUPPORTED);
        tensors[i]->padding[0] = 0;
        assert_true(ggml_backend_dev_supports_op(isolated, small.y));
        assert_int_equal(small_compute(&small, 5, &y), GGML_STATUS_SUCCESS);
        assert_true(y == 25);
    }
    small_end(&small);
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
}

static void test_bad_arguments(void **state) {
    struct ggml_isolate_options options = {.size = 1};
    ggml_backend_dev_t isolated = (ggml_backend_dev_t)&options;
    (void)state;
    assert_int_equal(ggml_host_isolate(NULL, NULL, &isolated), GGML_HOST_INVALID_ARGUMENT);
    assert_null(isolated);
    assert_int_equal(ggml_host_isolate(cpu(), NULL, NULL), GGML_HOST_INVALID_ARGUMENT);
    assert_int_equal(ggml_host_isolate(cpu(), &options, &isolated), GGML_HOST_INVALID_ARGUMENT);
    options = (struct ggml_isolate_options){.size = sizeof(options), .helper = "relative"};
    assert_int_equal(ggml_host_isolate(cpu(), &options, &isolated), GGML_HOST_INVALID_ARGUMENT);
    options.helper = "/nonexistent/helper";
    assert_int_equal(ggml_host_isolate(cpu(), &options, &isolated), GGML_HOST_UNSUPPORTED);
    options.helper = "/bin/true";
    assert_int_equal(ggml_host_isolate(cpu(), &options, &isolated), GGML_HOST_DEVICE_LOST);
    assert_null(isolated);
    assert_int_equal(ggml_host_isolated_free(NULL), GGML_HOST_OK);
    assert_int_equal(ggml_host_isolated_free(cpu()), GGML_HOST_INVALID_ARGUMENT);
    assert_null(ggml_host_isolated_lost(cpu()));
    assert_int_equal(ggml_host_isolated_process(NULL), 0);
    isolated = isolate(cpu(), 0);
    ggml_backend_dev_t twice;
    assert_int_equal(ggml_host_isolate(isolated, NULL, &twice), GGML_HOST_UNSUPPORTED);
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
}

static void test_a_plugin_stays_while_a_device_of_it_is_isolated(void **state) {
    struct virtual_host host;
    (void)state;
    virtual_open(&host, "devices=1");
    ggml_backend_dev_t isolated = isolate(virtual_device(&host, 0), 0);
    assert_int_equal(ggml_plugin_unload(host.reg), GGML_HOST_BUSY);
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
    assert_int_equal(virtual_close(&host), 0);
}

static int compute_expected(void **state) {
    (void)state;
    generate(cpu(), expected);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_transformer_on_the_cpu),
        cmocka_unit_test(test_a_transformer_in_memory_of_the_devices_own),
        cmocka_unit_test(test_a_transformer_in_wrapped_memory),
        cmocka_unit_test(test_the_time_of_graphs),
        cmocka_unit_test(test_a_loop_survives_its_plugins_bad_access),
        cmocka_unit_test(test_a_scheduler_with_the_cpu),
        cmocka_unit_test(test_a_kill_in_the_middle_of_a_graph),
        cmocka_unit_test(test_a_kill_between_graphs),
        cmocka_unit_test(test_an_end_is_noticed_at_once),
        cmocka_unit_test(test_a_deadline),
        cmocka_unit_test(test_a_deadline_passes_while_the_application_is_stopped),
        cmocka_unit_test(test_messages_are_waited_for_in_the_shorter_way),
        cmocka_unit_test(test_the_process_ends_with_the_application),
        cmocka_unit_test(test_several_threads),
        cmocka_unit_test(test_the_process_outlives_the_thread_that_made_it),
        cmocka_unit_test(test_a_child_of_a_fork_gets_a_status),
        cmocka_unit_test(test_a_child_of_a_fork_disturbs_no_transfer),
        cmocka_unit_test(test_changed_graphs_are_noticed),
        cmocka_unit_test(test_more_graphs_than_are_remembered),
        cmocka_unit_test(test_functions_of_the_application_are_refused),
        cmocka_unit_test(test_nodes_that_are_not_computed),
        cmocka_unit_test(test_the_figures_are_those_of_the_device),
        cmocka_unit_test(test_extended_tensors_are_refused),
        cmocka_unit_test(test_bad_arguments),
        cmocka_unit_test(test_a_plugin_stays_while_a_device_of_it_is_isolated),
    };
    return cmocka_run_group_tests(tests, compute_expected, NULL);
}
