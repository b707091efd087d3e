// SPDX-License-Identifier: MIT
// The machine as Windows describes it: for builds without hwloc.
#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#define _WIN32_WINNT 0x0602
#include <windows.h>

#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/win32.h"
#include "machine/topology/topology.h"
#include "machine/topology/topology_system.h"

// Logical CPU i is bit i % 64 of group i / 64.
enum { MAX_GROUPS = 64 };

struct core {
    GROUP_AFFINITY cpus; // allowed ones
    unsigned efficiency; // the greater, the faster
};

static struct {
    KAFFINITY allowed[MAX_GROUPS];
    struct core *cores; // with an allowed CPU each, performance cores first
    uint32_t n_cores;
    uint32_t n_performance;
    uint32_t n_fastest; // cores of the fastest kind of the machine, allowed or not
} here;

// --- records of the system

struct records {
    char *bytes;
    size_t size;
};

typedef SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX record;

// Asks twice: the first call only returns the size.
static enum ggml_host_status read_records(struct records *out) {
    DWORD size = 0;
    memset(out, 0, sizeof(*out));
    GetLogicalProcessorInformationEx(RelationAll, NULL, &size);
    if (size == 0) return GGML_HOST_UNSUPPORTED;
    out->bytes = ggml_mem_alloc(size);
    if (!out->bytes) return GGML_HOST_OUT_OF_MEMORY;
    if (!GetLogicalProcessorInformationEx(RelationAll, (record *)(void *)out->bytes, &size)) {
        return GGML_HOST_UNSUPPORTED;
    }
    out->size = size;
    return GGML_HOST_OK;
}

// The next record of this kind; NULL at the end. A new search begins with a cursor of 0. Records
// have different sizes.
static const record *next_record(const struct records *records, LOGICAL_PROCESSOR_RELATIONSHIP kind,
                                 size_t *cursor) {
    while (*cursor < records->size) {
        const record *found = (const record *)(const void *)(records->bytes + *cursor);
        *cursor += found->Size;
        if (found->Relationship == kind) return found;
    }
    return NULL;
}

static KAFFINITY allowed_of(const GROUP_AFFINITY *cpus) {
    return cpus->Group < MAX_GROUPS ? cpus->Mask & here.allowed[cpus->Group] : 0;
}

static bool any_allowed(const GROUP_AFFINITY *cpus, WORD count) {
    for (WORD i = 0; i < count; ++i) {
        if (allowed_of(&cpus[i])) return true;
    }
    return false;
}

// --- what this process may use

static void find_allowed(const struct records *records) {
    size_t cursor = 0;
    const record *found = next_record(records, RelationGroup, &cursor);
    DWORD_PTR process = 0, machine = 0;
    USHORT group = 0, n_groups = 1;
    for (WORD i = 0; found && i < found->Group.ActiveGroupCount && i < MAX_GROUPS; ++i)
        here.allowed[i] = found->Group.GroupInfo[i].ActiveProcessorMask;
    // The mask is only valid for a process within one group, and only a narrowed mask keeps it
    // there.
    if (!GetProcessAffinityMask(GetCurrentProcess(), &process, &machine) || process == 0 ||
        process == machine || !GetProcessGroupAffinity(GetCurrentProcess(), &n_groups, &group) ||
        n_groups != 1 || group >= MAX_GROUPS) {
        return;
    }
    const KAFFINITY left = here.allowed[group] & process;
    memset(here.allowed, 0, sizeof(here.allowed));
    here.allowed[group] = left;
}

// CPUs that a job (a container) may keep busy; 0: no limit.
static double cpu_quota(void) {
    enum { WHOLE_MACHINE = 10000 }; // CpuRate is in units of 1/10000 of the machine
    JOBOBJECT_CPU_RATE_CONTROL_INFORMATION rate;
    const DWORD wanted = JOB_OBJECT_CPU_RATE_CONTROL_ENABLE | JOB_OBJECT_CPU_RATE_CONTROL_HARD_CAP;
    memset(&rate, 0, sizeof(rate));
    if (!QueryInformationJobObject(NULL, JobObjectCpuRateControlInformation, &rate, sizeof(rate),
                                   NULL) ||
        (rate.ControlFlags & wanted) != wanted) {
        return 0;
    }
    return (double)rate.CpuRate / WHOLE_MACHINE *
           (double)GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
}

// --- cores

// Headers of mingw-w64 before 11 know this byte as the first of the reserved ones.
static unsigned efficiency_of(const record *core) {
    return ((const BYTE *)&core->Processor)[1];
}

// Appends the allowed cores that are, or aren't, of the fastest allowed kind.
static void append_cores(const struct records *records, unsigned fastest, bool want_fastest) {
    size_t cursor = 0;
    const record *found;
    while ((found = next_record(records, RelationProcessorCore, &cursor))) {
        const GROUP_AFFINITY *cpus = &found->Processor.GroupMask[0];
        const unsigned efficiency = efficiency_of(found);
        if (!allowed_of(cpus) || (efficiency == fastest) != want_fastest) continue;
        struct core *core = &here.cores[here.n_cores++];
        *core = (struct core){*cpus, efficiency};
        core->cpus.Mask = allowed_of(cpus);
    }
}

static enum ggml_host_status find_cores(const struct records *records) {
    unsigned fastest = 0, fastest_allowed = 0;
    size_t cursor = 0, count = 0;
    const record *found;
    while ((found = next_record(records, RelationProcessorCore, &cursor))) {
        const unsigned efficiency = efficiency_of(found);
        const bool allowed = allowed_of(&found->Processor.GroupMask[0]) != 0;
        if (efficiency > fastest) here.n_fastest = 0;
        // Counts the cores of the fastest kind seen so far.
        if (efficiency >= fastest) fastest = efficiency, ++here.n_fastest;
        if (allowed && efficiency > fastest_allowed) fastest_allowed = efficiency;
        count += allowed;
    }
    if (count == 0) return GGML_HOST_UNSUPPORTED;
    here.cores = ggml_mem_calloc(count, sizeof(*here.cores));
    if (!here.cores) return GGML_HOST_OUT_OF_MEMORY;
    append_cores(records, fastest_allowed, true);
    here.n_performance = here.n_cores;
    append_cores(records, fastest_allowed, false);
    return GGML_HOST_OK;
}

// --- facts

static uint32_t count_packages(const struct records *records) {
    uint32_t count = 0;
    size_t cursor = 0;
    const record *found;
    while ((found = next_record(records, RelationProcessorPackage, &cursor)))
        count += any_allowed(found->Processor.GroupMask, found->Processor.GroupCount);
    return count > 0 ? count : 1;
}

static uint32_t count_numa_nodes(const struct records *records) {
    uint32_t count = 0;
    size_t cursor = 0;
    const record *found;
    while ((found = next_record(records, RelationNumaNode, &cursor)))
        count += any_allowed(&found->NumaNode.GroupMask, 1);
    return count > 0 ? count : 1;
}

// Of the first core, which is a performance core.
static void measure_caches(struct ggml_host_topology *facts, const struct records *records) {
    const GROUP_AFFINITY *cpus = &here.cores[0].cpus;
    size_t cursor = 0;
    const record *found;
    while ((found = next_record(records, RelationCache, &cursor))) {
        const CACHE_RELATIONSHIP *cache = &found->Cache;
        if (cache->GroupMask.Group != cpus->Group || !(cache->GroupMask.Mask & cpus->Mask) ||
            cache->Type == CacheInstruction) {
            continue;
        }
        if (cache->Level == 1) facts->l1d_bytes = cache->CacheSize;
        if (cache->Level == 2) facts->l2_bytes = cache->CacheSize;
        if (cache->Level == 3) facts->l3_bytes = cache->CacheSize;
    }
}

static void fill_facts(struct ggml_host_topology *facts, const struct records *records) {
    facts->size = (uint32_t)sizeof(*facts);
    facts->n_packages = count_packages(records);
    facts->n_numa_nodes = count_numa_nodes(records);
    facts->n_cores = here.n_cores;
    facts->n_performance_cores = here.n_performance;
    for (int i = 0; i < MAX_GROUPS; ++i)
        facts->n_pus += (uint32_t)__builtin_popcountll(here.allowed[i]);
    measure_caches(facts, records);
    topology_bound_threads(facts, here.n_performance != here.n_fastest, cpu_quota());
}

enum ggml_host_status topology_system_discover(struct ggml_host_topology *out_facts) {
    struct records records;
    memset(out_facts, 0, sizeof(*out_facts));
    enum ggml_host_status status = read_records(&records);
    if (status == GGML_HOST_OK) {
        find_allowed(&records);
        status = find_cores(&records);
    }
    if (status == GGML_HOST_OK) fill_facts(out_facts, &records);
    ggml_mem_free(records.bytes);
    return status;
}

// --- binding

static enum ggml_host_status bind_to(WORD group, KAFFINITY mask) {
    GROUP_AFFINITY wanted;
    memset(&wanted, 0, sizeof(wanted));
    wanted.Group = group;
    wanted.Mask = mask;
    if (SetThreadGroupAffinity(GetCurrentThread(), &wanted, NULL)) return GGML_HOST_OK;
    char text[WIN32_MESSAGE_SIZE];
    return ggml_fail(GGML_HOST_FAILED, "binding a thread: %s", win32_message(GetLastError(), text));
}

// A thread runs within one group: its present one if the masks name CPUs of it, otherwise the first
// group with any.
static enum ggml_host_status bind_within(const KAFFINITY *masks) {
    GROUP_AFFINITY now;
    WORD group = 0;
    memset(&now, 0, sizeof(now));
    if (GetThreadGroupAffinity(GetCurrentThread(), &now) && now.Group < MAX_GROUPS &&
        masks[now.Group]) {
        return bind_to(now.Group, masks[now.Group]);
    }
    while (group < MAX_GROUPS && !masks[group])
        ++group;
    if (group < MAX_GROUPS) return bind_to(group, masks[group]);
    return ggml_fail(GGML_HOST_INVALID_ARGUMENT,
                     "topology_bind_mask: the mask names no CPU that this process may use");
}

enum ggml_host_status topology_system_bind_all(void) {
    return bind_within(here.allowed);
}

enum ggml_host_status topology_system_bind_worker(uint32_t index, uint32_t count) {
    const uint64_t n_performance = here.n_performance;
    const uint64_t i =
        count <= n_performance ? index * n_performance / count : index % here.n_cores;
    return bind_to(here.cores[i].cpus.Group, here.cores[i].cpus.Mask);
}

enum ggml_host_status topology_system_bind_mask(const uint64_t *mask, size_t n_words) {
    KAFFINITY masks[MAX_GROUPS] = {0};
    for (size_t i = 0; i < MAX_GROUPS && i < n_words; ++i)
        masks[i] = here.allowed[i] & mask[i];
    return bind_within(masks);
}
#endif
