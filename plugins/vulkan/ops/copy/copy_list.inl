// SPDX-License-Identifier: MIT
// Kernels that move and convert elements; columns: see ../kernel_list.inl.
// What pack_*.comp encode.
#define GVK_PACKED (T_CODED & ~TYPE_BIT(Q8_1))
#define GVK_MOVED (T_PLAIN | T_CODED | T_GRIDS | TYPE_BIT(Q8_K))
GVK_KERNEL_ROW(CPY, ANY, cpy, GVK_MOVED, GVK_MOVED, T_ANY, T_ANY, gvk_accepts_move, gvk_encode_copy)
GVK_KERNEL_ROW(CONT, ANY, cont, GVK_MOVED, GVK_MOVED, T_ANY, T_ANY, gvk_accepts_move,
               gvk_encode_copy)
GVK_KERNEL_ROW(DUP, ANY, dup, GVK_MOVED, GVK_MOVED, T_ANY, T_ANY, gvk_accepts_move, gvk_encode_copy)
#define GVK_CONVERSION_ROWS(op)                                                                    \
    GVK_KERNEL_ROW(op, ANY, convert, T_FLOATS, T_FLOATS | T_I8 | T_I16 | T_CODED | T_GRIDS, T_ANY, \
                   T_ANY, gvk_accepts_convert, gvk_encode_convert)                                 \
    GVK_KERNEL_ROW(op, ANY, convert, T_F32, T_I32, T_ANY, T_ANY, gvk_accepts_convert,              \
                   gvk_encode_convert)                                                             \
    GVK_KERNEL_ROW(op, ANY, convert, T_I8 | T_I16 | T_I32, T_FLOATS, T_ANY, T_ANY,                 \
                   gvk_accepts_convert, gvk_encode_convert)                                        \
    GVK_KERNEL_ROW(op, ANY, pack, GVK_PACKED, T_FLOATS | T_CODED, T_ANY, T_ANY, gvk_accepts_pack,  \
                   gvk_encode_pack)
GVK_CONVERSION_ROWS(CPY)
GVK_CONVERSION_ROWS(DUP)
GVK_KERNEL_ROW(GET_ROWS, ANY, get_rows, T_F32, T_FLOATS | T_CODED | T_GRIDS, T_I32, T_ANY,
               gvk_accepts_get_rows, gvk_encode_get_rows)
GVK_KERNEL_ROW(GET_ROWS, ANY, get_rows, T_I32, T_I32, T_I32, T_ANY, gvk_accepts_get_rows,
               gvk_encode_get_rows)
GVK_KERNEL_ROW(SET_ROWS, ANY, set_rows, T_FLOATS | GVK_PACKED, T_F32 | T_F16, T_I64 | T_I32, T_ANY,
               gvk_accepts_set_rows, gvk_encode_set_rows)
GVK_KERNEL_ROW(CONCAT, ANY, concat, GVK_MOVED, GVK_MOVED, GVK_MOVED, T_ANY, gvk_accepts_concat,
               gvk_encode_concat)
GVK_KERNEL_ROW(REPEAT, ANY, repeat, GVK_MOVED, GVK_MOVED, T_ANY, T_ANY, gvk_accepts_repeat,
               gvk_encode_repeat)
GVK_KERNEL_ROW(SET, ANY, set, GVK_MOVED, GVK_MOVED, GVK_MOVED, T_ANY, gvk_accepts_region,
               gvk_encode_set)
GVK_KERNEL_ROW(ACC, ANY, acc, T_F32, T_F32, T_F32, T_ANY, gvk_accepts_region, gvk_encode_acc)
GVK_KERNEL_ROW(DIAG, ANY, diag, T_PLAIN, T_PLAIN, T_ANY, T_ANY, gvk_accepts_diag, gvk_encode_diag)
#undef GVK_CONVERSION_ROWS
#undef GVK_PACKED
#undef GVK_MOVED
