// SPDX-License-Identifier: MIT
// One row for each operation: a builder, the sizes that are measured and how many operations per
// second they are counted as.
#include "bench/ops/op_cases.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { HEAD = 128, HEADS = 32, KV_HEADS = 8, KV = 4096, EXPERTS = 8, USED = 2 };

static struct ggml_tensor *floats(struct ggml_context *ctx, int64_t a, int64_t b, int64_t c) {
    return ggml_new_tensor_3d(ctx, GGML_TYPE_F32, a, b, c);
}

// --- products

static struct ggml_tensor *make_mul_mat(struct ggml_context *ctx, const struct op_case *c) {
    return ggml_mul_mat(ctx, ggml_new_tensor_2d(ctx, c->sizes.type, c->sizes.k, c->sizes.m),
                        floats(ctx, c->sizes.k, c->sizes.n, 1));
}

// Weights of 8 experts, each 1/16 of MUL_MAT's, of which each column uses two.
static struct ggml_tensor *make_mul_mat_id(struct ggml_context *ctx, const struct op_case *c) {
    const int64_t m = c->sizes.m / 4, k = c->sizes.k / 4;
    return ggml_mul_mat_id(ctx, ggml_new_tensor_3d(ctx, c->sizes.type, k, m, EXPERTS),
                           floats(ctx, k, 1, c->sizes.n),
                           ggml_new_tensor_2d(ctx, GGML_TYPE_I32, USED, c->sizes.n));
}

static struct ggml_tensor *make_out_prod(struct ggml_context *ctx, const struct op_case *c) {
    return ggml_out_prod(ctx, floats(ctx, 1024, c->sizes.n, 1), floats(ctx, 1024, c->sizes.n, 1));
}

// Keys or values, heads side by side, as applications keep them: a token's are written together.
static struct ggml_tensor *cache(struct ggml_context *ctx, const struct op_case *c, int n_heads) {
    return ggml_permute(ctx, ggml_new_tensor_3d(ctx, c->sizes.type, HEAD, n_heads, KV), 0, 2, 1, 3);
}

// Heads of 128 over 4096 keys.
static struct ggml_tensor *attention(struct ggml_context *ctx, const struct op_case *c,
                                     int n_kv_heads) {
    const int64_t n = c->sizes.n;
    return ggml_flash_attn_ext(
        ctx, floats(ctx, HEAD, n, HEADS), cache(ctx, c, n_kv_heads), cache(ctx, c, n_kv_heads),
        ggml_new_tensor_2d(ctx, GGML_TYPE_F16, KV, n), 1 / sqrtf(HEAD), 0, 0);
}

// Four heads of queries share one of keys.
static struct ggml_tensor *make_shared_attention(struct ggml_context *ctx,
                                                 const struct op_case *c) {
    return attention(ctx, c, KV_HEADS);
}

static struct ggml_tensor *make_attention(struct ggml_context *ctx, const struct op_case *c) {
    return attention(ctx, c, HEADS);
}

// --- what is bound by memory: 4096 by n floats, or as named

static struct ggml_tensor *matrix(struct ggml_context *ctx, const struct op_case *c) {
    return floats(ctx, 4096, c->sizes.n, 1);
}
static struct ggml_tensor *make_add(struct ggml_context *ctx, const struct op_case *c) {
    return ggml_add(ctx, matrix(ctx, c), matrix(ctx, c));
}
static struct ggml_tensor *make_mul(struct ggml_context *ctx, const struct op_case *c) {
    return ggml_mul(ctx, matrix(ctx, c), floats(ctx, 4096, 1, 1));
}
static struct ggml_tensor *make_scale(struct ggml_context *ctx, const struct op_case *c) {
    return ggml_scale(ctx, matrix(ctx, c), 0.5f);
}
static struct ggml_tensor *make_silu(struct ggml_context *ctx, const struct op_case *c) {
    return ggml_silu(ctx, matrix(ctx, c));
}
static struct ggml_tensor *make_gelu(struct ggml_context *ctx, const struct op_case *c) {
    return ggml_gelu(ctx, matrix(ctx, c));
}
static struct ggml_tensor *make_swiglu(struct ggml_context *ctx, const struct op_case *c) {
    return ggml_swiglu_split(ctx, matrix(ctx, c), matrix(ctx, c));
}
static struct ggml_tensor *make_rms_norm(struct ggml_context *ctx, const struct op_case *c) {
    return ggml_rms_norm(ctx, matrix(ctx, c), 1e-5f);
}
static struct ggml_tensor *make_norm(struct ggml_context *ctx, const struct op_case *c) {
    return ggml_norm(ctx, matrix(ctx, c), 1e-5f);
}
static struct ggml_tensor *make_soft_max(struct ggml_context *ctx, const struct op_case *c) {
    return ggml_soft_max_ext(ctx, matrix(ctx, c), matrix(ctx, c), 0.5f, 0);
}
static struct ggml_tensor *make_rope(struct ggml_context *ctx, const struct op_case *c) {
    return ggml_rope(ctx, floats(ctx, HEAD, HEADS, c->sizes.n),
                     ggml_new_tensor_1d(ctx, GGML_TYPE_I32, c->sizes.n), HEAD, 0);
}
static struct ggml_tensor *make_copy_f16(struct ggml_context *ctx, const struct op_case *c) {
    return ggml_cast(ctx, matrix(ctx, c), GGML_TYPE_F16);
}
static struct ggml_tensor *make_transpose(struct ggml_context *ctx, const struct op_case *c) {
    return ggml_cont(ctx, ggml_transpose(ctx, matrix(ctx, c)));
}
static struct ggml_tensor *make_get_rows(struct ggml_context *ctx, const struct op_case *c) {
    return ggml_get_rows(ctx, ggml_new_tensor_2d(ctx, c->sizes.type, 4096, 1024),
                         ggml_new_tensor_1d(ctx, GGML_TYPE_I32, c->sizes.n));
}
static struct ggml_tensor *make_set_rows(struct ggml_context *ctx, const struct op_case *c) {
    return ggml_set_rows(ctx, ggml_new_tensor_2d(ctx, GGML_TYPE_F16, 4096, 1024), matrix(ctx, c),
                         ggml_new_tensor_1d(ctx, GGML_TYPE_I64, c->sizes.n));
}
static struct ggml_tensor *make_concat(struct ggml_context *ctx, const struct op_case *c) {
    return ggml_concat(ctx, matrix(ctx, c), matrix(ctx, c), 1);
}
static struct ggml_tensor *make_sum_rows(struct ggml_context *ctx, const struct op_case *c) {
    return ggml_sum_rows(ctx, matrix(ctx, c));
}
static struct ggml_tensor *make_argsort(struct ggml_context *ctx, const struct op_case *c) {
    return ggml_argsort(ctx, floats(ctx, 1024, c->sizes.n, 1), GGML_SORT_ORDER_DESC);
}
static struct ggml_tensor *make_conv_2d(struct ggml_context *ctx, const struct op_case *c) {
    (void)c;
    return ggml_conv_2d_direct(ctx, ggml_new_tensor_4d(ctx, GGML_TYPE_F16, 3, 3, 64, 64),
                               floats(ctx, 64, 64, 64), 1, 1, 1, 1, 1, 1);
}
static struct ggml_tensor *make_im2col(struct ggml_context *ctx, const struct op_case *c) {
    (void)c;
    return ggml_im2col(ctx, ggml_new_tensor_4d(ctx, GGML_TYPE_F16, 3, 3, 64, 64),
                       floats(ctx, 64, 64, 64), 1, 1, 1, 1, 1, 1, true, GGML_TYPE_F16);
}

// --- the list

// Sets of sizes that a row is measured with.
enum sizes { WEIGHTS, EXPERT_WEIGHTS, CACHE, SOME_TYPES, ROWS, FIXED };

static const struct {
    const char *op;
    const char *what;
    struct ggml_tensor *(*make)(struct ggml_context *ctx, const struct op_case *c);
    enum sizes sizes;
} rows[] = {
    {"MUL_MAT", "", make_mul_mat, WEIGHTS},
    {"MUL_MAT_ID", "2 of 8, m/4, k/4", make_mul_mat_id, EXPERT_WEIGHTS},
    {"OUT_PROD", "1024x1024", make_out_prod, ROWS},
    {"FLASH_ATTN_EXT", "128x4096, 32/8 heads", make_shared_attention, CACHE},
    {"FLASH_ATTN_EXT", "128x4096, 32/32 heads", make_attention, CACHE},
    {"ADD", "4096xn", make_add, ROWS},
    {"MUL", "4096xn by a row", make_mul, ROWS},
    {"SCALE", "4096xn", make_scale, ROWS},
    {"SILU", "4096xn", make_silu, ROWS},
    {"GELU", "4096xn", make_gelu, ROWS},
    {"SWIGLU", "4096xn", make_swiglu, ROWS},
    {"RMS_NORM", "4096xn", make_rms_norm, ROWS},
    {"NORM", "4096xn", make_norm, ROWS},
    {"SOFT_MAX", "4096xn, mask", make_soft_max, ROWS},
    {"ROPE", "128x32xn", make_rope, ROWS},
    {"CPY", "4096xn to f16", make_copy_f16, ROWS},
    {"CONT", "transposed 4096xn", make_transpose, ROWS},
    {"GET_ROWS", "4096xn", make_get_rows, SOME_TYPES},
    {"SET_ROWS", "4096xn to f16", make_set_rows, ROWS},
    {"CONCAT", "4096xn twice", make_concat, ROWS},
    {"SUM_ROWS", "4096xn", make_sum_rows, ROWS},
    {"ARGSORT", "1024xn", make_argsort, ROWS},
    {"CONV_2D", "3x3, 64 to 64, 64x64", make_conv_2d, FIXED},
    {"IM2COL", "3x3, 64, 64x64", make_im2col, FIXED},
};

enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

static const enum ggml_type weight_types[] = {
    GGML_TYPE_F32,  GGML_TYPE_F16,    GGML_TYPE_BF16,   GGML_TYPE_Q4_0,
    GGML_TYPE_Q4_1, GGML_TYPE_Q5_0,   GGML_TYPE_Q5_1,   GGML_TYPE_Q8_0,
    GGML_TYPE_Q2_K, GGML_TYPE_Q3_K,   GGML_TYPE_Q4_K,   GGML_TYPE_Q5_K,
    GGML_TYPE_Q6_K, GGML_TYPE_IQ4_NL, GGML_TYPE_IQ4_XS, GGML_TYPE_MXFP4};
static const enum ggml_type few_types[] = {GGML_TYPE_F16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0,
                                           GGML_TYPE_Q4_K};

struct list {
    struct op_case *cases;
    int n, max;
};

// A multiplication and an addition count as two. 0: bound by memory, not counted.
static double count_flops(const struct op_case *c) {
    const struct op_sizes *s = &c->sizes;
    const double n = (double)s->n;
    if (c->make == make_mul_mat) return 2.0 * (double)s->m * (double)s->k * n;
    if (c->make == make_mul_mat_id) return 2.0 * (double)s->m * (double)s->k / 16 * n * USED;
    if (c->make == make_out_prod) return 2.0 * 1024 * 1024 * n;
    if (c->make == make_attention || c->make == make_shared_attention)
        return 4.0 * HEAD * KV * HEADS * n;
    if (c->make == make_conv_2d) return 2.0 * 9 * 64 * 64 * 64 * 64;
    return 0;
}

// Counts cases beyond the room for them too, so that the caller can ask how many there are.
static void add_case(struct list *list, int row, const struct op_sizes *sizes) {
    if (list->n < list->max) {
        struct op_case *c = &list->cases[list->n];
        *c = (struct op_case){.op = rows[row].op, .make = rows[row].make, .sizes = *sizes};
        const char *type = rows[row].sizes < ROWS ? ggml_type_name(sizes->type) : "f32";
        const int used = snprintf(c->name, sizeof(c->name), "%s", type);
        char *to = c->name + used;
        const size_t room = sizeof(c->name) - (size_t)used;
        if (c->make == make_mul_mat)
            snprintf(to, room, " m=%d k=%d n=%d", (int)sizes->m, (int)sizes->k, (int)sizes->n);
        else if (rows[row].sizes == FIXED)
            snprintf(to, room, " %s", rows[row].what);
        else
            snprintf(to, room, " %s n=%d", rows[row].what, (int)sizes->n);
        c->flops = count_flops(c);
        c->has_weights = rows[row].sizes <= CACHE;
    }
    ++list->n;
}

// Whether weights of this type can have the sizes: rows must be whole blocks, and experts have a
// quarter of both.
static bool has_weights(int row, enum ggml_type type, const struct op_sizes *wanted) {
    const int64_t block = ggml_blck_size(type);
    switch (rows[row].sizes) {
    case WEIGHTS: return wanted->k % block == 0;
    case EXPERT_WEIGHTS:
        return wanted->m % 4 == 0 && wanted->k % 4 == 0 && wanted->k / 4 % block == 0;
    case CACHE: return HEAD % block == 0;
    default: return true; // rows of 4096, or no weights
    }
}

// The types that a row of the list is measured with: what the user has chosen replaces them.
static const enum ggml_type *types_of(int row, const struct op_sizes *wanted, int *out_count) {
    const bool weights = rows[row].sizes == WEIGHTS;
    *out_count = weights ? sizeof(weight_types) / sizeof(weight_types[0]) : 4;
    if (rows[row].sizes == CACHE) *out_count = 3;
    if (rows[row].sizes >= ROWS || wanted->type != GGML_TYPE_COUNT) *out_count = 1;
    if (wanted->type != GGML_TYPE_COUNT) return &wanted->type;
    return weights ? weight_types : few_types;
}

// A row of the list times types times columns: 1 (a token), 8 (weights only) and 512 (a prompt).
// What the user has chosen replaces the list.
static void add_row(struct list *list, int row, const struct op_sizes *wanted) {
    static const int64_t columns[] = {1, 8, 512};
    const bool weights = rows[row].sizes == WEIGHTS;
    int n_types;
    const enum ggml_type *types = types_of(row, wanted, &n_types);
    for (int t = 0; t < n_types; ++t) {
        for (int i = 0; i < 3; ++i) {
            struct op_sizes sizes = *wanted;
            sizes.type = types[t];
            if (sizes.n == 0) sizes.n = columns[i];
            const bool once = wanted->n != 0 || rows[row].sizes == FIXED;
            const bool skips = (once && i > 0) || (!once && i == 1 && !weights);
            if (!skips && has_weights(row, types[t], wanted)) add_case(list, row, &sizes);
        }
    }
}

int op_cases(const char *op, const struct op_sizes *sizes, struct op_case *cases, int max) {
    struct list list = {cases, 0, max};
    for (int row = 0; row < N_ROWS; ++row) {
        if (!op || strcmp(op, rows[row].op) == 0) add_row(&list, row, sizes);
    }
    return list.n;
}

// One line for a row of the list that some of its types are left out of.
static void say_row(int row, const struct op_sizes *wanted) {
    int n_types, n = 0;
    const enum ggml_type *types = types_of(row, wanted, &n_types);
    for (int t = 0; t < n_types; ++t) {
        if (has_weights(row, types[t], wanted)) continue;
        if (n++ > 0) {
            fprintf(stderr, ", %s", ggml_type_name(types[t]));
            continue;
        }
        fprintf(stderr, "ggml-bench: %s is left out: ", rows[row].op);
        if (rows[row].sizes == EXPERT_WEIGHTS)
            fprintf(stderr, "%lld/4 rows of %lld/4 elements, as experts have them, ",
                    (long long)wanted->m, (long long)wanted->k);
        else
            fprintf(stderr, "rows of %lld elements ",
                    rows[row].sizes == CACHE ? (long long)HEAD : (long long)wanted->k);
        fprintf(stderr, "aren't whole blocks of %s", ggml_type_name(types[t]));
    }
    if (n > 0) fputc('\n', stderr);
}

void op_cases_say_left_out(const char *op, const struct op_sizes *sizes) {
    for (int row = 0; row < N_ROWS; ++row) {
        const bool again = row > 0 && rows[row].sizes == rows[row - 1].sizes &&
                           strcmp(rows[row].op, rows[row - 1].op) == 0;
        if (!again && (!op || strcmp(op, rows[row].op) == 0)) say_row(row, sizes);
    }
}

bool op_cases_know(const char *op) {
    bool is_known = !op;
    for (int row = 0; row < N_ROWS && !is_known; ++row)
        is_known = strcmp(op, rows[row].op) == 0;
    if (is_known) return true;
    fprintf(stderr, "ggml-bench: no operation '%s' is measured; there are:", op);
    for (int row = 0; row < N_ROWS; ++row)
        if (row == 0 || strcmp(rows[row].op, rows[row - 1].op) != 0)
            fprintf(stderr, " %s", rows[row].op);
    fputc('\n', stderr);
    return false;
}
