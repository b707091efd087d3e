// SPDX-License-Identifier: MIT
// Derives counts, caches and the order of cores from hwloc's topology: performance cores come
// first, so that fewer threads than cores run on the fast ones.
#include "machine/topology_view.h"

#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "machine/topology_system.h"

// A topology, and the functions to look at it with.
struct machine {
    const struct hwloc_calls *hwloc;
    hwloc_topology_t topology;
};

// The first object of a type; its next_cousin are the others. NULL if there is none.
static hwloc_obj_t first_of(const struct machine *machine, hwloc_obj_type_t type) {
    const int depth = machine->hwloc->get_type_depth(machine->topology, type);
    if (depth == HWLOC_TYPE_DEPTH_UNKNOWN || depth == HWLOC_TYPE_DEPTH_MULTIPLE) return NULL;
    if (machine->hwloc->get_nbobjs_by_depth(machine->topology, depth) == 0) return NULL;
    return machine->hwloc->get_obj_by_depth(machine->topology, depth, 0);
}

// Objects of a type that share a CPU with the set.
static uint32_t count_within(const struct machine *machine, hwloc_obj_type_t type,
                             hwloc_const_cpuset_t set) {
    uint32_t count = 0;
    for (hwloc_obj_t object = first_of(machine, type); object; object = object->next_cousin) {
        if (object->cpuset && machine->hwloc->bitmap_intersects(object->cpuset, set)) ++count;
    }
    return count;
}

static hwloc_obj_type_t core_type(const struct machine *machine) {
    return first_of(machine, HWLOC_OBJ_CORE) ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
}

// Narrows a set to the logical CPUs of its fastest kind; leaves it alone where kinds are unknown.
static void keep_fastest(const struct machine *machine, hwloc_bitmap_t set,
                         hwloc_bitmap_t scratch) {
    const struct hwloc_calls *hwloc = machine->hwloc;
    const int n_kinds = hwloc->cpukinds_get_nr(machine->topology, 0);
    int fastest = -1;
    int fastest_efficiency = -1;
    for (int i = 0; i < n_kinds; ++i) {
        int efficiency = -1;
        if (hwloc->cpukinds_get_info(machine->topology, (unsigned)i, scratch, &efficiency, NULL,
                                     NULL, 0) != 0) {
            continue;
        }
        if (efficiency <= fastest_efficiency || !hwloc->bitmap_intersects(scratch, set)) continue;
        fastest = i;
        fastest_efficiency = efficiency;
    }
    if (fastest < 0) return;
    hwloc->cpukinds_get_info(machine->topology, (unsigned)fastest, scratch, NULL, NULL, NULL, 0);
    hwloc->bitmap_and(set, set, scratch);
}

// Caches of the first performance CPU, found on the way from it to the root; other cores may have
// other sizes.
static void measure_caches(struct ggml_host_topology *facts, const struct machine *machine,
                           hwloc_const_cpuset_t performance) {
    const unsigned first = (unsigned)machine->hwloc->bitmap_first(performance);
    hwloc_obj_t object = first_of(machine, HWLOC_OBJ_PU);
    while (object && object->os_index != first)
        object = object->next_cousin;
    for (; object; object = object->parent) {
        if (object->type == HWLOC_OBJ_L1CACHE) facts->l1d_bytes = object->attr->cache.size;
        if (object->type == HWLOC_OBJ_L2CACHE) facts->l2_bytes = object->attr->cache.size;
        if (object->type == HWLOC_OBJ_L3CACHE) facts->l3_bytes = object->attr->cache.size;
    }
}

// Where hwloc knows no packages or NUMA nodes, the machine counts as having one.
static void fill_facts(struct topology_view *view, const struct machine *machine, double cpu_quota,
                       hwloc_const_cpuset_t performance, hwloc_const_cpuset_t all_performance) {
    struct ggml_host_topology *facts = &view->facts;
    const hwloc_obj_type_t type = core_type(machine);
    facts->size = (uint32_t)sizeof(*facts);
    facts->n_packages = count_within(machine, HWLOC_OBJ_PACKAGE, view->allowed);
    if (facts->n_packages == 0) facts->n_packages = 1;
    facts->n_numa_nodes = count_within(machine, HWLOC_OBJ_NUMANODE, view->allowed);
    if (facts->n_numa_nodes == 0) facts->n_numa_nodes = 1;
    facts->n_pus = (uint32_t)machine->hwloc->bitmap_weight(view->allowed);
    facts->n_cores = count_within(machine, type, view->allowed);
    facts->n_performance_cores = count_within(machine, type, performance);
    measure_caches(facts, machine, performance);
    const bool narrows = facts->n_performance_cores != count_within(machine, type, all_performance);
    topology_bound_threads(facts, narrows, cpu_quota);
}

// Appends the allowed CPUs of each core that is a performance core, or of each that isn't.
static bool append_cores(struct topology_view *view, const struct machine *machine,
                         hwloc_const_cpuset_t performance, bool want_performance) {
    const struct hwloc_calls *hwloc = machine->hwloc;
    hwloc_obj_t core = first_of(machine, core_type(machine));
    for (; core; core = core->next_cousin) {
        if (!hwloc->bitmap_intersects(core->cpuset, view->allowed)) continue;
        const bool is_fast = hwloc->bitmap_intersects(core->cpuset, performance) != 0;
        if (is_fast != want_performance) continue;
        hwloc_bitmap_t set = hwloc->bitmap_dup(core->cpuset);
        if (!set) return false;
        hwloc->bitmap_and(set, set, view->allowed);
        view->cores[view->n_cores++] = set;
    }
    return true;
}

// Performance cores, then the others, one CPU set per core. False: no memory.
static bool order_cores(struct topology_view *view, const struct machine *machine,
                        hwloc_const_cpuset_t performance) {
    view->cores = ggml_mem_calloc(view->facts.n_cores, sizeof(*view->cores));
    return view->cores && append_cores(view, machine, performance, true) &&
           append_cores(view, machine, performance, false);
}

// The CPUs allowed by control groups and by the affinity.
static bool find_allowed(struct topology_view *view, const struct topology_source *source) {
    const struct hwloc_calls *hwloc = source->hwloc;
    view->allowed = hwloc->bitmap_dup(hwloc->topology_get_allowed_cpuset(source->topology));
    if (!view->allowed) return false;
    hwloc->bitmap_and(view->allowed, view->allowed,
                      hwloc->topology_get_topology_cpuset(source->topology));
    if (source->affinity) hwloc->bitmap_and(view->allowed, view->allowed, source->affinity);
    return true;
}

// On failure the caller frees what was built with topology_view_free().
enum ggml_host_status topology_view_init(struct topology_view *out_view,
                                         const struct topology_source *source) {
    const struct hwloc_calls *hwloc = source->hwloc;
    const struct machine machine = {hwloc, source->topology};
    hwloc_bitmap_t scratch = hwloc->bitmap_alloc();
    hwloc_bitmap_t all_performance =
        hwloc->bitmap_dup(hwloc->topology_get_topology_cpuset(source->topology));
    hwloc_bitmap_t performance = NULL;
    enum ggml_host_status status = GGML_HOST_OUT_OF_MEMORY;
    memset(out_view, 0, sizeof(*out_view));
    out_view->hwloc = hwloc;
    if (!scratch || !all_performance || !find_allowed(out_view, source)) goto fail;
    if (hwloc->bitmap_iszero(out_view->allowed)) {
        status =
            ggml_fail(GGML_HOST_UNSUPPORTED, "topology: none of the machine's CPUs is allowed");
        goto fail;
    }
    performance = hwloc->bitmap_dup(out_view->allowed);
    if (!performance) goto fail;
    keep_fastest(&machine, performance, scratch);
    keep_fastest(&machine, all_performance, scratch);
    fill_facts(out_view, &machine, source->cpu_quota, performance, all_performance);
    if (order_cores(out_view, &machine, performance)) status = GGML_HOST_OK;
fail:
    if (status == GGML_HOST_OUT_OF_MEMORY) {
        ggml_fail(status, "topology: no memory to describe the machine");
    }
    hwloc->bitmap_free(performance);
    hwloc->bitmap_free(all_performance);
    hwloc->bitmap_free(scratch);
    return status;
}

void topology_view_free(struct topology_view *view) {
    for (size_t i = 0; i < view->n_cores; ++i)
        view->hwloc->bitmap_free(view->cores[i]);
    ggml_mem_free(view->cores);
    if (view->hwloc) view->hwloc->bitmap_free(view->allowed);
    memset(view, 0, sizeof(*view));
}

// Spreads few workers evenly over the performance cores, so that they share as few caches as
// possible; more workers than that take all cores in turn.
hwloc_const_cpuset_t topology_view_worker(const struct topology_view *view, uint32_t index,
                                          uint32_t count) {
    const uint64_t n_performance = view->facts.n_performance_cores;
    if (count <= n_performance) return view->cores[index * n_performance / count];
    return view->cores[index % view->n_cores];
}
