// SPDX-License-Identifier: MIT
// This level's kernels in the form of kernels.h. Compiled once per level, as the kernels are.
#include "kernels.h"

#include "gemm/bf16_pairs.h"
#include "gemm/gemm.h"
#include "gemm/mul_vec.h"
#include "ggml-cpu.h"
#include "ggml-plugin-note.h"
#include "ops/attention/attention.h"
#include "ops/attention/attention_inner.h"
#include "ops/mul_mat/rounded/gemm_rounded.h"
#include "ops/mul_mat/rounded/mul_repacked.h"
#include "ops/mul_mat/rounded/mul_rounded.h"
#include "types/unpack.h"

// Features that the level can do without.
static bool has_bf16(void) {
#if defined(__x86_64__)
    return kernel_has(GGML_CPU_X86_64_AVX512_BF16);
#else
    return true;
#endif
}

static bool has_avx_vnni(void) {
#if defined(__x86_64__)
    return LANES == 8 && kernel_has(GGML_CPU_X86_64_AVX_VNNI);
#else
    return false;
#endif
}

static void unpack(enum ggml_type type, const void *x, float *y, int64_t n) {
    CPU_FN(cpu_unpack)(type)(x, y, n);
}

static void pack(enum ggml_type type, const float *x, void *y, int64_t n) {
    CPU_FN(cpu_pack)(type)(x, y, n);
}

static void map(enum ggml_unary_op op, const float *x, float *y, int64_t n) {
    const size_t size = (size_t)n * sizeof(float);
    struct ggml_tensor from = {.type = GGML_TYPE_F32,
                               .ne = {n, 1, 1, 1},
                               .nb = {sizeof(float), size, size, size},
                               .data = (void *)(uintptr_t)x};
    struct ggml_tensor to = from;
    to.op = GGML_OP_UNARY;
    to.op_params[0] = op;
    to.src[0] = &from;
    to.data = y;
    CPU_FN(cpu_unary)(&(struct cpu_task){.dst = &to, .nth = 1});
}

extern const struct ggml_type_traits_cpu CPU_FN(cpu_type_traits)[];

static bool dot(enum ggml_type type, const void *x, const void *y, int n, float *out_sum) {
    const ggml_vec_dot_t function = CPU_FN(cpu_type_traits)[type].vec_dot;
    if (function) function(n, out_sum, 0, x, 0, y, 0, 1);
    return function != NULL;
}

static struct gemm_rows open_product(const struct kernel_product *p, struct gemm_column *columns) {
    for (int64_t c = 0; c < p->n_columns; ++c)
        columns[c] = (struct gemm_column){p->x + c * p->x_stride, p->y + c * p->y_stride};
    return (struct gemm_rows){p->rows, p->row_stride, p->type, p->k, false};
}

static bool multiply_vector(const struct kernel_product *p) {
    struct gemm_column columns[KERNEL_MAX_COLUMNS];
    const struct gemm_rows rows = open_product(p, columns);
    return CPU_FN(cpu_mul_vec)(&rows, 0, p->n_rows, columns, p->n_columns);
}

static bool is_rounded(enum ggml_type type) {
    switch ((int)type) {
#define CPU_BLOCK_ROW(NAME, ...) case GGML_TYPE_##NAME:
#include "ops/mul_mat/rounded/rounded_list.inl"
        return true;
    default: return false;
    }
}

static bool multiply_rounded(const struct kernel_product *p) {
    struct gemm_column columns[KERNEL_MAX_COLUMNS];
    if (!is_rounded(p->type) || p->n_columns > ROUNDED_MOST) return false;
    const struct gemm_rows rows = open_product(p, columns);
    CPU_FN(cpu_round_columns)(p->type, false, columns, p->n_columns, p->k, p->work);
    const struct gemm_piece all = gemm_all(0, p->n_rows);
    CPU_FN(cpu_mul_rounded)(&rows, &all, columns, p->n_columns, p->work);
    return true;
}

static bool multiply_repacked(const struct kernel_product *p) {
    struct gemm_column columns[KERNEL_MAX_COLUMNS];
    const int together = CPU_FN(cpu_repacked_rows)(p->type);
    if (together == 0 || p->n_columns > ROUNDED_MOST || p->n_rows % together) return false;
    struct gemm_rows rows = open_product(p, columns);
    rows.repacked = true;
    CPU_FN(cpu_round_columns)(p->type, true, columns, p->n_columns, p->k, p->work);
    const struct gemm_piece all = gemm_all(0, p->n_rows);
    CPU_FN(cpu_mul_repacked)(&rows, &all, columns, p->n_columns, p->work);
    return true;
}

static void round_floats(const float *x, int8_t *numbers, float *scales, int64_t n) {
    struct rounded part;
    for (int64_t i = 0; i < n; i += ROUNDED_DEPTH) {
        const int64_t k = MIN(n - i, ROUNDED_DEPTH);
        CPU_FN(cpu_round_columns)
        (GGML_TYPE_Q8_0, false, &(struct gemm_column){.x = x + i}, 1, k, &part);
        memcpy(numbers + i, part.numbers, (size_t)k);
        memcpy(scales + i / ROUNDED_GROUP, part.scales, (size_t)k / ROUNDED_GROUP * sizeof(float));
    }
}

static bool multiply_tiles(const struct kernel_product *p) {
    struct gemm_column columns[KERNEL_MAX_COLUMNS];
    const struct gemm_rows rows = open_product(p, columns);
    CPU_FN(cpu_gemm)(&rows, 0, (int)p->n_rows, columns, p->n_columns, p->work);
    return true;
}

static bool multiply_packed(const struct kernel_product *p) {
    struct gemm_column columns[KERNEL_MAX_COLUMNS];
    const struct gemm_rows rows = open_product(p, columns);
    CPU_FN(cpu_gemm_packed)(&rows, 0, p->n_rows, columns, p->n_columns, p->work);
    return true;
}

static bool multiply_pairs(const struct kernel_product *p) {
    struct gemm_column columns[KERNEL_MAX_COLUMNS];
    if (!CPU_BF16_PAIRS || !has_bf16() || p->type != GGML_TYPE_BF16 || p->k % 2 ||
        p->row_stride % 4)
        return false;
    const struct gemm_rows rows = open_product(p, columns);
    CPU_FN(cpu_gemm_pairs)(&rows, 0, p->n_rows, columns, p->n_columns, p->work);
    return true;
}

static bool multiply_in_strips(const struct kernel_product *p, bool vnni) {
    struct gemm_column columns[KERNEL_MAX_COLUMNS];
    if (!CPU_STRIPS || ggml_blck_size(p->type) == 1) return false;
    const struct gemm_rows rows = open_product(p, columns);
    const int64_t across = strips_across(p->n_columns), deep = strips_deep(p->k);
    const int parts = strip_parts(p->type);
    struct strip_panel *panel = p->work;
    struct strip *strips = (struct strip *)(void *)(panel + 1);
    for (int64_t d = 0; d < deep; ++d) {
        for (int64_t s = 0; s < across; ++s)
            CPU_FN(cpu_round_strip)
        (p->type, columns + s * STRIP_COLUMNS, MIN(p->n_columns - s * STRIP_COLUMNS, STRIP_COLUMNS),
         d * STRIP_DEPTH, MIN(p->k - d * STRIP_DEPTH, STRIP_DEPTH),
         strips + (d * across + s) * parts);
    }
    CPU_FN(cpu_gemm_rounded)
    (&rows, 0, p->n_rows, columns, p->n_columns, 0, p->k,
     &(struct strips){strips, across * parts, vnni}, panel);
    return true;
}

static bool multiply_strips(const struct kernel_product *p) {
    return multiply_in_strips(p, false);
}

static bool multiply_dots(const struct kernel_product *p) {
    return has_avx_vnni() && multiply_in_strips(p, true);
}

static struct attention_lines open_lines(const struct kernel_product *p, int64_t row, int n) {
    return (struct attention_lines){
        .type = p->type,
        .data = p->rows + (size_t)row * p->row_stride,
        .stride = p->row_stride,
        .size = p->k,
        .n = n,
    };
}

static bool multiply_scores(const struct kernel_product *p) {
    if (ggml_blck_size(p->type) > 1 && p->type != GGML_TYPE_Q8_0) return false;
    const int64_t stride = attention_padded(p->k);
    const bool blocks = p->type == GGML_TYPE_Q8_0;
    float *queries = p->work, scores[KERNEL_MAX_COLUMNS][ATTENTION_KEYS];
    float word_scales[KERNEL_MAX_COLUMNS];
    int16_t *words = p->work;
    memset(queries, 0, (size_t)(p->n_columns * stride) * sizeof(float));
    for (int64_t c = 0; c < p->n_columns; ++c) {
        const float *x = p->x + c * p->x_stride;
        if (blocks)
            word_scales[c] = CPU_FN(cpu_attention_round)(x, p->k, words + c * stride);
        else
            memcpy(queries + c * stride, x, (size_t)p->k * sizeof(float));
    }
    const struct attention_words rounded = {words, stride, word_scales};
    for (int64_t r = 0; r < p->n_rows; r += ATTENTION_KEYS) {
        const int n = (int)MIN(p->n_rows - r, ATTENTION_KEYS);
        const struct attention_lines keys = open_lines(p, r, n);
        const int n_queries = (int)p->n_columns;
        if (blocks) {
            CPU_FN(cpu_attention_block_scores)
            (&keys, &rounded, n_queries, scores[0], ATTENTION_KEYS);
        } else {
            CPU_FN(cpu_attention_scores)
            (&keys, queries, stride, n_queries, scores[0], ATTENTION_KEYS);
        }
        for (int64_t c = 0; c < p->n_columns; ++c)
            memcpy(p->y + c * p->y_stride + r, scores[c], (size_t)n * sizeof(float));
    }
    return true;
}

static bool multiply_sums(const struct kernel_product *p) {
    if (ggml_blck_size(p->type) > 1 && p->type != GGML_TYPE_Q8_0) return false;
    const int64_t stride = attention_padded(p->k);
    float *sums = p->work;
    memset(sums, 0, (size_t)(p->n_columns * stride) * sizeof(float));
    for (int64_t r = 0; r < p->n_rows; r += ATTENTION_KEYS) {
        const int n = (int)MIN(p->n_rows - r, ATTENTION_KEYS);
        const struct attention_lines values = open_lines(p, r, n);
        float weights[KERNEL_MAX_COLUMNS][ATTENTION_KEYS];
        for (int64_t c = 0; c < p->n_columns; ++c)
            memcpy(weights[c], p->x + c * p->x_stride + r, (size_t)n * sizeof(float));
        (p->type == GGML_TYPE_Q8_0 ? CPU_FN(cpu_attention_block_sums) : CPU_FN(cpu_attention_sums))(
            &values, weights[0], ATTENTION_KEYS, (int)p->n_columns, sums, stride);
    }
    for (int64_t c = 0; c < p->n_columns; ++c)
        memcpy(p->y + c * p->y_stride, sums + c * stride, (size_t)p->k * sizeof(float));
    return true;
}

extern const struct kernel_table CPU_FN(kernel_table);
const struct kernel_table CPU_FN(kernel_table) = {
    .lanes = LANES,
    .unpack = unpack,
    .pack = pack,
    .map = map,
    .round = round_floats,
    .dot = dot,
    .repacked_rows = CPU_FN(cpu_repacked_rows),
    .multiply = {[KERNEL_VECTOR] = multiply_vector,
                 [KERNEL_ROUNDED] = multiply_rounded,
                 [KERNEL_TILES] = multiply_tiles,
                 [KERNEL_PACKED] = multiply_packed,
                 [KERNEL_PAIRS] = multiply_pairs,
                 [KERNEL_STRIPS] = multiply_strips,
                 [KERNEL_DOTS] = multiply_dots,
                 [KERNEL_REPACKED] = multiply_repacked,
                 [KERNEL_SCORES] = multiply_scores,
                 [KERNEL_SUMS] = multiply_sums},
};
