// SPDX-License-Identifier: MIT
// Every kernel of the Vulkan plugin, once: supports_op and execution are the same look-up. The
// first row that fits a node computes it.
//
// VK_KERNEL_ROW(op, sub, name, dst, src0, src1, src2, accepts, encode)
//   op       GGML_OP_<op>
//   sub      ANY, or for UNARY and GLU the sub-operation's number (GGML_UNARY_OP_x, GGML_GLU_OP_x)
//   name     for messages and tests
//   dst, src0, src1, src2
//            types it takes: T_<TYPE>, or'ed; T_NONE: the operand is absent; T_ANY: does not matter
//   accepts  says no to the shapes and layouts that the kernel does not compute
//   encode   appends the dispatches that compute the node to a plan
#include "kernels/attention_list.inl"
#include "kernels/conv_list.inl"
#include "kernels/copy_list.inl"
#include "kernels/elementwise_list.inl"
#include "kernels/image_list.inl"
#include "kernels/mul_mat_list.inl"
#include "kernels/recurrent_list.inl"
#include "kernels/reduce_list.inl"
#include "kernels/rope_list.inl"
#include "kernels/training_list.inl"
#undef VK_KERNEL_ROW
