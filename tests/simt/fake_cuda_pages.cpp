// SPDX-License-Identifier: MIT
// The fake driver's memory that is put behind addresses (cuMemCreate, cuMemMap), which can be
// exported, and memory of other interfaces: anonymous files of its own, and of Mesa's Vulkan driver
// for the CPU, so that both see the same bytes. As the driver does, it refuses to unmap a part of a
// mapping, to free addresses behind which memory is, and to let anyone reach what
// cuMemSetAccess() was not called for.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vector>

#include "fake_cuda_state.h"

enum { UNIT = 2 << 20 };
static const char file_name[] = "fake_cuda"; // of memory that this driver made

// Physical memory: it goes when neither a handle nor a mapping is left.
struct physical {
    int fd; // -1: it has no file, since nobody else sees it
    int device;
    size_t size;
    int n_handles, n_mappings;
    bool is_imported; // its bytes are counted where it was made
    bool is_exportable;
};
struct mapping {
    size_t size;
    physical *memory;
};
static std::map<uintptr_t, size_t> &reserved = *new std::map<uintptr_t, size_t>();
static std::map<uintptr_t, mapping> &mappings = *new std::map<uintptr_t, mapping>();
static std::set<physical *> &physicals = *new std::set<physical *>();

bool fake_reaches(int device, const fake_allocation &memory) {
    if (memory.is_mapped) return memory.access >> device & 1;
    return memory.device == device || fake.peers[device][memory.device];
}

static bool is_location(const CUmemLocation &at) {
    return at.type == CU_MEM_LOCATION_TYPE_DEVICE && at.id >= 0 && at.id < fake.n_visible;
}
static bool is_about(const CUmemAllocationProp *about) {
    return about->type == CU_MEM_ALLOCATION_TYPE_PINNED && is_location(about->location) &&
           (about->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == 0 &&
           !about->win32HandleMetaData;
}

API CUresult cuMemGetAllocationGranularity(size_t *out, const CUmemAllocationProp *about, int) {
    ENTER_WITHOUT_CONTEXT
    if (!is_about(about)) return CUDA_ERROR_INVALID_VALUE;
    *out = UNIT;
    return CUDA_SUCCESS;
}

// --- addresses -----------------------------------------------------------------------------------

API CUresult cuMemAddressReserve(CUdeviceptr *out, size_t size, size_t alignment, CUdeviceptr,
                                 unsigned long long) {
    ENTER_WITHOUT_CONTEXT
    if (size == 0 || size % UNIT != 0 || alignment > UNIT) return CUDA_ERROR_INVALID_VALUE;
    char *all = (char *)mmap(nullptr, size + UNIT, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    char *begin = (char *)(((uintptr_t)all + UNIT - 1) / UNIT * UNIT);
    if (begin > all) munmap(all, (size_t)(begin - all));
    munmap(begin + size, (size_t)(all + UNIT - begin));
    reserved[(uintptr_t)begin] = size;
    ++fake.n_live;
    *out = (CUdeviceptr)(uintptr_t)begin;
    return CUDA_SUCCESS;
}
// Whether memory is behind any of the addresses.
static bool has_mapping(uintptr_t begin, size_t size) {
    auto at = mappings.lower_bound(begin);
    return at != mappings.end() && at->first < begin + size;
}
API CUresult cuMemAddressFree(CUdeviceptr begin, size_t size) {
    std::lock_guard<std::recursive_mutex> hold(fake.lock);
    auto at = reserved.find((uintptr_t)begin);
    if (at == reserved.end() || at->second != size || has_mapping((uintptr_t)begin, size))
        return CUDA_ERROR_INVALID_VALUE;
    munmap((void *)(uintptr_t)begin, size);
    reserved.erase(at);
    --fake.n_live;
    return CUDA_SUCCESS;
}

// --- physical memory -----------------------------------------------------------------------------

static CUmemGenericAllocationHandle handle_of(physical *memory) {
    return (CUmemGenericAllocationHandle)(uintptr_t)memory;
}
static physical *memory_of(CUmemGenericAllocationHandle handle) {
    physical *memory = (physical *)(uintptr_t)handle;
    return physicals.count(memory) && memory->n_handles > 0 ? memory : nullptr;
}
static void drop_unused(physical *memory) {
    if (memory->n_handles > 0 || memory->n_mappings > 0) return;
    if (!memory->is_imported) fake.used[memory->device] -= memory->size;
    if (memory->fd >= 0) close(memory->fd);
    physicals.erase(memory);
    delete memory;
    --fake.n_live;
}
static physical *remember(const physical &what) {
    physical *memory = new physical(what);
    physicals.insert(memory);
    ++fake.n_live;
    return memory;
}

static int new_file(size_t size) {
    const int fd = memfd_create(file_name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && ftruncate(fd, (off_t)size) == 0) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

API CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t size,
                         const CUmemAllocationProp *about, unsigned long long) {
    ENTER_WITHOUT_CONTEXT
    if (!is_about(about) || size == 0 || size % UNIT != 0) return CUDA_ERROR_INVALID_VALUE;
    const int device = about->location.id;
    if (size > fake_total_memory() - fake.used[device]) return CUDA_ERROR_OUT_OF_MEMORY;
    int fd = -1;
    if (about->requestedHandleTypes != 0 && (fd = new_file(size)) < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    fake.used[device] += size;
    *out = handle_of(remember({fd, device, size, 1, 0, false, about->requestedHandleTypes != 0}));
    return CUDA_SUCCESS;
}
API CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    std::lock_guard<std::recursive_mutex> hold(fake.lock);
    physical *memory = memory_of(handle);
    if (!memory) return CUDA_ERROR_INVALID_VALUE;
    --memory->n_handles;
    drop_unused(memory);
    return CUDA_SUCCESS;
}

// --- memory behind addresses ---------------------------------------------------------------------

// Memory that nobody has written is not a number. Where no other mapping may see it, it is a
// private view of one file of such bytes: only pages that are used cost anything. The file is
// closed, as the driver has none open for such memory.
static bool map_poison(uintptr_t at, size_t size) {
    static const std::vector<char> bytes(UNIT, '\xff');
    const int poison = new_file(UNIT);
    bool good = pwrite(poison, bytes.data(), UNIT, 0) == UNIT;
    for (size_t i = 0; i < size && good; i += UNIT)
        good = mmap((void *)(at + i), UNIT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, poison,
                    0) != MAP_FAILED;
    if (poison >= 0) close(poison);
    return good;
}
static bool map_file(uintptr_t at, const physical *memory) {
    void *p = mmap((void *)at, memory->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                   memory->fd, 0);
    if (p == MAP_FAILED) return false;
    if (!memory->is_imported && memory->n_mappings == 0) memset(p, 0xff, memory->size);
    return true;
}

// All of it at once, as the driver has it; what can't be exported once.
API CUresult cuMemMap(CUdeviceptr at, size_t size, size_t offset,
                      CUmemGenericAllocationHandle handle, unsigned long long) {
    ENTER_WITHOUT_CONTEXT
    physical *memory = memory_of(handle);
    auto range = reserved.upper_bound((uintptr_t)at);
    if (!memory || offset != 0 || size != memory->size || range == reserved.begin())
        return CUDA_ERROR_INVALID_VALUE;
    --range;
    if (at + size > range->first + range->second || has_mapping((uintptr_t)at, size))
        return CUDA_ERROR_INVALID_VALUE;
    if (memory->fd < 0 && memory->n_mappings > 0) return CUDA_ERROR_INVALID_VALUE;
    if (!(memory->fd < 0 ? map_poison((uintptr_t)at, size) : map_file((uintptr_t)at, memory)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    ++memory->n_mappings;
    mappings[(uintptr_t)at] = {size, memory};
    ++fake.n_live;
    return CUDA_SUCCESS;
}

// Objects are the longest ranges that one device's memory is behind, for the same devices.
static void hide(uintptr_t begin, size_t size) {
    for (auto at = fake_memory.lower_bound(begin);
         at != fake_memory.end() && at->first < begin + size;) {
        simt_memory_remove((void *)at->first);
        at = fake_memory.erase(at);
    }
}
static void show(uintptr_t begin, const fake_allocation &what) {
    fake_memory[begin] = what;
    simt_memory_show((void *)begin, what.size);
}
static void join_with_one_before(uintptr_t begin) {
    auto at = fake_memory.find(begin);
    if (at == fake_memory.begin()) return;
    auto before = std::prev(at);
    fake_allocation all = before->second;
    if (!all.is_mapped || before->first + all.size != begin || all.access != at->second.access ||
        all.device != at->second.device || reserved.count(begin))
        return;
    all.size += at->second.size;
    simt_memory_remove((void *)begin);
    fake_memory.erase(at);
    const uintptr_t first = before->first;
    show(first, all);
}

// The range is of whole mappings; each keeps who reached it before.
API CUresult cuMemSetAccess(CUdeviceptr begin, size_t size, const CUmemAccessDesc *who, size_t n) {
    ENTER_WITHOUT_CONTEXT
    static std::map<uintptr_t, uint32_t> &access = *new std::map<uintptr_t, uint32_t>();
    uintptr_t at = (uintptr_t)begin;
    const uintptr_t end = at + size;
    for (size_t i = 0; i < n; ++i) {
        if (!is_location(who[i].location) || who[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            return CUDA_ERROR_INVALID_VALUE;
        if (who[i].location.id != fake_current() && fake_number("FAKE_CUDA_PEERS", 0) == 0)
            return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    }
    while (at < end) {
        auto m = mappings.find(at);
        if (m == mappings.end() || at + m->second.size > end) return CUDA_ERROR_INVALID_VALUE;
        at += m->second.size;
    }
    for (auto m = mappings.find((uintptr_t)begin); m != mappings.end() && m->first < end; ++m) {
        auto there = fake_memory.upper_bound(m->first);
        uint32_t bits = 0;
        if (there != fake_memory.begin() && std::prev(there)->second.is_mapped &&
            m->first < std::prev(there)->first + std::prev(there)->second.size)
            bits = std::prev(there)->second.access;
        for (size_t i = 0; i < n; ++i)
            bits |= 1u << who[i].location.id;
        access[m->first] = bits;
    }
    hide((uintptr_t)begin, size);
    for (auto m = mappings.find((uintptr_t)begin); m != mappings.end() && m->first < end; ++m) {
        show(m->first, {m->second.size, m->second.memory->device, true, access[m->first]});
        join_with_one_before(m->first);
    }
    return CUDA_SUCCESS;
}

API CUresult cuMemUnmap(CUdeviceptr begin, size_t size) {
    std::lock_guard<std::recursive_mutex> hold(fake.lock);
    const uintptr_t end = (uintptr_t)begin + size;
    uintptr_t at = (uintptr_t)begin;
    while (at < end) {
        auto m = mappings.find(at);
        if (m == mappings.end() || at + m->second.size > end) return CUDA_ERROR_INVALID_VALUE;
        at += m->second.size;
    }
    fake_finish_all();
    hide((uintptr_t)begin, size);
    for (auto m = mappings.find((uintptr_t)begin); m != mappings.end() && m->first < end;) {
        mmap((void *)m->first, m->second.size, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        --m->second.memory->n_mappings;
        drop_unused(m->second.memory);
        --fake.n_live;
        m = mappings.erase(m);
    }
    return CUDA_SUCCESS;
}

// --- memory of others ----------------------------------------------------------------------------

static bool is_file_of(int fd, const char *name) {
    char path[64], target[128], expected[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    snprintf(expected, sizeof(expected), "/memfd:%s", name);
    const ssize_t n = readlink(path, target, sizeof(target) - 1);
    return n > 0 && strncmp(target, expected, strlen(expected)) == 0;
}
static size_t size_of_file(int fd) {
    struct stat about;
    return fstat(fd, &about) == 0 ? (size_t)about.st_size : 0;
}

API CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle, int type,
                                          unsigned long long) {
    ENTER_WITHOUT_CONTEXT
    physical *memory = memory_of(handle);
    if (!memory || !memory->is_exportable || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    const int fd = dup(memory->fd);
    if (fd < 0) return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(out, &fd, sizeof(fd));
    return CUDA_SUCCESS;
}
API CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *handle,
                                            int type) {
    ENTER
    const int given = (int)(intptr_t)handle;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || !is_file_of(given, file_name))
        return CUDA_ERROR_INVALID_VALUE;
    const int fd = dup(given);
    if (fd < 0) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = handle_of(remember({fd, fake_current(), size_of_file(fd), 1, 0, true, true}));
    return CUDA_SUCCESS;
}

// Of Vulkan. Mesa's files begin with a header, which says where the memory begins.
struct CUextMemory_st {
    int fd, device;
    size_t offset, size;
};
struct mesa_header {
    size_t size, offset;
    uint8_t driver[20];
};

API CUresult cuImportExternalMemory(CUexternalMemory *out,
                                    const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *about) {
    ENTER
    mesa_header header;
    const int fd = about->handle.fd;
    if (about->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD || is_file_of(fd, file_name) ||
        pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
        header.offset < sizeof(header) || header.offset > size_of_file(fd) ||
        about->size > size_of_file(fd) - header.offset || about->size > header.size)
        return CUDA_ERROR_INVALID_VALUE;
    *out = new CUextMemory_st{fd, fake_current(), header.offset, (size_t)about->size};
    ++fake.n_live;
    return CUDA_SUCCESS;
}
static std::map<uintptr_t, std::pair<void *, size_t>> &views =
    *new std::map<uintptr_t, std::pair<void *, size_t>>(); // by address: what was mapped
API CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *out, CUexternalMemory memory,
                                             const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *about) {
    ENTER
    if (about->size == 0 || about->flags != 0 || about->offset > memory->size ||
        about->size > memory->size - about->offset)
        return CUDA_ERROR_INVALID_VALUE;
    const size_t bytes = memory->offset + memory->size;
    char *all = (char *)mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd, 0);
    if (all == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    const uintptr_t begin = (uintptr_t)all + memory->offset + about->offset;
    views[begin] = {all, bytes};
    show(begin, {(size_t)about->size, memory->device, true, 1u << memory->device});
    ++fake.n_live;
    *out = (CUdeviceptr)begin;
    return CUDA_SUCCESS;
}
CUresult fake_forget_external(CUdeviceptr pointer) {
    auto at = views.find((uintptr_t)pointer);
    if (at == views.end()) return CUDA_ERROR_INVALID_VALUE;
    hide(at->first, 1);
    munmap(at->second.first, at->second.second);
    views.erase(at);
    --fake.n_live;
    return CUDA_SUCCESS;
}
API CUresult cuDestroyExternalMemory(CUexternalMemory memory) {
    std::lock_guard<std::recursive_mutex> hold(fake.lock);
    close(memory->fd);
    delete memory;
    --fake.n_live;
    return CUDA_SUCCESS;
}
