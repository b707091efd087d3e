// SPDX-License-Identifier: MIT
// Kernels that compute each element by itself; columns: see ../kernel_list.inl.
#define VK_MAP_ROWS(op, name, accepts)                                                             \
    VK_KERNEL_ROW(op, ANY, name, T_F32, T_FLOATS, T_ANY, T_ANY, accepts, vk_encode_unary)          \
    VK_KERNEL_ROW(op, ANY, name, T_F16, T_F16, T_ANY, T_ANY, accepts, vk_encode_unary)             \
    VK_KERNEL_ROW(op, ANY, name, T_BF16, T_BF16, T_ANY, T_ANY, accepts, vk_encode_unary)
VK_MAP_ROWS(UNARY, unary, vk_accepts_unary)
VK_MAP_ROWS(SQR, sqr, vk_accepts_map)
VK_MAP_ROWS(SQRT, sqrt, vk_accepts_map)
VK_MAP_ROWS(LOG, log, vk_accepts_map)
VK_MAP_ROWS(SIN, sin, vk_accepts_map)
VK_MAP_ROWS(COS, cos, vk_accepts_map)
VK_MAP_ROWS(LEAKY_RELU, leaky_relu, vk_accepts_map)
VK_MAP_ROWS(SCALE, scale, vk_accepts_map)
VK_MAP_ROWS(CLAMP, clamp, vk_accepts_map)
VK_MAP_ROWS(FILL, fill, vk_accepts_map)
#undef VK_MAP_ROWS
#define VK_BINARY_ROWS(op, name)                                                                   \
    VK_KERNEL_ROW(op, ANY, name, T_F32, T_FLOATS, T_F32, T_ANY, vk_accepts_binary,                 \
                  vk_encode_binary)                                                                \
    VK_KERNEL_ROW(op, ANY, name, T_F16, T_F16, T_F16 | T_F32, T_ANY, vk_accepts_binary,            \
                  vk_encode_binary)                                                                \
    VK_KERNEL_ROW(op, ANY, name, T_BF16, T_BF16, T_BF16 | T_F32, T_ANY, vk_accepts_binary,         \
                  vk_encode_binary)
VK_BINARY_ROWS(ADD, add)
VK_BINARY_ROWS(SUB, sub)
VK_BINARY_ROWS(MUL, mul)
VK_BINARY_ROWS(DIV, div)
VK_BINARY_ROWS(ADD1, add1)
#undef VK_BINARY_ROWS
VK_KERNEL_ROW(ADD_ID, ANY, add_id, T_F32, T_F32, T_F32, T_I32, vk_accepts_add_id, vk_encode_add_id)
VK_KERNEL_ROW(GLU, ANY, glu, T_F32, T_F32, T_F32 | T_NONE, T_ANY, vk_accepts_glu, vk_encode_glu)
VK_KERNEL_ROW(GLU, ANY, glu, T_F16, T_F16, T_F16 | T_NONE, T_ANY, vk_accepts_glu, vk_encode_glu)
VK_KERNEL_ROW(GLU, ANY, glu, T_BF16, T_BF16, T_BF16 | T_NONE, T_ANY, vk_accepts_glu, vk_encode_glu)
