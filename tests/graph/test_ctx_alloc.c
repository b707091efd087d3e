// SPDX-License-Identifier: MIT
// Allocation of all tensors of a context: one buffer or several, views, refusals, and every
// failing allocation.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ggml-host.h"
#include "graph/fake_memory.h"
#include "tensor/tensor_impl.h"

static struct ggml_context *ctx;
static struct fake_memory memory;

static int set_up(void **state) {
    (void)state;
    fake_memory_init(&memory, 32, SIZE_MAX);
    ctx = ggml_init((struct ggml_init_params){1 << 16, NULL, true});
    return ctx ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    ggml_mem_set_fault_hook(NULL, NULL);
    ggml_free(ctx);
    return memory.live_buffers == 0 ? 0 : -1;
}

static struct ggml_tensor *leaf(int64_t n) {
    return ggml_new_tensor_1d(ctx, GGML_TYPE_F32, n);
}

static ggml_backend_buffer_t allocate(void) {
    return ggml_backend_alloc_ctx_tensors_from_buft(ctx, &memory.buft);
}

static void check_placed(void) {
    struct ggml_tensor *t = ggml_get_first_tensor(ctx);
    for (; t; t = ggml_get_next_tensor(ctx, t)) {
        assert_non_null(t->buffer);
        assert_non_null(t->data);
        assert_int_equal(((uintptr_t)t->data - t->view_offs) % 32, 0);
        struct ggml_tensor *other = ggml_get_first_tensor(ctx);
        for (; other != t && !t->view_src; other = ggml_get_next_tensor(ctx, other)) {
            const uintptr_t a = (uintptr_t)t->data, b = (uintptr_t)other->data;
            if (other->view_src) continue;
            assert_true(a >= b + ggml_nbytes(other) || b >= a + ggml_nbytes(t));
        }
    }
}

static void test_one_buffer_with_views(void **state) {
    (void)state;
    struct ggml_tensor *a = leaf(10), *b = leaf(3);
    const int64_t ne[1] = {2};
    struct ggml_tensor *view = ggml_new_tensor_impl(ctx, GGML_TYPE_F32, 1, ne, a, 8);
    leaf(100);
    assert_int_equal(ggml_backend_alloc_ctx_tensors_from_buft_size(ctx, &memory.buft),
                     64 + 32 + 416);
    ggml_backend_buffer_t buffer = allocate();
    assert_int_equal(ggml_backend_buffer_get_size(buffer), 64 + 32 + 416);
    assert_ptr_equal(view->data, (char *)a->data + 8);
    assert_ptr_equal(b->data, (char *)a->data + 64);
    check_placed();
    assert_null(allocate()); // nothing left to do
    ggml_backend_buffer_free(buffer);
}

static void test_several_buffers_when_one_is_too_small(void **state) {
    (void)state;
    const int64_t sizes[] = {8, 8, 8, 100, 8, 24, 8};
    memory.max_size = 96;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        ggml_view_tensor(ctx, leaf(sizes[i]));
    }
    ggml_backend_buffer_t buffer = allocate();
    assert_true(ggml_backend_buffer_is_multi_buffer(buffer));
    assert_int_equal(memory.live_buffers, 5);
    assert_int_equal(memory.live_bytes, ggml_backend_buffer_get_size(buffer));
    check_placed();
    ggml_backend_buffer_free(buffer);
}

static void test_tensors_without_elements_get_an_address(void **state) {
    (void)state;
    ggml_view_tensor(ctx, leaf(0));
    assert_int_equal(ggml_backend_alloc_ctx_tensors_from_buft_size(ctx, &memory.buft), 0);
    ggml_backend_buffer_t buffer = allocate();
    assert_non_null(buffer);
    check_placed();
    ggml_backend_buffer_free(buffer);
}

static void test_refusals(void **state) {
    (void)state;
    assert_null(allocate()); // an empty context
    leaf(INT64_MAX / 16);
    leaf(INT64_MAX / 16);
    assert_true(ggml_backend_alloc_ctx_tensors_from_buft_size(ctx, &memory.buft) >= SIZE_MAX / 4);
    memory.allocations_left = 0;
    assert_null(allocate());
    ggml_set_no_alloc(ctx, false);
    assert_null(allocate());
    assert_null(ggml_backend_alloc_ctx_tensors_from_buft(NULL, &memory.buft));
    assert_null(ggml_backend_alloc_ctx_tensors_from_buft(ctx, NULL));
    assert_null(ggml_backend_alloc_ctx_tensors(ctx, NULL));
}

static void test_a_failure_leaves_no_dangling_tensor(void **state) {
    (void)state;
    memory.max_size = 64;
    for (int i = 0; i < 9; ++i) {
        ggml_view_tensor(ctx, leaf(12));
    }
    ggml_backend_buffer_t buffer = NULL;
    for (int left = 0; !buffer && left < 100; ++left) {
        memory.allocations_left = left % 2 ? -1 : left / 4;
        memory.inits_left = left;
        buffer = allocate();
        struct ggml_tensor *t = ggml_get_first_tensor(ctx);
        for (; t && !buffer; t = ggml_get_next_tensor(ctx, t)) {
            assert_null(t->buffer);
            assert_null(t->data);
        }
        if (!buffer) assert_int_equal(memory.live_buffers, 0);
    }
    assert_non_null(buffer);
    check_placed();
    ggml_backend_buffer_free(buffer);
}

static int allocations_left;

static bool count_down(void *context) {
    (void)context;
    return allocations_left-- > 0;
}

static void test_every_allocation_may_fail(void **state) {
    (void)state;
    memory.max_size = 64;
    for (int i = 0; i < 9; ++i) {
        ggml_view_tensor(ctx, leaf(12));
    }
    ggml_backend_buffer_t buffer = NULL;
    for (int limit = 0; !buffer && limit < 100; ++limit) {
        allocations_left = limit;
        ggml_mem_set_fault_hook(count_down, NULL);
        buffer = allocate();
        ggml_mem_set_fault_hook(NULL, NULL);
        if (!buffer) assert_int_equal(memory.live_buffers, 0);
    }
    assert_non_null(buffer);
    check_placed();
    ggml_backend_buffer_free(buffer);
}

static void test_linear_allocator_says_when_it_is_full(void **state) {
    (void)state;
    ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(&memory.buft, 96);
    struct ggml_tallocr talloc = ggml_tallocr_new(buffer);
    struct ggml_tensor *a = leaf(9), *b = leaf(9), *c = leaf(8);
    assert_int_equal(ggml_tallocr_alloc(&talloc, a), GGML_STATUS_SUCCESS);
    assert_int_equal(ggml_tallocr_alloc(&talloc, b), GGML_STATUS_ALLOC_FAILED);
    assert_null(b->buffer);
    assert_int_equal(ggml_tallocr_alloc(&talloc, c), GGML_STATUS_SUCCESS);
    assert_int_not_equal(ggml_tallocr_alloc(&talloc, c), GGML_STATUS_SUCCESS);
    assert_ptr_equal(c->data, (char *)a->data + 64);
    ggml_backend_buffer_free(buffer);
    talloc = ggml_tallocr_new(NULL);
    assert_int_equal(ggml_tallocr_alloc(&talloc, b), GGML_STATUS_FAILED);
}

static void test_an_odd_base_is_rounded_up(void **state) {
    (void)state;
    fake_next_base = (1 << 20) + 7;
    ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(&memory.buft, 64);
    struct ggml_tallocr talloc = ggml_tallocr_new(buffer);
    struct ggml_tensor *a = leaf(8), *b = leaf(8);
    assert_int_equal(ggml_tallocr_alloc(&talloc, a), GGML_STATUS_SUCCESS);
    assert_int_equal((uintptr_t)a->data, (1 << 20) + 32);
    assert_int_equal(ggml_tallocr_alloc(&talloc, b), GGML_STATUS_ALLOC_FAILED);
    ggml_backend_buffer_free(buffer);
    fake_next_base = 1 << 20;
}

// As ggml 0.27: what has memory already is left out, and views are initialised.
static void test_array_of_tensors(void **state) {
    (void)state;
    struct ggml_tensor *a = leaf(10), *b = leaf(3), *other = leaf(100);
    struct ggml_tensor *view = ggml_view_tensor(ctx, a);
    struct ggml_tensor *tensors[] = {view, a, b};
    assert_int_equal(ggml_backend_buft_get_alloc_size_n(&memory.buft, tensors, 3), 64 + 32);
    assert_int_equal(ggml_backend_buft_get_alloc_size_n(&memory.buft, tensors, 0), 0);
    ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer_n(&memory.buft, tensors, 3);
    assert_int_equal(ggml_backend_buffer_get_size(buffer), 64 + 32);
    assert_ptr_equal(view->data, a->data);
    assert_ptr_equal(view->buffer, buffer);
    assert_ptr_equal(b->data, (char *)a->data + 64);
    assert_null(other->data);
    assert_null(ggml_backend_buft_alloc_buffer_n(&memory.buft, tensors, 3));
    assert_int_equal(ggml_backend_buft_get_alloc_size_n(&memory.buft, tensors, 3), 0);
    ggml_backend_buffer_free(buffer);
}

static void test_array_refusals(void **state) {
    (void)state;
    struct ggml_tensor *a = leaf(10);
    struct ggml_tensor *tensors[] = {a, NULL};
    assert_null(ggml_backend_buft_alloc_buffer_n(&memory.buft, tensors, 2));
    assert_null(ggml_backend_buft_alloc_buffer_n(&memory.buft, NULL, 1));
    assert_null(ggml_backend_buft_alloc_buffer_n(NULL, tensors, 1));
    assert_null(ggml_backend_buft_alloc_buffer_n(&memory.buft, tensors, -1));
    assert_int_equal(ggml_backend_buft_get_alloc_size_n(NULL, tensors, 1), 0);
    memory.allocations_left = 0;
    assert_null(ggml_backend_buft_alloc_buffer_n(&memory.buft, tensors, 1));
    assert_null(a->data);
    assert_null(a->buffer);
}

#define ALLOC_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        ALLOC_TEST(test_one_buffer_with_views),
        ALLOC_TEST(test_several_buffers_when_one_is_too_small),
        ALLOC_TEST(test_tensors_without_elements_get_an_address),
        ALLOC_TEST(test_refusals),
        ALLOC_TEST(test_array_of_tensors),
        ALLOC_TEST(test_array_refusals),
        ALLOC_TEST(test_a_failure_leaves_no_dangling_tensor),
        ALLOC_TEST(test_every_allocation_may_fail),
        ALLOC_TEST(test_linear_allocator_says_when_it_is_full),
        ALLOC_TEST(test_an_odd_base_is_rounded_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
