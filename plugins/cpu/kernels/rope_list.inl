// SPDX-License-Identifier: MIT
// Kernels of rope; columns: see ../kernel_list.inl.
