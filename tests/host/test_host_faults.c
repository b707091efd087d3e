// SPDX-License-Identifier: MIT
// Memory and calls of the system that fail at every point, and what is left after a thousand
// rounds.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"
#include "support/fault_sweep.h"
#include "support/plugin_dir.h"

static struct plugin_dir dir;

static void add(const char *file_name) {
    plugin_dir_add_from(&dir, FIXTURES, file_name, file_name);
}

static void write_sums(void) {
    static const char zeros[] = "0000000000000000000000000000000000000000000000000000000000000000";
    FILE *file = fopen(plugin_dir_path(&dir, "sums"), "w");
    assert_non_null(file);
    fprintf(file, "%s  nothing\n", zeros);
    fclose(file);
}

// With a fault somewhere, a file can look as many things as it can be.
static bool is_honest(enum ggml_host_status status) {
    switch (status) {
    case GGML_HOST_OK:
    case GGML_HOST_OUT_OF_MEMORY:
    case GGML_HOST_IO_ERROR:
    case GGML_HOST_NOT_FOUND:
    case GGML_HOST_LINK_FAILED:
    case GGML_HOST_DAMAGED_FILE:
    case GGML_HOST_UNTRUSTED: return true;
    default: return false;
    }
}

static void expect_all_is_well(void) {
    assert_int_equal(ggml_plugin_load_all(dir.path, NULL), GGML_HOST_OK);
    assert_non_null(ggml_backend_dev_by_name("GPU0"));
    assert_non_null(ggml_backend_dev_by_name("OTHER0"));
    unload_everything();
}

static void expect_message(enum ggml_host_status status) {
    assert_true(is_honest(status));
    if (status != GGML_HOST_OK) assert_string_not_equal(ggml_last_error(), "");
}

// Loads, lists, scans again and unloads with the n-th call failing; returns whether it came that
// far.
static bool cycle(long n) {
    fault_arm(n);
    const enum ggml_host_status loaded = ggml_plugin_load_all(dir.path, NULL);
    expect_message(loaded);
    ggml_plugin_report_t report = ggml_plugin_report_new();
    const enum ggml_host_status again = ggml_plugin_load_all(dir.path, NULL);
    expect_message(again);
    ggml_backend_reg_t reg = ggml_backend_reg_by_name("gpu");
    const enum ggml_host_status unloaded = reg ? ggml_plugin_unload(reg) : GGML_HOST_OK;
    expect_message(unloaded);
    const bool failed = fault_disarm();
    if (!failed) {
        assert_int_equal(loaded, GGML_HOST_OK);
        assert_non_null(report);
    }
    ggml_plugin_report_free(report);
    unload_everything();
    expect_all_is_well();
    return failed;
}

// One file by its path, against a list of sums.
static bool cycle_of_one(long n) {
    ggml_backend_reg_t reg = NULL;
    fault_arm(n);
    const enum ggml_host_status loaded =
        ggml_plugin_load(plugin_dir_path(&dir, "ggml-gpu.so"), &reg);
    const bool failed = fault_disarm();
    assert_int_not_equal(loaded, GGML_HOST_OK);
    expect_message(loaded);
    assert_null(reg);
    if (!failed) assert_int_equal(loaded, GGML_HOST_UNTRUSTED);
    return failed;
}

static long sweep(bool (*round)(long n)) {
    long n = 0;
    while (round(n))
        ++n;
    return n;
}

static void sweep_twice(bool (*round)(long n), size_t min_memory, size_t min_system) {
    const size_t n_memory = fault_count_memory();
    const size_t n_system = fault_count_system();
    const long n_points = sweep(round);
    assert_true(fault_count_memory() - n_memory > min_memory);
    assert_true(fault_count_system() - n_system > min_system);
    const struct resources before = resources_in_use();
    assert_int_equal(sweep(round), n_points);
    const struct resources after = resources_in_use();
    assert_int_equal(after.n_files, before.n_files);
    assert_true(after.n_bytes <= before.n_bytes + 4096);
}

static void test_every_call_may_fail(void **state) {
    (void)state;
    plugin_dir_open(&dir);
    add("ggml-gpu.so");
    add("ggml-other.so");
    add("ggml-init_fails.so");
    expect_all_is_well(); // what is read once is read
    sweep_twice(cycle, 30, 40);
    plugin_dir_close(&dir);
}

static void test_every_call_may_fail_with_a_list_of_sums(void **state) {
    (void)state;
    plugin_dir_open(&dir);
    add("ggml-gpu.so");
    write_sums();
    setenv("GGML_PLUGIN_SHA256", plugin_dir_path(&dir, "sums"), 1);
    sweep_twice(cycle_of_one, 5, 15);
    unsetenv("GGML_PLUGIN_SHA256");
    plugin_dir_close(&dir);
}

// --- a plugin that may not be unmapped

// Loads a copy of the plugin that this process has not seen, with the n-th call failing.
static bool load_a_copy(long n) {
    char name[64];
    snprintf(name, sizeof(name), "ggml-stays-%ld.so", n);
    plugin_dir_add_from(&dir, FIXTURES, "ggml-stays.so", name);
    fault_arm(n);
    expect_message(ggml_plugin_load(plugin_dir_path(&dir, name), NULL));
    const bool failed = fault_disarm();
    if (plugin_dir_record(&dir, name)->stage >= GGML_PLUGIN_STAGE_MAP) assert_true(is_mapped(name));
    unload_everything();
    assert_int_equal(ggml_plugin_load(plugin_dir_path(&dir, name), NULL), GGML_HOST_OK);
    unload_everything();
    assert_true(is_mapped(name));
    return failed;
}

// Loads the one that an earlier round left mapped.
static bool load_again(long n) {
    fault_arm(n);
    expect_message(ggml_plugin_load(plugin_dir_path(&dir, "ggml-stays.so"), NULL));
    const bool failed = fault_disarm();
    assert_true(is_mapped("ggml-stays.so"));
    unload_everything();
    return failed;
}

static void test_a_plugin_that_stays_is_mapped_whatever_fails(void **state) {
    (void)state;
    plugin_dir_open(&dir);
    add("ggml-stays.so");
    assert_int_equal(ggml_plugin_load(plugin_dir_path(&dir, "ggml-stays.so"), NULL), GGML_HOST_OK);
    unload_everything();
    sweep_twice(load_again, 3, 10);
    assert_true(sweep(load_a_copy) > 20);
    plugin_dir_close(&dir);
}

// --- a plugin that leaves nothing behind

static void test_a_thousand_cycles_leave_nothing_behind(void **state) {
    (void)state;
    ggml_backend_reg_t reg = NULL;
    plugin_dir_open(&dir);
    plugin_dir_add(&dir, NULL_PLUGIN, "ggml-null.so");
    size_t n_mappings = 0;
    size_t n_bytes = 0;
    const size_t n_files = count_open_files();
    const size_t n_threads = count_threads();
    for (int i = 0; i < 1000; ++i) {
        assert_int_equal(ggml_plugin_load(plugin_dir_path(&dir, "ggml-null.so"), &reg),
                         GGML_HOST_OK);
        ggml_backend_t backend = ggml_backend_init_by_name("NULL0", NULL);
        assert_non_null(backend);
        assert_int_equal(ggml_plugin_unload(reg), GGML_HOST_BUSY);
        ggml_backend_free(backend);
        assert_int_equal(ggml_plugin_unload(reg), GGML_HOST_OK);
        if (i == 10) {
            n_mappings = count_mappings();
            n_bytes = resources_in_use().n_bytes;
        }
    }
    assert_int_equal(count_open_files(), n_files);
    assert_int_equal(count_threads(), n_threads);
    assert_true(count_mappings() <= n_mappings + 1);
    assert_true(resources_in_use().n_bytes <= n_bytes + 4096);
    plugin_dir_close(&dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_thousand_cycles_leave_nothing_behind),
        cmocka_unit_test(test_every_call_may_fail),
        cmocka_unit_test(test_every_call_may_fail_with_a_list_of_sums),
        cmocka_unit_test(test_a_plugin_that_stays_is_mapped_whatever_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
