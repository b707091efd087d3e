// SPDX-License-Identifier: MIT
// Converters with vectors, compiled once for each instruction-set level. Types without one use the
// scalar converters of codec.c.
#include "types/unpack.h"

#include "types/blocks.h"
#include "types/codec.h"

static void unpack_f32(const void *x, float *y, int64_t n) {
    memcpy(y, x, (size_t)n * sizeof(float));
}

static void unpack_f16(const void *x, float *y, int64_t n) {
    cpu_f16_to_f32(y, x, n);
}

static void unpack_bf16(const void *x, float *y, int64_t n) {
    cpu_bf16_to_f32(y, x, n);
}

static void unpack_i32(const void *x, float *y, int64_t n) {
    const int32_t *in = x;
    for (int64_t i = 0; i < n; ++i)
        y[i] = (float)in[i];
}

// The product of a scale and a number is exact: fusing it with the addition changes nothing.
CPU_INLINE void unpack_blocks(const struct block_format f, const char *x, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i += f.size, x += f.bytes) {
        struct opened o;
        const int8_t *q;
        open_blocks(f, &x, 1, &o, &q);
        for (int g = 0; g < f.size / f.group; ++g) {
            const vf scale = vf_set(o.scales[g]);
            const vf offset = vf_set(f.offset_at >= 0 ? offsets(f, &o)[g] : 0.0f);
            CPU_UNROLLED
            for (int j = 0; j < f.group; j += LANES) {
                const vf product = scale * vf_from_i8(q + g * f.group + j);
                vf_store(y + i + g * f.group + j, f.offset_at >= 0 ? product + offset : product);
            }
        }
    }
}

#define CPU_BLOCK_ROW(NAME, name, ...)                                                             \
    static void unpack_##name(const void *x, float *y, int64_t n) {                                \
        unpack_blocks(BLOCK_FORMAT(NAME, name, __VA_ARGS__), x, y, n);                             \
    }
#include "types/block_list.inl"

// clang-format off
cpu_unpack_fn CPU_FN(cpu_unpack)(enum ggml_type type) {
    switch (type) {
    case GGML_TYPE_F32: return unpack_f32;
    case GGML_TYPE_F16: return unpack_f16;
    case GGML_TYPE_BF16: return unpack_bf16;
    case GGML_TYPE_I32:
        return unpack_i32;
#define CPU_BLOCK_ROW(NAME, name, ...)                                                             \
    case GGML_TYPE_##NAME: return unpack_##name;
#include "types/block_list.inl"
    default: return cpu_to_float(type);
    }
}
// clang-format on

static void pack_f32(const float *x, void *y, int64_t n) {
    memcpy(y, x, (size_t)n * sizeof(float));
}

static void pack_f16(const float *x, void *y, int64_t n) {
    cpu_f32_to_f16(y, x, n);
}

static void pack_bf16(const float *x, void *y, int64_t n) {
    cpu_f32_to_bf16(y, x, n);
}

// Truncates. Values out of range become the nearest limit, NaN the lowest.
static void pack_i32(const float *x, void *y, int64_t n) {
    int32_t *out = y;
    for (int64_t i = 0; i < n; ++i) {
        const bool fits = x[i] >= -2147483648.0f && x[i] < 2147483648.0f;
        out[i] = fits ? (int32_t)x[i] : x[i] > 0.0f ? INT32_MAX : INT32_MIN;
    }
}

// The encoder of a type at this level, or the scalar one.
cpu_pack_fn CPU_FN(cpu_pack)(enum ggml_type type) {
    switch (type) {
    case GGML_TYPE_F32: return pack_f32;
    case GGML_TYPE_F16: return pack_f16;
    case GGML_TYPE_BF16: return pack_bf16;
    case GGML_TYPE_I32: return pack_i32;
    default: return cpu_from_float(type);
    }
}
