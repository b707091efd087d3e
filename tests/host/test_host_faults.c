// SPDX-License-Identifier: MIT
// Memory that runs out at every point, and what is left after a thousand rounds.
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/status.h"
#include "support/plugin_dir.h"

static struct plugin_dir dir;

static void add(const char *file_name) {
    char path[600];
    snprintf(path, sizeof(path), FIXTURES "/%s", file_name);
    plugin_dir_add(&dir, path, file_name);
}

static long n_left; // allocations until one fails; negative: none does

static bool count_down(void *context) {
    (void)context;
    return n_left-- != 0;
}

// 0 where the C library can't tell, or a sanitizer replaces it (which then looks for leaks itself).
static size_t bytes_in_use(void) {
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    return mallinfo2().uordblks;
#else
    return 0;
#endif
}

// Loads, lists and unloads with the n-th allocation failing; answers whether it came that far.
static bool round_with_fault(long n) {
    n_left = n;
    ggml_mem_set_fault_hook(count_down, NULL);
    const enum ggml_host_status status = ggml_plugin_load_all(dir.path, NULL);
    ggml_plugin_report_t report = ggml_plugin_report_new();
    ggml_backend_reg_t reg = ggml_backend_reg_by_name("gpu");
    const enum ggml_host_status unloaded = reg ? ggml_plugin_unload(reg) : GGML_HOST_OK;
    const bool failed = n_left < 0;
    ggml_mem_set_fault_hook(NULL, NULL);

    assert_true(status == GGML_HOST_OK || status == GGML_HOST_OUT_OF_MEMORY);
    assert_true(unloaded == GGML_HOST_OK || unloaded == GGML_HOST_OUT_OF_MEMORY);
    if (!failed) assert_non_null(report);
    ggml_plugin_report_free(report);
    unload_everything();

    assert_int_equal(ggml_plugin_load_all(dir.path, NULL), GGML_HOST_OK);
    assert_non_null(ggml_backend_dev_by_name("GPU0"));
    unload_everything();
    return failed;
}

static long sweep(void) {
    long n = 0;
    while (round_with_fault(n))
        ++n;
    return n;
}

static void test_every_allocation_may_fail(void **state) {
    (void)state;
    plugin_dir_open(&dir);
    add("ggml-gpu.so");
    add("ggml-other.so");
    add("ggml-init_fails.so");
    const long n_points = sweep();
    assert_true(n_points > 10);
    const size_t before = bytes_in_use();
    const size_t n_files = count_open_files();
    assert_int_equal(sweep(), n_points);
    assert_int_equal(count_open_files(), n_files);
    assert_true(bytes_in_use() <= before + 4096);
    plugin_dir_close(&dir);
}

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
            n_bytes = bytes_in_use();
        }
    }
    assert_int_equal(count_open_files(), n_files);
    assert_int_equal(count_threads(), n_threads);
    assert_true(count_mappings() <= n_mappings + 1);
    assert_true(bytes_in_use() <= n_bytes + 4096);
    plugin_dir_close(&dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_allocation_may_fail),
        cmocka_unit_test(test_a_thousand_cycles_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
