// SPDX-License-Identifier: MIT
// What plugins ask of nodes by ggml-shape.h.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ggml-shape.h"

static struct ggml_context *ctx;

static int set_up(void **state) {
    (void)state;
    ctx = ggml_init((struct ggml_init_params){1 << 16, NULL, true});
    return ctx ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    ggml_free(ctx);
    return 0;
}

static struct ggml_tensor *tensor(enum ggml_type type, int64_t ne0, int64_t ne1, int64_t ne2) {
    return ggml_new_tensor_3d(ctx, type, ne0, ne1, ne2);
}

static void test_transposed_rows_are_not_dense(void **state) {
    (void)state;
    struct ggml_tensor *a = tensor(GGML_TYPE_F32, 4, 3, 2);
    const struct ggml_tensor *t = ggml_transpose(ctx, a);
    const struct ggml_tensor *part = ggml_view_2d(ctx, a, 2, 3, a->nb[1], 0);
    assert_true(ggml_rows_dense(a) && ggml_is_packed(a));
    assert_false(ggml_rows_dense(t) || ggml_is_packed(t));
    assert_true(ggml_rows_dense(part));
    assert_false(ggml_is_packed(part));
    assert_true(ggml_rows_separable(t));
}

static void test_blocks_are_whole(void **state) {
    (void)state;
    struct ggml_tensor *q = tensor(GGML_TYPE_Q4_0, 64, 2, 1);
    assert_true(ggml_rows_separable(q) && ggml_is_packed(q));
    q->ne[0] = 48;
    assert_false(ggml_has_whole_blocks(q) || ggml_rows_separable(q) || ggml_is_packed(q));
    q->ne[0] = 64;
    q->nb[0] *= 2;
    assert_false(ggml_rows_separable(q));
    q->type = (enum ggml_type)4; // removed
    assert_false(ggml_has_whole_blocks(q) || ggml_rows_separable(q) || ggml_is_packed(q));
}

// An extent of 0 must never become a divisor.
static void test_empty_tensors_repeat_only_over_empty_extents(void **state) {
    (void)state;
    const struct ggml_tensor *a = tensor(GGML_TYPE_F32, 6, 4, 2);
    struct ggml_tensor *b = tensor(GGML_TYPE_F32, 3, 1, 2);
    assert_true(ggml_repeats(b, a) && ggml_is_shared_from(b, a, 1));
    assert_false(ggml_repeats(a, b));
    b->ne[1] = 0;
    assert_false(ggml_repeats(b, a) || ggml_is_shared_from(b, a, 1));
    struct ggml_tensor *empty = tensor(GGML_TYPE_F32, 6, 4, 2);
    empty->ne[1] = 0;
    assert_true(ggml_repeats(b, empty));
    assert_false(ggml_is_shared_from(b, empty, 1));
    assert_true(ggml_is_shared_from(b, empty, 2));
}

static void test_rows_are_counted_from_dimension_1(void **state) {
    (void)state;
    static float data[3 * 4 * 2 * 2];
    struct ggml_tensor *a = ggml_new_tensor_4d(ctx, GGML_TYPE_F32, 3, 4, 2, 2);
    a->data = data;
    for (int64_t row = 0; row < ggml_nrows(a); ++row)
        assert_ptr_equal(ggml_row_data(a, ggml_row_at(a, row)), data + 3 * row);
    struct ggml_tensor *b = ggml_new_tensor_4d(ctx, GGML_TYPE_F32, 3, 2, 1, 2);
    b->data = data;
    const struct ggml_row at = ggml_row_at(a, 15); // 3, 1, 1
    assert_ptr_equal(ggml_row_data_repeated(b, at), data + 3 * (1 + 2));
}

// Built nodes fit; the same with one extent or parameter spoilt do not.
static void test_spoilt_nodes_do_not_fit(void **state) {
    (void)state;
    struct ggml_tensor *a = tensor(GGML_TYPE_F32, 8, 4, 6);
    struct ggml_tensor *sum = ggml_add(ctx, a, tensor(GGML_TYPE_F32, 8, 1, 3));
    assert_true(ggml_fits_binary(sum));
    sum->src[1]->ne[2] = 4;
    assert_false(ggml_fits_binary(sum));

    struct ggml_tensor *concat = ggml_concat(ctx, a, tensor(GGML_TYPE_F32, 8, 5, 6), 1);
    assert_true(ggml_fits_concat(concat));
    concat->op_params[0] = GGML_MAX_DIMS;
    assert_false(ggml_fits_concat(concat));

    struct ggml_tensor *roll = ggml_roll(ctx, a, 7, -3, 0, 0);
    assert_true(ggml_fits_roll(roll));
    roll->op_params[1] = -4;
    assert_false(ggml_fits_roll(roll));

    struct ggml_tensor *pad = ggml_pad_ext_circular(ctx, a, 8, 0, 0, 4, 0, 0, 0, 0);
    assert_true(ggml_fits_pad(pad));
    ++pad->op_params[0];
    ++pad->ne[0];
    assert_false(ggml_fits_pad(pad));

    struct ggml_tensor *parts = ggml_win_part(ctx, a, 3);
    assert_true(ggml_fits_win_part(parts));
    parts->op_params[2] = 0;
    assert_false(ggml_fits_win_part(parts));
}

static void test_rope_stays_within_the_row(void **state) {
    (void)state;
    struct ggml_tensor *a = tensor(GGML_TYPE_F32, 8, 4, 6);
    struct ggml_tensor *positions = ggml_new_tensor_1d(ctx, GGML_TYPE_I32, 6);
    struct ggml_tensor *rope = ggml_rope(ctx, a, positions, 8, GGML_ROPE_TYPE_NEOX);
    assert_true(ggml_fits_rope(rope));
    rope->op_params[GGML_ROPE_SLOT_N_OFFS] = 2;
    assert_false(ggml_fits_rope(rope));
    rope->op_params[GGML_ROPE_SLOT_N_DIMS] = 6;
    assert_true(ggml_fits_rope(rope));
    rope->op_params[GGML_ROPE_SLOT_MODE] = GGML_ROPE_TYPE_MROPE;
    assert_false(ggml_fits_rope(rope)); // neither sections nor positions for four
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_transposed_rows_are_not_dense, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_blocks_are_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_empty_tensors_repeat_only_over_empty_extents, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_rows_are_counted_from_dimension_1, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_spoilt_nodes_do_not_fit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_rope_stays_within_the_row, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
