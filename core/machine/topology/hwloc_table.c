// SPDX-License-Identifier: MIT
// Goes from each logical CPU to the root and notes core, package and caches on the way; nodes and
// kinds of cores have sets of CPUs.
#define _DEFAULT_SOURCE
#include "machine/topology/hwloc_table.h"

#include <string.h>
#include <sys/mman.h>

// hwloc crashes or hangs where an allocation fails, so that the memory it needs for a large machine
// has to be available. Tested by mmap(): malloc() would change how it requests memory later.
static bool has_memory(void) {
    enum { NEEDED = 32 << 20 };
    void *memory = mmap(NULL, NEEDED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    munmap(memory, NEEDED);
    return true;
}

hwloc_topology_t hwloc_table_load(const struct hwloc_calls *hwloc) {
    hwloc_topology_t topology = NULL;
    if (!has_memory() || hwloc->topology_init(&topology) != 0) return NULL;
    // Disallowed CPUs as well, to find out whether the affinity or a control group narrows the
    // machine.
    hwloc->topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    // No PCI devices: discovering them takes most of the time.
    hwloc->topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    if (hwloc->topology_load(topology) == 0) return topology;
    hwloc->topology_destroy(topology);
    return NULL;
}

// The first object of a type; its next_cousin are the others. NULL if there is none.
static hwloc_obj_t first_of(const struct hwloc_calls *hwloc, hwloc_topology_t topology,
                            hwloc_obj_type_t type) {
    const int depth = hwloc->get_type_depth(topology, type);
    if (depth == HWLOC_TYPE_DEPTH_UNKNOWN || depth == HWLOC_TYPE_DEPTH_MULTIPLE) return NULL;
    if (hwloc->get_nbobjs_by_depth(topology, depth) == 0) return NULL;
    return hwloc->get_obj_by_depth(topology, depth, 0);
}

static void take_object(const struct hwloc_calls *hwloc, hwloc_obj_t object,
                        struct topology_cpu *out_cpu) {
    switch ((int)object->type) {
    case HWLOC_OBJ_CORE: out_cpu->core = (uint32_t)hwloc->bitmap_first(object->cpuset); break;
    case HWLOC_OBJ_PACKAGE: out_cpu->package = object->logical_index; break;
    case HWLOC_OBJ_L1CACHE:
    case HWLOC_OBJ_L2CACHE:
    case HWLOC_OBJ_L3CACHE:
        out_cpu->cache_kib[object->attr->cache.depth - 1] =
            (uint32_t)(object->attr->cache.size >> 10);
        break;
    default: break;
    }
}

// Of memory nodes that share CPUs the first counts.
static void take_nodes(const struct hwloc_calls *hwloc, hwloc_topology_t topology,
                       struct topology_table *table) {
    uint64_t taken[TOPOLOGY_WORDS] = {0};
    hwloc_obj_t node = first_of(hwloc, topology, HWLOC_OBJ_NUMANODE);
    for (; node; node = node->next_cousin) {
        for (uint32_t cpu = 0; cpu < table->n_cpus; ++cpu) {
            const uint64_t bit = UINT64_C(1) << cpu % 64;
            if ((taken[cpu / 64] & bit) || !hwloc->bitmap_isset(node->cpuset, cpu)) continue;
            taken[cpu / 64] |= bit;
            table->cpus[cpu].node = node->logical_index;
        }
    }
}

// Where efficiencies are unknown all cores are of one kind.
static void take_kinds(const struct hwloc_calls *hwloc, hwloc_topology_t topology,
                       struct topology_table *table) {
    const int n_kinds = hwloc->cpukinds_get_nr(topology, 0);
    hwloc_bitmap_t set = hwloc->bitmap_alloc();
    for (int i = 0; set && i < n_kinds; ++i) {
        int efficiency = -1;
        if (hwloc->cpukinds_get_info(topology, (unsigned)i, set, &efficiency, NULL, NULL, 0) != 0 ||
            efficiency < 0) {
            continue;
        }
        for (uint32_t cpu = 0; cpu < table->n_cpus; ++cpu) {
            if (table->cpus[cpu].speed > 0 && hwloc->bitmap_isset(set, cpu))
                table->cpus[cpu].speed = (uint32_t)efficiency + 2;
        }
    }
    hwloc->bitmap_free(set);
}

void hwloc_table_fill(const struct hwloc_calls *hwloc, hwloc_topology_t topology,
                      struct topology_table *out_table) {
    hwloc_obj_t pu = first_of(hwloc, topology, HWLOC_OBJ_PU);
    for (; pu; pu = pu->next_cousin) {
        if (pu->os_index >= TOPOLOGY_CPUS_MAX) continue;
        struct topology_cpu *cpu = &out_table->cpus[pu->os_index];
        *cpu = (struct topology_cpu){.core = pu->os_index, .speed = 1};
        for (hwloc_obj_t object = pu->parent; object; object = object->parent)
            take_object(hwloc, object, cpu);
        if (pu->os_index >= out_table->n_cpus) out_table->n_cpus = pu->os_index + 1;
    }
    take_nodes(hwloc, topology, out_table);
    take_kinds(hwloc, topology, out_table);
}
