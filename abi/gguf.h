// SPDX-License-Identifier: MIT
// gguf.h: the GGUF container, in which models are stored: typed pairs of keys and values, then
// tensors.
//
// Layout of a file, in the machine's byte order (little-endian on all that are used):
//
//   header    "GGUF", u32 version, i64 number of tensors, i64 number of pairs
//   pairs     key (string), i32 type, and the value; of an array: i32 element type, u64 count,
//             elements
//   tensors   name (string), u32 n_dims, i64 ne[n_dims], i32 ggml_type, u64 offset in the data
//   padding   zeros up to the alignment
//   data      of the tensors, in the same order, each padded with zeros to the alignment
//
// A string is a u64 length and its bytes, UTF-8, without a NUL. A bool is one byte. Arrays do not
// nest.
//
// Looking into a file, and reading it with data:
//
//     struct ggml_context *tensors = NULL;
//     struct gguf_context *gguf = gguf_init_from_file(
//         "model.gguf", (struct gguf_init_params){.no_alloc = false, .ctx = &tensors});
//     if (!gguf) return fail(ggml_last_error()); // what is wrong with it, and where
//     const int64_t key = gguf_find_key(gguf, "general.architecture");
//     if (key >= 0 && gguf_get_kv_type(gguf, key) == GGUF_TYPE_STRING)
//         printf("%s\n", gguf_get_val_str(gguf, key));
//     for (int64_t i = 0; i < gguf_get_n_tensors(gguf); ++i) {
//         const char *name = gguf_get_tensor_name(gguf, i);
//         use(ggml_get_tensor(tensors, name)); // with type, ne, and data in host memory
//     }
//     gguf_free(gguf);
//     ggml_free(tensors);
//
// Large models are better read with no_alloc: allocate the tensors on their device, and read each
// from gguf_get_data_offset() + gguf_get_tensor_offset() of the file, or map it.
//
// Writing one:
//
//     struct gguf_context *gguf = gguf_init_empty();
//     gguf_set_val_str(gguf, "general.architecture", "example");
//     gguf_set_val_u32(gguf, "example.block_count", 2);
//     gguf_add_tensor(gguf, weight); // named, packed, with data until the file is written
//     if (!gguf_write_to_file(gguf, "model.gguf", false)) return fail(ggml_last_error());
//     gguf_free(gguf);
//
// Setters return nothing: the writer fails if one of them did.
#ifndef GGUF_H
#define GGUF_H

#include "ggml.h"

#ifdef __cplusplus
extern "C" {
#endif

// First bytes of a file; the version that is written; the pair that says the alignment of tensor
// data (u32, a power of two), and what holds without it, in bytes.
#define GGUF_MAGIC "GGUF"
#define GGUF_VERSION 3 // 2 is read too
#define GGUF_KEY_GENERAL_ALIGNMENT "general.alignment"
#define GGUF_DEFAULT_ALIGNMENT 32 // bytes

struct gguf_context; // pairs, and descriptions of tensors

// Types of values. The numbers are those in files.
enum gguf_type {
    GGUF_TYPE_UINT8 = 0,    // one byte
    GGUF_TYPE_INT8 = 1,     // one byte
    GGUF_TYPE_UINT16 = 2,   // two bytes
    GGUF_TYPE_INT16 = 3,    // two bytes
    GGUF_TYPE_UINT32 = 4,   // four bytes
    GGUF_TYPE_INT32 = 5,    // four bytes
    GGUF_TYPE_FLOAT32 = 6,  // IEEE binary32
    GGUF_TYPE_BOOL = 7,     // one byte, 0 or not
    GGUF_TYPE_STRING = 8,   // length and bytes; at most 2^30
    GGUF_TYPE_ARRAY = 9,    // of one of the others; at most 2^30 elements
    GGUF_TYPE_UINT64 = 10,  // eight bytes
    GGUF_TYPE_INT64 = 11,   // eight bytes
    GGUF_TYPE_FLOAT64 = 12, // IEEE binary64
    GGUF_TYPE_COUNT = 13,   // how many there are
};

// What is read beside the pairs.
struct gguf_init_params {
    bool no_alloc; // tensors get no data, and none is read; only with ctx
    // if not NULL: receives a context with the tensors; NULL: meta data only
    struct ggml_context **ctx;
};

// Reads up to len bytes at offset into output; returns the number of bytes read. After fewer than
// len it is called again for the rest; 0 means that there are no more. Called from
// gguf_init_from_callback() only, on its thread, in ascending order.
typedef size_t (*gguf_reader_callback_t)(void *userdata, void *output, uint64_t offset, size_t len);

// --- reading -------------------------------------------------------------------------------------

// Files are not trusted: every count, size and offset is checked before it is used. On failure
// these return NULL, *params.ctx is NULL, and the message says what and where. The caller frees the
// context; where params.ctx is given, *params.ctx too, which holds the tensors (with their data
// unless no_alloc).

// An empty context: version 3, alignment 32. NULL when memory runs out. [any-thread]
GGML_API struct gguf_context *gguf_init_empty(void);

// From an open file, at its position, which need not be 0 nor aligned: a GGUF file inside another,
// whose padding counts from its own first byte. It stays open, at the end of what was read: of the
// data, or where that isn't read of the last tensor's description. Blocks. [any-thread]
GGML_API struct gguf_context *gguf_init_from_file_ptr(FILE *file, struct gguf_init_params params);

// From a file by name (UTF-8), which is closed again. Blocks. [any-thread]
GGML_API struct gguf_context *gguf_init_from_file(const char *fname,
                                                  struct gguf_init_params params);

// From memory, which is needed during the call only: data is copied. [any-thread]
GGML_API struct gguf_context *gguf_init_from_buffer(const void *data, size_t size,
                                                    struct gguf_init_params params);

// Through a callback, at most max_chunk_read bytes at a time (0: any), max_expected_size in all,
// which bounds what a damaged file can make this allocate. Blocks as the callback does.
// [any-thread]
GGML_API struct gguf_context *gguf_init_from_callback(gguf_reader_callback_t callback,
                                                      void *userdata, size_t max_chunk_read,
                                                      uint64_t max_expected_size,
                                                      struct gguf_init_params params);

// Ends the context with its pairs, not the one in params.ctx; NULL does nothing. [stream]
GGML_API void gguf_free(struct gguf_context *ctx);

// --- pairs ---------------------------------------------------------------------------------------

// Pointers returned below are valid until the context changes. Ids run from 0; one out of range, or
// a value of another type, gives 0, false or NULL with a message.

// "u8", "str" ...; constant, NULL for numbers out of range. [any-thread]
GGML_API const char *gguf_type_name(enum gguf_type type);

// Version of the file (2 or 3); alignment of tensor data, and where it starts in the file, in
// bytes: 0 for one that was not read from a file. 0 for NULL. [stream]
GGML_API uint32_t gguf_get_version(const struct gguf_context *ctx);
GGML_API size_t gguf_get_alignment(const struct gguf_context *ctx);
GGML_API size_t gguf_get_data_offset(const struct gguf_context *ctx);

// Number of pairs; id of a key, or -1 without a message; key of an id. Looking a key up takes
// constant time. Setting or removing pairs changes ids. [stream]
GGML_API int64_t gguf_get_n_kv(const struct gguf_context *ctx);
GGML_API int64_t gguf_find_key(const struct gguf_context *ctx, const char *key);
GGML_API const char *gguf_get_key(const struct gguf_context *ctx, int64_t key_id);

// Type of the value (ARRAY for arrays), and of an array's elements; GGUF_TYPE_COUNT on failure, as
// of arr_type for what is no array. [stream]
GGML_API enum gguf_type gguf_get_kv_type(const struct gguf_context *ctx, int64_t key_id);
GGML_API enum gguf_type gguf_get_arr_type(const struct gguf_context *ctx, int64_t key_id);

// The value, which must be of exactly that type: nothing is converted. An array of one element
// counts as a value, as in ggml. Strings end at their first NUL. [stream]
GGML_API uint8_t gguf_get_val_u8(const struct gguf_context *ctx, int64_t key_id);
GGML_API int8_t gguf_get_val_i8(const struct gguf_context *ctx, int64_t key_id);
GGML_API uint16_t gguf_get_val_u16(const struct gguf_context *ctx, int64_t key_id);
GGML_API int16_t gguf_get_val_i16(const struct gguf_context *ctx, int64_t key_id);
GGML_API uint32_t gguf_get_val_u32(const struct gguf_context *ctx, int64_t key_id);
GGML_API int32_t gguf_get_val_i32(const struct gguf_context *ctx, int64_t key_id);
GGML_API float gguf_get_val_f32(const struct gguf_context *ctx, int64_t key_id);
GGML_API uint64_t gguf_get_val_u64(const struct gguf_context *ctx, int64_t key_id);
GGML_API int64_t gguf_get_val_i64(const struct gguf_context *ctx, int64_t key_id);
GGML_API double gguf_get_val_f64(const struct gguf_context *ctx, int64_t key_id);
GGML_API bool gguf_get_val_bool(const struct gguf_context *ctx, int64_t key_id);
GGML_API const char *gguf_get_val_str(const struct gguf_context *ctx, int64_t key_id);

// Address of a value that is no string, nor an array of other than one element; aligned for its
// type. [stream]
GGML_API const void *gguf_get_val_data(const struct gguf_context *ctx, int64_t key_id);

// Number of elements (1 of a single value); address of elements that are no strings (bools are
// bytes); string i. [stream]
GGML_API size_t gguf_get_arr_n(const struct gguf_context *ctx, int64_t key_id);
GGML_API const void *gguf_get_arr_data(const struct gguf_context *ctx, int64_t key_id);
GGML_API const char *gguf_get_arr_str(const struct gguf_context *ctx, int64_t key_id, size_t i);

// --- tensors -------------------------------------------------------------------------------------

// Names are unique in a file. Offsets ascend: each tensor follows the one before, padded.

// Number of tensors; id of a name, or -1 without a message, in constant time. [stream]
GGML_API int64_t gguf_get_n_tensors(const struct gguf_context *ctx);
GGML_API int64_t gguf_find_tensor(const struct gguf_context *ctx, const char *name);

// Offset in bytes from the start of the data; name; 4 extents, those above n_dims 1; type
// (GGML_TYPE_COUNT on failure); bytes without padding. 0 or NULL on failure. [stream]
GGML_API size_t gguf_get_tensor_offset(const struct gguf_context *ctx, int64_t tensor_id);
GGML_API const char *gguf_get_tensor_name(const struct gguf_context *ctx, int64_t tensor_id);
GGML_API const int64_t *gguf_get_tensor_ne(const struct gguf_context *ctx, int64_t tensor_id);
GGML_API enum ggml_type gguf_get_tensor_type(const struct gguf_context *ctx, int64_t tensor_id);
GGML_API size_t gguf_get_tensor_size(const struct gguf_context *ctx, int64_t tensor_id);

// --- changing ------------------------------------------------------------------------------------

// What cannot be done (an empty key, a bad alignment, memory runs out) leaves the context as it
// was, with a message.

// Removes a pair; returns the id that it had, or -1. Later ids go down by one. Without
// "general.alignment" the alignment is 32 again. [stream]
GGML_API int64_t gguf_remove_key(struct gguf_context *ctx, const char *key);

// Set a pair at the end, replacing one of the same key; key and value are copied, and may be parts
// of the pair that is replaced. "general.alignment" takes a power of two as u32 and moves the
// tensors accordingly (in ggml 0.27 offsets and padding keep the old one). [stream]
GGML_API void gguf_set_val_u8(struct gguf_context *ctx, const char *key, uint8_t val);
GGML_API void gguf_set_val_i8(struct gguf_context *ctx, const char *key, int8_t val);
GGML_API void gguf_set_val_u16(struct gguf_context *ctx, const char *key, uint16_t val);
GGML_API void gguf_set_val_i16(struct gguf_context *ctx, const char *key, int16_t val);
GGML_API void gguf_set_val_u32(struct gguf_context *ctx, const char *key, uint32_t val);
GGML_API void gguf_set_val_i32(struct gguf_context *ctx, const char *key, int32_t val);
GGML_API void gguf_set_val_f32(struct gguf_context *ctx, const char *key, float val);
GGML_API void gguf_set_val_u64(struct gguf_context *ctx, const char *key, uint64_t val);
GGML_API void gguf_set_val_i64(struct gguf_context *ctx, const char *key, int64_t val);
GGML_API void gguf_set_val_f64(struct gguf_context *ctx, const char *key, double val);
GGML_API void gguf_set_val_bool(struct gguf_context *ctx, const char *key, bool val);
GGML_API void gguf_set_val_str(struct gguf_context *ctx, const char *key, const char *val);

// The same for n elements, neither strings nor arrays, in the order and layout of a C array; and
// for n strings, none NULL. n may be 0. [stream]
GGML_API void gguf_set_arr_data(struct gguf_context *ctx, const char *key, enum gguf_type type,
                                const void *data, size_t n);
GGML_API void gguf_set_arr_str(struct gguf_context *ctx, const char *key, const char **data,
                               size_t n);

// Sets every pair of src, in order, replacing equal keys; src may be ctx itself, which changes
// nothing. [stream]
GGML_API void gguf_set_kv(struct gguf_context *ctx, const struct gguf_context *src);

// Adds a tensor under its name, which must be new; its description is copied, the data is referred
// to: by its buffer, or its address in host memory. ne[0] is whole blocks. [stream]
GGML_API void gguf_add_tensor(struct gguf_context *ctx, const struct ggml_tensor *tensor);

// Changes a tensor's type; later offsets move. The data is for the caller to convert and to set
// again. [stream]
GGML_API void gguf_set_tensor_type(struct gguf_context *ctx, const char *name, enum ggml_type type);

// Refers a tensor to host data, packed, which must live until writing. Tensors that were read with
// meta data only have none. [stream]
GGML_API void gguf_set_tensor_data(struct gguf_context *ctx, const char *name, const void *data);

// --- writing -------------------------------------------------------------------------------------

// What is written can be read again, byte by byte the same for the same content. Files appear in
// place: write to another name and rename where a reader may look at any time.

// Writes the meta data, and with only_meta false the tensors' data, to an open file (which stays
// open and is flushed) or to one by name, which is replaced. Tensors must be contiguous and have
// data; what is on a device is fetched. false on failure, and if something could not be set or
// added before: nothing is written then. After another failure the file is incomplete. Blocks.
// [stream]
GGML_API bool gguf_write_to_file_ptr(const struct gguf_context *ctx, FILE *file, bool only_meta);
GGML_API bool gguf_write_to_file(const struct gguf_context *ctx, const char *fname, bool only_meta);

// Bytes of the meta data with padding; writes that many to `data`: for those who write the data by
// themselves behind it. 0, and nothing, with a message if a setter failed. [stream]
GGML_API size_t gguf_get_meta_size(const struct gguf_context *ctx);
GGML_API void gguf_get_meta_data(const struct gguf_context *ctx, void *data);

#ifdef __cplusplus
}
#endif

#endif
