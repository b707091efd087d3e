// SPDX-License-Identifier: MIT
// What is remembered of probes: when it is used, when not, and what damage does to it.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sched.h>
#include <sys/mount.h>
#endif
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/env.h"
#include "base/status.h"
#include "plugin/probe/cache/probe_cache.h"
#include "support/plugin_dir.h"

static struct plugin_dir dir;
static struct plugin_dir home; // with the cache, the helper and what it counts
static char cache_path[600];
static char helper_path[600];
static char count_path[600];

// A helper that leaves a byte in a file whenever it is started.
static void write_helper(void) {
    FILE *file = fopen(helper_path, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\nprintf x >>%s\nexec %s \"$@\"\n", count_path, HELPER);
    fclose(file);
    assert_int_equal(chmod(helper_path, 0700), 0);
}

static long count_spawns(void) {
    struct stat info;
    const long count = stat(count_path, &info) == 0 ? (long)info.st_size : 0;
    unlink(count_path);
    return count;
}

static int open_dirs(void **state) {
    (void)state;
    plugin_dir_open(&home);
    plugin_dir_open(&dir);
    snprintf(cache_path, sizeof(cache_path), "%s/made/for/it", home.path);
    snprintf(helper_path, sizeof(helper_path), "%s/helper", home.path);
    snprintf(count_path, sizeof(count_path), "%s/count", home.path);
    write_helper();
    return 0;
}

static int close_dirs(void **state) {
    (void)state;
    plugin_dir_close(&dir);
    plugin_dir_close(&home);
    return 0;
}

static void add_from(const char *folder, const char *file_name) {
    char path[600];
    snprintf(path, sizeof(path), "%s/%s", folder, file_name);
    plugin_dir_add(&dir, path, file_name);
}

static struct ggml_probe_options usual(void) {
    return (struct ggml_probe_options){
        .size = sizeof(struct ggml_probe_options),
        .dir = dir.path,
        .helper = helper_path,
        .cache_dir = cache_path,
        .deadline_ms = 10000,
    };
}

static ggml_probe_report_t probe(const struct ggml_probe_options *options) {
    ggml_probe_report_t report = NULL;
    assert_int_equal(ggml_plugin_probe(options, &report), GGML_HOST_OK);
    assert_string_equal(ggml_probe_report_not_isolated(report), "");
    return report;
}

static const struct ggml_probe_record *first_file(ggml_probe_report_t report) {
    const struct ggml_probe_record *record = ggml_probe_report_get(report, 0);
    assert_int_equal(record->plugin->path[0], '/');
    return record;
}

// Probes the one plugin and returns where that was from.
static enum ggml_probe_source source_of(const struct ggml_probe_options *options) {
    ggml_probe_report_t report = probe(options);
    const enum ggml_probe_source source = first_file(report)->source;
    ggml_probe_report_free(report);
    return source;
}

static void assert_spawned(const struct ggml_probe_options *options) {
    assert_int_equal(source_of(options), GGML_PROBE_SOURCE_HELPER);
    assert_int_equal(count_spawns(), 1);
}

static void assert_remembered(const struct ggml_probe_options *options) {
    assert_int_equal(source_of(options), GGML_PROBE_SOURCE_CACHE);
    assert_int_equal(count_spawns(), 0);
}

// The only file of the cache.
static void find_entry(char *out_path, size_t size) {
    size_t n = 0;
    DIR *stream = opendir(cache_path);
    assert_non_null(stream);
    for (const struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        if (entry->d_name[0] == '.') continue;
        snprintf(out_path, size, "%s/%s", cache_path, entry->d_name);
        ++n;
    }
    closedir(stream);
    assert_int_equal(n, 1);
}

// --- use -----------------------------------------------------------------------------------------

static void test_a_second_probe_starts_no_helper(void **state) {
    (void)state;
    char path[2 * sizeof(cache_path)];
    struct stat info;
    const struct ggml_probe_options options = usual();
    add_from(FIXTURES, "ggml-gpu.so");
    ggml_probe_report_t first = probe(&options);
    assert_int_equal(count_spawns(), 1);
    ggml_probe_report_t second = probe(&options);
    assert_int_equal(count_spawns(), 0);
    assert_int_equal(first_file(second)->source, GGML_PROBE_SOURCE_CACHE);
    assert_int_equal(first_file(second)->probed_at, first_file(first)->probed_at);
    assert_int_equal(ggml_probe_report_device_count(second), ggml_probe_report_device_count(first));
    for (size_t i = 0; i < ggml_probe_report_device_count(first); ++i) {
        const struct ggml_probe_device *a = ggml_probe_report_device_get(first, i);
        const struct ggml_probe_device *b = ggml_probe_report_device_get(second, i);
        assert_string_equal(a->props.name, b->props.name);
        assert_int_equal(a->props.memory_total, b->props.memory_total);
    }
    assert_int_equal(ggml_probe_report_device_get(first, 0)->memory, GGML_MEMORY_KNOWN);
    assert_int_equal(ggml_probe_report_device_get(second, 0)->memory, GGML_MEMORY_ESTIMATED);
    ggml_probe_report_free(first);
    ggml_probe_report_free(second);

    find_entry(path, sizeof(path));
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_int_equal(stat(cache_path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
}

static void test_flags_pass_the_cache_by(void **state) {
    (void)state;
    struct ggml_probe_options options = usual();
    add_from(FIXTURES, "ggml-gpu.so");
    options.flags = GGML_PROBE_NO_CACHE;
    assert_spawned(&options);
    assert_int_equal(access(cache_path, F_OK), -1);
    options.flags = 0;
    assert_spawned(&options);
    options.flags = GGML_PROBE_RESCAN;
    assert_spawned(&options);
    options.flags = 0;
    assert_remembered(&options);
}

static void test_the_place_follows_the_environment(void **state) {
    (void)state;
    struct ggml_probe_options options = usual();
    char path[700];
    add_from(FIXTURES, "ggml-gpu.so");
    options.cache_dir = NULL;
    setenv("HOME", home.path, 1);
    unsetenv("XDG_CACHE_HOME");
    assert_spawned(&options);
    assert_remembered(&options);
    snprintf(path, sizeof(path), "%s/.cache/ggml-host/probe", home.path);
    assert_int_equal(access(path, F_OK), 0);
    snprintf(path, sizeof(path), "%s/xdg", home.path);
    setenv("XDG_CACHE_HOME", path, 1);
    assert_spawned(&options);
    snprintf(path, sizeof(path), "%s/xdg/ggml-host/probe", home.path);
    assert_int_equal(access(path, F_OK), 0);
    setenv("XDG_CACHE_HOME", "relative", 1);
    assert_remembered(&options); // below HOME
    setenv("GGML_PROBE_CACHE", "off", 1);
    ggml_probe_report_t report = probe(&options);
    assert_non_null(strstr(ggml_probe_report_not_cached(report), "off"));
    ggml_probe_report_free(report);
    unsetenv("GGML_PROBE_CACHE");
    unsetenv("XDG_CACHE_HOME");
}

// What failed because the plugin was confined may work without.
static void test_a_confined_answer_is_none_for_others(void **state) {
    (void)state;
    struct ggml_probe_options options = usual();
    add_from(FIXTURES, "ggml-gpu.so");
    assert_spawned(&options);
    options.flags = GGML_PROBE_NO_SANDBOX;
    assert_spawned(&options);
    assert_remembered(&options);
    options.flags = 0;
    assert_spawned(&options);
}

// The helper is started without its environment too.
static void test_privileged_processes_remember_nothing(void **state) {
    (void)state;
    struct ggml_probe_options options = usual();
    add_from(FIXTURES, "ggml-gpu.so");
    options.helper = HELPER;
    options.flags = GGML_PROBE_NO_SANDBOX; // the plugin leaves a mark
    ggml_probe_report_free(probe(&options));
    assert_true(plugin_dir_was_mapped(&dir, "gpu"));
    unlink(dir.marker);
    ggml_env_assume_privileged(true);
    ggml_probe_report_t report = probe(&options);
    ggml_env_assume_privileged(false);
    assert_int_equal(first_file(report)->source, GGML_PROBE_SOURCE_HELPER);
    assert_int_equal(first_file(report)->plugin->status, GGML_HOST_OK);
    assert_non_null(strstr(ggml_probe_report_not_cached(report), "privileged"));
    assert_false(plugin_dir_was_mapped(&dir, "gpu"));
    ggml_probe_report_free(report);
}

// --- what makes it worthless ---------------------------------------------------------------------

static void test_a_changed_file_is_probed_again(void **state) {
    (void)state;
    struct stat before;
    const struct ggml_probe_options options = usual();
    add_from(FIXTURES, "ggml-gpu.so");
    const char *path = plugin_dir_path(&dir, "ggml-gpu.so");
    assert_spawned(&options);
    assert_int_equal(stat(path, &before), 0);
    plugin_dir_replace(&dir, "ggml-gpu.so", "GPU1", "GPU7"); // same size, same inode
    const struct timespec times[2] = {before.st_atim, before.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, plugin_dir_path(&dir, "ggml-gpu.so"), times, 0), 0);
    ggml_probe_report_t report = probe(&options);
    assert_int_equal(first_file(report)->source, GGML_PROBE_SOURCE_HELPER);
    assert_string_equal(ggml_probe_report_device_get(report, 1)->props.name, "GPU7");
    ggml_probe_report_free(report);
    count_spawns();
    assert_remembered(&options);
    add_from(FIXTURES, "ggml-gpu.so"); // as it was, written again
    assert_spawned(&options);
}

static void test_a_changed_environment_of_drivers_is_probed_again(void **state) {
    (void)state;
    const struct ggml_probe_options options = usual();
    add_from(FIXTURES, "ggml-gpu.so");
    assert_spawned(&options);
    setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    assert_spawned(&options);
    assert_remembered(&options);
    unsetenv("CUDA_VISIBLE_DEVICES");
    setenv("SOMETHING_ELSE", "1", 1);
    assert_spawned(&options);
    unsetenv("SOMETHING_ELSE");
    assert_remembered(&options);
}

// A library that a driver lies in, put where the plugin opens it.
static void put_library(const char *name, const char *fixture) {
    char from[700], to[700], text[4096];
    snprintf(from, sizeof(from), "%s/%s", FIXTURES, fixture);
    snprintf(to, sizeof(to), "%s/%s", home.path, name);
    unlink(to);
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    assert_true(in && out);
    for (size_t n; (n = fread(text, 1, sizeof(text), in)) > 0;)
        assert_int_equal(fwrite(text, 1, n, out), n);
    fclose(in);
    assert_int_equal(fclose(out), 0);
}

// What was changed while it was probed isn't remembered: the times of files are of the last tick.
static void wait_for_ticks(void) {
    const struct timespec moment = {.tv_nsec = 60000000};
    nanosleep(&moment, NULL);
}

static void expect_probed_again(const struct ggml_probe_options *options) {
    wait_for_ticks();
    assert_spawned(options);
    assert_remembered(options);
}

static void test_a_replaced_library_of_a_driver_is_probed_again(void **state) {
    (void)state;
    char library[700], link[700];
    const struct ggml_probe_options options = usual();
    snprintf(library, sizeof(library), "%s/libdriver.so.1", home.path);
    snprintf(link, sizeof(link), "%s/libdriver.so", home.path);
    put_library("libdriver.so.1", "ggml-gpu.so");
    put_library("libdriver.so.2", "ggml-gpu.so");
    assert_int_equal(symlink("libdriver.so.1", link), 0);
    setenv("GGML_TEST_DRIVER", link, 1);
    add_from(PLUGINS, "ggml-driver.so");
    expect_probed_again(&options);
    put_library("libdriver.so.1", "ggml-gpu.so"); // the same bytes in another file
    expect_probed_again(&options);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(symlink("libdriver.so.2", link), 0);
    expect_probed_again(&options);
    put_library("libdriver.so.1", "ggml-gpu.so"); // nobody's any more
    assert_remembered(&options);
    assert_int_equal(unlink(library), 0);
    assert_remembered(&options);
    assert_int_equal(unlink(link), 0);
    assert_spawned(&options);
    unsetenv("GGML_TEST_DRIVER");
}

// Changed after it was mapped, it may be another file: nothing is known of the one that lies there.
static void test_a_library_of_this_moment_is_not_relied_on(void **state) {
    (void)state;
    char library[700];
    struct ggml_probe_options options = usual();
    snprintf(library, sizeof(library), "%s/libdriver.so.1", home.path);
    put_library("libdriver.so.1", "ggml-gpu.so");
    setenv("GGML_TEST_DRIVER", library, 1);
    add_from(PLUGINS, "ggml-driver.so");
    options.flags = GGML_PROBE_NO_SANDBOX;
    setenv("GGML_TEST_CHANGE_DRIVER", "1", 1);
    wait_for_ticks();
    assert_spawned(&options);
    assert_spawned(&options);
    assert_int_equal(unlink(library), 0); // nor on that it is gone
    assert_spawned(&options);
    put_library("libdriver.so.1", "ggml-gpu.so");
    wait_for_ticks();
    unsetenv("GGML_TEST_CHANGE_DRIVER");
    expect_probed_again(&options);
    unsetenv("GGML_TEST_DRIVER");
}

static void test_a_changed_variable_of_a_plugin_is_probed_again(void **state) {
    (void)state;
    const struct ggml_probe_options options = usual();
    add_from(FIXTURES, "ggml-gpu.so");
    assert_spawned(&options);
    setenv("GGML_GPU_DEVICES", "0,0", 1);
    assert_spawned(&options);
    setenv("GGML_GPU_DEVICES", "0", 1);
    assert_spawned(&options);
    setenv("GGML_DEVICES", "-OTHER1", 1); // which the library applies afterwards
    setenv("GGML_PROBE_FAILURE_SECONDS", "7", 1);
    assert_remembered(&options);
    unsetenv("GGML_GPU_DEVICES");
    unsetenv("GGML_DEVICES");
    unsetenv("GGML_PROBE_FAILURE_SECONDS");
}

static void test_a_failure_is_remembered_with_its_reason(void **state) {
    (void)state;
    struct ggml_probe_options options = usual();
    add_from(PLUGINS, "ggml-crash_init.so");
    assert_spawned(&options);
    ggml_probe_report_t report = probe(&options);
    assert_int_equal(count_spawns(), 0);
    const struct ggml_plugin_record *record = first_file(report)->plugin;
    assert_int_equal(first_file(report)->source, GGML_PROBE_SOURCE_CACHE);
    assert_int_equal(record->status, GGML_HOST_CRASHED);
    assert_int_equal(record->stage, GGML_PLUGIN_STAGE_MAP);
    assert_non_null(strstr(record->message, "signal 11"));
    ggml_probe_report_free(report);
}

// --- entries -------------------------------------------------------------------------------------

struct fixture {
    struct probe_cache cache;
    struct plugin_file file;
    char path[600]; // of the plugin
    char entry[1300];
    unsigned char bytes[8192];
    size_t size;
};

static void fixture_open(struct fixture *fixture, const char *folder, const char *name) {
    const struct ggml_probe_options options = usual();
    add_from(folder, name);
    assert_spawned(&options);
    snprintf(fixture->path, sizeof(fixture->path), "%s", plugin_dir_path(&dir, name));
    assert_int_equal(plugin_file_open(fixture->path, &fixture->file), GGML_HOST_OK);
    assert_int_equal(probe_cache_open(cache_path, helper_path, -1, &fixture->cache), GGML_HOST_OK);
    find_entry(fixture->entry, sizeof(fixture->entry));
    FILE *file = fopen(fixture->entry, "rb");
    assert_non_null(file);
    fixture->size = fread(fixture->bytes, 1, sizeof(fixture->bytes), file);
    fclose(file);
    assert_true(fixture->size > 100 && fixture->size < sizeof(fixture->bytes));
}

static void fixture_close(struct fixture *fixture) {
    probe_cache_close(&fixture->cache);
    plugin_file_close(&fixture->file);
}

static void put_entry(const struct fixture *fixture, const void *bytes, size_t size) {
    FILE *file = fopen(fixture->entry, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static bool is_found(const struct fixture *fixture) {
    struct probe_result result;
    int64_t probed_at;
    const bool found =
        probe_cache_find(&fixture->cache, fixture->path, &fixture->file, &result, &probed_at);
    if (!found) assert_int_equal(result.n_devices, 0);
    probe_result_free(&result);
    return found;
}

// Of the bytes alone; every so often also of the file that holds them.
static void expect_damaged(const struct fixture *fixture, size_t size, bool as_file) {
    struct probe_result result;
    struct probe_cache_key key = {.path = fixture->path, .file = fixture->file.id};
    int64_t probed_at;
    memcpy(key.system, fixture->cache.system, sizeof(key.system));
    assert_int_equal(probe_entry_read(fixture->bytes, size, &key, key.content, &probed_at, &result),
                     GGML_HOST_DAMAGED_FILE);
    if (!as_file) return;
    put_entry(fixture, fixture->bytes, size);
    assert_false(is_found(fixture));
}

static void test_damage_at_every_byte_is_noticed(void **state) {
    enum { STRIDE = 29 };
    (void)state;
    static struct fixture fixture;
    fixture_open(&fixture, FIXTURES, "ggml-gpu.so");
    assert_true(is_found(&fixture));
    for (size_t i = 0; i < fixture.size; ++i) {
        fixture.bytes[i] ^= (unsigned char)(1u << i % 8);
        expect_damaged(&fixture, fixture.size, i % STRIDE == 0);
        fixture.bytes[i] ^= (unsigned char)(1u << i % 8);
    }
    for (size_t size = 0; size < fixture.size; ++size)
        expect_damaged(&fixture, size, size % STRIDE == 0);
    fixture.bytes[fixture.size] = 0;
    put_entry(&fixture, fixture.bytes, fixture.size + 1);
    assert_false(is_found(&fixture));
    put_entry(&fixture, fixture.bytes, fixture.size);
    assert_true(is_found(&fixture));
    put_entry(&fixture, fixture.bytes, fixture.size - 1);
    const struct ggml_probe_options options = usual();
    assert_spawned(&options); // and mended
    assert_remembered(&options);
    fixture_close(&fixture);
}

static void test_a_failure_expires_and_a_success_does_not(void **state) {
    (void)state;
    static struct fixture good, bad;
    fixture_open(&good, FIXTURES, "ggml-gpu.so");
    good.cache.now += 1000000;
    assert_true(is_found(&good));
    good.cache.now -= 2000000; // the clock was set back: what is from the future is not believed
    assert_false(is_found(&good));
    fixture_close(&good);
    close_dirs(state);
    open_dirs(state);
    fixture_open(&bad, PLUGINS, "ggml-crash_init.so");
    assert_true(is_found(&bad));
    bad.cache.now += 3500;
    assert_true(is_found(&bad));
    bad.cache.now += 200;
    assert_false(is_found(&bad));
    fixture_close(&bad);
    setenv("GGML_PROBE_FAILURE_SECONDS", "0", 1);
    const struct ggml_probe_options options = usual();
    assert_spawned(&options);
    unsetenv("GGML_PROBE_FAILURE_SECONDS");
    assert_remembered(&options);
}

// An entry that says everything right but for what the file holds.
static void test_other_contents_are_not_believed(void **state) {
    (void)state;
    static struct fixture fixture;
    struct probe_result result;
    struct probe_writer writer = {0};
    int64_t probed_at;
    fixture_open(&fixture, FIXTURES, "ggml-gpu.so");
    struct probe_cache_key key = {.path = fixture.path, .file = fixture.file.id};
    memcpy(key.system, fixture.cache.system, sizeof(key.system));
    assert_true(probe_cache_find(&fixture.cache, fixture.path, &fixture.file, &result, &probed_at));
    assert_int_equal(plugin_file_sha256(&fixture.file, fixture.path, key.content), GGML_HOST_OK);
    probe_entry_write(&key, probed_at, &result, &writer);
    put_entry(&fixture, writer.data, writer.size);
    assert_true(is_found(&fixture));
    key.content[31] ^= 1;
    writer.size = 0;
    probe_entry_write(&key, probed_at, &result, &writer);
    put_entry(&fixture, writer.data, writer.size);
    assert_false(is_found(&fixture));
    probe_writer_free(&writer);
    probe_result_free(&result);
    fixture_close(&fixture);
}

// --- what somebody else could have put there -----------------------------------------------------

static void test_foreign_entries_are_not_read(void **state) {
    (void)state;
    static struct fixture fixture;
    char other[1400];
    fixture_open(&fixture, FIXTURES, "ggml-gpu.so");
    assert_int_equal(chmod(fixture.entry, 0622), 0);
    assert_false(is_found(&fixture));
    assert_int_equal(chmod(fixture.entry, 0600), 0);
    assert_true(is_found(&fixture));
    snprintf(other, sizeof(other), "%s/elsewhere", home.path);
    assert_int_equal(rename(fixture.entry, other), 0);
    assert_int_equal(symlink(other, fixture.entry), 0);
    assert_false(is_found(&fixture));
    assert_int_equal(unlink(fixture.entry), 0);
    assert_int_equal(mkfifo(fixture.entry, 0600), 0);
    assert_false(is_found(&fixture));
    assert_int_equal(unlink(fixture.entry), 0);
    assert_int_equal(mkdir(fixture.entry, 0700), 0);
    assert_false(is_found(&fixture));
    const struct ggml_probe_options options = usual();
    assert_spawned(&options);
    assert_spawned(&options); // a directory stays in the way
    fixture_close(&fixture);
}

static void test_a_shared_directory_is_not_used(void **state) {
    (void)state;
    const struct ggml_probe_options options = usual();
    add_from(FIXTURES, "ggml-gpu.so");
    assert_spawned(&options);
    assert_int_equal(chmod(cache_path, 0777), 0);
    ggml_probe_report_t report = probe(&options);
    assert_non_null(strstr(ggml_probe_report_not_cached(report), "others"));
    assert_int_equal(first_file(report)->source, GGML_PROBE_SOURCE_HELPER);
    ggml_probe_report_free(report);
    assert_int_equal(chmod(cache_path, 0700), 0);
    count_spawns();
    assert_remembered(&options);
}

// --- no room -------------------------------------------------------------------------------------

// One plugin is remembered, and there is no room to remember the other one: the cache is read, and
// what can't be written is left out whole, without a word to a caller whose probe went well.
static void expect_no_room(const struct ggml_probe_options *options) {
    for (int round = 0; round < 2; ++round) {
        ggml_clear_error();
        ggml_probe_report_t report = probe(options);
        assert_int_equal(ggml_last_status(), GGML_HOST_OK);
        assert_string_equal(ggml_probe_report_not_cached(report), "");
        assert_int_equal(ggml_probe_report_get(report, 0)->source, GGML_PROBE_SOURCE_CACHE);
        assert_int_equal(ggml_probe_report_get(report, 1)->source, GGML_PROBE_SOURCE_HELPER);
        ggml_probe_report_free(report);
        assert_int_equal(count_spawns(), 1);
    }
}

static void expect_room(const struct ggml_probe_options *options) {
    ggml_probe_report_free(probe(options));
    assert_int_equal(count_spawns(), 1);
    ggml_probe_report_free(probe(options));
    assert_int_equal(count_spawns(), 0);
}

// Also after a failure: the other tests write.
static int lift_limit(void **state) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_FSIZE, &limit) == 0 ? close_dirs(state) : 1;
}

// A limit of files' sizes stands for the full disk: a piece is written, and then nothing more.
static void test_a_cache_that_takes_no_more_is_still_read(void **state) {
    (void)state;
    char path[1400];
    struct rlimit before;
    const struct ggml_probe_options options = usual();
    add_from(FIXTURES, "ggml-gpu.so");
    assert_spawned(&options);
    plugin_dir_add(&dir, FIXTURES "/ggml-gpu.so", "ggml-later.so");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit small = {16, before.rlim_max};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    expect_no_room(&options);
    find_entry(path, sizeof(path)); // the first one's, and no piece of the other
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    expect_room(&options);
}

#ifdef __linux__
// Fills the file system of the cache to the last byte.
static void fill(const char *path) {
    static const char bytes[4096];
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    setbuf(file, NULL);
    while (fwrite(bytes, 1, sizeof(bytes), file) == sizeof(bytes))
        continue;
    fclose(file);
}

// A full disk as it is, where this process may mount one.
static void test_a_cache_on_a_full_disk_is_still_read(void **state) {
    (void)state;
    char path[1400];
    const struct ggml_probe_options options = usual();
    snprintf(cache_path, sizeof(cache_path), "%s/full", home.path);
    assert_int_equal(mkdir(cache_path, 0700), 0);
    if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", cache_path, "tmpfs", 0, "size=64k,mode=0700") != 0) {
        print_message("# left out: nothing can be mounted here\n");
        return;
    }
    add_from(FIXTURES, "ggml-gpu.so");
    assert_spawned(&options);
    plugin_dir_add(&dir, FIXTURES "/ggml-gpu.so", "ggml-later.so");
    snprintf(path, sizeof(path), "%s/filler", cache_path);
    fill(path);
    expect_no_room(&options);
    assert_int_equal(unlink(path), 0);
    find_entry(path, sizeof(path));
    expect_room(&options);
    assert_int_equal(umount2(cache_path, MNT_DETACH), 0);
}
#endif

// --- several processes ---------------------------------------------------------------------------

static void probe_in_child(const struct ggml_probe_options *options) {
    alarm(60);
    for (int i = 0; i < 5; ++i) {
        ggml_probe_report_t report = NULL;
        if (ggml_plugin_probe(options, &report) != GGML_HOST_OK) _exit(1);
        if (ggml_probe_report_device_count(report) < 4) _exit(2);
        ggml_probe_report_free(report);
    }
    _exit(0);
}

static void test_processes_share_a_cache(void **state) {
    enum { N_PROCESSES = 4 };
    (void)state;
    char path[1400];
    pid_t children[N_PROCESSES];
    const struct ggml_probe_options options = usual();
    add_from(FIXTURES, "ggml-gpu.so");
    for (int i = 0; i < N_PROCESSES; ++i) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) probe_in_child(&options);
    }
    for (int i = 0; i < N_PROCESSES; ++i) {
        int status = 0;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    find_entry(path, sizeof(path)); // nothing half-written is left
    count_spawns();
    assert_remembered(&options);
}

#define WITH_DIRS(function) cmocka_unit_test_setup_teardown(function, open_dirs, close_dirs)

// F11 of a security review: only what the cache wrote is removed, whatever else lies there.
static void test_f11_files_of_others_stay(void **state) {
    (void)state;
    const struct ggml_probe_options options = usual();
#define HEX_60 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789ab"
    static const struct {
        const char *name;
        bool is_ours;
    } files[] = {
        {"new-12-3", true},      {"new-thesis.tex", false}, {"new-12-", false},
        {"new-1-2-3", false},    {"new--3", false},         {HEX_60 "cdef", true},
        {HEX_60 "cdeg", false},  {HEX_60 "CDEF", false},    {HEX_60 "cde", false},
        {HEX_60 "cdef0", false}, {HEX_60 ".txt", false},
    };
    const struct timespec old[2] = {{.tv_sec = time(NULL) - 120 * 24 * 3600},
                                    {.tv_sec = time(NULL) - 120 * 24 * 3600}};
    struct probe_cache cache;
    assert_int_equal(probe_cache_open(cache_path, helper_path, -1, &cache), GGML_HOST_OK);
    probe_cache_close(&cache);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); ++i) {
        char path[700];
        snprintf(path, sizeof(path), "%s/%s", cache_path, files[i].name);
        const int fd = open(path, O_WRONLY | O_CREAT, 0600);
        assert_true(fd >= 0);
        assert_int_equal(futimens(fd, old), 0);
        close(fd);
    }
    add_from(FIXTURES, "ggml-gpu.so");
    assert_spawned(&options);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); ++i) {
        char path[700];
        snprintf(path, sizeof(path), "%s/%s", cache_path, files[i].name);
        if ((access(path, F_OK) != 0) != files[i].is_ours) fail_msg("%s", files[i].name);
        unlink(path);
    }
}

// F12: root with somebody else's HOME writes nothing there, and follows none of his links.
static void test_f12_root_enters_no_folder_of_others(void **state) {
    enum { STRANGER = 12345 };
    (void)state;
    struct probe_cache cache;
    char house[600], path[700], target[600];
    if (geteuid() != 0) return; // nobody else can give folders away
    snprintf(house, sizeof(house), "%s", plugin_dir_path(&dir, "house"));
    snprintf(target, sizeof(target), "%s", plugin_dir_path(&dir, "target"));
    assert_int_equal(mkdir(house, 0755), 0);
    assert_int_equal(mkdir(target, 0700), 0);
    assert_int_equal(chown(house, STRANGER, STRANGER), 0);
    snprintf(path, sizeof(path), "%s/.cache/ggml-host/probe", house);
    assert_int_equal(probe_cache_open(path, helper_path, -1, &cache), GGML_HOST_PERMISSION_DENIED);
    snprintf(path, sizeof(path), "%s/.cache", house);
    assert_int_equal(access(path, F_OK), -1);
    // Nor where all that lies in it is root's.
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(probe_cache_open(path, helper_path, -1, &cache), GGML_HOST_PERMISSION_DENIED);
    // A link of his in a folder of root's.
    snprintf(path, sizeof(path), "%s", plugin_dir_path(&dir, "link"));
    assert_int_equal(symlink(target, path), 0);
    assert_int_equal(lchown(path, STRANGER, STRANGER), 0);
    snprintf(path, sizeof(path), "%s", plugin_dir_path(&dir, "link/probe"));
    assert_int_equal(probe_cache_open(path, helper_path, -1, &cache), GGML_HOST_PERMISSION_DENIED);
    snprintf(path, sizeof(path), "%s/probe", target);
    assert_int_equal(access(path, F_OK), -1);
    // One of root's own is root's own affair.
    snprintf(path, sizeof(path), "%s", plugin_dir_path(&dir, "mine"));
    assert_int_equal(symlink(target, path), 0);
    snprintf(path, sizeof(path), "%s", plugin_dir_path(&dir, "mine/probe"));
    assert_int_equal(probe_cache_open(path, helper_path, -1, &cache), GGML_HOST_OK);
    probe_cache_close(&cache);
}

// Folders of root's in which everybody may write, as /tmp, are no place to keep a cache.
static void test_f12_folders_are_made_only_in_the_users_own(void **state) {
    enum { STRANGER = 12345 };
    (void)state;
    struct probe_cache cache;
    char made[600];
    int status = 0;
    if (geteuid() != 0) return; // all folders that can be written are the user's
    assert_int_equal(chmod(home.path, 01777), 0);
    snprintf(made, sizeof(made), "%s", plugin_dir_path(&home, "made"));
    const pid_t child = fork();
    if (child == 0) {
        if (setgid(STRANGER) != 0 || setuid(STRANGER) != 0) _exit(100);
        _exit((int)probe_cache_open(cache_path, helper_path, -1, &cache));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), GGML_HOST_PERMISSION_DENIED);
    assert_int_equal(access(made, F_OK), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DIRS(test_f12_folders_are_made_only_in_the_users_own),
        WITH_DIRS(test_f11_files_of_others_stay),
        WITH_DIRS(test_f12_root_enters_no_folder_of_others),
        WITH_DIRS(test_a_second_probe_starts_no_helper),
        WITH_DIRS(test_flags_pass_the_cache_by),
        WITH_DIRS(test_the_place_follows_the_environment),
        WITH_DIRS(test_a_confined_answer_is_none_for_others),
        WITH_DIRS(test_privileged_processes_remember_nothing),
        WITH_DIRS(test_a_changed_file_is_probed_again),
        WITH_DIRS(test_a_changed_environment_of_drivers_is_probed_again),
        WITH_DIRS(test_a_replaced_library_of_a_driver_is_probed_again),
        WITH_DIRS(test_a_library_of_this_moment_is_not_relied_on),
        WITH_DIRS(test_a_changed_variable_of_a_plugin_is_probed_again),
        WITH_DIRS(test_a_failure_is_remembered_with_its_reason),
        WITH_DIRS(test_damage_at_every_byte_is_noticed),
        WITH_DIRS(test_a_failure_expires_and_a_success_does_not),
        WITH_DIRS(test_other_contents_are_not_believed),
        WITH_DIRS(test_foreign_entries_are_not_read),
        WITH_DIRS(test_a_shared_directory_is_not_used),
        cmocka_unit_test_setup_teardown(test_a_cache_that_takes_no_more_is_still_read, open_dirs,
                                        lift_limit),
#ifdef __linux__
        WITH_DIRS(test_a_cache_on_a_full_disk_is_still_read),
#endif
        WITH_DIRS(test_processes_share_a_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
