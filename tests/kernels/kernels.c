// SPDX-License-Identifier: MIT
// The lists of levels, types and functions, and random operands.
#include "kernels.h"

#include <string.h>

#include "gemm/gemm_size.h"
#include "ggml-common.h"
#include "ggml-host.h"
#include "ops/attention/attention.h"
#include "ops/mul_mat/mul_mat.h"

#define CPU_LEVEL_ROW(name, text, lanes, bytes, registers, features, optional)                     \
    extern const struct kernel_table kernel_table_##name;
#include "runtime/level_list.inl"

static const struct kernel_level levels[] = {
#define CPU_LEVEL_ROW(name, text, lanes, bytes, registers, features, optional)                     \
    {text, features, &kernel_table_##name},
#include "runtime/level_list.inl"
};

static const enum ggml_type types[] = {
    GGML_TYPE_F32,
    GGML_TYPE_F16,
    GGML_TYPE_BF16,
#define CPU_BLOCK_ROW(NAME, ...) GGML_TYPE_##NAME,
#include "types/block_list.inl"
};

static const enum ggml_unary_op maps[] = {
    GGML_UNARY_OP_EXP,        GGML_UNARY_OP_TANH,     GGML_UNARY_OP_SIGMOID,
    GGML_UNARY_OP_SILU,       GGML_UNARY_OP_GELU,     GGML_UNARY_OP_GELU_ERF,
    GGML_UNARY_OP_GELU_QUICK, GGML_UNARY_OP_SOFTPLUS, GGML_UNARY_OP_EXPM1,
};

const struct kernel_level *kernel_levels(int *out_count) {
    *out_count = sizeof(levels) / sizeof(levels[0]);
    return levels;
}

const enum ggml_type *kernel_types(int *out_count) {
    *out_count = sizeof(types) / sizeof(types[0]);
    return types;
}

const enum ggml_unary_op *kernel_maps(int *out_count) {
    *out_count = sizeof(maps) / sizeof(maps[0]);
    return maps;
}

const char *kernel_way_name(enum kernel_way way) {
    static const char *const names[KERNEL_WAYS] = {"vector", "rounded", "tiles", "packed",
                                                   "pairs",  "strips",  "dots",  "repacked",
                                                   "scores", "sums"};
    return names[way];
}

bool kernel_has(int feature) {
    return ggml_host_cpu_features() & GGML_CPU_BIT(feature);
}

size_t kernel_work_bytes(int64_t k, int64_t n_columns) {
    const size_t floats = mul_mat_thread_floats(n_columns, k) * sizeof(float);
    const size_t rounded = rounded_size(k, ROUNDED_MOST);
    const size_t strips =
        sizeof(struct strip_panel) +
        2 * (size_t)(strips_across(n_columns) * strips_deep(k)) * sizeof(struct strip);
    const size_t packed = gemm_packed_floats(n_columns, k) * sizeof(float);
    const size_t attention = (size_t)(n_columns * attention_padded(k)) * sizeof(float);
    return floats + rounded + strips + packed + attention;
}

static uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

void kernel_random_floats(float *x, int64_t n, uint32_t *state) {
    for (int64_t i = 0; i < n; ++i)
        x[i] = (float)next_random(state) * 0x1p-23f - 1.0f;
}

// A half of magnitude 2^-9 to 2^-5, of either sign.
static uint16_t random_half(uint32_t *state) {
    const uint32_t r = next_random(state);
    return (uint16_t)((r & 0x83FF) | (6 + r / 0x10000 % 4) << 10);
}

static void set_half(char *at, uint32_t *state) {
    const uint16_t half = random_half(state);
    memcpy(at, &half, sizeof(half));
}

struct scale_places {
    int bytes, scale_at, offset_at;
};

static struct scale_places scale_places(enum ggml_type type) {
    switch ((int)type) {
#define CPU_BLOCK_ROW(NAME, name, size, group, scale_at, offset_at)                                \
    case GGML_TYPE_##NAME:                                                                         \
        return (struct scale_places){sizeof(block_##name), (int)(scale_at), (int)(offset_at)};
#include "types/block_list.inl"
    default: return (struct scale_places){0, -1, -1};
    }
}

static void set_scales(enum ggml_type type, char *block, uint32_t *state) {
    const struct scale_places places = scale_places(type);
    if (places.scale_at >= 0) set_half(block + places.scale_at, state);
    if (places.offset_at >= 0) set_half(block + places.offset_at, state);
    if (type == GGML_TYPE_MXFP4) ((block_mxfp4 *)(void *)block)->e = 118 + next_random(state) % 8;
    for (int i = 0; type == GGML_TYPE_NVFP4 && i < QK_NVFP4 / 16; ++i)
        ((block_nvfp4 *)(void *)block)->d[i] = 0x20 + next_random(state) % 32;
    if (type == GGML_TYPE_IQ1_M) { // four bits of the scale in each of four words
        const uint16_t half = random_half(state);
        uint8_t *scales = ((block_iq1_m *)(void *)block)->scales;
        for (int i = 0; i < 4; ++i)
            scales[2 * i + 1] = (uint8_t)((scales[2 * i + 1] & 15) | (half >> 4 * i & 15) << 4);
    }
}

void kernel_random_rows(enum ggml_type type, void *rows, size_t n, uint32_t *state) {
    uint8_t *bytes = rows;
    for (size_t i = 0; i < n; ++i)
        bytes[i] = (uint8_t)next_random(state);
    const size_t size = ggml_type_size(type);
    for (size_t i = 0; i + size <= n; i += size) {
        char *at = (char *)rows + i;
        float value;
        kernel_random_floats(&value, 1, state);
        if (type == GGML_TYPE_F32)
            memcpy(at, &value, sizeof(value));
        else if (type == GGML_TYPE_F16 || type == GGML_TYPE_BF16)
            ggml_get_type_traits(type)->from_float_ref(&value, at, 1);
        else
            set_scales(type, at, state);
    }
}
