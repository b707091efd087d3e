// SPDX-License-Identifier: MIT
// Memory and calls of the system that fail at every point of a probe: a status, nothing left
// behind, and the next probe succeeds.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/status.h"
#include "support/fault_sweep.h"
#include "support/plugin_dir.h"

static struct plugin_dir dir;
static char cache_path[300];

static struct ggml_probe_options options(uint32_t flags) {
    return (struct ggml_probe_options){
        .size = sizeof(struct ggml_probe_options),
        .dir = dir.path,
        .helper = HELPER,
        .cache_dir = cache_path,
        .flags = flags,
    };
}

static void expect_good_probe(uint32_t flags) {
    ggml_probe_report_t report = NULL;
    const struct ggml_probe_options wanted = options(flags);
    assert_int_equal(ggml_plugin_probe(&wanted, &report), GGML_HOST_OK);
    assert_int_equal(ggml_probe_report_get(report, 0)->plugin->status, GGML_HOST_OK);
    assert_true(ggml_probe_report_device_count(report) >= 4);
    assert_string_equal(ggml_probe_report_not_isolated(report), "");
    ggml_probe_report_free(report);
}

static void expect_no_child(void) {
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

// With the n-th call failing; returns whether it came that far.
static bool probe_once(long n, uint32_t flags) {
    ggml_probe_report_t report = NULL;
    const struct ggml_probe_options wanted = options(flags);
    ggml_clear_error();
    fault_arm(n);
    const enum ggml_host_status status = ggml_plugin_probe(&wanted, &report);
    const bool failed = fault_disarm();
    assert_int_equal(status != GGML_HOST_OK, report == NULL);
    if (status != GGML_HOST_OK) assert_string_not_equal(ggml_last_error(), "");
    if (!failed) assert_int_equal(status, GGML_HOST_OK);
    for (size_t i = 0; i < ggml_probe_report_count(report); ++i) {
        const struct ggml_plugin_record *record = ggml_probe_report_get(report, i)->plugin;
        if (record->status != GGML_HOST_OK) assert_string_not_equal(record->message, "");
    }
    ggml_probe_report_free(report);
    expect_no_child();
    return failed;
}

static long sweep(uint32_t flags) {
    long n = 0;
    for (; probe_once(n, flags); ++n)
        expect_good_probe(0); // no failure of ours is remembered as the plugin's
    return n;
}

static void sweep_twice(uint32_t flags) {
    expect_good_probe(0);
    const long n_calls = sweep(flags);
    print_message("# %ld calls\n", n_calls);
    assert_true(n_calls > 20);
    const struct resources before = resources_in_use();
    for (long n = 0; n < n_calls; n += 7)
        probe_once(n, flags);
    const struct resources after = resources_in_use();
    assert_int_equal(after.n_files, before.n_files);
    assert_true(after.n_bytes <= before.n_bytes + 4096);
}

static void test_every_call_with_a_helper_may_fail(void **state) {
    (void)state;
    sweep_twice(GGML_PROBE_RESCAN);
}

static void test_every_call_with_the_cache_may_fail(void **state) {
    (void)state;
    sweep_twice(0);
}

static void test_every_call_in_this_process_may_fail(void **state) {
    (void)state;
    sweep_twice(GGML_PROBE_IN_PROCESS);
}

static int open_dir(void **state) {
    (void)state;
    plugin_dir_open(&dir);
    plugin_dir_add(&dir, FIXTURES "/ggml-gpu.so", "ggml-gpu.so");
    snprintf(cache_path, sizeof(cache_path), "%s/cache", dir.path);
    return 0;
}

static int close_dir(void **state) {
    (void)state;
    plugin_dir_close(&dir);
    return 0;
}

#define WITH_DIR(function) cmocka_unit_test_setup_teardown(function, open_dir, close_dir)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DIR(test_every_call_with_a_helper_may_fail),
        WITH_DIR(test_every_call_with_the_cache_may_fail),
        WITH_DIR(test_every_call_in_this_process_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
