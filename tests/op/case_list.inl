// SPDX-License-Identifier: MIT
// One row per builder, c is the context and f the fixture.
//
// OP_CASE(builder, call, OP, TYPE, extents, sources, alias, params, bad)
//   call     arguments that must work
//   sources  src[] of the result; COMPOSED: the graph is checked elsewhere
//   alias    the tensor that the result is a view of, or NULL
//   params   all of op_params
//   bad      arguments that must give an error tensor
#define A_NE (8, 4, 3, 2)
#define PAIR_CASE(name, call, OP, TYPE, ne, src, alias, params, bad)                               \
    OP_CASE(name, call, OP, TYPE, ne, src, NULL, params, bad)                                      \
    OP_CASE(name##_inplace, call, OP, TYPE, ne, src, alias, params, bad)
#define UNARY_CASE(name, NAME)                                                                     \
    OP_CASE(name, (c, f->a), UNARY, F32, A_NE, (f->a), NULL, (GGML_UNARY_OP_##NAME),               \
            (c, f->columns))
#define UNARY_PAIR_CASE(name, NAME)                                                                \
    PAIR_CASE(name, (c, f->a), UNARY, F32, A_NE, (f->a), f->a, (GGML_UNARY_OP_##NAME),             \
              (c, f->columns))
#define GLU_CASES(name, NAME)                                                                      \
    OP_CASE(name, (c, f->a), GLU, F32, (4, 4, 3, 2), (f->a), NULL, (GGML_GLU_OP_##NAME),           \
            (c, f->columns))                                                                           \
    OP_CASE(name##_swapped, (c, f->a), GLU, F32, (4, 4, 3, 2), (f->a), NULL,                       \
            (GGML_GLU_OP_##NAME, 1), (c, f->columns))                                              \
    OP_CASE(name##_split, (c, f->a, f->b), GLU, F32, A_NE, (f->a, f->b), NULL,                     \
            (GGML_GLU_OP_##NAME), (c, f->a, f->odd))

PAIR_CASE(dup, (c, f->a), DUP, F32, A_NE, (f->a), f->a, (0), (c, f->error))
PAIR_CASE(add, (c, f->a, f->row), ADD, F32, A_NE, (f->a, f->row), f->a, (0), (c, f->row, f->a))
OP_CASE(add_cast, (c, f->half, f->row, GGML_TYPE_F32), ADD, F32, A_NE, (f->half, f->row), NULL, (0),
        (c, f->a, f->row, GGML_TYPE_F32))
OP_CASE(add_id, (c, f->moe, f->bias, f->bias_ids), ADD_ID, F32, (8, 4, 3, 1),
        (f->moe, f->bias, f->bias_ids), NULL, (0), (c, f->moe, f->bias, f->expert_ids))
PAIR_CASE(add1, (c, f->a, f->one), ADD1, F32, A_NE, (f->a, f->one), f->a, (0), (c, f->a, f->row))
PAIR_CASE(sub, (c, f->a, f->b), SUB, F32, A_NE, (f->a, f->b), f->a, (0), (c, f->a, f->odd))
PAIR_CASE(mul, (c, f->a, f->b), MUL, F32, A_NE, (f->a, f->b), f->a, (0), (c, f->a, f->odd))
PAIR_CASE(div, (c, f->a, f->b), DIV, F32, A_NE, (f->a, f->b), f->a, (0), (c, f->a, f->odd))
OP_CASE(acc, (c, f->a, f->row, 32, 128, 384, 64), ACC, F32, A_NE, (f->a, f->row), NULL,
        (32, 128, 384, 64, 0), (c, f->a, f->row, 32, 128, 384, 768))
OP_CASE(acc_inplace, (c, f->a, f->row, 32, 128, 384, 64), ACC, F32, A_NE, (f->a, f->row), f->a,
        (32, 128, 384, 64, 1), (c, f->half, f->row, 32, 128, 384, 0))
OP_CASE(set, (c, f->a, f->matrix, 32, 128, 384, 128), SET, F32, A_NE, (f->a, f->matrix), NULL,
        (32, 128, 384, 128, 0), (c, f->a, f->matrix, 1000, 128, 384, 0))
OP_CASE(set_inplace, (c, f->a, f->matrix, 32, 128, 384, 128), SET, F32, A_NE, (f->a, f->matrix),
        f->a, (32, 128, 384, 128, 1), (c, f->a, f->matrix, 32, 128, 384, (size_t)1 << 30))
OP_CASE(set_1d, (c, f->a, f->row, 32), SET, F32, A_NE, (f->a, f->row), NULL, (32, 128, 384, 32, 0),
        (c, f->a, f->row, SIZE_MAX))
OP_CASE(set_1d_inplace, (c, f->a, f->row, 32), SET, F32, A_NE, (f->a, f->row), f->a,
        (32, 128, 384, 32, 1), (c, f->a, f->row, 752))
OP_CASE(set_2d, (c, f->a, f->matrix, 64, 32), SET, F32, A_NE, (f->a, f->matrix), NULL,
        (64, 128, 384, 32, 0), (c, f->a, f->matrix, SIZE_MAX, 0))
OP_CASE(set_2d_inplace, (c, f->a, f->matrix, 64, 32), SET, F32, A_NE, (f->a, f->matrix), f->a,
        (64, 128, 384, 32, 1), (c, f->row, f->a, 32, 0))
PAIR_CASE(sqr, (c, f->a), SQR, F32, A_NE, (f->a), f->a, (0), (c, f->error))
PAIR_CASE(sqrt, (c, f->a), SQRT, F32, A_NE, (f->a), f->a, (0), (c, f->error))
PAIR_CASE(log, (c, f->a), LOG, F32, A_NE, (f->a), f->a, (0), (c, f->error))
PAIR_CASE(sin, (c, f->a), SIN, F32, A_NE, (f->a), f->a, (0), (c, f->error))
PAIR_CASE(cos, (c, f->a), COS, F32, A_NE, (f->a), f->a, (0), (c, f->error))
OP_CASE(sum, (c, f->half), SUM, F16, (1, 1, 1, 1), (f->half), NULL, (0), (c, f->error))
OP_CASE(sum_rows, (c, f->a), SUM_ROWS, F32, (1, 4, 3, 2), (f->a), NULL, (0), (c, f->error))
OP_CASE(cumsum, (c, f->a), CUMSUM, F32, A_NE, (f->a), NULL, (0), (c, f->half))
OP_CASE(mean, (c, f->half), MEAN, F32, (1, 4, 3, 2), (f->half), NULL, (0), (c, f->error))
OP_CASE(argmax, (c, f->matrix), ARGMAX, I32, (4, 1, 1, 1), (f->matrix), NULL, (0), (c, f->a))
OP_CASE(count_equal, (c, f->i32, f->i32b), COUNT_EQUAL, I64, (1, 1, 1, 1), (f->i32, f->i32b), NULL,
        (0), (c, f->i32, f->positions))
OP_CASE(repeat, (c, f->row, f->a), REPEAT, F32, A_NE, (f->row), NULL, (0), (c, f->a, f->row))
OP_CASE(repeat_4d, (c, f->row, 16, 2, 1, 3), REPEAT, F32, (16, 2, 1, 3), (f->row), NULL, (0),
        (c, f->row, 12, 2, 1, 3))
OP_CASE(repeat_back, (c, f->a, f->row), REPEAT_BACK, F32, (8, 1, 1, 1), (f->a), NULL, (0),
        (c, f->row, f->a))
OP_CASE(concat, (c, f->a, f->odd, 0), CONCAT, F32, (15, 4, 3, 2), (f->a, f->odd), NULL, (0),
        (c, f->a, f->odd, 1))
UNARY_PAIR_CASE(abs, ABS)
UNARY_PAIR_CASE(sgn, SGN)
UNARY_PAIR_CASE(neg, NEG)
UNARY_PAIR_CASE(step, STEP)
UNARY_PAIR_CASE(tanh, TANH)
UNARY_PAIR_CASE(elu, ELU)
UNARY_PAIR_CASE(relu, RELU)
UNARY_PAIR_CASE(sigmoid, SIGMOID)
UNARY_PAIR_CASE(gelu, GELU)
UNARY_PAIR_CASE(gelu_erf, GELU_ERF)
UNARY_PAIR_CASE(gelu_quick, GELU_QUICK)
UNARY_PAIR_CASE(silu, SILU)
UNARY_PAIR_CASE(exp, EXP)
UNARY_PAIR_CASE(expm1, EXPM1)
UNARY_PAIR_CASE(softplus, SOFTPLUS)
UNARY_PAIR_CASE(floor, FLOOR)
UNARY_PAIR_CASE(ceil, CEIL)
UNARY_PAIR_CASE(round, ROUND)
UNARY_PAIR_CASE(trunc, TRUNC)
UNARY_CASE(hardswish, HARDSWISH)
UNARY_CASE(hardsigmoid, HARDSIGMOID)
PAIR_CASE(unary, (c, f->half, GGML_UNARY_OP_EXP), UNARY, F16, A_NE, (f->half), f->half,
          (GGML_UNARY_OP_EXP), (c, f->half, (enum ggml_unary_op)99))
OP_CASE(xielu, (c, f->a, 30.0f, 40.0f, 0.5f, -1.0f), UNARY, F32, A_NE, (f->a), NULL,
        (GGML_UNARY_OP_XIELU, F(30.5f), F(40.0f), F(0.5f), F(-1.0f)),
        (c, f->columns, 1.0f, 1.0f, 0.5f, 0.0f))
OP_CASE(leaky_relu, (c, f->a, 0.1f, false), LEAKY_RELU, F32, A_NE, (f->a), NULL, (F(0.1f)),
        (c, f->error, 0.1f, true))
OP_CASE(silu_back, (c, f->a, f->b), SILU_BACK, F32, A_NE, (f->a, f->b), NULL, (0),
        (c, f->a, f->row))
GLU_CASES(reglu, REGLU)
GLU_CASES(geglu, GEGLU)
GLU_CASES(swiglu, SWIGLU)
GLU_CASES(geglu_erf, GEGLU_ERF)
GLU_CASES(geglu_quick, GEGLU_QUICK)
OP_CASE(glu, (c, f->a, GGML_GLU_OP_SWIGLU, true), GLU, F32, (4, 4, 3, 2), (f->a), NULL,
        (GGML_GLU_OP_SWIGLU, 1), (c, f->a, (enum ggml_glu_op)7, true))
OP_CASE(glu_split, (c, f->a, f->b, GGML_GLU_OP_GEGLU), GLU, F32, A_NE, (f->a, f->b), NULL,
        (GGML_GLU_OP_GEGLU), (c, f->a, f->half, GGML_GLU_OP_GEGLU))
OP_CASE(swiglu_oai, (c, f->a, f->b, 1.5f, 7.0f), GLU, F32, A_NE, (f->a, f->b), NULL,
        (GGML_GLU_OP_SWIGLU_OAI, 0, F(1.5f), F(7.0f)), (c, f->columns, NULL, 1.5f, 7.0f))
OP_CASE(swiglu_clamp, (c, f->a, f->b, 7.0f), GLU, F32, A_NE, (f->a, f->b), NULL,
        (GGML_GLU_OP_SWIGLU_CLAMP, 0, 0, F(7.0f)), (c, f->columns, NULL, 7.0f))
PAIR_CASE(norm, (c, f->a, 0.5f), NORM, F32, A_NE, (f->a), f->a, (F(0.5f)), (c, f->error, 0.5f))
PAIR_CASE(rms_norm, (c, f->a, 0.5f), RMS_NORM, F32, A_NE, (f->a), f->a, (F(0.5f)), (c, f->error, 0.5f))
PAIR_CASE(l2_norm, (c, f->a, 0.5f), L2_NORM, F32, A_NE, (f->a), f->a, (F(0.5f)), (c, f->error, 0.5f))
PAIR_CASE(group_norm, (c, f->a, 2, 0.5f), GROUP_NORM, F32, A_NE, (f->a), f->a, (2, F(0.5f)),
          (c, f->a, 0, 0.5f))
OP_CASE(rms_norm_back, (c, f->a, f->b, 0.5f), RMS_NORM_BACK, F32, A_NE, (f->a, f->b), NULL,
        (F(0.5f)), (c, f->a, f->odd, 0.5f))
OP_CASE(mul_mat, (c, f->weights, f->a), MUL_MAT, F32, (5, 4, 3, 2), (f->weights, f->a), NULL, (0),
        (c, f->weights, f->odd))
OP_CASE(mul_mat_id, (c, f->experts, f->tokens, f->expert_ids), MUL_MAT_ID, F32, (5, 4, 7, 1),
        (f->experts, f->tokens, f->expert_ids), NULL, (0), (c, f->experts, f->tokens, f->bias_ids))
OP_CASE(out_prod, (c, f->outer, f->a), OUT_PROD, F32, (5, 8, 3, 2), (f->outer, f->a), NULL, (0),
        (c, f->weights, f->a))
PAIR_CASE(scale, (c, f->a, 2.0f), SCALE, F32, A_NE, (f->a), f->a, (F(2.0f)), (c, f->columns, 2.0f))
PAIR_CASE(scale_bias, (c, f->a, 2.0f, 3.0f), SCALE, F32, A_NE, (f->a), f->a, (F(2.0f), F(3.0f)),
          (c, f->columns, 2.0f, 3.0f))
OP_CASE(cpy, (c, f->a, f->half), CPY, F16, A_NE, (f->a, f->half), f->half, (0), (c, f->a, f->odd))
OP_CASE(cont, (c, f->columns), CONT, F32, (4, 8, 3, 2), (f->columns), NULL, (0), (c, f->error))
OP_CASE(cont_1d, (c, f->a, 192), CONT, F32, (192, 1, 1, 1), (f->a), NULL, (0), (c, f->a, 191))
OP_CASE(cont_2d, (c, f->a, 8, 24), CONT, F32, (8, 24, 1, 1), (f->a), NULL, (0), (c, f->a, -8, -24))
OP_CASE(cont_3d, (c, f->a, 8, 4, 6), CONT, F32, (8, 4, 6, 1), (f->a), NULL, (0), (c, f->a, 8, 4, 5))
OP_CASE(cont_4d, (c, f->a, 4, 4, 6, 2), CONT, F32, (4, 4, 6, 2), (f->a), NULL, (0),
        (c, f->a, 0, 4, 5, 1))
OP_CASE(get_rows, (c, f->table, f->row_ids), GET_ROWS, F32, (32, 5, 1, 1), (f->table, f->row_ids),
        NULL, (0), (c, f->table, f->times))
OP_CASE(get_rows_back, (c, f->rows, f->row_ids, f->table_f32), GET_ROWS_BACK, F32, (32, 10, 1, 1),
        (f->rows, f->row_ids), NULL, (0), (c, f->rows, f->row_ids, f->a))
OP_CASE(set_rows, (c, f->cache, f->cache_rows, f->places), SET_ROWS, F16, (32, 10, 3, 2),
        (f->cache_rows, f->places, f->cache), f->cache, (0), (c, f->cache, f->cache_rows, f->times))
OP_CASE(diag, (c, f->diagonal), DIAG, F32, (8, 8, 3, 2), (f->diagonal), NULL, (0), (c, f->a))
PAIR_CASE(diag_mask_inf, (c, f->a, 3), DIAG_MASK_INF, F32, A_NE, (f->a), f->a, (3),
          (c, f->error, 3))
PAIR_CASE(diag_mask_zero, (c, f->a, 3), DIAG_MASK_ZERO, F32, A_NE, (f->a), f->a, (3),
          (c, f->error, 3))
PAIR_CASE(soft_max, (c, f->a), SOFT_MAX, F32, A_NE, (f->a), f->a, (F(1.0f)), (c, f->columns))
PAIR_CASE(soft_max_ext, (c, f->a, f->mask, 0.5f, 8.0f), SOFT_MAX, F32, A_NE, (f->a, f->mask), f->a,
          (F(0.5f), F(8.0f)), (c, f->a, NULL, 0.5f, 8.0f))
PAIR_CASE(soft_max_ext_back, (c, f->a, f->b, 0.5f, 0.0f), SOFT_MAX_BACK, F32, A_NE, (f->a, f->b),
          f->a, (F(0.5f)), (c, f->a, f->row, 0.5f, 0.0f))
#define ROPE_FLOATS 5e5f, 2.0f, 0.25f, 1.5f, 32.0f, 1.0f
#define ROPE_BITS F(5e5f), F(2.0f), F(0.25f), F(1.5f), F(32.0f), F(1.0f)
PAIR_CASE(rope, (c, f->a, f->positions, 4, 2), ROPE, F32, A_NE, (f->a, f->positions), f->a,
          (0, 4, 2, 0, 0, F(10000.0f), F(1.0f), 0, F(1.0f)), (c, f->a, f->positions, 9, 2))
PAIR_CASE(rope_custom, (c, f->a, f->positions, 4, 0, 512, ROPE_FLOATS), ROPE, F32, A_NE,
          (f->a, f->positions), f->a, (0, 4, 0, 0, 512, ROPE_BITS),
          (c, f->a, f->times, 4, 0, 512, ROPE_FLOATS))
PAIR_CASE(rope_ext, (c, f->a, f->positions, f->factors, 4, 2, 512, ROPE_FLOATS), ROPE, F32, A_NE,
          (f->a, f->positions, f->factors), f->a, (0, 4, 2, 0, 512, ROPE_BITS),
          (c, f->a, f->positions, f->factors, 6, 2, 512, ROPE_FLOATS))
OP_CASE(rope_ext_back, (c, f->a, f->positions, NULL, 4, 2, 512, ROPE_FLOATS), ROPE_BACK, F32, A_NE,
        (f->a, f->positions), NULL, (0, 4, 2, 0, 512, ROPE_BITS),
        (c, f->a, f->positions, NULL, -1, 2, 512, ROPE_FLOATS))
PAIR_CASE(rope_multi, (c, f->a, f->positions4, NULL, 4, SECTIONS, 8, 512, ROPE_FLOATS), ROPE, F32,
          A_NE, (f->a, f->positions4), f->a, (0, 4, 8, 0, 512, ROPE_BITS, 1, 1, 0, 2),
          (c, f->a, f->positions4, NULL, 4, NULL, 8, 512, ROPE_FLOATS))
OP_CASE(rope_multi_back, (c, f->a, f->positions4, NULL, 4, SECTIONS, 24, 512, ROPE_FLOATS),
        ROPE_BACK, F32, A_NE, (f->a, f->positions4), NULL,
        (0, 4, 24, 0, 512, ROPE_BITS, 1, 1, 0, 2),
        (c, f->a, f->positions, NULL, 4, SECTIONS, 24, 512, ROPE_FLOATS))
PAIR_CASE(clamp, (c, f->a, -1.0f, 2.0f), CLAMP, F32, A_NE, (f->a), f->a, (F(-1.0f), F(2.0f)),
          (c, f->error, -1.0f, 2.0f))
OP_CASE(im2col, (c, f->kernel2, f->image2, 2, 1, 1, 0, 1, 2, true, GGML_TYPE_F16), IM2COL, F16,
        (45, 5, 8, 2), (f->kernel2, f->image2), NULL, (2, 1, 1, 0, 1, 2, 1),
        (c, f->kernel2, f->image2, 0, 1, 1, 0, 1, 2, true, GGML_TYPE_F16))
OP_CASE(im2col_back, (c, f->patches2, f->kernel2, IMAGE2_NE, 1, 1, 1, 1, 1, 1, true), IM2COL_BACK,
        F32, (10, 12, 5, 2), (f->patches2, f->kernel2), NULL, (1, 1, 1, 1, 1, 1, 1),
        (c, f->patches2, f->kernel2, NULL, 1, 1, 1, 1, 1, 1, true))
OP_CASE(im2col_3d, (c, f->kernel3, f->image3, 2, 1, 1, 2, 1, 1, 1, 1, 1, 1, GGML_TYPE_F32),
        IM2COL_3D, F32, (54, 6, 7, 8), (f->kernel3, f->image3), NULL,
        (1, 1, 2, 1, 1, 1, 1, 1, 1, 2),
        (c, f->kernel3, f->image3, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, GGML_TYPE_F32))
OP_CASE(col2im_1d, (c, f->columns1, 2, 7, 1), COL2IM_1D, F32, (19, 7, 1, 1), (f->columns1), NULL,
        (2, 7, 1), (c, f->columns1, 2, 8, 1))
OP_CASE(conv_1d, (c, f->kernel1, f->image1, 1, 1, 1), RESHAPE, F32, (20, 7, 1, 1), (COMPOSED),
        COMPOSED, (0), (c, f->kernel1, f->image1, 0, 1, 1))
OP_CASE(conv_1d_ph, (c, f->kernel1, f->image1, 1, 1), RESHAPE, F32, (20, 7, 1, 1), (COMPOSED),
        COMPOSED, (0), (c, f->kernel1, f->image1, 1, 30))
OP_CASE(conv_1d_dw, (c, f->kernel1_dw, f->image1, 1, 1, 1), RESHAPE, F32, (20, 5, 1, 1), (COMPOSED),
        COMPOSED, (0), (c, f->kernel1, f->image1, 1, 1, 1))
OP_CASE(conv_1d_dw_ph, (c, f->kernel1_dw, f->image1, 1, 1), RESHAPE, F32, (20, 5, 1, 1), (COMPOSED),
        COMPOSED, (0), (c, f->kernel1_dw, f->image1, 0, 1))
OP_CASE(conv_2d, (c, f->kernel2, f->image2, 1, 1, 1, 1, 1, 1), CONT, F32, (10, 12, 7, 2),
        (COMPOSED), COMPOSED, (0), (c, f->kernel2_dw, f->image2, 1, 1, 1, 1, 1, 1))
OP_CASE(conv_2d_sk_p0, (c, f->kernel2, f->image2), CONT, F32, (3, 4, 7, 2), (COMPOSED), COMPOSED,
        (0), (c, f->kernel2, f->image1))
OP_CASE(conv_2d_s1_ph, (c, f->kernel2, f->image2), CONT, F32, (10, 12, 7, 2), (COMPOSED), COMPOSED,
        (0), (c, f->kernel2, f->image1))
OP_CASE(conv_2d_dw, (c, f->kernel2_dw, f->image2, 1, 1, 1, 1, 1, 1), RESHAPE, F32, (10, 12, 5, 2),
        (COMPOSED), COMPOSED, (0), (c, f->kernel1, f->image2, 1, 1, 1, 1, 1, 1))
OP_CASE(conv_3d, (c, f->kernel3, f->image3, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1), RESHAPE, F32,
        (6, 7, 8, 8), (COMPOSED), COMPOSED, (0),
        (c, f->kernel3, f->image3, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1))
OP_CASE(conv_2d_direct, (c, f->kernel2, f->image2, 1, 2, 1, 1, 1, 1), CONV_2D, F32, (10, 6, 7, 2),
        (f->kernel2, f->image2), NULL, (1, 2, 1, 1, 1, 1),
        (c, f->kernel2, f->image2, 1, 1, 1, 1, 9, 1))
OP_CASE(conv_2d_dw_direct, (c, f->kernel2_dw, f->image2, 1, 2, 1, 1, 1, 1), CONV_2D_DW, F32,
        (10, 6, 5, 2), (f->kernel2_dw, f->image2), NULL, (1, 2, 1, 1, 1, 1),
        (c, f->kernel2, f->image2, 1, 1, 1, 1, 1, 1))
OP_CASE(conv_3d_direct, (c, f->kernel3, f->image3, 1, 1, 2, 1, 1, 1, 1, 1, 1, 2, 2, 4), CONV_3D,
        F32, (6, 7, 4, 8), (f->kernel3, f->image3), NULL, (1, 1, 2, 1, 1, 1, 1, 1, 1, 2, 2, 4),
        (c, f->kernel3, f->image3, 1, 1, 2, 1, 1, 1, 1, 1, 1, 2, 2, 5))
OP_CASE(conv_transpose_1d, (c, f->up_kernel1, f->up_image1, 2, 0, 1), CONV_TRANSPOSE_1D, F32,
        (21, 7, 1, 1), (f->up_kernel1, f->up_image1), NULL, (2, 0, 1),
        (c, f->up_kernel1, f->up_image1, 2, 1, 1))
OP_CASE(conv_transpose_2d_p0, (c, f->up_kernel2, f->image2, 2), CONV_TRANSPOSE_2D, F32,
        (20, 24, 7, 2), (f->up_kernel2, f->image2), NULL, (2), (c, f->up_kernel2, f->a, 2))
OP_CASE(pool_1d, (c, f->a, GGML_OP_POOL_AVG, 3, 2, 1), POOL_1D, F32, (4, 4, 3, 2), (f->a), NULL,
        (1, 3, 2, 1), (c, f->a, GGML_OP_POOL_AVG, 12, 2, 0))
OP_CASE(pool_2d, (c, f->image2, GGML_OP_POOL_MAX, 3, 2, 2, 2, 0.5f, 0.0f), POOL_2D, F32,
        (5, 6, 5, 2), (f->image2), NULL, (0, 3, 2, 2, 2, 0, 0),
        (c, f->image2, GGML_OP_POOL_MAX, 3, 2, 2, 0, 0.0f, 0.0f))
OP_CASE(pool_2d_back, (c, f->pooled, f->image2, GGML_OP_POOL_MAX, 2, 2, 2, 2, 0.0f, 0.0f),
        POOL_2D_BACK, F32, (10, 12, 5, 2), (f->pooled, f->image2), NULL, (0, 2, 2, 2, 2, 0, 0),
        (c, f->pooled, f->image2, GGML_OP_POOL_MAX, 3, 3, 1, 1, 0.0f, 0.0f))
OP_CASE(upscale, (c, f->a, 2, GGML_SCALE_MODE_BICUBIC), UPSCALE, F32, (16, 8, 3, 2), (f->a), NULL,
        (2), (c, f->a, 1, GGML_SCALE_MODE_BICUBIC))
OP_CASE(upscale_ext, (c, f->a, 9, 5, 3, 2, GGML_SCALE_MODE_NEAREST), UPSCALE, F32, (9, 5, 3, 2),
        (f->a), NULL, (0), (c, f->a, -1, 5, 3, 2, GGML_SCALE_MODE_NEAREST))
OP_CASE(interpolate, (c, f->a, 4, 2, 3, 2, 1 | 256 | 512), UPSCALE, F32, (4, 2, 3, 2), (f->a), NULL,
        (769), (c, f->a, 4, 2, 3, 2, 2 | 512))
OP_CASE(pad, (c, f->a, 1, 2, 0, 3), PAD, F32, (9, 6, 3, 5), (f->a), NULL, (0, 1, 0, 2, 0, 0, 0, 3),
        (c, f->a, -9, 0, 0, 0))
OP_CASE(pad_ext, (c, f->a, 1, 2, 3, 4, 5, 6, 7, 8), PAD, F32, (11, 11, 14, 17), (f->a), NULL,
        (1, 2, 3, 4, 5, 6, 7, 8), (c, f->a, 1, 2, 3, 4, 5, 6, 7, -10))
OP_CASE(pad_circular, (c, f->a, 1, 2, 0, 2), PAD, F32, (9, 6, 3, 4), (f->a), NULL,
        (0, 1, 0, 2, 0, 0, 0, 2, 1), (c, f->a, 1, 2, 0, 3))
OP_CASE(pad_ext_circular, (c, f->a, 1, 2, 3, 4, 0, 0, 1, 0), PAD, F32, (11, 11, 3, 3), (f->a), NULL,
        (1, 2, 3, 4, 0, 0, 1, 0, 1), (c, f->a, 9, 0, 0, 0, 0, 0, 0, 0))
OP_CASE(pad_reflect_1d, (c, f->a, 1, 7), PAD_REFLECT_1D, F32, (16, 4, 3, 2), (f->a), NULL, (1, 7),
        (c, f->a, 8, 0))
OP_CASE(roll, (c, f->a, -7, 3, 0, 1), ROLL, F32, A_NE, (f->a), NULL, (-7, 3, 0, 1),
        (c, f->a, 8, 0, 0, 0))
OP_CASE(tri, (c, f->square, GGML_TRI_TYPE_LOWER), TRI, F32, (4, 4, 3, 2), (f->square), NULL, (3),
        (c, f->a, GGML_TRI_TYPE_LOWER))
PAIR_CASE(fill, (c, f->a, 2.5f), FILL, F32, A_NE, (f->a), f->a, (F(2.5f)), (c, f->i32, 2.5f))
OP_CASE(timestep_embedding, (c, f->times, 9, 1000), TIMESTEP_EMBEDDING, F32, (9, 6, 1, 1),
        (f->times), NULL, (9, 1000), (c, f->times, -1, 1000))
OP_CASE(argsort, (c, f->a, GGML_SORT_ORDER_DESC), ARGSORT, I32, A_NE, (f->a), NULL, (1),
        (c, f->a, (enum ggml_sort_order)2))
OP_CASE(argsort_top_k, (c, f->a, 3), VIEW, I32, (3, 4, 3, 2), (COMPOSED), COMPOSED, (0),
        (c, f->a, 9))
OP_CASE(top_k, (c, f->a, 3), TOP_K, I32, (3, 4, 3, 2), (f->a), NULL, (0), (c, f->a, -1))
OP_CASE(arange, (c, 0.0f, 1.0f, 0.3f), ARANGE, F32, (4, 1, 1, 1), (NULL), NULL,
        (F(0.0f), F(1.0f), F(0.3f)), (c, 1.0f, 1.0f, 0.3f))
OP_CASE(flash_attn_ext, (c, f->q, f->k, f->v, f->attn_mask, 0.25f, 8.0f, 30.0f), FLASH_ATTN_EXT,
        F32, (24, 4, 7, 2), (f->q, f->k, f->v, f->attn_mask), NULL, (F(0.25f), F(8.0f), F(30.0f)),
        (c, f->q, f->v, f->k, f->attn_mask, 0.25f, 8.0f, 30.0f))
OP_CASE(ssm_conv, (c, f->ssm_x, f->ssm_c), SSM_CONV, F32, (5, 4, 2, 1), (f->ssm_x, f->ssm_c), NULL,
        (0), (c, f->ssm_c, f->ssm_x))
OP_CASE(ssm_scan,
        (c, f->scan_s, f->scan_x, f->scan_dt, f->scan_a, f->scan_b, f->scan_c, f->scan_ids, 2),
        SSM_SCAN, F32, (168, 1, 1, 1),
        (f->scan_s, f->scan_x, f->scan_dt, f->scan_a, f->scan_b, f->scan_c, f->scan_ids), NULL, (2),
        (c, f->scan_s, f->scan_x, f->scan_dt, f->scan_a, f->scan_b, f->scan_c, f->scan_ids, 0))
OP_CASE(win_part, (c, f->plane, 4), WIN_PART, F32, (8, 4, 4, 9), (f->plane), NULL, (3, 3, 4),
        (c, f->plane, 0))
OP_CASE(win_unpart, (c, f->windows, 10, 12, 4), WIN_UNPART, F32, (8, 10, 12, 1), (f->windows), NULL,
        (4), (c, f->windows, 20, 12, 4))
OP_CASE(get_rel_pos, (c, f->distances, 5, 5), GET_REL_POS, F16, (8, 5, 5, 1), (f->distances), NULL,
        (0), (c, f->distances, 4, 5))
OP_CASE(add_rel_pos, (c, f->scores, f->rel_w, f->rel_h), ADD_REL_POS, F32, (25, 12, 2, 1),
        (f->scores, f->rel_w, f->rel_h), NULL, (0), (c, f->a, f->rel_w, f->rel_h))
OP_CASE(add_rel_pos_inplace, (c, f->scores, f->rel_w, f->rel_h), ADD_REL_POS, F32, (25, 12, 2, 1),
        (f->scores, f->rel_w, f->rel_h), f->scores, (1), (c, f->scores, f->rel_w, f->a))
OP_CASE(rwkv_wkv6, (c, f->lin_k, f->lin_v, f->lin_r, f->lin_tf, f->lin_w, f->lin_state), RWKV_WKV6,
        F32, (12, 14, 1, 1), (f->lin_k, f->lin_v, f->lin_r, f->lin_tf, f->lin_w, f->lin_state),
        NULL, (0), (c, f->lin_k, f->lin_v, f->lin_r, f->row, f->lin_w, f->lin_state))
OP_CASE(gated_linear_attn, (c, f->lin_k, f->lin_v, f->lin_r, f->lin_w, f->lin_state, 0.5f),
        GATED_LINEAR_ATTN, F32, (12, 14, 1, 1),
        (f->lin_k, f->lin_v, f->lin_r, f->lin_w, f->lin_state), NULL, (F(0.5f)),
        (c, f->lin_k, f->lin_v, f->lin_r, f->lin_w, f->a, 0.5f))
OP_CASE(rwkv_wkv7, (c, f->lin_r, f->lin_w, f->lin_k, f->lin_v, f->lin_a, f->lin_b, f->lin_state),
        RWKV_WKV7, F32, (12, 14, 1, 1),
        (f->lin_r, f->lin_w, f->lin_k, f->lin_v, f->lin_a, f->lin_b, f->lin_state), NULL, (0),
        (c, f->lin_r, f->lin_w, f->lin_k, f->lin_v, f->lin_a, f->a, f->lin_state))
OP_CASE(solve_tri, (c, f->square, f->rhs, true, true, false), SOLVE_TRI, F32, (5, 4, 3, 2),
        (f->square, f->rhs), NULL, (0), (c, f->square, f->rhs, true, false, false))
OP_CASE(gated_delta_net,
        (c, f->delta_q, f->delta_k, f->delta_v, f->delta_g, f->delta_beta, f->delta_state, 2),
        GATED_DELTA_NET, F32, (16, 28, 1, 1),
        (f->delta_q, f->delta_k, f->delta_v, f->delta_g, f->delta_beta, f->delta_state), NULL, (2),
        (c, f->delta_q, f->delta_k, f->delta_v, f->delta_g, f->delta_beta, f->a, 2))
OP_CASE(lightning_indexer, (c, f->index_q, f->index_k, f->index_w, f->attn_mask), LIGHTNING_INDEXER,
        F32, (32, 7, 1, 2), (f->index_q, f->index_k, f->index_w, f->attn_mask), NULL, (0),
        (c, f->index_q, f->index_k, f->index_w, f->mask))
OP_CASE(dsv4_hc_comb, (c, f->mixes, f->mix_scale, f->mix_base, 0.5f, 3), DSV4_HC_COMB, F32,
        (4, 4, 6, 1), (f->mixes, f->mix_scale, f->mix_base), NULL, (F(0.5f), 3),
        (c, f->mixes, f->mix_scale, f->mix_base, 0.5f, 0))
OP_CASE(dsv4_hc_pre, (c, f->streams, f->stream_w), DSV4_HC_PRE, F32, (10, 6, 1, 1),
        (f->streams, f->stream_w), NULL, (F(1.0f), 0), (c, f->streams, f->stream))
OP_CASE(dsv4_hc_pre_gated, (c, f->streams, f->streams, 0.5f), DSV4_HC_PRE, F32, (10, 6, 1, 1),
        (f->streams, f->streams), NULL, (F(0.5f), 1), (c, f->streams, f->stream_w, 0.5f))
OP_CASE(dsv4_hc_post, (c, f->stream, f->streams, f->stream_w, f->comb), DSV4_HC_POST, F32,
        (10, 4, 6, 1), (f->stream, f->streams, f->stream_w, f->comb), NULL, (0),
        (c, f->stream, f->streams, f->comb, f->stream_w))
OP_CASE(cross_entropy_loss, (c, f->a, f->b), CROSS_ENTROPY_LOSS, F32, (1, 1, 1, 1), (f->a, f->b),
        NULL, (0), (c, f->a, f->odd))
OP_CASE(cross_entropy_loss_back, (c, f->one, f->a, f->b), CROSS_ENTROPY_LOSS_BACK, F32, A_NE,
        (f->one, f->a, f->b), NULL, (0), (c, f->row, f->a, f->b))
OP_CASE(opt_step_adamw, (c, f->param, f->grad, f->moment1, f->moment2, f->adamw), OPT_STEP_ADAMW,
        F32, (8, 4, 1, 1), (f->param, f->grad, f->moment1, f->moment2, f->adamw), f->param, (0),
        (c, f->grad, f->grad, f->moment1, f->moment2, f->adamw))
OP_CASE(opt_step_sgd, (c, f->param, f->grad, f->sgd), OPT_STEP_SGD, F32, (8, 4, 1, 1),
        (f->param, f->grad, f->sgd), f->param, (0), (c, f->param, f->grad, f->adamw))
#undef OP_CASE
