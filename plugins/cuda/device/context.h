// SPDX-License-Identifier: MIT
// A device's context, made when it is needed first: the driver's primary one, which the
// application's own work with the same device shares.
#ifndef CUDA_DEVICE_CONTEXT_H
#define CUDA_DEVICE_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/driver_api.h"
#include "gpu/base/util.h"
#include "memory/pool.h"
#include "simt/kernels.h"

struct cuda_context {
    CUdevice device;
    CUcontext handle;
    CUmodule module;
    CUstream transfers;    // of the blocking entries of buffers
    pthread_mutex_t mutex; // of that stream
    atomic_bool lost;
    atomic_uint reaches; // bits of the devices whose memory kernels reach besides their own
    unsigned features;   // enum simt_feature
    // Whether launches of a graph may begin before those that they wait for have ended: kernels
    // are code that waits. Cleared where the driver takes no such graph.
    atomic_bool begins_early;
    // Memory.
    size_t memory;         // bytes that the device has
    size_t limit;          // bytes that the plugin may have of it
    atomic_size_t used;    // bytes that it has
    size_t unit;           // of memory that grows in place; 0: there is none
    bool exports;          // memory for others, by file descriptors
    struct cuda_pool pool; // of small buffers
    CUfunction functions[SIMT_ALL_KERNELS];
};

// Loads the kernels. NULL after set_error. [any-thread]
struct cuda_context *cuda_context_new(CUdevice device);
// Nothing of it may live any more. NULL does nothing. [any-thread]
void cuda_context_free(struct cuda_context *context);
// Makes it the calling thread's current one, and the one before that again. Fails in a child of the
// process that started the driver, and when the device is lost. [any-thread]
enum ggml_host_status cuda_context_enter(struct cuda_context *context);
void cuda_context_leave(void);
// Whether this is the process that started the driver, not a child of it. [any-thread]
bool cuda_in_owner(void);
// FAILED after set_error where it is not. [any-thread]
enum ggml_host_status cuda_check_owner(void);
// OK, or the status that stands for the driver's error, after set_error. [any-thread]
enum ggml_host_status cuda_context_check(struct cuda_context *context, CUresult result,
                                         const char *call);

#endif
