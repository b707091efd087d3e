// SPDX-License-Identifier: MIT
// rope, rope_back: pairs of channels turned by angles that grow with the token's position. Angles
// are formed in double precision, so that far positions keep theirs.
#include <math.h>

#include "ggml-shape.h"
#include "ops/rope/rope.h"
#include "simd/vmath.h"

struct rope {
    int64_t n_pairs;
    int n_dims;
    int mode;
    int n_offs;
    int64_t step, distance; // pair i has the channels first + i * step and that + distance
    double base, freq_scale, ext_factor, attn_factor;
    double low, high; // YaRN: pairs below low keep their frequency, above high are scaled
    int64_t section_end[4];
    float sign; // -1: backwards
    const float *factors;
};

// The pair that turns `beta` times over the context that the model was trained for.
static double correction_dim(int n_dims, int n_ctx, double beta, double base) {
    return n_dims * log(n_ctx / (beta * 2.0 * 3.14159265358979323846)) / (2.0 * log(base));
}

// Parameters of the node, with YaRN's bounds and magnitude where it is used (Peng et al., 2023).
static struct rope read_params(const struct ggml_tensor *dst) {
    struct rope r = {
        .n_dims = ggml_get_op_params_i32(dst, GGML_ROPE_SLOT_N_DIMS),
        .mode = ggml_get_op_params_i32(dst, GGML_ROPE_SLOT_MODE),
        .n_offs = ggml_get_op_params_i32(dst, GGML_ROPE_SLOT_N_OFFS),
        .base = (double)ggml_get_op_params_f32(dst, GGML_ROPE_SLOT_FREQ_BASE),
        .freq_scale = (double)ggml_get_op_params_f32(dst, GGML_ROPE_SLOT_FREQ_SCALE),
        .ext_factor = (double)ggml_get_op_params_f32(dst, GGML_ROPE_SLOT_EXT_FACTOR),
        .attn_factor = (double)ggml_get_op_params_f32(dst, GGML_ROPE_SLOT_ATTN_FACTOR),
        .sign = dst->op == GGML_OP_ROPE_BACK ? -1.0f : 1.0f,
        .factors = dst->src[2] ? dst->src[2]->data : NULL,
    };
    const bool vision = r.mode == GGML_ROPE_TYPE_VISION;
    const bool normal = r.mode == GGML_ROPE_TYPE_NORMAL;
    r.n_pairs = vision ? r.n_dims : r.n_dims / 2;
    r.step = normal ? 2 : 1;
    r.distance = normal ? 1 : r.n_pairs;
    int64_t end = 0;
    for (int s = 0; s < 4; ++s) {
        end += ggml_get_op_params_i32(dst, GGML_ROPE_SLOT_SECTIONS + (uint32_t)s);
        r.section_end[s] = end;
    }
    if (r.ext_factor != 0.0) {
        const int n_ctx = ggml_get_op_params_i32(dst, GGML_ROPE_SLOT_N_CTX_ORIG);
        const double fast = (double)ggml_get_op_params_f32(dst, GGML_ROPE_SLOT_BETA_FAST);
        const double slow = (double)ggml_get_op_params_f32(dst, GGML_ROPE_SLOT_BETA_SLOW);
        r.low = fmax(0.0, floor(correction_dim(r.n_dims, n_ctx, fast, r.base)));
        r.high = fmin(r.n_dims - 1, ceil(correction_dim(r.n_dims, n_ctx, slow, r.base)));
        r.attn_factor *= 1.0 + 0.1 * log(1.0 / r.freq_scale);
    }
    return r;
}

// Which of a token's four positions turns pair i: 0 to 3.
static int section_of(const struct rope *r, int64_t i, int64_t *out_start) {
    const int64_t sector = i % r->section_end[3];
    *out_start = 0;
    if (r->mode == GGML_ROPE_TYPE_IMROPE) {
        const int64_t turn = sector % 3;
        const int64_t size = r->section_end[turn] - (turn > 0 ? r->section_end[turn - 1] : 0);
        return sector < 3 * size ? (int)turn : 3;
    }
    int section = 0;
    while (section < 3 && sector >= r->section_end[section])
        ++section;
    *out_start = section > 0 ? r->section_end[section - 1] : 0;
    return section;
}

// Positions of several sections, as in models for images and videos.
static bool is_multi(const struct rope *r) {
    return (r->mode & GGML_ROPE_TYPE_MROPE) != 0;
}

// What pair i turns by per position: angle = position * frequency.
static double pair_frequency(const struct rope *r, int64_t i) {
    int64_t exponent = i;
    if (r->mode == GGML_ROPE_TYPE_VISION) {
        int64_t start;
        section_of(r, i, &start);
        exponent = i % r->section_end[3] - start;
    }
    double plain = pow(r->base, -2.0 * (double)exponent / r->n_dims);
    if (r->factors) plain /= (double)r->factors[i];
    const double scaled = plain * r->freq_scale;
    if (r->ext_factor == 0.0) return scaled;
    const double ramp = ((double)i - r->low) / fmax(0.001, r->high - r->low);
    const double mix = (1.0 - fmin(1.0, fmax(0.0, ramp))) * r->ext_factor;
    return scaled * (1.0 - mix) + plain * mix;
}

// Angles in quarters of a turn: the whole ones, of 0 to 3, are `quarters`, and `rests` the rest in
// radians, at most pi / 4. Positions may be far: both come from double precision.
static void fill_angles(const struct rope *r, const double *frequency, const int32_t *position,
                        int64_t token, int64_t n_tokens, float *rests, float *quarters) {
    for (int64_t i = 0; i < r->n_pairs; ++i) {
        int64_t start;
        const int64_t section = is_multi(r) ? section_of(r, i, &start) : 0;
        const double angle = (double)position[section * n_tokens + token] * frequency[i];
        const double turns = angle * 0.63661977236758134308; // 2 / pi
        const double whole = floor(turns + 0.5);
        rests[i] = (float)((turns - whole) * 1.57079632679489661923);
        quarters[i] = (float)(whole - 4.0 * floor(whole * 0.25));
    }
}

// Cosines and sines of a token's pairs, in the place of their angles.
static void fill_turns(const struct rope *r, const double *frequency,
                       const struct ggml_tensor *positions, int64_t token, int64_t n_tokens,
                       float *cosines, float *sines) {
    const float size = (float)r->attn_factor, sign = r->sign;
    fill_angles(r, frequency, positions->data, token, n_tokens, cosines, sines);
    CPU_INDEPENDENT
    for (int64_t i = 0; i < r->n_pairs; ++i) {
        float cosine, sine;
        cpu_cos_sin(cosines[i], (int32_t)sines[i], &cosine, &sine);
        cosines[i] = size * cosine;
        sines[i] = size * sine * sign;
    }
}

// Turns all pairs of a row in place.
static void turn_pairs(const struct rope *r, float *y, const float *cosines, const float *sines) {
    float *first = y + r->n_offs;
    float *second = first + r->distance;
    if (r->step == 2) {
        CPU_INDEPENDENT
        for (int64_t i = 0; i < r->n_pairs; ++i) {
            float *pair = first + 2 * i; // a vector is shuffled where both are seen to be in one
            const float a = pair[0];
            const float b = pair[1];
            pair[0] = a * cosines[i] - b * sines[i];
            pair[1] = a * sines[i] + b * cosines[i];
        }
        return;
    }
    CPU_INDEPENDENT
    for (int64_t i = 0; i < r->n_pairs; ++i) {
        const float a = first[i];
        const float b = second[i];
        first[i] = a * cosines[i] - b * sines[i];
        second[i] = a * sines[i] + b * cosines[i];
    }
}

// Copies a row and turns its pairs; F16 goes by way of floats.
static void turn_row(const struct rope *r, const struct ggml_tensor *dst, struct ggml_row at,
                     float *row, const float *cosines, const float *sines) {
    const char *x = ggml_row_data(dst->src[0], at);
    char *y = ggml_row_data(dst, at);
    if (dst->type == GGML_TYPE_F16) {
        cpu_f16_to_f32(row, (const ggml_fp16_t *)(const void *)x, dst->ne[0]);
        turn_pairs(r, row, cosines, sines);
        cpu_f32_to_f16((ggml_fp16_t *)(void *)y, row, dst->ne[0]);
        return;
    }
    if (x != y) memcpy(y, x, (size_t)dst->ne[0] * sizeof(float));
    turn_pairs(r, (float *)(void *)y, cosines, sines);
}

// Frequencies are formed once per thread, angles once per token, as all heads of a token share
// them.
enum ggml_status CPU_FN(cpu_rope)(const struct cpu_task *task) {
    const struct ggml_tensor *dst = task->dst;
    const struct rope r = read_params(dst);
    const int64_t n = dst->ne[0];
    double *frequency = (double *)task->work + (size_t)task->ith * rope_work_doubles(n);
    float *cosines = (float *)(frequency + n);
    float *sines = cosines + n;
    float *row = sines + n;
    int64_t begin, end;
    cpu_task_range(task, ggml_nrows(dst), &begin, &end);
    if (begin == end) return GGML_STATUS_SUCCESS;
    for (int64_t i = 0; i < r.n_pairs; ++i)
        frequency[i] = pair_frequency(&r, i);
    int64_t token = -1;
    for (int64_t i = begin; i < end; ++i) {
        const struct ggml_row at = ggml_row_at(dst, i);
        if (at.i2 != token) {
            token = at.i2;
            fill_turns(&r, frequency, dst->src[1], token, dst->ne[2], cosines, sines);
        }
        turn_row(&r, dst, at, row, cosines, sines);
    }
    return GGML_STATUS_SUCCESS;
}
