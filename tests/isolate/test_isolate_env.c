// SPDX-License-Identifier: MIT
// GGML_ISOLATE: applications that ask for nothing get devices that another process computes.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>

#include "isolated.h"
#include "virtual_host.h"

static void ask_for(const char *devices) {
    setenv("GGML_ISOLATE", devices, 1);
}

static int ask_for_nothing(void **state) {
    (void)state;
    unsetenv("GGML_ISOLATE");
    return 0;
}

static bool is_isolated(ggml_backend_dev_t device) {
    return ggml_host_isolated_process(device) > 0;
}

// Of all devices of that name that can be found by listing them.
static size_t count_listed(const char *name, bool isolated) {
    size_t count = 0;
    for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
        ggml_backend_dev_t device = ggml_backend_dev_get(i);
        count +=
            strcmp(ggml_backend_dev_name(device), name) == 0 && is_isolated(device) == isolated;
    }
    return count;
}

// Whatever is computed has to be right.
static enum ggml_status compute(struct small *small, float x) {
    float y;
    const enum ggml_status status = small_compute(small, x, &y);
    if (status == GGML_STATUS_SUCCESS) assert_true(y == x * x);
    return status;
}

// --- tests ---------------------------------------------------------------------------------------

static void test_only_isolated_devices_are_found(void **state) {
    struct virtual_host host;
    struct ggml_device_info info = {.size = sizeof(info)};
    (void)state;
    ask_for("virtual");
    virtual_open(&host, "devices=2");
    assert_int_equal(count_listed("VIRTUAL0", true), 1);
    assert_int_equal(count_listed("VIRTUAL1", true), 1);
    assert_int_equal(count_listed("VIRTUAL0", false) + count_listed("VIRTUAL1", false), 0);
    ggml_backend_dev_t device = ggml_backend_dev_by_name("VIRTUAL1");
    assert_true(is_isolated(device));
    assert_ptr_equal(virtual_device(&host, 1), device);
    assert_int_equal(ggml_backend_reg_dev_count(host.reg), 2);
    assert_true(is_isolated(ggml_backend_dev_by_type(ggml_backend_dev_type(device))));
    assert_int_equal(ggml_backend_dev_info(device, &info), GGML_HOST_OK);
    assert_string_equal(info.plugin_name, "virtual");
    assert_string_equal(ggml_backend_reg_name(ggml_backend_dev_backend_reg(device)),
                        ggml_backend_reg_name(host.reg));
    assert_int_not_equal(ggml_host_isolated_process(device),
                         ggml_host_isolated_process(virtual_device(&host, 0)));
    assert_int_equal(virtual_close(&host), 0);
}

static void test_one_of_two_devices(void **state) {
    static const char *const values[] = {"virtual1", " VIRTUAL1 ,Vulkan7", "-VIRTUAL0"};
    struct virtual_host host;
    (void)state;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); ++i) {
        ask_for(values[i]);
        virtual_open(&host, "devices=2");
        assert_false(is_isolated(ggml_backend_dev_by_name("VIRTUAL0")));
        assert_true(is_isolated(ggml_backend_dev_by_name("VIRTUAL1")));
        assert_int_equal(virtual_close(&host), 0);
    }
}

// As programs put together that have nothing to list.
static void test_empty_lists(void **state) {
    static const char *const values[] = {
        "", ",", " ", " , ,\t", "-", "nosuch", "VIRTUAL0 VIRTUAL1"};
    struct virtual_host host;
    (void)state;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); ++i) {
        ask_for(values[i]);
        virtual_open(&host, "devices=1");
        assert_false(is_isolated(ggml_backend_dev_by_name("VIRTUAL0")));
        assert_int_equal(virtual_close(&host), 0);
    }
}

static char logged[1024];

static void keep(const char *text) {
    const size_t length = strlen(logged);
    snprintf(logged + length, sizeof(logged) - length, "%s", text);
}

static void keep_errors(enum ggml_log_level level, const char *text, void *user_data) {
    (void)user_data;
    if (level == GGML_LOG_LEVEL_ERROR) keep(text);
}

static void keep_warnings(enum ggml_log_level level, const char *text, void *user_data) {
    (void)user_data;
    if (level == GGML_LOG_LEVEL_WARN) keep(text);
}

// The reason is logged once, as the program may know of no other way to ask for it.
static void test_a_program_survives_a_bad_access(void **state) {
    struct virtual_host host;
    struct small small, rest;
    (void)state;
    ask_for("VIRTUAL0");
    logged[0] = '\0';
    ggml_log_set(keep_errors, NULL);
    virtual_open(&host, "devices=1,crash_after=1");
    small_begin(&small, ggml_backend_dev_by_name("VIRTUAL0"));
    assert_int_equal(compute(&small, 5), GGML_STATUS_SUCCESS);
    assert_int_equal(compute(&small, 6), GGML_STATUS_FAILED);
    assert_int_equal(ggml_last_status(), GGML_HOST_DEVICE_LOST);
    assert_non_null(strstr(ggml_last_error(), "signal 11"));
    assert_int_equal(compute(&small, 7), GGML_STATUS_FAILED);
    ggml_log_set(NULL, NULL);
    assert_string_equal(logged, "VIRTUAL0 is lost: the process that computed for it ended by "
                                "signal 11 (bad address)\n");
    small_end(&small);
    small_begin(&rest, ggml_backend_dev_by_name("CPU"));
    assert_int_equal(compute(&rest, 7), GGML_STATUS_SUCCESS);
    small_end(&rest);
    assert_int_equal(virtual_close(&host), 0);
}

static void test_the_plugin_ends_its_processes(void **state) {
    struct virtual_host host;
    struct small small;
    (void)state;
    ask_for("VIRTUAL0");
    virtual_open(&host, "devices=1");
    ggml_backend_dev_t device = ggml_backend_dev_by_name("VIRTUAL0");
    const pid_t process = (pid_t)ggml_host_isolated_process(device);
    assert_int_equal(kill(process, 0), 0);
    assert_int_equal(ggml_host_isolated_free(device), GGML_HOST_INVALID_ARGUMENT);
    ggml_backend_dev_t twice;
    assert_int_equal(ggml_host_isolate(device, NULL, &twice), GGML_HOST_UNSUPPORTED);
    assert_non_null(strstr(ggml_last_error(), "isolated already"));
    small_begin(&small, ggml_backend_dev_by_name("VIRTUAL0"));
    assert_int_equal(ggml_plugin_unload(host.reg), GGML_HOST_BUSY);
    assert_int_equal(compute(&small, 3), GGML_STATUS_SUCCESS);
    small_end(&small);
    // By the backend of the device, as a program may that knows no other.
    assert_int_equal(ggml_plugin_unload(ggml_backend_dev_backend_reg(device)), GGML_HOST_OK);
    assert_int_equal(kill(process, 0), -1);
    assert_int_equal(errno, ESRCH);
    assert_null(ggml_backend_dev_by_name("VIRTUAL0"));
}

// A driver that hangs, for 20 seconds here.
static void test_a_deadline(void **state) {
    struct virtual_host host;
    struct small small;
    (void)state;
    ask_for("VIRTUAL0");
    setenv("GGML_ISOLATE_DEADLINE", "1", 1);
    virtual_open(&host, "devices=1,graph_delay_us=20000000");
    unsetenv("GGML_ISOLATE_DEADLINE");
    small_begin(&small, ggml_backend_dev_by_name("VIRTUAL0"));
    const int64_t start = ggml_time_us();
    ggml_log_set(keep_errors, NULL);
    assert_int_equal(compute(&small, 5), GGML_STATUS_FAILED);
    ggml_log_set(NULL, NULL);
    assert_true(ggml_time_us() - start < 10000000);
    assert_int_equal(ggml_last_status(), GGML_HOST_DEVICE_LOST);
    assert_non_null(strstr(ggml_last_error(), "did not answer in time"));
    small_end(&small);
    assert_int_equal(virtual_close(&host), 0);
}

// Words that are no number of seconds are warned of, and nothing else.
static void test_no_deadline(void **state) {
    static const char *const values[] = {"0", "-1", "3601", "1s", "x", "99999999999999999999"};
    struct virtual_host host;
    struct small small;
    (void)state;
    ask_for("VIRTUAL0");
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); ++i) {
        setenv("GGML_ISOLATE_DEADLINE", values[i], 1);
        logged[0] = '\0';
        ggml_log_set(keep_warnings, NULL);
        virtual_open(&host, "devices=1");
        ggml_log_set(NULL, NULL);
        assert_non_null(strstr(logged, values[i]));
        small_begin(&small, ggml_backend_dev_by_name("VIRTUAL0"));
        assert_int_equal(compute(&small, 5), GGML_STATUS_SUCCESS);
        small_end(&small);
        assert_int_equal(virtual_close(&host), 0);
    }
    unsetenv("GGML_ISOLATE_DEADLINE");
}

// Of a plugin that is loaded.
static bool a_record_says(const char *text) {
    ggml_plugin_report_t report = ggml_plugin_report_new();
    bool found = false;
    for (size_t i = 0; i < ggml_plugin_report_count(report); ++i) {
        const struct ggml_plugin_record *record = ggml_plugin_report_get(report, i);
        found = found || (record->status == GGML_HOST_OK && strstr(record->message, text));
    }
    ggml_plugin_report_free(report);
    return found;
}

// Not shown as it is: a crash of its driver would be the application's.
static void test_what_can_not_be_isolated_is_left_out(void **state) {
    struct virtual_host host;
    ggml_backend_reg_t reg;
    const char *helper = getenv("GGML_PROBE_HELPER");
    char *kept = helper ? strdup(helper) : NULL;
    (void)state;
    setenv("GGML_PROBE_HELPER", "/nonexistent/helper", 1);
    setenv("GGML_VIRTUAL", "devices=2", 1);
    ask_for("virtual");
    assert_int_equal(ggml_plugin_load(VIRTUAL_PLUGIN, &reg), GGML_HOST_UNSUPPORTED);
    assert_non_null(strstr(ggml_last_error(), "GGML_ISOLATE"));
    assert_non_null(strstr(ggml_last_error(), "/nonexistent/helper"));
    assert_null(reg);
    assert_null(ggml_backend_dev_by_name("VIRTUAL0"));
    ask_for("VIRTUAL0");
    virtual_open(&host, "devices=2");
    assert_null(ggml_backend_dev_by_name("VIRTUAL0"));
    assert_false(is_isolated(ggml_backend_dev_by_name("VIRTUAL1")));
    // Looking for plugins again changes nothing of that.
    char folder[] = VIRTUAL_PLUGIN;
    *strrchr(folder, '/') = '\0';
    for (int i = 0; i < 3; ++i) {
        assert_true(a_record_says("GGML_ISOLATE: VIRTUAL0 can't be computed by another process"));
        assert_int_equal(ggml_plugin_load_all(folder, NULL), GGML_HOST_OK);
    }
    assert_int_equal(virtual_close(&host), 0);
    if (kept) setenv("GGML_PROBE_HELPER", kept, 1);
    free(kept);
}

// The first look at the devices loads the built-in CPU plugin.
static void test_the_cpu_stays_in_the_application(void **state) {
    (void)state;
    ask_for("CPU");
    ggml_backend_dev_t device = ggml_backend_dev_by_name("CPU");
    assert_non_null(device);
    assert_false(is_isolated(device));
}

// Devices that a plugin finds while the program runs: the other process, which was asked for
// nothing, has not found them.
static void test_devices_that_come_later_are_left_out(void **state) {
    ggml_backend_reg_t reg;
    (void)state;
    ask_for("FAR0");
    logged[0] = '\0';
    ggml_log_set(keep_errors, NULL);
    assert_int_equal(ggml_plugin_load(FIXTURES "/ggml-grows.so", &reg), GGML_HOST_OK);
    assert_non_null(ggml_backend_reg_by_name("remote")); // makes it find one more
    ggml_log_set(NULL, NULL);
    assert_non_null(strstr(logged, "GGML_ISOLATE: FAR0 can't be computed by another process"));
    assert_null(ggml_backend_dev_by_name("FAR0"));
    assert_int_equal(ggml_backend_reg_dev_count(reg), 0);
    assert_non_null(ggml_backend_reg_by_name("remote"));
    assert_non_null(ggml_backend_dev_by_name("FAR1"));
    assert_false(is_isolated(ggml_backend_dev_by_name("FAR1")));
    assert_null(ggml_backend_dev_by_name("FAR0"));
    assert_int_equal(ggml_plugin_unload(reg), GGML_HOST_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_the_cpu_stays_in_the_application, ask_for_nothing),
        cmocka_unit_test_teardown(test_only_isolated_devices_are_found, ask_for_nothing),
        cmocka_unit_test_teardown(test_one_of_two_devices, ask_for_nothing),
        cmocka_unit_test_teardown(test_empty_lists, ask_for_nothing),
        cmocka_unit_test_teardown(test_a_program_survives_a_bad_access, ask_for_nothing),
        cmocka_unit_test_teardown(test_the_plugin_ends_its_processes, ask_for_nothing),
        cmocka_unit_test_teardown(test_a_deadline, ask_for_nothing),
        cmocka_unit_test_teardown(test_no_deadline, ask_for_nothing),
        cmocka_unit_test_teardown(test_devices_that_come_later_are_left_out, ask_for_nothing),
        cmocka_unit_test_teardown(test_what_can_not_be_isolated_is_left_out, ask_for_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
