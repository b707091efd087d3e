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
SIMT_KERNEL(add_id)
SIMT_KERNEL(arange)
SIMT_KERNEL(argmax)
SIMT_KERNEL(binary)
SIMT_KERNEL(combine)
SIMT_KERNEL(concat)
SIMT_KERNEL(convert)
SIMT_KERNEL(cumsum)
SIMT_KERNEL(diag)
SIMT_KERNEL(encode)
SIMT_KERNEL(flash_attn)
SIMT_KERNEL(get_rows)
SIMT_KERNEL(glu)
SIMT_KERNEL(move)
SIMT_KERNEL(mul_mat)
SIMT_KERNEL(mul_mat_id)
SIMT_KERNEL(mul_mat_vec)
SIMT_KERNEL(norm)
SIMT_KERNEL(norm_scaled)
SIMT_KERNEL(out_prod)
SIMT_KERNEL(pad)
SIMT_KERNEL(repeat)
SIMT_KERNEL(repeat_back)
SIMT_KERNEL(roll)
SIMT_KERNEL(rope)
SIMT_KERNEL(row_back)
SIMT_KERNEL(set_rows)
SIMT_KERNEL(set_rows_encoded)
SIMT_KERNEL(sgd)
SIMT_KERNEL(silu_back)
SIMT_KERNEL(soft_max)
SIMT_KERNEL(sort)
SIMT_KERNEL(sum)
SIMT_KERNEL(sum_rows)
SIMT_KERNEL(triangle)
SIMT_KERNEL(unary)

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
    SIMT_ROW(op, convert, T_I32, T_FLOATS, T_ANY, simt_accepts_convert, simt_launch_elements)      \
    SIMT_ROW(op, encode, T_ENCODED, T_FLOATS, T_ANY, simt_accepts_encode, simt_launch_blocks)      \
    SIMT_ROW(op, convert, T_F32, T_I32, T_ANY, simt_accepts_convert, simt_launch_elements)
SIMT_COPY_ROWS(CPY)
SIMT_COPY_ROWS(CONT)
SIMT_COPY_ROWS(DUP)
#undef SIMT_COPY_ROWS
SIMT_ROW(REPEAT, repeat, T_ALL, T_ALL, T_ANY, simt_accepts_repeat, simt_launch_blocks)
SIMT_ROW(CONCAT, concat, T_ALL, T_ALL, T_ALL, simt_accepts_concat, simt_launch_blocks)
SIMT_ROW(GET_ROWS, get_rows, T_F32, T_FLOATS | T_CODED, T_I32, simt_accepts_get_rows, simt_launch_elements)
SIMT_ROW(GET_ROWS, get_rows, T_I32, T_I32, T_I32, simt_accepts_get_rows, simt_launch_elements)
SIMT_ROW(SET_ROWS, set_rows, T_FLOATS, T_F32 | T_F16, T_I32 | T_I64, simt_accepts_set_rows, simt_launch_set_rows)
SIMT_ROW(SET_ROWS, set_rows_encoded, T_ENCODED, T_F32 | T_F16, T_I32 | T_I64, simt_accepts_set_rows_encoded, simt_launch_set_rows_encoded)
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

SIMT_ROW(MUL_MAT, mul_mat_vec, T_F32, T_FLOATS | T_CODED, T_FLOATS, simt_accepts_mul_mat_vec, simt_launch_warps)
SIMT_ROW(MUL_MAT, mul_mat, T_F32, T_FLOATS | T_CODED, T_FLOATS, simt_accepts_mul_mat, simt_launch_mul_mat)
SIMT_ROW(MUL_MAT_ID, mul_mat_id, T_F32, T_FLOATS | T_CODED, T_FLOATS, simt_accepts_mul_mat_id, simt_launch_warps)
SIMT_ROW(OUT_PROD, out_prod, T_F32, T_FLOATS | T_CODED, T_FLOATS, simt_accepts_out_prod, simt_launch_elements)
SIMT_ROW(FLASH_ATTN_EXT, flash_attn, T_F32, T_F32, T_FLOATS | T_CODED, simt_accepts_flash_attn, simt_launch_flash_attn)

SIMT_ROW(ARGSORT, sort, T_I32, T_F32, T_ANY, simt_accepts_sort, simt_launch_sort)
SIMT_ROW(TOP_K, sort, T_I32, T_F32, T_ANY, simt_accepts_sort, simt_launch_sort)
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
