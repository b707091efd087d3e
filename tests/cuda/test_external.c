// SPDX-License-Identifier: MIT
// Memory that the CUDA plugin shares: with itself in another process, and with the Vulkan plugin,
// whose driver for the CPU the fake driver shares memory with once it has that device's UUID. With
// the argument "child" it is the other process, and finds the memory's name in file 3.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_test.h"
#include "ggml-ext-external-memory.h"

enum { N = 3000, HANDED = 3 };

static const char *program;

static struct ggml_tensor *tensor_in(struct ggml_context *ctx, ggml_backend_buffer_t buffer) {
    struct ggml_tensor *tensor = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, N);
    assert_int_equal(
        ggml_backend_tensor_alloc(buffer, tensor, ggml_backend_buffer_get_base(buffer)),
        GGML_STATUS_SUCCESS);
    return tensor;
}

// Doubles what is in the memory, by a kernel.
static void double_numbers(ggml_backend_dev_t device, ggml_backend_buffer_t buffer) {
    struct ggml_context *ctx = cuda_context();
    struct ggml_tensor *tensor = tensor_in(ctx, buffer);
    struct ggml_tensor *twice = ggml_add_inplace(ctx, tensor, tensor);
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_backend_t stream = ggml_backend_dev_init(device, NULL);
    assert_non_null(stream);
    assert_int_equal(ggml_backend_view_init(twice), GGML_STATUS_SUCCESS);
    ggml_build_forward_expand(graph, twice);
    assert_int_equal(ggml_backend_graph_compute(stream, graph), GGML_STATUS_SUCCESS);
    ggml_backend_free(stream);
    ggml_free(ctx);
}

static ggml_backend_buffer_t new_memory(ggml_backend_dev_t device,
                                        struct ggml_external_memory *out_memory) {
    ggml_backend_buffer_t buffer = ggml_backend_dev_alloc_external(device, N * sizeof(float));
    if (!buffer && ggml_last_status() == GGML_HOST_UNSUPPORTED) return NULL;
    if (!buffer) fail_msg("%s", ggml_last_error());
    *out_memory = (struct ggml_external_memory){.size = sizeof(*out_memory)};
    assert_int_equal(ggml_backend_buffer_export(buffer, GGML_EXTERNAL_OPAQUE_FD, out_memory),
                     GGML_HOST_OK);
    return buffer;
}

static void put_numbers(ggml_backend_buffer_t buffer) {
    float numbers[N];
    struct ggml_context *ctx = cuda_context();
    for (int i = 0; i < N; ++i)
        numbers[i] = (float)i;
    ggml_backend_tensor_set(tensor_in(ctx, buffer), numbers, 0, sizeof(numbers));
    ggml_free(ctx);
}

static void expect_numbers(ggml_backend_buffer_t buffer, float factor) {
    float seen[N];
    struct ggml_context *ctx = cuda_context();
    ggml_backend_tensor_get(tensor_in(ctx, buffer), seen, 0, sizeof(seen));
    for (int i = 0; i < N; ++i)
        if (seen[i] != factor * (float)i) fail_msg("%d: %g", i, (double)seen[i]);
    ggml_free(ctx);
}

static ggml_backend_buffer_t import(ggml_backend_dev_t device,
                                    const struct ggml_external_memory *memory) {
    ggml_backend_buffer_t buffer = ggml_backend_dev_import_external(device, memory);
    if (!buffer) fail_msg("%s", ggml_last_error());
    return buffer;
}

// --- two processes -------------------------------------------------------------------------------

static int be_child(void) {
    struct ggml_external_memory memory;
    if (read(HANDED, &memory, sizeof(memory)) != sizeof(memory)) return 2;
    memory.fd = HANDED + 1;
    ggml_backend_buffer_t buffer = ggml_backend_dev_import_external(cuda_device(0), &memory);
    if (!buffer) return 3;
    double_numbers(cuda_device(0), buffer);
    ggml_backend_buffer_free(buffer);
    cuda_unload();
    return 0;
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

static void test_two_processes(void **state) {
    struct ggml_external_memory memory;
    (void)state;
    ggml_backend_buffer_t buffer = new_memory(cuda_device(0), &memory);
    assert_non_null(buffer);
    put_numbers(buffer);
    assert_int_equal(run_child(&memory), 0);
    expect_numbers(buffer, 2.0f);
    ggml_backend_buffer_t other = import(cuda_device(0), &memory);
    ggml_backend_buffer_free(buffer); // the memory stays
    double_numbers(cuda_device(0), other);
    expect_numbers(other, 4.0f);
    ggml_backend_buffer_free(other);
    close(memory.fd);
    cuda_unload();
}

// Another process has given it away: neither side's limit counts it twice.
static void test_limit(void **state) {
    struct ggml_external_memory memory;
    (void)state;
    setenv("GGML_CUDA_MEMORY_LIMIT", "3M", 1);
    ggml_backend_buffer_t buffer = new_memory(cuda_device(0), &memory);
    assert_non_null(buffer);
    ggml_clear_error();
    assert_null(ggml_backend_dev_alloc_external(cuda_device(0), 1));
    assert_int_equal(ggml_last_status(), GGML_HOST_OUT_OF_MEMORY);
    ggml_backend_buffer_t other = import(cuda_device(0), &memory);
    ggml_backend_buffer_free(buffer);
    ggml_backend_buffer_free(other);
    close(memory.fd);
    cuda_unload();
    unsetenv("GGML_CUDA_MEMORY_LIMIT");
}

static void test_no_such_memory(void **state) {
    (void)state;
    setenv("FAKE_CUDA_VMM", "0", 1);
    assert_null(ggml_backend_dev_alloc_external(cuda_device(0), 1));
    assert_int_equal(ggml_last_status(), GGML_HOST_UNSUPPORTED);
    unsetenv("FAKE_CUDA_VMM");
    cuda_unload();
}

// --- the Vulkan plugin ---------------------------------------------------------------------------

#ifdef VULKAN_PLUGIN
static void test_vulkan(void **state) {
    struct ggml_external_memory memory, bad;
    ggml_backend_reg_t reg = NULL;
    char uuid[2 * GGML_EXTERNAL_UUID_BYTES + 1];
    (void)state;
    ggml_backend_dev_t vulkan = ggml_plugin_load(VULKAN_PLUGIN, &reg) == GGML_HOST_OK
                                    ? ggml_backend_reg_dev_get(reg, 0)
                                    : NULL;
    ggml_backend_buffer_t here = vulkan ? new_memory(vulkan, &memory) : NULL;
    if (!here) {
        print_message("# no Vulkan driver that exports memory\n");
        return;
    }
    for (int i = 0; i < GGML_EXTERNAL_UUID_BYTES; ++i)
        snprintf(uuid + 2 * i, 3, "%02x", memory.device_uuid[i]);
    assert_null(ggml_backend_dev_import_external(cuda_device(0), &memory)); // another GPU
    assert_int_equal(ggml_last_status(), GGML_HOST_INVALID_ARGUMENT);
    cuda_unload();
    setenv("FAKE_CUDA_UUID", uuid, 1);
    ggml_backend_buffer_t there = import(cuda_device(0), &memory);
    put_numbers(here);
    double_numbers(cuda_device(0), there);
    expect_numbers(here, 2.0f);
    double_numbers(vulkan, here);
    expect_numbers(there, 4.0f);
    bad = memory;
    bad.allocation_bytes += 1 << 20;
    ggml_clear_error();
    assert_null(ggml_backend_dev_import_external(cuda_device(0), &bad));
    assert_int_equal(ggml_last_status(), GGML_HOST_INVALID_ARGUMENT);
    ggml_backend_buffer_free(here); // the memory stays
    expect_numbers(there, 4.0f);
    ggml_backend_buffer_free(there);
    close(memory.fd);
    // What the CUDA plugin makes the Vulkan plugin does not take.
    there = new_memory(cuda_device(0), &memory);
    ggml_clear_error();
    assert_null(ggml_backend_dev_import_external(vulkan, &memory));
    assert_int_equal(ggml_last_status(), GGML_HOST_INVALID_ARGUMENT);
    ggml_backend_buffer_free(there);
    close(memory.fd);
    unsetenv("FAKE_CUDA_UUID");
    cuda_unload();
}
#endif

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_processes),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_no_such_memory),
#ifdef VULKAN_PLUGIN
        cmocka_unit_test(test_vulkan),
#endif
    };
    program = argv[0];
    cuda_find_driver();
    if (argc > 1 && strcmp(argv[1], "child") == 0) return be_child();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
