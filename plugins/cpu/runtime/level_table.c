// SPDX-License-Identifier: MIT
// This level's entry points, in the order of kernel_list.inl.
#include "base/kernel.h"
#include "ops/mul_mat/rounded/mul_repacked.h"

extern const bool CPU_FN(cpu_level_repacks);
const bool CPU_FN(cpu_level_repacks) = CPU_REPACKS;

extern const cpu_kernel_fn CPU_FN(cpu_kernel_table)[];
const cpu_kernel_fn CPU_FN(cpu_kernel_table)[] = {
#define CPU_KERNEL_ROW(op, sub, entry, ...) CPU_FN(entry),
#include "runtime/kernel_list.inl"
};
