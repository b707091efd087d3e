// SPDX-License-Identifier: MIT
// Flags of a tensor, once. Values are part of the binary contract and never change.
//
// GGML_TENSOR_FLAG_ROW(value, NAME, since)
//   value  of GGML_TENSOR_FLAG_<NAME>: one bit. Who does not know one of bits 0 to 15 may ignore
//          it; a plugin that does not know one of 16 to 29 declines the tensor, and every node that
//          it is a source of. 30 marks a tensor in error, 31 is never used.
//   since  minor of the contract that it came with
GGML_TENSOR_FLAG_ROW(1, INPUT, 0) // set by the program before it computes
GGML_TENSOR_FLAG_ROW(2, OUTPUT, 0) // read by the program afterwards; never overwritten
GGML_TENSOR_FLAG_ROW(4, PARAM, 0) // trainable: gradients are built for it
GGML_TENSOR_FLAG_ROW(8, LOSS, 0) // what gradients are taken of
GGML_TENSOR_FLAG_ROW(16, COMPUTE, 0) // to be computed; streams skip nodes without it
#undef GGML_TENSOR_FLAG_ROW
