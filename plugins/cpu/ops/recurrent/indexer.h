// SPDX-License-Identifier: MIT
// Work memory of lightning_indexer; shared with the work function.
#ifndef CPU_INDEXER_H
#define CPU_INDEXER_H

#include "gemm/gemm_size.h"

enum {
    INDEXER_KEYS = GEMM_MAX_ROWS,                                              // scored at a time
    INDEXER_FLOATS = GEMM_MAX_ROWS * GEMM_DEPTH + GEMM_COLUMNS * INDEXER_KEYS, // of a thread
};

#endif
