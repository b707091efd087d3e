// SPDX-License-Identifier: MIT
// Every fusion of GPU plugins, once; the first that fits and that the plugin can launch is taken.
//
// GPU_FUSION_ROW(name, shape, least, most, op0, op1, op2)
//   name         as GGML_VULKAN_DISABLE_FUSION says it; match_<name> in match.c looks for it
//   shape        CHAIN: each node is read by the next alone; JOIN: all are read by the last alone
//   least, most  how many nodes
//   op0 ... op2  of the nodes in order, the last one as often as it takes; VIEW is RESHAPE too
GPU_FUSION_ROW(norm, CHAIN, 2, 3, RMS_NORM, MUL, ADD)       // mul by a weight
GPU_FUSION_ROW(glu, JOIN, 3, 3, MUL_MAT, MUL_MAT, GLU)      // products of the same operand
GPU_FUSION_ROW(bias, CHAIN, 2, 2, MUL_MAT, ADD, NONE)
GPU_FUSION_ROW(add_chain, CHAIN, 2, 6, ADD, ADD, ADD)       // tensors of one shape
GPU_FUSION_ROW(rope_rows, CHAIN, 3, 3, ROPE, VIEW, SET_ROWS)
GPU_FUSION_ROW(mask, CHAIN, 3, 3, SCALE, ADD, SOFT_MAX)     // add of a mask
#undef GPU_FUSION_ROW
