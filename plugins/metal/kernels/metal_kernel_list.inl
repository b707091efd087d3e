// SPDX-License-Identifier: MIT
// METAL_KERNEL(name): the kernels that Metal has beside those of plugins/gpu, without "kernel_".
METAL_KERNEL(attention_matrix)
METAL_KERNEL(attention_merge)
METAL_KERNEL(attention_vector)
METAL_KERNEL(vector)
METAL_KERNEL(vector_glu)
METAL_KERNEL(vector_id)
METAL_KERNEL(matrix)
METAL_KERNEL(matrix_id)
#undef METAL_KERNEL
