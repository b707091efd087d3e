// SPDX-License-Identifier: MIT
// What the files of the fake driver share: the lock, calls that fail, streams, memory by device.
#ifndef SIMT_FAKE_CUDA_STATE_H
#define SIMT_FAKE_CUDA_STATE_H

#include <stddef.h>
#include <stdint.h>

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/driver_api.h"
#include "fake_cuda.h"
#include "simt.h"

#define API extern "C" __attribute__((visibility("default")))

enum { FAKE_MAX_DEVICES = 8 };

struct fake_driver {
    std::recursive_mutex lock; // of everything; held while kernels run
    int lost;                  // the error that every call returns
    long n_live;
    std::string message;
    int n_visible;
    size_t used[FAKE_MAX_DEVICES];
    bool peers[FAKE_MAX_DEVICES][FAKE_MAX_DEVICES]; // [a][b]: kernels of a may access memory of b
    std::set<CUstream> streams;
};
extern fake_driver &fake;

struct CUstream_st {
    int device;
    std::deque<std::function<void()>> queue;
};

struct fake_allocation {
    size_t size;
    int device;             // -1: the host's
    bool is_mapped = false; // behind reserved addresses: `access` says who reaches it
    uint32_t access = 0;    // bits of devices
};
extern std::map<uintptr_t, fake_allocation> &fake_memory;

// Counts the call, and returns the error that it is made to fail with.
int fake_enter(const char *name, bool needs_context);
// The device of the context that is current. Only after fake_enter with true.
int fake_current(void);
bool fake_is_stream_here(CUstream stream);
size_t fake_number(const char *name, size_t otherwise);
unsigned fake_capability(void); // 10 * major + minor
size_t fake_total_memory(void);
// Frees what cuExternalMemoryGetMappedBuffer() returned, by cuMemFree().
CUresult fake_forget_external(CUdeviceptr pointer);
// Whether kernels of the device reach the memory.
bool fake_reaches(int device, const fake_allocation &memory);
// Does all that is queued.
void fake_finish(CUstream stream);
void fake_finish_all(void);
// Queued in the stream is work that reaches the event; and that work is done. The number is the
// first one's.
unsigned fake_event_recorded(CUevent event, CUstream stream);
void fake_event_reached(CUevent event, unsigned value);
bool fake_event_is_of(CUevent event, int device);

#define ENTER_AS(needs_context)                                                                    \
    std::lock_guard<std::recursive_mutex> hold(fake.lock);                                         \
    if (const int error = fake_enter(__func__, needs_context)) return error;
#define ENTER ENTER_AS(true)
#define ENTER_WITHOUT_CONTEXT ENTER_AS(false)

#endif
