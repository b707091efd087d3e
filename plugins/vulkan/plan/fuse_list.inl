// SPDX-License-Identifier: MIT
// Every fusion of the Vulkan plugin, once; the first that fits is taken.
//
// VK_FUSION_ROW(name, shape, least, most, op0, op1, op2)
//   name         as GGML_VULKAN_DISABLE_FUSION says it; the function is fuse_<name> in fuse.c
//   shape        CHAIN: each node is read by the next alone; JOIN: all are read by the last alone
//   least, most  how many nodes
//   op0 ... op2  of the nodes in order, the last one as often as it takes; VIEW is RESHAPE too
VK_FUSION_ROW(norm, CHAIN, 2, 3, RMS_NORM, MUL, ADD)       // mul by a weight
VK_FUSION_ROW(glu, JOIN, 3, 3, MUL_MAT, MUL_MAT, GLU)      // products of the same operand
VK_FUSION_ROW(bias, CHAIN, 2, 2, MUL_MAT, ADD, NONE)
VK_FUSION_ROW(add_chain, CHAIN, 2, 6, ADD, ADD, ADD)       // tensors of one shape
VK_FUSION_ROW(rope_rows, CHAIN, 3, 3, ROPE, VIEW, SET_ROWS)
VK_FUSION_ROW(mask, CHAIN, 3, 3, SCALE, ADD, SOFT_MAX)     // add of a mask
#undef VK_FUSION_ROW
