// SPDX-License-Identifier: MIT
// Kernels that compute each element by itself; columns: see ../kernel_list.inl.
#define GVK_MAP_ROWS(op, name, accepts)                                                            \
    GVK_KERNEL_ROW(op, ANY, name, T_F32, T_FLOATS, T_ANY, T_ANY, accepts, gvk_encode_unary)        \
    GVK_KERNEL_ROW(op, ANY, name, T_F16, T_F16, T_ANY, T_ANY, accepts, gvk_encode_unary)           \
    GVK_KERNEL_ROW(op, ANY, name, T_BF16, T_BF16, T_ANY, T_ANY, accepts, gvk_encode_unary)
GVK_MAP_ROWS(UNARY, unary, gvk_accepts_unary)
GVK_MAP_ROWS(SQR, sqr, gvk_accepts_map)
GVK_MAP_ROWS(SQRT, sqrt, gvk_accepts_map)
GVK_MAP_ROWS(LOG, log, gvk_accepts_map)
GVK_MAP_ROWS(SIN, sin, gvk_accepts_map)
GVK_MAP_ROWS(COS, cos, gvk_accepts_map)
GVK_MAP_ROWS(LEAKY_RELU, leaky_relu, gvk_accepts_map)
GVK_MAP_ROWS(SCALE, scale, gvk_accepts_map)
GVK_MAP_ROWS(CLAMP, clamp, gvk_accepts_map)
GVK_MAP_ROWS(FILL, fill, gvk_accepts_map)
#undef GVK_MAP_ROWS
#define GVK_BINARY_ROWS(op, name)                                                                  \
    GVK_KERNEL_ROW(op, ANY, name, T_F32, T_FLOATS, T_F32, T_ANY, gvk_accepts_binary,               \
                   gvk_encode_binary)                                                              \
    GVK_KERNEL_ROW(op, ANY, name, T_F16, T_F16, T_F16 | T_F32, T_ANY, gvk_accepts_binary,          \
                   gvk_encode_binary)                                                              \
    GVK_KERNEL_ROW(op, ANY, name, T_BF16, T_BF16, T_BF16 | T_F32, T_ANY, gvk_accepts_binary,       \
                   gvk_encode_binary)
GVK_BINARY_ROWS(ADD, add)
GVK_BINARY_ROWS(SUB, sub)
GVK_BINARY_ROWS(MUL, mul)
GVK_BINARY_ROWS(DIV, div)
GVK_BINARY_ROWS(ADD1, add1)
#undef GVK_BINARY_ROWS
GVK_KERNEL_ROW(ADD_ID, ANY, add_id, T_F32, T_F32, T_F32, T_I32, gvk_accepts_add_id,
               gvk_encode_add_id)
GVK_KERNEL_ROW(GLU, ANY, glu, T_F32, T_F32, T_F32 | T_NONE, T_ANY, gvk_accepts_glu, gvk_encode_glu)
GVK_KERNEL_ROW(GLU, ANY, glu, T_F16, T_F16, T_F16 | T_NONE, T_ANY, gvk_accepts_glu, gvk_encode_glu)
GVK_KERNEL_ROW(GLU, ANY, glu, T_BF16, T_BF16, T_BF16 | T_NONE, T_ANY, gvk_accepts_glu,
               gvk_encode_glu)
