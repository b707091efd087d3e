// SPDX-License-Identifier: MIT
// A level's kernels against the scalar ones. What moves bits has to give the same bits; sums may be
// added in another order, so they are compared with the sum in double precision of what the scalar
// unpacker makes of the rows.
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "ggml-cpu.h"
#include "kernels.h"
#include "types/repacked.h"

enum {
    GUARD = 64, // bytes after each result that have to stay as they are
    POISON = 0xA5,
    MAX_K = 1100,
    MAX_ROWS = 52,
    ALIGNMENT = 64,
    ROUND = 32, // floats that share a scale
};

struct check {
    const struct kernel_table *table, *scalar;
    FILE *log;
    int64_t n_checks;
    int n_wrong;
    bool wrong; // the kernel that is looked at
    uint32_t random;
};

static void *get_memory(size_t size) {
    void *memory = malloc(size);
    if (!memory) abort();
    return memory;
}

// The first difference of a kernel is told, and counted.
static void complain(struct check *check, const char *format, ...) {
    if (check->wrong) return;
    check->wrong = true;
    ++check->n_wrong;
    va_list arguments;
    va_start(arguments, format);
    vfprintf(check->log, format, arguments);
    va_end(arguments);
    fputc('\n', check->log);
}

// --- conversions ---------------------------------------------------------------------------------

static bool same_float(float a, float b) {
    return memcmp(&a, &b, sizeof(a)) == 0 || (isnan(a) && isnan(b));
}

// Random bits, so that scales are NaN, infinite, subnormal or zero too; in memory of just the size.
static void check_unpack(struct check *check, enum ggml_type type, int64_t n) {
    const size_t size = ggml_row_size(type, n);
    char *x = get_memory(size + 1);
    float *y = get_memory((size_t)n * sizeof(float) + GUARD);
    float *expected = get_memory((size_t)n * sizeof(float));
    for (int round = 0; round < 24; ++round) {
        if (round % 4 == 3)
            kernel_random_rows(type, x, size, &check->random);
        else
            kernel_random_rows(GGML_TYPE_I8, x, size, &check->random);
        memset(y, POISON, (size_t)n * sizeof(float) + GUARD);
        check->scalar->unpack(type, x, expected, n);
        check->table->unpack(type, x, y, n);
        for (int64_t i = 0; i < n; ++i) {
            if (!same_float(y[i], expected[i]))
                complain(check, "unpack %s, %" PRId64 " elements: %a at %" PRId64 ", not %a",
                         ggml_type_name(type), n, (double)y[i], i, (double)expected[i]);
        }
        for (int i = 0; i < GUARD; ++i) {
            if (((uint8_t *)(y + n))[i] != POISON)
                complain(check, "unpack %s, %" PRId64 " elements: writes beyond the last",
                         ggml_type_name(type), n);
        }
        ++check->n_checks;
    }
    free(x), free(y), free(expected);
}

static const float edges[] = {
    0.0f,      -0.0f,      INFINITY,   -INFINITY,   NAN,         FLT_MAX,      -FLT_MAX, FLT_MIN,
    -FLT_MIN,  0x1p-149f,  -0x1p-149f, 0x1.8p-140f, 65504.0f,    65519.9f,     65520.0f, 0x1p-24f,
    0x1p-25f,  0x1.8p-25f, 1.0f,       -1.0f,       88.7f,       88.73f,       89.5f,    -87.3f,
    -87.4f,    -103.9f,    -104.1f,    0.6249999f,  0.625f,      20.0f,        20.1f,    1.0009765f,
    0x1.008p0, 0x1.01p0f,  0x1.03p0f,  2147483520., 2147483648., -2147483904., 3e9f,     -3e9f,
};

enum { N_EDGES = sizeof(edges) / sizeof(edges[0]) };

static float random_float(struct check *check, float scale) {
    float x;
    kernel_random_floats(&x, 1, &check->random);
    return x * scale;
}

static void fill_with_edges(struct check *check, float *x, int64_t n, float scale) {
    for (int64_t i = 0; i < n; ++i) {
        const uint32_t at = (uint32_t)fabsf(random_float(check, 3 * N_EDGES));
        x[i] = at < N_EDGES ? edges[at] : random_float(check, scale);
    }
}

// NaN has many codes.
static bool same_code(enum ggml_type type, const char *a, const char *b) {
    const size_t size = ggml_type_size(type);
    if (memcmp(a, b, size) == 0) return true;
    uint16_t x, y;
    memcpy(&x, a, sizeof(x)), memcpy(&y, b, sizeof(y));
    const uint16_t infinity = type == GGML_TYPE_F16 ? 0x7C00 : 0x7F80;
    return size == sizeof(x) && (x & 0x7FFF) > infinity && (y & 0x7FFF) > infinity;
}

static void check_pack(struct check *check, enum ggml_type type, int64_t n) {
    const size_t size = ggml_row_size(type, n);
    float *x = get_memory((size_t)n * sizeof(float));
    char *y = get_memory(size + GUARD), *expected = get_memory(size);
    for (int round = 0; round < 24; ++round) {
        fill_with_edges(check, x, n, round % 2 ? 1e-5f : 1e3f);
        memset(y, POISON, size + GUARD);
        check->scalar->pack(type, x, expected, n);
        check->table->pack(type, x, y, n);
        for (int64_t i = 0; i < n; ++i) {
            const size_t at = (size_t)i * ggml_type_size(type);
            if (!same_code(type, y + at, expected + at))
                complain(check, "pack %s: another code for %a", ggml_type_name(type), (double)x[i]);
        }
        for (int i = 0; i < GUARD; ++i) {
            if ((uint8_t)y[size + (size_t)i] != POISON)
                complain(check, "pack %s, %" PRId64 " elements: writes beyond the last",
                         ggml_type_name(type), n);
        }
        ++check->n_checks;
    }
    free(x), free(y), free(expected);
}

static void check_round(struct check *check, int64_t n) {
    float *x = get_memory((size_t)n * sizeof(float));
    float *scales = get_memory((size_t)n * sizeof(float)), *other = scales + n / 2;
    int8_t *numbers = get_memory(2 * (size_t)n), *expected = numbers + n;
    for (int round = 0; round < 24; ++round) {
        for (int64_t i = 0; i < n; ++i)
            x[i] = random_float(check, round % 3 == 2 ? 0x1p-130f : 10);
        if (round % 2 == 0) // halves, which are rounded to even numbers
            for (int64_t i = 0; i < n; ++i)
                x[i] = i % ROUND == 0 ? 127.0f : rintf(random_float(check, 254)) / 2;
        if (round % 4 == 3) fill_with_edges(check, x, ROUND, 1);
        check->scalar->round(x, expected, other, n);
        check->table->round(x, numbers, scales, n);
        for (int64_t i = 0; i < n; ++i) {
            if (numbers[i] != expected[i] || !same_float(scales[i / ROUND], other[i / ROUND]))
                complain(check, "round: %a becomes %d * %a, not %d * %a", (double)x[i], numbers[i],
                         (double)scales[i / ROUND], expected[i], (double)other[i / ROUND]);
        }
        ++check->n_checks;
    }
    free(x), free(scales), free(numbers);
}

// --- functions -----------------------------------------------------------------------------------

static double logistic(double x) {
    return 1 / (1 + exp(-x));
}

struct exact {
    double value;
    double exponent; // of the exponential function in 1 / (1 + e^exponent)
    int roundings;   // of it
};

static struct exact exact_map(enum ggml_unary_op op, double x) {
    const double u = 0.79788456080286535588 * x * (1 + 0.044715 * x * x);
    switch ((int)op) {
    case GGML_UNARY_OP_EXP: return (struct exact){exp(x), 0, 0};
    case GGML_UNARY_OP_EXPM1: return (struct exact){expm1(x), 0, 0};
    case GGML_UNARY_OP_TANH: return (struct exact){tanh(x), 0, 0};
    case GGML_UNARY_OP_SOFTPLUS: return (struct exact){x > 20 ? x : log1p(exp(x)), 0, 0};
    case GGML_UNARY_OP_SIGMOID: return (struct exact){logistic(x), -x, 0};
    case GGML_UNARY_OP_SILU: return (struct exact){x * logistic(x), -x, 0};
    case GGML_UNARY_OP_GELU: return (struct exact){x * logistic(2 * u), -2 * u, 5};
    case GGML_UNARY_OP_GELU_QUICK: return (struct exact){x * logistic(1.702 * x), -1.702 * x, 2};
    default: return (struct exact){0.5 * x * erfc(-0.70710678118654752440 * x), x * x, 2};
    }
}

// Four units in the last place, and what an exponent's roundings make of it. Where e^exponent
// overflows, what would be subnormal is 0.
static bool close_map(enum ggml_unary_op op, float x, float y) {
    const struct exact exact = exact_map(op, (double)x);
    const double size = fabs(exact.value);
    if (isnan(exact.value)) return isnan(y) || isinf(x); // of infinity times 0
    if (!isfinite(x)) return (double)y == exact.value;
    if (size >= (double)FLT_MAX) return fabsf(y) >= FLT_MAX && (y > 0) == (exact.value > 0);
    const double relative = (4 + exact.roundings * fabs(exact.exponent)) * 0x1p-24;
    const double least =
        exact.exponent > 80 ? (double)FLT_MIN * fmax(1, fabs((double)x)) : 0x1p-147;
    return fabs((double)y - exact.value) <= relative * size + least;
}

static void check_map(struct check *check, enum ggml_unary_op op, int64_t n) {
    float *x = get_memory((size_t)(n + 1) * sizeof(float));
    float *y = get_memory((size_t)(n + 1) * sizeof(float) + GUARD);
    for (int round = 0; round < 16; ++round) {
        float *from = x + round % 2, *to = y + round % 2; // of any alignment
        fill_with_edges(check, from, n, round % 4 == 0 ? 1.0f : round % 4 == 1 ? 10.0f : 110.0f);
        memset(y, POISON, (size_t)(n + 1) * sizeof(float) + GUARD);
        check->table->map(op, from, to, n);
        for (int64_t i = 0; i < n; ++i) {
            if (!close_map(op, from[i], to[i]))
                complain(check, "%s: %a for %a", ggml_unary_op_name(op), (double)to[i],
                         (double)from[i]);
        }
        for (int i = 0; i < GUARD - (int)sizeof(float); ++i) {
            if (((uint8_t *)(to + n))[i] != POISON)
                complain(check, "%s, %" PRId64 " elements: writes beyond the last",
                         ggml_unary_op_name(op), n);
        }
        ++check->n_checks;
    }
    free(x), free(y);
}

// --- products ------------------------------------------------------------------------------------

static bool is_rounding(enum kernel_way way) {
    return way == KERNEL_ROUNDED || way == KERNEL_STRIPS || way == KERNEL_DOTS ||
           way == KERNEL_REPACKED;
}

// How many terms a result has, and how many results there are for a column.
static int64_t terms_of(const struct kernel_product *p, enum kernel_way way) {
    return way == KERNEL_SUMS ? p->n_rows : p->k;
}

static int64_t results_of(const struct kernel_product *p, enum kernel_way way) {
    return way == KERNEL_SUMS ? p->k : p->n_rows;
}

struct operands {
    struct kernel_product product;
    char *rows, *repacked; // the second NULL unless the way needs it
    float *x, *y;
    float *unpacked;          // rows by the scalar unpacker
    double largest[MAX_ROWS]; // magnitude in a row
    float *used;              // columns as they are multiplied
    void *work_memory;
};

static void make_operands(struct check *check, struct operands *o, enum ggml_type type, int64_t k,
                          int64_t n_rows, int64_t n_columns) {
    const size_t row = ggml_row_size(type, k);
    const size_t stride = row + 2 * ggml_type_size(type); // rows are not side by side
    const int64_t longer = k > n_rows ? k : n_rows;
    const int64_t x_stride = longer + 3, y_stride = longer + 5;
    const size_t work = kernel_work_bytes(k, n_columns);
    *o = (struct operands){
        .rows = get_memory((size_t)n_rows * stride),
        .x = get_memory((size_t)(n_columns * x_stride) * sizeof(float)),
        .y = get_memory((size_t)(n_columns * y_stride) * sizeof(float)),
        .unpacked = get_memory((size_t)(n_rows * k) * sizeof(float)),
        .used = get_memory((size_t)(n_columns * longer) * sizeof(float)),
        .work_memory = get_memory(work + ALIGNMENT),
    };
    const uintptr_t start = ((uintptr_t)o->work_memory + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    o->product = (struct kernel_product){type,     o->rows,   stride, k,        n_rows,       o->x,
                                         x_stride, n_columns, o->y,   y_stride, (void *)start};
    memset((void *)start, POISON, work);
    kernel_random_rows(type, o->rows, (size_t)n_rows * stride, &check->random);
    kernel_random_floats(o->x, n_columns * x_stride, &check->random);
}

// The product gets the rows side by side; what is expected still reads those that lie apart.
static void repack_rows(struct operands *o, int together) {
    struct kernel_product *p = &o->product;
    const struct repacked_format f = repacked_format(p->type, together);
    o->repacked = get_memory((size_t)p->n_rows * p->row_stride);
    for (int64_t r = 0; r < p->n_rows; r += together)
        repacked_write(f, o->rows + (size_t)r * p->row_stride, p->row_stride, p->k / f.size,
                       o->repacked + (size_t)r * p->row_stride);
    p->rows = o->repacked;
}

static void free_operands(struct operands *o) {
    free(o->repacked), free(o->rows), free(o->x), free(o->y), free(o->unpacked), free(o->used),
        free(o->work_memory);
}

// Some columns are 0, subnormal, huge, or have an infinity or NaN.
static void set_edge_columns(struct check *check, struct operands *o, enum kernel_way way) {
    const struct kernel_product *p = &o->product;
    const int64_t n = terms_of(p, way);
    for (int64_t c = 0; c < p->n_columns; ++c) {
        float *x = o->x + c * p->x_stride;
        const uint32_t which = (uint32_t)fabsf(random_float(check, 8));
        const int64_t at = (int64_t)fabsf(random_float(check, (float)n));
        for (int64_t i = 0; i < n && which < 3; ++i)
            x[i] *= which == 0 ? 0.0f : which == 1 ? 0x1p-130f : 0x1p60f;
        if (which == 3) x[at] = NAN;
        if (which == 4) x[at] = INFINITY;
        if (which == 5) x[at] = 0x1p40f;
    }
}

static void round_to_bf16(struct check *check, float *x, int64_t n) {
    ggml_bf16_t rounded[MAX_K];
    check->scalar->pack(GGML_TYPE_BF16, x, rounded, n);
    check->scalar->unpack(GGML_TYPE_BF16, rounded, x, n);
}

static void expect(struct check *check, struct operands *o, enum kernel_way way) {
    const struct kernel_product *p = &o->product;
    for (int64_t r = 0; r < p->n_rows; ++r) {
        float *row = o->unpacked + r * p->k;
        check->scalar->unpack(p->type, o->rows + (size_t)r * p->row_stride, row, p->k);
        for (int64_t i = 0; i < p->k; ++i) {
            const double size = fabs((double)row[i]);
            if (size > o->largest[r])
                o->largest[r] = size; // not fmax(): GCC 12 fails on it for AArch64
        }
    }
    int8_t numbers[MAX_K];
    float scales[MAX_K / ROUND + 1];
    const int64_t n = terms_of(p, way);
    for (int64_t c = 0; c < p->n_columns; ++c) {
        float *used = o->used + c * n;
        memcpy(used, o->x + c * p->x_stride, (size_t)n * sizeof(float));
        if (way == KERNEL_PAIRS) round_to_bf16(check, used, p->k);
        if (!is_rounding(way)) continue;
        check->scalar->round(used, numbers, scales, p->k);
        for (int64_t i = 0; i < p->k; ++i)
            used[i] = scales[i / ROUND] * (float)numbers[i];
    }
}

// Errors are relative to the terms, as which a scale and an offset count each by itself.
static bool close_sum(const struct operands *o, enum kernel_way way, int64_t result, int64_t c,
                      float y, double *out_sum) {
    const struct kernel_product *p = &o->product;
    const int64_t n = terms_of(p, way);
    double sum = 0, size = 0;
    for (int64_t i = 0; i < n; ++i) {
        const double x = (double)o->used[c * n + i];
        const int64_t row = way == KERNEL_SUMS ? i : result;
        sum += (double)o->unpacked[row * p->k + (way == KERNEL_SUMS ? result : i)] * x;
        size += o->largest[row] * fabs(x);
    }
    *out_sum = sum;
    if (!isfinite(size)) return !isfinite(y);
    return fabs((double)y - sum) <= 1e-5 * size + 0x1p-120;
}

static void compare_results(struct check *check, const struct operands *o, enum kernel_way way) {
    const struct kernel_product *p = &o->product;
    uint32_t poison;
    memset(&poison, POISON, sizeof(poison));
    for (int64_t c = 0; c < p->n_columns; ++c) {
        for (int64_t r = 0; r < p->y_stride; ++r) {
            const float y = o->y[c * p->y_stride + r];
            double sum;
            if (r >= results_of(p, way)) {
                if (memcmp(&y, &poison, sizeof(y)) != 0)
                    complain(check, "%s %s: writes beyond result %" PRId64 " of column %" PRId64,
                             kernel_way_name(way), ggml_type_name(p->type), results_of(p, way), c);
            } else if (!close_sum(o, way, r, c, y, &sum)) {
                complain(check,
                         "%s %s, k %" PRId64 ", %" PRId64 " rows, %" PRId64 " columns: %g at "
                         "%" PRId64 ", column %" PRId64 ", not %g",
                         kernel_way_name(way), ggml_type_name(p->type), p->k, p->n_rows,
                         p->n_columns, (double)y, r, c, sum);
            }
        }
    }
    ++check->n_checks;
}

static void check_product(struct check *check, enum kernel_way way, enum ggml_type type, int64_t k,
                          int64_t n_rows, int64_t n_columns, bool at_edges) {
    struct operands o;
    make_operands(check, &o, type, k, n_rows, n_columns);
    if (at_edges) set_edge_columns(check, &o, way);
    if (way == KERNEL_REPACKED) repack_rows(&o, check->table->repacked_rows(type));
    memset(o.y, POISON, (size_t)(n_columns * o.product.y_stride) * sizeof(float));
    if (check->table->multiply[way](&o.product)) {
        expect(check, &o, way);
        compare_results(check, &o, way);
    }
    free_operands(&o);
}

// Whole blocks around the borders of groups, of strips and of what is packed at a time.
static int choose_depths(enum ggml_type type, int64_t *depths) {
    static const int64_t of_floats[] = {1, 7, 16, 33, 102, 255, 513, 774, 1024};
    static const int64_t of_blocks[] = {32, 64, 256, 288, 512, 544, 768, 1024};
    const int64_t size = ggml_blck_size(type);
    const int64_t *all = size == 1 ? of_floats : of_blocks;
    const size_t count = size == 1 ? sizeof(of_floats) / sizeof(of_floats[0])
                                   : sizeof(of_blocks) / sizeof(of_blocks[0]);
    int n = 0;
    for (size_t i = 0; i < count; ++i) {
        if (all[i] % size == 0) depths[n++] = all[i];
    }
    return n;
}

static void check_products(struct check *check, enum kernel_way way, enum ggml_type type) {
    static const int64_t few_rows[] = {1, 5, 16, 19, 33}, many_rows[] = {1, 4, 15, 17, 48, 50};
    static const int64_t few[] = {1, 2, 3, 4, 5, 6, 8, 15, 29}, many[] = {1, 3, 5, 8, 13};
    const bool is_repacked = way == KERNEL_REPACKED;
    const int together = check->table->repacked_rows(type);
    const bool is_few = way == KERNEL_VECTOR || way == KERNEL_ROUNDED || is_repacked;
    const bool is_tiles = way == KERNEL_TILES;
    int64_t depths[16];
    const int n_depths = choose_depths(type, depths);
    const int n_rows = is_few ? 5 : is_tiles ? 4 : 6, n_columns = is_few ? 9 : 5;
    check->wrong = false;
    if (is_repacked && together == 0) return;
    for (int i = 0; i < n_depths * n_columns; ++i) {
        const int64_t columns = (is_few ? few : many)[i % n_columns];
        const int64_t rows = is_repacked ? together * (1 + i % 3)
                             : is_few    ? few_rows[i / 2 % n_rows]
                             : is_tiles  ? 1 + i % KERNEL_MAX_TILE_ROWS
                                         : many_rows[i % n_rows];
        check_product(check, way, type, depths[i / n_columns], rows, columns, false);
        check_product(check, way, type, depths[i / n_columns], rows, columns, true);
    }
}

// --- dot products of two quantised rows -------------------------------------------------------

static void check_dot(struct check *check, enum ggml_type type, enum ggml_type partner, int n) {
    float *floats = get_memory((size_t)n * sizeof(float));
    char *x = get_memory(ggml_row_size(type, n)), *y = get_memory(ggml_row_size(partner, n));
    for (int round = 0; round < 8; ++round) {
        kernel_random_rows(type, x, ggml_row_size(type, n), &check->random);
        kernel_random_floats(floats, n, &check->random);
        ggml_get_type_traits_cpu(partner)->from_float(floats, y, n);
        float sum = NAN, expected = NAN;
        if (!check->table->dot(type, x, y, n, &sum)) break;
        check->scalar->dot(type, x, y, n, &expected);
        double size = 0;
        check->scalar->unpack(type, x, floats, n);
        for (int i = 0; i < n; ++i)
            size += fabs((double)floats[i]);
        if (!(fabs((double)sum - (double)expected) <= 1e-6 * size))
            complain(check, "dot %s, %d elements: %a, not %a", ggml_type_name(type), n, (double)sum,
                     (double)expected);
        ++check->n_checks;
    }
    free(floats), free(x), free(y);
}

static void check_type(struct check *check, enum ggml_type type, unsigned parts) {
    const struct ggml_type_traits_cpu *traits = ggml_get_type_traits_cpu(type);
    const bool in_blocks = ggml_blck_size(type) > 1;
    int64_t depths[16];
    const int n = choose_depths(type, depths);
    check->wrong = false;
    for (int i = 0; i < n && parts & KERNEL_PART_UNPACK; ++i)
        check_unpack(check, type, depths[i]);
    check->wrong = false;
    for (int i = 0; i < n && parts & KERNEL_PART_PACK && !in_blocks; ++i)
        check_pack(check, type, depths[i]);
    check->wrong = false;
    for (int i = 0; i < n && parts & KERNEL_PART_DOT && in_blocks && traits->vec_dot; ++i)
        check_dot(check, type, traits->vec_dot_type, (int)depths[i]);
    for (int way = 0; way < KERNEL_WAYS; ++way) {
        if (parts & (unsigned)KERNEL_PART_PRODUCT << way)
            check_products(check, (enum kernel_way)way, type);
    }
}

int kernel_check(const struct kernel_table *table, const struct kernel_table *scalar,
                 unsigned parts, FILE *log, int64_t *out_checks) {
    struct check check = {.table = table, .scalar = scalar, .log = log, .random = 1};
    int n_types = 0, n_maps = 0;
    const enum ggml_type *types = kernel_types(&n_types);
    const enum ggml_unary_op *maps = kernel_maps(&n_maps);
    for (int i = 0; i < n_types; ++i)
        check_type(&check, types[i], parts);
    check.wrong = false;
    for (int64_t n = ROUND; n <= 1024 && parts & KERNEL_PART_ROUND; n *= 2)
        check_round(&check, n);
    for (int i = 0; i < n_maps && parts & KERNEL_PART_MAP; ++i) {
        check.wrong = false;
        for (int64_t n = 1; n < 700; n = 2 * n + 1)
            check_map(&check, maps[i], n);
    }
    if (out_checks) *out_checks = check.n_checks;
    return check.n_wrong;
}
