// SPDX-License-Identifier: MIT
// What ggml's backends say that they compute, and end the process over, get wrong or don't finish:
// measured with ggml-conformance on Debian's ggml 0.27. Of these operations only what the rule lets
// through is asked.
//
// CLAIM_ROW(op, rule)    of the CPU backend and of RPC servers, which may have nothing else; the rule
//                        `copy` holds for every binary
// VULKAN_ROW(op, rule)   of the Vulkan backend
// ALIGNED_ROW(op)        of the Vulkan backend: every operand begins where its memory would place it
//   plain    everything contiguous, F32 or I32
//   float    as plain, and the result is F32
//   product  src0 of any type with whole rows, src1 F32 with whole rows
//   copy     plain floating-point types in any layout; others contiguous, CPY also from and to F32
//   half     the source is F32 or F16
//   outer    src0 F32 in any layout; of others but BF16 both sources have the same batches
//   stored   the result's type is one that numbers are rounded to
//   kernel   as plain, and the first source may be F16
//   turning  some channels are rotated: with none its loop does not end; rows are even: the rest is
//            copied in pairs, of an odd row into the next one
//   rows     as plain, but only rows have to be contiguous, and F16 and quantised K and V of one type
//   filled   as plain, and the source has elements
//   apart    strided rows are not computed in place
#ifdef CLAIM_ROW
CLAIM_ROW(ARGMAX, plain)
CLAIM_ROW(ARGSORT, plain)
CLAIM_ROW(CLAMP, plain)
CLAIM_ROW(CONCAT, plain)
CLAIM_ROW(CONT, copy)
CLAIM_ROW(CONV_2D, kernel)
CLAIM_ROW(CONV_2D_DW, kernel)
CLAIM_ROW(CONV_3D, kernel)
CLAIM_ROW(CONV_TRANSPOSE_1D, kernel)
CLAIM_ROW(CONV_TRANSPOSE_2D, kernel)
CLAIM_ROW(COUNT_EQUAL, plain)
CLAIM_ROW(CPY, copy)
CLAIM_ROW(CROSS_ENTROPY_LOSS, plain)
CLAIM_ROW(DUP, copy)
CLAIM_ROW(FLASH_ATTN_EXT, rows)
CLAIM_ROW(GATED_LINEAR_ATTN, plain)
CLAIM_ROW(GET_REL_POS, plain)
CLAIM_ROW(GET_ROWS_BACK, half)
CLAIM_ROW(IM2COL, kernel)
CLAIM_ROW(IM2COL_3D, kernel)
CLAIM_ROW(LEAKY_RELU, plain)
CLAIM_ROW(MEAN, plain)
CLAIM_ROW(MUL_MAT, product)
CLAIM_ROW(MUL_MAT_ID, product)
CLAIM_ROW(OUT_PROD, outer)
CLAIM_ROW(PAD, float)
CLAIM_ROW(POOL_1D, plain)
CLAIM_ROW(POOL_2D, plain)
CLAIM_ROW(POOL_2D_BACK, plain)
CLAIM_ROW(ROPE, turning)
CLAIM_ROW(ROPE_BACK, turning)
CLAIM_ROW(RWKV_WKV6, plain)
CLAIM_ROW(RWKV_WKV7, plain)
CLAIM_ROW(SCALE, plain)
CLAIM_ROW(SET, plain)
CLAIM_ROW(SET_ROWS, stored)
CLAIM_ROW(SILU_BACK, plain)
CLAIM_ROW(SSM_CONV, plain)
CLAIM_ROW(SUM, plain)
CLAIM_ROW(SUM_ROWS, plain)
CLAIM_ROW(TOP_K, plain)
CLAIM_ROW(UPSCALE, plain)
CLAIM_ROW(WIN_PART, plain)
CLAIM_ROW(WIN_UNPART, plain)
#undef CLAIM_ROW
#endif
#ifdef VULKAN_ROW
VULKAN_ROW(CONV_TRANSPOSE_1D, kernel)
VULKAN_ROW(MUL_MAT_ID, product)
VULKAN_ROW(REPEAT_BACK, plain)
VULKAN_ROW(RMS_NORM, apart)
VULKAN_ROW(SUM, filled)
#undef VULKAN_ROW
#endif
#ifdef ALIGNED_ROW
ALIGNED_ROW(ADD_ID)
ALIGNED_ROW(ARGMAX)
ALIGNED_ROW(CONV_TRANSPOSE_1D)
ALIGNED_ROW(COUNT_EQUAL)
ALIGNED_ROW(CROSS_ENTROPY_LOSS)
ALIGNED_ROW(FLASH_ATTN_EXT)
ALIGNED_ROW(GATED_DELTA_NET)
ALIGNED_ROW(IM2COL)
ALIGNED_ROW(MUL_MAT)
ALIGNED_ROW(MUL_MAT_ID)
ALIGNED_ROW(POOL_1D)
ALIGNED_ROW(RMS_NORM_BACK)
ALIGNED_ROW(SILU_BACK)
ALIGNED_ROW(SSM_CONV)
#undef ALIGNED_ROW
#endif
