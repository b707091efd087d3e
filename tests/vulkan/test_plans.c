// SPDX-License-Identifier: MIT
// Which shaders compute a node, in what shape: moves, sorts, sums, on devices with other limits.
#include "plan/plan.h"
#include "support/vulkan_test.h"

static const struct gvk_features gpu = {
    .fp16 = true,
    .subgroup_arithmetic = true,
    .subgroup_size = 32,
    .max_group_size = 1024,
    .max_groups = {65535, 65535, 65535},
    .max_shared_bytes = 49152,
    .max_range_bytes = UINT32_MAX,
    .min_storage_alignment = 16,
};

struct rig {
    struct ggml_context *ctx;
    struct gvk_features features;
    struct gvk_plan plan;
};

static int set_up(void **state) {
    static struct rig rig;
    const struct ggml_init_params params = {.mem_size = 1 << 20, .no_alloc = true};
    rig.ctx = ggml_init(params);
    rig.features = gpu;
    gvk_plan_init(&rig.plan, &rig.features);
    *state = &rig;
    return rig.ctx ? 0 : 1;
}

static int tear_down(void **state) {
    struct rig *rig = *state;
    gvk_plan_free(&rig->plan);
    ggml_free(rig->ctx);
    return 0;
}

// The launches that compute the node.
static const struct gvk_dispatch *plan_of(struct rig *rig, struct ggml_tensor *node) {
    gpu_plan_clear(&rig->plan.base);
    assert_true(gvk_supports_op(&rig->features, node));
    assert_true(gvk_plan_add(&rig->plan, node));
    for (int i = 0; i < gvk_plan_count(&rig->plan); ++i) {
        const struct gvk_dispatch *d = gvk_plan_at(&rig->plan, i);
        assert_in_range(d->specs[0], 1, rig->features.max_group_size);
        for (int k = 0; k < 3; ++k)
            assert_in_range(d->groups[k], 1, rig->features.max_groups[k]);
    }
    return gvk_plan_at(&rig->plan, 0);
}

// At least as many as wanted, within the limits, and hardly more: a driver that gives each
// processor an equal share of the groups would leave one without work.
static void test_groups_are_spread_evenly(void **state) {
    static const uint64_t counts[] = {1, 7, 65535, 65536, 65537, 131071, 1 << 20, 5000000007};
    struct rig *rig = *state;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); ++i) {
        struct gvk_dispatch d = {.groups = {0}};
        gvk_dispatch_groups(&rig->plan, &d, counts[i]);
        const uint64_t total = (uint64_t)d.groups[0] * d.groups[1] * d.groups[2];
        for (int k = 0; k < 3; ++k)
            assert_in_range(d.groups[k], 1, rig->features.max_groups[k]);
        assert_true(total >= counts[i] && total - counts[i] <= counts[i] / 1000);
    }
    struct gvk_dispatch none = {.groups = {1, 1, 1}};
    gvk_dispatch_groups(&rig->plan, &none, 0);
    assert_int_equal(none.groups[0], 0);
}

enum { SPEC_MODE = 3, SPEC_ITEM, SPEC_UNIT, SPEC_RUN, SPEC_DIMS }; // of copy.comp

static void test_dense_copies_move_wide_items(void **state) {
    struct rig *rig = *state;
    struct ggml_tensor *a = ggml_new_tensor_4d(rig->ctx, GGML_TYPE_F16, 24, 3, 5, 2);
    const struct gvk_dispatch *d = plan_of(rig, ggml_dup(rig->ctx, a));
    assert_int_equal(gvk_plan_count(&rig->plan), 1);
    assert_int_equal(d->shader, GVK_SHADER_copy);
    assert_int_equal(d->specs[SPEC_ITEM], 16);
    assert_int_equal(d->specs[SPEC_UNIT], 16);
    assert_int_equal(d->specs[SPEC_DIMS], 1);
    assert_int_equal(d->numbers[0], 24 * 3 * 5 * 2 * 2 / 16);
}

static void test_memory_at_odd_places_moves_in_elements(void **state) {
    struct rig *rig = *state;
    struct ggml_tensor *a = ggml_new_tensor_1d(rig->ctx, GGML_TYPE_F16, 64);
    struct ggml_tensor *node = ggml_dup(rig->ctx, a);
    a->data = (void *)(uintptr_t)0x1002;
    node->data = (void *)(uintptr_t)0x2000;
    assert_int_equal(plan_of(rig, node)->specs[SPEC_UNIT], 2);
    a->data = (void *)(uintptr_t)0x1004;
    assert_int_equal(plan_of(rig, node)->specs[SPEC_UNIT], 4);
}

static void test_narrow_rows_move_what_strides_allow(void **state) {
    struct rig *rig = *state;
    struct ggml_tensor *a = ggml_new_tensor_2d(rig->ctx, GGML_TYPE_F16, 24, 3);
    struct ggml_tensor *rows = ggml_view_2d(rig->ctx, a, 7, 3, a->nb[1], 0);
    const struct gvk_dispatch *d = plan_of(rig, ggml_cont(rig->ctx, rows));
    assert_int_equal(d->specs[SPEC_ITEM], 2);
    assert_int_equal(d->numbers[0], 7);
    rows = ggml_view_2d(rig->ctx, a, 10, 3, a->nb[1], 0);
    d = plan_of(rig, ggml_cont(rig->ctx, rows));
    assert_int_equal(d->specs[SPEC_ITEM], 4);
    struct ggml_tensor *blocks = ggml_new_tensor_2d(rig->ctx, GGML_TYPE_MXFP4, 32, 3);
    d = plan_of(rig, ggml_dup(rig->ctx, blocks));
    assert_int_equal(d->specs[SPEC_UNIT], 1);
}

static void test_columns_become_rows_in_tiles(void **state) {
    struct rig *rig = *state;
    struct ggml_tensor *a = ggml_new_tensor_3d(rig->ctx, GGML_TYPE_F32, 70, 40, 3);
    const struct gvk_dispatch *d = plan_of(rig, ggml_cont(rig->ctx, ggml_transpose(rig->ctx, a)));
    assert_int_equal(d->shader, GVK_SHADER_transpose);
    assert_int_equal(d->groups[0], 2 * 3 * 3);
    d = plan_of(rig, ggml_cont(rig->ctx, ggml_permute(rig->ctx, a, 2, 1, 0, 3)));
    assert_int_equal(d->shader, GVK_SHADER_copy); // rows of three
    struct ggml_tensor *wide = ggml_new_tensor_2d(rig->ctx, GGML_TYPE_I64, 70, 40);
    d = plan_of(rig, ggml_cont(rig->ctx, ggml_transpose(rig->ctx, wide)));
    assert_int_equal(d->shader, GVK_SHADER_copy);
}

static void test_parts_go_to_their_places(void **state) {
    struct rig *rig = *state;
    struct ggml_tensor *a = ggml_new_tensor_2d(rig->ctx, GGML_TYPE_Q4_0, 64, 3);
    struct ggml_tensor *b = ggml_new_tensor_2d(rig->ctx, GGML_TYPE_Q4_0, 32, 3);
    const struct gvk_dispatch *d = plan_of(rig, ggml_concat(rig->ctx, a, b, 0));
    assert_int_equal(gvk_plan_count(&rig->plan), 2);
    assert_int_equal(d[1].numbers[12], 2 * 18);
    assert_ptr_equal(d[1].operands[1].tensor, b);
    struct ggml_tensor *x = ggml_new_tensor_2d(rig->ctx, GGML_TYPE_F32, 8, 8);
    struct ggml_tensor *y = ggml_new_tensor_2d(rig->ctx, GGML_TYPE_F32, 2, 2);
    plan_of(rig, ggml_acc(rig->ctx, x, y, x->nb[1], x->nb[2], x->nb[3], 4));
    assert_int_equal(gvk_plan_count(&rig->plan), 2);
    plan_of(rig, ggml_acc_inplace(rig->ctx, x, y, x->nb[1], x->nb[2], x->nb[3], 4));
    assert_int_equal(gvk_plan_count(&rig->plan), 1);
}

static void test_strides_that_cut_elements_are_refused(void **state) {
    struct rig *rig = *state;
    struct ggml_tensor *a = ggml_new_tensor_2d(rig->ctx, GGML_TYPE_F32, 8, 4);
    struct ggml_tensor *node = ggml_sqr(rig->ctx, ggml_view_2d(rig->ctx, a, 4, 3, 18, 0));
    assert_false(gvk_supports_op(&rig->features, node));
}

// They have no elements that could be copied; rows of blocks in another order do.
static void test_transposed_blocks_are_refused(void **state) {
    struct rig *rig = *state;
    struct ggml_tensor *a = ggml_new_tensor_3d(rig->ctx, GGML_TYPE_Q8_0, 64, 64, 2);
    struct ggml_tensor *b = ggml_new_tensor_3d(rig->ctx, GGML_TYPE_Q8_0, 64, 64, 2);
    struct ggml_tensor *turned = ggml_transpose(rig->ctx, a);
    assert_true(gvk_supports_op(&rig->features, ggml_cont(rig->ctx, a)));
    assert_true(gvk_supports_op(&rig->features,
                                ggml_cont(rig->ctx, ggml_permute(rig->ctx, a, 0, 2, 1, 3))));
    assert_false(gvk_supports_op(&rig->features, ggml_cont(rig->ctx, turned)));
    assert_false(gvk_supports_op(&rig->features, ggml_dup(rig->ctx, turned)));
    assert_false(gvk_supports_op(&rig->features, ggml_cpy(rig->ctx, turned, b)));
    assert_false(gvk_supports_op(&rig->features, ggml_cpy(rig->ctx, b, turned)));
}

static void test_rows_that_overlap_are_not_set(void **state) {
    struct rig *rig = *state;
    struct ggml_tensor *x = ggml_new_tensor_2d(rig->ctx, GGML_TYPE_F32, 8, 8);
    struct ggml_tensor *y = ggml_new_tensor_2d(rig->ctx, GGML_TYPE_F32, 4, 2);
    struct ggml_tensor *node = ggml_set_2d(rig->ctx, x, y, 8, 0);
    assert_false(gvk_supports_op(&rig->features, node));
}

static void count_sorts(struct rig *rig, int64_t n, int k, int expected) {
    struct ggml_tensor *a = ggml_new_tensor_2d(rig->ctx, GGML_TYPE_F32, n, 2);
    struct ggml_tensor *node =
        k ? ggml_top_k(rig->ctx, a, k) : ggml_argsort(rig->ctx, a, GGML_SORT_ORDER_ASC);
    plan_of(rig, node);
    assert_int_equal(gvk_plan_count(&rig->plan), expected);
}

static void test_long_rows_are_sorted_in_blocks(void **state) {
    struct rig *rig = *state;
    count_sorts(rig, 1, 0, 1);
    count_sorts(rig, 4096, 0, 1);
    count_sorts(rig, 4097, 0, 3); // two blocks, an exchange, a merge
    count_sorts(rig, 131072, 0, 1 + 5 + 15);
    count_sorts(rig, 131072, 40, 2);
    count_sorts(rig, 1 << 22, 40, 3);
    struct ggml_tensor *none = ggml_new_tensor_2d(rig->ctx, GGML_TYPE_F32, 8192, 0);
    plan_of(rig, ggml_top_k(rig->ctx, none, 40));
    assert_int_equal(gvk_plan_count(&rig->plan), 0);
    rig->features.max_shared_bytes = 16384;
    count_sorts(rig, 4096, 0, 3);
    rig->features.max_shared_bytes = 256;
    struct ggml_tensor *a = ggml_new_tensor_1d(rig->ctx, GGML_TYPE_F32, 8);
    assert_false(gvk_supports_op(&rig->features, ggml_top_k(rig->ctx, a, 2)));
}

static void test_rows_are_shared_by_powers_of_two(void **state) {
    struct rig *rig = *state;
    for (uint32_t most = 64; most <= 1024; most *= 2) {
        for (int64_t n = 1; n <= 16384; n *= 4) {
            rig->features.max_group_size = most;
            struct ggml_tensor *a = ggml_new_tensor_2d(rig->ctx, GGML_TYPE_F32, n, 3);
            const uint32_t size = plan_of(rig, ggml_rms_norm(rig->ctx, a, 1e-5f))->specs[0];
            assert_int_equal(size & (size - 1), 0);
            assert_in_range(size, 32, most);
        }
    }
}

static void test_many_groups_spread_over_dimensions(void **state) {
    struct rig *rig = *state;
    struct ggml_tensor *a = ggml_new_tensor_1d(rig->ctx, GGML_TYPE_F32, 1 << 28);
    const struct gvk_dispatch *d = plan_of(rig, ggml_sqr(rig->ctx, a));
    const uint64_t groups = (uint64_t)d->groups[0] * d->groups[1] * d->groups[2];
    assert_true(groups * d->specs[0] * 4 >= 1 << 28);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_groups_are_spread_evenly),
        TEST(test_dense_copies_move_wide_items),
        TEST(test_memory_at_odd_places_moves_in_elements),
        TEST(test_narrow_rows_move_what_strides_allow),
        TEST(test_columns_become_rows_in_tiles),
        TEST(test_parts_go_to_their_places),
        TEST(test_strides_that_cut_elements_are_refused),
        TEST(test_transposed_blocks_are_refused),
        TEST(test_rows_that_overlap_are_not_set),
        TEST(test_long_rows_are_sorted_in_blocks),
        TEST(test_rows_are_shared_by_powers_of_two),
        TEST(test_many_groups_spread_over_dimensions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
