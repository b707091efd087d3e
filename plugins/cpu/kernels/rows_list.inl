// SPDX-License-Identifier: MIT
// Kernels of get_rows, set_rows; columns: see ../kernel_list.inl.
