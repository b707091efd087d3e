// SPDX-License-Identifier: MIT
// Replays machines, and binds threads on the one at hand.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <hwloc/cpukinds.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sanitizer.h"
#include "base/status.h"
#include "ggml-host.h"
#include "machine/topology/hwloc_table.h"
#include "machine/topology/topology.h"
#include "machine/topology/topology_plain.h"
#include "support/temp_folder.h"
#include "topology/system_files.h"

struct machine {
    const char *name;
    const char *synthetic;
    const char *removed;
    const char *slow;
    const char *allowed;
    const char *affinity;
    double quota;
    uint32_t n_packages, n_cores, n_performance_cores, n_pus, n_numa_nodes, threads, bound;
    uint64_t l1d_kib, l2_kib, l3_kib;
};

static const struct machine machines[] = {
#define MACHINE_ROW(name, synthetic, removed, slow, allowed, affinity, quota, packages, cores,     \
                    performance, pus, numa, threads, bound, l1d, l2, l3)                           \
    {name,     synthetic, removed,     slow, allowed, affinity, quota,                             \
     packages, cores,     performance, pus,  numa,    threads,  GGML_THREAD_BOUND_##bound,         \
     l1d,      l2,        l3},
#include "topology/data/machine_list.inl"
};
static const struct hwloc_calls *hwloc;
enum { N_MACHINES = sizeof(machines) / sizeof(machines[0]) };

// Set of a list like "0-3,8"; freed by the caller. NULL for "".
static hwloc_bitmap_t set_of(const char *list) {
    if (list[0] == '\0') return NULL;
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    assert_int_equal(hwloc_bitmap_list_sscanf(set, list), 0);
    return set;
}

static void register_kinds(hwloc_topology_t topology, const char *slow_list) {
    hwloc_bitmap_t slow = set_of(slow_list);
    if (!slow) return;
    hwloc_bitmap_t fast = hwloc_bitmap_alloc();
    hwloc_bitmap_andnot(fast, hwloc_topology_get_topology_cpuset(topology), slow);
    assert_int_equal(hwloc_cpukinds_register(topology, fast, 1, 0, NULL, 0), 0);
    assert_int_equal(hwloc_cpukinds_register(topology, slow, 0, 0, NULL, 0), 0);
    hwloc_bitmap_free(fast);
    hwloc_bitmap_free(slow);
}

static hwloc_topology_t build(const struct machine *machine) {
    hwloc_topology_t topology;
    assert_int_equal(hwloc_topology_init(&topology), 0);
    hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    assert_int_equal(hwloc_topology_set_synthetic(topology, machine->synthetic), 0);
    assert_int_equal(hwloc_topology_load(topology), 0);
    hwloc_bitmap_t removed = set_of(machine->removed);
    if (removed) {
        hwloc_bitmap_andnot(removed, hwloc_topology_get_topology_cpuset(topology), removed);
        assert_int_equal(hwloc_topology_restrict(topology, removed, 0), 0);
        hwloc_bitmap_free(removed);
    }
    register_kinds(topology, machine->slow);
    hwloc_bitmap_t allowed = set_of(machine->allowed);
    if (allowed) {
        assert_int_equal(hwloc_topology_allow(topology, allowed, NULL, HWLOC_ALLOW_FLAG_CUSTOM), 0);
        hwloc_bitmap_free(allowed);
    }
    return topology;
}

static void check_facts(const struct machine *machine, const struct ggml_host_topology *facts) {
    assert_int_equal(facts->n_packages, machine->n_packages);
    assert_int_equal(facts->n_cores, machine->n_cores);
    assert_int_equal(facts->n_performance_cores, machine->n_performance_cores);
    assert_int_equal(facts->n_pus, machine->n_pus);
    assert_int_equal(facts->n_numa_nodes, machine->n_numa_nodes);
    assert_int_equal(facts->default_threads, machine->threads);
    assert_int_equal(facts->default_threads_bound, machine->bound);
    assert_int_equal(facts->l1d_bytes, machine->l1d_kib * 1024);
    assert_int_equal(facts->l2_bytes, machine->l2_kib * 1024);
    assert_int_equal(facts->l3_bytes, machine->l3_kib * 1024);
}

// --- replays

static void words_of(hwloc_const_bitmap_t set, uint64_t out_words[TOPOLOGY_WORDS]) {
    memset(out_words, 0, TOPOLOGY_WORDS * sizeof(*out_words));
    int cpu;
    hwloc_bitmap_foreach_begin(cpu, set) {
        out_words[cpu / 64] |= UINT64_C(1) << cpu % 64;
    }
    hwloc_bitmap_foreach_end();
}

// What control groups and the affinity leave of the machine.
static void allowed_of(const struct machine *machine, hwloc_topology_t topology,
                       uint64_t out_words[TOPOLOGY_WORDS]) {
    hwloc_bitmap_t allowed = hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(topology));
    hwloc_bitmap_t affinity = set_of(machine->affinity);
    if (affinity) hwloc_bitmap_and(allowed, allowed, affinity);
    words_of(allowed, out_words);
    hwloc_bitmap_free(affinity);
    hwloc_bitmap_free(allowed);
}

// The table that hwloc makes of the machine, as it reaches a process that asked for it.
static enum ggml_host_status discover_by_hwloc(const struct machine *machine,
                                               struct ggml_host_topology *out_facts) {
    static struct topology_table table;
    uint64_t words[TOPOLOGY_WORDS];
    uint32_t representative;
    hwloc_topology_t topology = build(machine);
    topology_table_clear(&table);
    hwloc_table_fill(hwloc, topology, &table);
    allowed_of(machine, topology, words);
    hwloc_topology_destroy(topology);
    assert_true(topology_table_valid(table.cpus, table.n_cpus));
    assert_true(topology_table_covers(&table, words));
    return topology_table_apply(&table, words, machine->quota, out_facts, &representative);
}

static uint32_t count_bits(const uint64_t *words) {
    uint32_t n = 0;
    for (int i = 0; i < TOPOLOGY_WORDS; ++i)
        n += (uint32_t)__builtin_popcountll(words[i]);
    return n;
}

static bool any_common(const uint64_t *a, const uint64_t *b) {
    for (int i = 0; i < TOPOLOGY_WORDS; ++i)
        if (a[i] & b[i]) return true;
    return false;
}

// Workers up to the number of performance cores have one each, of their own; all cores follow.
static void check_workers(const struct ggml_host_topology *facts) {
    const uint32_t counts[] = {1, 2, facts->n_performance_cores, facts->n_cores,
                               facts->n_cores + 3};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); ++i) {
        uint64_t seen[TOPOLOGY_WORDS] = {0}, set[TOPOLOGY_WORDS];
        for (uint32_t k = 0; k < counts[i]; ++k) {
            topology_table_worker(k, counts[i], set);
            assert_true(count_bits(set) > 0);
            if (k < facts->n_cores && counts[i] <= facts->n_cores)
                assert_false(any_common(set, seen));
            for (int word = 0; word < TOPOLOGY_WORDS; ++word)
                seen[word] |= set[word];
        }
        if (counts[i] >= facts->n_cores) assert_int_equal(count_bits(seen), facts->n_pus);
    }
}

static void test_machines(void **state) {
    (void)state;
    for (size_t i = 0; i < N_MACHINES; ++i) {
        struct ggml_host_topology facts;
        print_message("# %s\n", machines[i].name);
        assert_int_equal(discover_by_hwloc(&machines[i], &facts), GGML_HOST_OK);
        check_facts(&machines[i], &facts);
        check_workers(&facts);
    }
}

static void check_first_cpus(const uint32_t (*workers)[3], size_t n) {
    uint64_t set[TOPOLOGY_WORDS];
    for (size_t i = 0; i < n; ++i) {
        topology_table_worker(workers[i][0], workers[i][1], set);
        assert_int_equal(set[0], UINT64_C(1) << workers[i][2]);
    }
}

static const uint32_t hybrid_workers[][3] = {{0, 2, 2}, {1, 2, 3}, {2, 3, 0}, {4, 5, 2}};
// The slow ones come first here.
static const struct machine hybrid = {
    .synthetic = "pack:1 core:4 pu:1", .removed = "", .slow = "0,1", .allowed = "", .affinity = ""};

static void test_workers_prefer_performance_cores(void **state) {
    (void)state;
    struct ggml_host_topology facts;
    assert_int_equal(discover_by_hwloc(&hybrid, &facts), GGML_HOST_OK);
    check_first_cpus(hybrid_workers, 4);
}

static void test_few_workers_are_spread_over_packages(void **state) {
    (void)state;
    static const uint32_t workers[][3] = {{0, 2, 0}, {1, 2, 8}};
    struct ggml_host_topology facts;
    const struct machine server = {.synthetic = "pack:2 core:8 pu:1",
                                   .removed = "",
                                   .slow = "",
                                   .allowed = "",
                                   .affinity = ""};
    assert_int_equal(discover_by_hwloc(&server, &facts), GGML_HOST_OK);
    check_first_cpus(workers, 2);
}

static void test_nothing_may_be_used(void **state) {
    (void)state;
    struct topology_table *table = calloc(1, sizeof(*table));
    const uint64_t none[TOPOLOGY_WORDS] = {0};
    struct ggml_host_topology facts;
    uint32_t representative;
    assert_non_null(table);
    table->cpus[0].speed = table->n_cpus = 1;
    assert_int_equal(topology_table_apply(table, none, 0, &facts, &representative),
                     GGML_HOST_UNSUPPORTED);
    free(table);
}

static void test_tables_of_strangers(void **state) {
    (void)state;
    static const struct topology_cpu good[] = {
        {.speed = 1}, {.speed = 1}, {0}, {.core = 3, .speed = 2}};
    static const struct {
        size_t at;
        struct topology_cpu cpu;
    } bad[] = {{1, {.core = 2, .speed = 1}}, // not the lowest of its core
               {1, {.core = 4, .speed = 1}},
               {1, {.core = UINT32_MAX, .speed = 1}},
               {3, {.core = 2, .speed = 1}}, // of a core that isn't there
               {0, {0}},
               {1, {.package = TOPOLOGY_CPUS_MAX, .speed = 1}},
               {1, {.node = UINT32_MAX, .speed = 1}}};
    struct topology_cpu cpus[4];
    memcpy(cpus, good, sizeof(cpus));
    assert_true(topology_table_valid(cpus, 4));
    assert_false(topology_table_valid(cpus, 0));
    assert_false(topology_table_valid(cpus, TOPOLOGY_CPUS_MAX + 1));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
        memcpy(cpus, good, sizeof(cpus));
        cpus[bad[i].at] = bad[i].cpu;
        if (topology_table_valid(cpus, 4)) fail_msg("table %zu", i);
    }
}

// --- from /sys

#ifdef __linux__
// The machine's files are written first. NULL for `ask`: they are read.
static enum ggml_host_status discover_from_files(const struct machine *machine, const char *root,
                                                 topology_asker *ask,
                                                 struct ggml_host_topology *out_facts) {
    uint64_t words[TOPOLOGY_WORDS];
    hwloc_topology_t topology = build(machine);
    hwloc_bitmap_t slow = set_of(machine->slow);
    hwloc_bitmap_t fast = hwloc_bitmap_dup(hwloc_topology_get_topology_cpuset(topology));
    if (slow) hwloc_bitmap_andnot(fast, fast, slow);
    allowed_of(machine, topology, words);
    system_files_write(root, topology, slow ? fast : NULL);
    const struct topology_plain_source source = {root, words, machine->quota, ask};
    hwloc_bitmap_free(fast);
    hwloc_bitmap_free(slow);
    hwloc_topology_destroy(topology);
    return topology_plain_discover(&source, out_facts);
}

typedef uint64_t worker_set[TOPOLOGY_WORDS];

// Sets of some workers of each number of them; freed by the caller.
static worker_set *take_workers(uint32_t n_cores, size_t *out_n) {
    worker_set *sets = calloc((size_t)(n_cores + 1) * 17, sizeof(*sets));
    assert_non_null(sets);
    *out_n = 0;
    for (uint32_t count = 1; count <= n_cores + 1; ++count) {
        for (uint32_t k = 0; k < count; k += 1 + count / 16)
            topology_table_worker(k, count, sets[(*out_n)++]);
    }
    return sets;
}

// The same facts, and the same CPUs for every worker, as by hwloc.
static void test_the_same_machines_from_the_system_s_own_files(void **state) {
    (void)state;
    for (size_t i = 0; i < N_MACHINES; ++i) {
        struct ggml_host_topology facts;
        size_t n_expected, n;
        char root[sizeof(temp_folder) + 24];
        print_message("# %s\n", machines[i].name);
        snprintf(root, sizeof(root), "%s/%zu", temp_folder, i);
        assert_int_equal(discover_by_hwloc(&machines[i], &facts), GGML_HOST_OK);
        worker_set *expected = take_workers(facts.n_cores, &n_expected);
        assert_int_equal(discover_from_files(&machines[i], root, NULL, &facts), GGML_HOST_OK);
        check_facts(&machines[i], &facts);
        check_workers(&facts);
        worker_set *sets = take_workers(facts.n_cores, &n);
        assert_int_equal(n, n_expected);
        assert_memory_equal(sets, expected, n * sizeof(*sets));
        free(sets);
        free(expected);
    }
}

static void test_performance_cores_come_first_without_hwloc_too(void **state) {
    (void)state;
    struct ggml_host_topology facts;
    char root[sizeof(temp_folder) + 24];
    snprintf(root, sizeof(root), "%s/hybrid", temp_folder);
    assert_int_equal(discover_from_files(&hybrid, root, NULL, &facts), GGML_HOST_OK);
    check_first_cpus(hybrid_workers, 4);
    const uint64_t none[TOPOLOGY_WORDS] = {0};
    const struct topology_plain_source nothing = {root, none, 0, NULL};
    assert_int_equal(topology_plain_discover(&nothing, &facts), GGML_HOST_UNSUPPORTED);
}

static bool know_one_cpu(struct topology_table *out_table) {
    out_table->cpus[0] = (struct topology_cpu){.speed = 1, .cache_kib = {7}};
    out_table->n_cpus = 1;
    return true;
}

static bool know_nothing(struct topology_table *out_table) {
    (void)out_table;
    return false;
}

// Another machine's table is none of this one's; who has none is not asked twice.
static void test_files_are_read_where_nobody_knows_better(void **state) {
    (void)state;
    topology_asker *const askers[] = {know_one_cpu, know_nothing};
    struct ggml_host_topology facts;
    char root[sizeof(temp_folder) + 24];
    struct machine one = hybrid;
    snprintf(root, sizeof(root), "%s/asked", temp_folder);
    for (size_t i = 0; i < 2; ++i) {
        assert_int_equal(discover_from_files(&hybrid, root, askers[i], &facts), GGML_HOST_OK);
        assert_int_equal(facts.n_cores, 4);
        assert_int_equal(facts.n_performance_cores, 2);
    }
    one.affinity = "0";
    assert_int_equal(discover_from_files(&one, root, know_one_cpu, &facts), GGML_HOST_OK);
    assert_int_equal(facts.n_cores, 1);
    assert_int_equal(facts.l1d_bytes, 7 * 1024);
}

// AMD's hybrid processors list no kinds: frequencies tell them, but not those of cores that may be
// boosted a little more than others.
static void test_kinds_by_frequency(void **state) {
    (void)state;
    static const struct {
        unsigned mhz[4];
        uint32_t n_performance_cores;
        int first; // CPU of the first worker of four
    } rows[] = {{{3300, 3300, 5100, 5000}, 2, 2},
                {{5000, 5200, 5000, 5100}, 4, 0},
                {{3300, 5100, 3300, 3300}, 1, 1},
                {{0, 0, 0, 0}, 4, 0}};
    struct machine machine = hybrid;
    machine.slow = "";
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        struct ggml_host_topology facts;
        uint64_t set[TOPOLOGY_WORDS];
        char root[sizeof(temp_folder) + 24];
        snprintf(root, sizeof(root), "%s/frequency%zu", temp_folder, i);
        for (unsigned cpu = 0; cpu < 4; ++cpu)
            if (rows[i].mhz[cpu] > 0) system_files_write_frequency(root, cpu, rows[i].mhz[cpu]);
        assert_int_equal(discover_from_files(&machine, root, NULL, &facts), GGML_HOST_OK);
        assert_int_equal(facts.n_performance_cores, rows[i].n_performance_cores);
        topology_table_worker(0, 4, set);
        assert_int_equal(set[0], UINT64_C(1) << rows[i].first);
    }
}
#endif

// --- this machine

static void test_this_machine_is_plausible(void **state) {
    (void)state;
    struct ggml_host_topology facts = {.size = sizeof(facts)};
    assert_int_equal(ggml_host_get_topology(&facts), GGML_HOST_OK);
    assert_true(facts.n_packages >= 1 && facts.n_packages <= facts.n_cores);
    assert_true(facts.n_performance_cores >= 1 && facts.n_performance_cores <= facts.n_cores);
    assert_true(facts.n_cores <= facts.n_pus);
    assert_true(facts.default_threads >= 1 && facts.default_threads <= facts.n_performance_cores);
    assert_int_equal(ggml_host_default_threads(), facts.default_threads);
    assert_int_equal(facts.cpu_features[0], ggml_host_cpu_features());
}

static void test_callers_of_another_size(void **state) {
    (void)state;
    struct {
        struct ggml_host_topology facts;
        uint64_t later_members[4];
    } newer;
    struct ggml_host_topology older;
    memset(&newer, 0x55, sizeof(newer));
    newer.facts.size = sizeof(newer);
    assert_int_equal(ggml_host_get_topology(&newer.facts), GGML_HOST_OK);
    assert_int_equal(newer.facts.size, sizeof(newer.facts));
    memset(&older, 0x55, sizeof(older));
    older.size = offsetof(struct ggml_host_topology, n_pus);
    assert_int_equal(ggml_host_get_topology(&older), GGML_HOST_OK);
    assert_int_equal(older.n_pus, 0x55555555);
    assert_int_equal(older.n_cores, newer.facts.n_cores);
    older.size = 0;
    assert_int_equal(ggml_host_get_topology(&older), GGML_HOST_INVALID_ARGUMENT);
    assert_int_equal(ggml_host_get_topology(NULL), GGML_HOST_INVALID_ARGUMENT);
}

#ifdef __linux__
static void test_bound_thread_runs_where_it_was_put(void **state) {
    (void)state;
    cpu_set_t before;
    cpu_set_t bound;
    cpu_set_t after;
    const uint64_t nothing[2] = {0, 0};
    const uint64_t everything[2] = {UINT64_MAX, UINT64_MAX};
    sched_getaffinity(0, sizeof(before), &before);
    if (topology_bind_thread(0, 1) == GGML_HOST_UNSUPPORTED) {
        print_message("# left out: threads are not bound here\n");
        return;
    }
    for (uint32_t i = 0; i < 5; ++i) {
        assert_int_equal(topology_bind_thread(i, 5), GGML_HOST_OK);
        sched_getaffinity(0, sizeof(bound), &bound);
        CPU_AND(&after, &bound, &before);
        assert_true(CPU_EQUAL(&after, &bound));
        assert_true(CPU_COUNT(&bound) >= 1);
    }
    assert_int_equal(topology_bind_thread(0, 0), GGML_HOST_OK);
    sched_getaffinity(0, sizeof(after), &after);
    assert_true(CPU_EQUAL(&after, &before));
    assert_int_equal(topology_bind_thread(3, 3), GGML_HOST_INVALID_ARGUMENT);
    assert_int_equal(topology_bind_mask(NULL, 1), GGML_HOST_INVALID_ARGUMENT);
    assert_int_equal(topology_bind_mask(nothing, 2), GGML_HOST_INVALID_ARGUMENT);
    assert_int_equal(topology_bind_mask(everything, 2), GGML_HOST_OK);
}
#else
static void test_bound_thread_runs_where_it_was_put(void **state) {
    (void)state;
    print_message("# left out: threads are not bound here\n");
}
#endif

// F24 of a security review: hwloc crashes where its allocations fail. Here nothing does.
#if defined(__linux__) && !GGML_SANITIZED && !defined(EMULATED)
enum { BLOCK = 1024 };

// Takes all memory that malloc can get, but for so many blocks that it can give.
static void leave_blocks(size_t count) {
    void **newest = NULL;
    const struct rlimit limit = {0, 0};
    setrlimit(RLIMIT_AS, &limit);
    for (void **block = malloc(BLOCK); block; block = malloc(BLOCK)) {
        *block = newest;
        newest = block;
    }
    for (size_t i = 0; i < count && newest; ++i) {
        void **next = *newest;
        free(newest);
        newest = next;
    }
}

static int discover_within(size_t n_blocks) {
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
        struct ggml_host_topology facts = {.size = sizeof(facts)};
        const struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        alarm(20);
        leave_blocks(n_blocks);
        const bool known = ggml_host_get_topology(&facts) == GGML_HOST_OK;
        const bool told = ggml_last_status() == GGML_HOST_OUT_OF_MEMORY;
        _exit((known ? facts.n_pus > 0 : told) && ggml_host_default_threads() > 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void test_f24_without_memory_the_topology_is_plain(void **state) {
    (void)state;
    enum { N_SIZES = 16 }; // one file at a time is open, with 4 KiB for its bytes
    for (size_t i = 0; i < N_SIZES; ++i) {
        const int status = discover_within(i);
        if (status != 0) fail_msg("%zu blocks: status %#x", i, (unsigned)status);
    }
}
#define MEMORY_CAN_BE_SHORT
#endif

static void *ask(void *out_threads) {
    *(int *)out_threads = ggml_host_default_threads();
    return NULL;
}

static void test_discovery_by_several_threads(void **state) {
    (void)state;
    enum { N_THREADS = 4 };
    pthread_t threads[N_THREADS];
    int answers[N_THREADS];
    for (int i = 0; i < N_THREADS; ++i)
        pthread_create(&threads[i], NULL, ask, &answers[i]);
    for (int i = 0; i < N_THREADS; ++i)
        pthread_join(threads[i], NULL);
    for (int i = 1; i < N_THREADS; ++i)
        assert_int_equal(answers[i], answers[0]);
    assert_true(answers[0] >= 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
    // First, so that they do discover.
#ifdef MEMORY_CAN_BE_SHORT
        cmocka_unit_test(test_f24_without_memory_the_topology_is_plain),
#endif
        cmocka_unit_test(test_discovery_by_several_threads),
        cmocka_unit_test(test_bound_thread_runs_where_it_was_put),
        // Replays take the place of what was discovered.
        cmocka_unit_test(test_machines),
#ifdef __linux__
        cmocka_unit_test(test_the_same_machines_from_the_system_s_own_files),
        cmocka_unit_test(test_performance_cores_come_first_without_hwloc_too),
        cmocka_unit_test(test_files_are_read_where_nobody_knows_better),
        cmocka_unit_test(test_kinds_by_frequency),
#endif
        cmocka_unit_test(test_workers_prefer_performance_cores),
        cmocka_unit_test(test_few_workers_are_spread_over_packages),
        cmocka_unit_test(test_nothing_may_be_used),
        cmocka_unit_test(test_tables_of_strangers),
        cmocka_unit_test(test_this_machine_is_plausible),
        cmocka_unit_test(test_callers_of_another_size),
    };
    hwloc = hwloc_calls_open();
    if (!hwloc) return 1;
    return cmocka_run_group_tests(tests, temp_folder_make, temp_folder_remove);
}
