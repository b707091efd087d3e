// SPDX-License-Identifier: MIT
// Up to four neighbours along dimension 0 at once. Where the operands are packed alike (FLAT) they
// are one long row of number(0) elements.
#ifndef RUNS_GLSL
#define RUNS_GLSL

#include "common.glsl"

const uint RUN = 4;

struct Run {
    uvec4 at; // of its first element
    uint n;   // elements; 0 behind the end
};

uvec4 run_extents(const uvec4 ne, const bool flat_) {
    return flat_ ? uvec4(number(0), 1, 1, 1) : ne;
}

// Run number i of a tensor of these extents.
Run run_at(const uvec4 ne, uint i, const bool flat_) {
    const uint per_row = (ne.x + RUN - 1) / RUN;
    Run run;
    if (flat_) {
        run.at = uvec4(i * RUN, 0, 0, 0);
        run.n = i < per_row ? min(RUN, ne.x - i * RUN) : 0u;
        return run;
    }
    run.n = 0;
    if (per_row == 0 || i / per_row >= ne.y * ne.z * ne.w) return run;
    run.at.x = i % per_row * RUN; i /= per_row;
    run.at.y = i % ne.y; i /= ne.y;
    run.at.z = i % ne.z;
    run.at.w = i / ne.z;
    run.n = min(RUN, ne.x - run.at.x);
    return run;
}

uint plain_size(const uint type) {
    return type == TYPE_F32 || type == TYPE_I32 ? 4 : type == TYPE_I8 ? 1 : 2;
}

// Whether every whole run of the operand may be read at once.
bool runs_aligned(const Tensor t, const uint type, const bool flat_) {
    const uint size = plain_size(type);
    const uint bits = t.at.x | (flat_ ? 0u : t.nb.y | t.nb.z | t.nb.w);
    return (flat_ || t.nb.x == size) && (bits & (size * RUN - 1)) == 0u;
}

// Four elements of F32, F16 or BF16 at an address that runs_aligned() allows.
#define VK_RUNS(name)                                                                              \
    vec4 name##_load4(const uint type, const uint at) {                                            \
        if (type == TYPE_F32) return name##_vec4[at >> 4];                                         \
        const uvec2 two = uvec2(name##_u32[at >> 2], name##_u32[(at >> 2) + 1]);                   \
        if (type == TYPE_F16) return vec4(unpackHalf2x16(two.x), unpackHalf2x16(two.y));           \
        return vec4(bf16_to_f32(two.x & 0xffffu), uintBitsToFloat(two.x & 0xffff0000u),            \
                    bf16_to_f32(two.y & 0xffffu), uintBitsToFloat(two.y & 0xffff0000u));           \
    }                                                                                              \
    void name##_store4(const uint type, const uint at, const vec4 x) {                             \
        if (type == TYPE_F32) {                                                                    \
            name##_vec4[at >> 4] = x;                                                              \
        } else if (type == TYPE_F16) {                                                             \
            name##_u32[at >> 2] = f32_to_f16(x.x) | f32_to_f16(x.y) << 16;                         \
            name##_u32[(at >> 2) + 1] = f32_to_f16(x.z) | f32_to_f16(x.w) << 16;                   \
        } else {                                                                                   \
            name##_u32[at >> 2] = f32_to_bf16(x.x) | f32_to_bf16(x.y) << 16;                       \
            name##_u32[(at >> 2) + 1] = f32_to_bf16(x.z) | f32_to_bf16(x.w) << 16;                 \
        }                                                                                          \
    }

#endif
