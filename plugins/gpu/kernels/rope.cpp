// SPDX-License-Identifier: MIT
// rope, rope_back: pairs of channels turned by angles that grow with the token's position; a thread
// per channel that isn't turned, or per pair. timestep_embedding: cosines and sines of the angles
// themselves. Angles are formed in wide precision, so that far positions keep theirs.
#include "tensor.h"

// Words of params, and what simt/rope.c computes: reals[0] base^(-2/n_dims), [1] and [2] the pairs
// between which YaRN mixes, [3] the magnitude; numbers[0]: pairs, numbers[1]: 1: backwards. Operand
// 4, if there is one: the row that a token's result goes to, below numbers[2].
enum { N_DIMS = 1, MODE = 2, FREQ_SCALE = 6, EXT_FACTOR = 7, SECTIONS = 11, N_OFFS = 15 };
enum { MODE_NORMAL = 0, MODE_MULTI = 8, MODE_VISION = 24, MODE_IMROPE = 40 };

// Which of a token's four positions turns pair i, and the section's first pair.
GPU_FN int section_of(GPU_ARGS gpu_args &p, u32 i, GPU_PRIVATE u32 *out_start) {
    *out_start = 0;
    if ((p.params[MODE] & MODE_MULTI) == 0) return 0;
    u32 ends[4], end = 0;
    for (int s = 0; s < 4; ++s)
        ends[s] = end += (u32)p.params[SECTIONS + s];
    const u32 sector = i % end;
    // Interleaved: pairs take turns in threes, as long as the section of each lasts; the rest is
    // the fourth one's.
    if (p.params[MODE] == MODE_IMROPE) {
        const u32 turn = sector % 3;
        return sector < 3 * (u32)p.params[SECTIONS + (int)turn] ? (int)turn : 3;
    }
    int section = 0;
    while (section < 3 && sector >= ends[section])
        ++section;
    *out_start = section > 0 ? ends[section - 1] : 0;
    return section;
}

// By squaring: at most two products for each bit of the exponent.
GPU_FN gpu_wide power(gpu_wide base, u32 exponent) {
    gpu_wide result = {1.0f, 0.0f};
    for (; exponent; exponent >>= 1, base = gpu_wide_mul(base, base)) {
        if (exponent & 1) result = gpu_wide_mul(result, base);
    }
    return result;
}

// YaRN's share of the frequency as it is for pair i: 1 below the first of two pairs, 0 above the
// second.
GPU_FN gpu_wide plain_share(GPU_ARGS gpu_args &p, u32 i) {
    gpu_wide low = gpu_real(p, 1), width = gpu_wide_add(gpu_real(p, 2), gpu_wide_neg(low));
    if (!(width.high > 0.001f)) width = {0.001f, 0.0f};
    const gpu_wide ramp = gpu_wide_div(gpu_wide_add(gpu_wide_of(i), gpu_wide_neg(low)), width);
    if (ramp.high < 0.0f) return {1.0f, 0.0f};
    if (ramp.high > 1.0f) return {0.0f, 0.0f};
    return gpu_wide_add({1.0f, 0.0f}, gpu_wide_neg(ramp));
}

// Cosine and sine of an angle.
GPU_FN gpu_turn turn_by(gpu_wide radians) {
    const gpu_wide per_radian = {0.159154936671f, 6.42063824e-09f}; // 1 / (2 pi)
    return gpu_cos_sin_turns(gpu_wide_fraction(gpu_wide_mul(radians, per_radian)));
}

GPU_FN gpu_turn turn_of(GPU_ARGS gpu_args &p, u32 i, u64 token) {
    u32 start;
    const int section = section_of(p, i, &start);
    u32 exponent = i;
    if (p.params[MODE] == MODE_VISION) {
        u32 all = 0;
        for (int s = 0; s < 4; ++s)
            all += (u32)p.params[SECTIONS + s];
        exponent = i % all - start;
    }
    gpu_wide plain = power(gpu_real(p, 0), exponent);
    if (p.operands[3].data)
        plain = gpu_wide_div(plain, {((GPU_GLOBAL const float *)p.operands[3].data)[i], 0.0f});
    gpu_wide frequency = gpu_wide_mul(plain, {gpu_param(p, FREQ_SCALE), 0.0f});
    // Peng et al., YaRN (2023): fast pairs keep their frequency, slow ones are interpolated, those
    // between are mixed.
    if (gpu_param(p, EXT_FACTOR) != 0.0f) {
        const gpu_wide mix = gpu_wide_mul(plain_share(p, i), {gpu_param(p, EXT_FACTOR), 0.0f});
        const gpu_wide rest = gpu_wide_add({1.0f, 0.0f}, gpu_wide_neg(mix));
        frequency = gpu_wide_add(gpu_wide_mul(frequency, rest), gpu_wide_mul(plain, mix));
    }
    const i32 position = ((GPU_GLOBAL const i32 *)p.operands[2]
                              .data)[(u64)section * (u64)p.operands[0].ne[2] + token];
    const gpu_turn t = turn_by(gpu_wide_mul(gpu_wide_of(position), frequency));
    const float magnitude = gpu_real(p, 3).high;
    return {t.cosine * magnitude, (p.numbers[1] ? -t.sine : t.sine) * magnitude};
}

// Where a token's result goes; below 0 or not below numbers[2]: nowhere.
GPU_FN i64 row_of(GPU_ARGS gpu_args &p, u64 token) {
    GPU_ARGS gpu_operand &ids = p.operands[4];
    if (!ids.data) return (i64)token;
    return gpu_index_of(ids, (GPU_GLOBAL const u8 *)ids.data + (i64)token * ids.nb[0]);
}

GPU_KERNEL(kernel_rope, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &x = p.operands[1];
    const u32 n_pairs = (u32)p.numbers[0], n_offs = (u32)p.params[N_OFFS];
    const u64 columns = (u64)y.ne[0] - n_pairs;
    u64 column;
    const u64 row = gpu_divide(gpu_index(g), columns, &column);
    if (row >= (u64)y.ne[1] * (u64)y.ne[2] * (u64)y.ne[3]) return;
    const gpu_at at = gpu_row_at(y, row);
    GPU_GLOBAL const u8 *from = gpu_row(x, at.y, at.z, at.w);
    const i64 own_row = row_of(p, at.z);
    if (p.operands[4].data && (own_row < 0 || own_row >= p.numbers[2])) return;
    GPU_GLOBAL u8 *to = gpu_row(y, at.y, (u64)own_row, at.w);
    if (column >= n_pairs) {
        const u64 rest = column - n_pairs, channel = rest < n_offs ? rest : rest + 2 * (u64)n_pairs;
        gpu_store(y.type, to + (i64)channel * y.nb[0],
                  gpu_load(x.type, from + (i64)channel * x.nb[0]));
        return;
    }
    const bool normal = p.params[MODE] == MODE_NORMAL;
    const i64 i = (i64)n_offs + (normal ? 2 * (i64)column : (i64)column),
              k = i + (normal ? 1 : (i64)n_pairs);
    const gpu_turn turn = turn_of(p, (u32)column, at.z);
    const float a = gpu_load(x.type, from + i * x.nb[0]), b = gpu_load(x.type, from + k * x.nb[0]);
    gpu_store(y.type, to + i * y.nb[0], a * turn.cosine - b * turn.sine);
    gpu_store(y.type, to + k * y.nb[0], a * turn.sine + b * turn.cosine);
}

// A thread per frequency of a timestep, and per element that is left of an odd row. reals[0]: the
// ratio of neighbouring frequencies.
GPU_KERNEL(kernel_timestep_embedding, 256, gpu_args, p) {
    GPU_THREAD(g);
    GPU_ARGS gpu_operand &y = p.operands[0], &timesteps = p.operands[1];
    const u64 half_row = (u64)y.ne[0] / 2;
    u64 column;
    const u64 row = gpu_divide(gpu_index(g), ((u64)y.ne[0] + 1) / 2, &column);
    if (row >= (u64)y.ne[1]) return;
    GPU_GLOBAL u8 *to = gpu_row(y, row, 0, 0);
    if (column >= half_row) {
        *(GPU_GLOBAL float *)(to + 2 * (i64)half_row * y.nb[0]) = 0.0f;
        return;
    }
    const gpu_at at = {row, 0, 0, 0};
    const gpu_wide timestep = {*(GPU_GLOBAL const float *)gpu_address(timesteps, at), 0.0f};
    const gpu_turn turn = turn_by(gpu_wide_mul(timestep, power(gpu_real(p, 0), (u32)column)));
    *(GPU_GLOBAL float *)(to + (i64)column * y.nb[0]) = turn.cosine;
    *(GPU_GLOBAL float *)(to + (i64)(column + half_row) * y.nb[0]) = turn.sine;
}
