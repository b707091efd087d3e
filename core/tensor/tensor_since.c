// SPDX-License-Identifier: MIT
// Which contract minor one tensor needs. In a file of its own, which plugins get too.
#include <stdbool.h>
#include <string.h>

#include "ggml-plugin.h"
#include "tensor/node_since.h"

enum { NOT_KNOWN = GGML_CONTRACT_MINOR + 1 };

#define GGML_TYPE_ROW(number, name, text, block, size, quantized, since) [number] = since,
#define GGML_TYPE_REMOVED(number, name) [number] = 0,
static const uint8_t type_since[GGML_TYPE_COUNT] = {
#include "type_list.inl"
};

struct flag_since {
    uint32_t flag;
    uint8_t since;
};

#define GGML_TENSOR_FLAG_ROW(value, name, since) {value, since},
static const struct flag_since flag_since[] = {
#include "flag_list.inl"
};

// Flags that a reader must understand; others may be ignored.
static int flags_need(uint32_t flags) {
    int needs = 0;
    flags &= GGML_TENSOR_FLAGS_STRICT;
    for (size_t i = 0; flags != 0 && i < sizeof(flag_since) / sizeof(flag_since[0]); ++i) {
        if (flags & flag_since[i].flag) needs = MAX(needs, flag_since[i].since);
        flags &= ~flag_since[i].flag;
    }
    return flags != 0 ? NOT_KNOWN : needs;
}

// Private types need none, unknown ones a minor that no plugin has.
static int type_needs(int type) {
    if (type >= GGML_FIRST_PRIVATE) return 0;
    return type >= 0 && type < GGML_TYPE_COUNT ? type_since[type] : NOT_KNOWN;
}

// Padding that is not zero is an extension from a future minor.
int op_tensor_needs_minor(const struct ggml_tensor *tensor) {
    static const char no_extension[sizeof(tensor->padding)];
    if (memcmp(tensor->padding, no_extension, sizeof(no_extension)) != 0) return NOT_KNOWN;
    return MAX(type_needs((int)tensor->type), flags_need((uint32_t)tensor->flags));
}
