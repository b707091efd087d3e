// SPDX-License-Identifier: MIT
// mul_mat, mul_mat_id, out_prod, get_rows and copies in double precision. `magnitude`: the root
// of the sum of the squared products, which rounding errors are related to.
#include "oracle.h"

#include <math.h>
#include <stdlib.h>

// All elements in logical order; the caller frees them.
static double *numbers(const struct ggml_tensor *t) {
    double *out = malloc((size_t)(ggml_nelements(t) + 1) * sizeof(double));
    oracle_read(t, out);
    return out;
}

static double dot(const double *x, const double *y, int64_t n, bool squares) {
    double sum = 0;
    for (int64_t t = 0; t < n; ++t)
        sum += squares ? x[t] * y[t] * x[t] * y[t] : x[t] * y[t];
    return squares ? sqrt(sum) : sum;
}

static void mul_mat(const struct ggml_tensor *node, double *out, bool squares) {
    const int64_t *ne_a = node->src[0]->ne;
    const int64_t *ne_b = node->src[1]->ne;
    double *a = numbers(node->src[0]);
    double *b = numbers(node->src[1]);
    for (int64_t i = 0; i < ggml_nelements(node); ++i) {
        int64_t i0, i1, i2, i3;
        ggml_unravel_index(node, i, &i0, &i1, &i2, &i3);
        const int64_t row =
            i0 + ne_a[1] * (i2 / (ne_b[2] / ne_a[2]) + ne_a[2] * (i3 / (ne_b[3] / ne_a[3])));
        const int64_t column = i1 + ne_b[1] * (i2 + ne_b[2] * i3);
        out[i] = dot(a + row * ne_a[0], b + column * ne_a[0], ne_a[0], squares);
    }
    free(a);
    free(b);
}

void oracle_mul_mat(const struct ggml_tensor *node, double *out) {
    mul_mat(node, out, false);
}

void oracle_mul_mat_magnitude(const struct ggml_tensor *node, double *out) {
    mul_mat(node, out, true);
}

static void mul_mat_id(const struct ggml_tensor *node, double *out, bool squares) {
    const int64_t *ne_a = node->src[0]->ne;
    const int64_t *ne_b = node->src[1]->ne;
    double *a = numbers(node->src[0]);
    double *b = numbers(node->src[1]);
    for (int64_t i = 0; i < ggml_nelements(node); ++i) {
        int64_t row, slot, token, i3;
        ggml_unravel_index(node, i, &row, &slot, &token, &i3);
        const int64_t expert = (int64_t)oracle_value(node->src[2], slot, token, 0, 0);
        const double *x = a + (row + ne_a[1] * expert) * ne_a[0];
        const double *y = b + (slot % ne_b[1] + ne_b[1] * token) * ne_a[0];
        out[i] = dot(x, y, ne_a[0], squares);
    }
    free(a);
    free(b);
}

void oracle_mul_mat_id(const struct ggml_tensor *node, double *out) {
    mul_mat_id(node, out, false);
}

void oracle_mul_mat_id_magnitude(const struct ggml_tensor *node, double *out) {
    mul_mat_id(node, out, true);
}

static void out_prod(const struct ggml_tensor *node, double *out, bool squares) {
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *b = node->src[1];
    for (int64_t i = 0; i < ggml_nelements(node); ++i) {
        int64_t i0, i1, i2, i3;
        ggml_unravel_index(node, i, &i0, &i1, &i2, &i3);
        double sum = 0;
        for (int64_t t = 0; t < a->ne[1]; ++t) {
            const double product =
                oracle_value(a, i0, t, i2 / (b->ne[2] / a->ne[2]), i3 / (b->ne[3] / a->ne[3])) *
                oracle_value(b, i1, t, i2, i3);
            sum += squares ? product * product : product;
        }
        out[i] = squares ? sqrt(sum) : sum;
    }
}

void oracle_out_prod(const struct ggml_tensor *node, double *out) {
    out_prod(node, out, false);
}

void oracle_out_prod_magnitude(const struct ggml_tensor *node, double *out) {
    out_prod(node, out, true);
}

void oracle_get_rows(const struct ggml_tensor *node, double *out) {
    for (int64_t i = 0; i < ggml_nelements(node); ++i) {
        int64_t i0, i1, i2, i3;
        ggml_unravel_index(node, i, &i0, &i1, &i2, &i3);
        out[i] = oracle_value(node->src[0], i0, (int64_t)oracle_value(node->src[1], i1, i2, i3, 0),
                              i2, i3);
    }
}

void oracle_copy(const struct ggml_tensor *node, double *out) {
    oracle_read(node->src[0], out);
}
