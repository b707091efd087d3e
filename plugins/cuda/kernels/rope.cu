// SPDX-License-Identifier: MIT
// rope, rope_back: pairs of channels turned by angles that grow with the token's position; a thread
// per channel that isn't turned, or per pair. Angles are formed in double precision, so that far
// positions keep theirs.
#include "tensor.h"

// Words of params, and what ops/rope.c computes: reals[0] base^(-2/n_dims), [1] and [2] the pairs
// between which YaRN mixes, [3] the magnitude; numbers[0]: pairs, numbers[1]: 1: backwards.
enum { N_DIMS = 1, MODE = 2, FREQ_SCALE = 6, EXT_FACTOR = 7, SECTIONS = 11, N_OFFS = 15 };
enum { MODE_NORMAL = 0, MODE_MULTI = 8, MODE_VISION = 24, MODE_IMROPE = 40 };

// Which of a token's four positions turns pair i, and the section's first pair.
GPU_FN int section_of(const cuda_args &p, u32 i, u32 *out_start) {
    *out_start = 0;
    if ((p.params[MODE] & MODE_MULTI) == 0) return 0;
    u32 ends[4], end = 0;
    for (int s = 0; s < 4; ++s)
        ends[s] = end += (u32)p.params[SECTIONS + s];
    const u32 sector = i % end;
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

GPU_FN double power(double base, u32 exponent) {
    double result = 1.0;
    for (; exponent; exponent >>= 1, base *= base) {
        if (exponent & 1) result *= base;
    }
    return result;
}

GPU_FN gpu_turn turn_of(const cuda_args &p, u32 i, u64 token) {
    u32 start;
    const int section = section_of(p, i, &start);
    u32 exponent = i;
    if (p.params[MODE] == MODE_VISION) {
        u32 all = 0;
        for (int s = 0; s < 4; ++s)
            all += (u32)p.params[SECTIONS + s];
        exponent = i % all - start;
    }
    double plain = power(p.reals[0], exponent);
    if (p.operands[3].data) plain /= (double)((const float *)p.operands[3].data)[i];
    const double scaled = plain * (double)gpu_param(p, FREQ_SCALE),
                 ext = (double)gpu_param(p, EXT_FACTOR);
    double frequency = scaled;
    if (ext != 0.0) {
        const double width = p.reals[2] - p.reals[1],
                     ramp = ((double)i - p.reals[1]) / (width > 0.001 ? width : 0.001);
        const double mix = (1.0 - (ramp < 0.0 ? 0.0 : ramp > 1.0 ? 1.0 : ramp)) * ext;
        frequency = scaled * (1.0 - mix) + plain * mix;
    }
    const i32 position =
        ((const i32 *)p.operands[2].data)[(u64)section * (u64)p.operands[0].ne[2] + token];
    const float turns = gpu_turn_fraction((double)position * frequency * 0.15915494309189533577);
    const gpu_turn t = gpu_cos_sin_turns(turns);
    const float magnitude = (float)p.reals[3];
    return {t.cosine * magnitude, (p.numbers[1] ? -t.sine : t.sine) * magnitude};
}

GPU_KERNEL(cuda_rope, 256, cuda_args, p) {
    const cuda_operand &y = p.operands[0], &x = p.operands[1];
    const u32 n_pairs = (u32)p.numbers[0], n_offs = (u32)p.params[N_OFFS];
    const u64 columns = (u64)y.ne[0] - n_pairs;
    u64 column;
    const u64 row = gpu_divide(gpu_index(), columns, &column);
    if (row >= (u64)y.ne[1] * (u64)y.ne[2] * (u64)y.ne[3]) return;
    const gpu_at at = gpu_row_at(y, row);
    const u8 *from = gpu_row(x, at.y, at.z, at.w);
    u8 *to = gpu_row(y, at.y, at.z, at.w);
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
