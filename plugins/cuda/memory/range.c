// SPDX-License-Identifier: MIT
// The handle of mapped memory is released at once: the driver keeps the memory until it is
// unmapped, and nothing has to be remembered for each piece. Access is set for each piece, since it
// belongs to mappings and not to addresses; access between contexts (cuCtxEnablePeerAccess) does
// not hold for such memory.
#include "memory/range.h"

#include "device/context.h"
#include "device/loader.h"
#include "memory/budget.h"

static CUmemAllocationProp memory_of(const struct cuda_context *context, int handle_types) {
    return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .requestedHandleTypes = handle_types,
                                 .location = {CU_MEM_LOCATION_TYPE_DEVICE, context->device}};
}

static size_t round_up(size_t bytes, size_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

size_t cuda_range_unit(struct cuda_context *context, int handle_types) {
    const CUmemAllocationProp about = memory_of(context, handle_types);
    size_t unit = 0;
    const CUresult result =
        cuda_api()->cuMemGetAllocationGranularity(&unit, &about, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    return cuda_context_check(context, result, "cuMemGetAllocationGranularity") == GGML_HOST_OK
               ? unit
               : 0;
}

enum ggml_host_status cuda_range_make(struct cuda_context *context, size_t bytes, int handle_types,
                                      CUmemGenericAllocationHandle *out_memory) {
    const CUmemAllocationProp about = memory_of(context, handle_types);
    return cuda_context_check(context, cuda_api()->cuMemCreate(out_memory, bytes, &about, 0),
                              "cuMemCreate");
}

enum ggml_host_status cuda_range_open(struct cuda_context *context, struct cuda_range *out_range,
                                      size_t bytes) {
    *out_range = (struct cuda_range){0};
    if (context->unit == 0) return GGML_HOST_UNSUPPORTED;
    const size_t size = round_up(bytes, context->unit);
    CUdeviceptr begin = 0;
    const enum ggml_host_status status = cuda_context_check(
        context, cuda_api()->cuMemAddressReserve(&begin, size, context->unit, 0, 0),
        "cuMemAddressReserve");
    if (status == GGML_HOST_OK) *out_range = (struct cuda_range){.begin = begin, .reserved = size};
    return status;
}

static CUresult set_access(CUdeviceptr begin, size_t bytes, CUdevice device) {
    const CUmemAccessDesc who = {{CU_MEM_LOCATION_TYPE_DEVICE, device},
                                 CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return cuda_api()->cuMemSetAccess(begin, bytes, &who, 1);
}

// Puts memory behind the next `bytes` addresses.
static enum ggml_host_status map(struct cuda_context *context, struct cuda_range *range,
                                 CUmemGenericAllocationHandle memory, size_t bytes) {
    const struct cu_api *api = cuda_api();
    const CUdeviceptr begin = range->begin + range->mapped;
    enum ggml_host_status status =
        cuda_context_check(context, api->cuMemMap(begin, bytes, 0, memory, 0), "cuMemMap");
    if (status != GGML_HOST_OK) return status;
    // New memory is accessible to nobody, its own device included.
    CUresult result = set_access(begin, bytes, context->device);
    for (CUdevice k = 0; k < 32 && result == CUDA_SUCCESS; ++k) {
        if (range->readers >> k & 1) result = set_access(begin, bytes, k);
    }
    status = cuda_context_check(context, result, "cuMemSetAccess");
    if (status == GGML_HOST_OK)
        range->mapped += bytes;
    else
        api->cuMemUnmap(begin, bytes);
    return status;
}

enum ggml_host_status cuda_range_grow(struct cuda_context *context, struct cuda_range *range,
                                      size_t bytes) {
    if (bytes <= range->mapped) return GGML_HOST_OK;
    if (bytes > range->reserved)
        return ggml_sdk_fail(GGML_HOST_OUT_OF_MEMORY, "cuda: %zu bytes are more than there can be",
                             bytes);
    // Whole units, which is what mapped is a sum of.
    const size_t more = round_up(bytes, context->unit) - range->mapped;
    enum ggml_host_status status = cuda_budget_take(context, more);
    if (status != GGML_HOST_OK) return status;
    CUmemGenericAllocationHandle memory;
    status = cuda_range_make(context, more, 0, &memory);
    if (status == GGML_HOST_OK) {
        status = map(context, range, memory, more);
        cuda_api()->cuMemRelease(memory);
    }
    if (status != GGML_HOST_OK) cuda_budget_return(context, more);
    return status;
}

enum ggml_host_status cuda_range_show(struct cuda_context *context, struct cuda_range *range,
                                      CUmemGenericAllocationHandle memory, size_t bytes) {
    return map(context, range, memory, bytes);
}

enum ggml_host_status cuda_range_admit(struct cuda_context *context, struct cuda_range *range,
                                       CUdevice device) {
    enum ggml_host_status status = GGML_HOST_OK;
    if (range->mapped > 0)
        status = cuda_context_check(context, set_access(range->begin, range->mapped, device),
                                    "cuMemSetAccess");
    if (status == GGML_HOST_OK) range->readers |= UINT32_C(1) << device;
    return status;
}

void cuda_range_close(struct cuda_context *context, struct cuda_range *range, size_t budgeted) {
    if (range->mapped > 0) cuda_api()->cuMemUnmap(range->begin, range->mapped);
    if (range->reserved > 0) cuda_api()->cuMemAddressFree(range->begin, range->reserved);
    cuda_budget_return(context, budgeted);
    *range = (struct cuda_range){0};
}
