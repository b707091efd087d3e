// SPDX-License-Identifier: MIT
// What kernel_list.inl names: sets of types, conditions, launches.
#ifndef CUDA_OPS_ROWS_H
#define CUDA_OPS_ROWS_H

#include "ggml-shape.h"
#include "ops/kernels.h"

#define T(type) (UINT64_C(1) << GGML_TYPE_##type)
#define T_NONE (UINT64_C(1) << 63) // no such source
#define T_ANY (~UINT64_C(0))
#define T_F32 T(F32)
#define T_F16 T(F16)
#define T_BF16 T(BF16)
#define T_I32 T(I32)
#define T_I64 T(I64)
#define T_FLOATS (T_F32 | T_F16 | T_BF16)
#define T_PLAIN (T_FLOATS | T(I8) | T(I16) | T_I32 | T_I64 | T(F64))
// What kernels/decode.h has beside the plain types.
#define T_CODED                                                                                    \
    (T(Q4_0) | T(Q4_1) | T(Q5_0) | T(Q5_1) | T(Q8_0) | T(Q8_1) | T(Q2_K) | T(Q3_K) | T(Q4_K) |     \
     T(Q5_K) | T(Q6_K) | T(Q8_K) | T(IQ2_XXS) | T(IQ2_XS) | T(IQ2_S) | T(IQ3_XXS) | T(IQ3_S) |     \
     T(IQ1_S) | T(IQ1_M) | T(IQ4_NL) | T(IQ4_XS) | T(TQ1_0) | T(TQ2_0) | T(MXFP4) | T(NVFP4) |     \
     T(Q1_0) | T(Q2_0))
#define T_ALL (T_PLAIN | T_CODED)

// Conditions, by family; the types have been looked at.
#define CUDA_ACCEPTS(name) bool cuda_accepts_##name(const struct ggml_tensor *node);
CUDA_ACCEPTS(any)
CUDA_ACCEPTS(same)
CUDA_ACCEPTS(unary)
CUDA_ACCEPTS(binary)
CUDA_ACCEPTS(add_id)
CUDA_ACCEPTS(glu)
CUDA_ACCEPTS(move)
CUDA_ACCEPTS(convert)
CUDA_ACCEPTS(repeat)
CUDA_ACCEPTS(concat)
CUDA_ACCEPTS(get_rows)
CUDA_ACCEPTS(set_rows)
CUDA_ACCEPTS(diag)
CUDA_ACCEPTS(tri)
CUDA_ACCEPTS(pad)
CUDA_ACCEPTS(roll)
CUDA_ACCEPTS(sum)
CUDA_ACCEPTS(sum_rows)
CUDA_ACCEPTS(argmax)
CUDA_ACCEPTS(group_norm)
CUDA_ACCEPTS(soft_max)
CUDA_ACCEPTS(rope)
CUDA_ACCEPTS(mul_mat)
CUDA_ACCEPTS(mul_mat_vec)
CUDA_ACCEPTS(mul_mat_id)
CUDA_ACCEPTS(out_prod)
CUDA_ACCEPTS(flash_attn)
CUDA_ACCEPTS(sort)
CUDA_ACCEPTS(same_pair)
CUDA_ACCEPTS(soft_max_back)
CUDA_ACCEPTS(repeat_back)
CUDA_ACCEPTS(opt_step)
#undef CUDA_ACCEPTS

// n threads in all; n blocks for rows of `length` elements.
void cuda_launch_threads(struct cuda_launch *l, int64_t n);
void cuda_launch_row_blocks(struct cuda_launch *l, int64_t n, int64_t length);

// Launches; the operands are filled already. A thread per element of the result, per block of its
// type, a warp per element, a thread per row of the first source, one block of threads; then those
// of single kernels.
#define CUDA_LAUNCH(name)                                                                          \
    void cuda_launch_##name(struct cuda_launch *l, const struct ggml_tensor *node);
CUDA_LAUNCH(elements)
CUDA_LAUNCH(blocks)
CUDA_LAUNCH(warps)
CUDA_LAUNCH(row_threads)
CUDA_LAUNCH(one_block)
CUDA_LAUNCH(unary)
CUDA_LAUNCH(binary)
CUDA_LAUNCH(set_rows)
CUDA_LAUNCH(triangle)
CUDA_LAUNCH(sum_rows)
CUDA_LAUNCH(norm)
CUDA_LAUNCH(soft_max)
CUDA_LAUNCH(rope)
CUDA_LAUNCH(mul_mat)
CUDA_LAUNCH(flash_attn)
CUDA_LAUNCH(sort)
CUDA_LAUNCH(row_back)
#undef CUDA_LAUNCH

#endif
