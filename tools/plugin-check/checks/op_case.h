// SPDX-License-Identifier: MIT
// Nodes that the checks of check_op.c ask about and compute.
#ifndef PLUGIN_CHECK_OP_CASE_H
#define PLUGIN_CHECK_OP_CASE_H

enum op_case {
    CASE_ADD,
    CASE_SUB,
    CASE_MUL,
    CASE_DIV,
    CASE_SCALE,
    CASE_SQR,
    CASE_SQRT,
    CASE_CLAMP,
    CASE_ABS,
    CASE_NEG,
    CASE_RELU,
    CASE_SIGMOID,
    CASE_SILU,
    CASE_TANH,
    CASE_DUP,
    CASE_CONT,
    CASE_BROADCAST,
    CASE_STRIDED,
    CASE_SUM_ROWS,
    CASE_SOFT_MAX,
    CASE_NORM,
    CASE_RMS_NORM,
    CASE_MUL_MAT,
    CASE_GET_ROWS,
    CASE_CONCAT,
    CASE_REPEAT,
    N_CASES
};

// What supports_op is asked with: numbers that no contract defines.
enum strange_node { STRANGE_OP, STRANGE_TYPE, STRANGE_SOURCE, STRANGE_UNARY, STRANGE_GLU };

// The same with what a later contract may give a meaning to in an operation that is known.
enum grown_part { GROWN_PARAMETER, GROWN_SOURCE, GROWN_FLAG, GROWN_PADDING };

#endif
