// SPDX-License-Identifier: MIT
// Every value type of GGUF that is one number, once.
//
// GGUF_SCALAR_ROW(NAME, suffix, type)
//   NAME    of GGUF_TYPE_<NAME>
//   suffix  what gguf_type_name() returns; of gguf_get_val_<suffix>() and gguf_set_val_<suffix>()
//   type    in C; its size is also the size in a file
GGUF_SCALAR_ROW(UINT8, u8, uint8_t)
GGUF_SCALAR_ROW(INT8, i8, int8_t)
GGUF_SCALAR_ROW(UINT16, u16, uint16_t)
GGUF_SCALAR_ROW(INT16, i16, int16_t)
GGUF_SCALAR_ROW(UINT32, u32, uint32_t)
GGUF_SCALAR_ROW(INT32, i32, int32_t)
GGUF_SCALAR_ROW(FLOAT32, f32, float)
GGUF_SCALAR_ROW(BOOL, bool, bool)
GGUF_SCALAR_ROW(UINT64, u64, uint64_t)
GGUF_SCALAR_ROW(INT64, i64, int64_t)
GGUF_SCALAR_ROW(FLOAT64, f64, double)
#undef GGUF_SCALAR_ROW
