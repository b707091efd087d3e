// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include "machine/topology_plain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/status.h"
#include "machine/cgroup.h"
#include "machine/topology_system.h"

#ifdef __linux__
#include <sched.h>

enum { MAX_CPUS = 8192, MAX_NODES = 1024, WORD_BITS = 64, N_WORDS = MAX_CPUS / WORD_BITS };
enum { MAX_CACHES = 8, TEXT_SIZE = 4096 };

struct cpu_set {
    uint64_t words[N_WORDS];
};

static struct {
    struct cpu_set allowed;
    struct cpu_set cores[2]; // first CPU of each core: performance cores, the others
    struct ggml_host_topology facts;
} machine;

static bool has(const struct cpu_set *set, unsigned cpu) {
    return set->words[cpu / WORD_BITS] >> cpu % WORD_BITS & 1;
}

static void add(struct cpu_set *set, unsigned cpu) {
    set->words[cpu / WORD_BITS] |= UINT64_C(1) << cpu % WORD_BITS;
}

static uint32_t count(const struct cpu_set *set) {
    uint32_t n = 0;
    for (unsigned cpu = 0; cpu < MAX_CPUS; ++cpu)
        n += has(set, cpu);
    return n;
}

static bool intersects(const struct cpu_set *a, const struct cpu_set *b) {
    for (size_t i = 0; i < N_WORDS; ++i)
        if (a->words[i] & b->words[i]) return true;
    return false;
}

// --- files of /sys

// False if the file is not there or empty.
static bool read_text(const char *path, char out_text[TEXT_SIZE]) {
    FILE *file = ggml_fault(GGML_FAULT_OPEN) ? NULL : fopen(path, "rb");
    const size_t n = file ? fread(out_text, 1, TEXT_SIZE - 1, file) : 0;
    if (file) fclose(file);
    out_text[n] = '\0';
    return n > 0;
}

// Of a list like "0-3,8"; what is no list is empty.
static void parse_list(const char *text, struct cpu_set *out_set) {
    memset(out_set, 0, sizeof(*out_set));
    while (*text >= '0' && *text <= '9') {
        char *end;
        const unsigned long first = strtoul(text, &end, 10);
        unsigned long last = first;
        if (*end == '-') last = strtoul(end + 1, &end, 10);
        for (unsigned long cpu = first; cpu <= last && cpu < MAX_CPUS; ++cpu)
            add(out_set, (unsigned)cpu);
        text = *end == ',' ? end + 1 : end;
        if (*end != ',') return;
    }
}

static bool read_list(const char *path, struct cpu_set *out_set) {
    char text[TEXT_SIZE];
    memset(out_set, 0, sizeof(*out_set));
    if (!read_text(path, text)) return false;
    parse_list(text, out_set);
    return true;
}

// -1 when unknown.
static long read_cpu_number(const char *root, unsigned cpu, const char *name) {
    char path[512], text[TEXT_SIZE];
    snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/cpu%u/%s", root, cpu, name);
    return read_text(path, text) ? strtol(text, NULL, 10) : -1;
}

// --- what follows

// How fast a CPU is compared with others of the machine; only the order counts.
static long speed_of(const char *root, unsigned cpu, const struct cpu_set *fast_kind,
                     bool has_kinds) {
    if (has_kinds) return has(fast_kind, cpu);
    return read_cpu_number(root, cpu, "cpu_capacity");
}

static void measure_caches(const char *root, unsigned cpu, struct ggml_host_topology *facts) {
    for (unsigned i = 0; i < MAX_CACHES; ++i) {
        char path[512], name[64], text[TEXT_SIZE];
        snprintf(name, sizeof(name), "cache/index%u/level", i);
        const long level = read_cpu_number(root, cpu, name);
        snprintf(name, sizeof(name), "cache/index%u/size", i);
        const long kib = read_cpu_number(root, cpu, name);
        snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/cpu%u/cache/index%u/type", root,
                 cpu, i);
        if (level < 1 || kib <= 0 || !read_text(path, text) || text[0] == 'I') continue;
        uint64_t *const bytes[] = {&facts->l1d_bytes, &facts->l2_bytes, &facts->l3_bytes};
        if (level <= 3) *bytes[level - 1] = (uint64_t)kib << 10;
    }
}

static uint32_t count_nodes(const char *root) {
    uint32_t n = 0;
    struct cpu_set online, set;
    char path[512];
    snprintf(path, sizeof(path), "%s/sys/devices/system/node/online", root);
    read_list(path, &online); // numbers of nodes here
    for (unsigned node = 0; node < MAX_NODES; ++node) {
        if (!has(&online, node)) continue;
        snprintf(path, sizeof(path), "%s/sys/devices/system/node/node%u/cpulist", root, node);
        n += read_list(path, &set) && intersects(&set, &machine.allowed);
    }
    return n > 0 ? n : 1;
}

// The first CPU of a core that is allowed stands for it.
static unsigned core_of(const char *root, unsigned cpu) {
    char path[512];
    struct cpu_set siblings;
    snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list",
             root, cpu);
    if (!read_list(path, &siblings)) return cpu;
    for (unsigned other = 0; other < cpu; ++other)
        if (has(&siblings, other) && has(&machine.allowed, other)) return other;
    return cpu;
}

static void find_cores(const char *root) {
    struct cpu_set fast_kind, packages;
    char path[512];
    long fastest = -1;
    unsigned representative = MAX_CPUS;
    memset(&packages, 0, sizeof(packages));
    snprintf(path, sizeof(path), "%s/sys/devices/cpu_core/cpus", root);
    const bool has_kinds = read_list(path, &fast_kind) && intersects(&fast_kind, &machine.allowed);
    for (unsigned cpu = 0; cpu < MAX_CPUS; ++cpu) {
        if (!has(&machine.allowed, cpu)) continue;
        const long speed = speed_of(root, cpu, &fast_kind, has_kinds);
        if (representative == MAX_CPUS || speed > fastest) representative = cpu;
        if (speed > fastest) fastest = speed;
        const long package = read_cpu_number(root, cpu, "topology/physical_package_id");
        add(&packages, package > 0 && package < MAX_CPUS ? (unsigned)package : 0);
    }
    for (unsigned cpu = 0; cpu < MAX_CPUS; ++cpu) {
        if (!has(&machine.allowed, cpu) || core_of(root, cpu) != cpu) continue;
        add(&machine.cores[speed_of(root, cpu, &fast_kind, has_kinds) < fastest], cpu);
    }
    struct ggml_host_topology *facts = &machine.facts;
    facts->n_packages = count(&packages);
    facts->n_performance_cores = count(&machine.cores[0]);
    facts->n_cores = facts->n_performance_cores + count(&machine.cores[1]);
    measure_caches(root, representative, facts);
}

enum ggml_host_status topology_plain_discover(const char *root,
                                              struct ggml_host_topology *out_facts) {
    memset(&machine, 0, sizeof(machine));
    memset(out_facts, 0, sizeof(*out_facts));
    struct cpu_set *allowed = &machine.allowed;
    if (sched_getaffinity(0, sizeof(*allowed), (cpu_set_t *)allowed) != 0) {
        return ggml_fail(GGML_HOST_UNSUPPORTED, "topology: the affinity is not known: %s",
                         strerror(errno));
    }
    struct ggml_host_topology *facts = &machine.facts;
    facts->size = (uint32_t)sizeof(*facts);
    facts->n_pus = count(allowed);
    facts->n_numa_nodes = count_nodes(root);
    find_cores(root);
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    topology_bound_threads(facts, online > 0 && (uint32_t)online > facts->n_pus,
                           cgroup_cpu_limit_here());
    *out_facts = *facts;
    return GGML_HOST_OK;
}

static enum ggml_host_status bind_to(const struct cpu_set *set) {
    if (sched_setaffinity(0, sizeof(*set), (const cpu_set_t *)set) == 0) return GGML_HOST_OK;
    return ggml_fail(errno == EINVAL ? GGML_HOST_INVALID_ARGUMENT : GGML_HOST_FAILED,
                     "binding a thread: %s", strerror(errno));
}

enum ggml_host_status topology_plain_bind_all(void) {
    return bind_to(&machine.allowed);
}

// As topology_view_worker: spread over the performance cores, then over all.
enum ggml_host_status topology_plain_bind_worker(uint32_t index, uint32_t count_) {
    const uint64_t n_performance = machine.facts.n_performance_cores;
    uint64_t wanted =
        count_ <= n_performance ? index * n_performance / count_ : index % machine.facts.n_cores;
    struct cpu_set one;
    memset(&one, 0, sizeof(one));
    for (int kind = 0; kind < 2; ++kind) {
        for (unsigned cpu = 0; cpu < MAX_CPUS; ++cpu) {
            if (!has(&machine.cores[kind], cpu) || wanted-- > 0) continue;
            for (unsigned other = cpu; other < MAX_CPUS; ++other)
                if (has(&machine.allowed, other) && core_of("", other) == cpu) add(&one, other);
            return bind_to(&one);
        }
    }
    return bind_to(&machine.allowed);
}

enum ggml_host_status topology_plain_bind_mask(const uint64_t *mask, size_t n_words) {
    struct cpu_set set;
    memset(&set, 0, sizeof(set));
    for (size_t i = 0; i < n_words && i < N_WORDS; ++i)
        set.words[i] = mask[i];
    if (count(&set) > 0) return bind_to(&set);
    return ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                     "topology_bind_mask: the mask names no CPU that this process may use");
}

#else

enum ggml_host_status topology_plain_discover(const char *root,
                                              struct ggml_host_topology *out_facts) {
    (void)root;
    memset(out_facts, 0, sizeof(*out_facts));
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    out_facts->size = (uint32_t)sizeof(*out_facts);
    out_facts->n_packages = out_facts->n_numa_nodes = 1;
    out_facts->n_pus = online > 0 ? (uint32_t)online : 1;
    out_facts->n_cores = out_facts->n_performance_cores = out_facts->n_pus;
    topology_bound_threads(out_facts, false, 0);
    return GGML_HOST_OK;
}

static enum ggml_host_status no_binding(void) {
    return ggml_fail(GGML_HOST_UNSUPPORTED, "binding a thread: not in a privileged process");
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
