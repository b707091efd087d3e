// SPDX-License-Identifier: MIT
// Views and copies: strides, offsets, names; nothing reaches beyond its root.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ggml-host.h"
#include "ggml-impl.h"
#include "tensor/error_tensor.h"

static struct ggml_context *ctx;
static struct ggml_tensor *a; // f32 [8, 6, 4, 2], "a"
static struct ggml_tensor *q; // q8_0 [64, 6], "q"

static int set_up(void **state) {
    (void)state;
    ctx = ggml_init((struct ggml_init_params){1u << 20, NULL, true});
    a = ggml_set_name(ggml_new_tensor_4d(ctx, GGML_TYPE_F32, 8, 6, 4, 2), "a");
    q = ggml_set_name(ggml_new_tensor_2d(ctx, GGML_TYPE_Q8_0, 64, 6), "q");
    ggml_clear_error();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    ggml_free(ctx);
    return 0;
}

static void check(const struct ggml_tensor *t, enum ggml_op op, const int64_t ne[4],
                  const size_t nb[4], size_t offset, const char *name) {
    assert_false(ggml_tensor_is_error(t));
    assert_int_equal(t->op, op);
    assert_memory_equal(t->ne, ne, sizeof(t->ne));
    assert_memory_equal(t->nb, nb, sizeof(t->nb));
    assert_int_equal(t->view_offs, offset);
    assert_string_equal(t->name, name);
}

#define NE(...)                                                                                    \
    (const int64_t[4]) {                                                                           \
        __VA_ARGS__                                                                                \
    }
#define NB(...)                                                                                    \
    (const size_t[4]) {                                                                            \
        __VA_ARGS__                                                                                \
    }

static size_t offset_param(const struct ggml_tensor *t) {
    size_t offset;
    memcpy(&offset, t->op_params, sizeof(offset));
    return offset;
}

static void refused(const struct ggml_tensor *t, const char *builder) {
    assert_true(ggml_tensor_is_error(t));
    if (strncmp(ggml_last_error(), builder, strlen(builder)) != 0) {
        fail_msg("%s: '%s'", builder, ggml_last_error());
    }
}

static void test_views(void **state) {
    (void)state;
    const struct ggml_tensor *t = ggml_view_1d(ctx, a, 10, 20);
    check(t, GGML_OP_VIEW, NE(10, 1, 1, 1), NB(4, 40, 40, 40), 20, "a (view)");
    assert_ptr_equal(t->src[0], a);
    assert_ptr_equal(t->view_src, a);
    t = ggml_view_2d(ctx, a, 4, 3, 64, 16);
    check(t, GGML_OP_VIEW, NE(4, 3, 1, 1), NB(4, 64, 192, 192), 16, "a (view)");
    t = ggml_view_3d(ctx, a, 4, 3, 2, 32, 192, 0);
    check(t, GGML_OP_VIEW, NE(4, 3, 2, 1), NB(4, 32, 192, 384), 0, "a (view)");
    t = ggml_view_4d(ctx, a, 8, 3, 4, 2, 32, 192, 768, 96);
    check(t, GGML_OP_VIEW, NE(8, 3, 4, 2), NB(4, 32, 192, 768), 96, "a (view)");
    t = ggml_view_2d(ctx, q, 32, 6, q->nb[1], 34);
    check(t, GGML_OP_VIEW, NE(32, 6, 1, 1), NB(34, 68, 408, 408), 34, "q (view)");
}

// The parameter is relative to the operand, view_offs to the root.
static void test_view_of_a_view(void **state) {
    (void)state;
    struct ggml_tensor *outer = ggml_view_1d(ctx, a, 100, 40);
    const struct ggml_tensor *inner = ggml_view_1d(ctx, outer, 10, 8);
    assert_ptr_equal(inner->src[0], outer);
    assert_ptr_equal(inner->view_src, a);
    assert_int_equal(inner->view_offs, 48);
    assert_int_equal(offset_param(inner), 8);
    assert_string_equal(inner->name, "a (view) (view)");
}

static void test_views_stay_inside_their_root(void **state) {
    (void)state;
    const size_t size = ggml_nbytes(a);
    assert_false(ggml_tensor_is_error(ggml_view_1d(ctx, a, 1, size - 4)));
    refused(ggml_view_1d(ctx, a, 1, size), "ggml_view_1d:");
    refused(ggml_view_1d(ctx, a, 2, size - 4), "ggml_view_1d:");
    refused(ggml_view_1d(ctx, a, 1, SIZE_MAX), "ggml_view_1d:");
    refused(ggml_view_1d(ctx, a, -1, 0), "ggml_view_1d:");
    refused(ggml_view_2d(ctx, a, 1, 2, size, size - 4), "ggml_view_2d:");
    refused(ggml_view_2d(ctx, a, 1, INT64_MAX, SIZE_MAX, 0), "ggml_view_2d:");
    refused(ggml_view_3d(ctx, a, 1, 2, 2, SIZE_MAX / 2, SIZE_MAX / 2, 0), "ggml_view_3d:");
    refused(ggml_view_4d(ctx, a, 8, 6, 4, 3, 32, 192, 768, 0), "ggml_view_4d:");
    // Repeated rows take less than their elements side by side.
    assert_false(ggml_tensor_is_error(ggml_view_2d(ctx, a, 8, 1000, 0, 0)));
    struct ggml_tensor *tail = ggml_view_1d(ctx, a, 1, size - 4);
    refused(ggml_view_1d(ctx, tail, 2, 0), "ggml_view_1d:");
    assert_false(ggml_tensor_is_error(ggml_view_1d(ctx, a, 0, 0)));
}

// A program takes a window by its strides first and narrows it afterwards, as whisper's parakeet.
static void test_a_view_beyond_the_end_may_be_narrowed(void **state) {
    (void)state;
    const size_t size = ggml_nbytes(a);
    struct ggml_tensor *wide = ggml_view_2d(ctx, a, 8, 2, size - 32, 64);
    assert_false(ggml_tensor_is_error(wide));
    struct ggml_tensor *narrow = ggml_view_2d(ctx, wide, 8, 1, wide->nb[1], 0);
    check(narrow, GGML_OP_VIEW, NE(8, 1, 1, 1), NB(4, size - 32, size - 32, size - 32), 64,
          "a (view) (view)");
}

static void test_reshape(void **state) {
    (void)state;
    const struct ggml_tensor *t = ggml_reshape_2d(ctx, a, 48, 8);
    check(t, GGML_OP_RESHAPE, NE(48, 8, 1, 1), NB(4, 192, 1536, 1536), 0, "a (reshaped)");
    assert_ptr_equal(t->view_src, a);
    struct ggml_tensor *like = ggml_new_tensor_4d(ctx, GGML_TYPE_F16, 4, 4, 6, 4);
    t = ggml_reshape(ctx, a, ggml_transpose(ctx, like));
    check(t, GGML_OP_RESHAPE, NE(4, 4, 6, 4), NB(4, 16, 64, 384), 0, "a (reshaped)");
    assert_null(t->src[1]);
    assert_int_equal(ggml_reshape_1d(ctx, a, 384)->ne[0], 384);
    assert_int_equal(ggml_reshape_3d(ctx, a, 8, 8, 6)->ne[2], 6);
    assert_int_equal(ggml_reshape_4d(ctx, a, 2, 4, 6, 8)->ne[3], 8);
    refused(ggml_reshape_1d(ctx, a, 383), "ggml_reshape_1d:");
    refused(ggml_reshape_2d(ctx, a, -48, -8), "ggml_reshape_2d:");
    refused(ggml_reshape_3d(ctx, a, INT64_MAX, INT64_MAX, 2), "ggml_reshape_3d:");
    refused(ggml_reshape_4d(ctx, q, 16, 4, 6, 1), "ggml_reshape_4d:");
    refused(ggml_reshape_1d(ctx, ggml_transpose(ctx, a), 384), "ggml_reshape_1d:");
    refused(ggml_reshape(ctx, a, NULL), "ggml_reshape:");
    refused(ggml_reshape(ctx, NULL, a), "ggml_reshape:");
}

static void test_permutations(void **state) {
    (void)state;
    const struct ggml_tensor *t = ggml_permute(ctx, a, 2, 0, 3, 1);
    check(t, GGML_OP_PERMUTE, NE(6, 2, 8, 4), NB(32, 768, 4, 192), 0, "a (permuted)");
    assert_memory_equal(t->op_params, ((int32_t[16]){2, 0, 3, 1}), sizeof(t->op_params));
    t = ggml_transpose(ctx, a);
    check(t, GGML_OP_TRANSPOSE, NE(6, 8, 4, 2), NB(32, 4, 192, 768), 0, "a (transposed)");
    t = ggml_transpose(ctx, q);
    check(t, GGML_OP_TRANSPOSE, NE(6, 64, 1, 1), NB(68, 34, 408, 408), 0, "q (transposed)");
    refused(ggml_permute(ctx, a, 0, 1, 2, 2), "ggml_permute:");
    refused(ggml_permute(ctx, a, 0, 1, 2, 4), "ggml_permute:");
    refused(ggml_permute(ctx, a, -1, 1, 2, 3), "ggml_permute:");
    refused(ggml_permute(ctx, NULL, 0, 1, 2, 3), "ggml_permute:");
    refused(ggml_transpose(ctx, NULL), "ggml_transpose:");
}

static void test_permute_keeps_large_strides(void **state) {
    (void)state;
    struct ggml_tensor *large = ggml_new_tensor_3d(ctx, GGML_TYPE_F32, 1 << 20, 1 << 12, 3);
    const struct ggml_tensor *t = ggml_permute(ctx, large, 1, 2, 0, 3);
    assert_int_equal(t->nb[0], (size_t)1 << 34);
    assert_int_equal(t->ne[1], 1 << 20);
}

static void test_copies(void **state) {
    (void)state;
    struct ggml_tensor *b = ggml_set_name(ggml_new_tensor_1d(ctx, GGML_TYPE_F16, 384), "b");
    const struct ggml_tensor *t = ggml_cpy(ctx, a, b);
    check(t, GGML_OP_CPY, NE(384, 1, 1, 1), NB(2, 768, 768, 768), 0, "b (copy of a)");
    assert_ptr_equal(t->view_src, b);
    assert_ptr_equal(t->src[1], b);
    t = ggml_cpy(ctx, a, ggml_new_tensor_1d(ctx, GGML_TYPE_F16, 384));
    assert_string_equal(t->name, "a (copy)");
    refused(ggml_cpy(ctx, a, NULL), "ggml_cpy:");
    t = ggml_cast(ctx, a, GGML_TYPE_BF16);
    check(t, GGML_OP_CPY, NE(8, 6, 4, 2), NB(2, 16, 96, 384), 0, "a (copy)");
    assert_ptr_equal(t->src[0], a);
    assert_ptr_equal(t->src[1], t);
    assert_null(t->view_src);
    refused(ggml_cast(ctx, a, (enum ggml_type)1000), "ggml_cast:");
    refused(ggml_cast(ctx, a, (enum ggml_type) - 1), "ggml_cast:");
    refused(ggml_cast(ctx, a, (enum ggml_type)4), "ggml_cast:");
    refused(ggml_cast(ctx, a, GGML_TYPE_Q8_0), "ggml_cast:");
    refused(ggml_cast(ctx, NULL, GGML_TYPE_F16), "ggml_cast:");
    t = ggml_cont(ctx, ggml_transpose(ctx, a));
    check(t, GGML_OP_CONT, NE(6, 8, 4, 2), NB(4, 24, 192, 768), 0, "a (transposed) (cont)");
}

static void test_inplace_keeps_strides(void **state) {
    (void)state;
    struct ggml_tensor *window = ggml_view_4d(ctx, a, 4, 6, 2, 1, 32, 384, 768, 16);
    const struct ggml_tensor *t = ggml_sqr_inplace(ctx, window);
    assert_memory_equal(t->nb, window->nb, sizeof(t->nb));
    assert_int_equal(t->view_offs, 16);
    assert_ptr_equal(t->view_src, a);
    t = ggml_sqr(ctx, window);
    assert_true(ggml_is_contiguous(t));
    assert_null(t->view_src);
}

// What derived tensors are called, as formatting says it.
static void check_name(const struct ggml_tensor *t, const char *name, const char *suffix) {
    char text[4 * GGML_MAX_NAME], wanted[GGML_MAX_NAME] = "";
    const size_t n = (size_t)snprintf(text, sizeof(text), "%s%s", name, suffix);
    memcpy(wanted, text, n < sizeof(wanted) ? n : sizeof(wanted) - 1);
    assert_string_equal(t->name, wanted);
    assert_memory_equal(t->name, wanted, sizeof(wanted));
}

static void check_names(const char *name, const char *other) {
    struct ggml_tensor *b = ggml_new_tensor(ctx, GGML_TYPE_F16, 4, a->ne);
    ggml_set_name(a, name);
    ggml_set_name(b, other);
    check_name(ggml_view_tensor(ctx, a), name, " (view)");
    check_name(ggml_view_1d(ctx, a, 8, 0), name, " (view)");
    check_name(ggml_sqr_inplace(ctx, a), name, " (view)");
    check_name(ggml_reshape_1d(ctx, a, 384), name, " (reshaped)");
    check_name(ggml_permute(ctx, a, 1, 0, 2, 3), name, " (permuted)");
    check_name(ggml_transpose(ctx, a), name, " (transposed)");
    check_name(ggml_cont(ctx, a), name, " (cont)");
    check_name(ggml_cont_1d(ctx, a, 384), name, " (cont)");
    check_name(ggml_cast(ctx, a, GGML_TYPE_F16), name, " (copy)");
    if (*other != '\0') {
        char suffix[GGML_MAX_NAME + 16];
        snprintf(suffix, sizeof(suffix), " (copy of %s)", name);
        check_name(ggml_cpy(ctx, a, b), other, suffix);
    } else {
        check_name(ggml_cpy(ctx, a, b), name, " (copy)");
    }
    assert_string_equal(ggml_sqr(ctx, a)->name, "");
}

static void test_names_are_those_of_formatting(void **state) {
    (void)state;
    static const char letters[] =
        "\xc3\xa9-name/of.a%s%d\xe2\x82\xac-tensor-whose-name-is-as-long-as"
        "-any-that-there-can-be-and-then-some-more";
    for (size_t n = 0; n < GGML_MAX_NAME && n < sizeof(letters); ++n) {
        char name[GGML_MAX_NAME] = "";
        memcpy(name, letters, n);
        check_names(name, "cache");
        check_names("x", name);
        check_names(name, name);
        ggml_reset(ctx);
        a = ggml_new_tensor_4d(ctx, GGML_TYPE_F32, 8, 6, 4, 2);
    }
}

// A client may write it byte by byte, and leave something behind its end or no end at all.
static void test_names_written_by_hand(void **state) {
    (void)state;
    char name[GGML_MAX_NAME] = "";
    memset(a->name, 'n', sizeof(a->name));
    memset(name, 'n', sizeof(name) - 1);
    assert_string_equal(ggml_view_tensor(ctx, a)->name, name);
    a->name[3] = '\0';
    check_name(ggml_reshape_1d(ctx, a, 384), "nnn", " (reshaped)");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_views),
        TEST(test_view_of_a_view),
        TEST(test_views_stay_inside_their_root),
        TEST(test_a_view_beyond_the_end_may_be_narrowed),
        TEST(test_reshape),
        TEST(test_permutations),
        TEST(test_permute_keeps_large_strides),
        TEST(test_copies),
        TEST(test_inplace_keeps_strides),
        TEST(test_names_are_those_of_formatting),
        TEST(test_names_written_by_hand),
    };
    return cmocka_run_group_tests_name("op views", tests, NULL, NULL);
}
