// SPDX-License-Identifier: MIT
// Every kernel of the CPU plugin, once. From it come the declarations, each level's table,
// supports_op and dispatch: what no row computes is not supported. The first row that fits a node
// runs it.
//
// CPU_KERNEL_ROW(op, sub, entry, dst, src0, src1, src2, accepts, work, cost)
//   op       GGML_OP_<op>
//   sub      ANY; for UNARY and GLU the sub-operation's number as GGML_UNARY_OP_x or GGML_GLU_OP_x;
//            or one of CPU_SUB_x of kernel_list.h, which only fusion looks for
//   entry    the kernel; ops/<family>/ defines it as CPU_FN(entry)
//   dst, src0, src1, src2
//            types it takes: T_<TYPE>, or'ed; T_FLOATS (F32 F16 BF16), T_QUANTS, T_ANY (does not
//            matter); T_NONE: the operand is absent
//   accepts  says no to the shapes and layouts that the kernel does not compute (accept_*.c)
//   work     bytes of work memory: cpu_work_none, if threads have nothing to do with each other;
//            cpu_work_barrier, if they need none but may wait for each other; or a function
//   cost     decides between one and all threads: cpu_cost_dst, cpu_cost_src0 or a function
#include "ops/attention/attention_list.inl"
#include "ops/binary/binary_list.inl"
#include "ops/conv/conv_list.inl"
#include "ops/copy/copy_list.inl"
#include "ops/image/image_list.inl"
#include "ops/mul_mat/mul_mat_list.inl"
#include "ops/recurrent/recurrent_list.inl"
#include "ops/reduce/reduce_list.inl"
#include "ops/rope/rope_list.inl"
#include "ops/rows/rows_list.inl"
#include "ops/soft_max/soft_max_list.inl"
#include "ops/sort/sort_list.inl"
#include "ops/training/training_list.inl"
#include "ops/unary/unary_list.inl"
#undef CPU_KERNEL_ROW
