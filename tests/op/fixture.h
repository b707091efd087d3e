// SPDX-License-Identifier: MIT
// Operands for tests of builders. Every member is a tensor, so that a sweep can replace each in
// turn.
#ifndef TESTS_OP_FIXTURE_H
#define TESTS_OP_FIXTURE_H

#include "ggml-impl.h"

struct fixture {
#define FIELD(name, ...) struct ggml_tensor *name;
#include "field_list.inl"
    struct ggml_tensor *columns; // a, transposed
    struct ggml_tensor *error;   // of another context
};

#define FIXTURE_SIZE (sizeof(struct fixture) / sizeof(struct ggml_tensor *))

// Tensors without data, named after their member, except `error`.
static inline void fixture_fill(struct fixture *f, struct ggml_context *ctx) {
#define FIELD(name, type, ne0, ne1, ne2, ne3)                                                      \
    f->name = ggml_new_tensor_4d(ctx, GGML_TYPE_##type, ne0, ne1, ne2, ne3);                       \
    ggml_set_name(f->name, #name);
#include "field_list.inl"
    ggml_set_param(f->param);
    f->columns = ggml_transpose(ctx, f->a);
    ggml_set_name(f->columns, "columns");
}

// The fixture with each member that equals `from` replaced.
static inline struct fixture fixture_with(const struct fixture *f, const struct ggml_tensor *from,
                                          struct ggml_tensor *to) {
    struct ggml_tensor *members[FIXTURE_SIZE];
    struct fixture changed;
    memcpy(members, f, sizeof(members));
    for (size_t i = 0; i < FIXTURE_SIZE; ++i) {
        if (members[i] == from) members[i] = to;
    }
    memcpy(&changed, members, sizeof(changed));
    return changed;
}

static inline struct ggml_context *fixture_context(void) {
    return ggml_init((struct ggml_init_params){4u << 20, NULL, true});
}

#endif
