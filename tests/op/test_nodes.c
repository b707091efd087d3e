// SPDX-License-Identifier: MIT
// What the table of builders can't show: setters, compositions, chains, extremes, costs.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "ggml-host.h"
#include "op/op_table.h"
#include "tensor/error_tensor.h"

static struct ggml_context *ctx;
static struct fixture fixture;
static const struct fixture *const f = &fixture;

static int set_up(void **state) {
    (void)state;
    ctx = fixture_context();
    assert_non_null(ctx);
    fixture_fill(&fixture, ctx);
    ggml_clear_error();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    ggml_free(ctx);
    return 0;
}

static void refused(const struct ggml_tensor *t, const char *start) {
    if (!ggml_tensor_is_error(t) || strncmp(ggml_last_error(), start, strlen(start)) != 0) {
        fail_msg("expected '%s...', last error '%s'", start, ggml_last_error());
    }
    ggml_clear_error();
}

static void complains(const char *start) {
    if (ggml_last_status() == GGML_HOST_OK ||
        strncmp(ggml_last_error(), start, strlen(start)) != 0) {
        fail_msg("expected '%s...', last error '%s'", start, ggml_last_error());
    }
    ggml_clear_error();
}

static void test_table_is_complete(void **state) {
    (void)state;
    for (int i = 0; i < GGML_OP_COUNT; ++i) {
        const struct ggml_op_info *info = ggml_op_info((enum ggml_op)i);
        assert_non_null(info);
        assert_string_equal(info->name, ggml_op_name((enum ggml_op)i));
        assert_string_equal(info->symbol, ggml_op_symbol((enum ggml_op)i));
        assert_non_null(info->type_rule);
        assert_non_null(info->shape_rule);
        assert_non_null(info->cost_rule);
        assert_true(info->min_src >= 0 && info->min_src <= info->max_src);
        assert_true(info->max_src <= GGML_MAX_SRC);
        assert_true(info->builders[0] != '\0');
        const bool moves_nothing = (info->flags & GGML_OP_FLAG_VIEW) != 0 || i == GGML_OP_NONE;
        assert_int_equal(moves_nothing, ggml_op_is_empty((enum ggml_op)i));
    }
    assert_null(ggml_op_info(GGML_OP_COUNT));
    assert_null(ggml_op_info((enum ggml_op) - 1));
}

// The list of the specification, not taken from the table.
// ggml's own list but ADD_ID, which would overwrite rows of its second source before it reads them.
static void test_who_may_reuse_memory(void **state) {
    (void)state;
    const enum ggml_op may[] = {GGML_OP_FILL,          GGML_OP_SCALE,        GGML_OP_DIAG_MASK_ZERO,
                                GGML_OP_DIAG_MASK_INF, GGML_OP_ADD,          GGML_OP_ADD1,
                                GGML_OP_SUB,           GGML_OP_MUL,          GGML_OP_DIV,
                                GGML_OP_SQR,           GGML_OP_SQRT,         GGML_OP_LOG,
                                GGML_OP_UNARY,         GGML_OP_ROPE,         GGML_OP_ROPE_BACK,
                                GGML_OP_SILU_BACK,     GGML_OP_RMS_NORM,     GGML_OP_RMS_NORM_BACK,
                                GGML_OP_SOFT_MAX,      GGML_OP_SOFT_MAX_BACK};
    int n = 0;
    for (size_t i = 0; i < sizeof(may) / sizeof(may[0]); ++i) {
        assert_true(ggml_op_can_inplace(may[i]));
    }
    for (int i = 0; i < GGML_OP_COUNT; ++i) {
        n += ggml_op_can_inplace((enum ggml_op)i);
    }
    assert_int_equal(n, sizeof(may) / sizeof(may[0]));
}

static void test_errors_run_through_a_chain(void **state) {
    (void)state;
    struct ggml_tensor *t = ggml_mul_mat(ctx, f->weights, f->odd);
    const char *message = "ggml_mul_mat: src0 ne0 = 8 differs from src1 ne0 = 7";
    refused(t, message);
    t = ggml_add(ctx, t, f->a);
    t = ggml_mul(ctx, f->a, t);
    t = ggml_rms_norm(ctx, t, 1e-5f);
    t = ggml_reshape_1d(ctx, t, 192);
    t = ggml_view_1d(ctx, t, 4, 0);
    t = ggml_soft_max(ctx, t);
    t = ggml_permute(ctx, t, 1, 0, 2, 3);
    t = ggml_cont(ctx, t);
    t = ggml_cpy(ctx, t, f->a);
    t = ggml_conv_2d(ctx, f->kernel2, t, 1, 1, 1, 1, 1, 1);
    assert_true(ggml_tensor_is_error(t));
    assert_int_equal(strncmp(ggml_tensor_error(t), message, strlen(message)), 0);
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, ggml_sqr(ctx, f->a));
    ggml_build_forward_expand(graph, t);
    assert_non_null(ggml_graph_error(graph));
    assert_int_equal(strncmp(ggml_graph_error(graph), message, strlen(message)), 0);
}

static void test_shape_donors_are_checked(void **state) {
    (void)state;
    refused(ggml_repeat(ctx, f->row, NULL), "ggml_repeat: the tensor that gives the shape is NULL");
    refused(ggml_repeat_back(ctx, f->a, NULL), "ggml_repeat_back:");
    refused(ggml_get_rows_back(ctx, f->rows, f->row_ids, NULL), "ggml_get_rows_back:");
}

static void test_optional_operands(void **state) {
    (void)state;
    struct ggml_tensor *t = ggml_swiglu_oai(ctx, f->a, NULL, 1.5f, 7.0f);
    assert_int_equal(t->ne[0], 4);
    assert_null(t->src[1]);
    refused(ggml_geglu_split(ctx, f->a, NULL), "ggml_geglu_split: src1 is NULL");
    t = ggml_soft_max_ext(ctx, f->a, NULL, 0.5f, 0.0f);
    assert_false(ggml_tensor_is_error(t));
    t = ggml_flash_attn_ext(ctx, f->q, f->k, f->v, NULL, 1.0f, 0.0f, 0.0f);
    assert_false(ggml_tensor_is_error(t));
    refused(ggml_flash_attn_ext(ctx, f->q, f->k, f->v, NULL, 1.0f, 8.0f, 0.0f),
            "ggml_flash_attn_ext: max_bias = 8 needs a mask");
    t = ggml_leaky_relu(ctx, f->a, 0.1f, true);
    assert_ptr_equal(t->view_src, f->a);
    refused(ggml_flash_attn_back(ctx, f->q, f->k, f->v, f->q, true),
            "ggml_flash_attn_back: unsupported");
}

static void test_hints(void **state) {
    (void)state;
    struct ggml_tensor *product = ggml_mul_mat(ctx, f->weights, f->a);
    ggml_mul_mat_set_hint(product, GGML_HINT_SRC0_IS_HADAMARD);
    assert_int_equal(product->op_params[1], 1);
    ggml_mul_mat_set_hint(product, (enum ggml_op_hint)7);
    complains("ggml_mul_mat_set_hint:");
    assert_int_equal(product->op_params[1], 1);
}

// The slots are those of ggml 0.27.
static void test_precision(void **state) {
    (void)state;
    struct ggml_tensor *product = ggml_mul_mat(ctx, f->weights, f->a);
    struct ggml_tensor *experts = ggml_mul_mat_id(ctx, f->experts, f->tokens, f->expert_ids);
    struct ggml_tensor *attn = ggml_flash_attn_ext(ctx, f->q, f->k, f->v, NULL, 1, 0, 0);
    assert_true(ggml_prec_set_acc(product, GGML_PREC_F32));
    assert_true(ggml_prec_set_src(product, GGML_PREC_Q8, 1));
    assert_int_equal(product->op_params[0], 10);
    assert_int_equal(product->op_params[3], 30);
    assert_true(ggml_prec_set_acc(experts, GGML_PREC_F16));
    assert_true(ggml_prec_set_src(experts, GGML_PREC_Q4, 1));
    assert_int_equal(experts->op_params[0], 20);
    assert_int_equal(experts->op_params[3], 40);
    assert_true(ggml_prec_set_acc(attn, GGML_PREC_BF16));
    assert_int_equal(attn->op_params[3], 15);
    assert_int_equal(ggml_flash_attn_ext_get_prec(attn), GGML_PREC_BF16);
    assert_true(ggml_prec_set_acc(attn, GGML_PREC_UNDEFINED));
    assert_int_equal(attn->op_params[3], 0);
}

static void test_precision_refused(void **state) {
    (void)state;
    struct ggml_tensor *product = ggml_mul_mat(ctx, f->weights, f->a);
    struct ggml_tensor *attn = ggml_flash_attn_ext(ctx, f->q, f->k, f->v, NULL, 1, 0, 0);
    static const int bad[] = {GGML_PREC_Q8, GGML_PREC_Q4, 7, 100, -1};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
        assert_false(ggml_prec_set_acc(product, (enum ggml_prec)bad[i]));
        complains("ggml_prec_set_acc:");
        assert_int_equal(product->op_params[0], 0);
    }
    assert_false(ggml_prec_set_src(product, (enum ggml_prec)50, 1));
    complains("ggml_prec_set_src:");
    assert_false(ggml_prec_set_src(product, GGML_PREC_F32, 0));
    complains("ggml_prec_set_src: MUL_MAT");
    assert_false(ggml_prec_set_src(attn, GGML_PREC_F32, 1));
    complains("ggml_prec_set_src: FLASH_ATTN_EXT");
    assert_false(ggml_prec_set_acc(f->a, GGML_PREC_F32));
    complains("ggml_prec_set_acc: NONE");
    assert_false(ggml_prec_set_acc(NULL, GGML_PREC_F32));
    complains("ggml_prec_set_acc:");
    assert_false(ggml_prec_set_src(NULL, GGML_PREC_F32, 1));
    complains("ggml_prec_set_src:");
    assert_int_equal(ggml_flash_attn_ext_get_prec(NULL), GGML_PREC_UNDEFINED);
    complains("ggml_flash_attn_ext_get_prec:");
}

static void test_sparse_mask(void **state) {
    (void)state;
    struct ggml_tensor *attn = ggml_flash_attn_ext(ctx, f->q, f->k, f->v, NULL, 1, 0, 0);
    ggml_flash_attn_ext_set_n_kv_max(attn, 17);
    assert_int_equal(attn->op_params[4], 17);
    ggml_flash_attn_ext_set_n_kv_max(attn, -1);
    complains("ggml_flash_attn_ext_set_n_kv_max:");
    ggml_flash_attn_ext_set_n_kv_max(f->a, 3);
    complains("ggml_flash_attn_ext_set_n_kv_max:");
    assert_int_equal(attn->op_params[4], 17);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void test_deprecated_precision(void **state) {
    (void)state;
    struct ggml_tensor *product = ggml_mul_mat(ctx, f->weights, f->a);
    struct ggml_tensor *attn = ggml_flash_attn_ext(ctx, f->q, f->k, f->v, NULL, 1, 0, 0);
    ggml_mul_mat_set_prec(product, GGML_PREC_F32);
    assert_int_equal(product->op_params[0], 10);
    ggml_flash_attn_ext_set_prec(attn, GGML_PREC_F32);
    assert_int_equal(attn->op_params[3], 10);
    ggml_mul_mat_set_prec(attn, GGML_PREC_F16);
    complains("ggml_mul_mat_set_prec:");
    ggml_mul_mat_set_prec(NULL, GGML_PREC_F32);
    complains("ggml_mul_mat_set_prec:");
    ggml_flash_attn_ext_set_prec(product, GGML_PREC_F16);
    complains("ggml_flash_attn_ext_set_prec:");
    assert_int_equal(attn->op_params[3], 10);
    assert_int_equal(product->op_params[0], 10);
}
#pragma GCC diagnostic pop

static void assert_graph_refuses(struct ggml_tensor *node, const char *reason) {
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, node);
    assert_non_null(graph->error);
    if (!strstr(graph->error, reason)) fail_msg("%s", graph->error);
}

static void test_sinks(void **state) {
    (void)state;
    struct ggml_tensor *sinks3 = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 3);
    struct ggml_tensor *sinks4 = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, 4);
    struct ggml_tensor *soft = ggml_soft_max(ctx, f->a);
    struct ggml_tensor *attn = ggml_flash_attn_ext(ctx, f->q, f->k, f->v, NULL, 1, 0, 0);
    ggml_soft_max_add_sinks(soft, sinks3);
    ggml_flash_attn_ext_add_sinks(attn, sinks4);
    assert_ptr_equal(soft->src[2], sinks3);
    assert_ptr_equal(attn->src[4], sinks4);
    ggml_soft_max_add_sinks(soft, NULL);
    assert_null(soft->src[2]);
    ggml_flash_attn_ext_add_sinks(soft, sinks3);
    complains("ggml_flash_attn_ext_add_sinks:");
    assert_null(soft->src[2]);
    ggml_soft_max_add_sinks(soft, sinks4);
    complains("ggml_soft_max_add_sinks:");
    assert_null(soft->src[2]);
    assert_graph_refuses(soft, "its sinks are not f32");
    ggml_flash_attn_ext_add_sinks(attn, NULL);
    ggml_flash_attn_ext_add_sinks(attn, ggml_view_1d(ctx, sinks4, 99, 0));
    assert_graph_refuses(attn, "ggml_view_1d");
    ggml_flash_attn_ext_add_sinks(attn, NULL);
    ggml_flash_attn_ext_add_sinks(attn, f->half);
    complains("ggml_flash_attn_ext_add_sinks:");
    assert_null(attn->src[4]);
    assert_graph_refuses(attn, "its sinks are not f32");
}

static void test_rope_offset(void **state) {
    (void)state;
    struct ggml_tensor *t = ggml_rope(ctx, f->a, f->positions, 4, GGML_ROPE_TYPE_NEOX);
    assert_ptr_equal(ggml_rope_set_offset(t, 4), t);
    assert_int_equal(t->op_params[15], 4);
    refused(ggml_rope_set_offset(t, 6), "ggml_rope_set_offset:");
    refused(ggml_rope_set_offset(t, 3), "ggml_rope_set_offset:");
    refused(ggml_rope_set_offset(t, -2), "ggml_rope_set_offset:");
    refused(ggml_rope_set_offset(f->a, 2), "ggml_rope_set_offset:");
    refused(ggml_rope_set_offset(NULL, 2), "ggml_rope_set_offset:");
    assert_int_equal(t->op_params[15], 4);
    int sections[4] = {2, 1, 1, 0};
    t = ggml_rope_multi(ctx, f->a, f->positions4, NULL, 4, sections, GGML_ROPE_TYPE_VISION, 0, 1e4f,
                        1, 0, 1, 0, 0);
    refused(ggml_rope_set_offset(t, 2), "ggml_rope_set_offset:");
    refused(ggml_rope(ctx, f->a, f->positions, 10, 0), "ggml_rope: n_dims");
}

static void test_yarn_dimensions(void **state) {
    (void)state;
    float dims[2];
    ggml_rope_yarn_corr_dims(128, 4096, 10000.0f, 32.0f, 1.0f, dims);
    assert_float_equal(dims[0], 20.0f, 0);
    assert_float_equal(dims[1], 46.0f, 0);
    ggml_rope_yarn_corr_dims(8, 16, 10000.0f, 1e6f, 1e-9f, dims);
    assert_float_equal(dims[0], 0.0f, 0);
    assert_float_equal(dims[1], 7.0f, 0);
    ggml_rope_yarn_corr_dims(128, 4096, 10000.0f, 32.0f, 1.0f, NULL);
    complains("ggml_rope_yarn_corr_dims:");
}

static void run1(struct ggml_tensor *dst, const struct ggml_tensor *a, int ith, int nth,
                 void *data) {
    (void)dst, (void)a, (void)ith, (void)nth, (void)data;
}

static void run2(struct ggml_tensor *dst, const struct ggml_tensor *a, const struct ggml_tensor *b,
                 int ith, int nth, void *data) {
    (void)dst, (void)a, (void)b, (void)ith, (void)nth, (void)data;
}

static void run3(struct ggml_tensor *dst, const struct ggml_tensor *a, const struct ggml_tensor *b,
                 const struct ggml_tensor *c, int ith, int nth, void *data) {
    (void)dst, (void)a, (void)b, (void)c, (void)ith, (void)nth, (void)data;
}

static void run_any(struct ggml_tensor *dst, int ith, int nth, void *data) {
    (void)dst, (void)ith, (void)nth, (void)data;
}

// As a kernel reads them.
struct custom_params {
    ggml_custom1_op_t fun;
    int n_tasks;
    void *userdata;
};

static void test_custom_maps(void **state) {
    (void)state;
    int data;
    struct custom_params p;
    struct ggml_tensor *t = ggml_map_custom1(ctx, f->a, run1, 3, &data);
    memcpy(&p, t->op_params, sizeof(p));
    assert_true(p.fun == run1);
    assert_int_equal(p.n_tasks, 3);
    assert_ptr_equal(p.userdata, &data);
    assert_int_equal(t->op, GGML_OP_MAP_CUSTOM1);
    t = ggml_map_custom1_inplace(ctx, f->a, run1, GGML_N_TASKS_MAX, NULL);
    assert_ptr_equal(t->view_src, f->a);
    t = ggml_map_custom2(ctx, f->half, f->row, run2, 1, NULL);
    assert_int_equal(t->type, GGML_TYPE_F16);
    assert_ptr_equal(t->src[1], f->row);
    t = ggml_map_custom2_inplace(ctx, f->half, f->row, run2, 1, NULL);
    assert_ptr_equal(t->view_src, f->half);
    t = ggml_map_custom3(ctx, f->a, f->row, f->one, run3, 1, NULL);
    assert_ptr_equal(t->src[2], f->one);
    t = ggml_map_custom3_inplace(ctx, f->a, f->row, f->one, run3, 1, NULL);
    assert_int_equal(t->op, GGML_OP_MAP_CUSTOM3);
    refused(ggml_map_custom1(ctx, f->a, NULL, 1, NULL), "ggml_map_custom1: the function");
    refused(ggml_map_custom1_inplace(ctx, f->a, run1, 0, NULL),
            "ggml_map_custom1_inplace: n_tasks");
    refused(ggml_map_custom2(ctx, f->a, NULL, run2, 1, NULL), "ggml_map_custom2: src1");
    refused(ggml_map_custom2_inplace(ctx, NULL, f->a, run2, 1, NULL), "ggml_map_custom2_inplace:");
    refused(ggml_map_custom3(ctx, f->a, f->a, NULL, run3, 1, NULL), "ggml_map_custom3: src2");
    refused(ggml_map_custom3_inplace(ctx, f->a, f->a, f->a, run3, -2, NULL),
            "ggml_map_custom3_inplace: n_tasks");
}

static void test_custom_lists(void **state) {
    (void)state;
    struct ggml_tensor *args[10];
    for (int i = 0; i < 10; ++i) {
        args[i] = i % 2 == 0 ? f->a : f->row;
    }
    struct ggml_tensor *t =
        ggml_custom_4d(ctx, GGML_TYPE_I32, 5, 4, 3, 2, args, 9, run_any, 1, NULL);
    assert_int_equal(t->type, GGML_TYPE_I32);
    assert_int_equal(t->ne[0], 5);
    assert_ptr_equal(t->src[8], f->a);
    assert_null(t->src[9]);
    t = ggml_custom_4d(ctx, GGML_TYPE_F32, 5, 4, 3, 2, NULL, 0, run_any, 1, NULL);
    assert_null(t->src[0]);
    t = ggml_custom_inplace(ctx, f->half, args, 8, run_any, 1, NULL);
    assert_ptr_equal(t->view_src, f->half);
    assert_ptr_equal(t->src[0], f->half);
    assert_ptr_equal(t->src[8], f->row);
    refused(ggml_custom_4d(ctx, GGML_TYPE_F32, 5, 4, 3, 2, args, 10, run_any, 1, NULL),
            "ggml_custom_4d: n_args");
    refused(ggml_custom_4d(ctx, GGML_TYPE_F32, -5, 4, 3, 2, args, 1, run_any, 1, NULL),
            "ggml_custom_4d: extent");
    refused(ggml_custom_4d(ctx, GGML_TYPE_F32, 5, 4, 3, 2, NULL, 1, run_any, 1, NULL),
            "ggml_custom_4d: the list");
    refused(ggml_custom_inplace(ctx, f->a, args, 9, run_any, 1, NULL),
            "ggml_custom_inplace: n_args");
    refused(ggml_custom_inplace(ctx, NULL, args, 1, run_any, 1, NULL), "ggml_custom_inplace: src0");
    args[1] = NULL;
    refused(ggml_custom_inplace(ctx, f->a, args, 2, run_any, 1, NULL),
            "ggml_custom_inplace: argument 1");
}

// From the result back along src[0].
static void follows(const struct ggml_tensor *t, const enum ggml_op *ops, int n) {
    for (int i = 0; i < n; ++i) {
        assert_int_equal(t->op, ops[i]);
        t = t->src[0];
    }
}

static void test_compositions(void **state) {
    (void)state;
    const struct ggml_tensor *t = ggml_conv_1d(ctx, f->kernel1, f->image1, 1, 1, 1);
    follows(
        t,
        (const enum ggml_op[]){GGML_OP_RESHAPE, GGML_OP_MUL_MAT, GGML_OP_RESHAPE, GGML_OP_IM2COL},
        4);
    const struct ggml_tensor *patches = t->src[0]->src[0]->src[0];
    assert_int_equal(patches->type, GGML_TYPE_F16);
    assert_int_equal(patches->op_params[2], 1);
    assert_ptr_equal(t->src[0]->src[1]->src[0], f->kernel1);
    t = ggml_conv_2d_sk_p0(ctx, f->kernel2, f->image2);
    follows(t,
            (const enum ggml_op[]){GGML_OP_CONT, GGML_OP_PERMUTE, GGML_OP_RESHAPE, GGML_OP_MUL_MAT,
                                   GGML_OP_RESHAPE, GGML_OP_IM2COL},
            6);
    patches = t->src[0]->src[0]->src[0]->src[0]->src[0];
    assert_memory_equal(patches->op_params, ((int32_t[7]){3, 3, 0, 0, 1, 1, 1}), 28);
    t = ggml_conv_2d_dw(ctx, f->kernel2_dw, f->image2, 1, 1, 1, 1, 1, 1);
    follows(
        t,
        (const enum ggml_op[]){GGML_OP_RESHAPE, GGML_OP_MUL_MAT, GGML_OP_RESHAPE, GGML_OP_RESHAPE},
        4);
    assert_int_equal(t->src[0]->src[1]->src[0]->op, GGML_OP_IM2COL);
    t = ggml_conv_3d(ctx, f->kernel3, f->image3, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1);
    follows(t,
            (const enum ggml_op[]){GGML_OP_RESHAPE, GGML_OP_CONT, GGML_OP_PERMUTE, GGML_OP_RESHAPE,
                                   GGML_OP_MUL_MAT, GGML_OP_RESHAPE, GGML_OP_IM2COL_3D},
            7);
    struct ggml_tensor *bf16 = ggml_new_tensor_3d(ctx, GGML_TYPE_BF16, 3, 5, 7);
    t = ggml_conv_1d_ph(ctx, bf16, f->image1, 2, 1);
    assert_int_equal(t->src[0]->src[0]->src[0]->type, GGML_TYPE_F32);
    assert_int_equal(t->src[0]->src[0]->src[0]->op_params[2], 1);
    t = ggml_argsort_top_k(ctx, f->a, 3);
    assert_int_equal(t->src[0]->op, GGML_OP_ARGSORT);
    assert_int_equal(t->src[0]->op_params[0], GGML_SORT_ORDER_DESC);
    assert_int_equal(t->nb[1], 32);
}

static void test_depthwise_keeps_channels_together(void **state) {
    (void)state;
    struct ggml_tensor *memory = ggml_new_tensor_4d(ctx, GGML_TYPE_F32, 5, 10, 12, 2);
    struct ggml_tensor *image = ggml_permute(ctx, memory, 2, 0, 1, 3);
    const struct ggml_tensor *t =
        ggml_conv_2d_dw_direct(ctx, f->kernel2_dw, image, 1, 1, 1, 1, 1, 1);
    assert_memory_equal(t->nb, ((size_t[4]){20, 200, 4, 2400}), sizeof(t->nb));
    assert_memory_equal(t->ne, ((int64_t[4]){10, 12, 5, 2}), sizeof(t->ne));
}

static void test_huge_extents(void **state) {
    (void)state;
    const int64_t huge = (int64_t)1 << 40;
    struct ggml_tensor *line = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, huge);
    struct ggml_tensor *matrix = ggml_new_tensor_2d(ctx, GGML_TYPE_I8, 1, huge);
    assert_false(ggml_tensor_is_error(line));
    refused(ggml_repeat_4d(ctx, f->row, INT64_MAX - 7, 1, 1, 1), "ggml_repeat_4d:");
    refused(ggml_repeat_4d(ctx, f->row, 8, INT64_MAX, INT64_MAX, 1), "ggml_repeat_4d:");
    refused(ggml_diag(ctx, line), "ggml_diag:");
    refused(ggml_mul_mat(ctx, matrix, matrix), "ggml_mul_mat:");
    refused(ggml_out_prod(ctx, line, line), "ggml_out_prod:");
    refused(ggml_concat(ctx, line, line, 4), "ggml_concat:");
    refused(ggml_argsort(ctx, line, GGML_SORT_ORDER_ASC), "ggml_argsort:");
    refused(ggml_top_k(ctx, line, 1), "ggml_top_k:");
    refused(ggml_argmax(ctx, line), "ggml_argmax:");
    refused(ggml_upscale(ctx, line, INT32_MAX, GGML_SCALE_MODE_NEAREST), "ggml_upscale:");
    refused(ggml_interpolate(ctx, f->a, huge, huge, 1, 1, 0), "ggml_interpolate:");
    refused(ggml_pad(ctx, f->a, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX), "ggml_pad:");
    refused(ggml_arange(ctx, 0, 3e38f, 1e-30f), "ggml_arange:");
    refused(ggml_arange(ctx, 0, NAN, 1), "ggml_arange:");
    refused(ggml_arange(ctx, 0, INFINITY, 1), "ggml_arange:");
    refused(ggml_timestep_embedding(ctx, line, INT32_MAX, 1), "ggml_timestep_embedding:");
    refused(ggml_conv_2d(ctx, f->kernel2, f->image2, INT32_MAX, 1, 0, 0, INT32_MAX, INT32_MAX),
            "ggml_conv_2d: ggml_im2col:");
    refused(ggml_pool_2d(ctx, f->image2, GGML_OP_POOL_MAX, 1, 1, 1, 1, NAN, INFINITY),
            "ggml_pool_2d:");
    refused(ggml_win_part(ctx, f->plane, INT32_MIN), "ggml_win_part:");
    refused(ggml_acc(ctx, f->a, f->matrix, SIZE_MAX, SIZE_MAX, SIZE_MAX, 0), "ggml_acc:");
    refused(ggml_roll(ctx, f->a, INT32_MIN, 0, 0, 0), "ggml_roll:");
}

static void test_empty_operands(void **state) {
    (void)state;
    struct ggml_tensor *none = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, 8, 0);
    const struct ggml_tensor *t =
        ggml_mul_mat(ctx, f->weights, ggml_new_tensor_4d(ctx, GGML_TYPE_F32, 8, 0, 3, 2));
    assert_int_equal(t->ne[1], 0);
    assert_false(ggml_tensor_is_error(ggml_add(ctx, none, none)));
    assert_false(ggml_tensor_is_error(ggml_sum_rows(ctx, none)));
    assert_false(ggml_tensor_is_error(ggml_reshape_1d(ctx, none, 0)));
    refused(ggml_add(ctx, f->a, none), "ggml_add:");
    refused(ggml_win_unpart(ctx, none, 0, 0, 0), "ggml_win_unpart:");
    refused(ggml_rwkv_wkv7(ctx, f->lin_r, f->lin_w, f->lin_k, f->lin_v, f->lin_a, f->lin_b, none),
            "ggml_rwkv_wkv7:");
}

static void test_costs(void **state) {
    (void)state;
    struct ggml_op_cost cost = ggml_op_cost(ggml_mul_mat(ctx, f->weights, f->a));
    assert_float_equal(cost.flops, 2.0 * 8 * 5 * 4 * 3 * 2, 0);
    assert_float_equal(cost.bytes_read, 2.0 * 8 * 5 * 3 + 4.0 * 8 * 4 * 3 * 2, 0);
    assert_float_equal(cost.bytes_written, 4.0 * 5 * 4 * 3 * 2, 0);
    cost = ggml_op_cost(ggml_get_rows(ctx, f->table, f->row_ids));
    assert_float_equal(cost.bytes_read, 5.0 * 34 + 5 * 4, 0);
    cost = ggml_op_cost(ggml_set_rows(ctx, f->cache, f->cache_rows, f->places));
    assert_float_equal(cost.bytes_written, 2.0 * 32 * 5 * 3 * 2, 0);
    cost = ggml_op_cost(ggml_flash_attn_ext(ctx, f->q, f->k, f->v, NULL, 1, 0, 0));
    assert_float_equal(cost.flops, 2.0 * 7 * 32 * 4 * 2 * (16 + 24), 0);
    cost = ggml_op_cost(ggml_conv_2d_direct(ctx, f->kernel2, f->image2, 1, 1, 1, 1, 1, 1));
    assert_float_equal(cost.flops, 2.0 * 45 * 10 * 12 * 7 * 2, 0);
    cost = ggml_op_cost(ggml_set_inplace(ctx, f->a, f->row, 32, 128, 384, 0));
    assert_float_equal(cost.bytes_written, 32, 0);
    cost = ggml_op_cost(ggml_cast(ctx, f->a, GGML_TYPE_F16));
    assert_float_equal(cost.bytes_read, 768, 0);
    cost = ggml_op_cost(ggml_transpose(ctx, f->a));
    assert_float_equal(cost.bytes_read + cost.bytes_written + cost.flops, 0, 0);
    cost = ggml_op_cost(ggml_error_tensor(ctx, "x"));
    assert_float_equal(cost.bytes_written, 0, 0);
    cost = ggml_op_cost(NULL);
    assert_float_equal(cost.bytes_written, 0, 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_table_is_complete),
        TEST(test_who_may_reuse_memory),
        TEST(test_errors_run_through_a_chain),
        TEST(test_shape_donors_are_checked),
        TEST(test_optional_operands),
        TEST(test_hints),
        TEST(test_precision),
        TEST(test_precision_refused),
        TEST(test_sparse_mask),
        TEST(test_deprecated_precision),
        TEST(test_sinks),
        TEST(test_rope_offset),
        TEST(test_yarn_dimensions),
        TEST(test_custom_maps),
        TEST(test_custom_lists),
        TEST(test_compositions),
        TEST(test_depthwise_keeps_channels_together),
        TEST(test_huge_extents),
        TEST(test_empty_operands),
        TEST(test_costs),
    };
    return cmocka_run_group_tests_name("op nodes", tests, NULL, NULL);
}
