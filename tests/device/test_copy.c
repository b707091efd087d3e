// SPDX-License-Identifier: MIT
// Copies between tensors on the host, on one device and on two, with every fallback.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/status.h"
#include "fake_device.h"

// Two devices and the host, each with a source and a destination of N floats.
enum { N = 700000, PLACES = 3 };

struct fixture {
    struct fake_device fake[2];
    ggml_backend_t stream[2];
    ggml_backend_buffer_t buffer[PLACES];
    struct ggml_tensor src[PLACES], dst[PLACES];
};

static struct fixture f;
static float *values;

static int set_up(void **state) {
    (void)state;
    memset(&f, 0, sizeof(f));
    fake_device_init(&f.fake[0], "FAKE0");
    fake_device_init(&f.fake[1], "FAKE1");
    ggml_backend_buffer_type_t bufts[PLACES] = {&f.fake[0].buft, &f.fake[1].buft,
                                                ggml_backend_cpu_buffer_type()};
    for (int i = 0; i < 2; ++i)
        f.stream[i] = ggml_backend_dev_init(&f.fake[i].device, NULL);
    for (int i = 0; i < PLACES; ++i) {
        f.buffer[i] = ggml_backend_buft_alloc_buffer(bufts[i], 2 * N * sizeof(float));
        ggml_backend_buffer_clear(f.buffer[i], 0);
        f.src[i] = fake_tensor("src", N, 1);
        f.dst[i] = fake_tensor("dst", N, 1);
        fake_place(f.buffer[i], &f.src[i], 0);
        fake_place(f.buffer[i], &f.dst[i], N * sizeof(float));
        ggml_backend_tensor_set(&f.src[i], values, 0, N * sizeof(float));
    }
    for (int i = 0; i < 2; ++i)
        memset(&f.fake[i].calls, 0, sizeof(f.fake[i].calls));
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    ggml_backend_free(f.stream[0]);
    ggml_backend_free(f.stream[1]);
    for (int i = 0; i < PLACES; ++i)
        ggml_backend_buffer_free(f.buffer[i]);
    return fake_device_alive(&f.fake[0]) + fake_device_alive(&f.fake[1]);
}

static int make_values(void **state) {
    (void)state;
    values = malloc(N * sizeof(float));
    for (int i = 0; i < N; ++i)
        values[i] = (float)i;
    return 0;
}

static int drop_values(void **state) {
    (void)state;
    free(values);
    return 0;
}

static void check(const struct ggml_tensor *tensor) {
    assert_memory_equal(fake_memory(tensor->data), values, N * sizeof(float));
}

static size_t whole_only(ggml_backend_buffer_type_t buft, const struct ggml_tensor *tensor) {
    (void)buft;
    (void)tensor;
    return SIZE_MAX;
}

// Memory in which rows are interleaved takes a tensor in one piece, however large.
static void test_whole_tensors_only(void **state) {
    (void)state;
    f.fake[0].refuses_copy = f.fake[1].refuses_copy = true;
    f.fake[1].buft_table.get_access_unit = whole_only;
    ggml_backend_tensor_copy(&f.src[0], &f.dst[1]);
    assert_int_equal(f.fake[1].calls.set_tensor, 1);
    check(&f.dst[1]);
    ggml_backend_tensor_copy(&f.src[1], &f.dst[0]);
    assert_int_equal(f.fake[1].calls.get_tensor, 1);
    ggml_clear_error();
    ggml_backend_tensor_set(&f.dst[1], values, 0, 4);
    assert_int_equal(ggml_last_status(), GGML_HOST_UNSUPPORTED);
    assert_int_equal(f.fake[1].calls.set_tensor, 1);
}

static void test_every_pair_of_places(void **state) {
    (void)state;
    for (int from = 0; from < PLACES; ++from) {
        for (int to = 0; to < PLACES; ++to) {
            ggml_backend_buffer_clear(f.buffer[to], 0);
            ggml_backend_tensor_set(&f.src[from], values, 0, N * sizeof(float));
            assert_quiet(ggml_backend_tensor_copy(&f.src[from], &f.dst[to]));
            check(&f.dst[to]);
        }
    }
    assert_int_equal(f.fake[0].calls.cpy_tensor, 2);
    assert_int_equal(f.fake[1].calls.cpy_tensor, 2);
}

static void test_staging_is_bounded(void **state) {
    (void)state;
    f.fake[1].refuses_copy = true;
    assert_quiet(ggml_backend_tensor_copy(&f.src[0], &f.dst[1]));
    check(&f.dst[1]);
    assert_int_equal(f.fake[0].calls.get_tensor, 3);
    assert_int_equal(f.fake[1].calls.set_tensor, 3);
}

static bool never(void *context) {
    (void)context;
    return false;
}

static void test_staging_without_memory(void **state) {
    (void)state;
    f.fake[1].buffer_table.cpy_tensor = NULL;
    ggml_mem_set_fault_hook(never, NULL);
    assert_quiet(ggml_backend_tensor_copy(&f.src[0], &f.dst[1]));
    ggml_mem_set_fault_hook(NULL, NULL);
    check(&f.dst[1]);
}

static void test_staging_stops_at_a_failure(void **state) {
    (void)state;
    f.fake[1].refuses_copy = true;
    f.fake[0].buffer_table.get_tensor = NULL;
    assert_refused(GGML_HOST_UNSUPPORTED, "FAKE0 does not offer get_tensor",
                   ggml_backend_tensor_copy(&f.src[0], &f.dst[1]));
    assert_int_equal(f.fake[1].calls.set_tensor, 0);
}

static void test_direct_copy(void **state) {
    (void)state;
    assert_true(ggml_backend_buffer_copy_tensor(&f.src[0], &f.dst[0]));
    check(&f.dst[0]);
    assert_true(ggml_backend_buffer_copy_tensor(&f.src[2], &f.dst[2]));
    check(&f.dst[2]);
    assert_quiet(assert_false(ggml_backend_buffer_copy_tensor(&f.src[0], &f.dst[2])));
    assert_refused(GGML_HOST_INVALID_ARGUMENT, "source is NULL",
                   assert_false(ggml_backend_buffer_copy_tensor(NULL, &f.dst[0])));
}

static void test_copy_refuses(void **state) {
    (void)state;
    struct ggml_tensor other = fake_tensor("other", N - 1, 1);
    struct ggml_tensor bare = fake_tensor("bare", N, 1);
    const int invalid = GGML_HOST_INVALID_ARGUMENT;
    assert_quiet(ggml_backend_tensor_copy(&bare, &bare));
    assert_refused(invalid, "source is NULL", ggml_backend_tensor_copy(NULL, &f.dst[0]));
    assert_refused(invalid, "destination is NULL", ggml_backend_tensor_copy(&f.src[0], NULL));
    assert_refused(invalid, "differ", ggml_backend_tensor_copy(&other, &f.dst[0]));
    assert_refused(invalid, "'bare' is not alloc", ggml_backend_tensor_copy(&bare, &f.dst[0]));
    assert_refused(invalid, "'bare' is not alloc", ggml_backend_tensor_copy(&f.src[0], &bare));
    assert_refused(invalid, "source stream",
                   ggml_backend_tensor_copy_async(NULL, f.stream[0], &f.src[0], &f.dst[0]));
    assert_refused(invalid, "destination stream",
                   ggml_backend_tensor_copy_async(f.stream[0], NULL, &f.src[0], &f.dst[0]));
    assert_refused(invalid, "differ",
                   ggml_backend_tensor_copy_async(f.stream[0], f.stream[0], &other, &f.dst[0]));
}

static void test_async_copy_waits_for_queued_work(void **state) {
    (void)state;
    ggml_backend_buffer_clear(f.buffer[0], 0);
    ggml_backend_tensor_set_async(f.stream[0], &f.src[0], values, 0, N * sizeof(float));
    ggml_backend_tensor_copy_async(f.stream[0], f.stream[0], &f.src[0], &f.dst[0]);
    assert_int_equal(f.fake[0].calls.synchronize, 0);
    ggml_backend_synchronize(f.stream[0]);
    check(&f.dst[0]);
}

static void test_async_copy_falls_back(void **state) {
    (void)state;
    ggml_backend_buffer_clear(f.buffer[0], 0);
    ggml_backend_tensor_set_async(f.stream[0], &f.src[0], values, 0, N * sizeof(float));
    ggml_backend_tensor_copy_async(f.stream[0], f.stream[1], &f.src[0], &f.dst[1]);
    check(&f.dst[1]);
    assert_int_equal(f.fake[1].calls.cpy_async, 1);
    assert_int_equal(f.fake[0].calls.synchronize, 1);
    assert_int_equal(f.fake[1].calls.synchronize, 1);
    f.fake[1].stream_table.cpy_tensor_async = NULL;
    ggml_backend_buffer_clear(f.buffer[1], 0);
    ggml_backend_tensor_copy_async(f.stream[0], f.stream[1], &f.src[0], &f.dst[1]);
    check(&f.dst[1]);
}

static void test_empty_tensors(void **state) {
    (void)state;
    struct ggml_tensor a = fake_tensor("a", 0, 1);
    struct ggml_tensor b = fake_tensor("b", 0, 1);
    assert_quiet(ggml_backend_tensor_copy(&a, &b));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_whole_tensors_only),
        TEST(test_every_pair_of_places),
        TEST(test_staging_is_bounded),
        TEST(test_staging_without_memory),
        TEST(test_staging_stops_at_a_failure),
        TEST(test_direct_copy),
        TEST(test_copy_refuses),
        TEST(test_async_copy_waits_for_queued_work),
        TEST(test_async_copy_falls_back),
        TEST(test_empty_tensors),
    };
    return cmocka_run_group_tests(tests, make_values, drop_values);
}
