// SPDX-License-Identifier: MIT
// Discovers the machine once, on the first call, and bounds the number of threads by its
// performance cores and the CPU quota. A failure is kept, too: every later call returns it.
#include "machine/topology/topology.h"

#include <pthread.h>
#include <string.h>

#include "base/status.h"
#include "ggml-host.h"
#include "machine/cpu_features.h"
#include "machine/topology/topology_system.h"

static struct {
    pthread_once_t once;
    enum ggml_host_status status;
    struct ggml_host_topology facts;
} here = {.once = PTHREAD_ONCE_INIT};

static void discover(void) {
    here.status = topology_system_discover(&here.facts);
    here.facts.cpu_features[0] = cpu_features_detect();
}

static enum ggml_host_status require(void) {
    pthread_once(&here.once, discover);
    if (here.status == GGML_HOST_OK) return GGML_HOST_OK;
    return ggml_fail(here.status, "topology: the machine could not be discovered");
}

// Takes the smallest of performance cores and quota, at least 1; records which of them was
// decisive. A quota of 2.9 CPUs gives 2 threads: a third one would make all wait.
void topology_bound_threads(struct ggml_host_topology *facts, bool affinity_narrows, double quota) {
    facts->default_threads = facts->n_performance_cores;
    facts->default_threads_bound =
        affinity_narrows ? GGML_THREAD_BOUND_AFFINITY : GGML_THREAD_BOUND_CORES;
    if (quota > 0 && quota < (double)facts->default_threads) {
        facts->default_threads = (uint32_t)quota;
        facts->default_threads_bound = GGML_THREAD_BOUND_QUOTA;
    }
    if (facts->default_threads < 1) {
        facts->default_threads = 1;
        facts->default_threads_bound = GGML_THREAD_BOUND_MINIMUM;
    }
}

enum ggml_host_status topology_get(struct ggml_host_topology *out) {
    // Callers of older versions know a shorter struct. Everything after `size` is optional.
    const size_t smallest = offsetof(struct ggml_host_topology, n_packages);
    if (!out || out->size < smallest) {
        return ggml_fail(
            GGML_HOST_INVALID_ARGUMENT,
            "topology_get: set out_topology->size to sizeof(struct ggml_host_topology)");
    }
    const size_t size = out->size < sizeof(*out) ? out->size : sizeof(*out);
    memset((char *)out + smallest, 0, size - smallest);
    const enum ggml_host_status status = require();
    if (status != GGML_HOST_OK) return status;
    memcpy(out, &here.facts, size);
    out->size = (uint32_t)size;
    return GGML_HOST_OK;
}

// --- binding

// count == 0 undoes a binding.
enum ggml_host_status topology_bind_thread(uint32_t index, uint32_t count) {
    const enum ggml_host_status status = require();
    if (status != GGML_HOST_OK) return status;
    if (count == 0) return topology_system_bind_all();
    if (index >= count) {
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT, "topology_bind_thread: worker %u of %u",
                         (unsigned)index, (unsigned)count);
    }
    return topology_system_bind_worker(index, count);
}

enum ggml_host_status topology_bind_mask(const uint64_t *mask, size_t n_words) {
    const enum ggml_host_status status = require();
    if (status != GGML_HOST_OK) return status;
    if (!mask || n_words == 0) {
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT, "topology_bind_mask: no mask given");
    }
    return topology_system_bind_mask(mask, n_words);
}

// --- public

enum ggml_host_status ggml_host_get_topology(struct ggml_host_topology *out_topology) {
    return topology_get(out_topology);
}

int ggml_host_default_threads(void) {
    return require() == GGML_HOST_OK ? (int)here.facts.default_threads : 1;
}
