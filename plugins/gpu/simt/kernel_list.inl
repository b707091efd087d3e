// SPDX-License-Identifier: MIT
// SIMT_KERNEL(name): the kernels that all plugins have, without "kernel_".
// SIMT_TENSOR_KERNEL(name): those for tensor cores (plugins/cuda/kernels), which simt/tensor.c
// chooses.
//
// SIMT_ROW(op, kernel, result, source0, source1, accepts, launch): which kernel computes an
// operation. The first row that fits does.
//   result, source0, source1   types, by T_x of rows.h; T_ANY: accepts looks at them
//   accepts                    further conditions: shapes and layouts; simt_accepts_x() of rows.h
//   launch                     fills blocks, threads and numbers; simt_launch_x() of rows.h
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
// Alphabetically. A kernel's number, enum simt_kernel, is its place in the list.
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

// A function of each element, computed in float.
#define SIMT_UNARY_ROWS(op, accepts)                                                               \
    SIMT_ROW(op, unary, T_F32, T_FLOATS, T_ANY, accepts, unary)                                    \
    SIMT_ROW(op, unary, T_F16, T_F16, T_ANY, accepts, unary)                                       \
    SIMT_ROW(op, unary, T_BF16, T_BF16, T_ANY, accepts, unary)
SIMT_UNARY_ROWS(SQR, same)
SIMT_UNARY_ROWS(SQRT, same)
SIMT_UNARY_ROWS(LOG, same)
SIMT_UNARY_ROWS(SIN, same)
SIMT_UNARY_ROWS(COS, same)
SIMT_UNARY_ROWS(LEAKY_RELU, same)
SIMT_UNARY_ROWS(SCALE, same)
SIMT_UNARY_ROWS(CLAMP, same)
SIMT_UNARY_ROWS(FILL, same)
SIMT_UNARY_ROWS(UNARY, unary)
#undef SIMT_UNARY_ROWS
// The second operand is repeated where it is smaller.
#define SIMT_BINARY_ROWS(op)                                                                       \
    SIMT_ROW(op, binary, T_F32, T_FLOATS, T_F32, binary, binary)                                   \
    SIMT_ROW(op, binary, T_F16, T_F16, T_F16 | T_F32, binary, binary)                              \
    SIMT_ROW(op, binary, T_BF16, T_BF16, T_BF16 | T_F32, binary, binary)
SIMT_BINARY_ROWS(ADD)
SIMT_BINARY_ROWS(ADD1)
SIMT_BINARY_ROWS(SUB)
SIMT_BINARY_ROWS(MUL)
SIMT_BINARY_ROWS(DIV)
#undef SIMT_BINARY_ROWS
// The first operand in blocks: decoded, added to, and encoded again unless the result is of floats.
#define SIMT_ADD_CODED_ROWS(op)                                                                    \
    SIMT_ROW(op, add_coded, T_FLOATS, T_CODED, T_F32, add_coded, elements)                         \
    SIMT_ROW(op, add_encoded, T_ENCODED, T_CODED, T_F32, add_coded, blocks)                        \
    SIMT_ROW(op, add_encoded_large, T_ENCODED_LARGE, T_CODED, T_F32, add_coded, blocks)
SIMT_ADD_CODED_ROWS(ADD)
SIMT_ADD_CODED_ROWS(ADD1)
#undef SIMT_ADD_CODED_ROWS
// attention_CHANNELS_TYPE of K and V; _few_ for a few queries; wide_COLUMNS_TYPE by warpgroups.
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
SIMT_TENSOR_KERNEL(attention_wide_128_BF16)
SIMT_TENSOR_KERNEL(attention_wide_128_F16)
SIMT_TENSOR_KERNEL(attention_wide_128_coded)
SIMT_TENSOR_KERNEL(attention_wide_192_BF16)
SIMT_TENSOR_KERNEL(attention_wide_192_F16)
SIMT_TENSOR_KERNEL(attention_wide_192_coded)
SIMT_TENSOR_KERNEL(attention_wide_256_BF16)
SIMT_TENSOR_KERNEL(attention_wide_256_F16)
SIMT_TENSOR_KERNEL(attention_wide_256_coded)
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
// Products by mma.sync, a kernel per type: few columns, and tiles of many.
#define TENSOR_TYPE(name, elements, bytes) SIMT_TENSOR_KERNEL(few_##name)
#include "kernels/tensor_types.inl"
#define TENSOR_TYPE(name, elements, bytes) SIMT_TENSOR_KERNEL(tile_##name)
#include "kernels/tensor_types.inl"

SIMT_ROW(ADD_ID, add_id, T_F32, T_F32, T_F32, add_id, elements)
SIMT_ROW(GLU, glu, T_F32, T_F32, T_F32 | T_NONE, glu, elements)
SIMT_ROW(GLU, glu, T_F16, T_F16, T_F16 | T_NONE, glu, elements)
SIMT_ROW(GLU, glu, T_BF16, T_BF16, T_BF16 | T_NONE, glu, elements)

// Bytes where the types are equal; through float where that holds every value, else exactly; into
// blocks.
#define SIMT_COPY_ROWS(op)                                                                         \
    SIMT_ROW(op, move, T_ALL, T_ALL, T_ANY, move, blocks)                                          \
    SIMT_ROW(op, convert, T_FLOATS, T_FLOATS | T_CODED, T_ANY, convert, elements)                  \
    SIMT_ROW(op, convert, T_F32, T_I32, T_ANY, convert, elements)                                  \
    SIMT_ROW(op, convert_exact, T_PLAIN, T_PLAIN, T_ANY, convert, elements)                        \
    SIMT_ROW(op, convert_exact, T_F64, T_CODED, T_ANY, convert, elements)                          \
    SIMT_ROW(op, encode, T_ENCODED, T_FLOATS | T_F64 | T_CODED, T_ANY, encode, blocks)             \
    SIMT_ROW(op, encode_large, T_ENCODED_LARGE, T_FLOATS | T_F64 | T_CODED, T_ANY, encode, blocks)
SIMT_COPY_ROWS(CPY)
SIMT_COPY_ROWS(CONT)
SIMT_COPY_ROWS(DUP)
#undef SIMT_COPY_ROWS
SIMT_ROW(REPEAT, repeat, T_ALL, T_ALL, T_ANY, repeat, blocks)
SIMT_ROW(CONCAT, concat, T_ALL, T_ALL, T_ALL, concat, blocks)
SIMT_ROW(GET_ROWS, get_rows, T_F32, T_ALL & ~T_I32, T_I32, get_rows, elements)
SIMT_ROW(GET_ROWS, get_rows, T_I32, T_I32, T_I32, get_rows, elements)
SIMT_ROW(SET_ROWS, set_rows, T_PLAIN, T_F32 | T_F16, T_I32 | T_I64, set_rows, set_rows)
SIMT_ROW(SET_ROWS, set_rows_encoded, T_ENCODED, T_F32 | T_F16, T_I32 | T_I64,
         set_rows_encoded, set_rows_encoded)
SIMT_ROW(SET_ROWS, set_rows_large, T_ENCODED_LARGE, T_F32 | T_F16, T_I32 | T_I64,
         set_rows_encoded, set_rows_encoded)
SIMT_ROW(DIAG, diag, T_PLAIN, T_PLAIN, T_ANY, diag, elements)
SIMT_ROW(DIAG_MASK_INF, triangle, T_F32, T_F32, T_ANY, same, triangle)
SIMT_ROW(DIAG_MASK_ZERO, triangle, T_F32, T_F32, T_ANY, same, triangle)
SIMT_ROW(TRI, triangle, T_F32, T_F32, T_ANY, tri, triangle)
SIMT_ROW(PAD, pad, T_PLAIN, T_PLAIN, T_ANY, pad, elements)
SIMT_ROW(ROLL, roll, T_PLAIN, T_PLAIN, T_ANY, roll, elements)
SIMT_ROW(ARANGE, arange, T_F32, T_NONE, T_ANY, any, elements)

// Reductions: of everything, of rows.
SIMT_ROW(SUM, sum, T_F32, T_F32, T_ANY, sum, one_block)
SIMT_ROW(SUM, sum, T_F16, T_F16, T_ANY, sum, one_block)
SIMT_ROW(SUM, sum, T_BF16, T_BF16, T_ANY, sum, one_block)
SIMT_ROW(SUM_ROWS, sum_rows, T_F32, T_F32, T_ANY, sum_rows, sum_rows)
SIMT_ROW(MEAN, sum_rows, T_F32, T_F32, T_ANY, sum_rows, sum_rows)
SIMT_ROW(CUMSUM, cumsum, T_F32, T_F32, T_ANY, same, row_threads)
SIMT_ROW(ARGMAX, argmax, T_I32, T_F32, T_ANY, argmax, row_threads)
SIMT_ROW(NORM, norm, T_F32, T_F32, T_ANY, same, norm)
SIMT_ROW(RMS_NORM, norm, T_F32, T_F32, T_ANY, same, norm)
SIMT_ROW(L2_NORM, norm, T_F32, T_F32, T_ANY, same, norm)
SIMT_ROW(GROUP_NORM, norm, T_F32, T_F32, T_ANY, group_norm, norm)
SIMT_ROW(SOFT_MAX, soft_max, T_F32, T_F32, T_F32 | T_F16 | T_NONE, soft_max, soft_max)
SIMT_ROW(ROPE, rope, T_F32, T_F32, T_I32, rope, rope)
SIMT_ROW(ROPE, rope, T_F16, T_F16, T_I32, rope, rope)
SIMT_ROW(ROPE_BACK, rope, T_F32, T_F32, T_I32, rope, rope)
SIMT_ROW(ROPE_BACK, rope, T_F16, T_F16, T_I32, rope, rope)

// Products and attention; tensor cores take the place of these where they can.
SIMT_ROW(MUL_MAT, mul_mat_vec, T_F32, T_FLOATS | T_CODED, T_FLOATS | T_ROUNDED, mul_mat_vec, warps)
SIMT_ROW(MUL_MAT, mul_mat, T_F32, T_FLOATS | T_CODED, T_FLOATS | T_ROUNDED, mul_mat, mul_mat)
SIMT_ROW(MUL_MAT_ID, mul_mat_id, T_F32, T_FLOATS | T_CODED, T_FLOATS | T_ROUNDED, mul_mat_id, warps)
SIMT_ROW(OUT_PROD, out_prod, T_F32, T_FLOATS | T_CODED, T_FLOATS, out_prod, elements)
SIMT_ROW(FLASH_ATTN_EXT, flash_attn, T_F32, T_F32, T_FLOATS | T_CODED, flash_attn, flash_attn)

// Convolutions and their patches.
SIMT_ROW(IM2COL, im2col, T_FLOATS, T_SOME, T_FLOATS, im2col, im2col)
SIMT_ROW(IM2COL_3D, im2col, T_FLOATS, T_SOME, T_FLOATS, im2col, im2col)
SIMT_ROW(IM2COL_BACK, im2col_back, T_F32, T_F32, T_SOME, im2col_back, im2col_back)
SIMT_ROW(COL2IM_1D, col2im_1d, T_FLOATS, T_FLOATS, T_ANY, col2im_1d, elements)
SIMT_ROW(CONV_2D, conv, T_FLOATS, T_FLOATS, T_FLOATS, conv_2d, conv)
SIMT_ROW(CONV_3D, conv, T_F32, T_FLOATS, T_FLOATS, conv_3d, conv)
SIMT_ROW(CONV_2D_DW, conv_depthwise, T_F32, T_FLOATS, T_F32, conv_depthwise, conv)
SIMT_ROW(CONV_TRANSPOSE_1D, conv_transpose, T_F32, T_FLOATS, T_FLOATS,
         conv_transpose_1d, conv_transpose)
SIMT_ROW(CONV_TRANSPOSE_2D, conv_transpose, T_F32, T_FLOATS, T_FLOATS,
         conv_transpose_2d, conv_transpose)

// Images: pooling, resampling, padding, windows.
SIMT_ROW(POOL_1D, pool, T_F32, T_FLOATS, T_ANY, pool, pool)
SIMT_ROW(POOL_2D, pool, T_F32, T_FLOATS, T_ANY, pool, pool)
SIMT_ROW(POOL_2D_BACK, pool_back, T_F32, T_F32, T_FLOATS, pool_back, elements)
SIMT_ROW(UPSCALE, upscale, T_FLOATS, T_FLOATS, T_ANY, upscale, upscale)
SIMT_ROW(PAD_REFLECT_1D, pad_reflect, T_F32, T_F32, T_ANY, pad_reflect, elements)
SIMT_ROW(WIN_PART, win_part, T_PLAIN, T_PLAIN, T_ANY, win_part, elements)
SIMT_ROW(WIN_UNPART, win_unpart, T_PLAIN, T_PLAIN, T_ANY, win_unpart, elements)
SIMT_ROW(GET_REL_POS, get_rel_pos, T_F16, T_F16 | T_BF16, T_ANY, get_rel_pos, elements)
SIMT_ROW(ADD_REL_POS, add_rel_pos, T_F32, T_F32, T_F32, add_rel_pos, elements)
SIMT_ROW(TIMESTEP_EMBEDDING, timestep_embedding, T_F32, T_F32, T_ANY,
         timestep_embedding, timestep_embedding)

// Recurrent models.
SIMT_ROW(SSM_CONV, ssm_conv_tile, T_F32, T_F32, T_F32, ssm_conv_tile, ssm_conv_tile)
SIMT_ROW(SSM_CONV, ssm_conv, T_F32, T_F32, T_F32, ssm_conv, elements)
SIMT_ROW(SSM_SCAN, ssm_scan, T_F32, T_F32, T_F32, ssm_scan, ssm_scan)
SIMT_ROW(RWKV_WKV6, linear_attention, T_F32, T_F32, T_F32, rwkv_wkv6, linear_attention)
SIMT_ROW(GATED_LINEAR_ATTN, linear_attention, T_F32, T_F32, T_F32,
         gated_linear_attn, linear_attention)
SIMT_ROW(RWKV_WKV7, rwkv_wkv7, T_F32, T_F32, T_F32, rwkv_wkv7, rwkv_wkv7)
SIMT_ROW(GATED_DELTA_NET, delta_net, T_F32, T_F32, T_F32, gated_delta_net, gated_delta_net)
SIMT_ROW(SOLVE_TRI, solve_tri, T_F32, T_F32, T_F32, solve_tri, solve_tri)
SIMT_ROW(LIGHTNING_INDEXER, indexer, T_F32, T_F32, T_FLOATS | T_CODED, indexer, warps)
SIMT_ROW(DSV4_HC_COMB, hyper_comb, T_F32, T_F32, T_F32, hyper_comb, hyper_comb)
SIMT_ROW(DSV4_HC_PRE, hyper_pre, T_F32, T_F32, T_F32, hyper_pre, elements)
SIMT_ROW(DSV4_HC_POST, hyper_post, T_F32, T_F32, T_F32, hyper_post, elements)

// Training, and parts of tensors.
SIMT_ROW(ACC, region, T_F32, T_F32, T_F32, region, region)
SIMT_ROW(SET, region, T_PLAIN, T_PLAIN, T_PLAIN, region, region)
SIMT_ROW(COUNT_EQUAL, count_equal, T_I64, T_I32, T_I32, count_equal, one_block)
SIMT_ROW(GET_ROWS_BACK, get_rows_back, T_F32, T_FLOATS | T_CODED, T_I32, get_rows_back, elements)
SIMT_ROW(CROSS_ENTROPY_LOSS, cross_entropy, T_F32, T_F32, T_F32, cross_entropy, cross_entropy)
SIMT_ROW(CROSS_ENTROPY_LOSS_BACK, cross_entropy_back, T_F32, T_F32, T_F32,
         cross_entropy_back, cross_entropy_back)

// Sorting: in shared memory, or for longer rows by counting what is smaller.
SIMT_ROW(ARGSORT, sort, T_I32, T_F32, T_ANY, sort, sort)
SIMT_ROW(ARGSORT, sort_rank, T_I32, T_F32, T_ANY, sort_rank, sort_rank)
SIMT_ROW(TOP_K, sort, T_I32, T_F32, T_ANY, sort, sort)
SIMT_ROW(TOP_K, sort_rank, T_I32, T_F32, T_ANY, sort_rank, sort_rank)
SIMT_ROW(SILU_BACK, silu_back, T_F32, T_F32, T_F32, same_pair, elements)
SIMT_ROW(SILU_BACK, silu_back, T_F16, T_F16, T_F16, same_pair, elements)
SIMT_ROW(SILU_BACK, silu_back, T_BF16, T_BF16, T_BF16, same_pair, elements)
SIMT_ROW(RMS_NORM_BACK, row_back, T_F32, T_F32, T_F32, same_pair, row_back)
SIMT_ROW(SOFT_MAX_BACK, row_back, T_F32, T_F32, T_F32, soft_max_back, row_back)
SIMT_ROW(REPEAT_BACK, repeat_back, T_F32, T_F32, T_ANY, repeat_back, elements)
SIMT_ROW(OPT_STEP_ADAMW, adamw, T_F32, T_F32, T_F32, opt_step, elements)
SIMT_ROW(OPT_STEP_SGD, sgd, T_F32, T_F32, T_F32, opt_step, elements)
// clang-format on
#undef SIMT_KERNEL
#undef SIMT_TENSOR_KERNEL
#undef SIMT_ROW
