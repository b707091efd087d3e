// SPDX-License-Identifier: MIT
// Copies between layouts whose adjacent elements lie along different dimensions.
#ifndef CPU_COPY_TRANSPOSE_H
#define CPU_COPY_TRANSPOSE_H

#include "base/kernel.h"

// This thread's share of a copy of src to the node where elements of the two are adjacent along
// different dimensions. False: this is no such copy, and nothing was done.
bool CPU_FN(cpu_transpose)(const struct cpu_task *task, const struct ggml_tensor *src);

#endif
