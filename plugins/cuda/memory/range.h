// SPDX-License-Identifier: MIT
// Device memory that grows in place: addresses are reserved at first, and physical memory is put
// behind them piece by piece, so that what lies there keeps its address.
#ifndef CUDA_MEMORY_RANGE_H
#define CUDA_MEMORY_RANGE_H

#include <stdint.h>

#include "base/driver_api.h"
#include "ggml-plugin.h"

struct cuda_context;

// Zero: no addresses. Addresses [begin, begin + mapped) have memory.
struct cuda_range {
    CUdeviceptr begin;
    size_t reserved, mapped;
    uint32_t readers; // bits of the other devices whose kernels reach it
};

// The context is current in all of these.
// Reserves addresses for at least so many bytes. UNSUPPORTED: the driver has no such memory.
enum ggml_host_status cuda_range_open(struct cuda_context *context, struct cuda_range *out_range,
                                      size_t bytes);
// Puts memory behind the first `bytes` addresses, within the budget; what is there stays. After a
// failure nothing has changed.
enum ggml_host_status cuda_range_grow(struct cuda_context *context, struct cuda_range *range,
                                      size_t bytes);
// Lets kernels of another device reach all of it, what is added later included.
enum ggml_host_status cuda_range_admit(struct cuda_context *context, struct cuda_range *range,
                                       CUdevice device);
// Puts memory that exists behind the addresses of an empty range: all of it, and no budget counts
// it. The memory stays until its handle is released as well.
enum ggml_host_status cuda_range_show(struct cuda_context *context, struct cuda_range *range,
                                      CUmemGenericAllocationHandle memory, size_t bytes);
// Gives addresses and memory back, of whose bytes the budget counted `budgeted`. Nothing uses them
// any more. Zero is ignored.
void cuda_range_close(struct cuda_context *context, struct cuda_range *range, size_t budgeted);
// Bytes that memory of the driver's comes in multiples of, 0 after a failure.
size_t cuda_range_unit(struct cuda_context *context, int handle_types);
// Physical memory of the device, without an address.
enum ggml_host_status cuda_range_make(struct cuda_context *context, size_t bytes, int handle_types,
                                      CUmemGenericAllocationHandle *out_memory);

#endif
