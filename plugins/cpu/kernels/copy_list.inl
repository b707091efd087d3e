// SPDX-License-Identifier: MIT
// Kernels of cpy, cont, dup; columns: see ../kernel_list.inl.
