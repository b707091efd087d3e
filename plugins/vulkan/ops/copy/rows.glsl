// SPDX-License-Identifier: MIT
// Where set_rows puts row `at` of src0; false if the result has no such row.
#ifndef ROWS_GLSL
#define ROWS_GLSL

// Reads the index of the source's row. false if the row isn't within the result; wide indices have
// 64 bits, of which the upper word has to be 0.
bool target_row(const uvec4 at, const bool wide, out uint row) {
    const uvec4 i = uvec4(at.y, at.z % SRC1.ne.y, at.w % SRC1.ne.z, 0);
    const uint id_at = address(SRC1, i) >> 2;
    row = src1_u32[id_at];
    return row < DST.ne.y && (!wide || src1_u32[id_at + 1] == 0);
}

#endif
