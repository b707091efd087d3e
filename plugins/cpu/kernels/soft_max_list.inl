// SPDX-License-Identifier: MIT
// Kernels of soft_max; columns: see ../kernel_list.inl.
