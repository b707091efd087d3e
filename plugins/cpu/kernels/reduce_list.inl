// SPDX-License-Identifier: MIT
// Kernels of sums, norms, argmax, repeat, concat; columns: see ../kernel_list.inl.
