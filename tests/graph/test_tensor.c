// SPDX-License-Identifier: MIT
// Contexts, tensors and views: exact sizes, hostile shapes, contiguity, names, flags, and
// contexts without memory.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "ggml-host.h"
#include "ggml-impl.h"
#include "tensor/error_tensor.h"
#include "tensor/tensor_impl.h"

static struct ggml_context *new_context(size_t size, bool no_alloc) {
    struct ggml_context *ctx = ggml_init((struct ggml_init_params){size, NULL, no_alloc});
    assert_non_null(ctx);
    return ctx;
}

static void test_context_holds_exactly_what_was_computed(void **state) {
    (void)state;
    struct ggml_context *ctx = new_context(5 * ggml_tensor_overhead(), true);
    for (int i = 0; i < 5; ++i) {
        assert_false(ggml_tensor_is_error(ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 1000000)));
    }
    assert_int_equal(ggml_used_mem(ctx), ggml_get_mem_size(ctx));
    struct ggml_tensor *refused = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 1);
    assert_true(ggml_tensor_is_error(refused));
    assert_int_equal(ggml_last_status(), GGML_HOST_OUT_OF_MEMORY);
    assert_null(ggml_new_buffer(ctx, 1));
    ggml_reset(ctx);
    assert_false(ggml_tensor_is_error(ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 1)));
    ggml_free(ctx);
}

static void test_data_lies_inside_the_context(void **state) {
    (void)state;
    struct ggml_context *ctx = new_context(4096, false);
    struct ggml_tensor *a = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 3, 5);
    struct ggml_tensor *b = ggml_new_tensor_1d(ctx, GGML_TYPE_Q4_0, 64);
    assert_ptr_equal(a->data, a + 1);
    memset(ggml_get_data(a), 1, ggml_nbytes(a));
    memset(ggml_get_data(b), 2, ggml_nbytes(b));
    assert_int_equal(ggml_get_data_f32(a) != NULL, 1);
    assert_null(ggml_get_data_f32(b));
    ggml_set_zero(a);
    assert_int_equal(((char *)a->data)[59], 0);
    assert_int_equal(((char *)b->data)[35], 2);
    assert_int_equal(ggml_get_max_tensor_size(ctx), 60);
    ggml_free(ctx);
}

static void test_iteration_skips_other_objects(void **state) {
    (void)state;
    struct ggml_context *ctx = new_context(8192, true);
    ggml_new_buffer(ctx, 100);
    struct ggml_tensor *a = ggml_set_name(ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 1), "a");
    ggml_new_buffer(ctx, 33);
    struct ggml_tensor *b = ggml_set_name(ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 1), "b");
    assert_ptr_equal(ggml_get_first_tensor(ctx), a);
    assert_ptr_equal(ggml_get_next_tensor(ctx, a), b);
    assert_null(ggml_get_next_tensor(ctx, b));
    assert_ptr_equal(ggml_get_tensor(ctx, "b"), b);
    assert_null(ggml_get_tensor(ctx, "c"));
    struct ggml_tensor stranger = {0};
    assert_null(ggml_get_next_tensor(ctx, &stranger));
    ggml_free(ctx);
}

static void test_hostile_shapes_answer_an_error_tensor(void **state) {
    (void)state;
    struct ggml_context *ctx = new_context(1 << 20, true);
    const int64_t big = INT64_MAX;
    const int64_t shapes[][4] = {
        {-1, 1, 1, 1},
        {1, -1, 1, 1},
        {big, big, 1, 1},
        {big, 1, 1, 1},
        {big, big, 0, 1},
        {1, 1, 1, INT64_MIN},
        {1 << 30, 1 << 30, 1 << 30, 1 << 30},
        {(int64_t)1 << 61, 1, 1, 1},
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); ++i) {
        assert_true(ggml_tensor_is_error(ggml_new_tensor(ctx, GGML_TYPE_F32, 4, shapes[i])));
    }
    assert_true(ggml_tensor_is_error(ggml_new_tensor(ctx, GGML_TYPE_F32, 0, shapes[0])));
    assert_true(ggml_tensor_is_error(ggml_new_tensor(ctx, GGML_TYPE_F32, 5, shapes[0])));
    assert_true(ggml_tensor_is_error(ggml_new_tensor(ctx, GGML_TYPE_F32, 1, NULL)));
    assert_true(ggml_tensor_is_error(ggml_new_tensor_1d(ctx, GGML_TYPE_Q4_0, 33)));
    assert_true(ggml_tensor_is_error(ggml_new_tensor_1d(ctx, (enum ggml_type)4, 32)));
    assert_true(ggml_tensor_is_error(ggml_new_tensor_1d(ctx, (enum ggml_type) - 7, 32)));
    assert_true(ggml_tensor_is_error(ggml_new_tensor_1d(NULL, GGML_TYPE_F32, 32)));
    assert_int_equal(ggml_used_mem(ctx), 0);
    ggml_free(ctx);
}

static void test_the_first_message_is_kept_and_handed_on(void **state) {
    (void)state;
    struct ggml_context *ctx = new_context(4096, true);
    struct ggml_tensor *first = ggml_error_tensor(ctx, "first %d", 1);
    ggml_error_tensor(ctx, "second");
    assert_string_equal(ggml_tensor_error(first), "first 1");
    assert_string_equal(ggml_last_error(), "second");
    struct ggml_context *other = new_context(4096, true);
    assert_string_equal(ggml_tensor_error(ggml_view_tensor(other, first)), "first 1");
    assert_string_equal(ggml_tensor_error(ggml_dup_tensor(other, first)), "first 1");
    assert_true(ggml_is_empty(first));
    assert_int_equal(ggml_nbytes(first), 0);
    ggml_free(other);
    ggml_free(ctx);
}

static void test_views_stay_inside_their_root(void **state) {
    (void)state;
    struct ggml_context *ctx = new_context(1 << 16, false);
    struct ggml_tensor *root = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 4, 6);
    const int64_t ne[2] = {2, 3};
    const size_t fits[2] = {0, 32};
    struct ggml_tensor *view = ggml_new_view_impl(ctx, GGML_TYPE_F32, 2, ne, fits, root, 24);
    assert_false(ggml_tensor_is_error(view));
    assert_int_equal(ggml_nbytes(view), 72);
    assert_ptr_equal(view->data, (char *)root->data + 24);
    // By its strides the next one reaches beyond the end, as ggml lets it: its elements have room.
    struct ggml_tensor *beyond = ggml_new_view_impl(ctx, GGML_TYPE_F32, 2, ne, fits, root, 28);
    assert_false(ggml_tensor_is_error(beyond));
    assert_true(
        ggml_tensor_is_error(ggml_new_view_impl(ctx, GGML_TYPE_F32, 2, ne, fits, root, 76)));

    const size_t far[2] = {0, SIZE_MAX / 2};
    assert_true(ggml_tensor_is_error(ggml_new_view_impl(ctx, GGML_TYPE_F32, 2, ne, far, root, 0)));
    assert_true(
        ggml_tensor_is_error(ggml_new_tensor_impl(ctx, GGML_TYPE_F32, 2, ne, root, SIZE_MAX - 8)));

    struct ggml_tensor *nested = ggml_new_tensor_impl(ctx, GGML_TYPE_F32, 1, ne, view, 8);
    assert_ptr_equal(nested->view_src, root);
    assert_int_equal(nested->view_offs, 32);
    assert_true(
        ggml_tensor_is_error(ggml_new_tensor_impl(ctx, GGML_TYPE_F32, 1, ne, view, SIZE_MAX)));

    const int64_t none[1] = {0};
    assert_false(ggml_tensor_is_error(
        ggml_new_tensor_impl(ctx, GGML_TYPE_F32, 1, none, root, ggml_nbytes(root))));
    ggml_free(ctx);
}

static void test_view_keeps_permuted_strides(void **state) {
    (void)state;
    struct ggml_context *ctx = new_context(1 << 16, true);
    struct ggml_tensor *root = ggml_set_name(ggml_new_tensor_2d(ctx, GGML_TYPE_Q4_0, 64, 3), "w");
    struct ggml_tensor *turned = ggml_view_tensor(ctx, root);
    turned->ne[0] = 3, turned->ne[1] = 64;
    turned->nb[0] = root->nb[1], turned->nb[1] = root->nb[0];
    struct ggml_tensor *again = ggml_view_tensor(ctx, turned);
    assert_true(ggml_are_same_layout(turned, again));
    assert_true(ggml_is_transposed(again));
    assert_string_equal(turned->name, "w (view)");
    ggml_free(ctx);
}

static void test_contiguity(void **state) {
    (void)state;
    struct ggml_context *ctx = new_context(1 << 16, true);
    struct ggml_tensor *t = ggml_new_tensor_4d(ctx, GGML_TYPE_F32, 4, 3, 2, 5);
    assert_true(ggml_is_contiguous(t) && ggml_is_contiguous_1(t) && ggml_is_contiguous_2(t));
    t->nb[1] = 32, t->nb[2] = 96, t->nb[3] = 192;
    assert_false(ggml_is_contiguous(t));
    assert_true(ggml_is_contiguous_1(t) && ggml_is_contiguous_to_1(t) &&
                ggml_is_contiguous_rows(t));
    assert_false(ggml_is_contiguous_to_2(t));
    t->nb[2] = 128, t->nb[3] = 256;
    assert_false(ggml_is_contiguous_1(t));
    assert_true(ggml_is_contiguous_2(t));
    struct ggml_tensor *row = ggml_new_tensor_4d(ctx, GGML_TYPE_F32, 4, 1, 1, 2);
    row->nb[1] = row->nb[2] = 7;
    assert_true(ggml_is_contiguous(row) && ggml_is_contiguous_to_3(row));
    assert_true(ggml_is_contiguously_allocated(row));
    assert_int_equal(ggml_nbytes(t), 4 * 4 + 2 * 32 + 128 + 4 * 256);
    ggml_free(ctx);
}

static void test_unravel_inverts_the_flat_index(void **state) {
    (void)state;
    struct ggml_tensor t = {.ne = {2, 3, 4, 5}};
    int64_t i0, i1, i2, i3;
    for (int64_t i = 0; i < 120; ++i) {
        ggml_unravel_index(&t, i, &i0, &i1, &i2, &i3);
        assert_int_equal(i0 + 2 * (i1 + 3 * (i2 + 4 * i3)), i);
    }
    ggml_unravel_index(&t, 119, NULL, NULL, NULL, &i3);
    assert_int_equal(i3, 4);
}

static void test_long_names_are_cut(void **state) {
    (void)state;
    struct ggml_tensor t = {0};
    char name[3 * GGML_MAX_NAME];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    ggml_set_name(&t, name);
    assert_int_equal(strlen(t.name), GGML_MAX_NAME - 1);
    ggml_format_name(&t, "%s!", "short");
    ggml_format_name(&t, "(%s)", t.name);
    assert_string_equal(t.name, "(short!)");
}

static bool never(void *context) {
    (void)context;
    return false;
}

static void test_init_without_memory_answers_null(void **state) {
    (void)state;
    ggml_mem_set_fault_hook(never, NULL);
    assert_null(ggml_init((struct ggml_init_params){4096, NULL, true}));
    ggml_mem_set_fault_hook(NULL, NULL);
    assert_null(ggml_init((struct ggml_init_params){SIZE_MAX, NULL, true}));
    char memory[64];
    assert_null(ggml_init((struct ggml_init_params){32, memory + 1 + (uintptr_t)memory % 2, true}));
}

static void test_flags(void **state) {
    (void)state;
    struct ggml_context *ctx = new_context(1 << 16, true);
    struct ggml_tensor *root = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4);
    struct ggml_tensor *view = ggml_view_tensor(ctx, root);
    ggml_set_output(view);
    assert_int_equal(root->flags & GGML_TENSOR_FLAG_OUTPUT, GGML_TENSOR_FLAG_OUTPUT);
    ggml_set_loss(root);
    assert_int_equal(root->flags & GGML_TENSOR_FLAG_LOSS, 0);
    view->op = GGML_OP_VIEW;
    ggml_set_param(view);
    assert_int_equal(view->flags & GGML_TENSOR_FLAG_PARAM, 0);
    ggml_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_context_holds_exactly_what_was_computed),
        cmocka_unit_test(test_data_lies_inside_the_context),
        cmocka_unit_test(test_iteration_skips_other_objects),
        cmocka_unit_test(test_hostile_shapes_answer_an_error_tensor),
        cmocka_unit_test(test_the_first_message_is_kept_and_handed_on),
        cmocka_unit_test(test_views_stay_inside_their_root),
        cmocka_unit_test(test_view_keeps_permuted_strides),
        cmocka_unit_test(test_contiguity),
        cmocka_unit_test(test_unravel_inverts_the_flat_index),
        cmocka_unit_test(test_long_names_are_cut),
        cmocka_unit_test(test_init_without_memory_answers_null),
        cmocka_unit_test(test_flags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
