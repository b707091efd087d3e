// SPDX-License-Identifier: MIT
// Memory of the Metal plugin that is short, and memory that several of Metal's buffers show: Metal
// orders work by buffers, and does not know that these have bytes in common.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "metal_test.h"

enum { N = 64, LARGE = 5 << 20 };

static ggml_backend_reg_t reg;
static ggml_backend_dev_t device;
static ggml_backend_t stream;
static struct ggml_context *context;

static void open_device(void) {
    reg = metal_load();
    device = metal_device(reg, 0);
    stream = ggml_backend_dev_init(device, NULL);
    assert_non_null(stream);
    context = metal_context();
}

static void close_device(ggml_backend_buffer_t buffer) {
    ggml_backend_buffer_free(buffer);
    ggml_free(context);
    ggml_backend_free(stream);
    metal_unload(reg);
    assert_int_equal(metal.live(), 0);
}

static struct ggml_cgraph *graph_of(struct ggml_tensor *result) {
    struct ggml_cgraph *graph = ggml_new_graph(context);
    ggml_build_forward_expand(graph, result);
    return graph;
}

static void queue(struct ggml_cgraph *graph) {
    assert_int_equal(ggml_backend_graph_compute_async(stream, graph), GGML_STATUS_SUCCESS);
}

static void expect(const float *values, float expected) {
    for (int i = 0; i < N; ++i)
        assert_true(values[i] == expected);
}

// --- what there is too little of -----------------------------------------------------------------

// Without staging memory a transfer waits for the stream, and is done then.
static void test_no_staging(void **state) {
    float ones[N], fives[N], got[N];
    (void)state;
    open_device();
    struct ggml_tensor *x = ggml_new_tensor_1d(context, GGML_TYPE_F32, N);
    struct ggml_tensor *y = ggml_scale(context, x, 2.0f);
    struct ggml_cgraph *graph = graph_of(y);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(context, stream);
    for (int i = 0; i < N; ++i)
        ones[i] = 1.0f, fives[i] = 5.0f;
    ggml_backend_tensor_set(x, ones, 0, sizeof(ones));
    queue(graph);
    metal.fail_after(0, FAKE_METAL_OUT_OF_MEMORY);
    ggml_backend_tensor_set_async(stream, x, fives, 0, sizeof(fives));
    assert_string_equal(metal.failed(), "newBufferWithLength");
    ggml_backend_tensor_get(y, got, 0, sizeof(got));
    expect(got, 2.0f);
    queue(graph);
    metal.fail_after(0, FAKE_METAL_OUT_OF_MEMORY);
    ggml_backend_tensor_get_async(stream, y, got, 0, sizeof(got));
    assert_string_equal(metal.failed(), "newBufferWithLength");
    metal.fail_after(-1, 0);
    expect(got, 10.0f);
    close_device(buffer);
}

// Of a device with memory of its own: smaller pieces.
static void test_little_staging(void **state) {
    static char bytes[LARGE], got[LARGE];
    (void)state;
    setenv("FAKE_METAL_UNIFIED", "0", 1);
    open_device();
    struct ggml_tensor *x = ggml_new_tensor_1d(context, GGML_TYPE_I8, LARGE);
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(context, stream);
    for (int i = 0; i < LARGE; ++i)
        bytes[i] = (char)(i * 7 + i / 251);
    metal.fail_after(0, FAKE_METAL_OUT_OF_MEMORY);
    ggml_backend_tensor_set(x, bytes, 0, LARGE);
    assert_string_equal(metal.failed(), "newBufferWithLength");
    metal.fail_after(-1, 0);
    ggml_backend_tensor_get(x, got, 0, LARGE);
    assert_memory_equal(got, bytes, LARGE);
    close_device(buffer);
    unsetenv("FAKE_METAL_UNIFIED");
}

// As on iOS, which leaves a process less than the device has.
static void test_available(void **state) {
    size_t left, total;
    (void)state;
    setenv("FAKE_METAL_AVAILABLE", "65536", 1);
    open_device();
    ggml_backend_dev_memory(device, &left, &total);
    assert_int_equal(left, 65536);
    assert_int_equal(total, 1 << 30);
    ggml_backend_buffer_type_t buft = ggml_backend_dev_buffer_type(device);
    assert_null(ggml_backend_buft_alloc_buffer(buft, 65600));
    assert_int_equal(ggml_last_status(), GGML_HOST_OUT_OF_MEMORY);
    close_device(ggml_backend_buft_alloc_buffer(buft, 60000));
    unsetenv("FAKE_METAL_AVAILABLE");
}

// --- what several buffers show -------------------------------------------------------------------

// The windows of the application's memory, each of four pages, have two in common. A tensor that
// ends behind the first window lies in the second one, and the beginning of it in the first.
static void test_windows(void **state) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), n_pages = 8;
    const size_t floats = page / sizeof(float), at = floats * 7 / 2;
    float *memory = aligned_alloc(page, n_pages * page), ones[N], got[N];
    float *zeros = calloc(1, page);
    char text[32];
    (void)state;
    snprintf(text, sizeof(text), "%zu", 4 * page);
    setenv("FAKE_METAL_MAX_BUFFER", text, 1);
    open_device();
    ggml_backend_buffer_t buffer =
        ggml_backend_dev_buffer_from_host_ptr(device, memory, n_pages * page, page);
    struct ggml_tensor *all = ggml_new_tensor_1d(context, GGML_TYPE_F32, (int64_t)floats);
    struct ggml_tensor *other = ggml_new_tensor_1d(context, GGML_TYPE_F32, (int64_t)floats);
    struct ggml_tensor *some = ggml_new_tensor_1d(context, GGML_TYPE_F32, N);
    struct ggml_tensor *tripled = ggml_scale_inplace(context, all, 3.0f);
    struct ggml_tensor *doubled = ggml_scale(context, some, 2.0f);
    struct ggml_tensor *both = ggml_concat(context, some, all, 0);
    struct ggml_cgraph *first = graph_of(tripled), *second = graph_of(doubled);
    struct ggml_cgraph *third = graph_of(both);
    ggml_backend_tensor_alloc(buffer, all, memory + at);
    ggml_backend_tensor_alloc(buffer, some, memory + at);
    ggml_backend_tensor_alloc(buffer, other, memory + 5 * floats);
    ggml_backend_tensor_alloc(buffer, doubled, memory);
    ggml_backend_tensor_alloc(buffer, both, memory);
    ggml_backend_view_init(tripled);
    for (size_t i = 0; i < floats; ++i)
        memory[at + i] = 1.0f;
    queue(first);
    queue(second);
    ggml_backend_synchronize(stream);
    expect(memory, 6.0f);
    queue(first);
    ggml_backend_tensor_get_async(stream, some, got, 0, sizeof(got));
    ggml_backend_synchronize(stream);
    expect(got, 9.0f);
    for (int i = 0; i < N; ++i)
        ones[i] = 1.0f;
    queue(first);
    ggml_backend_tensor_set_async(stream, all, zeros, 0, page);
    ggml_backend_tensor_set_async(stream, some, ones, 0, sizeof(ones));
    ggml_backend_synchronize(stream);
    expect(memory + at, 1.0f);
    expect(memory + at + N, 0.0f);
    queue(second);
    ggml_backend_tensor_copy_async(stream, stream, doubled, some);
    ggml_backend_tensor_copy_async(stream, stream, all, other);
    ggml_backend_synchronize(stream);
    expect(memory + 5 * floats, 2.0f);
    // Operands that begin at the same place, the shorter one first, which the first window shows.
    for (size_t i = 0; i < floats; ++i)
        memory[at + i] = (float)i;
    queue(third);
    ggml_backend_synchronize(stream);
    for (size_t i = 0; i < N + floats; ++i)
        assert_true(memory[i] == (float)(i < N ? i : i - N));
    close_device(buffer);
    unsetenv("FAKE_METAL_MAX_BUFFER");
    free(zeros);
    free(memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_staging),
        cmocka_unit_test(test_little_staging),
        cmocka_unit_test(test_available),
        cmocka_unit_test(test_windows),
    };
    metal_find_runtime();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
