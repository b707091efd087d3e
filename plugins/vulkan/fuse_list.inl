// SPDX-License-Identifier: MIT
// Every fusion of the Vulkan plugin, once; the first that fits is taken.
//
// VK_FUSION_ROW(name, op)
//   name  as GGML_VULKAN_DISABLE_FUSION says it; the function is fuse_<name> in fuse.c
//   op    of the first node
VK_FUSION_ROW(norm, RMS_NORM)    // rms_norm, mul by a weight, add
VK_FUSION_ROW(glu, MUL_MAT)      // two products of the same operand, glu of both
VK_FUSION_ROW(bias, MUL_MAT)     // product, add
VK_FUSION_ROW(add_chain, ADD)    // add of an add of an add ...
VK_FUSION_ROW(rope_rows, ROPE)   // rope, view, set_rows
VK_FUSION_ROW(mask, SCALE)       // scale, add of a mask, soft_max
#undef VK_FUSION_ROW
