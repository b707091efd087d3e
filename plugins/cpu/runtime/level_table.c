// SPDX-License-Identifier: MIT
// This level's entry points, in the order of kernel_list.inl.
#include "base/kernel.h"

extern const cpu_kernel_fn CPU_FN(cpu_kernel_table)[];
const cpu_kernel_fn CPU_FN(cpu_kernel_table)[] = {
#define CPU_KERNEL_ROW(op, sub, entry, ...) CPU_FN(entry),
#include "runtime/kernel_list.inl"
};
