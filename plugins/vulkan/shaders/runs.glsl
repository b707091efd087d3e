// SPDX-License-Identifier: MIT
// Up to four neighbours along dimension 0 at once. `dims` is how many dimensions are counted:
// 1 where the operands are packed alike and are one long row of number(0) elements, 2 for a matrix.
#ifndef RUNS_GLSL
#define RUNS_GLSL

#include "shaders/common.glsl"

const uint RUN = 4;

struct Run {
    uvec4 at; // of its first element
    uint n;   // elements; 0 behind the end
};

uvec4 run_extents(const uvec4 ne, const uint dims) {
    return dims == 1 ? uvec4(number(0), 1, 1, 1) : ne;
}

// Run number i of a tensor of these extents.
Run run_at(const uvec4 ne, const uint i, const uint dims) {
    const uint per_row = (ne.x + RUN - 1) / RUN;
    Run run;
    run.n = 0;
    run.at = uvec4(i * RUN, 0, 0, 0);
    if (dims == 1) {
        if (i < per_row) run.n = min(RUN, ne.x - run.at.x);
        return run;
    }
    const uint row = per_row == 0 ? 0 : i / per_row;
    if (per_row == 0 || row >= (dims == 2 ? ne.y : ne.y * ne.z * ne.w)) return run;
    run.at = dims == 2 ? uvec4(0, row, 0, 0) : row_at(ne, row);
    run.at.x = (i - row * per_row) * RUN;
    run.n = min(RUN, ne.x - run.at.x);
    return run;
}

uint plain_size(const uint type) {
    return type == TYPE_F32 || type == TYPE_I32 ? 4 : type == TYPE_I8 ? 1 : 2;
}

// Four elements of F32, F16 or BF16 at an address that is a multiple of their size.
#define GVK_RUNS(name)                                                                             \
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
