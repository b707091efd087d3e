#version 450
// SPDX-License-Identifier: MIT
// pad (also circular), pad_reflect_1d, roll, win_part, win_unpart and get_rel_pos: each element
// of the result is an element of the source or 0. An invocation per element of SIZE bytes.
#include "shaders/common.glsl"
layout(constant_id = 3) const uint SIZE = 4; // bytes of an element
layout(constant_id = 4) const uint MODE = 0;
GVK_OPERAND(dst, 1)
GVK_OPERAND(src0, 2)

const uint PAD = 0, PAD_CIRCULAR = 1, PAD_REFLECT = 2, ROLL = 3, WIN_PART = 4, WIN_UNPART = 5,
           GET_REL_POS = 6;

// Index of a neighbour round the border; i is at most n outside.
int wrap(const int i, const int n) { return i < 0 ? i + n : i >= n ? i - n : i; }
int reflect_index(const int i, const int n) { return i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i; }

// Elements added in front, per dimension.
ivec4 padding() { return ivec4(op_param(0), op_param(2), op_param(4), op_param(6)); }

// Which element of the source comes here; indices outside of it mean 0.
ivec4 source_of(const ivec4 at) {
    const ivec4 ne = ivec4(SRC0.ne);
    ivec4 i = at;
    if (MODE == PAD || MODE == PAD_CIRCULAR) {
        i = at - padding();
        [[unroll]] for (int d = 0; d < 4; ++d) {
            if (MODE == PAD_CIRCULAR) i[d] = wrap(i[d], ne[d]);
        }
    } else if (MODE == PAD_REFLECT) {
        i.x = reflect_index(at.x - op_param(0), ne.x);
    } else if (MODE == ROLL) {
        [[unroll]] for (int d = 0; d < 4; ++d) i[d] = wrap(at[d] - op_params[0][d], ne[d]);
    } else if (MODE == WIN_PART) {
        const int n = op_param(0), w = op_param(2);
        i = ivec4(at.x, at.w % n * w + at.y, at.w / n * w + at.z, 0);
    } else if (MODE == WIN_UNPART) {
        const int w = op_param(0), n = (int(DST.ne.y) + w - 1) / w;
        i = ivec4(at.x, at.y % w, at.z % w, at.z / w * n + at.y / w);
    } else if (MODE == GET_REL_POS) {
        i = ivec4(at.x, int(DST.ne.y) - 1 - at.y + at.z, 0, 0);
    }
    return i;
}

// Copies an element, or clears it.
void put(const uint to, const uint from, const bool inside) {
    if (SIZE == 1) {
        uint value = 0;
        if (inside) value = uint(src0_u8[from]);
        dst_u8[to] = uint8_t(value);
    } else if (SIZE == 2) {
        uint value = 0;
        if (inside) value = uint(src0_u16[from >> 1]);
        dst_u16[to >> 1] = uint16_t(value);
    } else {
        [[unroll]] for (uint word = 0; word < SIZE / 4; ++word) {
            uint value = 0;
            if (inside) value = src0_u32[(from >> 2) + word];
            dst_u32[(to >> 2) + word] = value;
        }
    }
}

// pad, roll and other moves of elements: an element of the result has at most one source; without
// one it is 0.
void main() {
    const uint i = invocation_linear();
    if (i >= DST.ne.x * DST.ne.y * DST.ne.z * DST.ne.w) return;
    const uvec4 at = element_at(DST.ne, i);
    const ivec4 from = source_of(ivec4(at));
    const bool inside =
        all(greaterThanEqual(from, ivec4(0))) && all(lessThan(from, ivec4(SRC0.ne)));
    put(address(DST, at), address(SRC0, uvec4(from)), inside);
}
