// SPDX-License-Identifier: MIT
// CUDA_KERNEL(name): the kernels of the module, without "cuda_".
//
// CUDA_ROW(op, kernel, result, source0, source1, accepts, launch): which kernel computes an operation. The first row that
// fits does.
//   result, source0, source1   types, by T_x of rows.h; T_ANY: accepts looks at them
//   accepts                    further conditions: shapes and layouts
//   launch                     fills blocks, threads and numbers
#ifndef CUDA_KERNEL
#define CUDA_KERNEL(name)
#endif
#ifndef CUDA_ROW
#define CUDA_ROW(...)
#endif
// clang-format off
CUDA_KERNEL(adamw)
CUDA_KERNEL(add_id)
CUDA_KERNEL(arange)
CUDA_KERNEL(argmax)
CUDA_KERNEL(binary)
CUDA_KERNEL(concat)
CUDA_KERNEL(convert)
CUDA_KERNEL(cumsum)
CUDA_KERNEL(diag)
CUDA_KERNEL(flash_attn)
CUDA_KERNEL(get_rows)
CUDA_KERNEL(glu)
CUDA_KERNEL(move)
CUDA_KERNEL(mul_mat)
CUDA_KERNEL(mul_mat_id)
CUDA_KERNEL(mul_mat_vec)
CUDA_KERNEL(norm)
CUDA_KERNEL(out_prod)
CUDA_KERNEL(pad)
CUDA_KERNEL(repeat)
CUDA_KERNEL(repeat_back)
CUDA_KERNEL(roll)
CUDA_KERNEL(rope)
CUDA_KERNEL(row_back)
CUDA_KERNEL(set_rows)
CUDA_KERNEL(sgd)
CUDA_KERNEL(silu_back)
CUDA_KERNEL(soft_max)
CUDA_KERNEL(sort)
CUDA_KERNEL(sum)
CUDA_KERNEL(sum_rows)
CUDA_KERNEL(triangle)
CUDA_KERNEL(unary)

#define CUDA_UNARY_ROWS(op, accepts)                                                               \
    CUDA_ROW(op, unary, T_F32, T_FLOATS, T_ANY, accepts, cuda_launch_unary)                        \
    CUDA_ROW(op, unary, T_F16, T_F16, T_ANY, accepts, cuda_launch_unary)                           \
    CUDA_ROW(op, unary, T_BF16, T_BF16, T_ANY, accepts, cuda_launch_unary)
CUDA_UNARY_ROWS(SQR, cuda_accepts_same)
CUDA_UNARY_ROWS(SQRT, cuda_accepts_same)
CUDA_UNARY_ROWS(LOG, cuda_accepts_same)
CUDA_UNARY_ROWS(SIN, cuda_accepts_same)
CUDA_UNARY_ROWS(COS, cuda_accepts_same)
CUDA_UNARY_ROWS(LEAKY_RELU, cuda_accepts_same)
CUDA_UNARY_ROWS(SCALE, cuda_accepts_same)
CUDA_UNARY_ROWS(CLAMP, cuda_accepts_same)
CUDA_UNARY_ROWS(FILL, cuda_accepts_same)
CUDA_UNARY_ROWS(UNARY, cuda_accepts_unary)
#undef CUDA_UNARY_ROWS
#define CUDA_BINARY_ROWS(op)                                                                       \
    CUDA_ROW(op, binary, T_F32, T_FLOATS, T_F32, cuda_accepts_binary, cuda_launch_binary)          \
    CUDA_ROW(op, binary, T_F16, T_F16, T_F16 | T_F32, cuda_accepts_binary, cuda_launch_binary)     \
    CUDA_ROW(op, binary, T_BF16, T_BF16, T_BF16 | T_F32, cuda_accepts_binary, cuda_launch_binary)
CUDA_BINARY_ROWS(ADD)
CUDA_BINARY_ROWS(ADD1)
CUDA_BINARY_ROWS(SUB)
CUDA_BINARY_ROWS(MUL)
CUDA_BINARY_ROWS(DIV)
#undef CUDA_BINARY_ROWS
CUDA_ROW(ADD_ID, add_id, T_F32, T_F32, T_F32, cuda_accepts_add_id, cuda_launch_elements)
CUDA_ROW(GLU, glu, T_F32, T_F32, T_F32 | T_NONE, cuda_accepts_glu, cuda_launch_elements)
CUDA_ROW(GLU, glu, T_F16, T_F16, T_F16 | T_NONE, cuda_accepts_glu, cuda_launch_elements)
CUDA_ROW(GLU, glu, T_BF16, T_BF16, T_BF16 | T_NONE, cuda_accepts_glu, cuda_launch_elements)

#define CUDA_COPY_ROWS(op)                                                                         \
    CUDA_ROW(op, move, T_ALL, T_ALL, T_ANY, cuda_accepts_move, cuda_launch_blocks)                 \
    CUDA_ROW(op, convert, T_FLOATS, T_FLOATS | T_CODED, T_ANY, cuda_accepts_convert, cuda_launch_elements) \
    CUDA_ROW(op, convert, T_I32, T_FLOATS, T_ANY, cuda_accepts_convert, cuda_launch_elements)      \
    CUDA_ROW(op, convert, T_F32, T_I32, T_ANY, cuda_accepts_convert, cuda_launch_elements)
CUDA_COPY_ROWS(CPY)
CUDA_COPY_ROWS(CONT)
CUDA_COPY_ROWS(DUP)
#undef CUDA_COPY_ROWS
CUDA_ROW(REPEAT, repeat, T_ALL, T_ALL, T_ANY, cuda_accepts_repeat, cuda_launch_blocks)
CUDA_ROW(CONCAT, concat, T_ALL, T_ALL, T_ALL, cuda_accepts_concat, cuda_launch_blocks)
CUDA_ROW(GET_ROWS, get_rows, T_F32, T_FLOATS | T_CODED, T_I32, cuda_accepts_get_rows, cuda_launch_elements)
CUDA_ROW(GET_ROWS, get_rows, T_I32, T_I32, T_I32, cuda_accepts_get_rows, cuda_launch_elements)
CUDA_ROW(SET_ROWS, set_rows, T_FLOATS, T_F32 | T_F16, T_I32 | T_I64, cuda_accepts_set_rows, cuda_launch_set_rows)
CUDA_ROW(DIAG, diag, T_PLAIN, T_PLAIN, T_ANY, cuda_accepts_diag, cuda_launch_elements)
CUDA_ROW(DIAG_MASK_INF, triangle, T_F32, T_F32, T_ANY, cuda_accepts_same, cuda_launch_triangle)
CUDA_ROW(DIAG_MASK_ZERO, triangle, T_F32, T_F32, T_ANY, cuda_accepts_same, cuda_launch_triangle)
CUDA_ROW(TRI, triangle, T_F32, T_F32, T_ANY, cuda_accepts_tri, cuda_launch_triangle)
CUDA_ROW(PAD, pad, T_PLAIN, T_PLAIN, T_ANY, cuda_accepts_pad, cuda_launch_elements)
CUDA_ROW(ROLL, roll, T_PLAIN, T_PLAIN, T_ANY, cuda_accepts_roll, cuda_launch_elements)
CUDA_ROW(ARANGE, arange, T_F32, T_NONE, T_ANY, cuda_accepts_any, cuda_launch_elements)

CUDA_ROW(SUM, sum, T_F32, T_F32, T_ANY, cuda_accepts_sum, cuda_launch_one_block)
CUDA_ROW(SUM, sum, T_F16, T_F16, T_ANY, cuda_accepts_sum, cuda_launch_one_block)
CUDA_ROW(SUM, sum, T_BF16, T_BF16, T_ANY, cuda_accepts_sum, cuda_launch_one_block)
CUDA_ROW(SUM_ROWS, sum_rows, T_F32, T_F32, T_ANY, cuda_accepts_sum_rows, cuda_launch_sum_rows)
CUDA_ROW(MEAN, sum_rows, T_F32, T_F32, T_ANY, cuda_accepts_sum_rows, cuda_launch_sum_rows)
CUDA_ROW(CUMSUM, cumsum, T_F32, T_F32, T_ANY, cuda_accepts_same, cuda_launch_row_threads)
CUDA_ROW(ARGMAX, argmax, T_I32, T_F32, T_ANY, cuda_accepts_argmax, cuda_launch_row_threads)
CUDA_ROW(NORM, norm, T_F32, T_F32, T_ANY, cuda_accepts_same, cuda_launch_norm)
CUDA_ROW(RMS_NORM, norm, T_F32, T_F32, T_ANY, cuda_accepts_same, cuda_launch_norm)
CUDA_ROW(L2_NORM, norm, T_F32, T_F32, T_ANY, cuda_accepts_same, cuda_launch_norm)
CUDA_ROW(GROUP_NORM, norm, T_F32, T_F32, T_ANY, cuda_accepts_group_norm, cuda_launch_norm)
CUDA_ROW(SOFT_MAX, soft_max, T_F32, T_F32, T_F32 | T_F16 | T_NONE, cuda_accepts_soft_max, cuda_launch_soft_max)
CUDA_ROW(ROPE, rope, T_F32, T_F32, T_I32, cuda_accepts_rope, cuda_launch_rope)
CUDA_ROW(ROPE, rope, T_F16, T_F16, T_I32, cuda_accepts_rope, cuda_launch_rope)
CUDA_ROW(ROPE_BACK, rope, T_F32, T_F32, T_I32, cuda_accepts_rope, cuda_launch_rope)
CUDA_ROW(ROPE_BACK, rope, T_F16, T_F16, T_I32, cuda_accepts_rope, cuda_launch_rope)

CUDA_ROW(MUL_MAT, mul_mat_vec, T_F32, T_FLOATS | T_CODED, T_FLOATS, cuda_accepts_mul_mat_vec, cuda_launch_warps)
CUDA_ROW(MUL_MAT, mul_mat, T_F32, T_FLOATS | T_CODED, T_FLOATS, cuda_accepts_mul_mat, cuda_launch_mul_mat)
CUDA_ROW(MUL_MAT_ID, mul_mat_id, T_F32, T_FLOATS | T_CODED, T_FLOATS, cuda_accepts_mul_mat_id, cuda_launch_warps)
CUDA_ROW(OUT_PROD, out_prod, T_F32, T_FLOATS | T_CODED, T_FLOATS, cuda_accepts_out_prod, cuda_launch_elements)
CUDA_ROW(FLASH_ATTN_EXT, flash_attn, T_F32, T_F32, T_FLOATS | T_CODED, cuda_accepts_flash_attn, cuda_launch_flash_attn)

CUDA_ROW(ARGSORT, sort, T_I32, T_F32, T_ANY, cuda_accepts_sort, cuda_launch_sort)
CUDA_ROW(TOP_K, sort, T_I32, T_F32, T_ANY, cuda_accepts_sort, cuda_launch_sort)
CUDA_ROW(SILU_BACK, silu_back, T_F32, T_F32, T_F32, cuda_accepts_same_pair, cuda_launch_elements)
CUDA_ROW(SILU_BACK, silu_back, T_F16, T_F16, T_F16, cuda_accepts_same_pair, cuda_launch_elements)
CUDA_ROW(SILU_BACK, silu_back, T_BF16, T_BF16, T_BF16, cuda_accepts_same_pair, cuda_launch_elements)
CUDA_ROW(RMS_NORM_BACK, row_back, T_F32, T_F32, T_F32, cuda_accepts_same_pair, cuda_launch_row_back)
CUDA_ROW(SOFT_MAX_BACK, row_back, T_F32, T_F32, T_F32, cuda_accepts_soft_max_back, cuda_launch_row_back)
CUDA_ROW(REPEAT_BACK, repeat_back, T_F32, T_F32, T_ANY, cuda_accepts_repeat_back, cuda_launch_elements)
CUDA_ROW(OPT_STEP_ADAMW, adamw, T_F32, T_F32, T_F32, cuda_accepts_opt_step, cuda_launch_elements)
CUDA_ROW(OPT_STEP_SGD, sgd, T_F32, T_F32, T_F32, cuda_accepts_opt_step, cuda_launch_elements)
// clang-format on
#undef CUDA_KERNEL
#undef CUDA_ROW
