// SPDX-License-Identifier: MIT
// Thread pools of the CPU device that the application keeps.
#include <string.h>

#include "base/status.h"
#include "cpu_api/find.h"
#include "plugin/registry/live.h"

void ggml_threadpool_params_init(struct ggml_threadpool_params *p, int n_threads) {
    if (!p) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                  "ggml_threadpool_params_init: the parameters are NULL");
        return;
    }
    *p = (struct ggml_threadpool_params){
        // poll: per cent of the time that idle workers spin before they sleep, ggml's default.
        .n_threads = n_threads,
        .prio = GGML_SCHED_PRIO_NORMAL,
        .poll = 50};
}

struct ggml_threadpool_params ggml_threadpool_params_default(int n_threads) {
    struct ggml_threadpool_params params;
    ggml_threadpool_params_init(&params, n_threads);
    return params;
}

bool ggml_threadpool_params_match(const struct ggml_threadpool_params *p0,
                                  const struct ggml_threadpool_params *p1) {
    // Member by member: padding bytes are undefined.
    if (!p0 || !p1) return p0 == p1;
    return p0->n_threads == p1->n_threads && p0->prio == p1->prio && p0->poll == p1->poll &&
           p0->strict_cpu == p1->strict_cpu &&
           memcmp(p0->cpumask, p1->cpumask, sizeof(p0->cpumask)) == 0;
}

// Every pool begins with a head that names its plugin's functions.
static const struct ggml_cpu_api *api_of_pool(struct ggml_threadpool *pool) {
    return ((const struct ggml_threadpool_head *)(const void *)pool)->api;
}

// A pool counts as a live object: its plugin can't be unloaded under it.
struct ggml_threadpool *ggml_threadpool_new(struct ggml_threadpool_params *params) {
    if (!params) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "ggml_threadpool_new: the parameters are NULL");
        return NULL;
    }
    const ggml_backend_dev_t device = cpu_api_device(__func__);
    if (!device) return NULL;
    struct ggml_threadpool *pool = cpu_api_of(device)->threadpool_new(params);
    if (pool) host_live_add(device);
    return pool;
}

void ggml_threadpool_free(struct ggml_threadpool *threadpool) {
    if (!threadpool) return;
    // Found before the pool is freed, since the head is part of it.
    const ggml_backend_dev_t device = cpu_api_device_of(api_of_pool(threadpool));
    api_of_pool(threadpool)->threadpool_free(threadpool);
    host_live_remove(device);
}

int ggml_threadpool_get_n_threads(struct ggml_threadpool *threadpool) {
    return threadpool ? api_of_pool(threadpool)->threadpool_get_n_threads(threadpool) : 0;
}

void ggml_threadpool_pause(struct ggml_threadpool *threadpool) {
    if (threadpool) api_of_pool(threadpool)->threadpool_pause(threadpool);
}

void ggml_threadpool_resume(struct ggml_threadpool *threadpool) {
    if (threadpool) api_of_pool(threadpool)->threadpool_resume(threadpool);
}
