// SPDX-License-Identifier: MIT
// Parts of a GGUF context. Pointers into it become invalid when it changes.
#ifndef GGML_GGUF_IMPL_H
#define GGML_GGUF_IMPL_H

#include "gguf.h"
#include "gguf/bytes.h"
#include "gguf/name_index.h"

// Longest string, in bytes, and largest array, in elements.
#define GGUF_MAX_LENGTH ((uint64_t)1 << 30)

// A key with its value or values.
struct gguf_pair {
    char *key;
    enum gguf_type type; // of the elements
    bool is_array;
    size_t n; // elements
    // Numbers as in a file; strings one after the other, each with a final zero.
    struct gguf_bytes data;
    struct gguf_bytes starts; // of strings: size_t each, where in `data` they start
};

// A tensor with its place in the data section.
struct gguf_info {
    struct ggml_tensor tensor;
    size_t offset; // from the start of the data
    size_t size;   // packed, without padding
    bool given;    // its data is packed, of whatever type: by gguf_set_tensor_data()
};

struct gguf_context {
    uint32_t version;
    size_t alignment;
    size_t data_offset;
    size_t data_size; // of all tensors with padding
    struct gguf_pair *pairs;
    size_t n_pairs;
    int32_t pairs_capacity; // allocated entries, as infos_capacity
    struct name_index keys;
    struct gguf_info *infos;
    size_t n_infos;
    int32_t infos_capacity;
    struct name_index names;
    char failure[256]; // why something could not be put in; "": nothing is missing
};

// Keeps the last error as the reason why something is missing from the context: writing it fails
// then. [stream]
void gguf_note_failure(struct gguf_context *ctx);

// Bytes of an element; 0 for strings, arrays and numbers that are no type. [any-thread]
size_t gguf_type_size(enum gguf_type type);

// --- pairs ---------------------------------------------------------------------------------------

// Position of a key, or NAME_NOT_FOUND. [stream]
size_t gguf_pair_find(const struct gguf_context *ctx, const char *key);
// String i of a pair, and its length. [stream]
const char *gguf_pair_string(const struct gguf_pair *pair, size_t i, size_t *out_length);
// Appends a string; false with a message. [stream]
bool gguf_pair_add_string(struct gguf_pair *pair, const char *text, size_t length);
void gguf_pair_free(struct gguf_pair *pair);
// Moves the pair into the context, replacing one of the same key; the alignment follows its key.
// Takes ownership in any case; false with a message leaves the context as it was. [stream]
bool gguf_pair_put(struct gguf_context *ctx, struct gguf_pair *pair);

// --- tensors -------------------------------------------------------------------------------------

size_t gguf_info_find(const struct gguf_context *ctx, const char *name);
// Packed bytes of the tensor's extents and type; sets its strides. false with a message for an
// impossible shape. [any-thread]
bool gguf_tensor_pack(struct ggml_tensor *tensor, size_t *out_size);
// Appends a tensor that was packed and whose name is new, at the end of the data section. False
// with a message. [stream]
bool gguf_info_put(struct gguf_context *ctx, const struct ggml_tensor *tensor, size_t size);
// Assigns the offsets of all tensors again, for another alignment or because a size changed; false
// with a message leaves all as it was. [stream]
bool gguf_infos_place(struct gguf_context *ctx, size_t alignment);

#endif
