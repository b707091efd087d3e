// SPDX-License-Identifier: MIT
// Scratch memory that grows: of a stream, for what launches keep between two of a node, and of a
// group of devices.
#ifndef CUDA_MEMORY_SCRATCH_H
#define CUDA_MEMORY_SCRATCH_H

#include <stdbool.h>

#include "memory/range.h"

enum { CUDA_MAX_SCRATCHES = 40 };

// Zero: nothing. It grows in place where the driver can; elsewhere, and with `is_in_pieces`, each
// piece is larger than the one before, by two or more where there is memory for that, and the one
// before stays, since queued work or recordings have its address.
struct cuda_scratch {
    bool is_in_pieces;
    struct cuda_range range;
    CUdeviceptr pieces[CUDA_MAX_SCRATCHES];
    int n;
    size_t bytes; // of the range or the last piece
    size_t total; // of all pieces
};

// At least so many bytes; 0 for none. What had the memory before may still be at work. The context
// is current. [stream]
enum ggml_host_status cuda_scratch_get(struct cuda_context *context, struct cuda_scratch *scratch,
                                       size_t bytes, CUdeviceptr *out_memory);
// Where the memory is that was got last, or 0. [stream]
CUdeviceptr cuda_scratch_at(const struct cuda_scratch *scratch);
// The context is current. [stream]
void cuda_scratch_free(struct cuda_context *context, struct cuda_scratch *scratch);

#endif
