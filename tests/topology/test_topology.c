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

#include "base/mem.h"
#include "base/sanitizer.h"
#include "base/status.h"
#include "ggml-host.h"
#include "machine/topology.h"
#include "machine/topology_plain.h"
#include "machine/topology_view.h"
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

// Workers up to the number of performance cores have one each, of their own; all cores follow.
static void check_workers(const struct topology_view *view) {
    const uint32_t n_cores = view->facts.n_cores;
    const uint32_t n_fast = view->facts.n_performance_cores;
    const uint32_t counts[] = {1, 2, n_fast, n_cores, n_cores + 3};
    hwloc_bitmap_t seen = hwloc_bitmap_alloc();
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); ++i) {
        hwloc_bitmap_zero(seen);
        for (uint32_t k = 0; k < counts[i]; ++k) {
            hwloc_const_cpuset_t set = topology_view_worker(view, k, counts[i]);
            assert_false(hwloc_bitmap_iszero(set));
            assert_true(hwloc_bitmap_isincluded(set, view->allowed));
            if (k < n_cores && counts[i] <= n_cores)
                assert_false(hwloc_bitmap_intersects(set, seen));
            hwloc_bitmap_or(seen, seen, set);
        }
        if (counts[i] >= n_cores) assert_true(hwloc_bitmap_isequal(seen, view->allowed));
    }
    hwloc_bitmap_free(seen);
}

static void test_machines(void **state) {
    (void)state;
    for (size_t i = 0; i < N_MACHINES; ++i) {
        struct topology_view view;
        print_message("# %s\n", machines[i].name);
        hwloc_topology_t topology = build(&machines[i]);
        hwloc_bitmap_t affinity = set_of(machines[i].affinity);
        const struct topology_source source = {hwloc, topology, affinity, machines[i].quota};
        assert_int_equal(topology_view_init(&view, &source), GGML_HOST_OK);
        check_facts(&machines[i], &view.facts);
        check_workers(&view);
        topology_view_free(&view);
        hwloc_bitmap_free(affinity);
        hwloc_topology_destroy(topology);
    }
}

static void test_workers_prefer_performance_cores(void **state) {
    (void)state;
    struct topology_view view;
    struct machine hybrid = {.synthetic = "pack:1 core:4 pu:1", .removed = "", .allowed = ""};
    hybrid.slow = "0,1"; // the slow ones come first here
    hwloc_topology_t topology = build(&hybrid);
    const struct topology_source source = {hwloc, topology, NULL, 0};
    assert_int_equal(topology_view_init(&view, &source), GGML_HOST_OK);
    assert_int_equal(hwloc_bitmap_first(topology_view_worker(&view, 0, 2)), 2);
    assert_int_equal(hwloc_bitmap_first(topology_view_worker(&view, 1, 2)), 3);
    assert_int_equal(hwloc_bitmap_first(topology_view_worker(&view, 2, 3)), 0);
    assert_int_equal(hwloc_bitmap_first(topology_view_worker(&view, 4, 5)), 2);
    topology_view_free(&view);
    hwloc_topology_destroy(topology);
}

static void test_few_workers_are_spread_over_packages(void **state) {
    (void)state;
    struct topology_view view;
    const struct machine server = {
        .synthetic = "pack:2 core:8 pu:1", .removed = "", .slow = "", .allowed = ""};
    hwloc_topology_t topology = build(&server);
    const struct topology_source source = {hwloc, topology, NULL, 0};
    assert_int_equal(topology_view_init(&view, &source), GGML_HOST_OK);
    assert_int_equal(hwloc_bitmap_first(topology_view_worker(&view, 0, 2)), 0);
    assert_int_equal(hwloc_bitmap_first(topology_view_worker(&view, 1, 2)), 8);
    topology_view_free(&view);
    hwloc_topology_destroy(topology);
}

static bool never(void *context) {
    (void)context;
    return false;
}

static void test_views_that_can_not_be_made(void **state) {
    (void)state;
    struct topology_view view;
    hwloc_topology_t topology = build(&machines[0]);
    hwloc_bitmap_t elsewhere = set_of("1000");
    const struct topology_source nothing = {hwloc, topology, elsewhere, 0};
    assert_int_equal(topology_view_init(&view, &nothing), GGML_HOST_UNSUPPORTED);
    topology_view_free(&view);
    const struct topology_source source = {hwloc, topology, NULL, 0};
    ggml_mem_set_fault_hook(never, NULL);
    const enum ggml_host_status status = topology_view_init(&view, &source);
    ggml_mem_set_fault_hook(NULL, NULL);
    assert_int_equal(status, GGML_HOST_OUT_OF_MEMORY);
    topology_view_free(&view);
    hwloc_bitmap_free(elsewhere);
    hwloc_topology_destroy(topology);
}

// --- without hwloc

#ifdef __linux__
static void words_of(hwloc_const_bitmap_t set, uint64_t out_words[TOPOLOGY_PLAIN_WORDS]) {
    memset(out_words, 0, TOPOLOGY_PLAIN_WORDS * sizeof(*out_words));
    int cpu;
    hwloc_bitmap_foreach_begin(cpu, set) {
        out_words[cpu / 64] |= UINT64_C(1) << cpu % 64;
    }
    hwloc_bitmap_foreach_end();
}

// What hwloc's view leaves to the process, by the same rules as there.
static void discover_plain(const struct machine *machine, const char *root,
                           struct ggml_host_topology *out_facts) {
    uint64_t words[TOPOLOGY_PLAIN_WORDS];
    hwloc_topology_t topology = build(machine);
    hwloc_bitmap_t slow = set_of(machine->slow), affinity = set_of(machine->affinity);
    hwloc_bitmap_t allowed = hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(topology));
    hwloc_bitmap_t fast = hwloc_bitmap_dup(hwloc_topology_get_topology_cpuset(topology));
    if (slow) hwloc_bitmap_andnot(fast, fast, slow);
    if (affinity) hwloc_bitmap_and(allowed, allowed, affinity);
    words_of(allowed, words);
    system_files_write(root, topology, slow ? fast : NULL);
    const struct topology_plain_source source = {root, words, machine->quota};
    assert_int_equal(topology_plain_discover(&source, out_facts), GGML_HOST_OK);
    hwloc_bitmap_free(fast);
    hwloc_bitmap_free(allowed);
    hwloc_bitmap_free(affinity);
    hwloc_bitmap_free(slow);
    hwloc_topology_destroy(topology);
}

// Every worker gets the same CPUs by either reader.
static void compare_workers(const struct machine *machine) {
    struct topology_view view;
    uint64_t expected[TOPOLOGY_PLAIN_WORDS], set[TOPOLOGY_PLAIN_WORDS];
    hwloc_topology_t topology = build(machine);
    hwloc_bitmap_t affinity = set_of(machine->affinity);
    const struct topology_source source = {hwloc, topology, affinity, machine->quota};
    assert_int_equal(topology_view_init(&view, &source), GGML_HOST_OK);
    for (uint32_t count = 1; count <= view.facts.n_cores + 1; ++count) {
        for (uint32_t k = 0; k < count; k += 1 + count / 16) {
            words_of(topology_view_worker(&view, k, count), expected);
            topology_plain_worker(k, count, set);
            assert_memory_equal(set, expected, sizeof(set));
        }
    }
    topology_view_free(&view);
    hwloc_bitmap_free(affinity);
    hwloc_topology_destroy(topology);
}

static bool any_common(const uint64_t *a, const uint64_t *b) {
    for (int i = 0; i < TOPOLOGY_PLAIN_WORDS; ++i)
        if (a[i] & b[i]) return true;
    return false;
}

static uint32_t count_bits(const uint64_t *words) {
    uint32_t n = 0;
    for (int i = 0; i < TOPOLOGY_PLAIN_WORDS; ++i)
        n += (uint32_t)__builtin_popcountll(words[i]);
    return n;
}

// As check_workers.
static void check_plain_workers(const struct ggml_host_topology *facts) {
    const uint32_t counts[] = {1, 2, facts->n_performance_cores, facts->n_cores,
                               facts->n_cores + 3};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); ++i) {
        uint64_t seen[TOPOLOGY_PLAIN_WORDS] = {0}, set[TOPOLOGY_PLAIN_WORDS];
        for (uint32_t k = 0; k < counts[i]; ++k) {
            topology_plain_worker(k, counts[i], set);
            assert_true(count_bits(set) > 0);
            if (k < facts->n_cores && counts[i] <= facts->n_cores)
                assert_false(any_common(set, seen));
            for (int word = 0; word < TOPOLOGY_PLAIN_WORDS; ++word)
                seen[word] |= set[word];
        }
        if (counts[i] >= facts->n_cores) assert_int_equal(count_bits(seen), facts->n_pus);
    }
}

static void test_the_same_machines_from_the_system_s_own_files(void **state) {
    (void)state;
    for (size_t i = 0; i < N_MACHINES; ++i) {
        struct ggml_host_topology facts;
        char root[sizeof(temp_folder) + 24];
        print_message("# %s\n", machines[i].name);
        snprintf(root, sizeof(root), "%s/%zu", temp_folder, i);
        discover_plain(&machines[i], root, &facts);
        check_facts(&machines[i], &facts);
        check_plain_workers(&facts);
        compare_workers(&machines[i]);
    }
}

static void test_performance_cores_come_first_without_hwloc_too(void **state) {
    (void)state;
    struct ggml_host_topology facts;
    uint64_t set[TOPOLOGY_PLAIN_WORDS];
    struct machine hybrid = {.synthetic = "pack:1 core:4 pu:1", .removed = "", .allowed = ""};
    char root[sizeof(temp_folder) + 24];
    hybrid.slow = "0,1";
    hybrid.affinity = "";
    snprintf(root, sizeof(root), "%s/hybrid", temp_folder);
    discover_plain(&hybrid, root, &facts);
    const uint32_t workers[][3] = {{0, 2, 2}, {1, 2, 3}, {2, 3, 0}, {4, 5, 2}};
    for (size_t i = 0; i < 4; ++i) {
        topology_plain_worker(workers[i][0], workers[i][1], set);
        assert_int_equal(set[0], UINT64_C(1) << workers[i][2]);
    }
    const uint64_t none[TOPOLOGY_PLAIN_WORDS] = {0};
    const struct topology_plain_source nothing = {root, none, 0};
    assert_int_equal(topology_plain_discover(&nothing, &facts), GGML_HOST_UNSUPPORTED);
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
    struct machine machine = {.synthetic = "pack:1 core:4 pu:1",
                              .removed = "",
                              .slow = "",
                              .allowed = "",
                              .affinity = ""};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        struct ggml_host_topology facts;
        uint64_t set[TOPOLOGY_PLAIN_WORDS];
        char root[sizeof(temp_folder) + 24];
        snprintf(root, sizeof(root), "%s/frequency%zu", temp_folder, i);
        for (unsigned cpu = 0; cpu < 4; ++cpu)
            if (rows[i].mhz[cpu] > 0) system_files_write_frequency(root, cpu, rows[i].mhz[cpu]);
        discover_plain(&machine, root, &facts);
        assert_int_equal(facts.n_performance_cores, rows[i].n_performance_cores);
        topology_plain_worker(0, 4, set);
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
    if (topology_bind_thread(0, 1) == GGML_HOST_UNSUPPORTED) skip();
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
    skip();
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
        cmocka_unit_test(test_kinds_by_frequency),
#endif
        cmocka_unit_test(test_workers_prefer_performance_cores),
        cmocka_unit_test(test_few_workers_are_spread_over_packages),
        cmocka_unit_test(test_views_that_can_not_be_made),
        cmocka_unit_test(test_this_machine_is_plausible),
        cmocka_unit_test(test_callers_of_another_size),
    };
    hwloc = hwloc_calls_open();
    if (!hwloc) return 1;
    return cmocka_run_group_tests(tests, temp_folder_make, temp_folder_remove);
}
