// SPDX-License-Identifier: MIT
// Access is enabled once per pair and direction, when the second of two contexts is made, and
// stays: an application that shares the contexts may have enabled it, and may go on with it. Copies
// need no access; without it the driver takes them through the host.
#include "device/peer.h"

#include <string.h>

#include "device/loader.h"
#include "gpu/base/util.h"

enum { MAX_CONTEXTS = 32 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; // of what follows
static struct cuda_context *contexts[MAX_CONTEXTS];
static int n_contexts;

// Links of their own (NVLink) are used; over the bus, drivers say that access works where a
// machine's IOMMU then makes it return other bytes, so that the user has to ask for it.
static bool is_wanted(CUdevice a, CUdevice b) {
    const struct cu_api *api = cuda_api();
    const char *setting = gpu_config("GGML_CUDA_P2P");
    int can = 0, is_link = 0;
    if (strcmp(setting, "0") == 0) return false;
    if (api->cuDeviceCanAccessPeer(&can, a, b) != CUDA_SUCCESS || !can) return false;
    if (setting[0] != '\0') return true;
    return api->cuDeviceGetP2PAttribute(&is_link, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED,
                                        a, b) == CUDA_SUCCESS &&
           is_link;
}

// A failure leaves them apart: copies still work.
static void enable(struct cuda_context *from, struct cuda_context *to) {
    const struct cu_api *api = cuda_api();
    if (!is_wanted(from->device, to->device)) return;
    if (api->cuCtxPushCurrent(from->handle) != CUDA_SUCCESS) return;
    const CUresult result = api->cuCtxEnablePeerAccess(to->handle, 0);
    cuda_context_leave();
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) return;
    // Access between contexts does not hold for memory that was put behind addresses.
    if (api->cuCtxPushCurrent(to->handle) != CUDA_SUCCESS) return;
    const enum ggml_host_status status = cuda_pool_admit(to, from->device);
    cuda_context_leave();
    if (status == GGML_HOST_OK) atomic_fetch_or(&from->reaches, 1u << to->device);
}

void cuda_peers_add(struct cuda_context *context) {
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < n_contexts; ++i) {
        enable(context, contexts[i]);
        enable(contexts[i], context);
    }
    if (n_contexts < MAX_CONTEXTS) contexts[n_contexts++] = context;
    pthread_mutex_unlock(&mutex);
}

void cuda_peers_remove(struct cuda_context *context) {
    pthread_mutex_lock(&mutex);
    for (int i = n_contexts - 1; i >= 0; --i) {
        if (contexts[i] == context)
            contexts[i] = contexts[--n_contexts];
        else
            atomic_fetch_and(&contexts[i]->reaches, ~(1u << context->device));
    }
    pthread_mutex_unlock(&mutex);
}
