// SPDX-License-Identifier: MIT
// All kernels: one module.
#include "attention.cpp"
#include "copy.cpp"
#include "elementwise.cpp"
#include "fused.cpp"
#include "mul_mat.cpp"
#include "mul_mat_few.cpp"
#include "mul_mat_tile.cpp"
#include "reduce.cpp"
#include "rope.cpp"
#include "sort.cpp"
#include "training.cpp"
