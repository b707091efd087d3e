// SPDX-License-Identifier: MIT
// Every kind of object that is tagged [stream], used by two threads at once; needs a library that
// was built with -Dthread_checks=true.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"
#include "base/thread_guard.h"
#include "ggml-alloc.h"
#include "ggml-backend.h"

static struct {
    ggml_backend_t stream;
    ggml_backend_buffer_t buffer;
    ggml_backend_sched_t sched;
    ggml_gallocr_t galloc;
    struct ggml_context *ctx;
    struct ggml_tensor *x, *y;
    struct ggml_cgraph *graph;
} rig;

static int open_rig(void **state) {
    (void)state;
    rig.stream = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, NULL);
    rig.ctx = ggml_init((struct ggml_init_params){1 << 20, NULL, true});
    if (!rig.stream || !rig.ctx) return 1;
    rig.x = ggml_new_tensor_1d(rig.ctx, GGML_TYPE_F32, 8);
    ggml_set_input(rig.x);
    rig.y = ggml_sqr(rig.ctx, rig.x);
    rig.graph = ggml_new_graph(rig.ctx);
    ggml_build_forward_expand(rig.graph, rig.y);
    rig.galloc = ggml_gallocr_new(ggml_backend_get_default_buffer_type(rig.stream));
    rig.buffer = ggml_backend_alloc_buffer(rig.stream, 64);
    rig.sched = ggml_backend_sched_new(&rig.stream, NULL, 1, 0, false, false);
    return !rig.galloc || !rig.buffer || !rig.sched;
}

static int close_rig(void **state) {
    (void)state;
    ggml_backend_sched_free(rig.sched);
    ggml_backend_buffer_free(rig.buffer);
    ggml_gallocr_free(rig.galloc);
    ggml_free(rig.ctx);
    ggml_backend_free(rig.stream);
    return 0;
}

// --- one call per kind of object, made by a second thread

static bool use_stream(void) {
    return ggml_backend_graph_compute(rig.stream, rig.graph) == GGML_STATUS_SUCCESS;
}

static bool use_stream_by_waiting(void) {
    ggml_backend_synchronize(rig.stream);
    return ggml_last_status() == GGML_HOST_OK;
}

static bool use_stream_by_freeing(void) {
    ggml_backend_free(rig.stream); // refused, so that it lives on
    return ggml_last_status() == GGML_HOST_OK;
}

static bool use_buffer(void) {
    ggml_backend_buffer_clear(rig.buffer, 1);
    return ggml_last_status() == GGML_HOST_OK;
}

static bool use_sched(void) {
    return ggml_backend_sched_reserve(rig.sched, rig.graph);
}

static bool use_sched_by_freeing(void) {
    ggml_backend_sched_free(rig.sched);
    return ggml_last_status() == GGML_HOST_OK;
}

static bool use_galloc(void) {
    return ggml_gallocr_reserve(rig.galloc, rig.graph);
}

static bool use_context(void) {
    return !ggml_tensor_is_error(ggml_new_tensor_1d(rig.ctx, GGML_TYPE_F32, 3));
}

static bool use_context_by_building(void) {
    return !ggml_tensor_is_error(ggml_add(rig.ctx, rig.x, rig.y));
}

static bool use_graph(void) {
    ggml_build_forward_expand(rig.graph, rig.y);
    return ggml_last_status() == GGML_HOST_OK;
}

struct use {
    const char *function;
    bool (*use)(void);
    bool done;
    enum ggml_host_status status;
    char message[256];
};

static void *run(void *argument) {
    struct use *use = argument;
    ggml_clear_error();
    use->done = use->use();
    use->status = ggml_last_status();
    strncpy(use->message, ggml_last_error(), sizeof(use->message) - 1);
    return NULL;
}

// While this thread is inside a call on the object.
static void expect_refusal(const void *object, const char *function, bool (*call)(void)) {
    struct use use = {.function = function, .use = call};
    struct thread_guard guard;
    pthread_t thread;
    assert_true(thread_guard_enter(&guard, object, "the_first_call"));
    assert_int_equal(pthread_create(&thread, NULL, run, &use), 0);
    pthread_join(thread, NULL);
    thread_guard_leave(&guard);
    assert_false(use.done);
    assert_int_equal(use.status, GGML_HOST_BUSY);
    if (!strstr(use.message, function) || !strstr(use.message, "the_first_call")) {
        fail_msg("%s: %s", function, use.message);
    }
}

static void test_the_second_thread_is_refused(void **state) {
    (void)state;
    expect_refusal(rig.stream, "ggml_backend_graph_compute", use_stream);
    expect_refusal(rig.stream, "ggml_backend_synchronize", use_stream_by_waiting);
    expect_refusal(rig.stream, "ggml_backend_free", use_stream_by_freeing);
    expect_refusal(rig.buffer, "ggml_backend_buffer_clear", use_buffer);
    expect_refusal(rig.sched, "ggml_backend_sched_reserve", use_sched);
    expect_refusal(rig.sched, "ggml_backend_sched_free", use_sched_by_freeing);
    expect_refusal(rig.galloc, "ggml_gallocr_reserve", use_galloc);
    expect_refusal(rig.ctx, "ggml_new_tensor", use_context);
    expect_refusal(rig.ctx, "ggml_add", use_context_by_building);
    expect_refusal(rig.graph, "ggml_build_forward_expand", use_graph);
}

static void test_the_objects_are_as_they_were(void **state) {
    (void)state;
    assert_true(ggml_gallocr_alloc_graph(rig.galloc, rig.graph));
    assert_int_equal(ggml_backend_graph_compute(rig.stream, rig.graph), GGML_STATUS_SUCCESS);
    assert_false(ggml_tensor_is_error(ggml_add(rig.ctx, rig.x, rig.y)));
    assert_null(ggml_graph_error(rig.graph));
}

// A thread that uses the object after another one has left it does nothing wrong.
static void test_taking_turns_is_fine(void **state) {
    (void)state;
    struct use use = {.use = use_context_by_building};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run, &use), 0);
    pthread_join(thread, NULL);
    assert_true(use.done);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_second_thread_is_refused),
        cmocka_unit_test(test_the_objects_are_as_they_were),
        cmocka_unit_test(test_taking_turns_is_fine),
    };
    return cmocka_run_group_tests(tests, open_rig, close_rig);
}
