// SPDX-License-Identifier: MIT
// Kernels that compute with angles or steps of high precision; columns: see ../kernel_list.inl.
VK_KERNEL_ROW(ROPE, ANY, rope, T_F32, T_F32, T_I32, T_F32 | T_NONE, vk_accepts_rope, vk_encode_rope)
VK_KERNEL_ROW(ROPE, ANY, rope, T_F16, T_F16, T_I32, T_F32 | T_NONE, vk_accepts_rope, vk_encode_rope)
VK_KERNEL_ROW(ROPE_BACK, ANY, rope_back, T_F32, T_F32, T_I32, T_F32 | T_NONE, vk_accepts_rope,
              vk_encode_rope)
VK_KERNEL_ROW(ROPE_BACK, ANY, rope_back, T_F16, T_F16, T_I32, T_F32 | T_NONE, vk_accepts_rope,
              vk_encode_rope)
VK_KERNEL_ROW(TIMESTEP_EMBEDDING, ANY, timestep_embedding, T_F32, T_F32, T_NONE, T_NONE,
              vk_accepts_timestep_embedding, vk_encode_timestep_embedding)
VK_KERNEL_ROW(ARANGE, ANY, arange, T_F32, T_NONE, T_NONE, T_NONE, vk_accepts_arange,
              vk_encode_arange)
