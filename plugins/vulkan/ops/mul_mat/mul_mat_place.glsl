// SPDX-License-Identifier: MIT
// Which rows and columns of a product a group computes. With ID defined the columns are the
// (slot, token) pairs of mul_mat_id, each with the matrix that src2 names; otherwise those of
// src1, with the matrix of src0 that is broadcast over them. GROUPED: the columns of a group have
// one matrix, by src3; else a group has one column.
#ifndef MUL_MAT_PLACE_GLSL
#define MUL_MAT_PLACE_GLSL

struct Tile {
    uint row;     // first
    uint rows;    // how many exist
    uint column;  // first
    uint columns; // 0: nothing to do
    uint a;       // address of the first row of src0
    uvec2 batch;
    bool valid;   // false: an id names no matrix, the results are NaN
};

// Groups take the tiles in squares of BAND rows of tiles, column by column, so that what they
// read at about the same time stays in the caches.
uvec2 tile_order(const uint i, const uvec2 tiles) {
    const uint BAND = 8;
    const uint in_band = i % (BAND * tiles.y);
    const uint first = i / (BAND * tiles.y) * BAND;
    const uint height = min(BAND, tiles.x - first);
    return uvec2(first + in_band % height, in_band / height);
}

#ifdef ID

#ifdef GROUPED
// The table that group_pairs.comp wrote: number(0) tiles, then pairs.
const uint TILE_WORDS = 3;

uint pair_at(const Tile tile, const uint c) {
    return src3_u32[(SRC3.at.x >> 2) + TILE_WORDS * number(0) + tile.column + c];
}
#else
uint pair_at(const Tile tile, const uint c) { return tile.column; }
#endif

// The tile of a group; `columns` is 0 for a group that has nothing to do.
Tile tile_of(const uint group, const uint rows, const uint columns) {
    const uint row_tiles = (DST.ne.x + rows - 1u) / rows;
    const uint place = group / row_tiles;
    Tile tile;
    tile.columns = 0u;
    tile.row = group % row_tiles * rows;
    tile.rows = min(rows, DST.ne.x - tile.row);
#ifdef GROUPED
    if (place >= number(0)) return tile;
    const uint at = (SRC3.at.x >> 2) + TILE_WORDS * place;
    const uint expert = src3_u32[at];
    tile.column = src3_u32[at + 1];
    tile.columns = src3_u32[at + 2];
#else
    if (place >= DST.ne.y * DST.ne.z) return tile;
    const uvec2 pair = uvec2(place % DST.ne.y, place / DST.ne.y);
    const uint expert = src2_u32[(SRC2.at.x + pair.x * SRC2.nb.x + pair.y * SRC2.nb.y) >> 2];
    tile.column = place;
    tile.columns = 1u;
#endif
    tile.valid = expert < SRC0.ne.z;
    tile.a = SRC0.at.x + (tile.valid ? expert : 0u) * SRC0.nb.z + tile.row * SRC0.nb.y;
    return tile;
}

uint tile_b(const Tile tile, const uint c) {
    const uint pair = pair_at(tile, c);
    const uint slot = pair % DST.ne.y % SRC1.ne.y;
    return SRC1.at.x + slot * SRC1.nb.y + pair / DST.ne.y * SRC1.nb.z;
}

uint tile_dst(const Tile tile, const uint c) {
    const uint pair = pair_at(tile, c);
    return DST.at.x + pair % DST.ne.y * DST.nb.y + pair / DST.ne.y * DST.nb.z;
}

#else

// Rows and columns of the result that a group computes; columns = 0: none. Tiles that follow each
// other share weights, which are then in the cache.
Tile tile_of(const uint group, const uint rows, const uint columns) {
    const uvec2 tiles = (DST.ne.xy + uvec2(rows, columns) - 1u) / uvec2(rows, columns);
    const uint per_matrix = tiles.x * tiles.y;
    Tile tile;
    tile.columns = 0u;
    if (group >= per_matrix * DST.ne.z * DST.ne.w) return tile;
    const uint matrix = group / per_matrix;
    const uvec2 place = tile_order(group % per_matrix, tiles) * uvec2(rows, columns);
    tile.row = place.x;
    tile.column = place.y;
    tile.batch = uvec2(matrix % DST.ne.z, matrix / DST.ne.z);
    tile.valid = true;
    tile.rows = min(rows, DST.ne.x - tile.row);
    tile.columns = min(columns, DST.ne.y - tile.column);
    const uvec2 weights = tile.batch / (DST.ne.zw / SRC0.ne.zw);
    tile.a = SRC0.at.x + weights.x * SRC0.nb.z + weights.y * SRC0.nb.w + tile.row * SRC0.nb.y;
    return tile;
}

uint tile_b(const Tile tile, const uint c) {
    return SRC1.at.x + (tile.column + c) * SRC1.nb.y + tile.batch.x * SRC1.nb.z +
           tile.batch.y * SRC1.nb.w;
}

uint tile_dst(const Tile tile, const uint c) {
    return DST.at.x + (tile.column + c) * DST.nb.y + tile.batch.x * DST.nb.z +
           tile.batch.y * DST.nb.w;
}

#endif
#endif
