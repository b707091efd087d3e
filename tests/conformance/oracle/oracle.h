// SPDX-License-Identifier: MIT
// What an operation's result is, in double precision and straight from its definition. Operands are
// read from host memory through oracle_quant.h; results are in logical order, dim 0 fastest. No
// code is shared with a plugin, and speed does not matter.
#ifndef ORACLE_H
#define ORACLE_H

#include "oracle_quant.h"

struct ggml_tensor;

// The element of a tensor in host memory, whatever its type and strides.
double oracle_value(const struct ggml_tensor *t, int64_t i0, int64_t i1, int64_t i2, int64_t i3);
// All elements, in logical order.
void oracle_read(const struct ggml_tensor *t, double *out);

// Fills ggml_nelements(node) numbers.
typedef void (*oracle_fn)(const struct ggml_tensor *node, double *out);

void oracle_mul_mat(const struct ggml_tensor *node, double *out);
void oracle_mul_mat_id(const struct ggml_tensor *node, double *out);
void oracle_out_prod(const struct ggml_tensor *node, double *out);
// Root of the sum of the squared terms of each element.
void oracle_mul_mat_magnitude(const struct ggml_tensor *node, double *out);
void oracle_mul_mat_id_magnitude(const struct ggml_tensor *node, double *out);
void oracle_out_prod_magnitude(const struct ggml_tensor *node, double *out);
void oracle_get_rows(const struct ggml_tensor *node, double *out);
// cpy, cont, dup: the source in logical order.
void oracle_copy(const struct ggml_tensor *node, double *out);
void oracle_rope(const struct ggml_tensor *node, double *out);
void oracle_soft_max(const struct ggml_tensor *node, double *out);
void oracle_flash_attn_ext(const struct ggml_tensor *node, double *out);

// Normalised mean squared error of n numbers; infinite and NaN ones must agree exactly.
double oracle_nmse(const double *actual, const double *expected, int64_t n);

#endif
