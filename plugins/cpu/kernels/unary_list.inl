// SPDX-License-Identifier: MIT
// Kernels of functions of one operand, GLU, scale, clamp; columns: see ../kernel_list.inl.
