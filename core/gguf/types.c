// SPDX-License-Identifier: MIT
// Size and name of the types of GGUF metadata.
#include "gguf/gguf_impl.h"

// clang-format off
size_t gguf_type_size(enum gguf_type type) {
    switch ((int)type) {
#define GGUF_SCALAR_ROW(NAME, suffix, c_type) case GGUF_TYPE_##NAME: return sizeof(c_type);
#include "gguf/scalar_list.inl"
    default: return 0;
    }
}

const char *gguf_type_name(enum gguf_type type) {
    switch ((int)type) {
#define GGUF_SCALAR_ROW(NAME, suffix, c_type) case GGUF_TYPE_##NAME: return #suffix;
#include "gguf/scalar_list.inl"
    case GGUF_TYPE_STRING: return "str";
    case GGUF_TYPE_ARRAY: return "arr";
    default: return NULL;
    }
}
// clang-format on

_Static_assert(sizeof(bool) == 1, "a truth value takes one byte in a file");
