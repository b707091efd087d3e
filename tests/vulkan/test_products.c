// SPDX-License-Identifier: MIT
// Which shader multiplies on which device, without one; and that those which the driver on the CPU
// would not choose compute the same.
#define _POSIX_C_SOURCE 200809L
#include <math.h>

#include "pipeline/shaders.h"
#include "plan/plan.h"
#include "support/vulkan_test.h"

static struct ggml_context *new_context(void) {
    const struct ggml_init_params params = {.mem_size = 1 << 18, .no_alloc = true};
    return ggml_init(params);
}

static struct ggml_tensor *product(struct ggml_context *ctx, enum ggml_type type, int64_t m,
                                   int64_t n, int64_t k) {
    return ggml_mul_mat(ctx, ggml_new_tensor_2d(ctx, type, k, m),
                        ggml_new_tensor_2d(ctx, GGML_TYPE_F32, k, n));
}

enum { EXPERTS = 4, USED = 2 };

// n tokens that each take USED experts of EXPERTS.
static struct ggml_tensor *expert_product(struct ggml_context *ctx, enum ggml_type type, int64_t m,
                                          int64_t n, int64_t k) {
    return ggml_mul_mat_id(ctx, ggml_new_tensor_3d(ctx, type, k, m, EXPERTS),
                           ggml_new_tensor_3d(ctx, GGML_TYPE_F32, k, USED, n),
                           ggml_new_tensor_2d(ctx, GGML_TYPE_I32, USED, n));
}

// --- choices -------------------------------------------------------------------------------------

enum { FP16 = 1, INT_DOT = 2, COOPMAT = 4, NO_SUBGROUPS = 8, CPU = 16, SMALL = 32, WAVE64 = 64 };

static struct gvk_features features_of(int flags) {
    return (struct gvk_features){
        .fp16 = (flags & (FP16 | COOPMAT)) != 0,
        .int_dot = (flags & INT_DOT) != 0,
        .coopmat = (flags & COOPMAT) != 0,
        .subgroup_arithmetic = !(flags & NO_SUBGROUPS),
        .cpu = (flags & CPU) != 0,
        .subgroup_size = flags & CPU      ? 8
                         : flags & WAVE64 ? 64
                                          : 32,
        .max_group_size = flags & SMALL ? 128 : 1024,
        .max_groups = {65535, 65535, 65535},
        .max_shared_bytes = flags & SMALL ? 16384 : 49152,
        .max_range_bytes = 1 << 30,
        .min_storage_alignment = 16,
    };
}

static const struct choice {
    int flags;
    enum ggml_type type;
    int n;
    bool precise;
    const char *shader; // of the last launch
    int n_launches;
} choices[] = {
    {0, GGML_TYPE_F32, 1, false, "mul_mat_vec_sum", 1},
    {0, GGML_TYPE_F16, 8, false, "mul_mat_vec_sum", 1},
    {NO_SUBGROUPS, GGML_TYPE_F16, 8, false, "mul_mat_vec", 1},
    {NO_SUBGROUPS, GGML_TYPE_Q4_K, 1, false, "mul_mat_vec_blocks", 1},
    {0, GGML_TYPE_Q4_0, 1, false, "mul_mat_vec_blocks_sum", 1},
    {0, GGML_TYPE_Q4_0, 9, false, "mul_mat_tile", 1},
    {0, GGML_TYPE_Q4_0, 64, false, "mul_mat_tile", 1},
    {SMALL, GGML_TYPE_Q4_0, 64, false, "mul_mat_vec_blocks_sum", 1},
    {CPU, GGML_TYPE_Q4_0, 512, false, "mul_mat_vec_blocks_sum", 1},
    {CPU | FP16, GGML_TYPE_F16, 512, false, "mul_mat_vec_sum", 1},
    {FP16, GGML_TYPE_Q4_0, 64, false, "mul_mat_tile_fp16", 1},
    {FP16, GGML_TYPE_Q4_0, 64, true, "mul_mat_tile", 1},
    {FP16, GGML_TYPE_F16, 64, false, "mul_mat_tile", 1},
    {FP16, GGML_TYPE_BF16, 64, false, "mul_mat_tile", 1},
    {COOPMAT, GGML_TYPE_F16, 64, false, "mul_mat_tile_coopmat", 1},
    {COOPMAT, GGML_TYPE_Q6_K, 64, false, "mul_mat_tile_coopmat", 1},
    {COOPMAT, GGML_TYPE_F16, 64, true, "mul_mat_tile", 1},
    {COOPMAT, GGML_TYPE_BF16, 64, false, "mul_mat_tile", 1},
    {COOPMAT | WAVE64, GGML_TYPE_Q6_K, 64, false, "mul_mat_tile_fp16", 1},
    {COOPMAT, GGML_TYPE_F16, 4, false, "mul_mat_vec_sum", 1},
    {INT_DOT, GGML_TYPE_Q8_0, 1, false, "mul_mat_dot", 2},
    {INT_DOT, GGML_TYPE_Q4_0, 8, false, "mul_mat_dot", 2},
    {INT_DOT, GGML_TYPE_Q4_K, 1, false, "mul_mat_dot", 2},
    {INT_DOT, GGML_TYPE_Q4_K, 1, true, "mul_mat_vec_blocks_sum", 1},
    {INT_DOT, GGML_TYPE_Q5_1, 1, false, "mul_mat_vec_blocks_sum", 1},
    {INT_DOT, GGML_TYPE_F16, 1, false, "mul_mat_vec_sum", 1},
    {INT_DOT | NO_SUBGROUPS, GGML_TYPE_Q8_0, 1, false, "mul_mat_vec_blocks", 1},
    {CPU | INT_DOT, GGML_TYPE_IQ1_S, 1, false, "mul_mat_vec_blocks_sum_grid", 1},
    {NO_SUBGROUPS, GGML_TYPE_IQ1_M, 1, false, "mul_mat_vec_blocks_grid", 1},
    {0, GGML_TYPE_IQ2_XXS, 64, false, "mul_mat_tile_grid", 1},
    {FP16, GGML_TYPE_IQ2_S, 64, false, "mul_mat_tile_fp16_grid", 1},
    {COOPMAT, GGML_TYPE_IQ3_S, 64, false, "mul_mat_tile_coopmat_grid", 1},
};

// Of expert_product().
static const struct choice expert_choices[] = {
    {0, GGML_TYPE_F16, 1, false, "mul_mat_vec_id_sum", 1},
    {0, GGML_TYPE_F16, 8, false, "mul_mat_vec_grouped_sum", 2},
    {0, GGML_TYPE_Q4_0, 15, false, "mul_mat_vec_grouped_blocks_sum", 2},
    {0, GGML_TYPE_Q4_0, 16, false, "mul_mat_tile_id", 2},
    {NO_SUBGROUPS, GGML_TYPE_Q4_0, 8, false, "mul_mat_vec_id_blocks", 1},
    {NO_SUBGROUPS, GGML_TYPE_Q4_0, 64, false, "mul_mat_tile_id", 2},
    {SMALL, GGML_TYPE_Q4_0, 64, false, "mul_mat_vec_grouped_blocks_sum", 2},
    {CPU | FP16, GGML_TYPE_Q4_0, 512, false, "mul_mat_vec_grouped_blocks_sum", 2},
    {FP16, GGML_TYPE_Q4_K, 512, false, "mul_mat_tile_id_fp16", 2},
    {FP16, GGML_TYPE_BF16, 512, false, "mul_mat_tile_id", 2},
    {COOPMAT, GGML_TYPE_F16, 64, false, "mul_mat_tile_id_coopmat", 2},
    {0, GGML_TYPE_IQ2_XS, 1, false, "mul_mat_vec_id_blocks_sum_grid", 1},
    {NO_SUBGROUPS, GGML_TYPE_IQ2_S, 8, false, "mul_mat_vec_id_blocks_grid", 1},
    {0, GGML_TYPE_IQ3_XXS, 15, false, "mul_mat_vec_grouped_blocks_sum_grid", 2},
    {0, GGML_TYPE_IQ3_S, 64, false, "mul_mat_tile_id_grid", 2},
    {FP16, GGML_TYPE_IQ1_M, 64, false, "mul_mat_tile_id_fp16_grid", 2},
    {COOPMAT, GGML_TYPE_IQ1_S, 64, false, "mul_mat_tile_id_coopmat_grid", 2},
};

// What an application asks of the sums and of src1 leaves fewer kernels.
static const struct precision {
    int flags;
    enum ggml_type type;
    int n;
    enum ggml_prec sums, src1;
    const char *shader, *expert_shader; // NULL: not asked
} precisions[] = {
    {FP16, GGML_TYPE_Q4_0, 64, 0, GGML_PREC_F32, "mul_mat_tile", "mul_mat_tile_id"},
    {FP16, GGML_TYPE_Q4_0, 64, 0, GGML_PREC_BF16, "mul_mat_tile", "mul_mat_tile_id"},
    {FP16, GGML_TYPE_Q4_0, 64, 0, GGML_PREC_F16, "mul_mat_tile_fp16", "mul_mat_tile_id_fp16"},
    {FP16, GGML_TYPE_Q4_0, 64, GGML_PREC_F16, 0, "mul_mat_tile_fp16", "mul_mat_tile_id_fp16"},
    {FP16, GGML_TYPE_Q4_0, 64, GGML_PREC_BF16, 0, "mul_mat_tile", "mul_mat_tile_id"},
    {FP16, GGML_TYPE_Q4_0, 64, GGML_PREC_F32, GGML_PREC_F16, "mul_mat_tile", "mul_mat_tile_id"},
    {COOPMAT, GGML_TYPE_F16, 64, 0, GGML_PREC_F32, "mul_mat_tile", "mul_mat_tile_id"},
    {COOPMAT, GGML_TYPE_F16, 64, GGML_PREC_F32, GGML_PREC_F16, "mul_mat_tile_coopmat",
     "mul_mat_tile_id_coopmat"},
    {INT_DOT, GGML_TYPE_Q8_0, 1, 0, GGML_PREC_F32, "mul_mat_vec_blocks_sum", NULL},
    {INT_DOT, GGML_TYPE_Q8_0, 1, 0, GGML_PREC_F16, "mul_mat_vec_blocks_sum", NULL},
    {INT_DOT, GGML_TYPE_Q8_0, 1, 0, GGML_PREC_Q8, "mul_mat_dot", NULL},
    {INT_DOT, GGML_TYPE_Q8_0, 1, 0, GGML_PREC_Q4, "mul_mat_dot", NULL},
};

static void check_precision(const struct precision *p, bool experts) {
    const struct gvk_features features = features_of(p->flags);
    const char *expected = experts ? p->expert_shader : p->shader;
    if (!expected) return;
    struct gvk_plan plan;
    struct ggml_context *ctx = new_context();
    struct ggml_tensor *node = (experts ? expert_product : product)(ctx, p->type, 256, p->n, 512);
    assert_true(ggml_prec_set_acc(node, p->sums) && ggml_prec_set_src(node, p->src1, 1));
    gvk_plan_init(&plan, &features);
    assert_true(gvk_plan_add(&plan, node));
    assert_string_equal(
        gvk_shader_code(gvk_plan_at(&plan, gvk_plan_count(&plan) - 1)->shader)->name, expected);
    gvk_plan_free(&plan);
    ggml_free(ctx);
}

static void test_precision_that_is_asked_for(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(precisions) / sizeof(precisions[0]); ++i) {
        check_precision(&precisions[i], false);
        check_precision(&precisions[i], true);
    }
}

static void check_choice(const struct choice *choice, bool experts) {
    const struct gvk_features features = features_of(choice->flags);
    struct gvk_plan plan;
    struct ggml_context *ctx = new_context();
    struct ggml_tensor *node =
        (experts ? expert_product : product)(ctx, choice->type, 256, choice->n, 512);
    if (choice->precise) ggml_prec_set_acc(node, GGML_PREC_F32);
    gvk_plan_init(&plan, &features);
    assert_true(gvk_plan_add(&plan, node));
    const char *name = gvk_shader_code(gvk_plan_at(&plan, gvk_plan_count(&plan) - 1)->shader)->name;
    assert_int_equal(gvk_plan_count(&plan), choice->n_launches);
    if (strcmp(name, choice->shader) != 0)
        fail_msg("%s, n=%d, flags %d: %s, not %s", ggml_type_name(choice->type), choice->n,
                 choice->flags, name, choice->shader);
    for (int d = 0; d < gvk_plan_count(&plan); ++d)
        assert_true(gvk_plan_at(&plan, d)->specs[0] <= features.max_group_size);
    const struct gvk_dispatch *product_of =
        gvk_plan_at(&plan, experts ? gvk_plan_count(&plan) - 1 : 0);
    // Behind the others, which is the binding that the shader was built with.
    assert_int_equal(product_of->operands[product_of->n_operands - 1].grids,
                     strstr(name, "_grid") != NULL);
    gvk_plan_free(&plan);
    ggml_free(ctx);
}

// Large tiles where that leaves enough of them; parts of k where there are few.
static void test_sizes_of_tiles(void **state) {
    static const struct {
        int m, n, k;
        uint32_t group, span, parts;
    } tiles[] = {
        {4096, 512, 512, 256, 2, 1}, {1024, 512, 512, 256, 1, 1},   {4096, 64, 512, 256, 1, 1},
        {4096, 20, 512, 128, 1, 1},  {64, 16, 512, 64, 1, 1},       {64, 9000, 512, 256, 1, 1},
        {4096, 16, 4096, 64, 1, 4},  {1024, 64, 16384, 256, 1, 16}, {256, 20, 1536, 128, 1, 3},
    };
    const struct gvk_features features = features_of(0);
    (void)state;
    for (size_t i = 0; i < sizeof(tiles) / sizeof(tiles[0]); ++i) {
        enum { SPEC_SPAN = 7, SPEC_SPLIT = 8 };
        struct gvk_plan plan;
        struct ggml_context *ctx = new_context();
        struct ggml_tensor *node = product(ctx, GGML_TYPE_F16, tiles[i].m, tiles[i].n, tiles[i].k);
        gvk_plan_init(&plan, &features);
        assert_true(gvk_plan_add(&plan, node));
        const struct gvk_dispatch *d = gvk_plan_at(&plan, 0);
        const uint32_t rows = 64 * d->specs[SPEC_SPAN];
        const uint32_t columns = d->specs[0] / 4 * d->specs[SPEC_SPAN];
        assert_int_equal(d->specs[0], tiles[i].group);
        assert_int_equal(d->specs[SPEC_SPAN], tiles[i].span);
        assert_int_equal(d->specs[SPEC_SPLIT], tiles[i].parts > 1);
        assert_int_equal(gvk_plan_count(&plan), tiles[i].parts > 1 ? 2 : 1);
        assert_true((uint64_t)d->groups[0] * d->groups[1] * d->groups[2] >=
                    ((uint32_t)tiles[i].m + rows - 1) / rows *
                        (((uint32_t)tiles[i].n + columns - 1) / columns) * tiles[i].parts);
        gvk_plan_free(&plan);
        ggml_free(ctx);
    }
}

static void test_choices(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); ++i)
        check_choice(&choices[i], false);
    for (size_t i = 0; i < sizeof(expert_choices) / sizeof(expert_choices[0]); ++i)
        check_choice(&expert_choices[i], true);
}

// --- results -------------------------------------------------------------------------------------

static const struct {
    enum ggml_type type;
    int m, n, k;
    bool experts;
} sizes[] = {
    {GGML_TYPE_F32, 70, 20, 1101, false},    {GGML_TYPE_F32, 70, 66, 45, false},
    {GGML_TYPE_F32, 66, 10, 46, false},      {GGML_TYPE_BF16, 5, 30, 68, false},
    {GGML_TYPE_F16, 70, 40, 44, true},       {GGML_TYPE_F32, 1300, 1100, 36, false},
    {GGML_TYPE_F16, 1500, 512, 18, true},    {GGML_TYPE_Q4_0, 3, 18, 64, true},
    {GGML_TYPE_BF16, 33, 2, 31, false},      {GGML_TYPE_Q4_0, 65, 67, 96, false},
    {GGML_TYPE_Q4_K, 65, 80, 256, true},     {GGML_TYPE_Q5_1, 40, 30, 1600, false},
    {GGML_TYPE_Q8_0, 1300, 1100, 32, false}, {GGML_TYPE_Q8_0, 7, 3, 160, false},
    {GGML_TYPE_Q4_0, 5, 1, 64, false},       {GGML_TYPE_Q4_K, 4, 5, 512, false},
    {GGML_TYPE_IQ1_M, 9, 5, 512, false},     {GGML_TYPE_IQ2_S, 65, 20, 256, false},
    {GGML_TYPE_IQ3_S, 65, 80, 256, true},
};
// Of sizes.
enum {
    GPU_FIRST = 0,
    GPU_LAST = 10,
    FEW_FIRST = 8,
    FEW_LAST = 9,
    HALF_FIRST = 9,
    HALF_LAST = 12,
    DOT_FIRST = 13,
    DOT_LAST = 15,
    GRID_FIRST = 16,
    GRID_TILES = 17,
    GRID_LAST = 18,
};

static void fill(struct ggml_tensor *y) {
    int32_t ids[1024];
    vulkan_fill(y->src[0], 1);
    vulkan_fill(y->src[1], 2);
    if (!y->src[2]) return;
    for (int i = 0; i < 1024; ++i)
        ids[i] = i * i / 5 % EXPERTS;
    assert_true(ggml_nbytes(y->src[2]) <= sizeof(ids));
    ggml_backend_tensor_set(y->src[2], ids, 0, ggml_nbytes(y->src[2]));
}

static float *compute(ggml_backend_dev_t device, int i) {
    struct ggml_context *ctx = new_context();
    return vulkan_compute(device, ctx,
                          (sizes[i].experts ? expert_product : product)(
                              ctx, sizes[i].type, sizes[i].m, sizes[i].n, sizes[i].k),
                          fill);
}

static void check_results(ggml_backend_dev_t device, const char *what, int first, int last) {
    ggml_backend_dev_t cpu = ggml_backend_dev_by_name("CPU");
    for (int i = first; i <= last; ++i) {
        float *got = compute(device, i), *wanted = compute(cpu, i);
        const int n = sizes[i].m * sizes[i].n * (sizes[i].experts ? USED : 1);
        const double error = vulkan_error(got, wanted, n);
        const double bound = ggml_is_quantized(sizes[i].type) ? 2.5e-4 : 1e-6;
        if (!(error <= bound))
            fail_msg("%s, %s m=%d n=%d k=%d%s: %g", what, ggml_type_name(sizes[i].type), sizes[i].m,
                     sizes[i].n, sizes[i].k, sizes[i].experts ? " of experts" : "", error);
        free(got);
        free(wanted);
    }
}

// The driver on the CPU, told that it is another device.
static void test_paths_of_other_devices(void **state) {
    static const struct {
        const char *name;
        int flags, first, last; // of sizes
    } paths[] = {
        {"no subgroups", CPU | NO_SUBGROUPS, FEW_FIRST, FEW_LAST},
        {"GPU", 0, GPU_FIRST, GPU_LAST},
        {"half precision", FP16, HALF_FIRST, HALF_LAST},
        {"packed bytes", INT_DOT, DOT_FIRST, DOT_LAST},
        {"grids", 0, GRID_FIRST, GRID_LAST},
        {"grids, no subgroups", CPU | NO_SUBGROUPS, GRID_FIRST, GRID_FIRST},
        {"grids, half precision", FP16, GRID_TILES, GRID_LAST},
    };
    (void)state;
    for (size_t p = 0; p < sizeof(paths) / sizeof(paths[0]); ++p) {
        ggml_backend_dev_t device = vulkan_device(vulkan_start("none", ""));
        if (!device) break;
        struct gvk_device *own = gvk_device_of(device);
        const int flags = paths[p].flags;
        own->features.cpu = own->features.cpu && (flags & CPU);
        own->features.subgroup_arithmetic &= !(flags & NO_SUBGROUPS);
        own->features.fp16 &= (flags & FP16) != 0;
        own->features.int_dot = (flags & INT_DOT) && own->probe.has.int_dot;
        check_results(device, paths[p].name, paths[p].first, paths[p].last);
        assert_int_equal(vulkan_n_messages(), 0);
        vulkan_stop();
    }
    vulkan_stop();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_precision_that_is_asked_for),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_sizes_of_tiles),
        cmocka_unit_test(test_paths_of_other_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
