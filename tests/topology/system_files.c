// SPDX-License-Identifier: MIT
// Writes the files of /sys/devices that the library reads, from the objects of an hwloc
// topology.
#include "topology/system_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { PATH_SIZE = 512 };

static void make_folders(char *path, size_t root_length) {
    for (char *slash = strchr(path + root_length, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
}

// The folders of the path are made where they are missing: most files lie beside another one.
static void write_text(const char *root, const char *name, const char *text) {
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "%s/%s", root, name);
    FILE *file = fopen(path, "w");
    if (!file) {
        make_folders(path, strlen(root));
        file = fopen(path, "w");
    }
    assert_non_null(file);
    fprintf(file, "%s\n", text);
    assert_int_equal(fclose(file), 0);
}

static void write_list(const char *root, const char *name, hwloc_const_bitmap_t set) {
    char *text = NULL;
    assert_true(hwloc_bitmap_list_asprintf(&text, set) >= 0);
    write_text(root, name, text);
    free(text);
}

static void write_number(const char *root, const char *name, unsigned number) {
    char text[16];
    snprintf(text, sizeof(text), "%u", number);
    write_text(root, name, text);
}

static void write_cache(const char *root, unsigned cpu, unsigned index, hwloc_obj_t cache) {
    static const char *const types[] = {"Unified", "Data", "Instruction"};
    char name[96], size[32];
    const unsigned level = cache->attr->cache.depth;
    snprintf(name, sizeof(name), "sys/devices/system/cpu/cpu%u/cache/index%u/level", cpu, index);
    write_number(root, name, level);
    snprintf(name, sizeof(name), "sys/devices/system/cpu/cpu%u/cache/index%u/type", cpu, index);
    write_text(root, name, types[cache->attr->cache.type]);
    snprintf(name, sizeof(name), "sys/devices/system/cpu/cpu%u/cache/index%u/size", cpu, index);
    snprintf(size, sizeof(size), "%lluK", (unsigned long long)cache->attr->cache.size / 1024);
    write_text(root, name, size);
}

static void write_cpu(const char *root, hwloc_obj_t pu) {
    char name[96];
    unsigned n_caches = 0;
    for (hwloc_obj_t object = pu->parent; object; object = object->parent) {
        if (hwloc_obj_type_is_cache(object->type))
            write_cache(root, pu->os_index, n_caches++, object);
        if (object->type == HWLOC_OBJ_CORE) {
            snprintf(name, sizeof(name),
                     "sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", pu->os_index);
            write_list(root, name, object->cpuset);
        }
        if (object->type == HWLOC_OBJ_PACKAGE) {
            snprintf(name, sizeof(name),
                     "sys/devices/system/cpu/cpu%u/topology/physical_package_id", pu->os_index);
            write_number(root, name, object->logical_index);
        }
    }
}

void system_files_write(const char *root, hwloc_topology_t topology, hwloc_const_bitmap_t fast) {
    char name[96];
    hwloc_obj_t object = NULL;
    hwloc_bitmap_t nodes = hwloc_bitmap_alloc();
    assert_non_null(nodes);
    while ((object = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, object)))
        write_cpu(root, object);
    while ((object = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, object))) {
        hwloc_bitmap_set(nodes, object->os_index);
        snprintf(name, sizeof(name), "sys/devices/system/node/node%u/cpulist", object->os_index);
        write_list(root, name, object->cpuset);
    }
    write_list(root, "sys/devices/system/node/online", nodes);
    write_list(root, "sys/devices/system/cpu/online", hwloc_topology_get_topology_cpuset(topology));
    if (fast) write_list(root, "sys/devices/cpu_core/cpus", fast);
    hwloc_bitmap_free(nodes);
}

void system_files_write_frequency(const char *root, unsigned cpu, unsigned mhz) {
    char name[96];
    snprintf(name, sizeof(name), "sys/devices/system/cpu/cpu%u/cpufreq/cpuinfo_max_freq", cpu);
    write_number(root, name, mhz * 1000);
}
