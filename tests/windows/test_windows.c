// SPDX-License-Identifier: MIT
// What is done in Windows' own ways: text, files, processors, libraries.
#define WIN32_LEAN_AND_MEAN
#define _WIN32_WINNT 0x0602
#include <windows.h>
// After windows.h.
#include <winioctl.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/dl/dl.h"
#include "base/env.h"
#include "base/mem.h"
#include "base/win32.h"
#include "ggml-cpu.h"
#include "ggml-host.h"
#include "gguf.h"
#include "machine/topology/topology.h"

// In no single code page.
#define ODD_NAME "Größe 文件 имя"
#define ODD_NAME_WIDE L"Größe 文件 имя"

struct folder {
    wchar_t wide[MAX_PATH];
    char path[4 * MAX_PATH];
};

static int open_folder(void **state) {
    static struct folder folder;
    wchar_t base[MAX_PATH];
    const DWORD length = GetTempPathW(MAX_PATH, base);
    if (length == 0 || length >= MAX_PATH) return -1;
    _snwprintf(folder.wide, MAX_PATH, L"%lsggml-%lu-%ls", base, GetCurrentProcessId(),
               ODD_NAME_WIDE);
    WideCharToMultiByte(CP_UTF8, 0, folder.wide, -1, folder.path, sizeof(folder.path), NULL, NULL);
    *state = &folder;
    return CreateDirectoryW(folder.wide, NULL) ? 0 : -1;
}

static int close_folder(void **state) {
    const struct folder *folder = *state;
    wchar_t pattern[MAX_PATH + 2], path[2 * MAX_PATH];
    WIN32_FIND_DATAW entry;
    _snwprintf(pattern, MAX_PATH + 2, L"%ls\\*", folder->wide);
    HANDLE search = FindFirstFileW(pattern, &entry);
    if (search == INVALID_HANDLE_VALUE) return -1;
    do {
        _snwprintf(path, 2 * MAX_PATH, L"%ls\\%ls", folder->wide, entry.cFileName);
        DeleteFileW(path);
    } while (FindNextFileW(search, &entry));
    FindClose(search);
    return RemoveDirectoryW(folder->wide) ? 0 : -1;
}

// A path in the folder; valid until the next call.
static const char *path_in(const struct folder *folder, const char *name) {
    static char path[5 * MAX_PATH];
    snprintf(path, sizeof(path), "%s/%s", folder->path, name);
    return path;
}

static void write_file(const char *path, const void *bytes, size_t size) {
    FILE *file = ggml_fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

// --- text

static void test_environment_is_utf8(void **state) {
    (void)state;
    const enum ggml_env variable = GGML_ENV_GGML_DEVICES;
    assert_true(SetEnvironmentVariableW(L"GGML_DEVICES", ODD_NAME_WIDE));
    const char *first = ggml_env(variable);
    assert_string_equal(first, ODD_NAME);
    assert_true(SetEnvironmentVariableW(L"GGML_DEVICES", L"other"));
    assert_string_equal(ggml_env(variable), "other");
    assert_string_equal(first, ODD_NAME);
    assert_true(SetEnvironmentVariableW(L"GGML_DEVICES", ODD_NAME_WIDE));
    assert_ptr_equal(ggml_env(variable), first);
    assert_true(SetEnvironmentVariableW(L"GGML_DEVICES", NULL));
    assert_null(ggml_env(variable));
}

static void test_messages_of_the_system(void **state) {
    char text[WIN32_MESSAGE_SIZE];
    (void)state;
    assert_non_null(strstr(win32_message(ERROR_FILE_NOT_FOUND, text), "error 2"));
    assert_null(strpbrk(text, "\r\n"));
    assert_string_equal(win32_message(0x1fffffff, text), "error 536870911");
}

static void test_wide_text(void **state) {
    (void)state;
    wchar_t *wide = win32_wide_path("a/" ODD_NAME, 1);
    assert_non_null(wide);
    assert_int_equal(wcscmp(wide, L"a\\" ODD_NAME_WIDE), 0);
    ggml_mem_free(wide);
    assert_null(win32_wide("\xff", 0));
}

// --- files

static size_t build_gguf(char *out_bytes, size_t size) {
    const float values[8] = {1, 2, 3, 4};
    const struct ggml_init_params params = {4096, NULL, false};
    struct ggml_context *ctx = ggml_init(params);
    struct gguf_context *gguf = gguf_init_empty();
    struct ggml_tensor *tensor = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 8);
    ggml_set_name(tensor, "t");
    memcpy(tensor->data, values, sizeof(values));
    gguf_add_tensor(gguf, tensor);
    gguf_set_val_str(gguf, "name", ODD_NAME);
    const size_t meta = gguf_get_meta_size(gguf);
    assert_true(meta + sizeof(values) <= size);
    gguf_get_meta_data(gguf, out_bytes);
    memcpy(out_bytes + meta, values, sizeof(values));
    gguf_free(gguf);
    ggml_free(ctx);
    return meta + sizeof(values);
}

static void check_gguf(struct gguf_context *gguf, struct ggml_context *ctx) {
    if (!gguf) fail_msg("%s", ggml_last_error());
    assert_string_equal(gguf_get_val_str(gguf, gguf_find_key(gguf, "name")), ODD_NAME);
    assert_true(ggml_get_f32_1d(ggml_get_tensor(ctx, "t"), 3) == 4.0f);
    gguf_free(gguf);
    ggml_free(ctx);
}

static void test_file_of_any_name(void **state) {
    const struct folder *folder = *state;
    char bytes[1024];
    const char *path = path_in(folder, ODD_NAME ".gguf");
    struct ggml_context *ctx = NULL;
    const struct gguf_init_params params = {.no_alloc = false, .ctx = &ctx};
    write_file(path, bytes, build_gguf(bytes, sizeof(bytes)));
    struct gguf_context *gguf = gguf_init_from_file(path, params);
    check_gguf(gguf, ctx);
    assert_null(gguf_init_from_file(path_in(folder, "none"), params));
    assert_null(ggml_fopen("\xff", "rb"));
}

static void test_file_beyond_4_gib(void **state) {
    const struct folder *folder = *state;
    const long long start = 5LL << 30;
    char bytes[1024];
    const size_t size = build_gguf(bytes, sizeof(bytes));
    wchar_t *wide = win32_wide_path(path_in(folder, "large.gguf"), 0);
    HANDLE handle = CreateFileW(wide, GENERIC_WRITE, 0, NULL, CREATE_ALWAYS, 0, NULL);
    DWORD n;
    DeviceIoControl(handle, FSCTL_SET_SPARSE, NULL, 0, NULL, 0, &n, NULL);
    CloseHandle(handle);
    ggml_mem_free(wide);

    FILE *file = ggml_fopen(path_in(folder, "large.gguf"), "r+b");
    struct ggml_context *ctx = NULL;
    const struct gguf_init_params params = {.no_alloc = false, .ctx = &ctx};
    assert_non_null(file);
    assert_int_equal(_fseeki64(file, start, SEEK_SET), 0);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(_fseeki64(file, start, SEEK_SET), 0);
    struct gguf_context *gguf = gguf_init_from_file_ptr(file, params);
    fclose(file);
    check_gguf(gguf, ctx);
}

// --- processors

static void test_machine_is_plausible(void **state) {
    (void)state;
    struct ggml_host_topology facts = {.size = sizeof(facts)};
    assert_int_equal(ggml_host_get_topology(&facts), GGML_HOST_OK);
    assert_in_range(facts.n_packages, 1, facts.n_cores);
    assert_in_range(facts.n_performance_cores, 1, facts.n_cores);
    assert_in_range(facts.n_cores, 1, facts.n_pus);
    assert_in_range(facts.n_pus, 1, GetActiveProcessorCount(ALL_PROCESSOR_GROUPS));
    assert_in_range(facts.default_threads, 1, facts.n_performance_cores);
    assert_int_equal(facts.cpu_features[0], ggml_host_cpu_features());
}

static KAFFINITY affinity(void) {
    GROUP_AFFINITY now;
    assert_true(GetThreadGroupAffinity(GetCurrentThread(), &now));
    return now.Mask;
}

static void test_threads_are_bound(void **state) {
    (void)state;
    const uint64_t nothing[2] = {0, 0}, first[1] = {1};
    const KAFFINITY before = affinity();
    for (uint32_t i = 0; i < 5; ++i) {
        assert_int_equal(topology_bind_thread(i, 5), GGML_HOST_OK);
        assert_true(affinity() != 0 && (affinity() & before) == affinity());
    }
    if (before & 1) {
        assert_int_equal(topology_bind_mask(first, 1), GGML_HOST_OK);
        assert_int_equal(affinity(), 1);
    }
    assert_int_equal(topology_bind_thread(0, 0), GGML_HOST_OK);
    assert_int_equal(affinity(), before);
    assert_int_equal(topology_bind_thread(3, 3), GGML_HOST_INVALID_ARGUMENT);
    assert_int_equal(topology_bind_mask(nothing, 2), GGML_HOST_INVALID_ARGUMENT);
}

// --- libraries

static void test_libraries_that_cannot_be_loaded(void **state) {
    const struct folder *folder = *state;
    char message[512] = "";
    assert_null(dl_open(path_in(folder, "none.dll"), message, sizeof(message)));
    assert_non_null(strstr(message, "is missing"));
    const char *path = path_in(folder, "damaged.dll");
    write_file(path, "MZ", 2);
    message[0] = '\0';
    assert_null(dl_open(path, message, sizeof(message)));
    assert_non_null(strstr(message, "error 193"));
    assert_null(dl_open("\xff", message, sizeof(message)));
}

static void test_directories_of_modules(void **state) {
    static const char here;
    char executable[1024], module[1024];
    (void)state;
    assert_true(dl_executable_dir(executable, sizeof(executable)));
    assert_true(dl_module_dir(&here, module, sizeof(module)));
    assert_string_equal(executable, module);
    assert_false(dl_executable_dir(module, 3));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_environment_is_utf8),
        cmocka_unit_test(test_messages_of_the_system),
        cmocka_unit_test(test_wide_text),
        cmocka_unit_test_setup_teardown(test_file_of_any_name, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(test_file_beyond_4_gib, open_folder, close_folder),
        cmocka_unit_test(test_machine_is_plausible),
        cmocka_unit_test(test_threads_are_bound),
        cmocka_unit_test_setup_teardown(test_libraries_that_cannot_be_loaded, open_folder,
                                        close_folder),
        cmocka_unit_test(test_directories_of_modules),
    };
    return cmocka_run_group_tests_name("windows", tests, NULL, NULL);
}
