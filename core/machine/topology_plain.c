// SPDX-License-Identifier: MIT
// Reads the affinity by sched_getaffinity(); cores, packages, caches and speeds of cores from /sys.
// A core is identified by its lowest CPU that may be used. Sets of CPUs have a fixed size, so that
// nothing is allocated.
#define _GNU_SOURCE
#include "machine/topology_plain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/status.h"
#include "machine/topology_system.h"

#ifdef __linux__
#include <sched.h>

enum { WORD_BITS = 64, MAX_CPUS = TOPOLOGY_PLAIN_WORDS * WORD_BITS, MAX_NODES = 1024 };
enum { MAX_CACHES = 8, TEXT_SIZE = 4096 };

struct cpu_set {
    uint64_t words[TOPOLOGY_PLAIN_WORDS];
};

struct core {
    bool is_slow;
    uint16_t package;
    uint16_t cpu; // the first allowed one
};

// Result of the last discovery.
static struct {
    struct cpu_set allowed;
    struct core cores[MAX_CPUS];    // performance cores first, each kind by packages
    uint16_t core_of_cpu[MAX_CPUS]; // first allowed CPU of its core
    struct ggml_host_topology facts;
} machine;

static bool has(const struct cpu_set *set, unsigned cpu) {
    return set->words[cpu / WORD_BITS] >> cpu % WORD_BITS & 1;
}

static void add(struct cpu_set *set, unsigned cpu) {
    set->words[cpu / WORD_BITS] |= UINT64_C(1) << cpu % WORD_BITS;
}

// CPUs in the set.
static uint32_t count(const struct cpu_set *set) {
    uint32_t n = 0;
    for (unsigned cpu = 0; cpu < MAX_CPUS; ++cpu)
        n += has(set, cpu);
    return n;
}

static bool intersects(const struct cpu_set *a, const struct cpu_set *b) {
    for (size_t i = 0; i < TOPOLOGY_PLAIN_WORDS; ++i)
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

// Parses a list like "0-3,8"; a malformed text gives the set up to the error.
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

// Reads a list such as "0-3,8" from a file; the set is empty if there is none.
static bool read_list(const char *path, struct cpu_set *out_set) {
    char text[TEXT_SIZE];
    memset(out_set, 0, sizeof(*out_set));
    if (!read_text(path, text)) return false;
    parse_list(text, out_set);
    return true;
}

// A number of a CPU's folder; -1 if it is missing.
static long read_cpu_number(const char *root, unsigned cpu, const char *name) {
    char path[512], text[TEXT_SIZE];
    snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/cpu%u/%s", root, cpu, name);
    return read_text(path, text) ? strtol(text, NULL, 10) : -1;
}

// --- derived facts

// Sizes of the data or unified caches that one CPU uses, in bytes; instruction caches are left
// out.
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

// NUMA nodes with a CPU that may be used; 1 where the system doesn't report nodes.
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

// Lowest CPU of the core that is in the set; the CPU itself where siblings are unknown.
static unsigned core_of(const char *root, unsigned cpu, const struct cpu_set *among) {
    char path[512];
    struct cpu_set siblings;
    snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list",
             root, cpu);
    if (!read_list(path, &siblings)) return cpu;
    for (unsigned other = 0; other < cpu; ++other)
        if (has(&siblings, other) && has(among, other)) return other;
    return cpu;
}

// Kinds of cores within a set of CPUs, and what tells them apart: Intel's hybrid processors list
// their performance cores, Arm gives each CPU a capacity, of others only the highest frequencies
// are known.
struct kinds {
    struct cpu_set fast_kind;
    enum { LIST, CAPACITY, FREQUENCY } source;
    long fastest;            // speed of the fastest kind, in the source's unit
    unsigned representative; // first CPU of it
};

// Relative speed of a CPU; -1 if it isn't known.
static long speed_of(const char *root, unsigned cpu, const struct kinds *kinds) {
    switch (kinds->source) {
    case LIST: return has(&kinds->fast_kind, cpu);
    case CAPACITY: return read_cpu_number(root, cpu, "cpu_capacity");
    default: return read_cpu_number(root, cpu, "cpufreq/cpuinfo_max_freq"); // kHz
    }
}

// Cores of one kind may be allowed a boost of some percent more than others of theirs; cores of a
// slower kind differ by more than a tenth.
static bool is_fastest(const char *root, unsigned cpu, const struct kinds *kinds) {
    const long margin = kinds->source == FREQUENCY ? kinds->fastest / 10 : 0;
    return speed_of(root, cpu, kinds) >= kinds->fastest - margin;
}

static bool have_capacity(const char *root, const struct cpu_set *among) {
    for (unsigned cpu = 0; cpu < MAX_CPUS; ++cpu)
        if (has(among, cpu)) return read_cpu_number(root, cpu, "cpu_capacity") >= 0;
    return false;
}

// Finds the fastest kind of cores, and one CPU of it whose caches are reported.
static void find_kinds(const char *root, const struct cpu_set *among, struct kinds *out_kinds) {
    char path[512];
    snprintf(path, sizeof(path), "%s/sys/devices/cpu_core/cpus", root);
    if (read_list(path, &out_kinds->fast_kind) && intersects(&out_kinds->fast_kind, among))
        out_kinds->source = LIST;
    else
        out_kinds->source = have_capacity(root, among) ? CAPACITY : FREQUENCY;
    out_kinds->fastest = -1;
    for (unsigned cpu = 0; cpu < MAX_CPUS; ++cpu) {
        if (!has(among, cpu)) continue;
        const long speed = speed_of(root, cpu, out_kinds);
        if (speed > out_kinds->fastest) out_kinds->fastest = speed;
    }
    out_kinds->representative = 0;
    while (out_kinds->representative < MAX_CPUS - 1 &&
           !(has(among, out_kinds->representative) &&
             is_fastest(root, out_kinds->representative, out_kinds)))
        ++out_kinds->representative;
}

// Performance cores of the whole machine, whether or not they may be used.
static uint32_t count_performance_cores(const char *root) {
    char path[512];
    struct cpu_set online;
    struct kinds kinds;
    uint32_t n = 0;
    snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/online", root);
    if (!read_list(path, &online)) return 0;
    find_kinds(root, &online, &kinds);
    for (unsigned cpu = 0; cpu < MAX_CPUS; ++cpu) {
        n += has(&online, cpu) && core_of(root, cpu, &online) == cpu &&
             is_fastest(root, cpu, &kinds);
    }
    return n;
}

static int compare_cores(const void *a, const void *b) {
    const struct core *x = a, *y = b;
    if (x->is_slow != y->is_slow) return x->is_slow ? 1 : -1;
    if (x->package != y->package) return x->package < y->package ? -1 : 1;
    return x->cpu < y->cpu ? -1 : x->cpu > y->cpu;
}

// Sorts the CPUs that may be used into packages and cores of both kinds. Cores of a package follow
// each other, so that few workers are spread over packages however the system numbers CPUs.
static void find_cores(const char *root) {
    struct ggml_host_topology *facts = &machine.facts;
    struct cpu_set packages;
    struct kinds kinds;
    memset(&packages, 0, sizeof(packages));
    find_kinds(root, &machine.allowed, &kinds);
    for (unsigned cpu = 0; cpu < MAX_CPUS; ++cpu) {
        if (!has(&machine.allowed, cpu)) continue;
        const long number = read_cpu_number(root, cpu, "topology/physical_package_id");
        const unsigned package = number > 0 && number < MAX_CPUS ? (unsigned)number : 0;
        add(&packages, package);
        const unsigned core = core_of(root, cpu, &machine.allowed);
        machine.core_of_cpu[cpu] = (uint16_t)core;
        if (core != cpu) continue;
        const bool is_slow = !is_fastest(root, cpu, &kinds);
        machine.cores[facts->n_cores++] = (struct core){is_slow, (uint16_t)package, (uint16_t)cpu};
        facts->n_performance_cores += !is_slow;
    }
    qsort(machine.cores, facts->n_cores, sizeof(machine.cores[0]), compare_cores);
    facts->n_packages = count(&packages);
    measure_caches(root, kinds.representative, facts);
}

// The CPUs that this process may use, or those that a test gives.
static enum ggml_host_status find_allowed(const struct topology_plain_source *source) {
    struct cpu_set *allowed = &machine.allowed;
    if (source->allowed) {
        memcpy(allowed, source->allowed, sizeof(*allowed));
    } else if (sched_getaffinity(0, sizeof(*allowed), (cpu_set_t *)allowed) != 0) {
        return ggml_fail(GGML_HOST_UNSUPPORTED, "topology: the affinity is not known: %s",
                         strerror(errno));
    }
    if (count(allowed) > 0) return GGML_HOST_OK;
    return ggml_fail(GGML_HOST_UNSUPPORTED, "topology: none of the machine's CPUs is allowed");
}

// Fills out_facts from the affinity and /sys. UNSUPPORTED where the affinity isn't known;
// unreadable files only make facts less exact.
enum ggml_host_status topology_plain_discover(const struct topology_plain_source *source,
                                              struct ggml_host_topology *out_facts) {
    memset(&machine, 0, sizeof(machine));
    memset(out_facts, 0, sizeof(*out_facts));
    const enum ggml_host_status status = find_allowed(source);
    if (status != GGML_HOST_OK) return status;
    struct ggml_host_topology *facts = &machine.facts;
    facts->size = (uint32_t)sizeof(*facts);
    facts->n_pus = count(&machine.allowed);
    facts->n_numa_nodes = count_nodes(source->root);
    find_cores(source->root);
    const bool narrows = count_performance_cores(source->root) > facts->n_performance_cores;
    topology_bound_threads(facts, narrows, source->cpu_quota);
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

// As topology_view_worker(): spreads few workers over the performance cores, more over all cores.
static struct cpu_set worker(uint32_t index, uint32_t n_workers) {
    const uint64_t n_performance = machine.facts.n_performance_cores;
    const uint64_t wanted = n_workers <= n_performance ? index * n_performance / n_workers
                                                       : index % machine.facts.n_cores;
    const unsigned first = machine.cores[wanted].cpu;
    struct cpu_set one;
    memset(&one, 0, sizeof(one));
    for (unsigned cpu = first; cpu < MAX_CPUS; ++cpu)
        if (has(&machine.allowed, cpu) && machine.core_of_cpu[cpu] == first) add(&one, cpu);
    return one;
}

void topology_plain_worker(uint32_t index, uint32_t n_workers,
                           uint64_t out_mask[TOPOLOGY_PLAIN_WORDS]) {
    const struct cpu_set set = worker(index, n_workers);
    memcpy(out_mask, set.words, sizeof(set.words));
}

enum ggml_host_status topology_plain_bind_worker(uint32_t index, uint32_t n_workers) {
    const struct cpu_set set = worker(index, n_workers);
    return bind_to(&set);
}

// Binds this thread; CPUs beyond the size of the set are ignored.
enum ggml_host_status topology_plain_bind_mask(const uint64_t *mask, size_t n_words) {
    struct cpu_set set;
    memset(&set, 0, sizeof(set));
    for (size_t i = 0; i < n_words && i < TOPOLOGY_PLAIN_WORDS; ++i)
        set.words[i] = mask[i];
    if (count(&set) > 0) return bind_to(&set);
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

void topology_plain_worker(uint32_t index, uint32_t n_workers,
                           uint64_t out_mask[TOPOLOGY_PLAIN_WORDS]) {
    (void)index;
    (void)n_workers;
    memset(out_mask, 0xff, TOPOLOGY_PLAIN_WORDS * sizeof(*out_mask));
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
