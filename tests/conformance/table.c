// SPDX-License-Identifier: MIT
// One row per operation of the lists in abi/: a row without an oracle and cases does not link.
#include "table.h"

#define GGML_OP_ROW(number, name, ...) extern const struct conformance_op conformance_op_##name;
#include "op_list.inl"
#define GGML_UNARY_ROW(number, name, ...) extern const struct conformance_op conformance_op_##name;
#include "unary_list.inl"
#define GGML_GLU_ROW(number, name, ...) extern const struct conformance_op conformance_op_##name;
#include "glu_list.inl"

const struct conformance_op *const conformance_table[] = {
#define GGML_OP_ROW(number, name, ...) &conformance_op_##name,
#include "op_list.inl"
#define GGML_UNARY_ROW(number, name, ...) &conformance_op_##name,
#include "unary_list.inl"
#define GGML_GLU_ROW(number, name, ...) &conformance_op_##name,
#include "glu_list.inl"
};

const int conformance_table_size = sizeof(conformance_table) / sizeof(conformance_table[0]);
