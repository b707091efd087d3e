// SPDX-License-Identifier: MIT
// A libhwloc.so.15 of 64 cores, of which each has 7 KiB of cache. It crashes, hangs, exits, fails
// or lies about the cores as PLANTED_HWLOC says, and finds no variable of hwloc's own.
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#pragma GCC visibility push(default)

#include <hwloc.h>
#include <hwloc/cpukinds.h>

enum { N_CPUS = 64, CACHE_KIB = 7 };

struct hwloc_bitmap_s {
    unsigned long long bits;
};

struct cpu {
    struct hwloc_obj pu, core, cache;
    struct hwloc_bitmap_s set;
    union hwloc_obj_attr_u attributes;
};

static struct cpu cpus[N_CPUS];

static int has_habit(const char *name) {
    const char *habit = getenv("PLANTED_HWLOC");
    return habit && strcmp(habit, name) == 0;
}

int hwloc_topology_init(hwloc_topology_t *out_topology) {
    *out_topology = (hwloc_topology_t)cpus;
    return getenv("HWLOC_SYNTHETIC") || getenv("HWLOC_PLUGINS_PATH") ? -1 : 0;
}

int hwloc_topology_load(hwloc_topology_t topology) {
    (void)topology;
    if (has_habit("crash")) {
        signal(SIGSEGV, SIG_DFL); // not what a sanitizer makes of it
        raise(SIGSEGV);
    }
    while (has_habit("hang"))
        pause();
    if (has_habit("exit")) _exit(0);
    if (has_habit("fail")) return -1;
    for (unsigned i = 0; i < N_CPUS; ++i) {
        struct cpu *cpu = &cpus[i];
        cpu->set.bits = 1ull << (has_habit("lie") ? N_CPUS - 1 - i : i);
        cpu->pu = (struct hwloc_obj){.type = HWLOC_OBJ_PU, .os_index = i, .parent = &cpu->core};
        cpu->core =
            (struct hwloc_obj){.type = HWLOC_OBJ_CORE, .parent = &cpu->cache, .cpuset = &cpu->set};
        cpu->attributes.cache.size = CACHE_KIB << 10;
        cpu->attributes.cache.depth = 1;
        cpu->cache = (struct hwloc_obj){.type = HWLOC_OBJ_L1CACHE, .attr = &cpu->attributes};
        if (i > 0) cpus[i - 1].pu.next_cousin = &cpu->pu;
    }
    return 0;
}

int hwloc_get_type_depth(hwloc_topology_t topology, hwloc_obj_type_t type) {
    (void)topology;
    return type == HWLOC_OBJ_PU ? 3 : HWLOC_TYPE_DEPTH_UNKNOWN;
}

unsigned hwloc_get_nbobjs_by_depth(hwloc_topology_t topology, int depth) {
    (void)topology;
    return depth == 3 ? N_CPUS : 0;
}

hwloc_obj_t hwloc_get_obj_by_depth(hwloc_topology_t topology, int depth, unsigned index) {
    (void)topology;
    (void)depth;
    return &cpus[index].pu;
}

int hwloc_bitmap_first(hwloc_const_bitmap_t set) {
    return set->bits ? __builtin_ctzll(set->bits) : -1;
}

unsigned hwloc_get_api_version(void) {
    return HWLOC_API_VERSION;
}

// What is called and makes no difference.
hwloc_bitmap_t hwloc_bitmap_alloc(void) {
    return NULL;
}

int hwloc_cpukinds_get_nr(hwloc_topology_t topology, unsigned long flags) {
    (void)topology;
    (void)flags;
    return 0;
}

void hwloc_bitmap_free(hwloc_bitmap_t set) {
    (void)set;
}

int hwloc_topology_set_flags(hwloc_topology_t topology, unsigned long flags) {
    (void)topology;
    (void)flags;
    return 0;
}

int hwloc_topology_set_io_types_filter(hwloc_topology_t topology, enum hwloc_type_filter_e filter) {
    (void)topology;
    (void)filter;
    return 0;
}

void hwloc_topology_destroy(hwloc_topology_t topology) {
    (void)topology;
}

// What has to be there and is never called.
int hwloc_bitmap_and(hwloc_bitmap_t result, hwloc_const_bitmap_t a, hwloc_const_bitmap_t b) {
    (void)result;
    (void)a;
    (void)b;
    abort();
}

int hwloc_bitmap_isset(hwloc_const_bitmap_t set, unsigned id) {
    (void)set;
    (void)id;
    abort();
}

int hwloc_bitmap_iszero(hwloc_const_bitmap_t set) {
    (void)set;
    abort();
}

int hwloc_bitmap_last(hwloc_const_bitmap_t set) {
    (void)set;
    abort();
}

int hwloc_bitmap_set(hwloc_bitmap_t set, unsigned id) {
    (void)set;
    (void)id;
    abort();
}

int hwloc_cpukinds_get_info(hwloc_topology_t topology, unsigned index, hwloc_bitmap_t set,
                            int *efficiency, unsigned *n_infos, struct hwloc_info_s **infos,
                            unsigned long flags) {
    (void)topology;
    (void)index;
    (void)set;
    (void)efficiency;
    (void)n_infos;
    (void)infos;
    (void)flags;
    abort();
}

int hwloc_get_cpubind(hwloc_topology_t topology, hwloc_cpuset_t set, int flags) {
    (void)topology;
    (void)set;
    (void)flags;
    abort();
}

int hwloc_set_cpubind(hwloc_topology_t topology, hwloc_const_cpuset_t set, int flags) {
    (void)topology;
    (void)set;
    (void)flags;
    abort();
}

hwloc_const_cpuset_t hwloc_topology_get_allowed_cpuset(hwloc_topology_t topology) {
    (void)topology;
    abort();
}
