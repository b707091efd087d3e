// SPDX-License-Identifier: MIT
// Devices that another process computes, with each call failing in turn on either side, the process
// killed at each, and one that was taken over: a status each time, and nothing is left.
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sanitizer.h"
#include "base/status.h"
#include "ggml-alloc.h"
#include "ggml-host.h"
#include "ggml-impl.h"
#include "support/fault_sweep.h"
#include "support/temp_dir.h"
#include "virtual_host.h"

enum { DEADLINE_MS = 4000, N_FLOATS = 64 };

static const char *helper; // NULL: the one of the library
static char reached[600];  // a file that the helper makes
static uint32_t deadline_ms;

static ggml_backend_dev_t cpu(void) {
    return ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
}

// --- a round -------------------------------------------------------------------------------------

static int n_failed; // calls of this round

static bool is_honest(enum ggml_host_status status) {
    switch (status) {
    case GGML_HOST_OUT_OF_MEMORY:
    case GGML_HOST_IO_ERROR:
    case GGML_HOST_BUSY:
    case GGML_HOST_UNSUPPORTED:
    case GGML_HOST_DEVICE_LOST:
    case GGML_HOST_LINK_FAILED:
    case GGML_HOST_DAMAGED_FILE:
    case GGML_HOST_UNTRUSTED:
    case GGML_HOST_NOT_FOUND:
    case GGML_HOST_FAILED: return true; // the device's word
    default: return false;
    }
}

static bool any_status; // the other process lies

// A call that failed says why.
static bool note(bool good) {
    if (!good) {
        ++n_failed;
        if (ggml_last_status() == GGML_HOST_OK || ggml_last_error()[0] == '\0')
            fail_msg("call %d failed without a word, with helper %s", n_failed,
                     getenv("GGML_TEST_ISOLATE"));
        if (!any_status && !is_honest(ggml_last_status()))
            fail_msg("status %d: %s", (int)ggml_last_status(), ggml_last_error());
    }
    ggml_clear_error();
    return good;
}

static bool note_void(unsigned long told) {
    return note(ggml_fail_count() == told);
}

static bool set(struct ggml_tensor *tensor, const float *values) {
    const unsigned long told = ggml_fail_count();
    ggml_backend_tensor_set(tensor, values, 0, ggml_nbytes(tensor));
    return note_void(told);
}

static bool get(struct ggml_tensor *tensor, float *values) {
    const unsigned long told = ggml_fail_count();
    ggml_backend_tensor_get(tensor, values, 0, ggml_nbytes(tensor));
    return note_void(told);
}

static void use_graph(ggml_backend_t stream, struct ggml_cgraph *graph, struct ggml_tensor *x,
                      struct ggml_tensor *y) {
    float values[N_FLOATS], results[N_FLOATS] = {0};
    for (int i = 0; i < N_FLOATS; ++i)
        values[i] = (float)i;
    for (int round = 0; round < 3; ++round) {
        ggml_set_op_params_i32(y, 0, round == 0 ? GGML_UNARY_OP_NEG : GGML_UNARY_OP_RELU);
        const bool was_set = set(x, values);
        const bool computed =
            note(ggml_backend_graph_compute(stream, graph) == GGML_STATUS_SUCCESS);
        if (!get(y, results) || !was_set || !computed || any_status) continue;
        for (int i = 0; i < N_FLOATS; ++i)
            assert_true(results[i] == (round == 0 ? -values[i] : values[i]));
    }
}

static void use_memory(struct ggml_tensor *x, struct ggml_tensor *y, ggml_backend_buffer_t buffer) {
    unsigned long told = ggml_fail_count();
    ggml_backend_buffer_set_usage(buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    note_void(told);
    told = ggml_fail_count();
    ggml_backend_tensor_memset(x, 1, 0, 16);
    note_void(told);
    told = ggml_fail_count();
    ggml_backend_tensor_copy(x, y);
    note_void(told);
    told = ggml_fail_count();
    ggml_backend_buffer_clear(buffer, 0);
    note_void(told);
}

static void use_context(ggml_backend_dev_t device, ggml_backend_t stream) {
    const struct ggml_init_params params = {
        .mem_size = 8 * ggml_tensor_overhead() + 2 * ggml_graph_overhead(), .no_alloc = true};
    struct ggml_context *ctx = ggml_init(params);
    if (!note(ctx != NULL)) return;
    struct ggml_tensor *x = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, N_FLOATS);
    struct ggml_tensor *y = ggml_neg(ctx, x);
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, y);
    ggml_backend_buffer_t buffer =
        ggml_backend_alloc_ctx_tensors_from_buft(ctx, ggml_backend_dev_buffer_type(device));
    if (note(buffer != NULL)) {
        use_graph(stream, graph, x, y);
        use_memory(x, y, buffer);
        use_graph(stream, graph, x, y);
    }
    ggml_backend_buffer_free(buffer);
    ggml_free(ctx);
}

static void use(ggml_backend_dev_t device) {
    const struct ggml_isolate_options options = {
        .size = sizeof(options), .helper = helper, .deadline_ms = deadline_ms};
    ggml_backend_dev_t isolated = NULL;
    if (note(ggml_host_isolate(device, &options, &isolated) == GGML_HOST_OK)) {
        ggml_backend_t stream = ggml_backend_dev_init(isolated, NULL);
        if (note(stream != NULL)) use_context(isolated, stream);
        ggml_backend_free(stream);
        int64_t total_ns, device_ns;
        ggml_host_isolated_time(isolated, &total_ns, &device_ns);
        assert_in_range(device_ns, 0, total_ns);
        note(ggml_host_isolated_free(isolated) == GGML_HOST_OK);
    } else {
        assert_null(isolated);
    }
}

static void expect_nothing_left(size_t n_files) {
    siginfo_t info;
    assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT), -1);
    assert_int_equal(errno, ECHILD);
    assert_int_equal(resources_in_use().n_files, n_files);
}

// Seconds that a round takes where nothing fails: a sanitizer needs two for the digest of a plugin.
static double honest_s;

static double use_timed(ggml_backend_dev_t device) {
    const int64_t start = ggml_time_us();
    n_failed = 0;
    use(device);
    return (double)(ggml_time_us() - start) * 1e-6;
}

static void use_in_time(ggml_backend_dev_t device) {
    const size_t n_files = resources_in_use().n_files;
    const double taken = use_timed(device);
    if (taken > honest_s + 3) fail_msg("a round took %g s, an honest one %g s", taken, honest_s);
    expect_nothing_left(n_files);
}

// --- every kind of memory ------------------------------------------------------------------------

static void test_device(ggml_backend_dev_t device, void (*test)(ggml_backend_dev_t device)) {
    honest_s = use_timed(device);
    assert_int_equal(n_failed, 0);
    test(device);
}

// A sanitizer takes a second for each process of a plugin that is a file, for its digest alone: it
// looks at every call on the CPU, and at one of 32 on devices with memory of other kinds.
static long step;

static void for_each_memory(size_t n_kinds, void (*test)(ggml_backend_dev_t device)) {
    static const char *const kinds[] = {"devices=1", "devices=1,host_memory=1,host_import=1"};
    step = 1;
    test_device(cpu(), test);
    step = GGML_SANITIZED ? 32 : 1;
    for (size_t i = 0; i < n_kinds; ++i) {
        struct virtual_host host;
        virtual_open(&host, kinds[i]);
        test_device(virtual_device(&host, 0), test);
        assert_int_equal(virtual_close(&host), 0);
    }
}

// --- in the application --------------------------------------------------------------------------

static long sweep_application(ggml_backend_dev_t device) {
    for (long n = 0;; n += step) {
        fault_arm(n);
        use_in_time(device);
        if (!fault_disarm()) return n;
    }
}

static void application_may_fail(ggml_backend_dev_t device) {
    use_in_time(device);
    assert_int_equal(n_failed, 0);
    const size_t n_memory = fault_count_memory(), n_system = fault_count_system();
    const long n = sweep_application(device);
    print_message("# %s: %ld points\n", ggml_backend_dev_name(device), n);
    if (step > 1) return;
    assert_true(fault_count_memory() - n_memory > 10);
    assert_true(fault_count_system() - n_system > 20);
    if (GGML_SANITIZED) return; // which counts no memory, and finds leaks by itself
    const struct resources before = resources_in_use();
    assert_int_equal(sweep_application(device), n);
    assert_true(resources_in_use().n_bytes <= before.n_bytes + 4096);
    use_in_time(device);
    assert_int_equal(n_failed, 0);
}

static void test_every_call_of_the_application_may_fail(void **state) {
    (void)state;
    helper = NULL;
    for_each_memory(2, application_may_fail);
}

// --- in the process ------------------------------------------------------------------------------

// Returns whether it was reached.
static bool use_with_helper(ggml_backend_dev_t device, const char *how, long n) {
    char text[64];
    snprintf(text, sizeof(text), n >= 0 ? "%s %ld" : "%s", how, n);
    setenv("GGML_TEST_ISOLATE", text, 1);
    helper = FAULTY_HELPER;
    unlink(reached);
    use_in_time(device);
    helper = NULL;
    return access(reached, F_OK) == 0;
}

static void process_may_fail(ggml_backend_dev_t device) {
    long n = 0;
    for (; use_with_helper(device, "fail", n); n += step)
        assert_true(n_failed > 0 || n > 0);
    assert_int_equal(n_failed, 0);
    print_message("# %s: %ld points\n", ggml_backend_dev_name(device), n);
    assert_true(n > 40);
}

static void test_every_call_of_the_process_may_fail(void **state) {
    (void)state;
    for_each_memory(1, process_may_fail);
}

// At each allocation, message, mapping and file: what is under way and what follows is lost.
static void process_may_be_killed(ggml_backend_dev_t device) {
    long n_noticed = 0, n = 0;
    for (; use_with_helper(device, "kill", n); n += step) {
        if (n_failed > 0 && n_noticed != n) fail_msg("killed at %ld, nobody noticed", n - step);
        if (n_failed > 0) n_noticed += step;
    }
    assert_int_equal(n_failed, 0);
    assert_true(n_noticed > 40);
    assert_true(n_noticed > n / 2); // the others are killed while they end
}

static void test_the_process_may_be_killed_anywhere(void **state) {
    (void)state;
    for_each_memory(1, process_may_be_killed);
}

// --- taken over ----------------------------------------------------------------------------------

// Each process of a plugin takes a digest of it, which is slow under the thread sanitizer: fewer.
static void process_may_lie(ggml_backend_dev_t device) {
#if GGML_THREAD_SANITIZER
    const long n_seeds = device == cpu() ? 72 : 24;
#else
    const long n_seeds = 72;
#endif
    any_status = true;
    deadline_ms = 30;
    for (long seed = 0; seed < n_seeds; ++seed)
        assert_false(use_with_helper(device, "nonsense", seed)); // it took no memory away
    deadline_ms = DEADLINE_MS;
    any_status = false;
}

static void test_the_process_may_be_taken_over(void **state) {
    (void)state;
    for_each_memory(1, process_may_lie);
}

static void test_shared_memory_stays_as_large_as_it_was(void **state) {
    (void)state;
    any_status = true;
    assert_false(use_with_helper(cpu(), "short", -1));
    assert_int_equal(n_failed, 0);
    any_status = false;
}

static void test_answers_to_no_question_end_it(void **state) {
    (void)state;
    const struct ggml_isolate_options options = {
        .size = sizeof(options), .helper = FAULTY_HELPER, .deadline_ms = 300};
    ggml_backend_dev_t isolated;
    setenv("GGML_TEST_ISOLATE", "flood", 1);
    assert_int_equal(ggml_host_isolate(cpu(), &options, &isolated), GGML_HOST_OK);
    ggml_backend_buffer_t buffer =
        ggml_backend_buft_alloc_buffer(ggml_backend_dev_buffer_type(isolated), 4096);
    assert_non_null(buffer);
    ggml_clear_error();
    const int64_t start = ggml_time_us();
    for (int i = 0; i < 100000 && ggml_last_status() == GGML_HOST_OK; ++i)
        ggml_backend_buffer_set_usage(buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    assert_int_equal(ggml_last_status(), GGML_HOST_DEVICE_LOST);
    assert_non_null(strstr(ggml_host_isolated_lost(isolated), "in time"));
    assert_true(ggml_time_us() - start < 3000000);
    ggml_backend_buffer_free(buffer);
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
}

// The reason is its own deed, not the signal by which the library ends it.
static void test_a_process_that_hangs_up_is_blamed_for_it(void **state) {
    (void)state;
    const struct ggml_isolate_options options = {.size = sizeof(options), .helper = FAULTY_HELPER};
    ggml_backend_dev_t isolated;
    setenv("GGML_TEST_ISOLATE", "leave", 1);
    assert_int_equal(ggml_host_isolate(cpu(), &options, &isolated), GGML_HOST_OK);
    assert_null(ggml_backend_dev_init(isolated, NULL));
    assert_int_equal(ggml_last_status(), GGML_HOST_DEVICE_LOST);
    assert_non_null(strstr(ggml_host_isolated_lost(isolated), "closed its connection"));
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
}

static void do_nothing(int number) {
    (void)number;
}

// A profiler's signals interrupt every wait.
static void test_a_deadline_holds_under_signals(void **state) {
    (void)state;
    const struct ggml_isolate_options options = {
        .size = sizeof(options), .helper = FAULTY_HELPER, .deadline_ms = 300};
    const struct itimerval often = {{.tv_usec = 20000}, {.tv_usec = 20000}}, never = {{0}, {0}};
    struct sigaction action = {.sa_handler = do_nothing}, before;
    ggml_backend_dev_t isolated;
    setenv("GGML_TEST_ISOLATE", "short", 1);
    assert_int_equal(ggml_host_isolate(cpu(), &options, &isolated), GGML_HOST_OK);
    kill((pid_t)ggml_host_isolated_process(isolated), SIGSTOP);
    sigaction(SIGALRM, &action, &before);
    setitimer(ITIMER_REAL, &often, NULL);
    const int64_t start = ggml_time_us();
    assert_null(ggml_backend_dev_init(isolated, NULL));
    const int64_t taken = ggml_time_us() - start;
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &before, NULL);
    assert_int_equal(ggml_last_status(), GGML_HOST_DEVICE_LOST);
    assert_true(taken < 2000000);
    assert_int_equal(ggml_host_isolated_free(isolated), GGML_HOST_OK);
}

static char folder[512];

static int begin(void **state) {
    (void)state;
    deadline_ms = DEADLINE_MS;
    fault_limit_reads(FAULT_READS);
    if (!temp_dir_make(folder, sizeof(folder))) return 1;
    snprintf(reached, sizeof(reached), "%s/reached", folder);
    setenv("GGML_TEST_REACHED", reached, 1);
    return 0;
}

static int end(void **state) {
    (void)state;
    temp_dir_remove(folder);
    return 0;
}

// Two programs of the test suite: where each process is slow to start, as under the thread
// sanitizer, there is time for the hostile side alone.
int main(int argc, char **argv) {
    const struct CMUnitTest each_call[] = {
        cmocka_unit_test(test_every_call_of_the_application_may_fail),
        cmocka_unit_test(test_every_call_of_the_process_may_fail),
        cmocka_unit_test(test_the_process_may_be_killed_anywhere),
    };
    const struct CMUnitTest hostile[] = {
        cmocka_unit_test(test_the_process_may_be_taken_over),
        cmocka_unit_test(test_shared_memory_stays_as_large_as_it_was),
        cmocka_unit_test(test_answers_to_no_question_end_it),
        cmocka_unit_test(test_a_process_that_hangs_up_is_blamed_for_it),
        cmocka_unit_test(test_a_deadline_holds_under_signals),
    };
    return argc == 2 && strcmp(argv[1], "hostile") == 0
               ? cmocka_run_group_tests(hostile, begin, end)
               : cmocka_run_group_tests(each_call, begin, end);
}
