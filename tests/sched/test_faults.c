// SPDX-License-Identifier: MIT
// Scheduling and computing with every allocation, every call of the system and every start of a
// thread failing in turn: a status, nothing left behind, and the next try is right.
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ggml-cpu.h"
#include "rig.h"
#include "support/fault_sweep.h"

enum { N_DEVICES = 2, N_TOKENS = 3, N_THREADS = 7 };

static struct rig rig;
static float *expected;

static const struct transformer_shape small_shape = {
    .layers = 2,
    .width = 64,
    .heads = 4,
    .kv_heads = 2,
    .hidden = 96,
    .vocabulary = 2048, // enough work for several threads
    .capacity = 32,
    .type = GGML_TYPE_F16,
};

// The linker puts these in the place of the C library's.
int __wrap_pthread_create(pthread_t *out_thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument);
int __real_pthread_create(pthread_t *out_thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument);

int __wrap_pthread_create(pthread_t *out_thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *argument) {
    if (fault_next()) return EAGAIN;
    return __real_pthread_create(out_thread, attributes, start, argument);
}

static void ignore(enum ggml_log_level level, const char *text, void *user_data) {
    (void)level;
    (void)text;
    (void)user_data;
}

static int open_rig(void **state) {
    (void)state;
    ggml_log_set(ignore, NULL);
    rig_open(&rig, N_DEVICES, &small_shape, NULL, false);
    expected = rig_reference(&rig, N_TOKENS, 0, 1);
    return 0;
}

static int close_rig(void **state) {
    (void)state;
    free(expected);
    rig_close(&rig);
    return 0;
}

static void expect_message(void) {
    assert_int_not_equal(ggml_last_status(), GGML_HOST_OK);
    assert_string_not_equal(ggml_last_error(), "");
}

// --- schedule

static bool plan_and_allocate(ggml_backend_sched_t sched, struct ggml_cgraph *graph) {
    ggml_sched_report_t plan = ggml_sched_report_new(sched, graph);
    const bool told = plan && ggml_sched_report_text(plan) && ggml_sched_report_json(plan);
    ggml_sched_report_free(plan);
    return told && ggml_backend_sched_reserve(sched, graph) &&
           ggml_backend_sched_alloc_graph(sched, graph);
}

static bool schedule(long n) {
    struct transformer_graph graph;
    memset(&graph, 0, sizeof(graph));
    ggml_clear_error();
    fault_arm(n);
    ggml_backend_sched_t sched =
        ggml_backend_sched_new(rig.streams, NULL, N_DEVICES + 1, 0, false, true);
    const bool done = sched && transformer_graph_build(rig.model, N_TOKENS, 0, &graph) &&
                      plan_and_allocate(sched, graph.graph);
    ggml_backend_sched_free(sched);
    const bool failed = fault_disarm();
    if (!done) expect_message();
    if (!failed) assert_true(done);
    transformer_graph_free(&graph);
    return failed;
}

// --- compute

static bool is_right(const struct transformer_graph *graph) {
    const size_t size = ggml_nbytes(graph->logits);
    float *logits = malloc(size);
    assert_non_null(logits);
    ggml_backend_tensor_get(graph->logits, logits, 0, size);
    const bool same = memcmp(logits, expected, size) == 0;
    free(logits);
    return same;
}

static enum ggml_status compute_on(ggml_backend_t *streams, int n_streams,
                                   struct transformer *model, struct transformer_graph *graph) {
    enum ggml_status status = GGML_STATUS_ALLOC_FAILED;
    ggml_backend_sched_t sched = ggml_backend_sched_new(streams, NULL, n_streams, 0, false, true);
    if (!sched || !ggml_backend_sched_alloc_graph(sched, graph->graph)) goto fail;
    transformer_set_inputs(model, graph, 1);
    status = ggml_backend_sched_graph_compute(sched, graph->graph);
    if (status == GGML_STATUS_SUCCESS && ggml_last_status() == GGML_HOST_OK) {
        assert_true(is_right(graph));
    }
fail:
    ggml_backend_sched_free(sched);
    return status;
}

static bool compute(long n, bool alone) {
    struct transformer_graph graph;
    struct transformer *model = alone ? rig.reference : rig.model;
    assert_true(transformer_graph_build(model, N_TOKENS, 0, &graph));
    ggml_clear_error();
    fault_arm(n);
    ggml_backend_t cpu = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, NULL);
    ggml_backend_t streams[] = {rig.streams[0], rig.streams[1], cpu};
    const int n_streams = alone ? 1 : 3;
    struct ggml_threadpool_params params = ggml_threadpool_params_default(N_THREADS);
    struct ggml_threadpool *pool = ggml_threadpool_new(&params);
    enum ggml_status status = GGML_STATUS_ALLOC_FAILED;
    if (cpu && pool) {
        ggml_backend_cpu_set_n_threads(cpu, N_THREADS);
        ggml_backend_cpu_set_threadpool(cpu, pool); // a new one, whose threads are still to start
        status = compute_on(streams + 3 - n_streams, n_streams, model, &graph);
    }
    ggml_backend_free(cpu);
    ggml_threadpool_free(pool);
    const bool failed = fault_disarm();
    if (status != GGML_STATUS_SUCCESS) expect_message();
    if (!failed) assert_int_equal(status, GGML_STATUS_SUCCESS);
    transformer_graph_free(&graph);
    return failed;
}

static bool compute_on_all(long n) {
    return compute(n, false);
}

static bool compute_on_cpu(long n) {
    return compute(n, true);
}

// --- sweeps

static long sweep(bool (*round)(long n)) {
    long n = 0;
    for (; round(n); ++n)
        if (n % 8 == 0) rig_check(&rig, N_TOKENS, 0, 1);
    rig_check(&rig, N_TOKENS, 0, 1);
    return n;
}

static void sweep_twice(bool (*round)(long n), size_t min_memory) {
    const size_t n_memory = fault_count_memory();
    sweep(round);
    assert_true(fault_count_memory() - n_memory > min_memory);
    // What threads keep for themselves of memory that was freed comes and goes; a leak grows each
    // time.
    bool grows = true;
    for (int i = 0; i < 5 && grows; ++i) {
        const struct resources before = resources_in_use();
        sweep(round);
        const struct resources after = resources_in_use();
        assert_int_equal(after.n_files, before.n_files);
        grows = after.n_bytes > before.n_bytes + 4096;
    }
    assert_false(grows);
}

static void test_every_call_of_scheduling_may_fail(void **state) {
    (void)state;
    sweep_twice(schedule, 50);
}

static void test_every_call_of_computing_may_fail(void **state) {
    (void)state;
    const size_t n_system = fault_count_system();
    sweep_twice(compute_on_all, 30);
    sweep_twice(compute_on_cpu, 10);
    assert_true(fault_count_system() > n_system); // threads that did not start
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_call_of_scheduling_may_fail),
        cmocka_unit_test(test_every_call_of_computing_may_fail),
    };
    return cmocka_run_group_tests(tests, open_rig, close_rig);
}
