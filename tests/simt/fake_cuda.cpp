// SPDX-License-Identifier: MIT
// A libcuda.so.1 without a GPU. Work of a stream is done as late as the interface permits: when
// somebody waits for it, or for what comes after it, so that whoever forgets to wait gets poison.
// FAKE_CUDA_DEVICES: how many devices there are (1); FAKE_CUDA_MEMORY: bytes of each (1 GiB);
// FAKE_CUDA_CAPABILITY: its capability (90); FAKE_CUDA_PEERS: 0: no device reaches another's
// memory, 1: over the bus, 2: over links of their own (0); FAKE_CUDA_PTX: 10 times the latest
// version of PTX that it compiles (90); FAKE_CUDA_MIG: devices are parts of one; FAKE_CUDA_VMM: 0:
// no memory behind reserved addresses (1); FAKE_CUDA_UUID: 32 hexadecimal digits, of all devices.
// CUDA_VISIBLE_DEVICES is read as the driver does.
#include "fake_cuda_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

fake_driver &fake = *new fake_driver();

// --- calls that fail -----------------------------------------------------------------------------

static long fail_after = -1;
static int fail_with;
static const char *failed;
static std::map<std::string, long> &n_calls = *new std::map<std::string, long>();
static bool initialised;
static thread_local std::vector<int> *current; // devices whose contexts were pushed

API void fake_cuda_fail(long n, int error) {
    std::lock_guard<std::recursive_mutex> hold(fake.lock);
    fail_after = n;
    fail_with = error;
    failed = nullptr;
    fake.lost = 0;
}
API const char *fake_cuda_failed(void) {
    return failed;
}
API long fake_cuda_live(void) {
    return fake.n_live;
}
API const char *fake_cuda_message(void) {
    return fake.message.c_str();
}
API long fake_cuda_calls(const char *name) {
    std::lock_guard<std::recursive_mutex> hold(fake.lock);
    return n_calls[name];
}

int fake_enter(const char *name, bool needs_context) {
    ++n_calls[name];
    if (!initialised && strcmp(name, "cuInit") != 0) return CUDA_ERROR_NOT_INITIALIZED;
    if (needs_context && (!current || current->empty())) return CUDA_ERROR_INVALID_CONTEXT;
    if (fake.lost && needs_context) return fake.lost;
    if (fail_after >= 0 && fail_after-- == 0) {
        failed = name;
        if (cu_ends_context(fail_with) || fail_with == CUDA_ERROR_UNKNOWN) fake.lost = fail_with;
        return fail_with;
    }
    return CUDA_SUCCESS;
}
int fake_current(void) {
    return current->back();
}
bool fake_is_stream_here(CUstream stream) {
    return fake.streams.count(stream) && stream->device == current->back();
}

size_t fake_number(const char *name, size_t otherwise) {
    const char *text = getenv(name);
    return text ? strtoull(text, nullptr, 10) : otherwise;
}

unsigned fake_capability(void) {
    return (unsigned)fake_number("FAKE_CUDA_CAPABILITY", 90);
}

// --- devices and contexts ------------------------------------------------------------------------

static int visible[FAKE_MAX_DEVICES];
static int retained[FAKE_MAX_DEVICES];

// The list ends at the first number that isn't a device's; a number that comes twice makes it
// invalid.
static void read_visible(void) {
    const int n = (int)fake_number("FAKE_CUDA_DEVICES", 1);
    const char *text = getenv("CUDA_VISIBLE_DEVICES");
    fake.n_visible = 0;
    for (int i = 0; !text && i < n && i < FAKE_MAX_DEVICES; ++i)
        visible[fake.n_visible++] = i;
    while (text && *text && fake.n_visible < FAKE_MAX_DEVICES) {
        char *end;
        const long i = strtol(text, &end, 10);
        if (end == text || i < 0 || i >= n) return;
        for (int k = 0; k < fake.n_visible; ++k) {
            if (visible[k] == i) fake.n_visible = 0;
            if (fake.n_visible == 0) return;
        }
        visible[fake.n_visible++] = (int)i;
        if (*end != ',') return;
        text = end + 1;
    }
}

API CUresult cuInit(unsigned) {
    ENTER_WITHOUT_CONTEXT
    if (!initialised) read_visible();
    initialised = true;
    return fake.n_visible ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}
API CUresult cuDriverGetVersion(int *out) {
    std::lock_guard<std::recursive_mutex> hold(fake.lock);
    *out = (int)fake_number("FAKE_CUDA_VERSION", 13000);
    return CUDA_SUCCESS;
}
API CUresult cuGetErrorName(CUresult error, const char **out) {
    *out = error == CUDA_ERROR_OUT_OF_MEMORY             ? "CUDA_ERROR_OUT_OF_MEMORY"
           : error == CUDA_ERROR_LAUNCH_FAILED           ? "CUDA_ERROR_LAUNCH_FAILED"
           : error == CUDA_ERROR_ECC_UNCORRECTABLE       ? "CUDA_ERROR_ECC_UNCORRECTABLE"
           : error == CUDA_ERROR_UNKNOWN                 ? "CUDA_ERROR_UNKNOWN"
           : error == CUDA_ERROR_NO_DEVICE               ? "CUDA_ERROR_NO_DEVICE"
           : error == CUDA_ERROR_NO_BINARY_FOR_GPU       ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
           : error == CUDA_ERROR_UNSUPPORTED_PTX_VERSION ? "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"
                                                         : "CUDA_ERROR_OTHER";
    return CUDA_SUCCESS;
}
API CUresult cuDeviceGetCount(int *out) {
    ENTER_WITHOUT_CONTEXT
    *out = fake.n_visible;
    return CUDA_SUCCESS;
}
API CUresult cuDeviceGet(CUdevice *out, int index) {
    ENTER_WITHOUT_CONTEXT
    if (index < 0 || index >= fake.n_visible) return 101;
    *out = index;
    return CUDA_SUCCESS;
}
API CUresult cuDeviceGetName(char *out, int size, CUdevice device) {
    ENTER_WITHOUT_CONTEXT
    snprintf(out, (size_t)size, "Emulated GPU %d%s", visible[device],
             getenv("FAKE_CUDA_MIG") ? " MIG 1g.10gb" : "");
    return CUDA_SUCCESS;
}
API CUresult cuDeviceGetAttribute(int *out, int attribute, CUdevice) {
    ENTER_WITHOUT_CONTEXT
    const int capability = (int)fake_capability();
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *out = capability / 10; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *out = capability % 10; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *out = 4; break;
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED: *out = 1; break;
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
        *out = fake_number("FAKE_CUDA_VMM", 1) != 0;
        break;
    default: *out = 0;
    }
    return CUDA_SUCCESS;
}
API CUresult cuDeviceGetUuid_v2(CUuuid *out, CUdevice device) {
    ENTER_WITHOUT_CONTEXT
    const char *text = getenv("FAKE_CUDA_UUID");
    memset(out, 0x5a, sizeof(*out));
    out->bytes[15] = (char)visible[device];
    for (int i = 0; text && i < 16 && text[2 * i] && text[2 * i + 1]; ++i) {
        const char byte[3] = {text[2 * i], text[2 * i + 1], 0};
        out->bytes[i] = (char)strtoul(byte, nullptr, 16);
    }
    return CUDA_SUCCESS;
}
API CUresult cuDeviceGetPCIBusId(char *out, int size, CUdevice device) {
    ENTER_WITHOUT_CONTEXT
    snprintf(out, (size_t)size, "0000:%02X:00.0", 0xe0 + visible[device]);
    return CUDA_SUCCESS;
}
API CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device) {
    ENTER_WITHOUT_CONTEXT
    ++retained[device];
    ++fake.n_live;
    *out = (CUcontext)(uintptr_t)(device + 1);
    return CUDA_SUCCESS;
}
API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    std::lock_guard<std::recursive_mutex> hold(fake.lock);
    if (retained[device] == 0) return CUDA_ERROR_INVALID_CONTEXT;
    --fake.n_live;
    if (--retained[device] == 0) memset(fake.peers[device], 0, sizeof(fake.peers[device]));
    return CUDA_SUCCESS;
}
// The device of a context that lives, or -1.
static int device_of(CUcontext context) {
    const int device = (int)(uintptr_t)context - 1;
    return device < 0 || device >= fake.n_visible || retained[device] == 0 ? -1 : device;
}
API CUresult cuCtxPushCurrent_v2(CUcontext context) {
    ENTER_WITHOUT_CONTEXT
    if (device_of(context) < 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (!current) current = new std::vector<int>();
    current->push_back(device_of(context));
    return CUDA_SUCCESS;
}
API CUresult cuCtxPopCurrent_v2(CUcontext *out) {
    std::lock_guard<std::recursive_mutex> hold(fake.lock);
    if (!current || current->empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (out) *out = (CUcontext)(uintptr_t)(current->back() + 1);
    current->pop_back();
    if (current->empty()) {
        delete current;
        current = nullptr;
    }
    return CUDA_SUCCESS;
}
API CUresult cuCtxSetCurrent(CUcontext context) {
    ENTER_WITHOUT_CONTEXT
    const int device = device_of(context);
    if (context && device < 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (current && !current->empty()) cuCtxPopCurrent_v2(nullptr);
    return context ? cuCtxPushCurrent_v2(context) : CUDA_SUCCESS;
}
API CUresult cuCtxGetCurrent(CUcontext *out) {
    ENTER_WITHOUT_CONTEXT
    *out = current ? (CUcontext)(uintptr_t)(current->back() + 1) : nullptr;
    return CUDA_SUCCESS;
}

// --- peers ---------------------------------------------------------------------------------------

API CUresult cuDeviceCanAccessPeer(int *out, CUdevice device, CUdevice peer) {
    ENTER_WITHOUT_CONTEXT
    *out = device != peer && fake_number("FAKE_CUDA_PEERS", 0) > 0;
    return CUDA_SUCCESS;
}
API CUresult cuDeviceGetP2PAttribute(int *out, int attribute, CUdevice device, CUdevice peer) {
    ENTER_WITHOUT_CONTEXT
    if (device == peer) return 101;
    *out = attribute == CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED &&
           fake_number("FAKE_CUDA_PEERS", 0) > 1;
    return CUDA_SUCCESS;
}
API CUresult cuCtxEnablePeerAccess(CUcontext context, unsigned flags) {
    ENTER
    const int peer = device_of(context);
    if (peer < 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (peer == fake_current() || fake_number("FAKE_CUDA_PEERS", 0) == 0)
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    if (fake.peers[fake_current()][peer]) return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    fake.peers[fake_current()][peer] = true;
    return CUDA_SUCCESS;
}

// --- streams and events --------------------------------------------------------------------------

struct CUevent_st {
    int device;
    bool is_timed;
    CUstream stream = nullptr; // where the last record waits to be reached
    unsigned recorded = 0, reached = 0;
    bool destroyed = false;
    uint64_t ns = 0; // when it was reached last
};

static void run_until(CUstream stream, const std::function<bool()> &done) {
    while (!done() && !stream->queue.empty()) {
        std::function<void()> work = std::move(stream->queue.front());
        stream->queue.pop_front();
        work();
    }
}
void fake_finish(CUstream stream) {
    run_until(stream, [] { return false; });
}
void fake_finish_all(void) {
    for (CUstream s : std::set<CUstream>(fake.streams))
        fake_finish(s);
}
static void reach(CUevent event, CUstream stream, unsigned value) {
    if (stream && fake.streams.count(stream))
        run_until(stream, [=] { return event->reached >= value; });
}

API CUresult cuCtxSynchronize(void) {
    ENTER
    for (CUstream s : std::set<CUstream>(fake.streams)) {
        if (s->device == fake_current()) fake_finish(s);
    }
    return fake.lost;
}
API CUresult cuStreamCreate(CUstream *out, unsigned) {
    ENTER
    *out = new CUstream_st{fake_current(), {}};
    fake.streams.insert(*out);
    ++fake.n_live;
    return CUDA_SUCCESS;
}
// Work that is queued is still done.
API CUresult cuStreamDestroy_v2(CUstream stream) {
    std::lock_guard<std::recursive_mutex> hold(fake.lock);
    if (!fake.streams.count(stream)) return CUDA_ERROR_INVALID_HANDLE;
    fake_finish(stream);
    fake.streams.erase(stream);
    delete stream;
    --fake.n_live;
    return CUDA_SUCCESS;
}
API CUresult cuStreamSynchronize(CUstream stream) {
    ENTER
    fake_finish(stream);
    return fake.lost;
}
API CUresult cuEventCreate(CUevent *out, unsigned flags) {
    ENTER
    *out = new CUevent_st{fake_current(), !(flags & CU_EVENT_DISABLE_TIMING)};
    ++fake.n_live;
    return CUDA_SUCCESS;
}
static std::map<CUevent, int> &event_uses = *new std::map<CUevent, int>(); // in queues
static void use(CUevent event, int change) {
    int &n = event_uses[event];
    n += change;
    if (n > 0) return;
    event_uses.erase(event);
    if (event->destroyed) delete event;
}
bool fake_event_is_of(CUevent event, int device) {
    return event->device == device;
}
unsigned fake_event_recorded(CUevent event, CUstream stream) {
    event->stream = stream;
    use(event, 1);
    return ++event->recorded;
}
void fake_event_reached(CUevent event, unsigned value) {
    struct timespec now;
    if (value > event->reached) event->reached = value;
    clock_gettime(CLOCK_MONOTONIC, &now);
    event->ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    use(event, -1);
}
API CUresult cuEventDestroy_v2(CUevent event) {
    std::lock_guard<std::recursive_mutex> hold(fake.lock);
    event->destroyed = true;
    use(event, 0);
    --fake.n_live;
    return CUDA_SUCCESS;
}
API CUresult cuEventRecord(CUevent event, CUstream stream) {
    ENTER
    if (!fake_is_stream_here(stream) || event->device != fake_current())
        return CUDA_ERROR_INVALID_HANDLE;
    const unsigned value = fake_event_recorded(event, stream);
    stream->queue.push_back([=] { fake_event_reached(event, value); });
    return CUDA_SUCCESS;
}
// The event may be one of another device.
API CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
    ENTER
    if (!fake_is_stream_here(stream)) return CUDA_ERROR_INVALID_HANDLE;
    const unsigned value = event->recorded;
    CUstream recorder = event->stream;
    use(event, 1);
    stream->queue.push_back([=] {
        if (event->reached < value && recorder != stream) reach(event, recorder, value);
        use(event, -1);
    });
    return CUDA_SUCCESS;
}
API CUresult cuEventQuery(CUevent event) {
    ENTER
    return event->reached < event->recorded ? CUDA_ERROR_NOT_READY : fake.lost;
}
API CUresult cuEventSynchronize(CUevent event) {
    ENTER
    if (event->reached < event->recorded) reach(event, event->stream, event->recorded);
    return fake.lost;
}
// To half a microsecond, as the driver says of itself.
API CUresult cuEventElapsedTime(float *out, CUevent begin, CUevent end) {
    ENTER
    if (!begin->is_timed || !end->is_timed || begin->ns == 0 || end->ns == 0)
        return CUDA_ERROR_INVALID_HANDLE;
    if (begin->reached < begin->recorded || end->reached < end->recorded)
        return CUDA_ERROR_NOT_READY;
    const int64_t ns = (int64_t)(end->ns - begin->ns);
    *out = (float)((double)(ns / 512 * 512) * 1e-6);
    return CUDA_SUCCESS;
}
