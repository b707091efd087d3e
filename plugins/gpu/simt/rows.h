// SPDX-License-Identifier: MIT
// What kernel_list.inl names: sets of types, conditions, launches.
#ifndef GPU_SIMT_ROWS_H
#define GPU_SIMT_ROWS_H

#include "ggml-shape.h"
#include "lists/type_set.h"
#include "simt/kernels.h"

// What kernels/decode.h has beside the plain types.
#define T_CODED                                                                                    \
    (TYPE_BIT(Q4_0) | TYPE_BIT(Q4_1) | TYPE_BIT(Q5_0) | TYPE_BIT(Q5_1) | TYPE_BIT(Q8_0) |          \
     TYPE_BIT(Q8_1) | TYPE_BIT(Q2_K) | TYPE_BIT(Q3_K) | TYPE_BIT(Q4_K) | TYPE_BIT(Q5_K) |          \
     TYPE_BIT(Q6_K) | TYPE_BIT(Q8_K) | TYPE_BIT(IQ2_XXS) | TYPE_BIT(IQ2_XS) | TYPE_BIT(IQ2_S) |    \
     TYPE_BIT(IQ3_XXS) | TYPE_BIT(IQ3_S) | TYPE_BIT(IQ1_S) | TYPE_BIT(IQ1_M) | TYPE_BIT(IQ4_NL) |  \
     TYPE_BIT(IQ4_XS) | TYPE_BIT(TQ1_0) | TYPE_BIT(TQ2_0) | TYPE_BIT(MXFP4) | TYPE_BIT(NVFP4) |    \
     TYPE_BIT(Q1_0) | TYPE_BIT(Q2_0))
// What kernels/encode.h has, of 32 elements per block, and kernels/encode_large.h, of more. Types
// of grids are not encoded to.
#define T_ENCODED                                                                                  \
    (TYPE_BIT(Q4_0) | TYPE_BIT(Q4_1) | TYPE_BIT(Q5_0) | TYPE_BIT(Q5_1) | TYPE_BIT(Q8_0) |          \
     TYPE_BIT(Q8_1) | TYPE_BIT(IQ4_NL) | TYPE_BIT(MXFP4))
#define T_ENCODED_LARGE (T_CODED & ~T_ENCODED & ~T_GRIDS)
// What the CPU plugin rounds activations to, which a program may ask for.
#define T_ROUNDED (TYPE_BIT(Q8_0) | TYPE_BIT(Q8_1) | TYPE_BIT(Q8_K))
#define T_ALL (T_PLAIN | T_CODED)

// Conditions, by family; the types have been looked at.
#define SIMT_ACCEPTS(name) bool simt_accepts_##name(const struct ggml_tensor *node);
SIMT_ACCEPTS(any)
SIMT_ACCEPTS(same)
SIMT_ACCEPTS(unary)
SIMT_ACCEPTS(binary)
SIMT_ACCEPTS(add_id)
SIMT_ACCEPTS(glu)
SIMT_ACCEPTS(move)
SIMT_ACCEPTS(convert)
SIMT_ACCEPTS(encode)
SIMT_ACCEPTS(repeat)
SIMT_ACCEPTS(concat)
SIMT_ACCEPTS(get_rows)
SIMT_ACCEPTS(set_rows)
SIMT_ACCEPTS(set_rows_encoded)
SIMT_ACCEPTS(diag)
SIMT_ACCEPTS(tri)
SIMT_ACCEPTS(pad)
SIMT_ACCEPTS(roll)
SIMT_ACCEPTS(sum)
SIMT_ACCEPTS(sum_rows)
SIMT_ACCEPTS(argmax)
SIMT_ACCEPTS(group_norm)
SIMT_ACCEPTS(soft_max)
SIMT_ACCEPTS(rope)
SIMT_ACCEPTS(mul_mat)
SIMT_ACCEPTS(mul_mat_vec)
SIMT_ACCEPTS(mul_mat_id)
SIMT_ACCEPTS(out_prod)
SIMT_ACCEPTS(flash_attn)
SIMT_ACCEPTS(im2col)
SIMT_ACCEPTS(im2col_back)
SIMT_ACCEPTS(col2im_1d)
SIMT_ACCEPTS(conv_2d)
SIMT_ACCEPTS(conv_3d)
SIMT_ACCEPTS(conv_depthwise)
SIMT_ACCEPTS(conv_transpose_1d)
SIMT_ACCEPTS(conv_transpose_2d)
SIMT_ACCEPTS(sort)
SIMT_ACCEPTS(same_pair)
SIMT_ACCEPTS(soft_max_back)
SIMT_ACCEPTS(repeat_back)
SIMT_ACCEPTS(opt_step)
SIMT_ACCEPTS(pool)
SIMT_ACCEPTS(pool_back)
SIMT_ACCEPTS(upscale)
SIMT_ACCEPTS(pad_reflect)
SIMT_ACCEPTS(win_part)
SIMT_ACCEPTS(win_unpart)
SIMT_ACCEPTS(get_rel_pos)
SIMT_ACCEPTS(add_rel_pos)
SIMT_ACCEPTS(timestep_embedding)
SIMT_ACCEPTS(ssm_conv)
SIMT_ACCEPTS(ssm_scan)
SIMT_ACCEPTS(rwkv_wkv6)
SIMT_ACCEPTS(gated_linear_attn)
SIMT_ACCEPTS(rwkv_wkv7)
SIMT_ACCEPTS(gated_delta_net)
SIMT_ACCEPTS(solve_tri)
SIMT_ACCEPTS(indexer)
SIMT_ACCEPTS(hyper_comb)
SIMT_ACCEPTS(hyper_pre)
SIMT_ACCEPTS(hyper_post)
SIMT_ACCEPTS(region)
SIMT_ACCEPTS(count_equal)
SIMT_ACCEPTS(get_rows_back)
SIMT_ACCEPTS(cross_entropy)
SIMT_ACCEPTS(cross_entropy_back)
SIMT_ACCEPTS(add_coded)
SIMT_ACCEPTS(sort_rank)
SIMT_ACCEPTS(ssm_conv_tile)
#undef SIMT_ACCEPTS

// What kernels are told of a tensor; NULL: there is none.
void simt_operand(struct gpu_operand *out_operand, const struct ggml_tensor *tensor);
// n threads in all; n blocks for rows of `length` elements.
// Blocks are whole warps, as many as n threads, or a row's elements, fill, but no more than 256
// threads.
void simt_launch_threads(struct simt_work *l, int64_t n);
void simt_launch_row_blocks(struct simt_work *l, int64_t n, int64_t length);

// Replaces the plain kernel, whose launch has been filled, by one for tensor cores if one fits.
void simt_use_tensor_cores(struct simt_work *l, const struct ggml_tensor *node, unsigned features);
// The launch after kernel_wide_columns.
void simt_finish_wide(struct simt_work *l);
void simt_use_tensor_attention(struct simt_work *l, const struct ggml_tensor *node,
                               unsigned features);
// Bytes of shared memory of a kernel of attention by warpgroups, 0 of others.
unsigned simt_wide_attention_shared(enum simt_kernel kernel);

// Launches; the operands are filled already. A thread per element of the result, per block of its
// type, a warp per element, a thread per row of the first source, one block of threads; then those
// of single kernels.
#define SIMT_LAUNCH(name)                                                                          \
    void simt_launch_##name(struct simt_work *l, const struct ggml_tensor *node);
SIMT_LAUNCH(elements)
SIMT_LAUNCH(blocks)
SIMT_LAUNCH(warps)
SIMT_LAUNCH(row_threads)
SIMT_LAUNCH(one_block)
SIMT_LAUNCH(unary)
SIMT_LAUNCH(binary)
SIMT_LAUNCH(set_rows)
SIMT_LAUNCH(set_rows_encoded)
SIMT_LAUNCH(triangle)
SIMT_LAUNCH(sum_rows)
SIMT_LAUNCH(norm)
SIMT_LAUNCH(soft_max)
SIMT_LAUNCH(rope)
SIMT_LAUNCH(mul_mat)
SIMT_LAUNCH(flash_attn)
SIMT_LAUNCH(im2col)
SIMT_LAUNCH(im2col_back)
SIMT_LAUNCH(conv)
SIMT_LAUNCH(conv_transpose)
SIMT_LAUNCH(sort)
SIMT_LAUNCH(row_back)
SIMT_LAUNCH(pool)
SIMT_LAUNCH(upscale)
SIMT_LAUNCH(timestep_embedding)
SIMT_LAUNCH(ssm_scan)
SIMT_LAUNCH(linear_attention)
SIMT_LAUNCH(rwkv_wkv7)
SIMT_LAUNCH(gated_delta_net)
SIMT_LAUNCH(solve_tri)
SIMT_LAUNCH(hyper_comb)
SIMT_LAUNCH(region)
SIMT_LAUNCH(cross_entropy)
SIMT_LAUNCH(cross_entropy_back)
SIMT_LAUNCH(sort_rank)
SIMT_LAUNCH(ssm_conv_tile)
#undef SIMT_LAUNCH

#endif
