// SPDX-License-Identifier: MIT
// All kernels: one module.
#include "attention.cu"
#include "copy.cu"
#include "elementwise.cu"
#include "mul_mat.cu"
#include "reduce.cu"
#include "rope.cu"
#include "sort.cu"
#include "training.cu"
