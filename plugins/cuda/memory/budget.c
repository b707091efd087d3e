// SPDX-License-Identifier: MIT
// A counter per context without a lock: what would be more than the limit is refused before the
// driver is asked.
#include "memory/budget.h"

#include <stdlib.h>

#include "device/loader.h"

// A number and perhaps a unit: K, M, G, of 1,024 each.
size_t cuda_budget_limit(void) {
    const char *text = gpu_config("GGML_CUDA_MEMORY_LIMIT");
    char *end;
    if (text[0] < '0' || text[0] > '9') return SIZE_MAX;
    const unsigned long long number = strtoull(text, &end, 10);
    const unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    if (shift > 0) ++end;
    if (*end != '\0' || number > (SIZE_MAX >> shift)) {
        GGML_LOG_WARN("cuda: GGML_CUDA_MEMORY_LIMIT=%s is no number of bytes\n", text);
        return SIZE_MAX;
    }
    return (size_t)number << shift;
}

enum ggml_host_status cuda_budget_take(struct cuda_context *context, size_t bytes) {
    size_t used = atomic_load(&context->used);
    // Compare and exchange: two threads may ask at once, and only one of them may have the rest.
    do {
        if (bytes > context->limit || used > context->limit - bytes)
            return ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY,
                                 "cuda: %zu bytes more than the %zu in use would be above "
                                 "GGML_CUDA_MEMORY_LIMIT (%zu)",
                                 bytes, used, context->limit);
    } while (!atomic_compare_exchange_weak(&context->used, &used, used + bytes));
    return GGML_HOST_OK;
}

void cuda_budget_return(struct cuda_context *context, size_t bytes) {
    atomic_fetch_sub(&context->used, bytes);
}

enum ggml_host_status cuda_memory_new(struct cuda_context *context, size_t bytes,
                                      CUdeviceptr *out_memory) {
    enum ggml_host_status status = cuda_budget_take(context, bytes);
    if (status != GGML_HOST_OK) return status;
    status = cuda_context_check(context, cuda_api()->cuMemAlloc(out_memory, bytes), "cuMemAlloc");
    if (status != GGML_HOST_OK) cuda_budget_return(context, bytes);
    return status;
}

void cuda_memory_free(struct cuda_context *context, CUdeviceptr memory, size_t bytes) {
    cuda_api()->cuMemFree(memory);
    cuda_budget_return(context, bytes);
}
