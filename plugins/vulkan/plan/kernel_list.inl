// SPDX-License-Identifier: MIT
// Every kernel of the Vulkan plugin, once: supports_op and execution are the same look-up. The
// first row that fits a node computes it.
//
// GVK_KERNEL_ROW(op, sub, name, dst, src0, src1, src2, accepts, encode)
//   op       GGML_OP_<op>
//   sub      ANY, or for UNARY and GLU the sub-operation's number (GGML_UNARY_OP_x, GGML_GLU_OP_x)
//   name     for messages and tests
//   dst, src0, src1, src2
//            types it takes: T_<TYPE>, or'ed; T_NONE: the operand is absent; T_ANY: does not matter
//   accepts  says no to the shapes and layouts that the kernel does not compute
//   encode   appends the dispatches that compute the node to a plan
#include "ops/attention/attention_list.inl"
#include "ops/conv/conv_list.inl"
#include "ops/copy/copy_list.inl"
#include "ops/elementwise/elementwise_list.inl"
#include "ops/image/image_list.inl"
#include "ops/mul_mat/mul_mat_list.inl"
#include "ops/recurrent/recurrent_list.inl"
#include "ops/reduce/reduce_list.inl"
#include "ops/rope/rope_list.inl"
#include "ops/training/training_list.inl"
#undef GVK_KERNEL_ROW
