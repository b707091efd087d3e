// SPDX-License-Identifier: MIT
// All kernels: one library.
#include "attention.cpp"
#include "conv.cpp"
#include "copy.cpp"
#include "elementwise.cpp"
#include "fused.cpp"
#include "image.cpp"
#include "mul_mat.cpp"
#include "recurrent.cpp"
#include "reduce.cpp"
#include "rope.cpp"
#include "sort.cpp"
#include "training.cpp"
