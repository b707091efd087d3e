// SPDX-License-Identifier: MIT
// Public functions of this area that are declared but not implemented yet: each answers `failure` and
// leaves a message. Rows only ever leave this list.
//
// GGML_PENDING(type, name, (parameters), failure)    GGML_PENDING_VOID(name, (parameters))
GGML_PENDING(struct gguf_context *, gguf_init_empty, (void), NULL)
GGML_PENDING(struct gguf_context *, gguf_init_from_file_ptr, (FILE *file, struct gguf_init_params
             params), NULL)
GGML_PENDING(struct gguf_context *, gguf_init_from_file, (const char *fname, struct gguf_init_params
             params), NULL)
GGML_PENDING(struct gguf_context *, gguf_init_from_buffer, (const void *data, size_t size, struct
             gguf_init_params params), NULL)
GGML_PENDING(struct gguf_context *, gguf_init_from_callback, (gguf_reader_callback_t callback, void
             *userdata, size_t max_chunk_read, uint64_t max_expected_size, struct gguf_init_params
             params), NULL)
GGML_PENDING_VOID(gguf_free, (struct gguf_context *ctx))
GGML_PENDING(const char *, gguf_type_name, (enum gguf_type type), NULL)
GGML_PENDING(uint32_t, gguf_get_version, (const struct gguf_context *ctx), 0)
GGML_PENDING(size_t, gguf_get_alignment, (const struct gguf_context *ctx), 0)
GGML_PENDING(size_t, gguf_get_data_offset, (const struct gguf_context *ctx), 0)
GGML_PENDING(int64_t, gguf_get_n_kv, (const struct gguf_context *ctx), 0)
GGML_PENDING(int64_t, gguf_find_key, (const struct gguf_context *ctx, const char *key), 0)
GGML_PENDING(const char *, gguf_get_key, (const struct gguf_context *ctx, int64_t key_id), NULL)
GGML_PENDING(enum gguf_type, gguf_get_kv_type, (const struct gguf_context *ctx, int64_t key_id), 0)
GGML_PENDING(enum gguf_type, gguf_get_arr_type, (const struct gguf_context *ctx, int64_t key_id), 0)
GGML_PENDING(uint8_t, gguf_get_val_u8, (const struct gguf_context *ctx, int64_t key_id), 0)
GGML_PENDING(int8_t, gguf_get_val_i8, (const struct gguf_context *ctx, int64_t key_id), 0)
GGML_PENDING(uint16_t, gguf_get_val_u16, (const struct gguf_context *ctx, int64_t key_id), 0)
GGML_PENDING(int16_t, gguf_get_val_i16, (const struct gguf_context *ctx, int64_t key_id), 0)
GGML_PENDING(uint32_t, gguf_get_val_u32, (const struct gguf_context *ctx, int64_t key_id), 0)
GGML_PENDING(int32_t, gguf_get_val_i32, (const struct gguf_context *ctx, int64_t key_id), 0)
GGML_PENDING(float, gguf_get_val_f32, (const struct gguf_context *ctx, int64_t key_id), 0)
GGML_PENDING(uint64_t, gguf_get_val_u64, (const struct gguf_context *ctx, int64_t key_id), 0)
GGML_PENDING(int64_t, gguf_get_val_i64, (const struct gguf_context *ctx, int64_t key_id), 0)
GGML_PENDING(double, gguf_get_val_f64, (const struct gguf_context *ctx, int64_t key_id), 0)
GGML_PENDING(bool, gguf_get_val_bool, (const struct gguf_context *ctx, int64_t key_id), false)
GGML_PENDING(const char *, gguf_get_val_str, (const struct gguf_context *ctx, int64_t key_id), NULL)
GGML_PENDING(const void *, gguf_get_val_data, (const struct gguf_context *ctx, int64_t key_id),
             NULL)
GGML_PENDING(size_t, gguf_get_arr_n, (const struct gguf_context *ctx, int64_t key_id), 0)
GGML_PENDING(const void *, gguf_get_arr_data, (const struct gguf_context *ctx, int64_t key_id),
             NULL)
GGML_PENDING(const char *, gguf_get_arr_str, (const struct gguf_context *ctx, int64_t key_id, size_t
             i), NULL)
GGML_PENDING(int64_t, gguf_get_n_tensors, (const struct gguf_context *ctx), 0)
GGML_PENDING(int64_t, gguf_find_tensor, (const struct gguf_context *ctx, const char *name), 0)
GGML_PENDING(size_t, gguf_get_tensor_offset, (const struct gguf_context *ctx, int64_t tensor_id), 0)
GGML_PENDING(const char *, gguf_get_tensor_name, (const struct gguf_context *ctx, int64_t
             tensor_id), NULL)
GGML_PENDING(const int64_t *, gguf_get_tensor_ne, (const struct gguf_context *ctx, int64_t
             tensor_id), NULL)
GGML_PENDING(enum ggml_type, gguf_get_tensor_type, (const struct gguf_context *ctx, int64_t
             tensor_id), 0)
GGML_PENDING(size_t, gguf_get_tensor_size, (const struct gguf_context *ctx, int64_t tensor_id), 0)
GGML_PENDING(int64_t, gguf_remove_key, (struct gguf_context *ctx, const char *key), 0)
GGML_PENDING_VOID(gguf_set_val_u8, (struct gguf_context *ctx, const char *key, uint8_t val))
GGML_PENDING_VOID(gguf_set_val_i8, (struct gguf_context *ctx, const char *key, int8_t val))
GGML_PENDING_VOID(gguf_set_val_u16, (struct gguf_context *ctx, const char *key, uint16_t val))
GGML_PENDING_VOID(gguf_set_val_i16, (struct gguf_context *ctx, const char *key, int16_t val))
GGML_PENDING_VOID(gguf_set_val_u32, (struct gguf_context *ctx, const char *key, uint32_t val))
GGML_PENDING_VOID(gguf_set_val_i32, (struct gguf_context *ctx, const char *key, int32_t val))
GGML_PENDING_VOID(gguf_set_val_f32, (struct gguf_context *ctx, const char *key, float val))
GGML_PENDING_VOID(gguf_set_val_u64, (struct gguf_context *ctx, const char *key, uint64_t val))
GGML_PENDING_VOID(gguf_set_val_i64, (struct gguf_context *ctx, const char *key, int64_t val))
GGML_PENDING_VOID(gguf_set_val_f64, (struct gguf_context *ctx, const char *key, double val))
GGML_PENDING_VOID(gguf_set_val_bool, (struct gguf_context *ctx, const char *key, bool val))
GGML_PENDING_VOID(gguf_set_val_str, (struct gguf_context *ctx, const char *key, const char *val))
GGML_PENDING_VOID(gguf_set_arr_data, (struct gguf_context *ctx, const char *key, enum gguf_type
             type, const void *data, size_t n))
GGML_PENDING_VOID(gguf_set_arr_str, (struct gguf_context *ctx, const char *key, const char **data,
             size_t n))
GGML_PENDING_VOID(gguf_set_kv, (struct gguf_context *ctx, const struct gguf_context *src))
GGML_PENDING_VOID(gguf_add_tensor, (struct gguf_context *ctx, const struct ggml_tensor *tensor))
GGML_PENDING_VOID(gguf_set_tensor_type, (struct gguf_context *ctx, const char *name, enum ggml_type
             type))
GGML_PENDING_VOID(gguf_set_tensor_data, (struct gguf_context *ctx, const char *name, const void
             *data))
GGML_PENDING(bool, gguf_write_to_file_ptr, (const struct gguf_context *ctx, FILE *file, bool
             only_meta), false)
GGML_PENDING(bool, gguf_write_to_file, (const struct gguf_context *ctx, const char *fname, bool
             only_meta), false)
GGML_PENDING(size_t, gguf_get_meta_size, (const struct gguf_context *ctx), 0)
GGML_PENDING_VOID(gguf_get_meta_data, (const struct gguf_context *ctx, void *data))
