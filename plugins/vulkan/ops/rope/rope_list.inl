// SPDX-License-Identifier: MIT
// Kernels that compute with angles or steps of high precision; columns: see ../kernel_list.inl.
GVK_KERNEL_ROW(ROPE, ANY, rope, T_F32, T_F32, T_I32, T_F32 | T_NONE, gvk_accepts_rope,
               gvk_encode_rope)
GVK_KERNEL_ROW(ROPE, ANY, rope, T_F16, T_F16, T_I32, T_F32 | T_NONE, gvk_accepts_rope,
               gvk_encode_rope)
GVK_KERNEL_ROW(ROPE_BACK, ANY, rope_back, T_F32, T_F32, T_I32, T_F32 | T_NONE, gvk_accepts_rope,
               gvk_encode_rope)
GVK_KERNEL_ROW(ROPE_BACK, ANY, rope_back, T_F16, T_F16, T_I32, T_F32 | T_NONE, gvk_accepts_rope,
               gvk_encode_rope)
GVK_KERNEL_ROW(TIMESTEP_EMBEDDING, ANY, timestep_embedding, T_F32, T_F32, T_NONE, T_NONE,
               gvk_accepts_timestep_embedding, gvk_encode_timestep_embedding)
GVK_KERNEL_ROW(ARANGE, ANY, arange, T_F32, T_NONE, T_NONE, T_NONE, gvk_accepts_arange,
               gvk_encode_arange)
