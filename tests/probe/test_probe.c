// SPDX-License-Identifier: MIT
// Probes in helper processes, with plugins that no process survives.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#ifdef __linux__
#include <sys/resource.h>
#include <sys/xattr.h>
#endif
#include <unistd.h>

#include <cmocka.h>

#include "base/sanitizer.h"
#include "base/status.h"
#include "plugin/probe/process/probe_process.h"
#include "support/plugin_dir.h"

enum { DEADLINE_MS = 2500, JOBS = 8 };

static struct plugin_dir dir;

static struct ggml_probe_options usual(void) {
    return (struct ggml_probe_options){
        .size = sizeof(struct ggml_probe_options),
        .dir = dir.path,
        .helper = HELPER,
        .flags = GGML_PROBE_NO_CACHE,
        .jobs = JOBS,
        .deadline_ms = DEADLINE_MS,
    };
}

static int open_dir(void **state) {
    (void)state;
    plugin_dir_open(&dir);
    return 0;
}

static int close_dir(void **state) {
    (void)state;
    plugin_dir_close(&dir);
    return 0;
}

static void add_from(const char *folder, const char *file_name) {
    char path[600];
    snprintf(path, sizeof(path), "%s/%s", folder, file_name);
    plugin_dir_add(&dir, path, file_name);
}

static ggml_probe_report_t probe(const struct ggml_probe_options *options) {
    ggml_probe_report_t report = NULL;
    const enum ggml_host_status status = ggml_plugin_probe(options, &report);
    if (status != GGML_HOST_OK) print_message("# %s\n", ggml_last_error());
    assert_int_equal(status, GGML_HOST_OK);
    assert_non_null(report);
    return report;
}

static const struct ggml_probe_record *find(ggml_probe_report_t report, const char *file_name) {
    for (size_t i = 0; i < ggml_probe_report_count(report); ++i) {
        const struct ggml_probe_record *record = ggml_probe_report_get(report, i);
        const char *slash = strrchr(record->plugin->path, '/');
        if (slash && strcmp(slash + 1, file_name) == 0) return record;
    }
    fail_msg("no record of %s", file_name);
    return NULL;
}

// The record of a plugin that was probed beside others. Where one that does end is said not to have
// answered in time, this machine was too slow for it: it is probed again, by itself and with more
// time, and *io_report is that report then.
static const struct ggml_probe_record *find_ended(ggml_probe_report_t *io_report,
                                                  const char *folder, const char *file_name,
                                                  enum ggml_host_status expected,
                                                  uint64_t memory_limit) {
    const struct ggml_probe_record *record = find(*io_report, file_name);
    if (expected == GGML_HOST_TIMED_OUT || record->plugin->status != GGML_HOST_TIMED_OUT)
        return record;
    print_message("# %s did not end in time, and is probed again\n", file_name);
    struct plugin_dir alone;
    char path[600];
    snprintf(path, sizeof(path), "%s/%s", folder, file_name);
    plugin_dir_open(&alone);
    plugin_dir_add(&alone, path, file_name);
    struct ggml_probe_options options = usual();
    options.dir = alone.path;
    options.deadline_ms = 60 * 1000;
    options.memory_limit = memory_limit;
    *io_report = probe(&options);
    plugin_dir_close(&alone);
    return find(*io_report, file_name);
}

static void assert_no_child(void) {
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

// --- single plugins ------------------------------------------------------------------------------

static const struct {
    const char *file;
    enum ggml_host_status status;
    enum ggml_plugin_stage stage;
    const char *words;
} cases[] = {
    {"ggml-no_habit.so", GGML_HOST_OK, GGML_PLUGIN_STAGE_READY, ""},
    {"ggml-endless_constructor.so", GGML_HOST_TIMED_OUT, GGML_PLUGIN_STAGE_SELECT, "mapped"},
    {"ggml-endless_init.so", GGML_HOST_TIMED_OUT, GGML_PLUGIN_STAGE_MAP, "ggml_backend_init"},
    {"ggml-endless_shutdown.so", GGML_HOST_TIMED_OUT, GGML_PLUGIN_STAGE_READY, "shutdown"},
    {"ggml-crash_constructor.so", GGML_HOST_CRASHED, GGML_PLUGIN_STAGE_SELECT, "signal 11"},
    {"ggml-crash_init.so", GGML_HOST_CRASHED, GGML_PLUGIN_STAGE_MAP, "signal 11"},
    {"ggml-abort_init.so", GGML_HOST_CRASHED, GGML_PLUGIN_STAGE_MAP, "signal 6"},
    {"ggml-crash_shutdown.so", GGML_HOST_CRASHED, GGML_PLUGIN_STAGE_READY, "in its shutdown"},
    {"ggml-exit_init.so", GGML_HOST_CRASHED, GGML_PLUGIN_STAGE_MAP, "exit status 0"},
    {"ggml-exit_constructor.so", GGML_HOST_CRASHED, GGML_PLUGIN_STAGE_SELECT, "exit status 0"},
    {"ggml-ignore_term.so", GGML_HOST_TIMED_OUT, GGML_PLUGIN_STAGE_MAP, "2.5 s"},
    {"ggml-grandchild.so", GGML_HOST_OK, GGML_PLUGIN_STAGE_READY, ""},
    {"ggml-grandchild_session.so", GGML_HOST_OK, GGML_PLUGIN_STAGE_READY, ""},
    {"ggml-grandchild_only.so", GGML_HOST_CRASHED, GGML_PLUGIN_STAGE_MAP, "exit status 0"},
    {"ggml-own_session.so", GGML_HOST_OK, GGML_PLUGIN_STAGE_READY, ""}, // F21
    {"ggml-flood.so", GGML_HOST_BAD_PLUGIN, GGML_PLUGIN_STAGE_MAP, "not its own"},
    {"ggml-forge.so", GGML_HOST_BAD_PLUGIN, GGML_PLUGIN_STAGE_MAP, "not its own"},
    {"ggml-close_all.so", GGML_HOST_CRASHED, GGML_PLUGIN_STAGE_MAP, "could not answer"},
#ifndef EMULATED // by a tracer, which wakes what stopped and knows no limit of memory
    {"ggml-stop.so", GGML_HOST_TIMED_OUT, GGML_PLUGIN_STAGE_MAP, "2.5 s"},
#if !GGML_SANITIZED
    {"ggml-memory.so", GGML_HOST_CRASHED, GGML_PLUGIN_STAGE_MAP, "signal"},
#endif
#endif
    {"ggml-fork_both.so", GGML_HOST_OK, GGML_PLUGIN_STAGE_READY, ""},
};
enum { N_CASES = sizeof(cases) / sizeof(cases[0]) };

// The one inequality that is promised, with all of them at once.
static void test_all_habits_together_are_told_in_time(void **state) {
    (void)state;
    struct ggml_probe_options options = usual();
    options.memory_limit = UINT64_C(128) << 20;
    for (size_t i = 0; i < N_CASES; ++i)
        add_from(PLUGINS, cases[i].file);
    const size_t n_files = count_open_files();
    const int64_t start = ggml_time_us();
    ggml_probe_report_t report = probe(&options);
    const double seconds = (double)(ggml_time_us() - start) * 1e-6;
    print_message("# %zu candidates in %.2f s\n", (size_t)N_CASES, seconds);
    assert_true(seconds < (double)N_CASES * DEADLINE_MS / 1000.0 / JOBS + 1.0);
    assert_int_equal(count_open_files(), n_files);
    assert_no_child();
    assert_string_equal(ggml_probe_report_not_isolated(report), "");
    for (size_t i = 0; i < N_CASES; ++i) {
        ggml_probe_report_t last = report;
        const struct ggml_probe_record *record =
            find_ended(&last, PLUGINS, cases[i].file, cases[i].status, options.memory_limit);
        print_message("# %s: %s: %s\n", cases[i].file,
                      ggml_host_status_text(record->plugin->status), record->plugin->message);
        assert_int_equal(record->plugin->status, cases[i].status);
        assert_int_equal(record->plugin->stage, cases[i].stage);
        assert_non_null(strstr(record->plugin->message, cases[i].words));
        assert_int_equal(record->source, GGML_PROBE_SOURCE_HELPER);
        assert_null(record->plugin->reg);
        if (last != report) ggml_probe_report_free(last);
    }
    ggml_probe_report_free(report);
}

static size_t add_defective(void) {
    size_t n = 0;
    DIR *stream = opendir(FIXTURES "/defective");
    assert_non_null(stream);
    for (const struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        const size_t length = strlen(entry->d_name);
        if (length < 3 || strcmp(entry->d_name + length - 3, ".so") != 0) continue;
        if (strncmp(entry->d_name, "ggml-", 5) != 0) continue;
        add_from(FIXTURES "/defective", entry->d_name);
        ++n;
    }
    closedir(stream);
    return n;
}

static void test_the_defective_plugins_together(void **state) {
    static const struct {
        const char *file;
        enum ggml_host_status status;
    } known[] = {
        {"ggml-defect-init_hangs.so", GGML_HOST_TIMED_OUT},
        {"ggml-defect-shutdown_hangs.so", GGML_HOST_TIMED_OUT},
        {"ggml-defect-init_crashes.so", GGML_HOST_CRASHED},
        {"ggml-defect-init_exits.so", GGML_HOST_CRASHED},
        {"ggml-defect-table_short.so", GGML_HOST_BAD_PLUGIN},
        {"ggml-defect-note_magic.so", GGML_HOST_DAMAGED_FILE},
        {"ggml-defect-init_fails.so", GGML_HOST_INIT_FAILED},
    };
    (void)state;
    const size_t n = add_defective();
    add_from(PLUGINS, "ggml-no_habit.so");
    assert_true(n > sizeof(known) / sizeof(known[0]));
    const size_t n_files = count_open_files();
    const struct ggml_probe_options options = usual();
    const int64_t start = ggml_time_us();
    ggml_probe_report_t report = probe(&options);
    const double seconds = (double)(ggml_time_us() - start) * 1e-6;
    print_message("# %zu candidates in %.2f s\n", n + 1, seconds);
    assert_true(seconds < (double)(n + 1) * DEADLINE_MS / 1000.0 / JOBS + 1.0);
    assert_int_equal(count_open_files(), n_files);
    assert_no_child();
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); ++i) {
        ggml_probe_report_t last = report;
        const struct ggml_probe_record *record =
            find_ended(&last, FIXTURES "/defective", known[i].file, known[i].status, 0);
        assert_int_equal(record->plugin->status, known[i].status);
        if (last != report) ggml_probe_report_free(last);
    }
    for (size_t i = 0; i < ggml_probe_report_count(report); ++i) {
        const struct ggml_plugin_record *record = ggml_probe_report_get(report, i)->plugin;
        if (record->status != GGML_HOST_OK) assert_string_not_equal(record->message, "");
    }
    ggml_probe_report_t last = report;
    const struct ggml_probe_record *good =
        find_ended(&last, PLUGINS, "ggml-no_habit.so", GGML_HOST_OK, 0);
    assert_int_equal(good->plugin->status, GGML_HOST_OK);
    if (last != report) ggml_probe_report_free(last);
    ggml_probe_report_free(report);
}

// F19 of a security review: what is free is part of what there is, whatever a plugin says.
static void test_f19_no_more_memory_is_free_than_there_is(void **state) {
    (void)state;
    const struct ggml_probe_options options = usual();
    add_from(PLUGINS, "ggml-escapes.so");
    ggml_probe_report_t report = probe(&options);
    const struct ggml_probe_device *device = ggml_probe_report_device_get(report, 0);
    assert_non_null(device);
    assert_true(device->props.memory_total == SIZE_MAX / 2 + 6);
    assert_true(device->props.memory_free == device->props.memory_total);
    ggml_probe_report_free(report);
}

static void test_a_good_plugin_is_described_without_being_mapped(void **state) {
    (void)state;
    const struct ggml_probe_options options = usual();
    add_from(PLUGINS, "ggml-no_habit.so");
    const size_t n_devices = ggml_backend_dev_count();
    ggml_probe_report_t report = probe(&options);
    const struct ggml_probe_device *device = ggml_probe_report_device_get(report, 0);
    assert_non_null(device);
    assert_string_equal(device->props.name, "PROBED0");
    assert_string_equal(device->props.description, "A device to be found");
    assert_string_equal(device->props.device_id, "0000:0a:00.0");
    assert_int_equal(device->props.type, GGML_BACKEND_DEVICE_TYPE_GPU);
    assert_int_equal(device->props.memory_free, 1u << 20);
    assert_int_equal(device->props.memory_total, 3u << 20);
    assert_int_equal(device->memory, GGML_MEMORY_KNOWN);
    assert_true(device->props.caps.async && device->props.caps.events);
    assert_false(device->props.caps.host_buffer);
    assert_true(device->alias_of == SIZE_MAX);
    const struct ggml_probe_record *record = ggml_probe_report_get(report, device->record);
    assert_string_equal(record->plugin->name, "no_habit");
    assert_string_equal(record->plugin->version, "1.2");
    assert_true(record->probed_at > 0);
    assert_int_equal(ggml_backend_dev_count(), n_devices);
    assert_false(is_mapped("ggml-no_habit.so"));
    ggml_probe_report_free(report);
}

// --- like the registry ---------------------------------------------------------------------------

static void compare_devices(ggml_probe_report_t report) {
    assert_int_equal(ggml_probe_report_device_count(report), ggml_backend_dev_count());
    for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
        const struct ggml_probe_device *device = ggml_probe_report_device_get(report, i);
        struct ggml_device_info info = {.size = sizeof(info)};
        ggml_backend_dev_t loaded = ggml_backend_dev_get(i);
        ggml_backend_dev_info(loaded, &info);
        assert_string_equal(device->props.name, ggml_backend_dev_name(loaded));
        assert_int_equal(device->props.type, ggml_backend_dev_type(loaded));
        assert_int_equal(device->alias_of != SIZE_MAX, info.alias_of != NULL);
        if (!info.alias_of) continue;
        assert_string_equal(ggml_probe_report_device_get(report, device->alias_of)->props.name,
                            ggml_backend_dev_name(info.alias_of));
    }
}

static void compare_records(ggml_probe_report_t report) {
    ggml_plugin_report_t loaded = ggml_plugin_report_new();
    for (size_t i = 0; i < ggml_plugin_report_count(loaded); ++i) {
        const struct ggml_plugin_record *expected = ggml_plugin_report_get(loaded, i);
        if (!strchr(expected->path, '/')) continue;
        const struct ggml_plugin_record *record =
            find(report, strrchr(expected->path, '/') + 1)->plugin;
        assert_int_equal(record->status, expected->status);
        assert_string_equal(record->name, expected->name);
        assert_string_equal(record->variant, expected->variant);
        assert_int_equal(record->contract_major, expected->contract_major);
        if (record->status == GGML_HOST_SUPERSEDED) continue; // "would be loaded"
        assert_string_equal(record->message, expected->message);
        assert_int_equal(record->stage, expected->stage);
    }
    ggml_plugin_report_free(loaded);
}

static void test_a_probe_answers_what_loading_would(void **state) {
    static const char *const files[] = {
        "ggml-gpu.so",        "ggml-other.so",    "ggml-twin-a.so",     "ggml-twin-b.so",
        "ggml-twin-c.so",     "ggml-no_table.so", "ggml-init_fails.so", "ggml-score_zero.so",
        "ggml-no_devices.so", "ggml-old_api.so",  "ggml-same_names.so", "ggml-no_entry.so",
        "ggml-later.so",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); ++i)
        add_from(FIXTURES, files[i]);
    FILE *text = fopen(plugin_dir_path(&dir, "ggml-text.so"), "w");
    assert_non_null(text);
    fputs("no plugin\n", text);
    fclose(text);
    const struct ggml_probe_options options = usual();
    ggml_probe_report_t report = probe(&options);
    assert_int_equal(find(report, "ggml-text.so")->source, GGML_PROBE_SOURCE_FILE);
    assert_int_equal(find(report, "ggml-text.so")->plugin->status, GGML_HOST_NOT_A_PLUGIN);
    assert_false(is_mapped("ggml-gpu.so"));

    assert_int_equal(ggml_plugin_load_all(dir.path, NULL), GGML_HOST_OK);
    compare_devices(report);
    compare_records(report);
    ggml_probe_report_free(report);
    report = probe(&options); // of what is loaded
    assert_int_equal(find(report, "ggml-gpu.so")->source, GGML_PROBE_SOURCE_PROCESS);
    compare_devices(report);
    ggml_probe_report_free(report);
    unload_everything();
}

static void test_what_a_good_plugin_warns_of_is_in_its_record(void **state) {
    (void)state;
    const struct ggml_probe_options options = usual();
    add_from(FIXTURES, "ggml-chatty.so");
    ggml_probe_report_t report = probe(&options);
    const struct ggml_plugin_record *record = ggml_probe_report_get(report, 0)->plugin;
    assert_int_equal(record->status, GGML_HOST_OK);
    assert_string_equal(record->message, "the driver is old and slow; one device was left out");
    ggml_probe_report_free(report);
}

static void test_filter_hides_plugins_and_devices(void **state) {
    (void)state;
    const struct ggml_probe_options options = usual();
    add_from(FIXTURES, "ggml-gpu.so");
    add_from(FIXTURES, "ggml-other.so");
    setenv("GGML_DEVICES", "OTHER1", 1);
    ggml_probe_report_t report = probe(&options);
    unsetenv("GGML_DEVICES");
    assert_int_equal(ggml_probe_report_device_count(report), 1);
    assert_string_equal(ggml_probe_report_device_get(report, 0)->props.name, "OTHER1");
    ggml_probe_report_free(report);
}

// --- loading what probed well --------------------------------------------------------------------

static void test_only_what_probed_well_is_loaded(void **state) {
    (void)state;
    size_t n_loaded = 0;
    const struct ggml_probe_options options = usual();
    add_from(PLUGINS, "ggml-no_habit.so");
    add_from(PLUGINS, "ggml-crash_init.so");
    add_from(FIXTURES, "ggml-gpu.so");
    ggml_probe_report_t report = probe(&options);
    assert_int_equal(chmod(plugin_dir_path(&dir, "ggml-gpu.so"), 0700), 0);
    plugin_dir_replace(&dir, "ggml-gpu.so", "GPU1", "GPU7");
    assert_int_equal(ggml_plugin_load_probed(report, &n_loaded), GGML_HOST_OK);
    assert_int_equal(n_loaded, 1);
    assert_non_null(ggml_backend_dev_by_name("PROBED0"));
    assert_null(ggml_backend_dev_by_name("GPU0"));
    assert_int_equal(plugin_dir_record(&dir, "ggml-crash_init.so")->status, GGML_HOST_CRASHED);
    assert_non_null(strstr(plugin_dir_record(&dir, "ggml-gpu.so")->message, "changed"));
    ggml_probe_report_free(report);
    unload_everything();
}

// --- without a helper ----------------------------------------------------------------------------

static char logged[4096];

static void remember(enum ggml_log_level level, const char *text, void *context) {
    (void)context;
    if (level == GGML_LOG_LEVEL_WARN) snprintf(logged, sizeof(logged), "%s", text);
}

static void probe_without(const char *helper, const char *words) {
    struct ggml_probe_options options = usual();
    options.helper = helper;
    logged[0] = '\0';
    ggml_log_set(remember, NULL);
    ggml_probe_report_t report = probe(&options);
    ggml_log_set(NULL, NULL);
    assert_non_null(strstr(ggml_probe_report_not_isolated(report), words));
    assert_non_null(strstr(logged, words));
    assert_int_equal(find(report, "ggml-gpu.so")->source, GGML_PROBE_SOURCE_PROCESS);
    assert_int_equal(find(report, "ggml-gpu.so")->plugin->status, GGML_HOST_OK);
    assert_string_equal(ggml_probe_report_device_get(report, 0)->props.name, "GPU0");
    assert_false(is_mapped("ggml-gpu.so"));
    ggml_probe_report_free(report);
    options.flags |= GGML_PROBE_ISOLATED_ONLY;
    report = probe(&options);
    assert_int_equal(find(report, "ggml-gpu.so")->plugin->status, GGML_HOST_UNSUPPORTED);
    assert_non_null(strstr(find(report, "ggml-gpu.so")->plugin->message, words));
    ggml_probe_report_free(report);
}

static void write_script(const char *file_name, const char *text, mode_t mode) {
    const char *path = plugin_dir_path(&dir, file_name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(chmod(path, mode), 0);
}

static void test_without_a_helper_this_process_probes_and_says_so(void **state) {
    (void)state;
    char path[600];
    const char *given = getenv("GGML_ALLOW_UNSAFE_PLUGINS");
    char *unsafe = given ? strdup(given) : NULL;
    add_from(FIXTURES, "ggml-gpu.so");
    probe_without("/nonexistent/ggml-probe", "no helper program");
    write_script("helper", "#!/bin/sh\nexit 0\n", 0700);
    snprintf(path, sizeof(path), "%s", plugin_dir_path(&dir, "helper"));
    probe_without(path, "does not work");
    write_script("helper", "#!/bin/sh\nexit 0\n", 0722);
    unsetenv("GGML_ALLOW_UNSAFE_PLUGINS");
    probe_without(path, "can't be trusted");
    if (unsafe) setenv("GGML_ALLOW_UNSAFE_PLUGINS", unsafe, 1);
#ifndef EMULATED // which starts the interpreter itself
    write_script("helper", "#!/nonexistent/interpreter\n", 0700);
    probe_without(path, "can't be started");
#endif
    write_script("helper", "#!/bin/sh\nexit 0\n", 0600);
    probe_without(path, "no helper program");
    free(unsafe);
    assert_no_child();
}

static void test_in_process_on_request(void **state) {
    (void)state;
    struct ggml_probe_options options = usual();
    add_from(FIXTURES, "ggml-gpu.so");
    options.flags = GGML_PROBE_IN_PROCESS;
    ggml_probe_report_t report = probe(&options);
    assert_string_equal(ggml_probe_report_not_isolated(report), "");
    assert_int_equal(find(report, "ggml-gpu.so")->source, GGML_PROBE_SOURCE_PROCESS);
    ggml_probe_report_free(report);
}

// --- unusual processes ---------------------------------------------------------------------------

// With its own standard streams closed, and children collected by nobody or somebody else.
static void test_a_process_without_streams_that_ignores_its_children(void **state) {
    (void)state;
    const struct ggml_probe_options options = usual();
    add_from(PLUGINS, "ggml-no_habit.so");
    add_from(PLUGINS, "ggml-crash_init.so");
    fflush(stdout);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        ggml_probe_report_t report = NULL;
        for (int fd = 0; fd < 3; ++fd)
            close(fd);
        signal(SIGCHLD, SIG_IGN);
        alarm(30);
        if (ggml_plugin_probe(&options, &report) != GGML_HOST_OK) _exit(1);
        if (find(report, "ggml-no_habit.so")->plugin->status != GGML_HOST_OK) _exit(2);
        if (find(report, "ggml-crash_init.so")->plugin->status != GGML_HOST_CRASHED) _exit(3);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

// F22 of a security review: where children are collected without being asked for, the helper's
// number may have become somebody else's.
static void test_f22_no_stranger_is_killed(void **state) {
    (void)state;
    int ends[2], status = 0;
    pid_t stranger = 0;
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        stranger = fork(); // no child of ours
        if (stranger == 0) {
            alarm(20);
            pause();
            _exit(0);
        }
        const ssize_t n = write(ends[1], &stranger, sizeof(stranger));
        (void)n;
        waitpid(stranger, &status, 0);
        _exit(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM ? 0 : 1);
    }
    assert_int_equal(read(ends[0], &stranger, sizeof(stranger)), sizeof(stranger));
    struct probe_process process = {.pid = stranger, .fd = -1};
    struct probe_exit how;
    probe_process_end(&process, &how);
    assert_false(how.known);
    kill(stranger, SIGTERM);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    close(ends[0]);
    close(ends[1]);
}

#ifdef __linux__
// How many processes run that this one's child, the application, started in a session of its own
// (the helper, its watcher and what is in its session), or that are in `session` if that is not 0.
static int count_family(pid_t application, pid_t *session) {
    DIR *stream = opendir("/proc");
    int count = 0;
    assert_non_null(stream);
    for (const struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        char path[300], text[512], condition = 'X';
        int parent = 0, group = 0, own_session = 0;
        snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
        FILE *file = atoi(entry->d_name) > 0 ? fopen(path, "r") : NULL;
        const char *line = file ? fgets(text, sizeof(text), file) : NULL;
        const char *rest = line ? strrchr(line, ')') : NULL;
        if (file) fclose(file);
        if (!rest || sscanf(rest, ") %c %d %d %d", &condition, &parent, &group, &own_session) != 4)
            continue;
        if (*session == 0 && parent == application && own_session == atoi(entry->d_name))
            *session = own_session;
        count += *session != 0 && own_session == *session && condition != 'Z' && condition != 'X';
    }
    closedir(stream);
    return count;
}

// Within 10 s, half of what the plugins give their processes, which end by themselves then.
static bool family_becomes(pid_t application, pid_t *session, int count) {
    const struct timespec moment = {.tv_nsec = 10000000};
    for (const int64_t start = ggml_time_us(); ggml_time_us() - start < 10000000;
         nanosleep(&moment, NULL))
        if (count_family(application, session) == count) return true;
    return false;
}

// F21 of a security review: what a plugin started outlived the application that was killed. The
// helper itself is stopped, and is stopped again whenever something lets it go on.
static void test_f21_nothing_outlives_a_killed_application(void **state) {
    (void)state;
    static const int signals[] = {SIGKILL, SIGTERM};
    add_from(PLUGINS, "ggml-family.so");
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); ++i) {
        pid_t session = 0;
        const pid_t application = fork();
        if (application == 0) {
            struct ggml_probe_options options = usual();
            options.deadline_ms = 15000;
            if (i > 0) options.flags |= GGML_PROBE_NO_SANDBOX;
            _exit(ggml_probe_report_device_count(probe(&options)) > 0);
        }
        assert_true(family_becomes(application, &session, 3));
        kill(application, signals[i]);
        assert_int_equal(waitpid(application, NULL, 0), application);
        assert_true(family_becomes(application, &session, 0));
    }
}

// A helper as `request` asks for it; answer[1] is its end.
static long spawn_helper(const struct probe_request *request, const int answer[2]) {
    const char *const arguments[] = {"ggml-probe", "/nonexistent/ggml-none.so", NULL};
    unsigned char bytes[PROBE_REQUEST_SIZE];
    int question[2];
    long pid = -1;
    probe_request_write(request, bytes);
    if (pipe(question) != 0 || write(question[1], bytes, sizeof(bytes)) != sizeof(bytes)) return -1;
    const struct probe_descriptor given[] = {
        {question[0], 0}, {-1, 1}, {-1, 2}, {answer[1], PROBE_ANSWER_FD}};
    const int error = probe_process_spawn(HELPER, arguments, given, 4, &pid);
    close(question[0]);
    close(question[1]);
    return error == 0 ? pid : -1;
}

// Whether the process limited itself, which it does once it will end with its parent.
static bool limits_itself(pid_t process) {
    const struct timespec moment = {.tv_nsec = 10000000};
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    for (int i = 0; i < 3000 && limit.rlim_max != 256 << 20; ++i, nanosleep(&moment, NULL))
        prlimit(process, RLIMIT_FSIZE, NULL, &limit);
    return limit.rlim_max == 256 << 20;
}

// F21: the same before the helper watches for the application's end. Its first words wait for room,
// which nobody makes; the end that is read from stays open, as where the application has forked.
static void test_f21_nor_a_helper_that_has_just_begun(void **state) {
    (void)state;
    int answer[2];
    char page[4096] = "";
    pid_t session = 0;
    assert_int_equal(pipe2(answer, O_CLOEXEC), 0);
    assert_int_equal(fcntl(answer[1], F_SETPIPE_SZ, sizeof(page)), sizeof(page));
    assert_int_equal(write(answer[1], page, sizeof(page)), sizeof(page));
    const pid_t application = fork();
    if (application == 0) {
        const struct probe_request request = {.parent = (uint32_t)getpid()};
        if (spawn_helper(&request, answer) < 0) _exit(1);
        pause();
    }
    assert_true(family_becomes(application, &session, 1));
    assert_true(limits_itself(session));
    kill(application, SIGKILL);
    assert_int_equal(waitpid(application, NULL, 0), application);
    assert_true(family_becomes(application, &session, 0));
    close(answer[0]);
    close(answer[1]);
}

// F21: and one whose application ended before it asked to end with it says and does nothing.
static void test_f21_nor_one_that_came_too_late(void **state) {
    (void)state;
    const struct probe_request request = {.parent = (uint32_t)getppid()}; // not its parent
    int answer[2], status = 0;
    char byte;
    assert_int_equal(pipe2(answer, O_CLOEXEC), 0);
    const long helper = spawn_helper(&request, answer);
    close(answer[1]);
    assert_int_equal(waitpid((pid_t)helper, &status, 0), helper);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), PROBE_EXIT_NO_ANSWER);
    assert_int_equal(read(answer[0], &byte, 1), 0);
    close(answer[0]);
}

// A control group that says it is ours, as systemd's Delegate= makes one. False where none can be
// made: that takes root and a writable hierarchy of version 2.
static bool make_group(char *folder, size_t size) {
    static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    char file[300];
    for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); ++i) {
        snprintf(folder, size, "%s/ggml-test-%ld", mounts[i], (long)getpid());
        snprintf(file, sizeof(file), "%s/cgroup.kill", folder);
        if (mkdir(folder, S_IRWXU) != 0) continue;
        if (access(file, W_OK) == 0 && setxattr(folder, "user.delegate", "1", 1, 0) == 0)
            return true;
        rmdir(folder);
    }
    return false;
}

static bool enter_group(const char *folder) {
    char file[300];
    snprintf(file, sizeof(file), "%s/cgroup.procs", folder);
    FILE *stream = fopen(file, "w");
    return stream && fputs("0", stream) >= 0 && fclose(stream) == 0;
}

static bool has_processes(const char *folder) {
    char file[300], text[256] = "";
    snprintf(file, sizeof(file), "%s/cgroup.events", folder);
    FILE *stream = fopen(file, "r");
    if (stream) text[fread(text, 1, sizeof(text) - 1, stream)] = '\0';
    if (stream) fclose(stream);
    return strstr(text, "populated 1") != NULL;
}

// How many processes there are in the groups of helpers within it, and how many such groups.
static int count_helped(const char *folder, int *out_groups) {
    int count = 0;
    DIR *stream = opendir(folder);
    assert_non_null(stream);
    *out_groups = 0;
    for (const struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        char file[600], line[32];
        if (strncmp(entry->d_name, "ggml-helper-", 12) != 0) continue;
        ++*out_groups;
        snprintf(file, sizeof(file), "%s/%s/cgroup.procs", folder, entry->d_name);
        FILE *members = fopen(file, "r");
        while (members && fgets(line, sizeof(line), members))
            ++count;
        if (members) fclose(members);
    }
    closedir(stream);
    return count;
}

static pid_t probe_in_group(const char *folder) {
    const pid_t application = fork();
    if (application == 0) {
        const struct ggml_probe_options options = usual();
        alarm(20);
        _exit(enter_group(folder) && probe(&options) ? 0 : 1);
    }
    return application;
}

// F20 and F21: what a plugin starts in a session of its own does not outlive its helper, nor that
// the application.
static void test_f21_a_control_group_holds_what_left_its_session(void **state) {
    (void)state;
    const struct timespec moment = {.tv_nsec = 10000000};
    char folder[256];
    int status = -1, n_groups = 0;
    if (!make_group(folder, sizeof(folder))) {
        print_message("# left out: no group of processes can be made here\n");
        return;
    }
    add_from(PLUGINS, "ggml-grandchild_session.so");
    pid_t application = probe_in_group(folder);
    assert_int_equal(waitpid(application, &status, 0), application);
    assert_int_equal(status, 0);
    assert_false(has_processes(folder));
    count_helped(folder, &n_groups);
    assert_int_equal(n_groups, 0);

    plugin_dir_close(&dir);
    plugin_dir_open(&dir);
    add_from(PLUGINS, "ggml-family_session.so");
    application = probe_in_group(folder);
    for (int i = 0; i < 500 && count_helped(folder, &n_groups) != 3; ++i)
        nanosleep(&moment, NULL);
    assert_int_equal(count_helped(folder, &n_groups), 3);
    kill(application, SIGKILL);
    assert_int_equal(waitpid(application, NULL, 0), application);
    for (int i = 0; i < 500 && has_processes(folder); ++i)
        nanosleep(&moment, NULL);
    assert_false(has_processes(folder));

    plugin_dir_close(&dir); // the next helper removes what the killed application could not
    plugin_dir_open(&dir);
    add_from(PLUGINS, "ggml-no_habit.so");
    application = probe_in_group(folder);
    assert_int_equal(waitpid(application, &status, 0), application);
    assert_int_equal(status, 0);
    assert_int_equal(rmdir(folder), 0);
}
#endif

static void *probe_in_thread(void *good) {
    const struct ggml_probe_options options = usual();
    ggml_probe_report_t report = NULL;
    const enum ggml_host_status status = ggml_plugin_probe(&options, &report);
    *(bool *)good = status == GGML_HOST_OK && ggml_probe_report_device_count(report) >= 4 &&
                    ggml_probe_report_not_isolated(report)[0] == '\0';
    ggml_probe_report_free(report);
    return NULL;
}

static void test_threads_probe_at_once(void **state) {
    enum { N_THREADS = 6 };
    (void)state;
    pthread_t threads[N_THREADS];
    bool good[N_THREADS] = {false};
    add_from(FIXTURES, "ggml-gpu.so");
    add_from(PLUGINS, "ggml-crash_init.so");
    const size_t n_files = count_open_files();
    for (int i = 0; i < N_THREADS; ++i)
        assert_int_equal(pthread_create(&threads[i], NULL, probe_in_thread, &good[i]), 0);
    for (int i = 0; i < N_THREADS; ++i)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < N_THREADS; ++i)
        assert_true(good[i]);
    assert_int_equal(count_open_files(), n_files);
    assert_no_child();
}

// A descriptor that the application forgot to close on exec is not the plugin's.
static void test_a_helper_inherits_no_descriptor(void **state) {
    (void)state;
    char text[64] = "";
    int ends[2];
    const struct ggml_probe_options options = usual();
    add_from(PLUGINS, "ggml-flood.so");
    assert_int_equal(pipe(ends), 0);
    ggml_probe_report_free(probe(&options));
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(read(ends[0], text, sizeof(text)), -1);
    close(ends[0]);
    close(ends[1]);
}

// --- arguments -----------------------------------------------------------------------------------

static void count_progress(void *user_data, size_t done, size_t total, const char *path) {
    size_t *n = user_data;
    assert_int_equal(done, ++*n);
    assert_int_equal(total, 2);
    assert_non_null(strstr(path, ".so"));
}

static void test_progress_is_told_once_per_candidate(void **state) {
    (void)state;
    size_t n = 0;
    struct ggml_probe_options options = usual();
    add_from(FIXTURES, "ggml-gpu.so");
    add_from(FIXTURES, "ggml-other.so");
    options.progress = count_progress;
    options.user_data = &n;
    ggml_probe_report_free(probe(&options));
    assert_int_equal(n, 2);
}

static void test_bad_arguments(void **state) {
    (void)state;
    ggml_probe_report_t report = (ggml_probe_report_t)&report;
    struct ggml_probe_options options = usual();
    assert_int_equal(ggml_plugin_probe(&options, NULL), GGML_HOST_INVALID_ARGUMENT);
    options.size = 8;
    assert_int_equal(ggml_plugin_probe(&options, &report), GGML_HOST_INVALID_ARGUMENT);
    assert_null(report);
    options = usual();
    options.dir = "relative";
    assert_int_equal(ggml_plugin_probe(&options, &report), GGML_HOST_INVALID_ARGUMENT);
    options.dir = "/nonexistent/folder";
    assert_int_equal(ggml_plugin_probe(&options, &report), GGML_HOST_NOT_FOUND);
    options = usual();
    options.jobs = 65;
    assert_int_equal(ggml_plugin_probe(&options, &report), GGML_HOST_INVALID_ARGUMENT);
    options = usual();
    options.helper = "helper";
    assert_int_equal(ggml_plugin_probe(&options, &report), GGML_HOST_INVALID_ARGUMENT);
    options = usual();
    options.deadline_ms = 4000000;
    assert_int_equal(ggml_plugin_probe(&options, &report), GGML_HOST_INVALID_ARGUMENT);
    assert_int_equal(ggml_plugin_load_probed(NULL, NULL), GGML_HOST_INVALID_ARGUMENT);
    assert_int_equal(ggml_probe_report_count(NULL), 0);
    assert_null(ggml_probe_report_get(NULL, 0));
    ggml_probe_report_free(NULL);
}

static void test_success_leaves_the_last_error_alone(void **state) {
    (void)state;
    const struct ggml_probe_options options = usual();
    add_from(PLUGINS, "ggml-crash_init.so");
    ggml_fail(GGML_HOST_BUSY, "before");
    ggml_probe_report_free(probe(&options));
    assert_string_equal(ggml_last_error(), "before");
    ggml_clear_error();
}

#define WITH_DIR(function) cmocka_unit_test_setup_teardown(function, open_dir, close_dir)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DIR(test_all_habits_together_are_told_in_time),
        WITH_DIR(test_the_defective_plugins_together),
        WITH_DIR(test_f19_no_more_memory_is_free_than_there_is),
        WITH_DIR(test_a_good_plugin_is_described_without_being_mapped),
        WITH_DIR(test_a_probe_answers_what_loading_would),
        WITH_DIR(test_what_a_good_plugin_warns_of_is_in_its_record),
        WITH_DIR(test_filter_hides_plugins_and_devices),
        WITH_DIR(test_only_what_probed_well_is_loaded),
        WITH_DIR(test_without_a_helper_this_process_probes_and_says_so),
        WITH_DIR(test_in_process_on_request),
        WITH_DIR(test_a_process_without_streams_that_ignores_its_children),
        WITH_DIR(test_f22_no_stranger_is_killed),
#ifdef __linux__
        WITH_DIR(test_f21_nothing_outlives_a_killed_application),
        cmocka_unit_test(test_f21_nor_a_helper_that_has_just_begun),
        cmocka_unit_test(test_f21_nor_one_that_came_too_late),
        WITH_DIR(test_f21_a_control_group_holds_what_left_its_session),
#endif
        WITH_DIR(test_threads_probe_at_once),
        WITH_DIR(test_a_helper_inherits_no_descriptor),
        WITH_DIR(test_progress_is_told_once_per_candidate),
        WITH_DIR(test_bad_arguments),
        WITH_DIR(test_success_leaves_the_last_error_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
