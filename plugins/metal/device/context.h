// SPDX-License-Identifier: MIT
// What a device needs to compute, made when it is needed first: the kernels' pipelines.
#ifndef METAL_DEVICE_CONTEXT_H
#define METAL_DEVICE_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/objc.h"
#include "device/archive.h"
#include "device/kernels.h"
#include "ggml-impl.h"
#include "ggml-plugin.h"

struct metal_context {
    mtl_id device; // the plugin's reference
    mtl_id library;
    pthread_mutex_t pipelines_mutex;
    struct metal_archive archive;        // of the pipelines
    mtl_id pipelines[SIMT_KERNEL_COUNT]; // each made when it is asked for first
    struct metal_special *special;       // likewise of the plugin's own kernels
    bool has_matrices;                   // of SIMD groups
    atomic_uint_fast64_t generation;     // grows when a buffer is freed
    atomic_bool lost;
    mtl_id residency;             // NULL: the system has no residency sets
    pthread_mutex_t copies_mutex; // of the next three, for transfers that block
    mtl_id copies, staging;       // a queue and memory, made when they are needed
    size_t staging_bytes;
    pthread_mutex_t mutex;            // of the list of streams, and of what each has pending
    struct metal_stream *streams;     // that live
    struct metal_download *downloads; // that the host has not got yet, the newest first
    uint64_t n_downloads;             // so far
};

// The first failure of queued work.
struct metal_failure {
    enum ggml_host_status status;
    char text[160];
};

// Compiles the kernels. NULL after set_error. [any-thread]
struct metal_context *metal_context_new(mtl_id device);
// Nothing of it may live any more. NULL does nothing. [any-thread]
void metal_context_free(struct metal_context *context);
// The pipeline of a kernel, which stays the context's. The first call for a kernel is slow.
// [any-thread]
enum ggml_host_status metal_context_pipeline(struct metal_context *context,
                                             const struct metal_variant *variant,
                                             mtl_id *out_pipeline);
// Keeps what was compiled for the next program. [any-thread]
void metal_context_keep(struct metal_context *context);
// OK, if there can be calls: fails in a child of the process that started Metal, and when the
// device is lost. [any-thread]
enum ggml_host_status metal_context_check(const struct metal_context *context);
// Whether this is the process that started Metal, not a child of it. [any-thread]
bool metal_in_owner(void);
// Waits for a command buffer, and keeps its failure if there was none before. [any-thread]
void metal_commands_wait(struct metal_context *context, mtl_id commands,
                         struct metal_failure *failure);

// The kernels' source.
const char *metal_source(void);

#endif
