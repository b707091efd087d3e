// SPDX-License-Identifier: MIT
// What ggml's CPU backend says that it computes, and ends the process over or gets wrong: measured with
// ggml-conformance on Debian's ggml 0.27. Of these operations only what the rule lets through is
// asked of it. The rule `copy` holds for every binary: the Vulkan backend ends the process as well.
//
// CLAIM_ROW(op, rule)
//   never    not asked
//   plain    everything contiguous, F32 or I32
//   float    as plain, and the result is F32
//   product  src0 of any type with whole rows, src1 F32 with whole rows
//   copy     plain floating-point types in any layout; others contiguous, CPY also from and to F32
//   kernel   as plain, and the first source may be F16
//   rows     as plain, but only rows have to be contiguous, and F16 and quantised K and V of one type
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
CLAIM_ROW(IM2COL, kernel)
CLAIM_ROW(IM2COL_3D, kernel)
CLAIM_ROW(LEAKY_RELU, plain)
CLAIM_ROW(MEAN, plain)
CLAIM_ROW(MUL_MAT, product)
CLAIM_ROW(MUL_MAT_ID, product)
CLAIM_ROW(PAD, float)
CLAIM_ROW(POOL_1D, plain)
CLAIM_ROW(POOL_2D, plain)
CLAIM_ROW(POOL_2D_BACK, plain)
CLAIM_ROW(ROPE, never)
CLAIM_ROW(ROPE_BACK, never)
CLAIM_ROW(RWKV_WKV6, plain)
CLAIM_ROW(RWKV_WKV7, plain)
CLAIM_ROW(SCALE, plain)
CLAIM_ROW(SET, plain)
CLAIM_ROW(SILU_BACK, plain)
CLAIM_ROW(SSM_CONV, plain)
CLAIM_ROW(SUM, plain)
CLAIM_ROW(SUM_ROWS, plain)
CLAIM_ROW(TOP_K, plain)
CLAIM_ROW(UPSCALE, plain)
CLAIM_ROW(WIN_PART, plain)
CLAIM_ROW(WIN_UNPART, plain)
#undef CLAIM_ROW
