// SPDX-License-Identifier: MIT
// Pieces double while memory lasts, so that 40 of them reach every size; a range grows by what is
// missing.
#include "memory/scratch.h"

#include "device/context.h"
#include "device/loader.h"
#include "memory/budget.h"

#define LEAST_BYTES ((size_t)1 << 20)

// Reserves as many addresses as the device has memory, so that the range never moves.
static enum ggml_host_status grow_range(struct cuda_context *context, struct cuda_scratch *s,
                                        size_t bytes) {
    enum ggml_host_status status = GGML_HOST_OK;
    if (s->range.reserved == 0) status = cuda_range_open(context, &s->range, context->memory);
    if (status == GGML_HOST_OK) status = cuda_range_grow(context, &s->range, bytes);
    if (status == GGML_HOST_OK) s->bytes = s->range.mapped;
    return status;
}

// What is needed alone where twice the last piece is too much.
static enum ggml_host_status add_piece(struct cuda_context *context, struct cuda_scratch *s,
                                       size_t needed) {
    // All pieces that doubled have together less than twice the bytes of the last one.
    size_t bytes = MAX(MAX(needed, 2 * s->bytes), LEAST_BYTES);
    if (s->n == CUDA_MAX_SCRATCHES) return GGML_HOST_OUT_OF_MEMORY;
    enum ggml_host_status status = cuda_memory_new(context, bytes, &s->pieces[s->n]);
    if (status == GGML_HOST_OUT_OF_MEMORY && bytes > needed) {
        bytes = needed;
        status = cuda_memory_new(context, bytes, &s->pieces[s->n]);
    }
    if (status != GGML_HOST_OK) return status;
    s->n++;
    s->bytes = bytes;
    s->total += bytes;
    return status;
}

CUdeviceptr cuda_scratch_at(const struct cuda_scratch *s) {
    if (s->bytes == 0) return 0;
    return s->n > 0 ? s->pieces[s->n - 1] : s->range.begin;
}

enum ggml_host_status cuda_scratch_get(struct cuda_context *context, struct cuda_scratch *s,
                                       size_t bytes, CUdeviceptr *out_memory) {
    enum ggml_host_status status = GGML_HOST_OK;
    *out_memory = 0;
    if (bytes == 0) return status;
    if (bytes > s->bytes)
        status = s->is_in_pieces || context->unit == 0 ? add_piece(context, s, bytes)
                                                       : grow_range(context, s, bytes);
    if (status == GGML_HOST_OK) *out_memory = cuda_scratch_at(s);
    return status;
}

void cuda_scratch_free(struct cuda_context *context, struct cuda_scratch *s) {
    cuda_range_close(context, &s->range, s->range.mapped);
    for (int i = 0; i < s->n; ++i)
        cuda_api()->cuMemFree(s->pieces[i]);
    cuda_budget_return(context, s->total);
}
