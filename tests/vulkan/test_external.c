// SPDX-License-Identifier: MIT
// Memory that two instances of the plugin use: of one process, and of two. With the argument
// "child" it is the other one, and finds the memory's name in file 3.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ggml-alloc.h"
#include "ggml-ext-external-memory.h"
#include "ggml-host.h"

enum { N = 3000, HANDED = 3 };

static const char *program;
static ggml_backend_dev_t device;

static int open_device(void) {
    ggml_backend_reg_t reg = NULL;
    if (ggml_plugin_load(VULKAN_PLUGIN, &reg) != GGML_HOST_OK) return -1;
    device = ggml_backend_reg_dev_get(reg, 0);
    return device ? 0 : -1;
}

static int begin(void **state) {
    (void)state;
    return open_device();
}

static int n_files(void) {
    int n = 0;
    DIR *files = opendir("/proc/self/fd");
    assert_non_null(files);
    while (readdir(files))
        ++n;
    closedir(files);
    return n;
}

// A tensor of N numbers at the beginning of the buffer.
static struct ggml_tensor *tensor_in(struct ggml_context *ctx, ggml_backend_buffer_t buffer) {
    struct ggml_tensor *tensor = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, N);
    if (ggml_backend_tensor_alloc(buffer, tensor, ggml_backend_buffer_get_base(buffer)) !=
        GGML_STATUS_SUCCESS)
        return NULL;
    return tensor;
}

// Doubles what is in the memory.
static bool double_numbers(ggml_backend_buffer_t buffer) {
    struct ggml_context *ctx =
        ggml_init((struct ggml_init_params){.mem_size = 1 << 20, .no_alloc = true});
    struct ggml_tensor *tensor = tensor_in(ctx, buffer);
    struct ggml_tensor *twice = tensor ? ggml_add_inplace(ctx, tensor, tensor) : NULL;
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_backend_t stream = ggml_backend_dev_init(device, NULL);
    bool done = false;
    if (twice && stream && ggml_backend_view_init(twice) == GGML_STATUS_SUCCESS) {
        ggml_build_forward_expand(graph, twice);
        done = ggml_backend_graph_compute(stream, graph) == GGML_STATUS_SUCCESS;
    }
    ggml_backend_free(stream);
    ggml_free(ctx);
    return done;
}

static ggml_backend_buffer_t new_memory(struct ggml_external_memory *out_memory) {
    ggml_backend_buffer_t buffer = ggml_backend_dev_alloc_external(device, N * sizeof(float));
    if (!buffer && ggml_last_status() == GGML_HOST_UNSUPPORTED) skip();
    if (!buffer) fail_msg("%s", ggml_last_error());
    *out_memory = (struct ggml_external_memory){.size = sizeof(*out_memory)};
    assert_int_equal(ggml_backend_buffer_export(buffer, GGML_EXTERNAL_OPAQUE_FD, out_memory),
                     GGML_HOST_OK);
    assert_true(out_memory->fd >= 0);
    assert_true(fcntl(out_memory->fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(out_memory->bytes, N * sizeof(float));
    return buffer;
}

static int be_child(void) {
    struct ggml_external_memory memory;
    if (read(HANDED, &memory, sizeof(memory)) != sizeof(memory) || open_device() != 0) return 2;
    memory.fd = HANDED + 1;
    ggml_backend_buffer_t buffer = ggml_backend_dev_import_external(device, &memory);
    if (!buffer) return 3;
    const bool done = double_numbers(buffer);
    ggml_backend_buffer_free(buffer);
    return done ? 0 : 4;
}

// A process of its own, with the name and the memory as files 3 and 4.
static int run_child(const struct ggml_external_memory *memory) {
    int ends[2], status = 0;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], memory, sizeof(*memory)), sizeof(*memory));
    const int name = fcntl(ends[0], F_DUPFD, 20), fd = fcntl(memory->fd, F_DUPFD, 20);
    const pid_t child = fork();
    if (child == 0) {
        dup2(name, HANDED);
        dup2(fd, HANDED + 1);
        execl("/proc/self/exe", program, "child", (char *)NULL);
        _exit(9);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    close(ends[0]);
    close(ends[1]);
    close(name);
    close(fd);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_two_see_the_same(void **state) {
    struct ggml_external_memory memory;
    float numbers[N], seen[N];
    ggml_backend_buffer_t buffer = new_memory(&memory);
    const bool in_process = *state == NULL;
    struct ggml_context *ctx =
        ggml_init((struct ggml_init_params){.mem_size = 1 << 12, .no_alloc = true});
    struct ggml_tensor *tensor = tensor_in(ctx, buffer);
    for (int i = 0; i < N; ++i)
        numbers[i] = (float)i;
    ggml_backend_tensor_set(tensor, numbers, 0, sizeof(numbers));
    if (in_process) {
        ggml_backend_buffer_t other = ggml_backend_dev_import_external(device, &memory);
        if (!other) fail_msg("%s", ggml_last_error());
        assert_int_equal(ggml_backend_buffer_get_size(other), N * sizeof(float));
        assert_true(double_numbers(other));
        ggml_backend_buffer_free(other);
    } else {
        assert_int_equal(run_child(&memory), 0);
    }
    close(memory.fd);
    ggml_backend_tensor_get(tensor, seen, 0, sizeof(seen));
    for (int i = 0; i < N; ++i)
        if (seen[i] != 2.0f * numbers[i]) fail_msg("%d: %g", i, (double)seen[i]);
    ggml_free(ctx);
    ggml_backend_buffer_free(buffer);
}

static void must_refuse(const struct ggml_external_memory *memory, enum ggml_host_status status,
                        const char *what) {
    ggml_clear_error();
    ggml_backend_buffer_t buffer = ggml_backend_dev_import_external(device, memory);
    if (buffer) fail_msg("%s is imported", what);
    if (ggml_last_status() != status) fail_msg("%s: %s", what, ggml_last_error());
}

static int other_file(const char *what) {
    if (strcmp(what, "a file") == 0) return open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (strcmp(what, "a directory") == 0) return open("/", O_RDONLY | O_CLOEXEC);
    if (strcmp(what, "a pipe") == 0) {
        int ends[2];
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        close(ends[1]);
        return ends[0];
    }
    const int fd = memfd_create("test", MFD_CLOEXEC);
    assert_int_equal(ftruncate(fd, strcmp(what, "a short one") == 0 ? 100 : 1 << 20), 0);
    return fd;
}

static void test_others_are_refused(void **state) {
    static const char *const others[] = {"a file", "a directory", "a pipe", "a short one",
                                         "memory of nobody's"};
    struct ggml_external_memory memory, bad;
    (void)state;
    ggml_backend_buffer_t buffer = new_memory(&memory);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); ++i) {
        bad = memory;
        bad.fd = other_file(others[i]);
        must_refuse(&bad, GGML_HOST_INVALID_ARGUMENT, others[i]);
        close(bad.fd);
    }
    must_refuse(&bad, GGML_HOST_INVALID_ARGUMENT, "a closed one");
    bad.fd = -1;
    must_refuse(&bad, GGML_HOST_INVALID_ARGUMENT, "none");
    bad = memory;
    bad.device_uuid[3] ^= 1;
    must_refuse(&bad, GGML_HOST_INVALID_ARGUMENT, "another device");
    bad = memory;
    bad.driver_uuid[3] ^= 1;
    must_refuse(&bad, GGML_HOST_INVALID_ARGUMENT, "another driver");
    bad = memory;
    bad.bytes = bad.allocation_bytes + 1;
    must_refuse(&bad, GGML_HOST_INVALID_ARGUMENT, "a buffer beyond its memory");
    bad.allocation_bytes = bad.bytes = UINT64_C(1) << 30;
    must_refuse(&bad, GGML_HOST_INVALID_ARGUMENT, "memory beyond what there is");
    bad = memory;
    bad.bytes = 0;
    must_refuse(&bad, GGML_HOST_INVALID_ARGUMENT, "nothing");
    bad = memory;
    bad.memory_type = 77;
    must_refuse(&bad, GGML_HOST_INVALID_ARGUMENT, "a kind of memory that there isn't");
    bad = memory;
    bad.type = 99;
    must_refuse(&bad, GGML_HOST_UNSUPPORTED, "a type that there isn't");
    bad = memory;
    bad.size = 8;
    must_refuse(&bad, GGML_HOST_INVALID_ARGUMENT, "a struct without a size");
    close(memory.fd);
    ggml_backend_buffer_free(buffer);
    buffer = ggml_backend_buft_alloc_buffer(ggml_backend_dev_buffer_type(device), 4096);
    assert_int_equal(ggml_backend_buffer_export(buffer, GGML_EXTERNAL_OPAQUE_FD, &bad),
                     GGML_HOST_INVALID_ARGUMENT); // its size is still wrong
    bad.size = sizeof(bad);
    assert_int_equal(ggml_backend_buffer_export(buffer, GGML_EXTERNAL_OPAQUE_FD, &bad),
                     GGML_HOST_UNSUPPORTED);
    assert_int_equal(bad.fd, -1);
    ggml_backend_buffer_free(buffer);
    assert_null(ggml_backend_dev_alloc_external(NULL, 16));
    assert_null(ggml_backend_dev_alloc_external(device, 0));
}

// Whatever is imported or refused, nothing stays open.
static void test_no_file_stays_open(void **state) {
    void *other_process = NULL;
    test_two_see_the_same(&other_process);
    const int before = n_files();
    for (int i = 0; i < 3; ++i) {
        test_two_see_the_same(&other_process);
        test_others_are_refused(state);
    }
    assert_int_equal(n_files(), before);
}

static void test_who_has_none_says_so(void **state) {
    (void)state;
    ggml_clear_error();
    ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    if (!cpu) {
        print_message("# left out: no other device\n");
        return;
    }
    assert_null(ggml_backend_dev_alloc_external(cpu, 4096));
    assert_int_equal(ggml_last_status(), GGML_HOST_UNSUPPORTED);
}

int main(int argc, char **argv) {
    program = argv[0];
    if (argc > 1 && strcmp(argv[1], "child") == 0) return be_child();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_see_the_same),
        cmocka_unit_test_prestate(test_two_see_the_same, argv),
        cmocka_unit_test(test_others_are_refused),
        cmocka_unit_test(test_no_file_stays_open),
        cmocka_unit_test(test_who_has_none_says_so),
    };
    return cmocka_run_group_tests(tests, begin, NULL);
}
