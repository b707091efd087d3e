#version 450
// SPDX-License-Identifier: MIT
// rope, rope_back: pairs of channels turned by angles that grow with the token's position. An
// invocation turns one pair, or copies one channel that is not turned, of some heads of a token.
// ROWS: the result goes to the row of dst that src3 has for the token, as set_rows would put it.
#include "shaders/double_float.glsl"
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2)
GVK_OPERAND(src1, 3)
GVK_OPERAND(src2, 4)
#ifdef ROWS
GVK_OPERAND(src3, 5)
layout(constant_id = 8) const uint ROW_TYPE = 0;
layout(constant_id = 9) const bool ROW_WIDE = false; // indices of 64 bits
#endif
layout(constant_id = 3) const uint TYPE = 0;
layout(constant_id = 4) const uint MODE = 0;
layout(constant_id = 5) const bool BACK = false;
layout(constant_id = 6) const bool FACTORS = false;
layout(constant_id = 7) const uint HEADS = 1; // per invocation
const uint MODE_NORMAL = 0, MODE_MULTI = 8, MODE_VISION = 24, MODE_IMROPE = 40;

// Of the node, changed by ops/rope/rope.c: MAGNITUDE with YaRN's correction, LOW and HIGH are the
// pairs between which YaRN mixes.
const uint N_DIMS = 1, FREQ_SCALE = 6, EXT_FACTOR = 7, MAGNITUDE = 8, LOW = 9, HIGH = 10,
           SECTIONS = 11, N_OFFS = 15;

// Number of pairs that the s-th position turns.
uint section_size(const uint s) { return uint(op_param(SECTIONS + s)); }

// Which of a token's four positions turns pair i, and y: the section's first pair.
uvec2 section_of(const uint i) {
    if ((MODE & MODE_MULTI) == 0) return uvec2(0);
    const uint end1 = section_size(0), end2 = end1 + section_size(1), end3 = end2 + section_size(2);
    const uint sector = i % (end3 + section_size(3));
    if (MODE == MODE_IMROPE) {
        const uint turn = sector % 3;
        return uvec2(sector < 3 * section_size(turn) ? turn : 3, 0);
    }
    return sector < end1   ? uvec2(0, 0)
           : sector < end2 ? uvec2(1, end1)
           : sector < end3 ? uvec2(2, end2)
                           : uvec2(3, end3);
}

// Turns per position.
vec2 pair_frequency(const uint i, const uint section_start) {
    uint exponent = i;
    if (MODE == MODE_VISION) {
        const uint all = section_size(0) + section_size(1) + section_size(2) + section_size(3);
        exponent = i % all - section_start;
    }
    vec2 plain = df_times_power(DF_ONE_TURN, exponent);
    if (FACTORS) plain = df_divide(plain, src2_f32[(SRC2.at.x >> 2) + i]);
    const vec2 scaled = df_multiply(plain, op_param_f32(FREQ_SCALE));
    if (op_param_f32(EXT_FACTOR) == 0.0) return scaled;
    const float width = max(0.001, op_param_f32(HIGH) - op_param_f32(LOW));
    const float ramp = clamp((float(i) - op_param_f32(LOW)) / width, 0.0, 1.0);
    const float mix_plain = (1.0 - ramp) * op_param_f32(EXT_FACTOR);
    return df_add(df_multiply(scaled, two_sum(1.0, -mix_plain)), df_multiply(plain, mix_plain));
}

// Cosine and sine for pair i of a token.
vec2 turn_of(const uint i, const uint token) {
    const uvec2 section = section_of(i);
    const uint at = SRC1.at.x + (section.x * SRC0.ne.z + token) * 4;
    const int position = int(src1_u32[at >> 2]);
    const vec2 frequency = pair_frequency(i, section.y);
    const float turns = df_fraction(df_multiply(frequency, float(position & ~4095))) +
                        df_fraction(df_multiply(frequency, float(position & 4095)));
    const vec2 turn = cos_sin_turns(turns) * op_param_f32(MAGNITUDE);
    return BACK ? vec2(turn.x, -turn.y) : turn;
}

#ifdef ROWS
// Channel of a head of a token; an index that dst does not have writes nothing.
void store(const uvec4 at, const uint channel, const float value) {
    const uint id = SRC3.at.x + at.z * (ROW_WIDE ? 8 : 4);
    const uint row = src3_u32[id >> 2];
    if (row >= DST.ne.y || (ROW_WIDE && src3_u32[(id >> 2) + 1] != 0)) return;
    const uint column = at.y * SRC0.ne.x + channel;
    dst_store(ROW_TYPE, DST.at.x + row * DST.nb.y + column * DST.nb.x, value);
}
#else
void store(const uvec4 at, const uint channel, const float value) {
    dst_store(TYPE, address(DST, at) + channel * DST.nb.x, value);
}
#endif

uint size() { return TYPE == TYPE_F32 ? 4 : 2; }

// Copies a channel that is not turned, for each of the invocation's heads.
void copy_channel(const uint channel, const uvec4 first) {
    const uint end = min(first.y + HEADS, SRC0.ne.y);
    for (uvec4 at = first; at.y < end; ++at.y)
        store(at, channel, src0_load(TYPE, address(SRC0, at) + channel * size()));
}

// Turns pair i in each of the invocation's heads. The channels of a pair are neighbours (normal)
// or n_pairs apart.
void turn_pair(const uint i, const uint n_pairs, const uvec4 first) {
    const vec2 turn = turn_of(i, first.z);
    const bool normal = MODE == MODE_NORMAL;
    const uint x = uint(op_param(N_OFFS)) + (normal ? 2 * i : i);
    const uint y = x + (normal ? 1 : n_pairs);
    const uint end = min(first.y + HEADS, SRC0.ne.y);
    for (uvec4 at = first; at.y < end; ++at.y) {
        const uint from = address(SRC0, at);
        const float a = src0_load(TYPE, from + x * size()), b = src0_load(TYPE, from + y * size());
        store(at, x, a * turn.x - b * turn.y);
        store(at, y, a * turn.y + b * turn.x);
    }
}

// An invocation turns one pair of channels for several heads, whose angle is the same, or copies a
// channel that isn't turned.
void main() {
    const uint n_dims = uint(op_param(N_DIMS));
    const uint n_pairs = MODE == MODE_VISION ? n_dims : n_dims / 2;
    const uint columns = SRC0.ne.x - n_pairs;
    uint i = invocation_linear();
    const uint blocks = (SRC0.ne.y + HEADS - 1) / HEADS;
    if (columns == 0 || i / columns >= blocks * SRC0.ne.z * SRC0.ne.w) return;
    const uint column = i % columns;
    i /= columns;
    const uvec4 first =
        uvec4(0, i % blocks * HEADS, i / blocks % SRC0.ne.z, i / blocks / SRC0.ne.z);
    if (column < n_pairs) {
        turn_pair(column, n_pairs, first);
    } else {
        const uint rest = column - n_pairs, n_offs = uint(op_param(N_OFFS));
        copy_channel(rest < n_offs ? rest : rest + 2 * n_pairs, first);
    }
}
