// SPDX-License-Identifier: MIT
// What kernels are told of a node, where a number stands for an operation or its variant. Kernels
// in GLSL, CUDA and Metal know the same numbers.
#ifndef GPU_NODES_H
#define GPU_NODES_H

#include "ggml-impl.h"

// Functions of one operand: numbers below 32 are those of GGML_OP_UNARY, enum ggml_unary_op.
enum gpu_function {
    GPU_FUNCTION_SQR = 32,
    GPU_FUNCTION_SQRT,
    GPU_FUNCTION_LOG,
    GPU_FUNCTION_SIN,
    GPU_FUNCTION_COS,
    GPU_FUNCTION_LEAKY_RELU,
    GPU_FUNCTION_SCALE,
    GPU_FUNCTION_CLAMP,
    GPU_FUNCTION_FILL,
};

// Number of the function that a node of one operand computes. [any-thread]
int gpu_function_of(const struct ggml_tensor *node);
// Number of add, sub, mul, div: 0 to 3. [any-thread]
int gpu_binary_function_of(enum ggml_op op);

// Which columns of row i DIAG_MASK_INF, DIAG_MASK_ZERO and TRI keep.
enum gpu_kept {
    GPU_KEPT_FROM_DIAGONAL,  // j >= i
    GPU_KEPT_ABOVE_DIAGONAL, // j > i
    GPU_KEPT_TO_DIAGONAL,    // j <= i
    GPU_KEPT_BELOW_DIAGONAL, // j < i
    GPU_KEPT_TO_PAST,        // j <= i + n_past, of a causal mask
};
enum gpu_kept gpu_kept_columns(const struct ggml_tensor *node);

// Whether the node writes source s, whose memory is not its result's: AdamW's step updates its
// momenta. [any-thread]
bool gpu_writes_source(const struct ggml_tensor *node, int s);

// The largest power of two that is not above n, 1 for n < 1: ALiBi has one slope for the heads up
// to there and another for those beyond.
uint32_t gpu_power_of_two_within(int64_t n);

#endif
