// SPDX-License-Identifier: MIT
// Kernels that move and convert elements; columns: see ../kernel_list.inl.
// What shaders/unpack.glsl decodes, what pack_*.comp encode.
#define VK_UNPACKED                                                                                \
    (T_QUANTS | GPU_T(Q8_1) | GPU_T(TQ1_0) | GPU_T(TQ2_0) | GPU_T(NVFP4) | GPU_T(Q1_0) | GPU_T(Q2_0))
#define VK_PACKED (VK_UNPACKED & ~GPU_T(Q8_1))
#define VK_PLAIN (T_FLOATS | T_INTS | GPU_T(F64))
#define VK_MOVED (VK_PLAIN | VK_UNPACKED | T_GRIDS | GPU_T(Q8_K))
VK_KERNEL_ROW(CPY, ANY, cpy, VK_MOVED, VK_MOVED, T_ANY, T_ANY, vk_accepts_move, vk_encode_copy)
VK_KERNEL_ROW(CONT, ANY, cont, VK_MOVED, VK_MOVED, T_ANY, T_ANY, vk_accepts_move, vk_encode_copy)
VK_KERNEL_ROW(DUP, ANY, dup, VK_MOVED, VK_MOVED, T_ANY, T_ANY, vk_accepts_move, vk_encode_copy)
#define VK_CONVERSION_ROWS(op)                                                                     \
    VK_KERNEL_ROW(op, ANY, convert, T_FLOATS, T_FLOATS | T_I8 | T_I16 | VK_UNPACKED | T_GRIDS,     \
                  T_ANY, T_ANY, vk_accepts_convert, vk_encode_convert)                             \
    VK_KERNEL_ROW(op, ANY, convert, T_F32, T_I32, T_ANY, T_ANY, vk_accepts_convert,                \
                  vk_encode_convert)                                                               \
    VK_KERNEL_ROW(op, ANY, convert, T_I8 | T_I16 | T_I32, T_FLOATS, T_ANY, T_ANY,                  \
                  vk_accepts_convert, vk_encode_convert)                                           \
    VK_KERNEL_ROW(op, ANY, pack, VK_PACKED, T_FLOATS | VK_UNPACKED, T_ANY, T_ANY, vk_accepts_pack, \
                  vk_encode_pack)
VK_CONVERSION_ROWS(CPY)
VK_CONVERSION_ROWS(DUP)
VK_KERNEL_ROW(GET_ROWS, ANY, get_rows, T_F32, T_FLOATS | VK_UNPACKED | T_GRIDS, T_I32, T_ANY,
              vk_accepts_get_rows, vk_encode_get_rows)
VK_KERNEL_ROW(GET_ROWS, ANY, get_rows, T_I32, T_I32, T_I32, T_ANY, vk_accepts_get_rows,
              vk_encode_get_rows)
VK_KERNEL_ROW(SET_ROWS, ANY, set_rows, T_FLOATS | VK_PACKED, T_F32 | T_F16, T_I64 | T_I32, T_ANY,
              vk_accepts_set_rows, vk_encode_set_rows)
VK_KERNEL_ROW(CONCAT, ANY, concat, VK_MOVED, VK_MOVED, VK_MOVED, T_ANY, vk_accepts_concat,
              vk_encode_concat)
VK_KERNEL_ROW(REPEAT, ANY, repeat, VK_MOVED, VK_MOVED, T_ANY, T_ANY, vk_accepts_repeat,
              vk_encode_repeat)
VK_KERNEL_ROW(SET, ANY, set, VK_MOVED, VK_MOVED, VK_MOVED, T_ANY, vk_accepts_region, vk_encode_set)
VK_KERNEL_ROW(ACC, ANY, acc, T_F32, T_F32, T_F32, T_ANY, vk_accepts_region, vk_encode_acc)
VK_KERNEL_ROW(DIAG, ANY, diag, VK_PLAIN, VK_PLAIN, T_ANY, T_ANY, vk_accepts_diag, vk_encode_diag)
#undef VK_CONVERSION_ROWS
#undef VK_UNPACKED
#undef VK_PACKED
#undef VK_PLAIN
#undef VK_MOVED
