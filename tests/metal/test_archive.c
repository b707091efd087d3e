// SPDX-License-Identifier: MIT
// Compiled kernels that the Metal plugin keeps: found again, replaced when they are of no use, and
// not read where somebody else could have written them.
#define _GNU_SOURCE
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "metal_test.h"

static char folder[64], file[512];

// Computes x + x; whether that is right.
static bool doubles(void) {
    float in[4] = {1.0f, 2.0f, 3.0f, 4.0f}, out[4] = {0.0f};
    ggml_backend_reg_t reg = metal_load();
    if (!reg) return false;
    ggml_backend_t stream = ggml_backend_dev_init(metal_device(reg, 0), NULL);
    struct ggml_context *c = metal_context();
    struct ggml_tensor *x = ggml_new_tensor_1d(c, GGML_TYPE_F32, 4), *y = ggml_add(c, x, x);
    struct ggml_cgraph *graph = ggml_new_graph(c);
    ggml_build_forward_expand(graph, y);
    ggml_backend_buffer_t buffer = stream ? ggml_backend_alloc_ctx_tensors(c, stream) : NULL;
    bool right = buffer != NULL;
    if (right) {
        ggml_backend_tensor_set(x, in, 0, sizeof(in));
        right = ggml_backend_graph_compute(stream, graph) == GGML_STATUS_SUCCESS;
        ggml_backend_tensor_get(y, out, 0, sizeof(out));
    }
    ggml_backend_buffer_free(buffer);
    ggml_free(c);
    ggml_backend_free(stream);
    metal_unload(reg);
    assert_int_equal(metal.live(), 0);
    return right && out[3] == 8.0f;
}

// How many kernels doubles() compiles.
static long compiled(void) {
    const long before = metal.compiled();
    assert_true(doubles());
    return metal.compiled() - before;
}

// Of files in the folder; `file` is the path of one.
static int count_files(void) {
    int n = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        if (e->d_name[0] == '.') continue;
        snprintf(file, sizeof(file), "%s/%s", folder, e->d_name);
        ++n;
    }
    closedir(dir);
    return n;
}

static int begin(void **state) {
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/metal-archive-XXXXXX");
    assert_non_null(mkdtemp(folder));
    setenv("GGML_METAL_CACHE", folder, 1);
    return 0;
}

static int end(void **state) {
    (void)state;
    while (count_files() > 0)
        remove(file);
    rmdir(folder);
    return 0;
}

static void test_again(void **state) {
    (void)state;
    const long first = compiled();
    assert_int_equal(first, 2); // one that is always made, one for the sum
    assert_int_equal(count_files(), 1);
    struct stat about;
    assert_int_equal(stat(file, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    assert_int_equal(compiled(), 0);
    setenv("GGML_METAL_CACHE", "0", 1);
    assert_true(doubles());
    setenv("GGML_METAL_CACHE", "relative", 1);
    assert_true(doubles());
    assert_int_equal(access("relative", F_OK), -1);
}

// Without settings below the user's folder, which is made.
static void test_home(void **state) {
    char home[sizeof(folder)], cache[sizeof(folder) + 16];
    (void)state;
    snprintf(home, sizeof(home), "%s", folder);
    unsetenv("GGML_METAL_CACHE");
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", home, 1);
    assert_int_equal(compiled(), 2);
    snprintf(cache, sizeof(cache), "%s/.cache", home);
    snprintf(folder, sizeof(folder), "%.40s/ggml-host", cache);
    assert_int_equal(count_files(), 1);
    assert_int_equal(remove(file), 0);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(rmdir(cache), 0);
    snprintf(folder, sizeof(folder), "%s", home);
}

// Whatever is not as it was written is compiled again, and replaced.
static void test_damaged(void **state) {
    (void)state;
    assert_int_equal(compiled(), 2);
    assert_int_equal(count_files(), 1);
    FILE *f = fopen(file, "w");
    fputs("something else", f);
    fclose(f);
    assert_int_equal(compiled(), 2);
    assert_int_equal(compiled(), 0);
}

// Files and folders that others could have written, and links.
static void test_of_others(void **state) {
    char target[sizeof(file) + 8];
    (void)state;
    assert_int_equal(compiled(), 2);
    assert_int_equal(count_files(), 1);
    chmod(file, 0620);
    assert_int_equal(compiled(), 2); // and written anew
    assert_int_equal(compiled(), 0);
    snprintf(target, sizeof(target), "%s.target", file);
    rename(file, target);
    assert_int_equal(symlink(target, file), 0);
    assert_int_equal(compiled(), 2);
    remove(target);
    assert_int_equal(compiled(), 0);
    chmod(folder, 0770);
    const long before = metal.calls("newBinaryArchiveWithDescriptor:error:");
    assert_true(doubles());
    assert_int_equal(metal.calls("newBinaryArchiveWithDescriptor:error:"), before);
    chmod(folder, 0700);
}

// As where root has the environment of another user (finding F12 of a security review).
static void test_f12_below_a_folder_of_another(void **state) {
    char below[sizeof(folder) + 8];
    (void)state;
    if (geteuid() != 0) {
        print_message("# left out: this is for root\n");
        return;
    }
    snprintf(below, sizeof(below), "%s/below", folder);
    setenv("GGML_METAL_CACHE", below, 1);
    assert_int_equal(chown(folder, 12345, 12345), 0);
    assert_true(doubles());
    assert_int_equal(access(below, F_OK), -1);
    assert_int_equal(mkdir(below, 0700), 0);
    const long before = metal.calls("newBinaryArchiveWithDescriptor:error:");
    assert_true(doubles());
    assert_int_equal(metal.calls("newBinaryArchiveWithDescriptor:error:"), before);
    assert_int_equal(rmdir(below), 0);
    assert_int_equal(chown(folder, 0, 0), 0);
}

// Wherever a call fails, results are right or a failure is told, and no half file is left.
static void test_failures(void **state) {
    (void)state;
    for (long n = 0;; ++n) {
        while (count_files() > 0)
            remove(file);
        ggml_clear_error();
        metal.fail_after(n, FAKE_METAL_OUT_OF_MEMORY);
        const bool right = doubles();
        const char *failed = metal.failed();
        metal.fail_after(-1, 0);
        if (!right && ggml_last_status() == GGML_HOST_OK) fail_msg("%s is not told", failed);
        assert_true(count_files() <= 1);
        assert_true(doubles());
        if (!failed) break;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_again, begin, end),
        cmocka_unit_test_setup_teardown(test_home, begin, end),
        cmocka_unit_test_setup_teardown(test_damaged, begin, end),
        cmocka_unit_test_setup_teardown(test_of_others, begin, end),
        cmocka_unit_test_setup_teardown(test_f12_below_a_folder_of_another, begin, end),
        cmocka_unit_test_setup_teardown(test_failures, begin, end),
    };
    metal_find_runtime();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
