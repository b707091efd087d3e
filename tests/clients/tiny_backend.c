// SPDX-License-Identifier: MIT
// The least backend in the form that ggml's sources have: a function that gives a registry, and one
// that scores. It has no devices.
#include "ggml-backend-impl.h"

static const char *name_of(ggml_backend_reg_t reg) {
    (void)reg;
    return "tiny";
}

static size_t device_count(ggml_backend_reg_t reg) {
    (void)reg;
    return 0;
}

static ggml_backend_dev_t device(ggml_backend_reg_t reg, size_t index) {
    (void)reg;
    (void)index;
    return NULL;
}

static ggml_backend_reg_t tiny_reg(void) {
    static const struct ggml_backend_table table = {
        .size = sizeof(table),
        .get_name = name_of,
        .get_device_count = device_count,
        .get_device = device,
    };
    static struct ggml_backend_reg reg = {.table = &table};
    return &reg;
}

// By a function of the library, which needs others.
static int tiny_score(void) {
    const struct ggml_tensor scalar = {.type = GGML_TYPE_F32, .ne = {1, 1, 1, 1}};
    return ggml_is_contiguous(&scalar) ? (int)ggml_nelements(&scalar) : 0;
}

GGML_BACKEND_DL_IMPL(tiny_reg)
GGML_BACKEND_DL_SCORE_IMPL(tiny_score)
