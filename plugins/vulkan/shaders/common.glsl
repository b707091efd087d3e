// SPDX-License-Identifier: MIT
// The interface that every shader of this plugin has: one uniform block says where and what the
// operands are, then one storage buffer per operand (GVK_OPERAND(name, binding): 1 for the result,
// 2 ... for the sources). A shader declares only the operands it touches.
//
// All strides and addresses are in bytes; an operand's address begins at its `at` member, because
// storage buffers are bound at an aligned offset below the tensor.
#ifndef COMMON_GLSL
#define COMMON_GLSL

#extension GL_EXT_control_flow_attributes : enable
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_8bit_storage : require

layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;

// Extents, strides, and x: address of the first byte within the binding, y: type number.
struct Tensor {
    uvec4 ne;
    uvec4 nb;
    uvec4 at;
};

layout(std140, set = 0, binding = 0) uniform Parameters {
    Tensor tensors[9]; // by operand: [0] the result, [1] src0 ...
    ivec4 op_params[4];
    uvec4 numbers[4];
};

#define DST tensors[0]
#define SRC0 tensors[1]
#define SRC1 tensors[2]
#define SRC2 tensors[3]
#define SRC3 tensors[4]

int op_param(const uint i) { return op_params[i / 4][i % 4]; }
float op_param_f32(const uint i) { return intBitsToFloat(op_params[i / 4][i % 4]); }
uint number(const uint i) { return numbers[i / 4][i % 4]; }

const uint TYPE_F32 = 0, TYPE_F16 = 1, TYPE_Q4_0 = 2, TYPE_Q4_1 = 3, TYPE_Q5_0 = 6, TYPE_Q5_1 = 7,
           TYPE_Q8_0 = 8, TYPE_Q2_K = 10, TYPE_Q3_K = 11, TYPE_Q4_K = 12, TYPE_Q5_K = 13,
           TYPE_Q6_K = 14, TYPE_IQ4_NL = 20, TYPE_IQ4_XS = 23, TYPE_I8 = 24, TYPE_I16 = 25,
           TYPE_I32 = 26, TYPE_I64 = 27, TYPE_BF16 = 30, TYPE_MXFP4 = 39;

// Number of this group, of this invocation when groups are (n, 1, 1), over all dimensions.
uint group_linear() {
    return gl_WorkGroupID.x +
           gl_NumWorkGroups.x * (gl_WorkGroupID.y + gl_NumWorkGroups.y * gl_WorkGroupID.z);
}
uint invocation_linear() { return group_linear() * gl_WorkGroupSize.x + gl_LocalInvocationID.x; }

// Indices of row or element number i, dimension 1 or 0 fastest. Remainders are formed from
// quotients: a division costs more than all else here.
uvec4 row_at(const uvec4 ne, const uint i) {
    const uint plane = i / ne.y, space = plane / ne.z;
    return uvec4(0, i - plane * ne.y, plane - space * ne.z, space);
}
uvec4 element_at(const uvec4 ne, const uint i) {
    const uint row = i / ne.x;
    uvec4 at = row_at(ne, row);
    at.x = i - row * ne.x;
    return at;
}
// Byte address of an element (of a type without blocks).
uint address(const Tensor t, const uvec4 i) {
    return t.at.x + i.x * t.nb.x + i.y * t.nb.y + i.z * t.nb.z + i.w * t.nb.w;
}

float bf16_to_f32(const uint bits) { return uintBitsToFloat(bits << 16); }
// To nearest, ties to even; NaN stays NaN.
uint f32_to_bf16(const float value) {
    const uint bits = floatBitsToUint(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (bits >> 16) | 64u;
    return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}

// To nearest, ties to even, whatever the driver's own conversion does; too large becomes infinite.
uint f32_to_f16(const float value) {
    const uint bits = floatBitsToUint(value);
    const uint sign = bits >> 16 & 0x8000u;
    const uint size = bits & 0x7fffffffu;
    if (size > 0x7f800000u) return sign | 0x7e00u;
    if (size >= 0x477ff000u) return sign | 0x7c00u;
    if (size >= 0x38800000u) return sign | (size + 0xc8000fffu + (size >> 13 & 1u)) >> 13;
    if (size < 0x33000000u) return sign;
    const uint shift = 126u - (size >> 23); // 14 to 24
    const uint mantissa = (size & 0x007fffffu) | 0x00800000u;
    const uint half_ = mantissa >> shift;
    const uint rest = mantissa - (half_ << shift), tie = 1u << (shift - 1u);
    return sign | (half_ + uint(rest > tie || (rest == tie && (half_ & 1u) != 0u)));
}

// Four halves or bfloat16 numbers.
vec4 floats_of(const uint type, const uvec2 words) {
    if (type == TYPE_F16) return vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y));
    return uintBitsToFloat(uvec4(words.x << 16, words.x & 0xffff0000u, words.y << 16,
                                 words.y & 0xffff0000u));
}

// Views of one binding by the size of what is read; blocks that are not used cost nothing.
#define GVK_OPERAND(name, index)                                                                   \
    layout(set = 0, binding = index) buffer name##_block_f32 { float name##_f32[]; };              \
    layout(set = 0, binding = index) buffer name##_block_u32 { uint name##_u32[]; };               \
    layout(set = 0, binding = index) buffer name##_block_vec4 { vec4 name##_vec4[]; };             \
    layout(set = 0, binding = index) buffer name##_block_uvec4 { uvec4 name##_uvec4[]; };          \
    layout(set = 0, binding = index) buffer name##_block_f16 { float16_t name##_f16[]; };          \
    layout(set = 0, binding = index) buffer name##_block_u16 { uint16_t name##_u16[]; };           \
    layout(set = 0, binding = index) buffer name##_block_u8 { uint8_t name##_u8[]; };              \
    /* Element of a plain type as a float; of a 64-bit integer the low word. */                    \
    float name##_load(const uint type, const uint at) {                                            \
        if (type == TYPE_F32) return name##_f32[at >> 2];                                          \
        if (type == TYPE_F16) return float(name##_f16[at >> 1]);                                   \
        if (type == TYPE_BF16) return bf16_to_f32(uint(name##_u16[at >> 1]));                      \
        if (type == TYPE_I8) return float(bitfieldExtract(int(uint(name##_u8[at])), 0, 8));        \
        if (type == TYPE_I16)                                                                      \
            return float(bitfieldExtract(int(uint(name##_u16[at >> 1])), 0, 16));                  \
        return float(int(name##_u32[at >> 2]));                                                    \
    }                                                                                              \
    void name##_store(const uint type, const uint at, const float value) {                         \
        if (type == TYPE_F32) name##_f32[at >> 2] = value;                                         \
        else if (type == TYPE_F16) name##_u16[at >> 1] = uint16_t(f32_to_f16(value));              \
        else if (type == TYPE_BF16) name##_u16[at >> 1] = uint16_t(f32_to_bf16(value));            \
        else if (type == TYPE_I8) name##_u8[at] = uint8_t(uint(int(value)));                       \
        else if (type == TYPE_I16) name##_u16[at >> 1] = uint16_t(uint(int(value)));               \
        else name##_u32[at >> 2] = uint(int(value));                                               \
    }

#endif
