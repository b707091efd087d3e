// SPDX-License-Identifier: MIT
// A libcuda.so.1 without a GPU. Work of a stream is done as late as the interface permits: when
// somebody waits for it, or for what comes after it, so that whoever forgets to wait gets poison.
// FAKE_CUDA_DEVICES: how many devices there are (1); FAKE_CUDA_MEMORY: bytes of each (1 GiB);
// FAKE_CUDA_CAPABILITY: its capability (90). CUDA_VISIBLE_DEVICES is read as the driver does.
#include "fake_cuda.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/driver_api.h"
#include "simt.h"

#define API extern "C" __attribute__((visibility("default")))

static std::recursive_mutex lock; // of everything here; held while kernels run

// --- calls that fail -----------------------------------------------------------------------------

static long fail_after = -1;
static int fail_with, lost;
static const char *failed;
static long n_live;
static std::string message;
static bool initialised;
static thread_local std::vector<int> *current; // devices whose contexts were pushed

API void fake_cuda_fail(long n, int error) {
    std::lock_guard<std::recursive_mutex> hold(lock);
    fail_after = n;
    fail_with = error;
    failed = nullptr;
    lost = 0;
}
API const char *fake_cuda_failed(void) {
    return failed;
}
API long fake_cuda_live(void) {
    return n_live;
}
API const char *fake_cuda_message(void) {
    return message.c_str();
}

static int enter(const char *name, bool needs_context) {
    if (!initialised && strcmp(name, "cuInit") != 0) return CUDA_ERROR_NOT_INITIALIZED;
    if (needs_context && (!current || current->empty())) return CUDA_ERROR_INVALID_CONTEXT;
    if (lost && needs_context) return lost;
    if (fail_after >= 0 && fail_after-- == 0) {
        failed = name;
        if (fail_with >= CUDA_ERROR_ILLEGAL_ADDRESS) lost = fail_with;
        return fail_with;
    }
    return CUDA_SUCCESS;
}
#define ENTER_AS(needs_context)                                                                    \
    std::lock_guard<std::recursive_mutex> hold(lock);                                              \
    if (const int error = enter(__func__, needs_context)) return error;
#define ENTER ENTER_AS(true)
#define ENTER_WITHOUT_CONTEXT ENTER_AS(false)

static size_t number(const char *name, size_t otherwise) {
    const char *text = getenv(name);
    return text ? strtoull(text, nullptr, 10) : otherwise;
}

// --- devices and contexts ------------------------------------------------------------------------

enum { MAX_DEVICES = 8 };
static int visible[MAX_DEVICES], n_visible;
static int retained[MAX_DEVICES];
static size_t used[MAX_DEVICES];

// The list ends at the first number that isn't a device's; a number that comes twice makes it
// invalid.
static void read_visible(void) {
    const int n = (int)number("FAKE_CUDA_DEVICES", 1);
    const char *text = getenv("CUDA_VISIBLE_DEVICES");
    n_visible = 0;
    for (int i = 0; !text && i < n && i < MAX_DEVICES; ++i)
        visible[n_visible++] = i;
    while (text && *text && n_visible < MAX_DEVICES) {
        char *end;
        const long i = strtol(text, &end, 10);
        if (end == text || i < 0 || i >= n) return;
        for (int k = 0; k < n_visible; ++k) {
            if (visible[k] == i) n_visible = 0;
            if (n_visible == 0) return;
        }
        visible[n_visible++] = (int)i;
        if (*end != ',') return;
        text = end + 1;
    }
}

API CUresult cuInit(unsigned) {
    ENTER_WITHOUT_CONTEXT
    if (!initialised) read_visible();
    initialised = true;
    return n_visible ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}
API CUresult cuDriverGetVersion(int *out) {
    std::lock_guard<std::recursive_mutex> hold(lock);
    *out = (int)number("FAKE_CUDA_VERSION", 13000);
    return CUDA_SUCCESS;
}
API CUresult cuGetErrorName(CUresult error, const char **out) {
    *out = error == CUDA_ERROR_OUT_OF_MEMORY   ? "CUDA_ERROR_OUT_OF_MEMORY"
           : error == CUDA_ERROR_LAUNCH_FAILED ? "CUDA_ERROR_LAUNCH_FAILED"
           : error == CUDA_ERROR_NO_DEVICE     ? "CUDA_ERROR_NO_DEVICE"
                                               : "CUDA_ERROR_OTHER";
    return CUDA_SUCCESS;
}
API CUresult cuDeviceGetCount(int *out) {
    ENTER_WITHOUT_CONTEXT
    *out = n_visible;
    return CUDA_SUCCESS;
}
API CUresult cuDeviceGet(CUdevice *out, int index) {
    ENTER_WITHOUT_CONTEXT
    if (index < 0 || index >= n_visible) return 101;
    *out = index;
    return CUDA_SUCCESS;
}
API CUresult cuDeviceGetName(char *out, int size, CUdevice device) {
    ENTER_WITHOUT_CONTEXT
    snprintf(out, (size_t)size, "Emulated GPU %d", visible[device]);
    return CUDA_SUCCESS;
}
API CUresult cuDeviceGetAttribute(int *out, int attribute, CUdevice) {
    ENTER_WITHOUT_CONTEXT
    const int capability = (int)number("FAKE_CUDA_CAPABILITY", 90);
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *out = capability / 10; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *out = capability % 10; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *out = 4; break;
    default: *out = 0;
    }
    return CUDA_SUCCESS;
}
API CUresult cuDeviceGetUuid_v2(CUuuid *out, CUdevice device) {
    ENTER_WITHOUT_CONTEXT
    memset(out, 0x5a, sizeof(*out));
    out->bytes[15] = (char)visible[device];
    return CUDA_SUCCESS;
}
API CUresult cuDeviceGetPCIBusId(char *out, int size, CUdevice device) {
    ENTER_WITHOUT_CONTEXT
    snprintf(out, (size_t)size, "0000:%02X:00.0", 0xe0 + visible[device]);
    return CUDA_SUCCESS;
}
static size_t total_memory(void) {
    return number("FAKE_CUDA_MEMORY", (size_t)1 << 30);
}
API CUresult cuDeviceTotalMem_v2(size_t *out, CUdevice) {
    ENTER_WITHOUT_CONTEXT
    *out = total_memory();
    return CUDA_SUCCESS;
}
API CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device) {
    ENTER_WITHOUT_CONTEXT
    ++retained[device];
    ++n_live;
    *out = (CUcontext)(uintptr_t)(device + 1);
    return CUDA_SUCCESS;
}
API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    std::lock_guard<std::recursive_mutex> hold(lock);
    if (retained[device] == 0) return CUDA_ERROR_INVALID_CONTEXT;
    --retained[device];
    --n_live;
    return CUDA_SUCCESS;
}
API CUresult cuCtxPushCurrent_v2(CUcontext context) {
    ENTER_WITHOUT_CONTEXT
    const int device = (int)(uintptr_t)context - 1;
    if (device < 0 || device >= n_visible || retained[device] == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!current) current = new std::vector<int>();
    current->push_back(device);
    return CUDA_SUCCESS;
}
API CUresult cuCtxPopCurrent_v2(CUcontext *out) {
    std::lock_guard<std::recursive_mutex> hold(lock);
    if (!current || current->empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (out) *out = (CUcontext)(uintptr_t)(current->back() + 1);
    current->pop_back();
    if (current->empty()) {
        delete current;
        current = nullptr;
    }
    return CUDA_SUCCESS;
}

// --- streams and events --------------------------------------------------------------------------

struct CUstream_st {
    int device;
    std::deque<std::function<void()>> queue;
};
struct CUevent_st {
    CUstream stream = nullptr; // where the last record waits to be reached
    unsigned recorded = 0, reached = 0;
    bool destroyed = false;
};
static std::set<CUstream> *streams = new std::set<CUstream>();

static void run_until(CUstream stream, const std::function<bool()> &done) {
    while (!done() && !stream->queue.empty()) {
        std::function<void()> work = std::move(stream->queue.front());
        stream->queue.pop_front();
        work();
    }
}
static void finish(CUstream stream) {
    run_until(stream, [] { return false; });
}
static void reach(CUevent event, CUstream stream, unsigned value) {
    if (stream && streams->count(stream))
        run_until(stream, [=] { return event->reached >= value; });
}

API CUresult cuCtxSynchronize(void) {
    ENTER
    for (CUstream s : std::set<CUstream>(*streams)) {
        if (s->device == current->back()) finish(s);
    }
    return lost;
}
API CUresult cuStreamCreate(CUstream *out, unsigned) {
    ENTER
    *out = new CUstream_st{current->back(), {}};
    streams->insert(*out);
    ++n_live;
    return CUDA_SUCCESS;
}
// Work that is queued is still done.
API CUresult cuStreamDestroy_v2(CUstream stream) {
    std::lock_guard<std::recursive_mutex> hold(lock);
    if (!streams->count(stream)) return CUDA_ERROR_INVALID_HANDLE;
    finish(stream);
    streams->erase(stream);
    delete stream;
    --n_live;
    return CUDA_SUCCESS;
}
API CUresult cuStreamSynchronize(CUstream stream) {
    ENTER
    finish(stream);
    return lost;
}
API CUresult cuEventCreate(CUevent *out, unsigned) {
    ENTER
    *out = new CUevent_st();
    ++n_live;
    return CUDA_SUCCESS;
}
static std::map<CUevent, int> event_uses; // in queues
static void use(CUevent event, int change) {
    int &n = event_uses[event];
    n += change;
    if (n > 0) return;
    event_uses.erase(event);
    if (event->destroyed) delete event;
}
API CUresult cuEventDestroy_v2(CUevent event) {
    std::lock_guard<std::recursive_mutex> hold(lock);
    event->destroyed = true;
    use(event, 0);
    --n_live;
    return CUDA_SUCCESS;
}
API CUresult cuEventRecord(CUevent event, CUstream stream) {
    ENTER
    const unsigned value = ++event->recorded;
    event->stream = stream;
    use(event, 1);
    stream->queue.push_back([=] {
        if (value > event->reached) event->reached = value;
        use(event, -1);
    });
    return CUDA_SUCCESS;
}
API CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
    ENTER
    const unsigned value = event->recorded;
    CUstream recorder = event->stream;
    use(event, 1);
    stream->queue.push_back([=] {
        if (event->reached < value && recorder != stream) reach(event, recorder, value);
        use(event, -1);
    });
    return CUDA_SUCCESS;
}
API CUresult cuEventSynchronize(CUevent event) {
    ENTER
    if (event->reached < event->recorded) reach(event, event->stream, event->recorded);
    return lost;
}

// --- memory --------------------------------------------------------------------------------------

struct allocation {
    size_t size;
    int device;
};
static std::map<void *, allocation> memory;

API CUresult cuMemGetInfo_v2(size_t *out_free, size_t *out_total) {
    ENTER
    *out_total = total_memory();
    *out_free = *out_total - used[current->back()];
    return CUDA_SUCCESS;
}
API CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t size) {
    ENTER
    const int device = current->back();
    if (size == 0) return CUDA_ERROR_INVALID_VALUE;
    if (size > total_memory() - used[device]) return CUDA_ERROR_OUT_OF_MEMORY;
    void *p = aligned_alloc(512, (size + 511) / 512 * 512);
    if (!p) return CUDA_ERROR_OUT_OF_MEMORY;
    simt_memory_add(p, size);
    memory[p] = {size, device};
    used[device] += size;
    ++n_live;
    *out = (CUdeviceptr)(uintptr_t)p;
    return CUDA_SUCCESS;
}
API CUresult cuMemFree_v2(CUdeviceptr pointer) {
    std::lock_guard<std::recursive_mutex> hold(lock);
    void *p = (void *)(uintptr_t)pointer;
    auto at = memory.find(p);
    if (at == memory.end()) return CUDA_ERROR_INVALID_VALUE;
    for (CUstream s : std::set<CUstream>(*streams)) // the driver waits as well
        finish(s);
    used[at->second.device] -= at->second.size;
    memory.erase(at);
    simt_memory_remove(p);
    free(p);
    --n_live;
    return CUDA_SUCCESS;
}
API CUresult cuMemHostAlloc(void **out, size_t size, unsigned) {
    ENTER
    *out = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
    if (!*out) return CUDA_ERROR_OUT_OF_MEMORY;
    ++n_live;
    return CUDA_SUCCESS;
}
API CUresult cuMemFreeHost(void *p) {
    std::lock_guard<std::recursive_mutex> hold(lock);
    free(p);
    --n_live;
    return CUDA_SUCCESS;
}
static bool is_memory(CUdeviceptr p, size_t size) {
    return simt_memory_has((void *)(uintptr_t)p, size);
}
API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, CUstream stream) {
    ENTER
    if (!is_memory(to, size)) return CUDA_ERROR_INVALID_VALUE;
    stream->queue.push_back([=] { memcpy((void *)(uintptr_t)to, from, size); });
    return CUDA_SUCCESS;
}
API CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, CUstream stream) {
    ENTER
    if (!is_memory(from, size)) return CUDA_ERROR_INVALID_VALUE;
    stream->queue.push_back([=] { memcpy(to, (void *)(uintptr_t)from, size); });
    return CUDA_SUCCESS;
}
API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    ENTER
    if (!is_memory(from, size) || !is_memory(to, size)) return CUDA_ERROR_INVALID_VALUE;
    stream->queue.push_back([=] { memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, size); });
    return CUDA_SUCCESS;
}
API CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t size, CUstream stream) {
    ENTER
    if (!is_memory(to, size)) return CUDA_ERROR_INVALID_VALUE;
    stream->queue.push_back([=] { memset((void *)(uintptr_t)to, value, size); });
    return CUDA_SUCCESS;
}

// --- kernels -------------------------------------------------------------------------------------

// Kernels are in this library, whatever the image; it is only looked at whether it is one.
API CUresult cuModuleLoadData(CUmodule *out, const void *image) {
    ENTER
    const char *bytes = (const char *)image;
    static const unsigned char fatbin[4] = {0x50, 0xed, 0x55, 0xba};
    if (memcmp(bytes, fatbin, 4) != 0 && memcmp(bytes, "\177ELF", 4) != 0 &&
        !strstr(bytes, ".version"))
        return CUDA_ERROR_INVALID_IMAGE;
    *out = (CUmodule) new char;
    ++n_live;
    return CUDA_SUCCESS;
}
API CUresult cuModuleUnload(CUmodule module) {
    std::lock_guard<std::recursive_mutex> hold(lock);
    delete (char *)module;
    --n_live;
    return CUDA_SUCCESS;
}
static std::set<std::string> *names = new std::set<std::string>();
API CUresult cuModuleGetFunction(CUfunction *out, CUmodule, const char *name) {
    ENTER
    if (simt_args_size(name) == 0) return CUDA_ERROR_NOT_FOUND;
    *out = (CUfunction)names->insert(name).first->c_str();
    return CUDA_SUCCESS;
}
API CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                            unsigned by, unsigned bz, unsigned shared, CUstream stream,
                            void **params, void **) {
    ENTER
    const char *name = (const char *)function;
    if (gx == 0 || gy == 0 || gz == 0 || gx > 0x7fffffffu || gy > 65535 || gz > 65535 || by != 1 ||
        bz != 1 || shared || bx == 0 || bx > simt_max_threads(name))
        return CUDA_ERROR_INVALID_VALUE;
    const std::vector<char> args((char *)params[0], (char *)params[0] + simt_args_size(name));
    stream->queue.push_back([=] {
        void *copy = aligned_alloc(64, (args.size() + 63) / 64 * 64);
        memcpy(copy, args.data(), args.size());
        const simt_launch launch = {name, {gx, gy, gz}, bx, copy};
        char text[300];
        if (!lost && !simt_run(&launch, text, sizeof(text))) {
            message = text;
            if (!getenv("FAKE_CUDA_QUIET")) fprintf(stderr, "fake_cuda: %s\n", text);
            lost = CUDA_ERROR_LAUNCH_FAILED;
        }
        free(copy);
    });
    return CUDA_SUCCESS;
}
