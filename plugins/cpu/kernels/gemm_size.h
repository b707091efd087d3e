// SPDX-License-Identifier: MIT
// Sizes of the blocks that kernels/gemm.c computes; shared with the work functions.
#ifndef CPU_GEMM_SIZE_H
#define CPU_GEMM_SIZE_H

enum {
    GEMM_DEPTH = 512,   // elements of a row that are unpacked at a time
    GEMM_MAX_ROWS = 32, // rows per call
    GEMM_COLUMNS = 128, // columns that callers hand over at a time
};

#endif
