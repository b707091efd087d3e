// SPDX-License-Identifier: MIT
// Loading of plugins: search paths, refusals of every kind before a file is mapped, and the
// report about each file.
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"
#include "ggml-backend-impl.h"
#include "plugin/registry/builtin.h"
#include "plugin/registry/process_state.h"
#include "support/plugin_dir.h"
#include "support/setenv.h"

#ifndef _WIN32
#include <sys/stat.h>
#include <unistd.h>
#endif

static struct plugin_dir dir;

static int open_dir(void **state) {
    (void)state;
    plugin_dir_open(&dir);
    return 0;
}

static int close_dir(void **state) {
    (void)state;
    unsetenv("GGML_DEVICES");
    unsetenv("GGML_BACKEND_PATH");
    unsetenv("GGML_PLUGIN_PATH");
    unload_everything();
    plugin_dir_close(&dir);
    return 0;
}

static void add(const char *file_name) {
    plugin_dir_add_from(&dir, FIXTURES, file_name, file_name);
}

static void add_as(const char *fixture, const char *file_name) {
    plugin_dir_add_from(&dir, FIXTURES, fixture, file_name);
}

// Number of devices once the built-in plugins are there.
static size_t load_builtins(void) {
    assert_int_equal(ggml_plugin_load_all(dir.path, NULL), GGML_HOST_OK);
    return ggml_backend_dev_count();
}

// Loads the directory, and expects this of the file.
static const struct ggml_plugin_record *
load_and_expect(const char *file_name, enum ggml_plugin_stage stage, enum ggml_host_status status) {
    assert_int_equal(ggml_plugin_load_all(dir.path, NULL), GGML_HOST_OK);
    const struct ggml_plugin_record *record = plugin_dir_record(&dir, file_name);
    if (record->status != status || record->stage != stage) {
        print_message("%s: stage %s, status %s: %s\n", file_name,
                      ggml_plugin_stage_text(record->stage), ggml_host_status_text(record->status),
                      record->message);
    }
    assert_int_equal(record->status, status);
    assert_int_equal(record->stage, stage);
    assert_int_equal(record->reg != NULL, status == GGML_HOST_OK);
    return record;
}

// --- the process itself --------------------------------------------------------------------------

static char logged[512];

static void keep_log(enum ggml_log_level level, const char *text, void *user_data) {
    const size_t length = strlen(logged);
    (void)level;
    (void)user_data;
    snprintf(logged + length, sizeof(logged) - length, "%s", text);
}

// Every computation leaves flags, which are no mode.
static void test_computing_is_no_change_of_the_floats(void **state) {
    static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    struct process_state process;
    (void)state;
    ggml_log_set(keep_log, NULL);
    logged[0] = '\0';
    feclearexcept(FE_ALL_EXCEPT);
    process_state_save(&process);
    volatile double x = 1, y = 3;
    x /= y;
    y = 0;
    x /= y;
    assert_true(isinf(x) && fetestexcept(FE_ALL_EXCEPT) != 0);
    process_state_restore(&process, "innocent", "while it was started");
    assert_string_equal(logged, "");
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); ++i) {
        logged[0] = '\0';
        process_state_save(&process);
        assert_int_equal(fesetround(modes[i]), 0);
        process_state_restore(&process, "meddler", "while it was started");
        assert_non_null(strstr(logged, "'meddler' changed the floating-point environment"));
        assert_int_equal(fegetround(), FE_TONEAREST);
    }
    ggml_log_set(NULL, NULL);
}

// --- good ones -----------------------------------------------------------------------------------

static void test_the_skeleton_loads_and_leaves(void **state) {
    (void)state;
    size_t n_loaded = 0;
    const size_t n_before = load_builtins();
    plugin_dir_add(&dir, NULL_PLUGIN, "ggml-null.so");
    assert_int_equal(ggml_plugin_load_all(dir.path, &n_loaded), GGML_HOST_OK);
    assert_int_equal(n_loaded, 1);
    const struct ggml_plugin_record *record = plugin_dir_record(&dir, "ggml-null.so");
    assert_int_equal(record->status, GGML_HOST_OK);
    assert_int_equal(record->stage, GGML_PLUGIN_STAGE_READY);
    assert_string_equal(record->name, "null");
    assert_string_equal(record->version, "1.0");
    assert_int_equal(record->contract_major, GGML_CONTRACT_MAJOR);
    assert_int_equal(record->machine, GGML_MACHINE_HERE);

    ggml_backend_dev_t device = ggml_backend_dev_by_name("null0");
    assert_non_null(device);
    struct ggml_device_info info = {.size = sizeof(info)};
    assert_int_equal(ggml_backend_dev_info(device, &info), GGML_HOST_OK);
    assert_string_equal(info.plugin_path, plugin_dir_path(&dir, "ggml-null.so"));
    assert_string_equal(info.plugin_name, "null");
    assert_int_equal(info.memory, GGML_MEMORY_UNKNOWN);
    assert_true(is_mapped("ggml-null.so"));

    assert_int_equal(ggml_plugin_unload(ggml_backend_reg_by_name("Null")), GGML_HOST_OK);
    assert_false(is_mapped("ggml-null.so"));
    assert_int_equal(ggml_backend_dev_count(), n_before);
    assert_string_equal(plugin_dir_record(&dir, "ggml-null.so")->path, "");
    assert_int_equal(ggml_backend_dev_info(device, &info), GGML_HOST_INVALID_ARGUMENT);
}

static void test_a_second_load_all_loads_nothing(void **state) {
    (void)state;
    size_t n_loaded = 7;
    add("ggml-marker.so");
    assert_int_equal(ggml_plugin_load_all(dir.path, NULL), GGML_HOST_OK);
    const size_t n_devices = ggml_backend_dev_count();
    ggml_fail(GGML_HOST_ABORTED, "kept");
    assert_int_equal(ggml_plugin_load_all(dir.path, &n_loaded), GGML_HOST_OK);
    assert_string_equal(ggml_last_error(), "kept");
    assert_int_equal(n_loaded, 0);
    assert_int_equal(ggml_backend_dev_count(), n_devices);
    assert_int_equal(plugin_dir_record(&dir, "ggml-marker.so")->status, GGML_HOST_OK);
}

static void test_a_plugin_of_the_frozen_contract_loads(void **state) {
    (void)state;
    add("ggml-frozen-v1.0.so");
    load_and_expect("ggml-frozen-v1.0.so", GGML_PLUGIN_STAGE_READY, GGML_HOST_OK);
    assert_non_null(ggml_backend_dev_by_name("FROZEN0"));
}

static void test_scanning_again_finds_what_came_and_went(void **state) {
    (void)state;
    size_t n_loaded = 0;
    add("ggml-marker.so");
    add("ggml-init_fails.so");
    add_as("ggml-other.so", "any-name.so");
    assert_int_equal(ggml_plugin_load(plugin_dir_path(&dir, "any-name.so"), NULL), GGML_HOST_OK);
    load_and_expect("ggml-marker.so", GGML_PLUGIN_STAGE_READY, GGML_HOST_OK);
    add("ggml-gpu.so");
    // Windows does not delete what is mapped.
    char old_path[600];
    snprintf(old_path, sizeof(old_path), "%s", plugin_dir_path(&dir, "ggml-marker.so"));
    assert_int_equal(rename(old_path, plugin_dir_path(&dir, "moved")), 0);
    remove(plugin_dir_path(&dir, "ggml-init_fails.so"));
    assert_int_equal(ggml_plugin_load_all(dir.path, &n_loaded), GGML_HOST_OK);
    assert_int_equal(n_loaded, 1);
    assert_non_null(ggml_backend_dev_by_name("GPU0"));
    assert_int_equal(plugin_dir_record(&dir, "ggml-gpu.so")->status, GGML_HOST_OK);
    assert_string_equal(plugin_dir_record(&dir, "any-name.so")->message, "");
    const struct ggml_plugin_record *gone = plugin_dir_record(&dir, "ggml-init_fails.so");
    assert_int_equal(gone->status, GGML_HOST_NOT_FOUND);
    assert_int_equal(gone->stage, GGML_PLUGIN_STAGE_FOUND);
    assert_non_null(strstr(gone->message, "went away"));
    // One in use stays in use, and says so.
    gone = plugin_dir_record(&dir, "ggml-marker.so");
    assert_int_equal(gone->status, GGML_HOST_OK);
    assert_non_null(gone->reg);
    assert_non_null(strstr(gone->message, "is gone"));
    add("ggml-marker.so");
    load_and_expect("ggml-marker.so", GGML_PLUGIN_STAGE_READY, GGML_HOST_OK);
    assert_string_equal(plugin_dir_record(&dir, "ggml-marker.so")->message, "");
}

static void test_load_by_path(void **state) {
    (void)state;
    ggml_backend_reg_t reg = NULL;
    ggml_backend_reg_t again = NULL;
    char path[600];
    add("ggml-marker.so");
    snprintf(path, sizeof(path), "%s", plugin_dir_path(&dir, "ggml-marker.so"));
    assert_int_equal(ggml_plugin_load(path, &reg), GGML_HOST_OK);
    assert_non_null(reg);
    assert_int_equal(ggml_plugin_load(path, &again), GGML_HOST_DUPLICATE);
    assert_ptr_equal(reg, again);
    assert_int_equal(find_record(path)->status, GGML_HOST_OK);
    assert_ptr_equal(ggml_backend_load(path), reg);
    assert_int_equal(ggml_plugin_unload(reg), GGML_HOST_OK);
    assert_int_equal(ggml_plugin_unload(reg), GGML_HOST_NOT_FOUND);
    assert_int_equal(ggml_plugin_unload(NULL), GGML_HOST_INVALID_ARGUMENT);
}

// As after an update that was cut short: what is in use stays so, and its record says what is wrong
// with the file.
static void test_a_second_load_that_fails_changes_nothing(void **state) {
    (void)state;
    ggml_backend_reg_t reg, again;
    size_t n_loaded = 7;
    char path[600];
    load_builtins();
    add("ggml-marker.so");
    snprintf(path, sizeof(path), "%s", plugin_dir_path(&dir, "ggml-marker.so"));
    assert_int_equal(ggml_plugin_load(path, &reg), GGML_HOST_OK);
    // Windows does not delete what is mapped.
    assert_int_equal(rename(path, plugin_dir_path(&dir, "moved")), 0);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fclose(file);
    assert_int_not_equal(ggml_plugin_load(path, &again), GGML_HOST_OK);
    assert_null(again);
    for (int i = 0; i < 2; ++i) {
        const struct ggml_plugin_record *record = find_record(path);
        assert_ptr_equal(record->reg, reg);
        assert_int_equal(record->status, GGML_HOST_OK);
        assert_int_equal(record->stage, GGML_PLUGIN_STAGE_READY);
        assert_non_null(strstr(record->message, "ggml-marker.so"));
        assert_int_equal(ggml_plugin_load_all(dir.path, &n_loaded), GGML_HOST_OK);
        assert_int_equal(n_loaded, 0);
    }
#ifndef _WIN32 // whose records say so until the plugin is unloaded
    // It is true of that file alone.
    assert_int_equal(remove(path), 0);
    assert_string_equal(find_record(path)->message, "");
    assert_int_equal(ggml_plugin_load_all(dir.path, &n_loaded), GGML_HOST_OK);
    assert_non_null(strstr(find_record(path)->message, "its file is gone"));
    assert_int_equal(rename(plugin_dir_path(&dir, "moved"), path), 0);
    assert_string_equal(find_record(path)->message, "");
#endif
    assert_int_equal(ggml_plugin_unload(reg), GGML_HOST_OK);
    assert_string_equal(find_record(path)->path, "");
}

#ifndef _WIN32 // whose linker knows libraries by their paths
// Records of plugins that run from this path.
static size_t count_running(const char *path, ggml_backend_reg_t reg) {
    ggml_plugin_report_t report = ggml_plugin_report_new();
    size_t count = 0;
    assert_non_null(report);
    for (size_t i = 0; i < ggml_plugin_report_count(report); ++i) {
        const struct ggml_plugin_record *record = ggml_plugin_report_get(report, i);
        count += strcmp(record->path, path) == 0 && record->reg == reg;
    }
    ggml_plugin_report_free(report);
    return count;
}

// As after an update to a plugin of another name: both run, and both have a record.
static void test_a_second_load_of_another_file_keeps_the_first_record(void **state) {
    (void)state;
    ggml_backend_reg_t first, second;
    char path[600];
    add("ggml-marker.so");
    add("ggml-other.so");
    snprintf(path, sizeof(path), "%s", plugin_dir_path(&dir, "ggml-marker.so"));
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(ggml_plugin_load(path, &first), GGML_HOST_OK);
        assert_int_equal(rename(path, plugin_dir_path(&dir, "moved")), 0);
        assert_int_equal(rename(plugin_dir_path(&dir, "ggml-other.so"), path), 0);
        assert_int_equal(ggml_plugin_load(path, &second), GGML_HOST_OK);
        assert_ptr_not_equal(second, first);
        assert_int_equal(count_running(path, first), 1);
        assert_int_equal(count_running(path, second), 1);
        assert_int_equal(ggml_plugin_unload(i == 0 ? first : second), GGML_HOST_OK);
        assert_int_equal(count_running(path, first), i);
        assert_int_equal(count_running(path, second), 1 - i);
        assert_int_equal(ggml_plugin_unload(i == 0 ? second : first), GGML_HOST_OK);
        assert_string_equal(find_record(path)->path, "");
        assert_int_equal(rename(path, plugin_dir_path(&dir, "ggml-other.so")), 0);
        assert_int_equal(rename(plugin_dir_path(&dir, "moved"), path), 0);
    }
}
#endif

static void test_a_relative_path_is_refused(void **state) {
    (void)state;
    ggml_backend_reg_t reg = NULL;
    assert_int_equal(ggml_plugin_load("ggml-marker.so", &reg), GGML_HOST_INVALID_ARGUMENT);
    assert_int_equal(ggml_plugin_load("", &reg), GGML_HOST_INVALID_ARGUMENT);
    assert_int_equal(ggml_plugin_load(NULL, &reg), GGML_HOST_INVALID_ARGUMENT);
    assert_int_equal(ggml_plugin_load("./ggml-marker.so", &reg), GGML_HOST_INVALID_ARGUMENT);
    assert_non_null(strstr(ggml_last_error(), "absolute"));
    assert_null(ggml_backend_load("../ggml-marker.so"));
    assert_int_equal(ggml_plugin_load(plugin_dir_path(&dir, "none.so"), &reg), GGML_HOST_NOT_FOUND);
    assert_null(reg);
}

static void test_a_path_of_5000_characters_is_refused(void **state) {
    (void)state;
    char path[5001];
    memset(path, 'x', sizeof(path) - 1);
    memcpy(path, plugin_dir_path(&dir, ""), strlen(dir.path) + 1);
    path[sizeof(path) - 1] = '\0';
    assert_int_not_equal(ggml_plugin_load(path, NULL), GGML_HOST_OK);
    assert_int_not_equal(ggml_plugin_load_all(path, NULL), GGML_HOST_OK);
    assert_int_equal(strlen(find_record(path)->path), 5000);
}

static void test_a_relative_or_missing_directory_is_refused(void **state) {
    (void)state;
    assert_int_equal(ggml_plugin_load_all("plugins", NULL), GGML_HOST_INVALID_ARGUMENT);
    assert_non_null(strstr(ggml_last_error(), "plugins"));
    assert_int_equal(ggml_plugin_load_all(plugin_dir_path(&dir, "none"), NULL),
                     GGML_HOST_NOT_FOUND);
    ggml_plugin_report_t report = ggml_plugin_report_new();
    bool relative = false;
    for (size_t i = 0; i < ggml_plugin_report_directory_count(report); ++i) {
        const struct ggml_plugin_directory *listed = ggml_plugin_report_directory_get(report, i);
        if (strcmp(listed->path, "plugins") != 0) continue;
        assert_string_equal(listed->origin, "caller");
        relative = listed->status == GGML_HOST_INVALID_ARGUMENT;
    }
    assert_true(relative);
    ggml_plugin_report_free(report);
}

static void test_backend_path_is_loaded_in_addition(void **state) {
    (void)state;
    add_as("ggml-marker.so", "any-name.so");
    setenv("GGML_BACKEND_PATH", plugin_dir_path(&dir, "any-name.so"), 1);
    load_and_expect("any-name.so", GGML_PLUGIN_STAGE_READY, GGML_HOST_OK);
    setenv("GGML_BACKEND_PATH", "any-name.so", 1);
    assert_int_equal(ggml_plugin_load_all(dir.path, NULL), GGML_HOST_OK);
    assert_int_equal(find_record("any-name.so")->status, GGML_HOST_INVALID_ARGUMENT);
}

static void test_plugin_path_is_searched(void **state) {
    (void)state;
    add("ggml-marker.so");
    setenv("GGML_PLUGIN_PATH", dir.path, 1);
    assert_int_equal(ggml_plugin_load_all(NULL, NULL), GGML_HOST_OK);
    assert_int_equal(plugin_dir_record(&dir, "ggml-marker.so")->status, GGML_HOST_OK);
}

// --- refused before any code runs ----------------------------------------------------------------

static void refuse_patched(size_t offset, const void *bytes, size_t size,
                           enum ggml_host_status status) {
    add("ggml-marker.so");
    plugin_dir_patch(&dir, "ggml-marker.so", offset, bytes, size);
    const struct ggml_plugin_record *record =
        load_and_expect("ggml-marker.so", GGML_PLUGIN_STAGE_NEGOTIATE, status);
    assert_string_not_equal(record->message, "");
    assert_false(plugin_dir_was_mapped(&dir, "marker"));
    assert_int_equal(ggml_plugin_load(plugin_dir_path(&dir, "ggml-marker.so"), NULL), status);
    assert_false(plugin_dir_was_mapped(&dir, "marker"));
}

static void test_the_marker_works(void **state) {
    (void)state;
    add("ggml-marker.so");
    load_and_expect("ggml-marker.so", GGML_PLUGIN_STAGE_READY, GGML_HOST_OK);
    assert_true(plugin_dir_was_mapped(&dir, "marker"));
}

static void test_a_newer_minor_never_runs(void **state) {
    (void)state;
    const uint16_t min_minor = GGML_CONTRACT_MINOR + 1;
    refuse_patched(offsetof(struct ggml_plugin_note, contract_min_minor), &min_minor,
                   sizeof(min_minor), GGML_HOST_WRONG_CONTRACT);
}

static void test_a_plugin_for_a_later_minor_that_needs_less_loads(void **state) {
    (void)state;
    const uint16_t minor = GGML_CONTRACT_MINOR + 7;
    add("ggml-marker.so");
    plugin_dir_patch(&dir, "ggml-marker.so", offsetof(struct ggml_plugin_note, contract_minor),
                     &minor, sizeof(minor));
    load_and_expect("ggml-marker.so", GGML_PLUGIN_STAGE_READY, GGML_HOST_OK);
}

static void test_another_major_never_runs(void **state) {
    (void)state;
    const uint16_t major = GGML_CONTRACT_MAJOR + 1;
    refuse_patched(offsetof(struct ggml_plugin_note, contract_major), &major, sizeof(major),
                   GGML_HOST_WRONG_CONTRACT);
}

static void test_a_foreign_machine_never_runs(void **state) {
    (void)state;
    const uint16_t machine = GGML_MACHINE_HERE == GGML_MACHINE_S390X ? 1 : GGML_MACHINE_S390X;
    refuse_patched(offsetof(struct ggml_plugin_note, machine), &machine, sizeof(machine),
                   GGML_HOST_WRONG_MACHINE);
}

static void test_an_absent_instruction_set_never_runs(void **state) {
    (void)state;
    const uint64_t features = UINT64_C(1) << 63;
    refuse_patched(offsetof(struct ggml_plugin_note, cpu_features), &features, sizeof(features),
                   GGML_HOST_MISSING_CPU_FEATURE);
}

static void test_another_layout_never_runs(void **state) {
    (void)state;
    const uint64_t hash = GGML_PLUGIN_LAYOUT_HASH + 1;
    refuse_patched(offsetof(struct ggml_plugin_note, layout_hash), &hash, sizeof(hash),
                   GGML_HOST_LAYOUT_MISMATCH);
}

static void test_a_hundred_unfit_files_are_never_mapped(void **state) {
    (void)state;
    const uint16_t major = GGML_CONTRACT_MAJOR + 1;
    char name[64];
    const size_t n_devices = load_builtins();
    for (int i = 0; i < 100; ++i) {
        snprintf(name, sizeof(name), "ggml-unfit%d.so", i);
        add_as("ggml-marker.so", name);
        plugin_dir_patch(&dir, name, offsetof(struct ggml_plugin_note, contract_major), &major,
                         sizeof(major));
    }
    load_and_expect("ggml-unfit99.so", GGML_PLUGIN_STAGE_NEGOTIATE, GGML_HOST_WRONG_CONTRACT);
    assert_false(plugin_dir_was_mapped(&dir, "marker"));
    assert_false(is_mapped("ggml-unfit"));
    assert_int_equal(ggml_backend_dev_count(), n_devices);
}

static void write_text(const char *file_name, const char *text) {
    FILE *file = fopen(plugin_dir_path(&dir, file_name), "wb");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void test_what_is_no_plugin_is_a_record(void **state) {
    (void)state;
    write_text("ggml-empty.so", "");
    write_text("ggml-text.so", "#!/bin/sh\necho hello\n");
    write_text("ggml-short.so", "\x7f"
                                "ELF");
    add("ggml-marker.so");
    load_and_expect("ggml-marker.so", GGML_PLUGIN_STAGE_READY, GGML_HOST_OK);
    assert_int_equal(plugin_dir_record(&dir, "ggml-text.so")->status, GGML_HOST_NOT_A_PLUGIN);
    assert_int_not_equal(plugin_dir_record(&dir, "ggml-empty.so")->status, GGML_HOST_OK);
    assert_int_equal(plugin_dir_record(&dir, "ggml-short.so")->contract_major, -1);
}

#ifndef _WIN32
static void test_what_is_no_file_is_a_record(void **state) {
    (void)state;
    assert_int_equal(mkfifo(plugin_dir_path(&dir, "ggml-fifo.so"), 0600), 0);
    assert_int_equal(mkdir(plugin_dir_path(&dir, "ggml-dir.so"), 0700), 0);
    assert_int_equal(symlink("nowhere", plugin_dir_path(&dir, "ggml-dangling.so")), 0);
    assert_int_equal(ggml_plugin_load_all(dir.path, NULL), GGML_HOST_OK);
    assert_int_equal(plugin_dir_record(&dir, "ggml-fifo.so")->status, GGML_HOST_NOT_A_PLUGIN);
    assert_int_equal(plugin_dir_record(&dir, "ggml-dir.so")->status, GGML_HOST_NOT_A_PLUGIN);
    assert_int_equal(plugin_dir_record(&dir, "ggml-dangling.so")->status, GGML_HOST_NOT_FOUND);
}
#endif

// --- refused later -------------------------------------------------------------------------------

struct refusal {
    const char *file_name;
    enum ggml_plugin_stage stage;
    enum ggml_host_status status;
    const char *word; // in the message
};

static void test_defective_plugins_are_undone(void **state) {
    (void)state;
    static const struct refusal refusals[] = {
        {"ggml-no_entry.so", GGML_PLUGIN_STAGE_MAP, GGML_HOST_NO_ENTRY, "ggml_backend_init"},
        {"ggml-init_fails.so", GGML_PLUGIN_STAGE_INIT, GGML_HOST_INIT_FAILED, "on strike"},
        {"ggml-no_table.so", GGML_PLUGIN_STAGE_VERIFY, GGML_HOST_BAD_PLUGIN, "table"},
        {"ggml-short_table.so", GGML_PLUGIN_STAGE_VERIFY, GGML_HOST_BAD_PLUGIN, "size"},
        {"ggml-old_api.so", GGML_PLUGIN_STAGE_VERIFY, GGML_HOST_BAD_PLUGIN, "no table"},
        {"ggml-no_reg_name.so", GGML_PLUGIN_STAGE_VERIFY, GGML_HOST_BAD_PLUGIN, "get_name"},
        {"ggml-no_supports_op.so", GGML_PLUGIN_STAGE_VERIFY, GGML_HOST_BAD_PLUGIN, "supports_op"},
        {"ggml-null_device.so", GGML_PLUGIN_STAGE_VERIFY, GGML_HOST_BAD_PLUGIN, "NULL"},
        {"ggml-same_names.so", GGML_PLUGIN_STAGE_VERIFY, GGML_HOST_BAD_PLUGIN, "same name"},
        {"ggml-bad_name.so", GGML_PLUGIN_STAGE_VERIFY, GGML_HOST_BAD_PLUGIN, "UTF-8"},
        {"ggml-no_devices.so", GGML_PLUGIN_STAGE_VERIFY, GGML_HOST_NO_DEVICE, "no device"},
        {"ggml-score_zero.so", GGML_PLUGIN_STAGE_VERIFY, GGML_HOST_UNSUPPORTED, "this machine"},
    };
    enum { N = sizeof(refusals) / sizeof(refusals[0]) };
    const size_t n_devices = load_builtins();
    for (int i = 0; i < N; ++i)
        add(refusals[i].file_name);
    for (int i = 0; i < N; ++i) {
        const struct ggml_plugin_record *record =
            load_and_expect(refusals[i].file_name, refusals[i].stage, refusals[i].status);
        assert_non_null(strstr(record->message, refusals[i].word));
        assert_false(is_mapped(refusals[i].file_name));
    }
    assert_int_equal(ggml_backend_dev_count(), n_devices);
}

static void test_devices_may_come_later(void **state) {
    (void)state;
    const size_t n_devices = load_builtins();
    add("ggml-later.so");
    load_and_expect("ggml-later.so", GGML_PLUGIN_STAGE_READY, GGML_HOST_OK);
    ggml_backend_reg_t reg = ggml_backend_reg_by_name("later");
    assert_non_null(reg);
    assert_int_equal(ggml_backend_reg_dev_count(reg), 0);
    assert_int_equal(ggml_backend_dev_count(), n_devices);
    ggml_backend_dev_t (*find)(void) = NULL;
    void *procedure = ggml_backend_reg_get_proc_address(reg, "find_device");
    assert_non_null(procedure);
    memcpy(&find, &procedure, sizeof(find));
    ggml_backend_device_register(find());
    assert_int_equal(ggml_backend_dev_count(), n_devices + 1);
    assert_ptr_equal(ggml_backend_dev_by_name("later0"), find());
}

#ifdef _WIN32
#define LIBRARY_ENDING "dll"
#else
#define LIBRARY_ENDING "so"
#endif

static void test_a_missing_dependency_is_named(void **state) {
    (void)state;
    add("ggml-needy.so");
    plugin_dir_replace(&dir, "ggml-needy.so", "libfixture-helper." LIBRARY_ENDING,
                       "libfixture-absent." LIBRARY_ENDING);
    const struct ggml_plugin_record *record =
        load_and_expect("ggml-needy.so", GGML_PLUGIN_STAGE_SELECT, GGML_HOST_MISSING_DEPENDENCY);
    assert_non_null(strstr(record->missing, "libfixture-absent." LIBRARY_ENDING));
    assert_non_null(strstr(record->message, "libfixture-absent." LIBRARY_ENDING));
    assert_false(plugin_dir_was_mapped(&dir, "needy"));
}

// --- selection -----------------------------------------------------------------------------------

static void test_the_best_variant_that_starts_wins(void **state) {
    (void)state;
    add("ggml-twin-a.so");
    add("ggml-twin-b.so");
    add("ggml-twin-c.so");
    load_and_expect("ggml-twin-c.so", GGML_PLUGIN_STAGE_INIT, GGML_HOST_INIT_FAILED);
    load_and_expect("ggml-twin-b.so", GGML_PLUGIN_STAGE_READY, GGML_HOST_OK);
    load_and_expect("ggml-twin-a.so", GGML_PLUGIN_STAGE_NEGOTIATE, GGML_HOST_SUPERSEDED);
    assert_true(plugin_dir_was_mapped(&dir, "twinc"));
    assert_true(plugin_dir_was_mapped(&dir, "twinb"));
    assert_false(plugin_dir_was_mapped(&dir, "twina"));
}

static void test_more_cpu_features_win_then_byte_order(void **state) {
    (void)state;
    add_as("ggml-twin-a.so", "ggml-twin-1.so");
    add_as("ggml-twin-a.so", "ggml-twin-2.so");
    add_as("ggml-twin-a.so", "ggml-twin-3.so");
    const uint64_t host = ggml_host_cpu_features();
    if (host == 0) return;
    const uint64_t one = host & (~host + 1);
    for (int i = 2; i <= 3; ++i) {
        plugin_dir_patch(&dir, i == 2 ? "ggml-twin-2.so" : "ggml-twin-3.so",
                         offsetof(struct ggml_plugin_note, cpu_features), &one, sizeof(one));
    }
    load_and_expect("ggml-twin-2.so", GGML_PLUGIN_STAGE_READY, GGML_HOST_OK);
    load_and_expect("ggml-twin-1.so", GGML_PLUGIN_STAGE_NEGOTIATE, GGML_HOST_SUPERSEDED);
    load_and_expect("ggml-twin-3.so", GGML_PLUGIN_STAGE_NEGOTIATE, GGML_HOST_SUPERSEDED);
}

#ifndef _WIN32
static void test_one_file_under_several_names_is_loaded_once(void **state) {
    (void)state;
    char path[600];
    add("ggml-marker.so");
    snprintf(path, sizeof(path), "%s", plugin_dir_path(&dir, "ggml-marker.so"));
    assert_int_equal(link(path, plugin_dir_path(&dir, "ggml-marker-hard.so")), 0);
    assert_int_equal(symlink(path, plugin_dir_path(&dir, "ggml-marker-soft.so")), 0);
    load_and_expect("ggml-marker-hard.so", GGML_PLUGIN_STAGE_READY, GGML_HOST_OK);
    load_and_expect("ggml-marker-soft.so", GGML_PLUGIN_STAGE_NOTE, GGML_HOST_DUPLICATE);
    load_and_expect("ggml-marker.so", GGML_PLUGIN_STAGE_NOTE, GGML_HOST_DUPLICATE);
    ggml_backend_reg_t reg = NULL;
    assert_int_equal(ggml_plugin_load(path, &reg), GGML_HOST_DUPLICATE);
    assert_ptr_equal(reg, ggml_backend_reg_by_name("marker"));
}
#endif

static void test_ggml_devices_filters_before_any_code_runs(void **state) {
    (void)state;
    add("ggml-marker.so");
    add("ggml-gpu.so");
    setenv("GGML_DEVICES", "gpu", 1);
    load_and_expect("ggml-gpu.so", GGML_PLUGIN_STAGE_READY, GGML_HOST_OK);
    load_and_expect("ggml-marker.so", GGML_PLUGIN_STAGE_NEGOTIATE, GGML_HOST_FILTERED);
    assert_false(plugin_dir_was_mapped(&dir, "marker"));
    unload_everything();
    setenv("GGML_DEVICES", "-gpu", 1);
    load_and_expect("ggml-gpu.so", GGML_PLUGIN_STAGE_NEGOTIATE, GGML_HOST_FILTERED);
    load_and_expect("ggml-marker.so", GGML_PLUGIN_STAGE_READY, GGML_HOST_OK);
}

static void test_ggml_devices_picks_devices(void **state) {
    (void)state;
    add("ggml-gpu.so");
    add("ggml-marker.so");
    setenv("GGML_DEVICES", "GPU0, 0000:00:02.0", 1);
    load_and_expect("ggml-gpu.so", GGML_PLUGIN_STAGE_READY, GGML_HOST_OK);
    load_and_expect("ggml-marker.so", GGML_PLUGIN_STAGE_VERIFY, GGML_HOST_FILTERED);
    ggml_backend_reg_t reg = ggml_backend_reg_by_name("gpu");
    assert_int_equal(ggml_backend_reg_dev_count(reg), 2);
    assert_ptr_equal(ggml_backend_reg_dev_get(reg, 0), ggml_backend_dev_by_name("GPU0"));
    assert_null(ggml_backend_reg_dev_get(reg, 2));
    assert_non_null(ggml_backend_dev_by_name("SHARED"));
    assert_null(ggml_backend_dev_by_name("GPU1"));
    unload_everything();
    setenv("GGML_DEVICES", "-0000:01:00.0", 1);
    load_and_expect("ggml-gpu.so", GGML_PLUGIN_STAGE_READY, GGML_HOST_OK);
    assert_null(ggml_backend_dev_by_name("GPU0"));
    assert_int_equal(ggml_backend_reg_dev_count(ggml_backend_reg_by_name("gpu")), 3);
}

static void add_as_cpu(const char *fixture) {
    add_as(fixture, "ggml-cpu.so");
    plugin_dir_patch(&dir, "ggml-cpu.so", offsetof(struct ggml_plugin_note, name), "cpu", 4);
}

static bool has_builtin_cpu(void) {
    size_t count;
    const struct builtin_plugin *plugins = builtin_plugins(&count);
    return count > 0 && strcmp(plugins[0].note->name, "cpu") == 0;
}

static void test_a_file_beats_the_built_in_of_its_name(void **state) {
    (void)state;
    add_as_cpu("ggml-marker.so");
    load_and_expect("ggml-cpu.so", GGML_PLUGIN_STAGE_READY, GGML_HOST_OK);
    if (!has_builtin_cpu()) return; // a build without it
    assert_int_equal(find_record("(built-in)")->status, GGML_HOST_SUPERSEDED);
}

static void test_a_built_in_that_is_in_use_stays(void **state) {
    (void)state;
    load_builtins();
    if (!has_builtin_cpu()) return; // a build without it
    add_as_cpu("ggml-marker.so");
    const struct ggml_plugin_record *record =
        load_and_expect("ggml-cpu.so", GGML_PLUGIN_STAGE_NEGOTIATE, GGML_HOST_SUPERSEDED);
    assert_non_null(strstr(record->message, "already in use"));
    assert_false(plugin_dir_was_mapped(&dir, "marker"));
}

static void test_the_built_in_replaces_a_file_that_fails(void **state) {
    (void)state;
    load_builtins();
    if (!has_builtin_cpu()) return; // a build without it
    unload_everything();
    add_as_cpu("ggml-init_fails.so");
    load_and_expect("ggml-cpu.so", GGML_PLUGIN_STAGE_INIT, GGML_HOST_INIT_FAILED);
    assert_int_equal(find_record("(built-in)")->status, GGML_HOST_OK);
}

static enum ggml_host_status inner_status;

static void load_from_a_callback(enum ggml_log_level level, const char *text, void *user_data) {
    (void)level;
    (void)user_data;
    if (strstr(text, "hello") == NULL) return;
    ggml_backend_dev_count();
    inner_status = ggml_plugin_load_all(dir.path, NULL);
}

static void test_a_callback_that_loads_is_refused(void **state) {
    (void)state;
    add("ggml-chatty.so");
    ggml_log_set(load_from_a_callback, NULL);
    load_and_expect("ggml-chatty.so", GGML_PLUGIN_STAGE_READY, GGML_HOST_OK);
    ggml_log_set(NULL, NULL);
    assert_int_equal(inner_status, GGML_HOST_BUSY);
}

static void test_a_plugin_without_a_name_goes_by_its_file(void **state) {
    (void)state;
    for (int i = 0; i < 2; ++i) {
        const char *file_name = i ? "ggml-first.so" : "ggml-second.so";
        add_as("ggml-marker.so", file_name);
        plugin_dir_patch(&dir, file_name, offsetof(struct ggml_plugin_note, name), "unnamed", 8);
    }
    load_and_expect("ggml-first.so", GGML_PLUGIN_STAGE_READY, GGML_HOST_OK);
    load_and_expect("ggml-second.so", GGML_PLUGIN_STAGE_READY, GGML_HOST_OK);
    assert_string_equal(plugin_dir_record(&dir, "ggml-second.so")->name, "second");
}

static void test_a_plugin_that_must_stay_stays_mapped(void **state) {
    (void)state;
    add("ggml-stays.so");
    load_and_expect("ggml-stays.so", GGML_PLUGIN_STAGE_READY, GGML_HOST_OK);
    assert_int_equal(ggml_plugin_unload(ggml_backend_reg_by_name("stays")), GGML_HOST_OK);
    assert_true(is_mapped("ggml-stays.so"));
    load_and_expect("ggml-stays.so", GGML_PLUGIN_STAGE_READY, GGML_HOST_OK);
}

#define HOST_TEST(name) cmocka_unit_test_setup_teardown(name, open_dir, close_dir)

int main(void) {
    const struct CMUnitTest tests[] = {
        HOST_TEST(test_the_skeleton_loads_and_leaves),
        HOST_TEST(test_a_second_load_all_loads_nothing),
        HOST_TEST(test_a_plugin_of_the_frozen_contract_loads),
        HOST_TEST(test_scanning_again_finds_what_came_and_went),
        HOST_TEST(test_load_by_path),
        HOST_TEST(test_computing_is_no_change_of_the_floats),
        HOST_TEST(test_a_second_load_that_fails_changes_nothing),
#ifndef _WIN32
        HOST_TEST(test_a_second_load_of_another_file_keeps_the_first_record),
#endif
        HOST_TEST(test_a_relative_path_is_refused),
        HOST_TEST(test_a_path_of_5000_characters_is_refused),
        HOST_TEST(test_a_relative_or_missing_directory_is_refused),
        HOST_TEST(test_backend_path_is_loaded_in_addition),
        HOST_TEST(test_plugin_path_is_searched),
        HOST_TEST(test_the_marker_works),
        HOST_TEST(test_a_newer_minor_never_runs),
        HOST_TEST(test_a_plugin_for_a_later_minor_that_needs_less_loads),
        HOST_TEST(test_another_major_never_runs),
        HOST_TEST(test_a_foreign_machine_never_runs),
        HOST_TEST(test_an_absent_instruction_set_never_runs),
        HOST_TEST(test_another_layout_never_runs),
        HOST_TEST(test_a_hundred_unfit_files_are_never_mapped),
        HOST_TEST(test_what_is_no_plugin_is_a_record),
#ifndef _WIN32
        HOST_TEST(test_what_is_no_file_is_a_record),
        HOST_TEST(test_one_file_under_several_names_is_loaded_once),
#endif
        HOST_TEST(test_defective_plugins_are_undone),
        HOST_TEST(test_devices_may_come_later),
        HOST_TEST(test_a_missing_dependency_is_named),
        HOST_TEST(test_the_best_variant_that_starts_wins),
        HOST_TEST(test_more_cpu_features_win_then_byte_order),
        HOST_TEST(test_ggml_devices_filters_before_any_code_runs),
        HOST_TEST(test_ggml_devices_picks_devices),
        HOST_TEST(test_a_file_beats_the_built_in_of_its_name),
        HOST_TEST(test_a_built_in_that_is_in_use_stays),
        HOST_TEST(test_the_built_in_replaces_a_file_that_fails),
        HOST_TEST(test_a_callback_that_loads_is_refused),
        HOST_TEST(test_a_plugin_without_a_name_goes_by_its_file),
        HOST_TEST(test_a_plugin_that_must_stay_stays_mapped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
