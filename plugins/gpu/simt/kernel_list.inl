// SPDX-License-Identifier: MIT
// SIMT_KERNEL(name): the kernels that all plugins have, without "kernel_".
// SIMT_TENSOR_KERNEL(name): those for tensor cores (plugins/cuda/kernels); simt/tensor.c chooses them.
//
// SIMT_ROW(op, kernel, result, source0, source1, accepts, launch): which kernel computes an operation. The first row that
// fits does.
//   result, source0, source1   types, by T_x of rows.h; T_ANY: accepts looks at them
//   accepts                    further conditions: shapes and layouts
//   launch                     fills blocks, threads and numbers
#ifndef SIMT_KERNEL
#define SIMT_KERNEL(name)
#endif
#ifndef SIMT_TENSOR_KERNEL
#define SIMT_TENSOR_KERNEL(name)
#endif
#ifndef SIMT_ROW
#define SIMT_ROW(...)
#endif
// clang-format off
SIMT_KERNEL(adamw)
SIMT_KERNEL(add_coded)
SIMT_KERNEL(add_encoded)
SIMT_KERNEL(add_encoded_large)
SIMT_KERNEL(add_id)
SIMT_KERNEL(add_rel_pos)
SIMT_KERNEL(arange)
SIMT_KERNEL(argmax)
SIMT_KERNEL(binary)
SIMT_KERNEL(col2im_1d)
SIMT_KERNEL(combine)
SIMT_KERNEL(concat)
SIMT_KERNEL(conv)
SIMT_KERNEL(conv_depthwise)
SIMT_KERNEL(conv_transpose)
SIMT_KERNEL(convert)
SIMT_KERNEL(convert_exact)
SIMT_KERNEL(count_equal)
SIMT_KERNEL(cross_entropy)
SIMT_KERNEL(cross_entropy_back)
SIMT_KERNEL(cumsum)
SIMT_KERNEL(delta_net)
SIMT_KERNEL(diag)
SIMT_KERNEL(encode)
SIMT_KERNEL(encode_large)
SIMT_KERNEL(flash_attn)
SIMT_KERNEL(get_rel_pos)
SIMT_KERNEL(get_rows)
SIMT_KERNEL(get_rows_back)
SIMT_KERNEL(glu)
SIMT_KERNEL(hyper_comb)
SIMT_KERNEL(hyper_post)
SIMT_KERNEL(hyper_pre)
SIMT_KERNEL(im2col)
SIMT_KERNEL(im2col_back)
SIMT_KERNEL(indexer)
SIMT_KERNEL(linear_attention)
SIMT_KERNEL(move)
SIMT_KERNEL(mul_mat)
SIMT_KERNEL(mul_mat_id)
SIMT_KERNEL(mul_mat_vec)
SIMT_KERNEL(norm)
SIMT_KERNEL(norm_scaled)
SIMT_KERNEL(out_prod)
SIMT_KERNEL(pad)
SIMT_KERNEL(pad_reflect)
SIMT_KERNEL(pool)
SIMT_KERNEL(pool_back)
SIMT_KERNEL(region)
SIMT_KERNEL(repeat)
SIMT_KERNEL(repeat_back)
SIMT_KERNEL(roll)
SIMT_KERNEL(rope)
SIMT_KERNEL(row_back)
SIMT_KERNEL(rwkv_wkv7)
SIMT_KERNEL(set_rows)
SIMT_KERNEL(set_rows_encoded)
SIMT_KERNEL(set_rows_large)
SIMT_KERNEL(sgd)
SIMT_KERNEL(silu_back)
SIMT_KERNEL(soft_max)
SIMT_KERNEL(solve_tri)
SIMT_KERNEL(sort)
SIMT_KERNEL(sort_rank)
SIMT_KERNEL(ssm_conv)
SIMT_KERNEL(ssm_conv_tile)
SIMT_KERNEL(ssm_scan)
SIMT_KERNEL(sum)
SIMT_KERNEL(sum_rows)
SIMT_KERNEL(timestep_embedding)
SIMT_KERNEL(triangle)
SIMT_KERNEL(unary)
SIMT_KERNEL(upscale)
SIMT_KERNEL(win_part)
SIMT_KERNEL(win_unpart)

#define SIMT_UNARY_ROWS(op, accepts)                                                               \
    SIMT_ROW(op, unary, T_F32, T_FLOATS, T_ANY, accepts, simt_launch_unary)                        \
    SIMT_ROW(op, unary, T_F16, T_F16, T_ANY, accepts, simt_launch_unary)                           \
    SIMT_ROW(op, unary, T_BF16, T_BF16, T_ANY, accepts, simt_launch_unary)
SIMT_UNARY_ROWS(SQR, simt_accepts_same)
SIMT_UNARY_ROWS(SQRT, simt_accepts_same)
SIMT_UNARY_ROWS(LOG, simt_accepts_same)
SIMT_UNARY_ROWS(SIN, simt_accepts_same)
SIMT_UNARY_ROWS(COS, simt_accepts_same)
SIMT_UNARY_ROWS(LEAKY_RELU, simt_accepts_same)
SIMT_UNARY_ROWS(SCALE, simt_accepts_same)
SIMT_UNARY_ROWS(CLAMP, simt_accepts_same)
SIMT_UNARY_ROWS(FILL, simt_accepts_same)
SIMT_UNARY_ROWS(UNARY, simt_accepts_unary)
#undef SIMT_UNARY_ROWS
#define SIMT_BINARY_ROWS(op)                                                                       \
    SIMT_ROW(op, binary, T_F32, T_FLOATS, T_F32, simt_accepts_binary, simt_launch_binary)          \
    SIMT_ROW(op, binary, T_F16, T_F16, T_F16 | T_F32, simt_accepts_binary, simt_launch_binary)     \
    SIMT_ROW(op, binary, T_BF16, T_BF16, T_BF16 | T_F32, simt_accepts_binary, simt_launch_binary)
SIMT_BINARY_ROWS(ADD)
SIMT_BINARY_ROWS(ADD1)
SIMT_BINARY_ROWS(SUB)
SIMT_BINARY_ROWS(MUL)
SIMT_BINARY_ROWS(DIV)
#undef SIMT_BINARY_ROWS
#define SIMT_ADD_CODED_ROWS(op)                                                                    \
    SIMT_ROW(op, add_coded, T_FLOATS, T_CODED, T_F32, simt_accepts_add_coded, simt_launch_elements) \
    SIMT_ROW(op, add_encoded, T_ENCODED, T_CODED, T_F32, simt_accepts_add_coded, simt_launch_blocks) \
    SIMT_ROW(op, add_encoded_large, T_ENCODED_LARGE, T_CODED, T_F32, simt_accepts_add_coded, simt_launch_blocks)
SIMT_ADD_CODED_ROWS(ADD)
SIMT_ADD_CODED_ROWS(ADD1)
#undef SIMT_ADD_CODED_ROWS
SIMT_TENSOR_KERNEL(attention_128_BF16)
SIMT_TENSOR_KERNEL(attention_128_F16)
SIMT_TENSOR_KERNEL(attention_128_coded)
SIMT_TENSOR_KERNEL(attention_256_BF16)
SIMT_TENSOR_KERNEL(attention_256_F16)
SIMT_TENSOR_KERNEL(attention_256_coded)
SIMT_TENSOR_KERNEL(attention_576_BF16)
SIMT_TENSOR_KERNEL(attention_576_F16)
SIMT_TENSOR_KERNEL(attention_576_coded)
SIMT_TENSOR_KERNEL(attention_few_128_BF16)
SIMT_TENSOR_KERNEL(attention_few_128_F16)
SIMT_TENSOR_KERNEL(attention_few_128_coded)
SIMT_TENSOR_KERNEL(attention_join)
SIMT_TENSOR_KERNEL(attention_wide_BF16)
SIMT_TENSOR_KERNEL(attention_wide_F16)
SIMT_TENSOR_KERNEL(wide_128_BF16)
SIMT_TENSOR_KERNEL(wide_128_F16)
SIMT_TENSOR_KERNEL(wide_128_Q4_0)
SIMT_TENSOR_KERNEL(wide_128_Q4_K)
SIMT_TENSOR_KERNEL(wide_128_Q6_K)
SIMT_TENSOR_KERNEL(wide_128_Q8_0)
SIMT_TENSOR_KERNEL(wide_256_BF16)
SIMT_TENSOR_KERNEL(wide_256_F16)
SIMT_TENSOR_KERNEL(wide_256_Q4_0)
SIMT_TENSOR_KERNEL(wide_256_Q4_K)
SIMT_TENSOR_KERNEL(wide_256_Q6_K)
SIMT_TENSOR_KERNEL(wide_256_Q8_0)
SIMT_TENSOR_KERNEL(wide_columns)
#define TENSOR_TYPE(name, elements, bytes) SIMT_TENSOR_KERNEL(few_##name)
#include "kernels/tensor_types.inl"
#define TENSOR_TYPE(name, elements, bytes) SIMT_TENSOR_KERNEL(tile_##name)
#include "kernels/tensor_types.inl"

SIMT_ROW(ADD_ID, add_id, T_F32, T_F32, T_F32, simt_accepts_add_id, simt_launch_elements)
SIMT_ROW(GLU, glu, T_F32, T_F32, T_F32 | T_NONE, simt_accepts_glu, simt_launch_elements)
SIMT_ROW(GLU, glu, T_F16, T_F16, T_F16 | T_NONE, simt_accepts_glu, simt_launch_elements)
SIMT_ROW(GLU, glu, T_BF16, T_BF16, T_BF16 | T_NONE, simt_accepts_glu, simt_launch_elements)

#define SIMT_COPY_ROWS(op)                                                                         \
    SIMT_ROW(op, move, T_ALL, T_ALL, T_ANY, simt_accepts_move, simt_launch_blocks)                 \
    SIMT_ROW(op, convert, T_FLOATS, T_FLOATS | T_CODED, T_ANY, simt_accepts_convert, simt_launch_elements) \
    SIMT_ROW(op, convert, T_F32, T_I32, T_ANY, simt_accepts_convert, simt_launch_elements)         \
    SIMT_ROW(op, convert_exact, T_PLAIN, T_PLAIN, T_ANY, simt_accepts_convert, simt_launch_elements) \
    SIMT_ROW(op, convert_exact, T_F64, T_CODED, T_ANY, simt_accepts_convert, simt_launch_elements) \
    SIMT_ROW(op, encode, T_ENCODED, T_FLOATS | T_F64 | T_CODED, T_ANY, simt_accepts_encode, simt_launch_blocks) \
    SIMT_ROW(op, encode_large, T_ENCODED_LARGE, T_FLOATS | T_F64 | T_CODED, T_ANY, simt_accepts_encode, simt_launch_blocks)
SIMT_COPY_ROWS(CPY)
SIMT_COPY_ROWS(CONT)
SIMT_COPY_ROWS(DUP)
#undef SIMT_COPY_ROWS
SIMT_ROW(REPEAT, repeat, T_ALL, T_ALL, T_ANY, simt_accepts_repeat, simt_launch_blocks)
SIMT_ROW(CONCAT, concat, T_ALL, T_ALL, T_ALL, simt_accepts_concat, simt_launch_blocks)
SIMT_ROW(GET_ROWS, get_rows, T_F32, T_ALL & ~T_I32, T_I32, simt_accepts_get_rows, simt_launch_elements)
SIMT_ROW(GET_ROWS, get_rows, T_I32, T_I32, T_I32, simt_accepts_get_rows, simt_launch_elements)
SIMT_ROW(SET_ROWS, set_rows, T_PLAIN, T_F32 | T_F16, T_I32 | T_I64, simt_accepts_set_rows, simt_launch_set_rows)
SIMT_ROW(SET_ROWS, set_rows_encoded, T_ENCODED, T_F32 | T_F16, T_I32 | T_I64, simt_accepts_set_rows_encoded, simt_launch_set_rows_encoded)
SIMT_ROW(SET_ROWS, set_rows_large, T_ENCODED_LARGE, T_F32 | T_F16, T_I32 | T_I64, simt_accepts_set_rows_encoded, simt_launch_set_rows_encoded)
SIMT_ROW(DIAG, diag, T_PLAIN, T_PLAIN, T_ANY, simt_accepts_diag, simt_launch_elements)
SIMT_ROW(DIAG_MASK_INF, triangle, T_F32, T_F32, T_ANY, simt_accepts_same, simt_launch_triangle)
SIMT_ROW(DIAG_MASK_ZERO, triangle, T_F32, T_F32, T_ANY, simt_accepts_same, simt_launch_triangle)
SIMT_ROW(TRI, triangle, T_F32, T_F32, T_ANY, simt_accepts_tri, simt_launch_triangle)
SIMT_ROW(PAD, pad, T_PLAIN, T_PLAIN, T_ANY, simt_accepts_pad, simt_launch_elements)
SIMT_ROW(ROLL, roll, T_PLAIN, T_PLAIN, T_ANY, simt_accepts_roll, simt_launch_elements)
SIMT_ROW(ARANGE, arange, T_F32, T_NONE, T_ANY, simt_accepts_any, simt_launch_elements)

SIMT_ROW(SUM, sum, T_F32, T_F32, T_ANY, simt_accepts_sum, simt_launch_one_block)
SIMT_ROW(SUM, sum, T_F16, T_F16, T_ANY, simt_accepts_sum, simt_launch_one_block)
SIMT_ROW(SUM, sum, T_BF16, T_BF16, T_ANY, simt_accepts_sum, simt_launch_one_block)
SIMT_ROW(SUM_ROWS, sum_rows, T_F32, T_F32, T_ANY, simt_accepts_sum_rows, simt_launch_sum_rows)
SIMT_ROW(MEAN, sum_rows, T_F32, T_F32, T_ANY, simt_accepts_sum_rows, simt_launch_sum_rows)
SIMT_ROW(CUMSUM, cumsum, T_F32, T_F32, T_ANY, simt_accepts_same, simt_launch_row_threads)
SIMT_ROW(ARGMAX, argmax, T_I32, T_F32, T_ANY, simt_accepts_argmax, simt_launch_row_threads)
SIMT_ROW(NORM, norm, T_F32, T_F32, T_ANY, simt_accepts_same, simt_launch_norm)
SIMT_ROW(RMS_NORM, norm, T_F32, T_F32, T_ANY, simt_accepts_same, simt_launch_norm)
SIMT_ROW(L2_NORM, norm, T_F32, T_F32, T_ANY, simt_accepts_same, simt_launch_norm)
SIMT_ROW(GROUP_NORM, norm, T_F32, T_F32, T_ANY, simt_accepts_group_norm, simt_launch_norm)
SIMT_ROW(SOFT_MAX, soft_max, T_F32, T_F32, T_F32 | T_F16 | T_NONE, simt_accepts_soft_max, simt_launch_soft_max)
SIMT_ROW(ROPE, rope, T_F32, T_F32, T_I32, simt_accepts_rope, simt_launch_rope)
SIMT_ROW(ROPE, rope, T_F16, T_F16, T_I32, simt_accepts_rope, simt_launch_rope)
SIMT_ROW(ROPE_BACK, rope, T_F32, T_F32, T_I32, simt_accepts_rope, simt_launch_rope)
SIMT_ROW(ROPE_BACK, rope, T_F16, T_F16, T_I32, simt_accepts_rope, simt_launch_rope)

SIMT_ROW(MUL_MAT, mul_mat_vec, T_F32, T_FLOATS | T_CODED, T_FLOATS | T_ROUNDED, simt_accepts_mul_mat_vec, simt_launch_warps)
SIMT_ROW(MUL_MAT, mul_mat, T_F32, T_FLOATS | T_CODED, T_FLOATS | T_ROUNDED, simt_accepts_mul_mat, simt_launch_mul_mat)
SIMT_ROW(MUL_MAT_ID, mul_mat_id, T_F32, T_FLOATS | T_CODED, T_FLOATS | T_ROUNDED, simt_accepts_mul_mat_id, simt_launch_warps)
SIMT_ROW(OUT_PROD, out_prod, T_F32, T_FLOATS | T_CODED, T_FLOATS, simt_accepts_out_prod, simt_launch_elements)
SIMT_ROW(FLASH_ATTN_EXT, flash_attn, T_F32, T_F32, T_FLOATS | T_CODED, simt_accepts_flash_attn, simt_launch_flash_attn)

SIMT_ROW(IM2COL, im2col, T_FLOATS, T_SOME, T_FLOATS, simt_accepts_im2col, simt_launch_im2col)
SIMT_ROW(IM2COL_3D, im2col, T_FLOATS, T_SOME, T_FLOATS, simt_accepts_im2col, simt_launch_im2col)
SIMT_ROW(IM2COL_BACK, im2col_back, T_F32, T_F32, T_SOME, simt_accepts_im2col_back, simt_launch_im2col_back)
SIMT_ROW(COL2IM_1D, col2im_1d, T_FLOATS, T_FLOATS, T_ANY, simt_accepts_col2im_1d, simt_launch_elements)
SIMT_ROW(CONV_2D, conv, T_FLOATS, T_FLOATS, T_FLOATS, simt_accepts_conv_2d, simt_launch_conv)
SIMT_ROW(CONV_3D, conv, T_F32, T_FLOATS, T_FLOATS, simt_accepts_conv_3d, simt_launch_conv)
SIMT_ROW(CONV_2D_DW, conv_depthwise, T_F32, T_FLOATS, T_F32, simt_accepts_conv_depthwise, simt_launch_conv)
SIMT_ROW(CONV_TRANSPOSE_1D, conv_transpose, T_F32, T_FLOATS, T_FLOATS, simt_accepts_conv_transpose_1d, simt_launch_conv_transpose)
SIMT_ROW(CONV_TRANSPOSE_2D, conv_transpose, T_F32, T_FLOATS, T_FLOATS, simt_accepts_conv_transpose_2d, simt_launch_conv_transpose)

SIMT_ROW(POOL_1D, pool, T_F32, T_FLOATS, T_ANY, simt_accepts_pool, simt_launch_pool)
SIMT_ROW(POOL_2D, pool, T_F32, T_FLOATS, T_ANY, simt_accepts_pool, simt_launch_pool)
SIMT_ROW(POOL_2D_BACK, pool_back, T_F32, T_F32, T_FLOATS, simt_accepts_pool_back, simt_launch_elements)
SIMT_ROW(UPSCALE, upscale, T_FLOATS, T_FLOATS, T_ANY, simt_accepts_upscale, simt_launch_upscale)
SIMT_ROW(PAD_REFLECT_1D, pad_reflect, T_F32, T_F32, T_ANY, simt_accepts_pad_reflect, simt_launch_elements)
SIMT_ROW(WIN_PART, win_part, T_PLAIN, T_PLAIN, T_ANY, simt_accepts_win_part, simt_launch_elements)
SIMT_ROW(WIN_UNPART, win_unpart, T_PLAIN, T_PLAIN, T_ANY, simt_accepts_win_unpart, simt_launch_elements)
SIMT_ROW(GET_REL_POS, get_rel_pos, T_F16, T_F16 | T_BF16, T_ANY, simt_accepts_get_rel_pos, simt_launch_elements)
SIMT_ROW(ADD_REL_POS, add_rel_pos, T_F32, T_F32, T_F32, simt_accepts_add_rel_pos, simt_launch_elements)
SIMT_ROW(TIMESTEP_EMBEDDING, timestep_embedding, T_F32, T_F32, T_ANY, simt_accepts_timestep_embedding, simt_launch_timestep_embedding)

SIMT_ROW(SSM_CONV, ssm_conv_tile, T_F32, T_F32, T_F32, simt_accepts_ssm_conv_tile, simt_launch_ssm_conv_tile)
SIMT_ROW(SSM_CONV, ssm_conv, T_F32, T_F32, T_F32, simt_accepts_ssm_conv, simt_launch_elements)
SIMT_ROW(SSM_SCAN, ssm_scan, T_F32, T_F32, T_F32, simt_accepts_ssm_scan, simt_launch_ssm_scan)
SIMT_ROW(RWKV_WKV6, linear_attention, T_F32, T_F32, T_F32, simt_accepts_rwkv_wkv6, simt_launch_linear_attention)
SIMT_ROW(GATED_LINEAR_ATTN, linear_attention, T_F32, T_F32, T_F32, simt_accepts_gated_linear_attn, simt_launch_linear_attention)
SIMT_ROW(RWKV_WKV7, rwkv_wkv7, T_F32, T_F32, T_F32, simt_accepts_rwkv_wkv7, simt_launch_rwkv_wkv7)
SIMT_ROW(GATED_DELTA_NET, delta_net, T_F32, T_F32, T_F32, simt_accepts_gated_delta_net, simt_launch_gated_delta_net)
SIMT_ROW(SOLVE_TRI, solve_tri, T_F32, T_F32, T_F32, simt_accepts_solve_tri, simt_launch_solve_tri)
SIMT_ROW(LIGHTNING_INDEXER, indexer, T_F32, T_F32, T_FLOATS | T_CODED, simt_accepts_indexer, simt_launch_warps)
SIMT_ROW(DSV4_HC_COMB, hyper_comb, T_F32, T_F32, T_F32, simt_accepts_hyper_comb, simt_launch_hyper_comb)
SIMT_ROW(DSV4_HC_PRE, hyper_pre, T_F32, T_F32, T_F32, simt_accepts_hyper_pre, simt_launch_elements)
SIMT_ROW(DSV4_HC_POST, hyper_post, T_F32, T_F32, T_F32, simt_accepts_hyper_post, simt_launch_elements)

SIMT_ROW(ACC, region, T_F32, T_F32, T_F32, simt_accepts_region, simt_launch_region)
SIMT_ROW(SET, region, T_PLAIN, T_PLAIN, T_PLAIN, simt_accepts_region, simt_launch_region)
SIMT_ROW(COUNT_EQUAL, count_equal, T_I64, T_I32, T_I32, simt_accepts_count_equal, simt_launch_one_block)
SIMT_ROW(GET_ROWS_BACK, get_rows_back, T_F32, T_FLOATS | T_CODED, T_I32, simt_accepts_get_rows_back, simt_launch_elements)
SIMT_ROW(CROSS_ENTROPY_LOSS, cross_entropy, T_F32, T_F32, T_F32, simt_accepts_cross_entropy, simt_launch_cross_entropy)
SIMT_ROW(CROSS_ENTROPY_LOSS_BACK, cross_entropy_back, T_F32, T_F32, T_F32, simt_accepts_cross_entropy_back, simt_launch_cross_entropy_back)



SIMT_ROW(ARGSORT, sort, T_I32, T_F32, T_ANY, simt_accepts_sort, simt_launch_sort)
SIMT_ROW(ARGSORT, sort_rank, T_I32, T_F32, T_ANY, simt_accepts_sort_rank, simt_launch_sort_rank)
SIMT_ROW(TOP_K, sort, T_I32, T_F32, T_ANY, simt_accepts_sort, simt_launch_sort)
SIMT_ROW(TOP_K, sort_rank, T_I32, T_F32, T_ANY, simt_accepts_sort_rank, simt_launch_sort_rank)
SIMT_ROW(SILU_BACK, silu_back, T_F32, T_F32, T_F32, simt_accepts_same_pair, simt_launch_elements)
SIMT_ROW(SILU_BACK, silu_back, T_F16, T_F16, T_F16, simt_accepts_same_pair, simt_launch_elements)
SIMT_ROW(SILU_BACK, silu_back, T_BF16, T_BF16, T_BF16, simt_accepts_same_pair, simt_launch_elements)
SIMT_ROW(RMS_NORM_BACK, row_back, T_F32, T_F32, T_F32, simt_accepts_same_pair, simt_launch_row_back)
SIMT_ROW(SOFT_MAX_BACK, row_back, T_F32, T_F32, T_F32, simt_accepts_soft_max_back, simt_launch_row_back)
SIMT_ROW(REPEAT_BACK, repeat_back, T_F32, T_F32, T_ANY, simt_accepts_repeat_back, simt_launch_elements)
SIMT_ROW(OPT_STEP_ADAMW, adamw, T_F32, T_F32, T_F32, simt_accepts_opt_step, simt_launch_elements)
SIMT_ROW(OPT_STEP_SGD, sgd, T_F32, T_F32, T_F32, simt_accepts_opt_step, simt_launch_elements)
// clang-format on
#undef SIMT_KERNEL
#undef SIMT_TENSOR_KERNEL
#undef SIMT_ROW
