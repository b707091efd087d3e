// SPDX-License-Identifier: MIT
// Linux: the affinity by sched_getaffinity(); cores, packages, caches and speeds of cores from what
// hwloc said in another process, or else from /sys. Nothing is allocated.
#define _GNU_SOURCE
#include "machine/topology/topology_plain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/status.h"
#include "machine/number_list.h"
#include "machine/topology/topology_system.h"

#ifdef __linux__
#include <sched.h>

enum { MAX_NODES = 1024, MAX_CACHES = 8, TEXT_SIZE = 4096 };

struct cpu_set {
    uint64_t words[TOPOLOGY_WORDS];
};

static bool has(const struct cpu_set *set, unsigned cpu) {
    return set->words[cpu / 64] >> cpu % 64 & 1;
}

static bool is_empty(const struct cpu_set *set) {
    for (size_t i = 0; i < TOPOLOGY_WORDS; ++i)
        if (set->words[i] != 0) return false;
    return true;
}

static bool intersects(const struct cpu_set *a, const struct cpu_set *b) {
    for (size_t i = 0; i < TOPOLOGY_WORDS; ++i)
        if (a->words[i] & b->words[i]) return true;
    return false;
}

// --- files of /sys

// false if the file doesn't exist or is empty.
static bool read_text(const char *path, char out_text[TEXT_SIZE]) {
    FILE *file = ggml_fault(GGML_FAULT_OPEN) ? NULL : fopen(path, "rb");
    const size_t n = file ? fread(out_text, 1, TEXT_SIZE - 1, file) : 0;
    if (file) fclose(file);
    out_text[n] = '\0';
    return n > 0;
}

// Reads a list such as "0-3,8" from a file; the set is empty if there is none.
static bool read_list(const char *path, struct cpu_set *out_set) {
    char text[TEXT_SIZE];
    memset(out_set, 0, sizeof(*out_set));
    if (!read_text(path, text)) return false;
    ggml_number_list_parse(text, out_set->words, TOPOLOGY_WORDS);
    return true;
}

// A number of a CPU's folder; -1 if it is missing.
static long read_cpu_number(const char *root, unsigned cpu, const char *name) {
    char path[512], text[TEXT_SIZE];
    snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/cpu%u/%s", root, cpu, name);
    return read_text(path, text) ? strtol(text, NULL, 10) : -1;
}

// --- the table from /sys -------------------------------------------------------------------------

// Sizes of the data or unified caches that one CPU uses; instruction caches are left out.
static void measure_caches(const char *root, unsigned cpu, struct ggml_host_topology *facts) {
    for (unsigned i = 0; i < MAX_CACHES; ++i) {
        char path[512], name[64], text[TEXT_SIZE];
        snprintf(name, sizeof(name), "cache/index%u/level", i);
        const long level = read_cpu_number(root, cpu, name);
        snprintf(name, sizeof(name), "cache/index%u/size", i);
        const long kib = read_cpu_number(root, cpu, name);
        snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/cpu%u/cache/index%u/type", root,
                 cpu, i);
        // Sizes are written as "32K".
        if (level < 1 || kib <= 0 || !read_text(path, text) || text[0] == 'I') continue;
        uint64_t *const bytes[] = {&facts->l1d_bytes, &facts->l2_bytes, &facts->l3_bytes};
        if (level <= 3) *bytes[level - 1] = (uint64_t)kib << 10;
    }
}

// The lowest CPU of the core; the CPU itself where siblings are unknown.
static unsigned core_of(const char *root, unsigned cpu) {
    char path[512];
    struct cpu_set siblings;
    snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list",
             root, cpu);
    if (!read_list(path, &siblings)) return cpu;
    for (unsigned other = 0; other < cpu; ++other)
        if (has(&siblings, other)) return other;
    return cpu;
}

// What tells kinds of cores apart: Intel's hybrid processors list their performance cores, Arm
// gives each CPU a capacity, of others only the highest frequencies are known.
struct kinds {
    struct cpu_set fast_kind;
    enum { LIST, CAPACITY, FREQUENCY } source;
};

static void find_kinds(const char *root, const struct cpu_set *cpus, struct kinds *out_kinds) {
    char path[512];
    unsigned first = 0;
    while (first < TOPOLOGY_CPUS_MAX - 1 && !has(cpus, first))
        ++first;
    snprintf(path, sizeof(path), "%s/sys/devices/cpu_core/cpus", root);
    if (read_list(path, &out_kinds->fast_kind) && intersects(&out_kinds->fast_kind, cpus))
        out_kinds->source = LIST;
    else
        out_kinds->source =
            read_cpu_number(root, first, "cpu_capacity") >= 0 ? CAPACITY : FREQUENCY;
}

// Speed of a CPU in the unit of the source; -1 if it isn't known.
static long speed_of(const char *root, unsigned cpu, const struct kinds *kinds) {
    switch (kinds->source) {
    case LIST: return has(&kinds->fast_kind, cpu);
    case CAPACITY: return read_cpu_number(root, cpu, "cpu_capacity");
    default: return read_cpu_number(root, cpu, "cpufreq/cpuinfo_max_freq"); // kHz
    }
}

// Notes for each CPU to which NUMA node it belongs. The first is 0, and that of CPUs of no node.
static void read_nodes(const char *root, struct topology_table *table) {
    struct cpu_set online, set;
    char path[512];
    snprintf(path, sizeof(path), "%s/sys/devices/system/node/online", root);
    read_list(path, &online); // numbers of nodes here
    for (unsigned node = 0; node < MAX_NODES; ++node) {
        if (!has(&online, node)) continue;
        snprintf(path, sizeof(path), "%s/sys/devices/system/node/node%u/cpulist", root, node);
        read_list(path, &set);
        for (unsigned cpu = 0; cpu < table->n_cpus; ++cpu)
            if (has(&set, cpu)) table->cpus[cpu].node = node;
    }
}

// Unreadable files only make it less exact. Caches are left out: of one CPU, they are read later.
static void read_system(const char *root, const struct cpu_set *allowed,
                        struct topology_table *out_table) {
    char path[512];
    struct cpu_set cpus;
    struct kinds kinds;
    topology_table_clear(out_table);
    snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/online", root);
    read_list(path, &cpus);
    for (size_t i = 0; i < TOPOLOGY_WORDS; ++i)
        cpus.words[i] |= allowed->words[i];
    find_kinds(root, &cpus, &kinds);
    for (unsigned cpu = 0; cpu < TOPOLOGY_CPUS_MAX; ++cpu) {
        if (!has(&cpus, cpu)) continue;
        const long package = read_cpu_number(root, cpu, "topology/physical_package_id");
        const long speed = speed_of(root, cpu, &kinds);
        const unsigned core = core_of(root, cpu);
        out_table->cpus[cpu] = (struct topology_cpu){
            .core = has(&cpus, core) ? core : cpu,
            .package = package > 0 && package < TOPOLOGY_CPUS_MAX ? (uint32_t)package : 0,
            .speed = speed > 0 && speed < INT32_MAX ? (uint32_t)speed + 1 : 1,
        };
        out_table->n_cpus = cpu + 1;
    }
    out_table->margin_percent = kinds.source == FREQUENCY ? 10 : 0;
    read_nodes(root, out_table);
}

// --- discovery -----------------------------------------------------------------------------------

// The CPUs that this process may use, or those that a test gives.
static enum ggml_host_status find_allowed(const struct topology_plain_source *source,
                                          struct cpu_set *out_allowed) {
    memset(out_allowed, 0, sizeof(*out_allowed));
    if (source->allowed) {
        memcpy(out_allowed, source->allowed, sizeof(*out_allowed));
    } else if (sched_getaffinity(0, sizeof(*out_allowed), (cpu_set_t *)out_allowed) != 0) {
        return ggml_fail(GGML_HOST_UNSUPPORTED, "topology: the affinity is not known: %s",
                         strerror(errno));
    }
    return GGML_HOST_OK;
}

// UNSUPPORTED where the affinity isn't known. A table that lacks a CPU that may be used isn't of
// this machine.
enum ggml_host_status topology_plain_discover(const struct topology_plain_source *source,
                                              struct ggml_host_topology *out_facts) {
    static struct topology_table table;
    struct cpu_set allowed;
    uint32_t representative;
    memset(out_facts, 0, sizeof(*out_facts));
    enum ggml_host_status status = find_allowed(source, &allowed);
    if (status != GGML_HOST_OK) return status;
    topology_table_clear(&table);
    const bool told =
        source->ask && source->ask(&table) && topology_table_covers(&table, allowed.words);
    if (!told) read_system(source->root, &allowed, &table);
    status =
        topology_table_apply(&table, allowed.words, source->cpu_quota, out_facts, &representative);
    if (status == GGML_HOST_OK && !told) measure_caches(source->root, representative, out_facts);
    return status;
}

// --- binding -------------------------------------------------------------------------------------

static enum ggml_host_status bind_to(const uint64_t set[TOPOLOGY_WORDS]) {
    const size_t size = TOPOLOGY_WORDS * sizeof(*set);
    if (sched_setaffinity(0, size, (const cpu_set_t *)set) == 0) return GGML_HOST_OK;
    return ggml_fail(errno == EINVAL ? GGML_HOST_INVALID_ARGUMENT : GGML_HOST_FAILED,
                     "binding a thread: %s", strerror(errno));
}

enum ggml_host_status topology_plain_bind_all(void) {
    return bind_to(topology_table_allowed());
}

enum ggml_host_status topology_plain_bind_worker(uint32_t index, uint32_t n_workers) {
    uint64_t set[TOPOLOGY_WORDS];
    topology_table_worker(index, n_workers, set);
    return bind_to(set);
}

// Binds this thread; CPUs beyond the size of the set are ignored.
enum ggml_host_status topology_plain_bind_mask(const uint64_t *mask, size_t n_words) {
    struct cpu_set set;
    memset(&set, 0, sizeof(set));
    for (size_t i = 0; i < n_words && i < TOPOLOGY_WORDS; ++i)
        set.words[i] = mask[i];
    if (!is_empty(&set)) return bind_to(set.words);
    return ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                     "topology_bind_mask: the mask names no CPU that this process may use");
}

#else

enum ggml_host_status topology_plain_discover(const struct topology_plain_source *source,
                                              struct ggml_host_topology *out_facts) {
    memset(out_facts, 0, sizeof(*out_facts));
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    out_facts->size = (uint32_t)sizeof(*out_facts);
    out_facts->n_packages = out_facts->n_numa_nodes = 1;
    out_facts->n_pus = online > 0 ? (uint32_t)online : 1;
    out_facts->n_cores = out_facts->n_performance_cores = out_facts->n_pus;
    topology_bound_threads(out_facts, false, source->cpu_quota);
    return GGML_HOST_OK;
}

static enum ggml_host_status no_binding(void) {
    return ggml_fail(GGML_HOST_UNSUPPORTED, "binding a thread: not without hwloc");
}

enum ggml_host_status topology_plain_bind_all(void) {
    return no_binding();
}

enum ggml_host_status topology_plain_bind_worker(uint32_t index, uint32_t count) {
    (void)index;
    (void)count;
    return no_binding();
}

enum ggml_host_status topology_plain_bind_mask(const uint64_t *mask, size_t n_words) {
    (void)mask;
    (void)n_words;
    return no_binding();
}

#endif
