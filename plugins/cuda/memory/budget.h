// SPDX-License-Identifier: MIT
// How much memory of a device the plugin may have: GGML_CUDA_MEMORY_LIMIT. Code, and what the
// driver keeps for itself, is not counted.
#ifndef CUDA_MEMORY_BUDGET_H
#define CUDA_MEMORY_BUDGET_H

#include "device/context.h"

// Bytes that the setting allows per device; SIZE_MAX: it is not set, or no number. [any-thread]
size_t cuda_budget_limit(void);
// Counts bytes that are about to be allocated. OUT_OF_MEMORY, after set_error: they would be more
// than the limit. [any-thread]
enum ggml_host_status cuda_budget_take(struct cuda_context *context, size_t bytes);
// Of what was counted. [any-thread]
void cuda_budget_return(struct cuda_context *context, size_t bytes);

// An allocation of the driver's, counted. The context is current. [any-thread]
enum ggml_host_status cuda_memory_new(struct cuda_context *context, size_t bytes,
                                      CUdeviceptr *out_memory);
void cuda_memory_free(struct cuda_context *context, CUdeviceptr memory, size_t bytes);

#endif
