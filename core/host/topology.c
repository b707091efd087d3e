// SPDX-License-Identifier: MIT
#include "host/topology.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/status.h"
#include "ggml-host.h"
#include "host/cpu_features.h"
#include "host/topology_view.h"

// --- discovery

static struct {
    pthread_once_t once;
    enum ggml_host_status status;
    hwloc_topology_t topology;
    struct topology_view view;
} here = {.once = PTHREAD_ONCE_INIT};

// NULL on failure.
static hwloc_topology_t load(enum hwloc_type_filter_e io_filter) {
    hwloc_topology_t topology = NULL;
    if (hwloc_topology_init(&topology) != 0) return NULL;
    hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    hwloc_topology_set_io_types_filter(topology, io_filter);
    if (hwloc_topology_load(topology) == 0) return topology;
    hwloc_topology_destroy(topology);
    return NULL;
}

static void discover(void) {
    here.status = GGML_HOST_UNSUPPORTED;
    here.topology = load(HWLOC_TYPE_FILTER_KEEP_NONE);
    if (!here.topology) return;
    hwloc_bitmap_t affinity = hwloc_bitmap_alloc();
    const bool has_affinity =
        affinity && hwloc_get_cpubind(here.topology, affinity, HWLOC_CPUBIND_PROCESS) == 0;
    const struct topology_source source = {
        .topology = here.topology,
        .affinity = has_affinity ? affinity : NULL,
        .cpu_quota = cgroup_cpu_limit_here(),
    };
    here.status = topology_view_init(&here.view, &source);
    here.view.facts.cpu_features[0] = cpu_features_detect();
    if (here.status != GGML_HOST_OK) topology_view_free(&here.view);
    hwloc_bitmap_free(affinity);
}

static enum ggml_host_status require(void) {
    pthread_once(&here.once, discover);
    if (here.status == GGML_HOST_OK) return GGML_HOST_OK;
    return ggml_fail(here.status, "topology: the machine could not be discovered");
}

enum ggml_host_status topology_get(struct ggml_host_topology *out) {
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
    memcpy(out, &here.view.facts, size);
    out->size = (uint32_t)size;
    return GGML_HOST_OK;
}

static struct {
    pthread_once_t once;
    hwloc_topology_t topology;
} whole = {.once = PTHREAD_ONCE_INIT};

static void load_whole(void) {
    whole.topology = load(HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
}

const void *topology_hwloc(void) {
    pthread_once(&whole.once, load_whole);
    if (!whole.topology) {
        ggml_fail(GGML_HOST_UNSUPPORTED, "topology_hwloc: the machine could not be discovered");
    }
    return whole.topology;
}

// --- binding

static enum ggml_host_status bind_to(hwloc_const_cpuset_t set) {
    if (hwloc_set_cpubind(here.topology, set, HWLOC_CPUBIND_THREAD) == 0) return GGML_HOST_OK;
    const bool is_missing = errno == ENOSYS;
    return ggml_fail(is_missing ? GGML_HOST_UNSUPPORTED : GGML_HOST_FAILED, "binding a thread: %s",
                     strerror(errno));
}

enum ggml_host_status topology_bind_thread(uint32_t index, uint32_t count) {
    const enum ggml_host_status status = require();
    if (status != GGML_HOST_OK) return status;
    if (count == 0) return bind_to(here.view.allowed);
    if (index >= count) {
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT, "topology_bind_thread: worker %u of %u",
                         (unsigned)index, (unsigned)count);
    }
    return bind_to(topology_view_worker(&here.view, index, count));
}

// Sets the CPUs of the mask that control groups leave to this process.
static void set_mask(hwloc_bitmap_t set, const uint64_t *mask, size_t n_words) {
    const int last = hwloc_bitmap_last(hwloc_topology_get_allowed_cpuset(here.topology));
    for (int cpu = 0; cpu <= last && (size_t)cpu / 64 < n_words; ++cpu) {
        if (mask[cpu / 64] >> (cpu % 64) & 1) hwloc_bitmap_set(set, (unsigned)cpu);
    }
    hwloc_bitmap_and(set, set, hwloc_topology_get_allowed_cpuset(here.topology));
}

enum ggml_host_status topology_bind_mask(const uint64_t *mask, size_t n_words) {
    enum ggml_host_status status = require();
    if (status != GGML_HOST_OK) return status;
    if (!mask || n_words == 0) {
        return ggml_fail(GGML_HOST_INVALID_ARGUMENT, "topology_bind_mask: no mask given");
    }
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    if (!set)
        return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "topology_bind_mask: no memory for the mask");
    set_mask(set, mask, n_words);
    status = hwloc_bitmap_iszero(set)
                 ? ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                             "topology_bind_mask: the mask names no CPU that this process may use")
                 : bind_to(set);
    hwloc_bitmap_free(set);
    return status;
}

// --- public

enum ggml_host_status ggml_host_get_topology(struct ggml_host_topology *out_topology) {
    return topology_get(out_topology);
}

int ggml_host_default_threads(void) {
    return require() == GGML_HOST_OK ? (int)here.view.facts.default_threads : 1;
}
