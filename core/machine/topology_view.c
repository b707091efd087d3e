// SPDX-License-Identifier: MIT
#include "machine/topology_view.h"

#include <hwloc/cpukinds.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "machine/topology_system.h"

static uint32_t count_within(hwloc_topology_t topology, hwloc_obj_type_t type,
                             hwloc_const_cpuset_t set) {
    uint32_t count = 0;
    hwloc_obj_t object = NULL;
    while ((object = hwloc_get_next_obj_by_type(topology, type, object))) {
        if (object->cpuset && hwloc_bitmap_intersects(object->cpuset, set)) ++count;
    }
    return count;
}

static hwloc_obj_type_t core_type(hwloc_topology_t topology) {
    return hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
}

// Narrows a set to the logical CPUs of its fastest kind; leaves it alone where kinds are unknown.
static void keep_fastest(hwloc_topology_t topology, hwloc_bitmap_t set, hwloc_bitmap_t scratch) {
    const int n_kinds = hwloc_cpukinds_get_nr(topology, 0);
    int fastest = -1;
    int fastest_efficiency = -1;
    for (int i = 0; i < n_kinds; ++i) {
        int efficiency = -1;
        if (hwloc_cpukinds_get_info(topology, (unsigned)i, scratch, &efficiency, NULL, NULL, 0) !=
            0) {
            continue;
        }
        if (efficiency <= fastest_efficiency || !hwloc_bitmap_intersects(scratch, set)) continue;
        fastest = i;
        fastest_efficiency = efficiency;
    }
    if (fastest < 0) return;
    hwloc_cpukinds_get_info(topology, (unsigned)fastest, scratch, NULL, NULL, NULL, 0);
    hwloc_bitmap_and(set, set, scratch);
}

static void measure_caches(struct ggml_host_topology *facts, hwloc_topology_t topology,
                           hwloc_const_cpuset_t performance) {
    hwloc_obj_t object =
        hwloc_get_pu_obj_by_os_index(topology, (unsigned)hwloc_bitmap_first(performance));
    for (; object; object = object->parent) {
        if (object->type == HWLOC_OBJ_L1CACHE) facts->l1d_bytes = object->attr->cache.size;
        if (object->type == HWLOC_OBJ_L2CACHE) facts->l2_bytes = object->attr->cache.size;
        if (object->type == HWLOC_OBJ_L3CACHE) facts->l3_bytes = object->attr->cache.size;
    }
}

static void fill_facts(struct topology_view *view, const struct topology_source *source,
                       hwloc_const_cpuset_t performance, hwloc_const_cpuset_t all_performance) {
    struct ggml_host_topology *facts = &view->facts;
    hwloc_topology_t topology = source->topology;
    const hwloc_obj_type_t type = core_type(topology);
    facts->size = (uint32_t)sizeof(*facts);
    facts->n_packages = count_within(topology, HWLOC_OBJ_PACKAGE, view->allowed);
    if (facts->n_packages == 0) facts->n_packages = 1;
    facts->n_numa_nodes = count_within(topology, HWLOC_OBJ_NUMANODE, view->allowed);
    if (facts->n_numa_nodes == 0) facts->n_numa_nodes = 1;
    facts->n_pus = (uint32_t)hwloc_bitmap_weight(view->allowed);
    facts->n_cores = count_within(topology, type, view->allowed);
    facts->n_performance_cores = count_within(topology, type, performance);
    measure_caches(facts, topology, performance);
    const bool narrows =
        facts->n_performance_cores != count_within(topology, type, all_performance);
    topology_bound_threads(facts, narrows, source->cpu_quota);
}

// Appends the allowed part of each core that lies within the set, or of each that does not.
static bool append_cores(struct topology_view *view, hwloc_topology_t topology,
                         hwloc_const_cpuset_t performance, bool want_performance) {
    hwloc_obj_t core = NULL;
    while ((core = hwloc_get_next_obj_by_type(topology, core_type(topology), core))) {
        if (!hwloc_bitmap_intersects(core->cpuset, view->allowed)) continue;
        if (hwloc_bitmap_intersects(core->cpuset, performance) != want_performance) continue;
        hwloc_bitmap_t set = hwloc_bitmap_dup(core->cpuset);
        if (!set) return false;
        hwloc_bitmap_and(set, set, view->allowed);
        view->cores[view->n_cores++] = set;
    }
    return true;
}

static bool order_cores(struct topology_view *view, hwloc_topology_t topology,
                        hwloc_const_cpuset_t performance) {
    view->cores = ggml_mem_calloc(view->facts.n_cores, sizeof(*view->cores));
    return view->cores && append_cores(view, topology, performance, true) &&
           append_cores(view, topology, performance, false);
}

// What the source leaves to this process.
static bool find_allowed(struct topology_view *view, const struct topology_source *source) {
    view->allowed = hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(source->topology));
    if (!view->allowed) return false;
    hwloc_bitmap_and(view->allowed, view->allowed,
                     hwloc_topology_get_topology_cpuset(source->topology));
    if (source->affinity) hwloc_bitmap_and(view->allowed, view->allowed, source->affinity);
    return true;
}

enum ggml_host_status topology_view_init(struct topology_view *out_view,
                                         const struct topology_source *source) {
    hwloc_topology_t topology = source->topology;
    hwloc_bitmap_t scratch = hwloc_bitmap_alloc();
    hwloc_bitmap_t all_performance = hwloc_bitmap_dup(hwloc_topology_get_topology_cpuset(topology));
    hwloc_bitmap_t performance = NULL;
    enum ggml_host_status status = GGML_HOST_OUT_OF_MEMORY;
    memset(out_view, 0, sizeof(*out_view));
    if (!scratch || !all_performance || !find_allowed(out_view, source)) goto fail;
    if (hwloc_bitmap_iszero(out_view->allowed)) {
        status =
            ggml_fail(GGML_HOST_UNSUPPORTED, "topology: none of the machine's CPUs is allowed");
        goto fail;
    }
    performance = hwloc_bitmap_dup(out_view->allowed);
    if (!performance) goto fail;
    keep_fastest(topology, performance, scratch);
    keep_fastest(topology, all_performance, scratch);
    fill_facts(out_view, source, performance, all_performance);
    if (order_cores(out_view, topology, performance)) status = GGML_HOST_OK;
fail:
    if (status == GGML_HOST_OUT_OF_MEMORY) {
        ggml_fail(status, "topology: no memory to describe the machine");
    }
    hwloc_bitmap_free(performance);
    hwloc_bitmap_free(all_performance);
    hwloc_bitmap_free(scratch);
    return status;
}

void topology_view_free(struct topology_view *view) {
    for (size_t i = 0; i < view->n_cores; ++i)
        hwloc_bitmap_free(view->cores[i]);
    ggml_mem_free(view->cores);
    hwloc_bitmap_free(view->allowed);
    memset(view, 0, sizeof(*view));
}

hwloc_const_cpuset_t topology_view_worker(const struct topology_view *view, uint32_t index,
                                          uint32_t count) {
    const uint64_t n_performance = view->facts.n_performance_cores;
    if (count <= n_performance) return view->cores[index * n_performance / count];
    return view->cores[index % view->n_cores];
}
