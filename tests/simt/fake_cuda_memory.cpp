// SPDX-License-Identifier: MIT
// The fake driver's memory: of devices, of the host; copies, also between devices.
#include "fake_cuda_state.h"

#include <stdlib.h>
#include <string.h>

std::map<uintptr_t, fake_allocation> &fake_memory = *new std::map<uintptr_t, fake_allocation>();

size_t fake_total_memory(void) {
    return fake_number("FAKE_CUDA_MEMORY", (size_t)1 << 30);
}
API CUresult cuDeviceTotalMem_v2(size_t *out, CUdevice) {
    ENTER_WITHOUT_CONTEXT
    *out = fake_total_memory();
    return CUDA_SUCCESS;
}
API CUresult cuMemGetInfo_v2(size_t *out_free, size_t *out_total) {
    ENTER
    *out_total = fake_total_memory();
    *out_free = *out_total - fake.used[fake_current()];
    return CUDA_SUCCESS;
}
API CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t size) {
    ENTER
    const int device = fake_current();
    if (size == 0) return CUDA_ERROR_INVALID_VALUE;
    if (size > fake_total_memory() - fake.used[device]) return CUDA_ERROR_OUT_OF_MEMORY;
    void *p = aligned_alloc(512, (size + 511) / 512 * 512);
    if (!p) return CUDA_ERROR_OUT_OF_MEMORY;
    simt_memory_add(p, size);
    fake_memory[(uintptr_t)p] = {size, device};
    fake.used[device] += size;
    ++fake.n_live;
    *out = (CUdeviceptr)(uintptr_t)p;
    return CUDA_SUCCESS;
}
API CUresult cuMemFree_v2(CUdeviceptr pointer) {
    std::lock_guard<std::recursive_mutex> hold(fake.lock);
    void *p = (void *)(uintptr_t)pointer;
    auto at = fake_memory.find((uintptr_t)pointer);
    if (at == fake_memory.end() || at->second.device < 0) return CUDA_ERROR_INVALID_VALUE;
    fake_finish_all(); // the driver waits as well
    if (at->second.is_mapped) return fake_forget_external(pointer);
    fake.used[at->second.device] -= at->second.size;
    fake_memory.erase(at);
    simt_memory_remove(p);
    free(p);
    --fake.n_live;
    return CUDA_SUCCESS;
}
// Of an address that it doesn't know all attributes are 0. Not what the plugin calls, but what
// others do with its addresses.
API CUresult cuPointerGetAttributes(unsigned n, int *which, void **values, CUdeviceptr pointer) {
    ENTER_WITHOUT_CONTEXT
    auto at = fake_memory.upper_bound((uintptr_t)pointer);
    bool known = at != fake_memory.begin();
    if (known) --at;
    known = known && pointer - at->first < at->second.size && at->second.device >= 0;
    for (unsigned i = 0; i < n; ++i) {
        void *value = values[i];
        switch (which[i]) {
        case 1: // CU_POINTER_ATTRIBUTE_CONTEXT
            *(CUcontext *)value = known ? (CUcontext)(uintptr_t)(at->second.device + 1) : nullptr;
            break;
        case 2: *(unsigned *)value = known ? 2 : 0; break;                   // MEMORY_TYPE: DEVICE
        case 10: *(unsigned *)value = known && !at->second.is_mapped; break; // LEGACY_IPC_CAPABLE
        case 11: *(CUdeviceptr *)value = known ? at->first : 0; break;       // RANGE_START_ADDR
        case 12: *(size_t *)value = known ? at->second.size : 0; break;      // RANGE_SIZE
        default: return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return CUDA_SUCCESS;
}

// --- memory of the host --------------------------------------------------------------------------

API CUresult cuMemHostAlloc(void **out, size_t size, unsigned) {
    ENTER
    *out = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
    if (!*out) return CUDA_ERROR_OUT_OF_MEMORY;
    ++fake.n_live;
    return CUDA_SUCCESS;
}
API CUresult cuMemFreeHost(void *p) {
    std::lock_guard<std::recursive_mutex> hold(fake.lock);
    free(p);
    --fake.n_live;
    return CUDA_SUCCESS;
}
// Pages are locked as a whole, once.
API CUresult cuMemHostRegister_v2(void *p, size_t size, unsigned) {
    ENTER
    const uintptr_t begin = (uintptr_t)p;
    if (size == 0) return CUDA_ERROR_INVALID_VALUE;
    for (auto &other : fake_memory) {
        if (other.second.device < 0 && other.first < begin + size &&
            begin < other.first + other.second.size)
            return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    }
    fake_memory[begin] = {size, -1};
    ++fake.n_live;
    return CUDA_SUCCESS;
}
API CUresult cuMemHostUnregister(void *p) {
    std::lock_guard<std::recursive_mutex> hold(fake.lock);
    auto at = fake_memory.find((uintptr_t)p);
    if (at == fake_memory.end() || at->second.device >= 0) return CUDA_ERROR_INVALID_VALUE;
    fake_memory.erase(at);
    --fake.n_live;
    return CUDA_SUCCESS;
}

// --- copies --------------------------------------------------------------------------------------

static bool is_memory_of(int device, CUdeviceptr p, size_t size) {
    auto after = fake_memory.upper_bound((uintptr_t)p);
    if (after == fake_memory.begin()) return false;
    --after;
    return after->second.device == device && p + size <= after->first + after->second.size;
}
static bool is_memory(CUdeviceptr p, size_t size) {
    return is_memory_of(fake_current(), p, size);
}
static CUresult queue_copy(void *to, const void *from, size_t size, CUstream stream) {
    if (!fake_is_stream_here(stream)) return CUDA_ERROR_INVALID_HANDLE;
    stream->queue.push_back([=] { memcpy(to, from, size); });
    return CUDA_SUCCESS;
}
API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, CUstream stream) {
    ENTER
    if (!is_memory(to, size)) return CUDA_ERROR_INVALID_VALUE;
    return queue_copy((void *)(uintptr_t)to, from, size, stream);
}
API CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, CUstream stream) {
    ENTER
    if (!is_memory(from, size)) return CUDA_ERROR_INVALID_VALUE;
    return queue_copy(to, (void *)(uintptr_t)from, size, stream);
}
API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    ENTER
    if (!is_memory(from, size) || !is_memory(to, size)) return CUDA_ERROR_INVALID_VALUE;
    return queue_copy((void *)(uintptr_t)to, (void *)(uintptr_t)from, size, stream);
}
// Also where neither device reaches the other's memory: the driver goes through the host then.
API CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext context_to, CUdeviceptr from,
                               CUcontext context_from, size_t size, CUstream stream) {
    ENTER
    const int a = (int)(uintptr_t)context_to - 1, b = (int)(uintptr_t)context_from - 1;
    if (!is_memory_of(b, from, size) || !is_memory_of(a, to, size)) return CUDA_ERROR_INVALID_VALUE;
    return queue_copy((void *)(uintptr_t)to, (void *)(uintptr_t)from, size, stream);
}
API CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t size, CUstream stream) {
    ENTER
    if (!is_memory(to, size)) return CUDA_ERROR_INVALID_VALUE;
    if (!fake_is_stream_here(stream)) return CUDA_ERROR_INVALID_HANDLE;
    stream->queue.push_back([=] { memset((void *)(uintptr_t)to, value, size); });
    return CUDA_SUCCESS;
}
