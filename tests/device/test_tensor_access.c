// SPDX-License-Identifier: MIT
// Placing tensors, and transfers between them and host memory: blocking, strided, queued.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_device.h"
#include "ggml-impl.h"

// A tensor of 8 x 4 floats in a buffer of the fake device, and a stream.
struct fixture {
    struct fake_device fake;
    ggml_backend_buffer_t buffer;
    ggml_backend_t stream;
    struct ggml_tensor tensor;
    float in[32], out[32];
};

static struct fixture f;

static int set_up(void **state) {
    (void)state;
    memset(&f, 0, sizeof(f));
    fake_device_init(&f.fake, "FAKE");
    f.tensor = fake_tensor("t", 8, 4);
    f.buffer = ggml_backend_buft_alloc_buffer(&f.fake.buft, 256);
    f.stream = ggml_backend_dev_init(&f.fake.device, NULL);
    fake_place(f.buffer, &f.tensor, 128);
    for (int i = 0; i < 32; ++i)
        f.in[i] = (float)i + 1;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    ggml_backend_free(f.stream);
    ggml_backend_buffer_free(f.buffer);
    return fake_device_alive(&f.fake);
}

static void test_set_and_get(void **state) {
    (void)state;
    assert_quiet(ggml_backend_tensor_set(&f.tensor, f.in, 0, 128));
    assert_quiet(ggml_backend_tensor_get(&f.tensor, f.out, 4, 12));
    assert_memory_equal(f.out, f.in + 1, 12);
    assert_true(f.out[3] == 0);
    ggml_backend_tensor_memset(&f.tensor, 0xff, 124, 4);
    ggml_backend_tensor_get(&f.tensor, f.out, 120, 8);
    assert_true(f.out[0] == 31 && f.out[1] != f.out[1]);
    assert_int_equal(f.fake.calls.memset_tensor, 1);
}

static void test_views_use_the_owner_buffer(void **state) {
    (void)state;
    struct ggml_tensor view = fake_view(&f.tensor, 4, 16);
    assert_int_equal(ggml_backend_view_init(&view), GGML_STATUS_SUCCESS);
    view.buffer = NULL;
    ggml_backend_tensor_set(&view, f.in, 0, 16);
    ggml_backend_tensor_get(&f.tensor, f.out, 16, 16);
    assert_memory_equal(f.out, f.in, 16);
}

static void test_nothing_to_do(void **state) {
    (void)state;
    struct ggml_tensor bare = fake_tensor("bare", 4, 1);
    assert_quiet(ggml_backend_tensor_set(&bare, NULL, 0, 0));
    assert_quiet(ggml_backend_tensor_get(&bare, NULL, 99, 0));
    assert_quiet(ggml_backend_tensor_memset(&bare, 0, 99, 0));
    assert_quiet(ggml_backend_tensor_set_2d(&f.tensor, f.in, 0, 4, 0, 8, 8));
    assert_quiet(ggml_backend_tensor_get_2d_async(f.stream, &f.tensor, f.out, 0, 0, 9, 8, 8));
    assert_int_equal(f.fake.calls.set_tensor + f.fake.calls.get_tensor, 0);
}

static void test_bounds(void **state) {
    (void)state;
    static const size_t wrong[][2] = {
        {0, 129}, {128, 1}, {1, 128}, {SIZE_MAX, 1}, {SIZE_MAX, SIZE_MAX}, {4, SIZE_MAX - 3}};
    const int range = GGML_HOST_OUT_OF_RANGE;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
        const size_t offset = wrong[i][0];
        const size_t size = wrong[i][1];
        assert_refused(range,
                       "tensor_set: ", ggml_backend_tensor_set(&f.tensor, f.in, offset, size));
        assert_refused(range,
                       "tensor_get: ", ggml_backend_tensor_get(&f.tensor, f.out, offset, size));
        assert_refused(range, "FAKE", ggml_backend_tensor_memset(&f.tensor, 0, offset, size));
        assert_refused(range, "set_async",
                       ggml_backend_tensor_set_async(f.stream, &f.tensor, f.in, offset, size));
        assert_refused(range, "get_async",
                       ggml_backend_tensor_get_async(f.stream, &f.tensor, f.out, offset, size));
    }
}

static void test_bounds_2d(void **state) {
    (void)state;
    // size, copies, stride of the tensor, stride of the data
    static const size_t wrong[][4] = {
        {4, 5, 32, 4},        {33, 4, 32, 40},     {4, SIZE_MAX, 32, 4}, {4, 2, SIZE_MAX, 4},
        {4, 2, 32, SIZE_MAX}, {8, SIZE_MAX, 0, 8}, {SIZE_MAX, 2, 1, 1}};
    const int range = GGML_HOST_OUT_OF_RANGE;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
        const size_t *w = wrong[i];
        assert_refused(range, "set_2d",
                       ggml_backend_tensor_set_2d(&f.tensor, f.in, 0, w[0], w[1], w[2], w[3]));
        assert_refused(range, "get_2d",
                       ggml_backend_tensor_get_2d(&f.tensor, f.out, 0, w[0], w[1], w[2], w[3]));
        assert_refused(
            range, "set_2d_async",
            ggml_backend_tensor_set_2d_async(f.stream, &f.tensor, f.in, 0, w[0], w[1], w[2], w[3]));
        assert_refused(range, "get_2d_async",
                       ggml_backend_tensor_get_2d_async(f.stream, &f.tensor, f.out, 0, w[0], w[1],
                                                        w[2], w[3]));
    }
    assert_int_equal(f.fake.n_queued, 0);
}

// Builders let views reach beyond the end of their tensor by their strides; nothing may go there.
static void test_views_beyond_the_end(void **state) {
    (void)state;
    const int range = GGML_HOST_OUT_OF_RANGE;
    struct ggml_tensor view = f.tensor, whole = f.tensor;
    view.view_src = &f.tensor;
    view.view_offs = 4;
    assert_refused(range, "reaches beyond", ggml_backend_tensor_set(&view, f.in, 0, 4));
    assert_refused(range, "reaches beyond", ggml_backend_tensor_get(&view, f.out, 0, 4));
    assert_refused(range, "reaches beyond", ggml_backend_tensor_memset(&view, 0, 0, 4));
    assert_refused(range, "reaches beyond", ggml_backend_tensor_copy(&view, &whole));
    assert_refused(range, "reaches beyond", ggml_backend_tensor_copy(&whole, &view));
}

static void test_unusable_tensors(void **state) {
    (void)state;
    const int invalid = GGML_HOST_INVALID_ARGUMENT;
    struct ggml_tensor bare = fake_tensor("bare", 4, 1);
    assert_refused(invalid, "tensor is NULL", ggml_backend_tensor_set(NULL, f.in, 0, 4));
    assert_refused(invalid, "host memory is NULL", ggml_backend_tensor_get(&f.tensor, NULL, 0, 4));
    assert_refused(invalid, "'bare' has no data", ggml_backend_tensor_memset(&bare, 0, 0, 4));
    bare.data = f.out;
    assert_refused(invalid, "'bare' has no buffer", ggml_backend_tensor_set(&bare, f.in, 0, 4));
    bare.flags = GGML_TENSOR_FLAG_ERROR;
    bare.extra = (void *)"impossible shapes";
    assert_refused(invalid, "impossible shapes", ggml_backend_tensor_get(&bare, f.in, 0, 4));
    assert_refused(invalid, "stream is NULL",
                   ggml_backend_tensor_set_async(NULL, &f.tensor, f.in, 0, 4));
    assert_refused(invalid, "stream is NULL",
                   ggml_backend_tensor_get_async(NULL, &f.tensor, f.out, 0, 4));
    assert_refused(invalid, "stream is NULL",
                   ggml_backend_tensor_set_2d_async(NULL, &f.tensor, f.in, 0, 4, 1, 4, 4));
    assert_refused(invalid, "stream is NULL",
                   ggml_backend_tensor_get_2d_async(NULL, &f.tensor, f.out, 0, 4, 1, 4, 4));
}

static void test_missing_entries(void **state) {
    (void)state;
    const int unsupported = GGML_HOST_UNSUPPORTED;
    f.fake.buffer_table.set_tensor = NULL;
    f.fake.buffer_table.get_tensor = NULL;
    f.fake.buffer_table.set_tensor_2d = NULL;
    f.fake.buffer_table.get_tensor_2d = NULL;
    f.fake.buffer_table.memset_tensor = NULL;
    assert_refused(unsupported, "set_tensor", ggml_backend_tensor_set(&f.tensor, f.in, 0, 4));
    assert_refused(unsupported, "get_tensor", ggml_backend_tensor_get(&f.tensor, f.out, 0, 4));
    assert_refused(unsupported, "set_tensor",
                   ggml_backend_tensor_set_2d(&f.tensor, f.in, 0, 4, 2, 8, 8));
    assert_refused(unsupported, "get_tensor",
                   ggml_backend_tensor_get_2d(&f.tensor, f.out, 0, 4, 2, 8, 8));
    assert_refused(unsupported, "memset_tensor", ggml_backend_tensor_memset(&f.tensor, 0, 0, 4));
}

// Column 2 to 3 of every row.
static void check_columns(void) {
    float packed[8];
    ggml_backend_tensor_set(&f.tensor, f.in, 0, 128);
    ggml_backend_tensor_get_2d(&f.tensor, packed, 8, 8, 4, 32, 8);
    for (int row = 0; row < 4; ++row) {
        assert_memory_equal(packed + 2 * row, f.in + 8 * row + 2, 8);
        packed[2 * row] = -1;
    }
    ggml_backend_tensor_set_2d(&f.tensor, packed, 8, 8, 4, 32, 8);
    ggml_backend_tensor_get(&f.tensor, f.out, 0, 128);
    for (int row = 0; row < 4; ++row) {
        f.in[8 * row + 2] = -1;
    }
    assert_memory_equal(f.out, f.in, 128);
}

static void test_2d(void **state) {
    (void)state;
    check_columns();
    assert_int_equal(f.fake.calls.set_tensor_2d, 1);
    assert_int_equal(f.fake.calls.get_tensor_2d, 1);
}

static void test_2d_falls_back_to_a_loop(void **state) {
    (void)state;
    f.fake.buffer_table.set_tensor_2d = NULL;
    f.fake.buffer_table.get_tensor_2d = NULL;
    check_columns();
    assert_int_equal(f.fake.calls.set_tensor, 1 + 4);
    assert_int_equal(f.fake.calls.get_tensor, 4 + 1);
}

static void test_one_copy_uses_the_plain_entry(void **state) {
    (void)state;
    ggml_backend_tensor_set_2d(&f.tensor, f.in, 0, 16, 1, SIZE_MAX, SIZE_MAX);
    ggml_backend_tensor_get_2d_async(f.stream, &f.tensor, f.out, 0, 16, 1, 0, 0);
    ggml_backend_synchronize(f.stream);
    assert_memory_equal(f.out, f.in, 16);
    assert_int_equal(f.fake.calls.set_tensor_2d + f.fake.calls.get_2d_async, 0);
}

static void test_memset_falls_back_to_pieces(void **state) {
    (void)state;
    struct ggml_tensor big = fake_tensor("big", 3000, 1);
    ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(&f.fake.buft, 12000);
    fake_place(buffer, &big, 0);
    f.fake.buffer_table.memset_tensor = NULL;
    ggml_backend_tensor_memset(&big, 5, 1, 11998);
    const unsigned char *memory = fake_memory(big.data);
    assert_int_equal(memory[0], 0);
    for (int i = 1; i < 11999; ++i)
        assert_int_equal(memory[i], 5);
    assert_int_equal(memory[11999], 0);
    assert_in_range(f.fake.calls.set_tensor, 2, 4);
    ggml_backend_buffer_free(buffer);
}

static void test_async_is_ordered(void **state) {
    (void)state;
    ggml_backend_tensor_set_async(f.stream, &f.tensor, f.in, 0, 128);
    ggml_backend_tensor_get_async(f.stream, &f.tensor, f.out, 0, 64);
    ggml_backend_tensor_set_2d_async(f.stream, &f.tensor, f.in + 1, 0, 4, 2, 32, 4);
    ggml_backend_tensor_get_2d_async(f.stream, &f.tensor, f.out + 16, 0, 4, 4, 32, 4);
    assert_true(f.out[0] == 0);
    ggml_backend_synchronize(f.stream);
    assert_memory_equal(f.out, f.in, 64);
    const float expected[4] = {2, 3, 17, 25};
    assert_memory_equal(f.out + 16, expected, sizeof(expected));
    assert_int_equal(f.fake.calls.set_async, 1);
    assert_int_equal(f.fake.calls.set_2d_async, 1);
    assert_int_equal(f.fake.calls.get_2d_async, 1);
    assert_int_equal(f.fake.calls.set_tensor + f.fake.calls.get_tensor, 0);
}

static void test_async_2d_falls_back_to_queued_pieces(void **state) {
    (void)state;
    f.fake.stream_table.set_tensor_2d_async = NULL;
    f.fake.stream_table.get_tensor_2d_async = NULL;
    ggml_backend_tensor_set_2d_async(f.stream, &f.tensor, f.in, 0, 4, 4, 32, 4);
    ggml_backend_tensor_get_2d_async(f.stream, &f.tensor, f.out, 0, 4, 4, 32, 4);
    assert_int_equal(f.fake.calls.synchronize, 0);
    ggml_backend_synchronize(f.stream);
    assert_memory_equal(f.out, f.in, 16);
    assert_int_equal(f.fake.calls.set_async, 4);
}

static int32_t unsupported_set(ggml_backend_t stream, struct ggml_tensor *tensor, const void *data,
                               size_t offset, size_t size) {
    (void)stream, (void)tensor, (void)data, (void)offset, (void)size;
    return GGML_HOST_UNSUPPORTED;
}

static int32_t unsupported_get(ggml_backend_t stream, const struct ggml_tensor *tensor, void *data,
                               size_t offset, size_t size) {
    (void)stream, (void)tensor, (void)data, (void)offset, (void)size;
    return GGML_HOST_UNSUPPORTED;
}

static int32_t failing_set(ggml_backend_t stream, struct ggml_tensor *tensor, const void *data,
                           size_t offset, size_t size) {
    (void)stream, (void)tensor, (void)data, (void)offset, (void)size;
    return GGML_HOST_DEVICE_LOST;
}

static void test_async_entries_may_decline(void **state) {
    (void)state;
    f.fake.stream_table.set_tensor_async = unsupported_set;
    f.fake.stream_table.get_tensor_async = unsupported_get;
    assert_quiet(ggml_backend_tensor_set_async(f.stream, &f.tensor, f.in, 0, 128));
    assert_quiet(ggml_backend_tensor_get_async(f.stream, &f.tensor, f.out, 0, 128));
    assert_memory_equal(f.out, f.in, 128);
    assert_int_equal(f.fake.calls.synchronize, 2);
    assert_int_equal(f.fake.calls.set_tensor, 1);
}

// The status alone is the failure: nothing falls back, and the application can see it.
static void test_async_entries_may_fail(void **state) {
    (void)state;
    f.fake.stream_table.set_tensor_async = failing_set;
    f.fake.stream_table.set_tensor_2d_async = NULL;
    assert_refused(GGML_HOST_DEVICE_LOST, "device lost",
                   ggml_backend_tensor_set_async(f.stream, &f.tensor, f.in, 0, 128));
    assert_refused(GGML_HOST_DEVICE_LOST, "device lost",
                   ggml_backend_tensor_set_2d_async(f.stream, &f.tensor, f.in, 0, 4, 4, 32, 4));
    assert_int_equal(f.fake.calls.set_tensor, 0);
}

static void test_async_falls_back_to_blocking(void **state) {
    (void)state;
    ggml_backend_tensor_set_async(f.stream, &f.tensor, f.in, 0, 128);
    f.fake.stream_table.set_tensor_async = NULL;
    f.fake.stream_table.get_tensor_async = NULL;
    f.fake.stream_table.set_tensor_2d_async = NULL;
    f.fake.stream_table.get_tensor_2d_async = NULL;
    ggml_backend_tensor_get_async(f.stream, &f.tensor, f.out, 0, 128);
    assert_memory_equal(f.out, f.in, 128);
    ggml_backend_tensor_set_async(f.stream, &f.tensor, f.in + 1, 0, 4);
    ggml_backend_tensor_set_2d_async(f.stream, &f.tensor, f.in + 2, 4, 4, 2, 4, 4);
    ggml_backend_tensor_get_2d_async(f.stream, &f.tensor, f.out, 0, 4, 3, 4, 4);
    assert_memory_equal(f.out, f.in + 1, 12);
    assert_int_equal(f.fake.calls.synchronize, 4);
}

static void test_stream_never_sees_foreign_memory(void **state) {
    (void)state;
    ggml_backend_buffer_t buffer =
        ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), 64);
    struct ggml_tensor local = fake_tensor("local", 4, 1);
    fake_place(buffer, &local, 0);
    ggml_backend_tensor_set_async(f.stream, &local, f.in, 0, 16);
    ggml_backend_tensor_get_async(f.stream, &local, f.out, 0, 16);
    assert_memory_equal(f.out, f.in, 16);
    assert_int_equal(f.fake.calls.set_async + f.fake.calls.get_async, 0);
    ggml_backend_tensor_memset(&local, 0, 4, 8);
    const float expected[4] = {1, 0, 0, 4};
    assert_memory_equal(local.data, expected, sizeof(expected));
    ggml_backend_buffer_free(buffer);
}

static void test_alloc_refuses(void **state) {
    (void)state;
    char *base = ggml_backend_buffer_get_base(f.buffer);
    struct ggml_tensor t = fake_tensor("t", 8, 4);
    struct ggml_tensor view = fake_view(&f.tensor, 4, 0);
    const int invalid = GGML_HOST_INVALID_ARGUMENT;
    const int range = GGML_HOST_OUT_OF_RANGE;
    assert_refused(invalid, "buffer", ggml_backend_tensor_alloc(NULL, &t, base));
    assert_refused(invalid, "tensor", ggml_backend_tensor_alloc(f.buffer, NULL, base));
    assert_refused(invalid, "address", ggml_backend_tensor_alloc(f.buffer, &t, NULL));
    assert_refused(invalid, "already", ggml_backend_tensor_alloc(f.buffer, &f.tensor, base));
    assert_refused(invalid, "view", ggml_backend_tensor_alloc(f.buffer, &view, base));
    assert_refused(range, "leaves", ggml_backend_tensor_alloc(f.buffer, &t, base - 1));
    assert_refused(range, "leaves", ggml_backend_tensor_alloc(f.buffer, &t, base + 129));
    assert_refused(range, "leaves", ggml_backend_tensor_alloc(f.buffer, &t, base + 1000));
    f.fake.padding = 129;
    assert_refused(range, "leaves", ggml_backend_tensor_alloc(f.buffer, &t, base));
    assert_null(t.buffer);
    f.fake.type = GGML_BACKEND_DEVICE_TYPE_META;
    assert_int_equal(ggml_backend_tensor_alloc(f.buffer, &t, base + 1000), GGML_STATUS_SUCCESS);
}

static void test_refused_placement_leaves_the_tensor_alone(void **state) {
    (void)state;
    struct ggml_tensor t = fake_tensor("t", 4, 1);
    struct ggml_tensor view = fake_view(&f.tensor, 4, 0);
    f.fake.init_answer = GGML_HOST_OUT_OF_MEMORY;
    assert_int_equal(
        ggml_backend_tensor_alloc(f.buffer, &t, ggml_backend_buffer_get_base(f.buffer)),
        GGML_STATUS_ALLOC_FAILED);
    assert_int_equal(ggml_backend_view_init(&view), GGML_STATUS_ALLOC_FAILED);
    assert_true(!t.buffer && !t.data && !view.buffer && !view.data);
    f.fake.init_answer = GGML_HOST_OK;
    assert_int_equal(ggml_backend_view_init(&view), GGML_STATUS_SUCCESS);
}

static void test_view_init_refuses(void **state) {
    (void)state;
    struct ggml_tensor bare = fake_tensor("bare", 8, 1);
    struct ggml_tensor view = fake_view(&bare, 4, 0);
    const int invalid = GGML_HOST_INVALID_ARGUMENT;
    assert_refused(invalid, "NULL",
                   assert_int_equal(ggml_backend_view_init(NULL), GGML_STATUS_FAILED));
    assert_refused(invalid, "not a view", ggml_backend_view_init(&bare));
    assert_refused(invalid, "unallocated", ggml_backend_view_init(&view));
    view = fake_view(&f.tensor, 4, SIZE_MAX);
    assert_refused(GGML_HOST_OUT_OF_RANGE, "leaves", ggml_backend_view_init(&view));
    view.view_offs = 16;
    assert_int_equal(ggml_backend_view_init(&view), GGML_STATUS_SUCCESS);
    assert_ptr_equal(view.data, (char *)f.tensor.data + 16);
    assert_refused(invalid, "already", ggml_backend_view_init(&view));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_set_and_get),
        TEST(test_views_use_the_owner_buffer),
        TEST(test_nothing_to_do),
        TEST(test_bounds),
        TEST(test_bounds_2d),
        TEST(test_views_beyond_the_end),
        TEST(test_unusable_tensors),
        TEST(test_missing_entries),
        TEST(test_2d),
        TEST(test_2d_falls_back_to_a_loop),
        TEST(test_one_copy_uses_the_plain_entry),
        TEST(test_memset_falls_back_to_pieces),
        TEST(test_async_is_ordered),
        TEST(test_async_2d_falls_back_to_queued_pieces),
        TEST(test_async_falls_back_to_blocking),
        TEST(test_async_entries_may_decline),
        TEST(test_async_entries_may_fail),
        TEST(test_stream_never_sees_foreign_memory),
        TEST(test_alloc_refuses),
        TEST(test_refused_placement_leaves_the_tensor_alone),
        TEST(test_view_init_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
