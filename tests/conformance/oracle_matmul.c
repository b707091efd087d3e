// SPDX-License-Identifier: MIT
#include "oracle.h"

void oracle_mul_mat(const struct ggml_tensor *node, double *out) {
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *b = node->src[1];
    const int64_t r2 = b->ne[2] / a->ne[2];
    const int64_t r3 = b->ne[3] / a->ne[3];
    for (int64_t i = 0; i < ggml_nelements(node); ++i) {
        int64_t i0, i1, i2, i3;
        ggml_unravel_index(node, i, &i0, &i1, &i2, &i3);
        double sum = 0;
        for (int64_t t = 0; t < a->ne[0]; ++t)
            sum += oracle_value(a, t, i0, i2 / r2, i3 / r3) * oracle_value(b, t, i1, i2, i3);
        out[i] = sum;
    }
}

void oracle_mul_mat_id(const struct ggml_tensor *node, double *out) {
    const struct ggml_tensor *a = node->src[0];
    const struct ggml_tensor *b = node->src[1];
    const struct ggml_tensor *ids = node->src[2];
    for (int64_t i = 0; i < ggml_nelements(node); ++i) {
        int64_t row, slot, token, i3;
        ggml_unravel_index(node, i, &row, &slot, &token, &i3);
        const int64_t expert = (int64_t)oracle_value(ids, slot, token, 0, 0);
        double sum = 0;
        for (int64_t t = 0; t < a->ne[0]; ++t)
            sum +=
                oracle_value(a, t, row, expert, 0) * oracle_value(b, t, slot % b->ne[1], token, 0);
        out[i] = sum;
    }
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
