// SPDX-License-Identifier: MIT
// Where plugins are searched: order of directories, names of files, unreadable directories, and
// running out of memory.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/dl/dl.h"
#include "base/mem.h"
#include "base/status.h"
#include "ggml-version.h"
#include "plugin/discover/search_path.h"
#include "support/temp_folder.h"

static void touch(const char *name) {
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", temp_folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
}

static void test_order_of_the_default_path(void **state) {
    (void)state;
    struct arena arena = {0};
    struct search_dir *dirs;
    size_t count;
    char beside[4200];
    char dir[4096];
    setenv("GGML_PLUGIN_PATH", "/first:relative::/second:/first", 1);
    assert_int_equal(search_path_build(NULL, &arena, &dirs, &count), GGML_HOST_OK);
    unsetenv("GGML_PLUGIN_PATH");
    assert_int_equal(count, 5); // library and executable are one directory here
    assert_string_equal(dirs[0].path, "/first");
    assert_string_equal(dirs[0].origin, "GGML_PLUGIN_PATH");
    assert_string_equal(dirs[1].path, "relative");
    assert_int_equal(dirs[1].status, GGML_HOST_INVALID_ARGUMENT);
    assert_string_equal(dirs[2].path, "/second");
    assert_int_equal(dirs[2].status, GGML_HOST_OK);
    // This program is not installed: what lies beside it comes before what is.
    assert_true(dl_executable_dir(dir, sizeof(dir)));
    snprintf(beside, sizeof(beside), "%s/ggml-plugins", dir);
    assert_string_equal(dirs[3].path, beside);
    assert_string_equal(dirs[3].origin, "executable");
    assert_string_equal(dirs[4].path, GGML_HOST_PLUGIN_DIR);
    assert_string_equal(dirs[4].origin, "configured");
    arena_free(&arena);
}

static void test_callers_directory_is_the_only_one(void **state) {
    (void)state;
    struct arena arena = {0};
    struct search_dir *dirs;
    size_t count;
    setenv("GGML_PLUGIN_PATH", "/first", 1);
    assert_int_equal(search_path_build("/mine", &arena, &dirs, &count), GGML_HOST_OK);
    unsetenv("GGML_PLUGIN_PATH");
    assert_int_equal(count, 1);
    assert_string_equal(dirs[0].path, "/mine");
    assert_string_equal(dirs[0].origin, "caller");
    arena_free(&arena);
}

static void test_relative_directories_are_refused(void **state) {
    (void)state;
    static const char *const relative[] = {"", ".", "plugins", "./plugins", "../plugins"};
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof(relative) / sizeof(relative[0]); ++i) {
        struct search_dir *dirs;
        char **paths;
        size_t count;
        ggml_clear_error();
        assert_int_equal(search_path_build(relative[i], &arena, &dirs, &count),
                         GGML_HOST_INVALID_ARGUMENT);
        assert_non_null(strstr(ggml_last_error(), "not absolute"));
        assert_int_equal(count, 0);
        assert_int_equal(search_dir_list(relative[i], &arena, &paths, &count),
                         GGML_HOST_INVALID_ARGUMENT);
    }
    arena_free(&arena);
}

static void test_only_plugin_names_are_listed_sorted_by_bytes(void **state) {
    (void)state;
    static const char *const files[] = {"libggml-b.so", "ggml-a-x.so", "ggml-a.so",   "ggml-B.so",
                                        "notes.txt",    "libggml.so",  "ggml-.so",    "ggml-a.so.1",
                                        "ggml-c.dll",   "xggml-a.so",  "ggml-d.dylib"};
    static const char *const expected[] = {"ggml-B.so",  "ggml-a-x.so",  "ggml-a.so",
                                           "ggml-c.dll", "ggml-d.dylib", "libggml-b.so"};
    struct arena arena = {0};
    char slashed[80];
    char **paths;
    size_t count;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); ++i)
        touch(files[i]);
    assert_int_equal(search_dir_list(temp_folder, &arena, &paths, &count), GGML_HOST_OK);
    assert_int_equal(count, sizeof(expected) / sizeof(expected[0]));
    for (size_t i = 0; i < count; ++i) {
        assert_memory_equal(paths[i], temp_folder, strlen(temp_folder));
        assert_string_equal(paths[i] + strlen(temp_folder) + 1, expected[i]);
    }
    snprintf(slashed, sizeof(slashed), "%s/", temp_folder);
    char **again;
    assert_int_equal(search_dir_list(slashed, &arena, &again, &count), GGML_HOST_OK);
    assert_string_equal(again[0], paths[0]);
    arena_free(&arena);
}

static void test_directories_that_can_not_be_read(void **state) {
    (void)state;
    struct arena arena = {0};
    char path[5001];
    char **paths;
    size_t count;
    snprintf(path, sizeof(path), "%s/none", temp_folder);
    assert_int_equal(search_dir_list(path, &arena, &paths, &count), GGML_HOST_NOT_FOUND);
    touch("file");
    snprintf(path, sizeof(path), "%s/file", temp_folder);
    assert_int_equal(search_dir_list(path, &arena, &paths, &count), GGML_HOST_INVALID_ARGUMENT);
    memset(path, 'a', 5000);
    path[0] = '/';
    path[5000] = '\0';
    assert_int_equal(search_dir_list(path, &arena, &paths, &count), GGML_HOST_INVALID_ARGUMENT);
    struct search_dir *dirs;
    assert_int_equal(search_path_build(path, &arena, &dirs, &count), GGML_HOST_OK);
    assert_string_equal(dirs[0].path, path);
    if (geteuid() != 0) {
        snprintf(path, sizeof(path), "%s/locked", temp_folder);
        assert_int_equal(mkdir(path, 0), 0);
        assert_int_equal(search_dir_list(path, &arena, &paths, &count),
                         GGML_HOST_PERMISSION_DENIED);
    }
    arena_free(&arena);
}

static void test_file_names(void **state) {
    (void)state;
    static const struct {
        const char *file;
        const char *name; // NULL: none of a plugin
        const char *variant;
    } rows[] = {
        {"ggml-cpu.so", "cpu", ""},
        {"libggml-cpu-x64.so", "cpu", "x64"},
        {"ggml-cpu-android_armv8.2_1.so", "cpu", "android_armv8.2_1"},
        {"ggml-Metal.dylib", "Metal", ""},
        {"ggml-cuda-12.dll", "cuda", "12"},
        {"ggml-a-b-c.so", NULL, NULL},
        {"ggml-a-.so", NULL, NULL},
        {"ggml--a.so", NULL, NULL},
        {"ggml-.so", NULL, NULL},
        {"ggml-", NULL, NULL},
        {"ggml-.", NULL, NULL},
        {"ggml-so", NULL, NULL},
        {"ggml-a b.so", NULL, NULL},
        {"ggml-\xc3\xa9.so", NULL, NULL},
        {"ggml-a/b.so", NULL, NULL},
        {"GGML-a.so", NULL, NULL},
        {"liblibggml-a.so", NULL, NULL},
        {"ggml-a.SO", NULL, NULL},
        {"", NULL, NULL},
    };
    char name[64];
    char variant[64];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        const bool is_plugin = plugin_file_name_parse(rows[i].file, name, variant, sizeof(name));
        print_message("# %s\n", rows[i].file);
        assert_int_equal(is_plugin, rows[i].name != NULL);
        if (!is_plugin) continue;
        assert_string_equal(name, rows[i].name);
        assert_string_equal(variant, rows[i].variant);
    }
    assert_true(plugin_file_name_parse("ggml-abc.so", name, variant, 4));
    assert_false(plugin_file_name_parse("ggml-abcd.so", name, variant, 4));
}

static bool one_less_each_time(void *context) {
    int *left = context;
    return (*left)-- > 0;
}

static void test_running_out_of_memory_is_a_status(void **state) {
    (void)state;
    int allowed = 0;
    enum ggml_host_status status = GGML_HOST_OUT_OF_MEMORY;
    touch("ggml-a.so");
    for (; status == GGML_HOST_OUT_OF_MEMORY && allowed < 100; ++allowed) {
        struct arena arena = {0};
        struct search_dir *dirs;
        char **paths;
        size_t count;
        int left = allowed;
        ggml_mem_set_fault_hook(one_less_each_time, &left);
        status = search_path_build(NULL, &arena, &dirs, &count);
        if (status == GGML_HOST_OK) status = search_dir_list(temp_folder, &arena, &paths, &count);
        ggml_mem_set_fault_hook(NULL, NULL);
        arena_free(&arena);
    }
    assert_int_equal(status, GGML_HOST_OK);
    assert_true(allowed > 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_of_the_default_path),
        cmocka_unit_test(test_callers_directory_is_the_only_one),
        cmocka_unit_test(test_relative_directories_are_refused),
        cmocka_unit_test(test_only_plugin_names_are_listed_sorted_by_bytes),
        cmocka_unit_test(test_directories_that_can_not_be_read),
        cmocka_unit_test(test_file_names),
        cmocka_unit_test(test_running_out_of_memory_is_a_status),
    };
    return cmocka_run_group_tests(tests, temp_folder_make, temp_folder_remove);
}
